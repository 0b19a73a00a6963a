#include "tool/report.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <stdexcept>

namespace clebsch::tool {
namespace {

using Json = nlohmann::ordered_json;

std::string formatted(const char* format, int digits, double value) {
    char text[64];
    std::snprintf(text, sizeof text, format, digits, value);
    return text;
}

/// Columns on a terminal: bytes that do not continue a UTF-8 character.
std::size_t width_of(const std::string& text) {
    return static_cast<std::size_t>(std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0U) != 0x80U; }));
}

std::string aligned(const std::string& text, std::size_t width, bool right) {
    const std::string space(width - std::min(width, width_of(text)), ' ');
    return right ? space + text : text + space;
}

Json to_json(const Cell& cell) {
    return std::visit(
        [](const auto& value) -> Json {
            if constexpr (std::is_same_v<std::decay_t<decltype(value)>, std::monostate>) return nullptr;
            else return value;
        },
        cell.value);
}

void trim_right(std::string& line) {
    while (!line.empty() && line.back() == ' ') line.pop_back();
}

}  // namespace

Cell number(double value, int digits) {
    if (!std::isfinite(value)) return {std::monostate{}, "-"};
    const double size = std::abs(value);
    if (size == 0) return {value, "0"};
    if (size < 1e-3 || size >= 1e7) return {value, formatted("%.*e", std::max(0, digits - 1), value)};
    const int before = static_cast<int>(std::floor(std::log10(size))) + 1;
    return {value, formatted("%.*f", std::max(0, digits - before), value)};
}

Cell decimal(double value, int decimals) {
    if (!std::isfinite(value)) return {std::monostate{}, "-"};
    return {value, formatted("%.*f", decimals, value)};
}

Cell plain(double value) {
    char text[64];
    std::snprintf(text, sizeof text, "%g", value);
    return {value, text};
}

Cell percent(double fraction) {
    if (!std::isfinite(fraction)) return {std::monostate{}, "-"};
    return {fraction, formatted("%.*f", 0, fraction * 100) + " %"};
}

Cell scientific(double value) {
    if (!std::isfinite(value)) return {std::monostate{}, "not finite"};
    return {value, value == 0 ? "0" : formatted("%.*e", 1, value)};
}

Cell bytes(double count) {
    static constexpr const char* units[] = {"B", "kB", "MB", "GB", "TB"};
    int unit = 0;
    double shown = count;
    for (; unit < 4 && shown >= 1000; ++unit) shown /= 1000;
    return {count, number(shown, 3).text + " " + units[unit]};
}

std::string joined(const std::vector<std::string>& words, const std::string& separator) {
    std::string text;
    for (std::size_t i = 0; i < words.size(); ++i) text += (i > 0 ? separator : "") + words[i];
    return text;
}

void Table::row(std::vector<Cell> cells) {
    if (cells.size() != columns_.size()) throw std::logic_error("table '" + key_ + "': a row does not fit its columns");
    rows_.push_back(std::move(cells));
}

void Report::fact(std::string key, std::string label, Cell cell) {
    items_.emplace_back(Fact{std::move(key), std::move(label), std::move(cell)});
}
void Report::note(std::string text) { items_.emplace_back(Text{"", std::move(text)}); }
void Report::text(std::string key, std::string content) { items_.emplace_back(Text{std::move(key), std::move(content)}); }

Table& Report::table(std::string key, std::string title, std::vector<Column> columns) {
    return std::get<Table>(items_.emplace_back(Table(std::move(key), std::move(title), std::move(columns))));
}

std::string Report::for_people() const {
    std::string out;
    for (std::size_t i = 0; i < items_.size(); ++i) {
        if (const auto* fact = std::get_if<Fact>(&items_[i])) {
            std::size_t width = 0;  // of the labels of this run of facts
            std::size_t first = i;
            while (first > 0 && std::holds_alternative<Fact>(items_[first - 1])) --first;
            for (std::size_t k = first; k < items_.size() && std::holds_alternative<Fact>(items_[k]); ++k)
                width = std::max(width, width_of(std::get<Fact>(items_[k]).label));
            out += aligned(fact->label, width, false) + "  " + fact->cell.text + "\n";
        } else if (const auto* text = std::get_if<Text>(&items_[i])) {
            out += text->content;
            if (!text->content.empty() && text->content.back() != '\n') out += "\n";
        } else {
            const Table& table = std::get<Table>(items_[i]);
            if (table.empty()) continue;
            if (!out.empty()) out += "\n";
            if (!table.title_.empty()) out += table.title_ + "\n";
            std::vector<std::size_t> widths;
            for (std::size_t c = 0; c < table.columns_.size(); ++c) {
                std::size_t width = width_of(table.columns_[c].title);
                for (const auto& row : table.rows_) width = std::max(width, width_of(row[c].text));
                widths.push_back(width);
            }
            const auto line = [&](const auto& text_of) {
                std::string joined_line = "  ";
                for (std::size_t c = 0; c < widths.size(); ++c)
                    joined_line += aligned(text_of(c), widths[c], table.columns_[c].right) + "  ";
                trim_right(joined_line);
                out += joined_line + "\n";
            };
            line([&](std::size_t c) { return table.columns_[c].title; });
            for (const auto& row : table.rows_) line([&](std::size_t c) { return row[c].text; });
            if (i + 1 < items_.size() && !std::holds_alternative<Table>(items_[i + 1])) out += "\n";
        }
    }
    return out;
}

std::string Report::as_json() const {
    Json root = Json::object();
    for (const auto& item : items_) {
        if (const auto* fact = std::get_if<Fact>(&item)) {
            root[fact->key] = to_json(fact->cell);
        } else if (const auto* text = std::get_if<Text>(&item)) {
            if (!text->key.empty()) root[text->key] = text->content;
        } else {
            const Table& table = std::get<Table>(item);
            Json rows = Json::array();
            for (const auto& row : table.rows_) {
                Json object = Json::object();
                for (std::size_t c = 0; c < row.size(); ++c) object[table.columns_[c].key] = to_json(row[c]);
                rows.push_back(std::move(object));
            }
            root[table.key_] = std::move(rows);
        }
    }
    return root.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

void Report::print(bool json) const {
    const std::string out = json ? as_json() : for_people();
    std::fwrite(out.data(), 1, out.size(), stdout);
    std::fflush(stdout);
}

}  // namespace clebsch::tool
