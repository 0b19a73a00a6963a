#include "describe/operations/custom.hpp"

#include "base/error.hpp"
#include "describe/operations/text_fields.hpp"

namespace clebsch {

std::vector<Segment> parse_segments(std::string_view text, const std::string& what) {
    std::vector<Segment> segments;
    for (const std::string& field : split_fields(text, '+')) {
        const auto open = field.find("x(");
        if (open == std::string::npos || field.back() != ')') {
            for (const Segment& segment : segments_of(Irreps(std::string_view(field)))) segments.push_back(segment);
            continue;
        }
        std::string where = what;
        where.append(", segment '").append(field).append("'");
        const std::string_view inside = std::string_view(field).substr(open + 2, field.size() - open - 3);
        segments.push_back({parse_integer<std::int64_t>(trimmed(std::string_view(field).substr(0, open)), where),
                            parse_integer<int>(trimmed(inside), where),
                            {}});
        if (segments.back().multiplicity < 0 || segments.back().components < 1)
            fail(where + ": expected a multiplicity of at least 0 and at least 1 component");
    }
    return segments;
}

std::vector<CoefficientEntry> parse_entries(std::string_view text, const std::string& what) {
    std::vector<CoefficientEntry> entries;
    for (const std::string& field : split_fields(text, ' ')) {
        if (field.empty()) continue;
        const auto colon = field.find(':');
        std::string where = what;
        where.append(", entry '").append(field).append("'");
        if (colon == std::string::npos) fail(where + ": expected indices and a value, such as 0,1,2:0.5");
        CoefficientEntry entry;
        for (const std::string& index : split_fields(std::string_view(field).substr(0, colon), ','))
            entry.index.push_back(parse_integer<int>(index, where));
        entry.value = parse_number(std::string_view(field).substr(colon + 1), where);
        entries.push_back(std::move(entry));
    }
    return entries;
}

ContractionBases parse_bases(std::string_view text) {
    ContractionBases bases;
    for (const std::string& part : split_fields(text, ';')) {
        if (part.empty()) continue;
        const auto colon = part.find(':');
        const std::string where = "basis '" + part.substr(0, std::min<std::size_t>(colon, 40)) + "'";
        const std::vector<std::string> numbers = split_fields(std::string_view(part).substr(0, colon), ',');
        if (colon == std::string::npos || numbers.size() != 3)
            fail(where + ": expected 'output segment, correlation, parameters:' before the entries");
        const std::pair key(parse_integer<int>(numbers[0], where), parse_integer<int>(numbers[1], where));
        ContractionBasis basis{parse_integer<int>(numbers[2], where), parse_entries(std::string_view(part).substr(colon + 1), where)};
        if (!bases.emplace(key, std::move(basis)).second) fail(where + ": this output segment and correlation have a basis already");
    }
    return bases;
}

}  // namespace clebsch
