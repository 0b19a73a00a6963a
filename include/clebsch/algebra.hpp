#pragma once
/// Irreps, their couplings, and the matrices they transform with.
#include <clebsch/library.hpp>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace clebsch {

/// A list of irreps with multiplicities: clebsch::Irreps("128x0e+64x1o").
class Irreps {
 public:
    struct Block {
        std::int64_t multiplicity;
        int degree, parity;  ///< parity: 1 even, -1 odd, 0 for SO(3)

        friend bool operator==(const Block&, const Block&) = default;
    };
    struct Sorted;

    explicit Irreps(const std::string& text)
        : handle_(detail::created(clebsch_irreps_destroy,
                                  [&](clebsch_irreps** handle) { return clebsch_irreps_parse(detail::pass(text), handle); })) {}
    /// Numbers per row.
    std::int64_t dim() const { return clebsch_irreps_dim(handle()); }
    std::vector<Block> blocks() const {
        std::vector<Block> result(clebsch_irreps_count(handle()));
        for (std::size_t i = 0; i < result.size(); ++i)
            check(clebsch_irreps_block(handle(), i, &result[i].multiplicity, &result[i].degree, &result[i].parity));
        return result;
    }
    /// Sorted stably.
    Sorted sorted() const;
    /// Adjacent equal irreps merged, multiplicity 0 dropped.
    Irreps simplified() const {
        return made([&](clebsch_irreps** result) { return clebsch_irreps_simplify(handle(), result); });
    }
    /// Sorted, then simplified.
    Irreps regrouped() const {
        return made([&](clebsch_irreps** result) { return clebsch_irreps_regroup(handle(), result); });
    }
    /// The list `times` times, one after another.
    Irreps repeated(std::int64_t times) const {
        return made([&](clebsch_irreps** result) { return clebsch_irreps_repeat(handle(), times, result); });
    }
    /// The blocks whose irrep is in `keep`, and of degree at most `lmax` (negative: any).
    Irreps filtered(const Irreps& keep, int lmax = -1) const {
        return made([&](clebsch_irreps** result) { return clebsch_irreps_filter(handle(), keep.handle(), nullptr, lmax, result); });
    }
    /// For every pair of blocks the irreps of their product, ascending, neither sorted nor merged.
    Irreps product(const Irreps& other) const {
        return made([&](clebsch_irreps** result) { return clebsch_irreps_product(handle(), other.handle(), nullptr, result); });
    }
    std::string text() const {
        return detail::text_from([&](char** text) { return clebsch_irreps_text(handle(), text); });
    }
    const clebsch_irreps* handle() const { return handle_.get(); }

    friend bool operator==(const Irreps& a, const Irreps& b) { return a.blocks() == b.blocks(); }

 private:
    explicit Irreps(std::shared_ptr<const clebsch_irreps> handle) : handle_(std::move(handle)) {}
    template <class Make>
    static Irreps made(const Make& make) {
        return Irreps(detail::created(clebsch_irreps_destroy, make));
    }

    std::shared_ptr<const clebsch_irreps> handle_;
};

struct Irreps::Sorted {
    Irreps irreps;
    std::vector<int> permutation;  ///< permutation[old] = new
};

inline Irreps::Sorted Irreps::sorted() const {
    std::vector<int> permutation(clebsch_irreps_count(handle()));
    Irreps irreps(detail::created(clebsch_irreps_destroy,
                                  [&](clebsch_irreps** result) { return clebsch_irreps_sort(handle(), result, permutation.data()); }));
    return {std::move(irreps), std::move(permutation)};
}

/// Row-major.
using Matrix3 = std::array<double, 9>;

namespace detail {

/// Components of a degree; the library refuses a degree that has no room here before it writes.
inline std::size_t components(int degree) { return degree < 0 || degree > 100 ? 1 : 2 * static_cast<std::size_t>(degree) + 1; }

}  // namespace detail

/// Real coupling coefficients, (2 l1 + 1) x (2 l2 + 1) x (2 l3 + 1). `sign_table`: 5 (e3nn 0.5 and newer) or 4 (e3nn 0.4).
inline std::vector<double> wigner_3j(int l1, int l2, int l3, int sign_table = 5) {
    std::vector<double> result(detail::components(l1) * detail::components(l2) * detail::components(l3));
    check(clebsch_wigner_3j(l1, l2, l3, sign_table, result.data()));
    return result;
}

/// Matrix of an orthogonal matrix on the irrep (degree, parity), (2l + 1) x (2l + 1).
inline std::vector<double> wigner_d(int degree, int parity, const Matrix3& rotation) {
    std::vector<double> result(detail::components(degree) * detail::components(degree));
    check(clebsch_wigner_d(degree, parity, rotation.data(), result.data()));
    return result;
}

/// From Euler angles (Y-X-Y), in radians.
inline Matrix3 rotation_from_angles(double alpha, double beta, double gamma) {
    Matrix3 rotation{};
    check(clebsch_rotation_from_angles(alpha, beta, gamma, rotation.data()));
    return rotation;
}

/// From (w, x, y, z).
inline Matrix3 rotation_from_quaternion(const std::array<double, 4>& quaternion) {
    Matrix3 rotation{};
    check(clebsch_rotation_from_quaternion(quaternion.data(), rotation.data()));
    return rotation;
}

}  // namespace clebsch
