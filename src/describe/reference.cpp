#include "describe/reference.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace clebsch {
namespace {

using Rows = std::map<std::string, std::int64_t>;
using Indices = std::map<std::string, std::vector<std::int64_t>>;

constexpr std::int64_t largest_output = std::int64_t{1} << 40;

std::string quoted(std::string_view name) { return "'" + std::string(name) + "'"; }

std::int64_t rows_of(const Rows& rows, const std::string& space, const std::string& needed_by) {
    if (space.empty()) return 1;
    const auto found = rows.find(space);
    if (found == rows.end()) fail(needed_by + ": the number of rows of space " + quoted(space) + " is missing");
    if (found->second < 0) fail("space " + quoted(space) + ": expected at least 0 rows, got " + std::to_string(found->second));
    return found->second;
}

void check_index(const Index& index, const Rows& rows, const Indices& indices) {
    const std::string where = "index " + quoted(index.name);
    const auto found = indices.find(index.name);
    if (found == indices.end()) fail(where + ": the array is missing");
    const std::vector<std::int64_t>& values = found->second;
    const std::int64_t from = rows_of(rows, index.from, where), to = rows_of(rows, index.to, where);
    if (static_cast<std::int64_t>(values.size()) != from)
        fail(where + ": expected a value for each of " + std::to_string(from) + " rows of " + quoted(index.from) + ", got " +
             std::to_string(values.size()));
    std::int64_t largest = -1;
    for (std::size_t i = 0; i < values.size(); ++i) {
        const std::int64_t value = values[i];
        if (value < -1 || value >= to)
            fail(where + ": value " + std::to_string(value) + " at position " + std::to_string(i) + " is outside the " +
                 std::to_string(to) + " rows of " + quoted(index.to) + " (-1 masks a row)");
        if (value == -1) continue;
        if (index.sorted && value < largest)
            fail(where + ": declared sorted, but value " + std::to_string(value) + " at position " + std::to_string(i) + " follows " +
                 std::to_string(largest));
        largest = std::max(largest, value);
    }
}

void check_array(const std::string& where, const ReferenceArray& array, std::int64_t rows, std::int64_t size) {
    if (size != 0 && static_cast<std::int64_t>(array.size()) / size == rows && static_cast<std::int64_t>(array.size()) % size == 0) return;
    if (size == 0 && array.empty()) return;
    fail(where + ": expected " + std::to_string(rows) + " rows of " + std::to_string(size) + " numbers, got " +
         std::to_string(array.size()) + " numbers");
}

/// The row of an operand that belongs to every row of the iteration space; -1: none.
std::vector<std::int64_t> rows_read(const Operand& operand, std::int64_t count, const Indices& indices) {
    std::vector<std::int64_t> result(static_cast<std::size_t>(count), 0);
    if (operand.rows.kind == Addressing::Kind::shared) return result;
    for (std::size_t i = 0; i < result.size(); ++i) result[i] = static_cast<std::int64_t>(i);
    for (const std::string& name : operand.rows.via) {
        const std::vector<std::int64_t>& values = indices.at(name);
        for (std::int64_t& row : result)
            if (row >= 0) row = values[static_cast<std::size_t>(row)];
    }
    return result;
}

/// Every assignment of the path's letters that its restrictions (u<v) allow, as the flat channel of each factor: [assignment][factor].
std::vector<std::int64_t> channels_of(const Path& path) {
    std::vector<std::vector<ChannelGroup>> channels;
    for (const Factor& factor : path.factors) channels.push_back(parse_channels(factor.channels));
    const std::vector<ChannelGroup> pairs = restrictions(path);

    std::int64_t letters[26] = {};
    const auto value = [&](char letter) { return letters[letter - 'a']; };
    const auto flat_channel = [&](const std::vector<ChannelGroup>& groups) {
        std::int64_t channel = 0;
        for (const ChannelGroup& group : groups) {
            const std::int64_t n = path.extent(group.first), u = value(group.first);
            if (group.restricted())  // u-th row of the triangle starts after rows of n-1, n-2, ... pairs
                channel = channel * (n * (n - 1) / 2) + u * (2 * n - u - 1) / 2 + value(group.second) - u - 1;
            else channel = channel * n + u;
        }
        return channel;
    };

    std::vector<std::int64_t> result;
    for (const auto& [letter, extent] : path.extents)
        if (extent == 0) return result;
    while (true) {
        if (std::ranges::all_of(pairs, [&](const ChannelGroup& pair) { return value(pair.first) < value(pair.second); }))
            for (const std::vector<ChannelGroup>& groups : channels) result.push_back(flat_channel(groups));
        std::size_t next = 0;  // count up
        for (; next < path.extents.size(); ++next) {
            std::int64_t& letter = letters[path.extents[next].first - 'a'];
            if (++letter < path.extents[next].second) break;
            letter = 0;
        }
        if (next == path.extents.size()) return result;
    }
}

/// Where a segment's number (channel, component) stands in a row.
struct Place {
    std::int64_t offset = 0, channel_stride = 0, component_stride = 0;

    Place(const Operand& operand, int number) : offset(operand.offset(number)) {
        const Segment& segment = operand.segments[static_cast<std::size_t>(number)];
        channel_stride = operand.layout == Layout::mul_ir ? segment.components : 1;
        component_stride = operand.layout == Layout::mul_ir ? 1 : segment.multiplicity;
    }
};

/// One polynomial on given arrays: arrays[i] belongs to operand i; outputs are of the right size and zero.
class PathSum {
 public:
    PathSum(const Polynomial& polynomial, std::int64_t count, const Indices& indices, std::vector<ReferenceArray*> arrays)
        : polynomial_(polynomial), count_(count), arrays_(std::move(arrays)) {
        for (const Operand& operand : polynomial.operands) rows_.push_back(rows_read(operand, count, indices));
    }

    void add(const Path& path) const {
        const std::size_t factors = path.factors.size();
        const std::vector<std::int64_t> channels = channels_of(path);
        Path unscaled = path;  // the scale is applied in long double
        unscaled.scale = 1;
        const std::vector<CoefficientEntry> entries = reduced_entries(unscaled);
        std::vector<std::int64_t> components;  // offset of every entry's component, [entry][factor]
        std::vector<Place> places;
        for (const Factor& factor : path.factors)
            places.emplace_back(polynomial_.operands[static_cast<std::size_t>(factor.operand)], factor.segment);
        for (const CoefficientEntry& entry : entries)
            for (std::size_t f = 0; f < factors; ++f) components.push_back(entry.index[f] * places[f].component_stride);

        std::vector<long double*> base(factors), channel(factors);
        for (std::int64_t row = 0; row < count_; ++row) {
            if (!find_rows(path, places, row, base)) continue;
            for (std::size_t c = 0; c < channels.size(); c += factors) {
                for (std::size_t f = 0; f < factors; ++f) channel[f] = base[f] + channels[c + f] * places[f].channel_stride;
                for (std::size_t e = 0; e < entries.size(); ++e) {
                    const std::int64_t* component = &components[e * factors];
                    long double product = static_cast<long double>(path.scale) * entries[e].value;
                    for (std::size_t f = 0; f + 1 < factors; ++f) product *= channel[f][component[f]];
                    channel[factors - 1][component[factors - 1]] += product;
                }
            }
        }
    }

 private:
    const Polynomial& polynomial_;
    std::int64_t count_;
    std::vector<ReferenceArray*> arrays_;
    std::vector<std::vector<std::int64_t>> rows_;  // of every operand

    /// The segments the factors refer to for this row; false when one of them is masked.
    bool find_rows(const Path& path, const std::vector<Place>& places, std::int64_t row, std::vector<long double*>& base) const {
        for (std::size_t f = 0; f < path.factors.size(); ++f) {
            const auto operand = static_cast<std::size_t>(path.factors[f].operand);
            const std::int64_t found = rows_[operand][static_cast<std::size_t>(row)];
            if (found < 0) return false;
            base[f] = arrays_[operand]->data() + found * polynomial_.operands[operand].size() + places[f].offset;
        }
        return true;
    }
};

/// Fills the outputs among `arrays`.
void evaluate_on(const Polynomial& polynomial, const Rows& rows, const Indices& indices, const std::vector<ReferenceArray*>& arrays) {
    for (const Index& index : polynomial.indices) check_index(index, rows, indices);
    const std::int64_t count = rows_of(rows, polynomial.rows, "polynomial");
    for (std::size_t i = 0; i < polynomial.operands.size(); ++i) {
        const Operand& operand = polynomial.operands[i];
        const std::string where = "operand " + quoted(operand.name);
        const std::int64_t operand_rows = rows_of(rows, polynomial.space_of(operand), where);
        if (operand.role == Role::input) {
            check_array(where, *arrays[i], operand_rows, operand.size());
            continue;
        }
        std::int64_t numbers = 0;
        if (__builtin_mul_overflow(operand_rows, operand.size(), &numbers) || numbers > largest_output)
            fail(where + ": " + std::to_string(operand_rows) + " rows of " + std::to_string(operand.size()) + " numbers are too many");
        arrays[i]->assign(static_cast<std::size_t>(numbers), 0.0L);
    }
    const PathSum sum(polynomial, count, indices, arrays);
    for (const Path& path : polynomial.paths) sum.add(path);
}

}  // namespace

std::map<std::string, ReferenceArray> evaluate(const Polynomial& polynomial, const ReferenceInputs& inputs) {
    validate(polynomial);
    std::vector<ReferenceArray> owned(polynomial.operands.size());
    std::vector<ReferenceArray*> arrays;
    for (std::size_t i = 0; i < polynomial.operands.size(); ++i) {
        const Operand& operand = polynomial.operands[i];
        if (operand.role == Role::input) {
            const auto found = inputs.arrays.find(operand.name);
            if (found == inputs.arrays.end()) fail("operand " + quoted(operand.name) + ": the array is missing");
            owned[i] = found->second;
        }
        arrays.push_back(&owned[i]);
    }
    evaluate_on(polynomial, inputs.rows, inputs.indices, arrays);
    std::map<std::string, ReferenceArray> outputs;
    for (std::size_t i = 0; i < owned.size(); ++i)
        if (polynomial.operands[i].role == Role::output) outputs[polynomial.operands[i].name] = std::move(owned[i]);
    return outputs;
}

std::map<std::string, ReferenceArray> evaluate(const Program& program, const ReferenceInputs& inputs) {
    validate(program);
    for (const Index& index : program.indices) check_index(index, inputs.rows, inputs.indices);
    std::vector<ReferenceArray> values(program.values.size());
    for (const int input : program.inputs) {
        const Value& value = program.values[static_cast<std::size_t>(input)];
        const auto found = inputs.arrays.find(value.name);
        if (found == inputs.arrays.end()) fail("input " + quoted(value.name) + ": the array is missing");
        const std::string where = "input " + quoted(value.name);
        check_array(where, found->second, rows_of(inputs.rows, value.space, where), value.size());
        values[static_cast<std::size_t>(input)] = found->second;
    }
    for (const Node& node : program.nodes) {
        if (const auto* function = std::get_if<FunctionNode>(&node)) {
            ReferenceArray& output = values[static_cast<std::size_t>(function->output)];
            output = values[static_cast<std::size_t>(function->input)];
            for (long double& number : output) number = evaluate(function->function, number);
        } else {
            const auto& [polynomial, arguments] = std::get<PolynomialNode>(node);
            std::vector<ReferenceArray*> arrays;
            arrays.reserve(arguments.size());
            for (const int argument : arguments) arrays.push_back(&values[static_cast<std::size_t>(argument)]);
            evaluate_on(polynomial, inputs.rows, inputs.indices, arrays);
        }
    }
    std::map<std::string, ReferenceArray> outputs;
    for (const int output : program.outputs)
        outputs[program.values[static_cast<std::size_t>(output)].name] = values[static_cast<std::size_t>(output)];
    return outputs;
}

}  // namespace clebsch
