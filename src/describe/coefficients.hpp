#pragma once
// Coefficient tensors of a path: sparse, over the components of the operands, by name where the library knows them.
#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "algebra/irreps.hpp"

namespace clebsch {

/// One non-zero entry: a component index per axis and its value.
struct CoefficientEntry {
    std::vector<int> index;
    double value = 0;

    friend bool operator==(const CoefficientEntry&, const CoefficientEntry&) = default;
};

/// An immutable sparse tensor. Copies share the data. Either named (a call such as `cg(1o,1o,2e)`, expanded on demand) or literal entries.
///
/// Names:
///   one                      no axes, value 1
///   identity(n)              axes (n, n), delta
///   cg(l1,l2,l3)             wigner_3j, axes (2l1+1, 2l2+1, 2l3+1); irreps as written in `Irrep` text, e.g. cg(1o,1o,2e)
///   cg04(l1,l2,l3)           the same with e3nn 0.4's signs
///   harmonic(l)              the symmetric tensor of Y_l ('component' size): l axes of 3 (the vector) and one of 2l+1;
///                            sum over all axes of T[i1..il,m] r_i1 .. r_il = Y_l[m](r)
///   symmetric(a,b,...;c;r)   r-th orthonormal coupling of a non-decreasing list of irreps to c, symmetric under exchange of equal
///                            irreps (docs/symmetric-contraction.md)
/// Any other tensor is a literal: entries sorted by index, no zero, no duplicate.
class Coefficients {
 public:
    Coefficients();                                    ///< `one`
    static Coefficients named(std::string_view call);  ///< throws Error(parse): unknown name, bad irreps, no coupling
    static Coefficients literal(std::vector<int> shape,
                                std::vector<CoefficientEntry> entries);  ///< sorts, merges, drops zeros, checks bounds
    static Coefficients cg(Irrep a, Irrep b, Irrep c, bool e3nn_0_4_signs = false);
    static Coefficients harmonic(int degree);
    static Coefficients identity(int n);

    const std::string& name() const;        ///< empty for a literal
    const std::vector<int>& shape() const;  ///< one extent per axis
    std::size_t rank() const { return shape().size(); }

    /// All entries, expanded over every axis, sorted. (harmonic(l) of high degree is large: use `grouped` there.)
    const std::vector<CoefficientEntry>& entries() const;

    /// Entries after symmetrising over axes that are contracted with the same thing. `group[a]` is a label per axis; axes with the same
    /// label
    /// (>= 0) hold identical factors, so only sums over permutations of their indices matter: the result has non-decreasing indices along
    /// the axes of a group, with the values of all permutations added up. Label -1: an axis by itself.
    std::vector<CoefficientEntry> grouped(std::span<const int> group) const;

    /// Whether exchanging axes a and b leaves the tensor unchanged (known by name, or checked on the entries).
    bool symmetric_in(int a, int b) const;

    /// Canonical: `name` or `{shape; i,j,k: value; ...}`.
    std::string to_text() const;
    friend bool operator==(const Coefficients& a, const Coefficients& b);

 private:
    struct Data;
    std::shared_ptr<const Data> data_;
    explicit Coefficients(std::shared_ptr<const Data> data) : data_(std::move(data)) {}
};

}  // namespace clebsch
