#pragma once
// Irreducible representations of O(3) and SO(3), and lists of them with multiplicities ("128x0e+64x1o").
// Grammar, order, sorting and simplification follow e3nn (docs/irreps.md).
#include <compare>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace clebsch {

/// Parity under inversion. `none` marks an irrep of SO(3) ("1" instead of "1o"): SO(3) and O(3) irreps do not mix in one list.
enum class Parity : std::int8_t { odd = -1, none = 0, even = 1 };

/// The largest angular momentum the library handles.
inline constexpr int max_degree = 12;

/// One irreducible representation: degree l (0 to 12) and parity. 2l+1 components, m = -l..l.
struct Irrep {
    int degree = 0;
    Parity parity = Parity::even;

    int dim() const { return 2 * degree + 1; }
    friend bool operator==(const Irrep&, const Irrep&) = default;
    /// e3nn's sort order: by degree, then odd before even: 0o, 0e, 1o, 1e, ... (SO(3): by degree).
    friend std::strong_ordering operator<=>(const Irrep& a, const Irrep& b) {
        if (auto order = a.degree <=> b.degree; std::is_neq(order)) return order;
        return static_cast<int>(a.parity) <=> static_cast<int>(b.parity);
    }
};

std::string to_text(Irrep irrep);          // "1o", SO(3): "1"
Irrep parse_irrep(std::string_view text);  // throws Error(parse) pointing at the character
/// The irreps of the product a x b, from |la-lb| up. Throws when one is of O(3) and the other of SO(3).
std::vector<Irrep> product(Irrep a, Irrep b);
/// Whether c appears in a x b (triangle rule and parity).
bool couples(Irrep a, Irrep b, Irrep c);

/// `multiplicity` copies (channels) of an irrep.
struct IrrepBlock {
    std::int64_t multiplicity = 1;
    Irrep irrep;

    std::int64_t dim() const { return multiplicity * irrep.dim(); }
    friend bool operator==(const IrrepBlock&, const IrrepBlock&) = default;
};

/// An ordered list of blocks. Equality is literal, as in e3nn: 2x0e != 0e+0e, and blocks of multiplicity 0 are kept.
class Irreps {
 public:
    Irreps() = default;
    Irreps(std::vector<IrrepBlock> blocks);  // NOLINT(google-explicit-constructor): a list of blocks is an Irreps
    /// Parses e3nn's grammar and its SO(3) form ("32x0+16x1"). Throws Error(parse) that points at the character.
    explicit Irreps(std::string_view text);
    Irreps(const char* text) : Irreps(std::string_view(text)) {}  // NOLINT(google-explicit-constructor)

    const std::vector<IrrepBlock>& blocks() const { return blocks_; }
    std::size_t size() const { return blocks_.size(); }
    const IrrepBlock& operator[](std::size_t i) const { return blocks_[i]; }
    auto begin() const { return blocks_.begin(); }
    auto end() const { return blocks_.end(); }

    std::int64_t dim() const;         ///< sum of multiplicity * (2l+1)
    std::int64_t num_irreps() const;  ///< sum of multiplicities
    int lmax() const;                 ///< largest degree of a block with multiplicity > 0; throws when there is none
    std::int64_t count(Irrep irrep) const;
    /// [begin, end) of every block in a flat row.
    std::vector<std::pair<std::int64_t, std::int64_t>> slices() const;

    struct Sorted;              // irreps, permutation, inverse
    Sorted sorted() const;      ///< stable; permutation[old] = new, inverse[new] = old
    Irreps simplified() const;  ///< merges adjacent equal irreps, drops multiplicity 0
    Irreps regrouped() const;   ///< sorted, then simplified
    Irreps filtered(const std::vector<Irrep>& keep) const;
    Irreps without(const std::vector<Irrep>& drop) const;
    Irreps up_to_degree(int lmax) const;
    Irreps operator+(const Irreps& other) const;
    Irreps repeated(std::int64_t times) const;
    /// 0e+1o+2e+... up to lmax: parity^l for every l. parity is that of l = 1 (odd: vectors).
    static Irreps spherical_harmonics(int lmax, Parity parity = Parity::odd);

    friend bool operator==(const Irreps&, const Irreps&) = default;

 private:
    std::vector<IrrepBlock> blocks_;
};

struct Irreps::Sorted {
    Irreps irreps;
    std::vector<int> permutation, inverse;
};

std::string to_text(const Irreps& irreps);  // "128x0e+64x1o"; always writes the multiplicity; empty list: ""

}  // namespace clebsch
