#include "model/model.hpp"

#include <algorithm>
#include <cmath>

#include "base/error.hpp"
#include "base/number.hpp"
#include "describe/derivative.hpp"
#include "describe/operations/pooling.hpp"
#include "describe/operations/program_builder.hpp"

namespace clebsch {
namespace {

const std::vector<Segment> scalar = {{1, 1, {}}}, vector = {{1, 3, Irrep{1, Parity::odd}}}, matrix = {{1, 9, {}}};

/// Sums edges' vectors at one of their ends.
Polynomial sum_at(const std::string& end, bool sorted, double scale) {
    PoolingOptions options;
    options.rows = "edge";
    options.groups = "node";
    options.index = end;
    options.sorted = sorted;
    options.scale = scale;
    return pool_rows(vector, options);
}

/// virial[a, b] = sum over edges of (r_a g_b + r_b g_a)/2.
Polynomial virial() {
    Polynomial sum;
    sum.rows = "edge";
    sum.indices = {{"receiver", "edge", "node", true}, {"graph", "node", "graph", true}};
    sum.operands = {make_operand({"vectors"}, vector, Role::input), make_operand({"gradient"}, vector, Role::input),
                    make_operand({"virial", Layout::mul_ir, row_of({"receiver", "graph"})}, matrix, Role::output)};
    std::vector<CoefficientEntry> entries;
    for (int a = 0; a < 3; ++a) {
        for (int b = 0; b < 3; ++b) {
            for (const int place : {3 * a + b, 3 * b + a}) {
                const auto known = std::ranges::find(entries, std::vector<int>{a, b, place}, &CoefficientEntry::index);
                if (known == entries.end()) entries.push_back({{a, b, place}, 0.5});
                else known->value += 0.5;
            }
        }
    }
    add_path(sum, {{0, 0, "", 0}, {1, 0, "", 1}, {2, 0, "", 2}}, Coefficients::literal({3, 3, 9}, std::move(entries)), 1.0, {});
    validate(sum);
    return sum;
}

}  // namespace

void validate(const Model& model) {
    const std::string where = "model '" + model.name + "': ";
    validate(model.program);
    const Program& program = model.program;
    const auto is = [&](int value, const char* name, const char* space, std::int64_t size) {
        const Value& found = program.values[static_cast<std::size_t>(value)];
        return found.name == name && found.space == space && found.size() == size;
    };
    if (program.inputs.empty() || !is(program.inputs.front(), "vectors", "edge", 3))
        fail(where + "expected the first input 'vectors' with 3 numbers per edge");
    if (program.outputs.size() != 1 || !is(program.outputs.front(), "atom_energy", "node", 1))
        fail(where + "expected one output 'atom_energy' with one number per node");
    for (const Index& index : program.indices)
        if (index != Index{"sender", "edge", "node", false} && index != Index{"receiver", "edge", "node", true} &&
            index != Index{"species", "node", "element", false} &&
            (model.piece_ends.empty() || index != Index{"piece", "edge", "piece", false}))
            fail(where + "expected indices sender and receiver (sorted) from edge to node and species from node to element, got '" +
                 index.name + "' from '" + index.from + "' to '" + index.to + "'");
    if (!(model.cutoff > 0) || !std::isfinite(model.cutoff)) fail(where + "expected a cutoff above 0, got " + number_text(model.cutoff));
    if (!std::ranges::is_sorted(model.piece_ends)) fail(where + "expected ends of pieces in ascending order");
    if (model.atomic_numbers.empty() || model.element_energies.size() != model.atomic_numbers.size())
        fail(where + "expected an energy for each of " + std::to_string(model.atomic_numbers.size()) + " elements, got " +
             std::to_string(model.element_energies.size()));
    for (const int z : model.atomic_numbers)
        if (z < 1 || z > 118) fail(where + "expected atomic numbers from 1 to 118, got " + std::to_string(z));
    if (model.weights.size() + 1 != program.inputs.size())
        fail(where + "expected weights for " + std::to_string(program.inputs.size() - 1) + " inputs, got " +
             std::to_string(model.weights.size()));
    for (const ModelWeights& weights : model.weights) {
        const Value& value = program.values[static_cast<std::size_t>(program.find_value(weights.name))];
        const bool of_piece = !model.piece_ends.empty() && value.space == "piece";
        const std::size_t rows_of_space = value.space.empty() ? 1 : of_piece ? model.piece_ends.size() : model.atomic_numbers.size();
        const auto rows = static_cast<std::int64_t>(rows_of_space);
        if (!value.space.empty() && value.space != "element" && !of_piece)
            fail(where + "expected weights '" + weights.name + "' to be shared or per element, got space '" + value.space + "'");
        if (static_cast<std::int64_t>(weights.values.size()) != rows * value.size())
            fail(where + "expected " + std::to_string(rows * value.size()) + " numbers for weights '" + weights.name + "', got " +
                 std::to_string(weights.values.size()));
    }
}

Program with_gradient(const Model& model) { return value_and_vjp(model.program, std::vector<std::string>{"vectors"}); }

Program totals() {
    ProgramBuilder program;
    const int atom = program.input("atom_energy", "node", scalar);
    const int gradient = program.input("vectors_gradient", "edge", vector);
    const int vectors = program.input("vectors", "edge", vector);
    const int elements = program.input("element_energies", "element", scalar);

    PoolingOptions of_species;
    of_species.groups = "element";
    of_species.index = "species";
    of_species.sorted = false;
    const int own = program.apply("own_energy", broadcast_rows(scalar, of_species), {elements});
    const int total = program.sum("total_atom_energy", {atom, own});
    PoolingOptions of_graph;
    of_graph.index = "graph";
    const int energy = program.apply("energy", pool_rows(scalar, of_graph), {total});

    const int received = program.apply("received", sum_at("receiver", true, 1), {gradient});
    const int sent = program.apply("sent", sum_at("sender", false, -1), {gradient});
    const int forces = program.sum("forces", {received, sent});
    return program.finish({total, energy, forces, program.apply("virial", virial(), {vectors, gradient})});
}

}  // namespace clebsch
