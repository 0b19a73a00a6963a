#include "describe/polynomial.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace clebsch {
namespace {

bool is_letter(char c) { return c >= 'a' && c <= 'z'; }

[[noreturn]] void channels_error(std::string_view channels, std::size_t position, const std::string& expected) {
    throw Error(ErrorKind::parse,
                "channels '" + std::string(channels) + "': expected " + expected + " at character " + std::to_string(position + 1) +
                    (position < channels.size() ? ", got '" + std::string(1, channels[position]) + "'" : ", got the end"));
}

template <class T>
std::string names_of(const std::vector<T>& items) {
    if (items.empty()) return "there are none";
    std::string text = "there are ";
    for (std::size_t i = 0; i < items.size(); ++i) text += (i ? ", '" : "'") + items[i].name + "'";
    return text;
}

template <class T>
int find_named(const std::vector<T>& items, std::string_view name, const char* what) {
    for (std::size_t i = 0; i < items.size(); ++i)
        if (items[i].name == name) return static_cast<int>(i);
    fail(std::string(what) + " '" + std::string(name) + "' does not exist: " + names_of(items));
}

}  // namespace

bool is_name(std::string_view text) {
    auto letter = [](char c) { return is_letter(c) || (c >= 'A' && c <= 'Z') || c == '_'; };
    if (text.empty() || text.size() > 255 || !letter(text.front())) return false;
    return std::ranges::all_of(text, [&](char c) { return letter(c) || (c >= '0' && c <= '9') || c == '.'; });
}

Addressing each_row() { return {}; }
Addressing shared_row() { return {Addressing::Kind::shared, {}}; }
Addressing row_of(std::string index) {
    Addressing addressing{Addressing::Kind::indexed, {}};
    addressing.via.push_back(std::move(index));
    return addressing;
}
Addressing row_of(std::vector<std::string> indices) { return {Addressing::Kind::indexed, std::move(indices)}; }
Addressing row_of(std::initializer_list<const char*> indices) { return row_of(std::vector<std::string>(indices.begin(), indices.end())); }

std::int64_t Operand::size() const { return offset(static_cast<int>(segments.size())); }

std::int64_t Operand::offset(int segment) const {
    std::int64_t sum = 0;
    for (int i = 0; i < segment; ++i) sum += segments[static_cast<std::size_t>(i)].size();
    return sum;
}

std::vector<ChannelGroup> parse_channels(std::string_view channels) {
    std::vector<ChannelGroup> groups;
    bool used[26] = {};
    auto letter_at = [&](std::size_t position) {
        if (position >= channels.size() || !is_letter(channels[position])) channels_error(channels, position, "a letter a-z");
        bool& seen = used[channels[position] - 'a'];
        if (seen) channels_error(channels, position, "a letter not used before in these channels");
        seen = true;
        return channels[position];
    };
    auto symbol_at = [&](std::size_t position, char symbol) {
        if (position >= channels.size() || channels[position] != symbol)
            channels_error(channels, position, std::string("'") + symbol + "'");
    };
    for (std::size_t i = 0; i < channels.size();) {
        if (channels[i] == '(') {
            const char first = letter_at(i + 1);
            symbol_at(i + 2, '<');
            const char second = letter_at(i + 3);
            symbol_at(i + 4, ')');
            groups.push_back({first, second});
            i += 5;
        } else {
            groups.push_back({letter_at(i), 0});
            i += 1;
        }
    }
    return groups;
}

std::string to_text(const std::vector<ChannelGroup>& channels) {
    std::string text;
    for (const ChannelGroup& group : channels) {
        if (group.restricted()) text += {'(', group.first, '<', group.second, ')'};
        else text += group.first;
    }
    return text;
}

std::int64_t Path::extent(char letter) const {
    for (const auto& [name, extent] : extents)
        if (name == letter) return extent;
    fail(std::string("path: letter '") + letter + "' has no extent");
}

std::int64_t channel_count(const Path& path, const Factor& factor) {
    std::int64_t count = 1;
    for (const ChannelGroup& group : parse_channels(factor.channels)) {
        const std::int64_t n = path.extent(group.first);
        count *= group.restricted() ? n * (n - 1) / 2 : n;
    }
    return count;
}

std::vector<ChannelGroup> restrictions(const Path& path) {
    std::vector<ChannelGroup> pairs;
    for (const Factor& factor : path.factors)
        for (const ChannelGroup& group : parse_channels(factor.channels))
            if (group.restricted() && std::ranges::find(pairs, group) == pairs.end()) pairs.push_back(group);
    std::ranges::sort(pairs, {}, [](const ChannelGroup& group) { return std::pair(group.first, group.second); });
    return pairs;
}

int Polynomial::find_operand(std::string_view name) const { return find_named(operands, name, "operand"); }
int Polynomial::find_index(std::string_view name) const { return find_named(indices, name, "index"); }

std::string Polynomial::space_of(const Operand& operand) const {
    switch (operand.rows.kind) {
        case Addressing::Kind::each:
            return rows;
        case Addressing::Kind::shared:
            return "";
        case Addressing::Kind::indexed:
            break;
    }
    if (operand.rows.via.empty()) fail("operand '" + operand.name + "': indexed without the name of an index");
    return indices[static_cast<std::size_t>(find_index(operand.rows.via.back()))].to;
}

bool Polynomial::is_sorted(const Operand& operand) const {
    if (operand.rows.kind != Addressing::Kind::indexed) return true;
    return std::ranges::all_of(operand.rows.via,
                               [&](const std::string& name) { return indices[static_cast<std::size_t>(find_index(name))].sorted; });
}

std::vector<Segment> segments_of(const Irreps& irreps) {
    std::vector<Segment> segments;
    segments.reserve(irreps.size());
    for (const IrrepBlock& block : irreps) segments.push_back({block.multiplicity, block.irrep.dim(), block.irrep});
    return segments;
}

std::optional<Irreps> irreps_of(const Operand& operand) {
    std::vector<IrrepBlock> blocks;
    for (const Segment& segment : operand.segments) {
        if (!segment.irrep) return std::nullopt;
        blocks.push_back({segment.multiplicity, *segment.irrep});
    }
    return Irreps(std::move(blocks));
}

std::vector<CoefficientEntry> reduced_entries(const Path& path) {
    // Label every coefficient axis with the first input factor that is identical to the axis's own.
    const std::size_t inputs = path.factors.size() - 1;
    std::vector<std::vector<std::size_t>> classes;  // of identical input factors, each in increasing order
    std::vector<int> label(path.coefficients.rank(), -1);
    for (std::size_t f = 0; f < inputs; ++f) {
        const Factor& factor = path.factors[f];
        auto same = std::ranges::find_if(classes, [&](const std::vector<std::size_t>& members) {
            const Factor& other = path.factors[members.front()];
            return other.operand == factor.operand && other.segment == factor.segment && other.channels == factor.channels;
        });
        if (same == classes.end()) same = classes.insert(same, std::vector<std::size_t>{});
        same->push_back(f);
    }
    for (std::size_t c = 0; c < classes.size(); ++c)
        for (std::size_t f : classes[c])
            if (path.factors[f].axis >= 0 && classes[c].size() > 1)
                label[static_cast<std::size_t>(path.factors[f].axis)] = static_cast<int>(c);

    const bool symmetric = std::ranges::any_of(label, [](int group) { return group >= 0; });
    const std::vector<CoefficientEntry> grouped = symmetric ? path.coefficients.grouped(label) : std::vector<CoefficientEntry>();
    std::vector<CoefficientEntry> reduced;
    for (const CoefficientEntry& entry : symmetric ? grouped : path.coefficients.entries()) {
        CoefficientEntry result{std::vector<int>(path.factors.size(), 0), entry.value * path.scale};
        for (std::size_t f = 0; f < path.factors.size(); ++f)
            if (path.factors[f].axis >= 0) result.index[f] = entry.index[static_cast<std::size_t>(path.factors[f].axis)];
        // `grouped` orders indices along axes; identical factors may use their axes in another order.
        for (const std::vector<std::size_t>& members : classes) {
            if (members.size() < 2) continue;
            std::vector<int> components;
            components.reserve(members.size());
            for (std::size_t f : members) components.push_back(result.index[f]);
            std::ranges::sort(components);
            for (std::size_t i = 0; i < members.size(); ++i) result.index[members[i]] = components[i];
        }
        reduced.push_back(std::move(result));
    }
    std::ranges::sort(reduced, {}, &CoefficientEntry::index);
    return reduced;
}

Hash hash_text(std::string_view text) {
    // FNV-1a with the published 128-bit offset basis and prime (2^88 + 2^8 + 0x3b).
    using Wide = unsigned __int128;
    const Wide prime = (Wide(1) << 88) | 0x13b;
    Wide hash = (Wide(0x6c62272e07bb0142) << 64) | 0x62b821756295c58d;
    for (const char c : text) {
        hash ^= static_cast<unsigned char>(c);
        hash *= prime;
    }
    return {static_cast<std::uint64_t>(hash >> 64), static_cast<std::uint64_t>(hash)};
}

std::string to_text(const Hash& hash) {
    std::string text(32, '0');
    for (int i = 0; i < 32; ++i) {
        const std::uint64_t word = i < 16 ? hash.high : hash.low;
        text[static_cast<std::size_t>(i)] = "0123456789abcdef"[(word >> (60 - 4 * (i % 16))) & 15];
    }
    return text;
}

}  // namespace clebsch
