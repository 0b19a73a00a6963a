#include "describe/derivative_support.hpp"

#include <algorithm>
#include <cmath>

namespace clebsch::derivative_testing {
namespace {

std::vector<Array> arrays_of(const Polynomial& polynomial, Role role) {
    std::vector<Array> arrays;
    for (const Operand& operand : polynomial.operands)
        if (operand.role == role) arrays.push_back({operand.name, polynomial.space_of(operand), operand.size()});
    return arrays;
}

std::vector<Array> arrays_of(const Program& program, const std::vector<int>& positions) {
    std::vector<Array> arrays;
    for (const int position : positions) {
        const Value& value = program.values[static_cast<std::size_t>(position)];
        arrays.push_back({value.name, value.space, value.size()});
    }
    return arrays;
}

using Arrays = std::map<std::string, ReferenceArray>;

long double dot(const ReferenceArray& a, const ReferenceArray& b) {
    long double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
}

long double norm(const ReferenceArray& a) { return std::sqrt(dot(a, a)); }

template <class Description>
Arrays moved(const Description& description, const ReferenceInputs& call, const Arrays& direction, long double step) {
    ReferenceInputs there = call;
    for (const auto& [name, array] : direction)
        for (std::size_t i = 0; i < array.size(); ++i) there.arrays[name][i] += step * array[i];
    return evaluate(description, there);
}

/// Inputs whose names end in a suffix take their arrays from `extra`, where the derivative reads them.
template <class Description>
Arrays with(const Description& derivative, ReferenceInputs call, const Arrays& extra) {
    Arrays known;
    for (const Array& array : inputs_of(derivative)) {
        const auto found = extra.find(array.name);
        known[array.name] = found != extra.end() ? found->second : call.arrays.at(array.name);
    }
    call.arrays = known;
    return evaluate(derivative, call);
}

template <class Description>
Deviations check_any(const Description& description, const Names& inputs, const ReferenceInputs& call, Source& source) {
    const Description forward = jvp(description, inputs), backward = vjp(description, inputs);
    validate(forward);
    validate(backward);
    Arrays direction, tangents, cotangents;
    // A tangent or cotangent is called after its input or output, with a number behind it if that name is taken by another input.
    auto name_in = [&](const std::string& base, const std::string& suffix) {
        const auto all = inputs_of(description);
        auto taken = [&](const std::string& name) {
            return std::ranges::any_of(all, [&](const Array& array) { return array.name == name; });
        };
        std::string name = base + suffix;
        for (int i = 2; taken(name); ++i) name = base + suffix + "_" + std::to_string(i);
        return name;
    };
    for (const std::string& name : inputs) {
        direction[name] = source.normals(static_cast<std::int64_t>(call.arrays.at(name).size()));
        tangents[name_in(name, "_tangent")] = direction[name];
    }
    const Arrays here = evaluate(description, call);
    Arrays covectors;
    for (const auto& [name, array] : here) {
        covectors[name] = source.normals(static_cast<std::int64_t>(array.size()));
        cotangents[name_in(name, "_cotangent")] = covectors[name];
    }
    const Arrays derivative = with(forward, call, tangents), gradient = with(backward, call, cotangents);

    Deviations deviations;
    long double forward_sum = 0, backward_sum = 0, size = 0;
    const long double h = 1e-3L;
    const Arrays p1 = moved(description, call, direction, h), m1 = moved(description, call, direction, -h),
                 p2 = moved(description, call, direction, 2 * h), m2 = moved(description, call, direction, -2 * h),
                 p3 = moved(description, call, direction, 3 * h), m3 = moved(description, call, direction, -3 * h);
    // The k-th array of the derivative's outputs belongs to the k-th output of the description: names may have grown.
    const std::vector<Array> outputs = outputs_of(description), results = outputs_of(forward), gradients = outputs_of(backward);
    for (std::size_t k = 0; k < outputs.size(); ++k) {
        const std::string& name = outputs[k].name;
        const ReferenceArray& exact = derivative.at(results[k].name);
        ReferenceArray error = exact;
        for (std::size_t i = 0; i < exact.size(); ++i) {
            const long double difference =
                45 * (p1.at(name)[i] - m1.at(name)[i]) - 9 * (p2.at(name)[i] - m2.at(name)[i]) + (p3.at(name)[i] - m3.at(name)[i]);
            error[i] -= difference / (60 * h);
        }
        deviations.finite_differences = std::max(deviations.finite_differences, norm(error) / (1 + norm(exact) + norm(here.at(name))));
        forward_sum += dot(covectors.at(name), exact);
        size += norm(covectors.at(name)) * norm(exact);
    }
    for (std::size_t k = 0; k < inputs.size(); ++k) {
        const ReferenceArray& exact = gradient.at(gradients[k].name);
        backward_sum += dot(exact, direction.at(inputs[k]));
        size += norm(exact) * norm(direction.at(inputs[k]));
    }
    deviations.duality = std::fabs(forward_sum - backward_sum) / (1 + size);
    return deviations;
}

const std::vector<Index> graph_indices = {{"sender", "edge", "node", false},
                                          {"receiver", "edge", "node", true},
                                          {"reverse", "edge", "edge", false},
                                          {"graph", "node", "graph", true}};

/// Segments whose multiplicities meet in many ways: 3 = pairs of 3, 6 = 2 x 3.
std::vector<Segment> random_segments(Source& source) {
    static constexpr int multiplicities[] = {1, 1, 2, 3, 3, 6};
    std::vector<Segment> segments(static_cast<std::size_t>(1 + source.below(3)));
    for (Segment& segment : segments) segment = {multiplicities[source.below(6)], 1 + source.below(3), {}};
    return segments;
}

Addressing random_addressing(const std::string& rows, Source& source) {
    if (rows.empty()) return shared_row();
    if (source.below(6) == 0) return shared_row();
    if (source.below(2) == 0) return each_row();
    if (rows == "node") return row_of("graph");
    switch (source.below(5)) {
        case 0:
            return row_of("sender");
        case 1:
            return row_of("receiver");
        case 2:
            return row_of("reverse");
        case 3:
            return row_of(std::vector<std::string>{"reverse", "sender"});
        default:
            return row_of(std::vector<std::string>{"receiver", "graph"});
    }
}

/// A way to read `multiplicity` channels; letters met before are preferred, so that factors share them.
std::string random_channels(std::int64_t multiplicity, Path& path, Source& source) {
    auto letter = [&](std::int64_t extent, const std::string& without) {
        if (source.below(3) > 0)
            for (const auto& [name, known] : path.extents)
                if (known == extent && without.find(name) == std::string::npos) return name;
        const char added = static_cast<char>('a' + path.extents.size());
        path.extents.emplace_back(added, extent);
        return added;
    };
    if (multiplicity == 1) return source.below(3) > 0 ? "" : std::string(1, letter(1, ""));
    if (multiplicity == 3 && source.below(4) == 0) {
        const char first = letter(3, ""), second = letter(3, std::string(1, first));
        return {'(', std::min(first, second), '<', std::max(first, second), ')'};
    }
    if (multiplicity == 6 && source.below(2) == 0) {
        const char first = letter(2, "");
        return {first, letter(3, std::string(1, first))};
    }
    return std::string(1, letter(multiplicity, ""));
}

Coefficients random_coefficients(const std::vector<int>& shape, Source& source) {
    if (shape.empty() && source.below(2) == 0) return {};
    if (shape.size() == 2 && shape[0] == shape[1] && source.below(2) == 0) return Coefficients::identity(shape[0]);
    if (shape == std::vector<int>{3, 3, 3} && source.below(2) == 0)
        return Coefficients::cg({1, Parity::odd}, {1, Parity::odd}, {1, Parity::even});
    if (shape == std::vector<int>{3, 3, 1} && source.below(2) == 0)
        return Coefficients::cg({1, Parity::odd}, {1, Parity::odd}, {0, Parity::even});
    std::vector<CoefficientEntry> entries;
    for (int n = 0; n < 4; ++n) {
        std::vector<int> index;
        for (const int extent : shape) index.push_back(source.below(extent));
        entries.push_back({std::move(index), source.normal()});
    }
    return Coefficients::literal(shape, std::move(entries));
}

Path random_path(const Polynomial& polynomial, const std::vector<int>& inputs, const std::vector<int>& outputs, Source& source) {
    Path path;
    path.scale = source.normal();
    std::vector<int> shape;
    const int degree = source.below(5);
    for (int f = 0; f <= degree; ++f) {
        const std::vector<int>& candidates = f < degree ? inputs : outputs;
        Factor factor;
        factor.operand = candidates[static_cast<std::size_t>(source.below(static_cast<int>(candidates.size())))];
        if (f > 0 && f < degree && source.below(2) == 0) {  // a power
            factor = path.factors.back();
        } else {
            const auto& segments = polynomial.operands[static_cast<std::size_t>(factor.operand)].segments;
            factor.segment = source.below(static_cast<int>(segments.size()));
            factor.channels = random_channels(segments[static_cast<std::size_t>(factor.segment)].multiplicity, path, source);
        }
        const int components =
            polynomial.operands[static_cast<std::size_t>(factor.operand)].segments[static_cast<std::size_t>(factor.segment)].components;
        factor.axis = -1;
        if (components > 1 || source.below(3) == 0) {
            factor.axis = static_cast<int>(shape.size());
            shape.push_back(components);
        }
        path.factors.push_back(std::move(factor));
    }
    path.coefficients = random_coefficients(shape, source);
    return path;
}

void add_random_paths(Polynomial& polynomial, int count, Source& source) {
    std::vector<int> inputs, outputs;
    for (std::size_t i = 0; i < polynomial.operands.size(); ++i)
        (polynomial.operands[i].role == Role::input ? inputs : outputs).push_back(static_cast<int>(i));
    for (int p = 0; p < count; ++p) polynomial.paths.push_back(random_path(polynomial, inputs, outputs, source));
}

const char* random_space(Source& source) {
    static constexpr const char* spaces[] = {"edge", "edge", "edge", "node", "node", ""};
    return spaces[source.below(6)];
}

Layout random_layout(Source& source) { return source.below(2) == 0 ? Layout::mul_ir : Layout::ir_mul; }

std::vector<Index> indices_from(const std::string& rows) {
    std::vector<Index> indices;
    for (const Index& index : graph_indices)
        if (rows == "edge" || (rows == "node" && index.name == "graph")) indices.push_back(index);
    return indices;
}

}  // namespace

std::vector<Array> inputs_of(const Polynomial& polynomial) { return arrays_of(polynomial, Role::input); }
std::vector<Array> outputs_of(const Polynomial& polynomial) { return arrays_of(polynomial, Role::output); }
std::vector<Array> inputs_of(const Program& program) { return arrays_of(program, program.inputs); }
std::vector<Array> outputs_of(const Program& program) { return arrays_of(program, program.outputs); }

ReferenceInputs random_graph(Source& source, bool with_masks) {
    ReferenceInputs call;
    call.rows = {{"edge", source.below(8)}, {"node", 1 + source.below(4)}, {"graph", 1 + source.below(2)}};
    for (const Index& index : graph_indices) {
        std::vector<std::int64_t>& values = call.indices[index.name];
        for (std::int64_t i = 0; i < call.rows.at(index.from); ++i)
            values.push_back(source.below(static_cast<int>(call.rows.at(index.to))));
        if (index.sorted) std::ranges::sort(values);
        for (std::int64_t& value : values)
            if (with_masks && source.below(6) == 0) value = -1;
    }
    return call;
}

Polynomial random_polynomial(Source& source) {
    Polynomial polynomial;
    polynomial.rows = random_space(source);
    polynomial.indices = indices_from(polynomial.rows);
    const int inputs = 1 + source.below(4), outputs = 1 + source.below(2);
    for (int i = 0; i < inputs + outputs; ++i) {
        const bool input = i < inputs;
        polynomial.operands.push_back({input ? "x" + std::to_string(i) : "y" + std::to_string(i - inputs), random_segments(source),
                                       random_layout(source), input ? Role::input : Role::output,
                                       random_addressing(polynomial.rows, source)});
    }
    add_random_paths(polynomial, 1 + source.below(5), source);
    return polynomial;
}

Program random_program(Source& source) {
    static constexpr FunctionKind smooth[] = {FunctionKind::sin,  FunctionKind::cos, FunctionKind::tanh,     FunctionKind::sigmoid,
                                              FunctionKind::silu, FunctionKind::erf, FunctionKind::softplus, FunctionKind::sinc};
    Program program;
    program.indices = graph_indices;
    for (const char* space : {"edge", "node", "graph", ""}) {
        program.inputs.push_back(static_cast<int>(program.values.size()));
        program.values.push_back({std::string("x_") + (*space ? space : "shared"), space, random_segments(source), random_layout(source)});
    }
    const int nodes = 2 + source.below(5);
    for (int n = 0; n < nodes; ++n) {
        const int known = static_cast<int>(program.values.size());
        if (n == 0 || source.below(3) == 0) {
            const int input = source.below(known);
            Value output = program.values[static_cast<std::size_t>(input)];
            output.name = "f" + std::to_string(n);
            const FunctionKind kind = smooth[source.below(8)];
            program.nodes.push_back(
                FunctionNode{{kind, kind == FunctionKind::sinc ? static_cast<double>(source.below(3)) : 0}, input, known});
            program.values.push_back(std::move(output));
            continue;
        }
        PolynomialNode node;
        Polynomial& polynomial = node.polynomial;
        polynomial.rows = random_space(source);
        polynomial.indices = indices_from(polynomial.rows);
        for (int i = 0, tries = 0; i < 3 && tries < 30; ++tries) {  // up to three operands, as values and addressing happen to fit
            const int value = source.below(known);
            const Value& bound = program.values[static_cast<std::size_t>(value)];
            Operand operand{"a" + std::to_string(i), bound.segments, bound.layout, Role::input, random_addressing(polynomial.rows, source)};
            if (polynomial.space_of(operand) != bound.space) continue;
            polynomial.operands.push_back(std::move(operand));
            node.arguments.push_back(value);
            ++i;
        }
        if (node.arguments.empty()) continue;
        const int outputs = 1 + source.below(2);
        for (int o = 0; o < outputs; ++o) {
            Operand operand{"b" + std::to_string(o), random_segments(source), random_layout(source), Role::output,
                            random_addressing(polynomial.rows, source)};
            node.arguments.push_back(static_cast<int>(program.values.size()));
            program.values.push_back(
                {"p" + std::to_string(n) + "_" + std::to_string(o), polynomial.space_of(operand), operand.segments, operand.layout});
            polynomial.operands.push_back(std::move(operand));
        }
        add_random_paths(polynomial, 1 + source.below(4), source);
        for (Path& path : polynomial.paths) path.scale *= 0.3;  // keeps numbers of deep programs moderate
        program.nodes.emplace_back(std::move(node));
    }
    const int known = static_cast<int>(program.values.size());
    for (int value = known - 1; value >= 4 && program.outputs.size() < 3; --value)
        if (program.outputs.empty() || source.below(2) == 0) program.outputs.push_back(value);
    return program;
}

Program random_chain(Source& source) {
    Program program;
    program.indices = graph_indices;
    for (const char* name : {"x", "y"}) {
        program.inputs.push_back(static_cast<int>(program.values.size()));
        program.values.push_back({name, "edge", random_segments(source), random_layout(source)});
    }
    for (int n = 0; n < 2; ++n) {
        PolynomialNode node;
        node.polynomial.rows = "edge";
        const int known = static_cast<int>(program.values.size());
        for (int i = 0; i < 2; ++i) {
            node.arguments.push_back(i == 0 ? known - 1 : source.below(known));
            const Value& value = program.values[static_cast<std::size_t>(node.arguments.back())];
            node.polynomial.operands.push_back({"a" + std::to_string(i), value.segments, value.layout, Role::input, each_row()});
        }
        const Value result{"z" + std::to_string(n), "edge", random_segments(source), random_layout(source)};
        node.polynomial.operands.push_back({"b", result.segments, result.layout, Role::output, each_row()});
        node.arguments.push_back(known);
        program.values.push_back(result);
        while (node.polynomial.paths.size() < 3) {  // products of products grow quickly: at most two factors
            add_random_paths(node.polynomial, 1, source);
            if (node.polynomial.paths.back().factors.size() > 3) node.polynomial.paths.pop_back();
        }
        program.nodes.emplace_back(std::move(node));
    }
    program.outputs = {static_cast<int>(program.values.size()) - 1, static_cast<int>(program.values.size()) - 2};
    return program;
}

Deviations check(const Polynomial& polynomial, const Names& inputs, const ReferenceInputs& call, Source& source) {
    return check_any(polynomial, inputs, call, source);
}
Deviations check(const Program& program, const Names& inputs, const ReferenceInputs& call, Source& source) {
    return check_any(program, inputs, call, source);
}

}  // namespace clebsch::derivative_testing
