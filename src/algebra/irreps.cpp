#include "algebra/irreps.hpp"

#include <algorithm>
#include <cstdlib>
#include <iterator>
#include <numeric>

#include "base/error.hpp"

namespace clebsch {
namespace {

/// More blocks than any description has; keeps block numbers within int and a mistaken `repeated` from eating the memory.
constexpr std::size_t max_blocks = std::size_t{1} << 20;

bool is_blank(char c) { return c == ' ' || (c >= '\t' && c <= '\r'); }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// The part of `text` around `position`, on one line, and a caret under that character. UTF-8 characters count as one column.
std::string pointer(std::string_view text, std::size_t position) {
    constexpr std::size_t before = 48, after = 24;
    const std::size_t first = position > before ? position - before : 0;
    const std::size_t last = std::min(text.size(), position + after);
    std::string line = first > 0 ? "..." : "", indent(line.size(), ' ');
    for (std::size_t i = first; i < last; ++i) {
        const auto byte = static_cast<unsigned char>(text[i]);
        line += byte < 0x20 || byte == 0x7f ? ' ' : text[i];
        if (i < position && (byte & 0xc0) != 0x80) indent += ' ';
    }
    if (last < text.size()) line += "...";
    return "\n    " + line + "\n    " + indent + "^";
}

/// A recursive reading of one text. Positions are byte offsets into the whole text, so that every error can point.
class Parser {
 public:
    explicit Parser(std::string_view text) : text_(text) {}

    std::vector<IrrepBlock> list() const {
        std::vector<IrrepBlock> blocks;
        if (stripped({0, text_.size()}).empty()) return blocks;
        std::int64_t dim = 0;
        for (std::size_t begin = 0; begin <= text_.size();) {
            const std::size_t end = std::min(text_.find('+', begin), text_.size());
            const std::size_t irrep_begin = after_multiplication_sign({begin, end});
            const IrrepBlock block = term({begin, end}, irrep_begin);
            if (!blocks.empty() && (block.irrep.parity == Parity::none) != (blocks[0].irrep.parity == Parity::none)) {
                error(stripped({irrep_begin, end}).begin,
                      block.irrep.parity == Parity::none
                          ? "missing parity 'e', 'o' or 'y': the irreps before it have one (only a list without any is one of SO(3))"
                          : "unexpected parity: the irreps before it have none, so this is a list of SO(3) irreps");
            }
            std::int64_t block_dim = 0;
            if (__builtin_mul_overflow(block.multiplicity, std::int64_t{block.irrep.dim()}, &block_dim) ||
                __builtin_add_overflow(dim, block_dim, &dim)) {
                error(stripped({begin, end}).begin, "the dimension of the list up to here does not fit in 64 bits");
            }
            if (blocks.size() == max_blocks) error(begin, "more than " + std::to_string(max_blocks) + " blocks");
            blocks.push_back(block);
            begin = end + 1;
        }
        return blocks;
    }

    Irrep irrep() const { return irrep({0, text_.size()}); }

 private:
    struct Range {
        std::size_t begin, end;
        bool empty() const { return begin == end; }
    };

    [[noreturn]] void error(std::size_t position, const std::string& message) const {
        throw Error(ErrorKind::parse, "irreps: " + message + pointer(text_, position));
    }

    Range stripped(Range range) const {
        while (range.begin < range.end && is_blank(text_[range.begin])) ++range.begin;
        while (range.begin < range.end && is_blank(text_[range.end - 1])) --range.end;
        return range;
    }

    std::size_t after_multiplication_sign(Range range) const {
        const std::size_t sign = text_.find('x', range.begin);
        return sign < range.end ? sign + 1 : range.begin;
    }

    IrrepBlock term(Range range, std::size_t irrep_begin) const {
        IrrepBlock block;
        if (irrep_begin != range.begin) {
            const std::size_t second = text_.find('x', irrep_begin);
            if (second < range.end) error(second, "a second 'x' in one term");
            const Range number = stripped({range.begin, irrep_begin - 1});
            if (number.empty()) error(irrep_begin - 1, "expected a multiplicity before 'x', as in 16x1o");
            const auto multiplicity = integer(number, "multiplicity");
            if (!multiplicity) error(number.begin, "the multiplicity does not fit in 64 bits");
            block.multiplicity = *multiplicity;
        }
        block.irrep = irrep({irrep_begin, range.end});
        return block;
    }

    Irrep irrep(Range range) const {
        range = stripped(range);
        if (range.empty()) error(range.end, "expected an irrep such as 1o");
        const char last = text_[range.end - 1];
        const bool letter = last == 'e' || last == 'o' || last == 'y';
        if (!letter && !is_digit(last)) {
            error(range.end - 1, "expected a parity 'e' (even), 'o' (odd) or 'y' (that of the spherical harmonics) at the end of an irrep");
        }
        const Range number = stripped({range.begin, range.end - (letter ? 1 : 0)});
        if (number.empty()) error(range.begin, std::string("expected a degree before '") + last + "', as in 1" + last);
        const auto degree = integer(number, "degree");
        if (!degree || *degree > max_degree) {
            error(number.begin, "the degree is above " + std::to_string(max_degree) + ", the largest that is handled");
        }
        Irrep result{static_cast<int>(*degree), Parity::none};
        if (letter) {
            const bool odd = last == 'o' || (last == 'y' && result.degree % 2 == 1);
            result.parity = odd ? Parity::odd : Parity::even;
        }
        return result;
    }

    /// Python's int() of a stripped range: an optional sign, digits, single underscores between digits. Nothing if it overflows.
    std::optional<std::int64_t> integer(Range range, const std::string& what) const {
        std::size_t at = range.begin;
        const bool negative = text_[at] == '-';
        if (negative) ++at;
        if (at == range.end || !is_digit(text_[at])) error(at < range.end ? at : range.begin, "expected a digit of the " + what);
        std::int64_t value = 0;
        bool overflow = false;
        for (; at < range.end; ++at) {
            if (text_[at] == '_' && at + 1 < range.end && is_digit(text_[at + 1])) ++at;
            if (!is_digit(text_[at])) error(at, "expected a digit of the " + what);
            overflow = __builtin_mul_overflow(value, std::int64_t{10}, &value) || overflow;
            overflow = __builtin_add_overflow(value, std::int64_t{text_[at] - '0'}, &value) || overflow;
        }
        if (negative && (value != 0 || overflow)) error(range.begin, "the " + what + " is negative");
        if (overflow) return std::nullopt;
        return value;
    }

    std::string_view text_;
};

void check(Irrep irrep) {
    if (irrep.degree < 0 || irrep.degree > max_degree) {
        fail("irreps: degree " + std::to_string(irrep.degree) + " is not one of 0 to " + std::to_string(max_degree));
    }
    if (irrep.parity != Parity::odd && irrep.parity != Parity::none && irrep.parity != Parity::even) {
        fail("irreps: parity " + std::to_string(static_cast<int>(irrep.parity)) + " is not one of -1, 0 (SO(3)), 1");
    }
}

bool is_so3(Irrep irrep) { return irrep.parity == Parity::none; }

}  // namespace

std::string to_text(Irrep irrep) {
    const char* letter = irrep.parity == Parity::odd ? "o" : irrep.parity == Parity::even ? "e" : "";
    return std::to_string(irrep.degree) + letter;
}

Irrep parse_irrep(std::string_view text) { return Parser(text).irrep(); }

std::vector<Irrep> product(Irrep a, Irrep b) {
    if (is_so3(a) != is_so3(b)) {
        fail("irreps: the product " + to_text(a) + " x " + to_text(b) + " mixes an irrep of O(3) with one of SO(3)");
    }
    const auto parity = static_cast<Parity>(static_cast<int>(a.parity) * static_cast<int>(b.parity));
    std::vector<Irrep> result;
    for (int degree = std::abs(a.degree - b.degree); degree <= a.degree + b.degree; ++degree) result.push_back({degree, parity});
    return result;
}

bool couples(Irrep a, Irrep b, Irrep c) {
    return is_so3(a) == is_so3(b) && static_cast<int>(a.parity) * static_cast<int>(b.parity) == static_cast<int>(c.parity) &&
           c.degree >= std::abs(a.degree - b.degree) && c.degree <= a.degree + b.degree;
}

Irreps::Irreps(std::vector<IrrepBlock> blocks) : blocks_(std::move(blocks)) {
    if (blocks_.size() > max_blocks) {
        fail("irreps: " + std::to_string(blocks_.size()) + " blocks, at most " + std::to_string(max_blocks) + " are handled");
    }
    std::int64_t dim = 0;
    for (const IrrepBlock& block : blocks_) {
        check(block.irrep);
        if (block.multiplicity < 0) {
            fail("irreps: multiplicity " + std::to_string(block.multiplicity) + " of " + to_text(block.irrep) + " is negative");
        }
        if (is_so3(block.irrep) != is_so3(blocks_[0].irrep)) {
            fail("irreps: " + to_text(blocks_[0].irrep) + " and " + to_text(block.irrep) +
                 " in one list: irreps of O(3) and of SO(3) do not mix");
        }
        std::int64_t block_dim = 0;
        if (__builtin_mul_overflow(block.multiplicity, std::int64_t{block.irrep.dim()}, &block_dim) ||
            __builtin_add_overflow(dim, block_dim, &dim)) {
            fail("irreps: the dimension of the list does not fit in 64 bits");
        }
    }
}

Irreps::Irreps(std::string_view text) : blocks_(Parser(text).list()) {}

std::int64_t Irreps::dim() const {
    std::int64_t dim = 0;
    for (const IrrepBlock& block : blocks_) dim += block.dim();
    return dim;
}

std::int64_t Irreps::num_irreps() const {
    std::int64_t sum = 0;
    for (const IrrepBlock& block : blocks_) sum += block.multiplicity;
    return sum;
}

int Irreps::lmax() const {
    int lmax = -1;
    for (const IrrepBlock& block : blocks_) {
        if (block.multiplicity > 0) lmax = std::max(lmax, block.irrep.degree);
    }
    if (lmax < 0) fail("irreps: '" + to_text(*this) + "' has no irrep, so no largest degree");
    return lmax;
}

std::int64_t Irreps::count(Irrep irrep) const {
    std::int64_t sum = 0;
    for (const IrrepBlock& block : blocks_) {
        if (block.irrep == irrep) sum += block.multiplicity;
    }
    return sum;
}

std::vector<std::pair<std::int64_t, std::int64_t>> Irreps::slices() const {
    std::vector<std::pair<std::int64_t, std::int64_t>> result;
    result.reserve(blocks_.size());
    std::int64_t begin = 0;
    for (const IrrepBlock& block : blocks_) {
        result.emplace_back(begin, begin + block.dim());
        begin += block.dim();
    }
    return result;
}

Irreps::Sorted Irreps::sorted() const {
    Sorted result;
    result.inverse.resize(blocks_.size());
    result.permutation.resize(blocks_.size());
    std::iota(result.inverse.begin(), result.inverse.end(), 0);
    std::stable_sort(result.inverse.begin(), result.inverse.end(), [&](int a, int b) { return blocks_[a].irrep < blocks_[b].irrep; });
    for (std::size_t position = 0; position < blocks_.size(); ++position) {
        result.permutation[result.inverse[position]] = static_cast<int>(position);
        result.irreps.blocks_.push_back(blocks_[result.inverse[position]]);
    }
    return result;
}

Irreps Irreps::simplified() const {
    Irreps result;
    for (const IrrepBlock& block : blocks_) {
        if (block.multiplicity == 0) continue;
        if (!result.blocks_.empty() && result.blocks_.back().irrep == block.irrep) {
            result.blocks_.back().multiplicity += block.multiplicity;
        } else {
            result.blocks_.push_back(block);
        }
    }
    return result;
}

Irreps Irreps::regrouped() const { return sorted().irreps.simplified(); }

Irreps Irreps::filtered(const std::vector<Irrep>& keep) const {
    Irreps result;
    std::copy_if(blocks_.begin(), blocks_.end(), std::back_inserter(result.blocks_),
                 [&](const IrrepBlock& block) { return std::find(keep.begin(), keep.end(), block.irrep) != keep.end(); });
    return result;
}

Irreps Irreps::without(const std::vector<Irrep>& drop) const {
    Irreps result;
    std::copy_if(blocks_.begin(), blocks_.end(), std::back_inserter(result.blocks_),
                 [&](const IrrepBlock& block) { return std::find(drop.begin(), drop.end(), block.irrep) == drop.end(); });
    return result;
}

Irreps Irreps::up_to_degree(int lmax) const {
    Irreps result;
    std::copy_if(blocks_.begin(), blocks_.end(), std::back_inserter(result.blocks_),
                 [&](const IrrepBlock& block) { return block.irrep.degree <= lmax; });
    return result;
}

Irreps Irreps::operator+(const Irreps& other) const {
    std::vector<IrrepBlock> blocks = blocks_;
    blocks.insert(blocks.end(), other.blocks_.begin(), other.blocks_.end());
    return Irreps(std::move(blocks));
}

Irreps Irreps::repeated(std::int64_t times) const {
    if (times < 0) fail("irreps: cannot repeat a list " + std::to_string(times) + " times");
    if (blocks_.empty()) return {};
    if (static_cast<std::uint64_t>(times) > max_blocks / blocks_.size()) {
        fail("irreps: " + std::to_string(times) + " copies of " + std::to_string(blocks_.size()) + " blocks are more than " +
             std::to_string(max_blocks) + " blocks");
    }
    std::vector<IrrepBlock> blocks;
    for (std::int64_t i = 0; i < times; ++i) blocks.insert(blocks.end(), blocks_.begin(), blocks_.end());
    return Irreps(std::move(blocks));
}

Irreps Irreps::spherical_harmonics(int lmax, Parity parity) {
    if (lmax < 0 || lmax > max_degree) {
        fail("irreps: spherical harmonics up to degree " + std::to_string(lmax) + ", expected 0 to " + std::to_string(max_degree));
    }
    std::vector<IrrepBlock> blocks;
    for (int degree = 0; degree <= lmax; ++degree) {
        const bool flips = parity == Parity::odd && degree % 2 == 0;
        blocks.push_back({1, {degree, flips ? Parity::even : parity}});
    }
    return Irreps(std::move(blocks));
}

std::string to_text(const Irreps& irreps) {
    std::string text;
    for (const IrrepBlock& block : irreps) {
        if (!text.empty()) text += '+';
        text += std::to_string(block.multiplicity) + 'x' + to_text(block.irrep);
    }
    return text;
}

}  // namespace clebsch
