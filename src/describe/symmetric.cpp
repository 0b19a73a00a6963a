#include "describe/symmetric.hpp"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <mutex>
#include <utility>

#include "algebra/wigner.hpp"
#include "base/error.hpp"

namespace clebsch {
namespace {

/// A candidate whose part outside the span of the earlier ones is smaller than this is dependent on them. Over all lists of up to four
/// irreps of degree 0 to 4 the smallest true remainder is 0.27 and the largest that rounding leaves is 1.1e-15.
constexpr double rank_tolerance = 1e-7;
constexpr std::int64_t largest_tensor = std::int64_t{1} << 22;

/// The monomials in the components of `inputs`: component lists that are non-decreasing among equal irreps, numbered in lexicographic
/// order.
class Monomials {
 public:
    explicit Monomials(std::span<const Irrep> inputs) : inputs_(inputs.begin(), inputs.end()) {
        std::int64_t dense = 1;
        for (const Irrep& irrep : inputs) {
            if (dense > largest_tensor) break;
            dense *= irrep.dim();
        }
        if (dense > largest_tensor)
            throw Error(ErrorKind::unsupported, "symmetric couplings of " + std::to_string(inputs.size()) + " irreps, the last one " +
                                                    to_text(inputs.back()) + ": more than 2^22 components are not supported");
        number_.assign(static_cast<std::size_t>(dense), -1);
        std::vector<int> components(inputs.size(), 0);
        enumerate(components, 0, 0);
    }

    std::size_t size() const { return components_.size(); }
    const std::vector<int>& components(std::size_t i) const { return components_[i]; }
    /// Number of a monomial; `components` may be in any order among equal irreps.
    std::size_t number(std::vector<int> components) const {
        for (std::size_t begin = 0; begin < inputs_.size(); begin = group_end(begin))
            std::sort(components.begin() + static_cast<std::ptrdiff_t>(begin),
                      components.begin() + static_cast<std::ptrdiff_t>(group_end(begin)));
        std::size_t key = 0;
        for (std::size_t a = 0; a < inputs_.size(); ++a)
            key = key * static_cast<std::size_t>(inputs_[a].dim()) + static_cast<std::size_t>(components[a]);
        return static_cast<std::size_t>(number_[key]);
    }
    /// Number of tensor entries that a monomial stands for.
    double arrangements(std::size_t i) const {
        double count = 1;
        const std::vector<int>& components = components_[i];
        for (std::size_t a = 0, group = 0, run = 0; a < inputs_.size(); ++a) {
            const bool same_group = a > 0 && inputs_[a] == inputs_[a - 1];
            group = same_group ? group + 1 : 1;
            run = same_group && components[a] == components[a - 1] ? run + 1 : 1;
            count = count * static_cast<double>(group) / static_cast<double>(run);  // multinomials, one factor at a time
        }
        return count;
    }

 private:
    std::vector<Irrep> inputs_;
    std::vector<std::vector<int>> components_;
    std::vector<std::int32_t> number_;  // by dense position of the sorted components

    std::size_t group_end(std::size_t begin) const {
        std::size_t end = begin + 1;
        while (end < inputs_.size() && inputs_[end] == inputs_[begin]) ++end;
        return end;
    }
    void enumerate(std::vector<int>& components, std::size_t axis, std::size_t key) {
        if (axis == inputs_.size()) {
            number_[key] = static_cast<std::int32_t>(components_.size());
            components_.push_back(components);
            return;
        }
        const bool same = axis > 0 && inputs_[axis] == inputs_[axis - 1];
        for (int c = same ? components[axis - 1] : 0; c < inputs_[axis].dim(); ++c) {
            components[axis] = c;
            enumerate(components, axis + 1, key * static_cast<std::size_t>(inputs_[axis].dim()) + static_cast<std::size_t>(c));
        }
    }
};

/// Coefficients of one coupling, [monomial][output component].
using Dense = std::vector<double>;

/// Appends one more input: the coupling `prefix` to degree j, times a component of the last input, through wigner_3j(j, last, output).
Dense extended(const SymmetricCoupling& prefix, int j, const Monomials& monomials, Irrep last, Irrep output) {
    const auto width = static_cast<std::size_t>(output.dim());
    Dense result(monomials.size() * width, 0.0);
    const std::span<const CouplingEntry> coupling = wigner_3j(j, last.degree, output.degree);
    std::vector<std::size_t> first_of(static_cast<std::size_t>(2 * j + 2), 0);  // the coupling is sorted by its first component
    for (const CouplingEntry& entry : coupling) first_of[static_cast<std::size_t>(entry.i) + 1] += 1;
    for (std::size_t k = 1; k < first_of.size(); ++k) first_of[k] += first_of[k - 1];
    for (const CoefficientEntry& term : prefix) {
        const auto k = static_cast<std::size_t>(term.index.back());
        std::vector<int> components = term.index;  // the coupled component's place is taken by the new input's
        int known = -1;
        std::size_t row = 0;
        for (std::size_t e = first_of[k]; e < first_of[k + 1]; ++e) {
            if (coupling[e].j != known) {
                known = components.back() = coupling[e].j;
                row = monomials.number(components) * width;
            }
            result[row + static_cast<std::size_t>(coupling[e].k)] += term.value * coupling[e].value;
        }
    }
    return result;
}

/// Gram-Schmidt in the order of the candidates, whose leading coefficients stay positive.
class Basis {
 public:
    Basis(const Monomials& monomials, int width) : width_(static_cast<std::size_t>(width)) {
        for (std::size_t i = 0; i < monomials.size(); ++i) weights_.push_back(1.0 / monomials.arrangements(i));
    }
    void add(Dense candidate) {
        const double norm = std::sqrt(product(candidate, candidate));
        if (norm < rank_tolerance) return;
        for (double& value : candidate) value /= norm;
        for (int pass = 0; pass < 2; ++pass) {  // twice: the second pass removes what rounding left
            for (const Dense& earlier : vectors_) {
                const double overlap = product(candidate, earlier);
                for (std::size_t i = 0; i < candidate.size(); ++i) candidate[i] -= overlap * earlier[i];
            }
        }
        const double rest = std::sqrt(product(candidate, candidate));
        if (rest < rank_tolerance) return;
        for (double& value : candidate) value /= rest;
        vectors_.push_back(std::move(candidate));
    }
    const std::vector<Dense>& vectors() const { return vectors_; }

 private:
    std::size_t width_;
    std::vector<double> weights_;
    std::vector<Dense> vectors_;

    /// Inner product of the tensors, averaged over output components (it is the same for each, by Schur's lemma).
    double product(const Dense& a, const Dense& b) const {
        double sum = 0;
        for (std::size_t i = 0; i < weights_.size(); ++i) {
            double part = 0;
            for (std::size_t m = i * width_; m < (i + 1) * width_; ++m) part += a[m] * b[m];
            sum += weights_[i] * part;
        }
        return sum / static_cast<double>(width_);
    }
};

SymmetricCoupling sparse(const Dense& dense, const Monomials& monomials, int width) {
    SymmetricCoupling coupling;
    for (std::size_t i = 0; i < monomials.size(); ++i) {
        for (int m = 0; m < width; ++m) {
            const double value = dense[i * static_cast<std::size_t>(width) + static_cast<std::size_t>(m)];
            if (std::abs(value) < 1e-13) continue;  // rounding of a zero: vectors have norm 1, true entries are not this small
            std::vector<int> index = monomials.components(i);
            index.push_back(m);
            coupling.push_back({std::move(index), value});
        }
    }
    return coupling;
}

Parity parity_of(std::span<const Irrep> irreps) {
    int parity = 1;
    for (const Irrep& irrep : irreps) parity *= static_cast<int>(irrep.parity);
    return static_cast<Parity>(parity);
}

std::vector<SymmetricCoupling> compute(std::span<const Irrep> inputs, Irrep output) {
    const Monomials monomials(inputs);
    if (inputs.size() == 1) {
        SymmetricCoupling identity;
        if (inputs[0] != output) return {};
        for (int i = 0; i < output.dim(); ++i) identity.push_back({{i, i}, 1.0});
        return {std::move(identity)};
    }
    const std::span<const Irrep> prefix = inputs.first(inputs.size() - 1);
    const Irrep last = inputs.back();
    int reach = 0;
    for (const Irrep& irrep : prefix) reach += irrep.degree;
    const int highest = std::min(reach, output.degree + last.degree);
    if (highest > max_degree)
        throw Error(ErrorKind::unsupported, "symmetric(" + symmetric_text(inputs, output) + "): an intermediate degree of " +
                                                std::to_string(highest) + " exceeds " + std::to_string(max_degree));
    Basis basis(monomials, output.dim());
    for (int j = std::abs(output.degree - last.degree); j <= highest; ++j) {
        const auto couplings = symmetric_couplings(prefix, {j, parity_of(prefix)});
        for (const SymmetricCoupling& coupling : *couplings) basis.add(extended(coupling, j, monomials, last, output));
    }
    std::vector<SymmetricCoupling> result;
    for (const Dense& vector : basis.vectors()) result.push_back(sparse(vector, monomials, output.dim()));
    return result;
}

}  // namespace

std::string symmetric_text(std::span<const Irrep> inputs, Irrep output) {
    std::string text;
    for (const Irrep& irrep : inputs) text += (text.empty() ? "" : ",") + to_text(irrep);
    return text + ";" + to_text(output);
}

std::shared_ptr<const std::vector<SymmetricCoupling>> symmetric_couplings(std::span<const Irrep> inputs, Irrep output) {
    using Couplings = std::vector<SymmetricCoupling>;
    static std::mutex mutex;
    static std::map<std::string, std::shared_ptr<const Couplings>> known;

    const std::string name = symmetric_text(inputs, output);
    if (inputs.empty()) fail("symmetric(" + name + "): expected at least one input irrep");
    if (!std::ranges::is_sorted(inputs)) fail("symmetric(" + name + "): expected the irreps in non-decreasing order (0o, 0e, 1o, 1e, ...)");
    {
        const std::lock_guard lock(mutex);
        if (const auto found = known.find(name); found != known.end()) return found->second;
    }
    // Computed without the lock, since the computation asks for shorter lists; of two threads that arrive together the first to finish is
    // kept.
    auto computed = std::make_shared<const Couplings>(output.parity == parity_of(inputs) ? compute(inputs, output) : Couplings{});
    const std::lock_guard lock(mutex);
    return known.emplace(name, std::move(computed)).first->second;
}

}  // namespace clebsch
