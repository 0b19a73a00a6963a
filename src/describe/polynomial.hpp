#pragma once
// The description of an operation: a sum of paths, each a product of operands' segments with a coefficient tensor, evaluated for every
// row of an iteration space (usually an edge or a node) and added into output rows. Derivatives of a polynomial are polynomials.
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "algebra/irreps.hpp"
#include "describe/coefficients.hpp"

namespace clebsch {

/// Names of operands, indices, spaces and values: a letter or '_', then letters, digits, '_' and '.'; at most 255 characters.
bool is_name(std::string_view text);

/// One block of a row: `multiplicity` channels of `components` numbers. `irrep` is what it transforms as, if it says so.
struct Segment {
    std::int64_t multiplicity = 1;
    int components = 1;
    std::optional<Irrep> irrep;

    std::int64_t size() const { return multiplicity * components; }
    friend bool operator==(const Segment&, const Segment&) = default;
};

/// Order of numbers inside a segment. mul_ir: e3nn's, channel outer, component inner. ir_mul: component outer, channels contiguous.
enum class Layout : std::uint8_t { mul_ir, ir_mul };
enum class Role : std::uint8_t { input, output };

/// Which row of an operand belongs to row i of the iteration space.
/// each: row i itself; shared: the operand has one row; indexed: row index_n[...index_1[i]] through the named indices, in order.
struct Addressing {
    enum class Kind : std::uint8_t { each, shared, indexed };
    Kind kind = Kind::each;
    std::vector<std::string> via;  ///< names of indices, first applied first; only for `indexed`

    friend bool operator==(const Addressing&, const Addressing&) = default;
};
Addressing each_row();
Addressing shared_row();
Addressing row_of(std::string index);  // e.g. row_of("sender")
Addressing row_of(std::vector<std::string> indices);
Addressing row_of(std::initializer_list<const char*> indices);  // e.g. row_of({"receiver", "graph"})

/// An integer array of the call: for every row of space `from`, a row of space `to`. Value -1 means "no row": a factor read through it
/// (anywhere along a chain) is zero, one written through it is dropped, so each path that uses it contributes nothing for that row, to
/// values and to derivatives. Paths that do not use the index are not affected. Any other value outside [0, rows of `to`) is an error.
/// `sorted` promises non-decreasing values (-1 excepted), checked at launch: a receiver's edges then follow one another.
struct Index {
    std::string name, from, to;
    bool sorted = false;

    friend bool operator==(const Index&, const Index&) = default;
};

struct Operand {
    std::string name;
    std::vector<Segment> segments;
    Layout layout = Layout::mul_ir;
    Role role = Role::input;
    Addressing rows;

    std::int64_t size() const;               ///< numbers per row
    std::int64_t offset(int segment) const;  ///< first number of a segment in a row
    friend bool operator==(const Operand&, const Operand&) = default;
};

/// One factor of a path: a segment of an operand with the letters of its channels, outermost first, and the coefficient axis its component
/// runs over. channels: letters a-z; "uv" is one flat channel u * extent(v) + v; "(u<v)" is one flat channel over the pairs u < v, in the
/// order of numpy.triu_indices(n, 1), and restricts the whole path to u < v; "" needs multiplicity 1. "(u<v)w" combines them.
struct Factor {
    int operand = 0;
    int segment = 0;
    std::string channels;
    int axis = -1;  ///< axis of the path's coefficients; -1: the segment has one component

    friend bool operator==(const Factor&, const Factor&) = default;
};

/// One position of a factor's channels, outermost first: a letter, or a restricted pair (first<second).
struct ChannelGroup {
    char first = 0;
    char second = 0;  ///< 0: a single letter

    bool restricted() const { return second != 0; }
    friend bool operator==(const ChannelGroup&, const ChannelGroup&) = default;
};
std::vector<ChannelGroup> parse_channels(std::string_view channels);  ///< throws Error(parse) with the position; a letter appears once
std::string to_text(const std::vector<ChannelGroup>& channels);

/// One term: output[...] += scale * sum over the letters and components that the output lacks of coefficients * product of inputs.
/// `factors` holds the inputs (an operand may appear several times; none at all is a constant), then the output last.
/// Letters that the inputs lack are broadcast.
struct Path {
    std::vector<Factor> factors;
    Coefficients coefficients;
    double scale = 1.0;
    std::vector<std::pair<char, std::int64_t>> extents;  ///< of every letter used, sorted by letter

    const Factor& output() const { return factors.back(); }
    std::int64_t extent(char letter) const;
    friend bool operator==(const Path&, const Path&) = default;
};

/// A sum of paths over the rows of `rows`. Immutable by convention: rewrites return new values.
struct Polynomial {
    std::string rows = "row";  ///< name of the iteration space; "": the space of shared operands, which has exactly one row
    std::vector<Index> indices;
    std::vector<Operand> operands;  ///< any order; the order is the order of buffers in a call
    std::vector<Path> paths;

    int find_operand(std::string_view name) const;       ///< throws, naming the operands there are
    int find_index(std::string_view name) const;         ///< throws likewise
    std::string space_of(const Operand& operand) const;  ///< row space of an operand; "" when shared
    bool is_sorted(const Operand& operand) const;        ///< each, or reached through sorted indices only
    friend bool operator==(const Polynomial&, const Polynomial&) = default;
};

/// Throws Error(invalid_argument) that names the operand or path: unknown names, duplicate names, chains of indices that do not fit,
/// segments or axes out of range, extents that do not match multiplicities, axes used twice or not at all, an output in an input position,
/// NaN scales ...
void validate(const Polynomial& polynomial);

std::vector<Segment> segments_of(const Irreps& irreps);
/// The irreps of an operand all of whose segments have one.
std::optional<Irreps> irreps_of(const Operand& operand);

/// Number of channels of a factor: the product of its letters' extents, a pair (u<v) of extent n counting n (n - 1) / 2.
std::int64_t channel_count(const Path& path, const Factor& factor);
/// Every (u<v) of any factor of the path, once each, sorted: all of them restrict every factor.
std::vector<ChannelGroup> restrictions(const Path& path);

/// Entries of a path's coefficients reduced over identical factors (same operand, segment and channels): `index` has one component per
/// factor (0 where axis is -1); non-decreasing within identical input factors; value includes `scale`.
std::vector<CoefficientEntry> reduced_entries(const Path& path);

/// 128-bit hash of the canonical text, as 32 hexadecimal digits through to_text.
struct Hash {
    std::uint64_t high = 0, low = 0;
    friend auto operator<=>(const Hash&, const Hash&) = default;
};
Hash hash_text(std::string_view text);
std::string to_text(const Hash& hash);

}  // namespace clebsch
