#include "support/gpu_draw.hpp"

#include <algorithm>

#include "describe/derivative.hpp"
#include "schedule/program_order.hpp"
#include "support/operation_samples.hpp"
#include "support/polynomial_builder.hpp"
#include "support/repetitions.hpp"
#include "support/run_program.hpp"

namespace clebsch::testing {
namespace {

using random::below;
using random::chance;
using random::Engine;
using random::pick;

Program gradients_of(Program program, int order) {
    for (int i = 0; i < order; ++i) {
        std::vector<std::string> names;
        for (const int value : program.inputs) names.push_back(program.values[static_cast<std::size_t>(value)].name);
        program = vjp(program, names);
    }
    return program;
}

std::variant<Polynomial, Program> draw_description(Engine& engine, const random::Limits& limits, int& order) {
    const int kind = below(engine, 20);
    order = pick(engine, std::vector<int>{0, 0, 0, 1, 1, 1, 2, 3});
    if (kind < 8) {
        // Third derivatives of wide ones are compiled for minutes.
        const std::int64_t most = order < 2 ? pick(engine, std::vector<std::int64_t>{17, 33, 48, 64, 130}) : 33;
        Polynomial polynomial = random::channelwise(engine, most, order == 3 ? 1 : order == 2 ? 2 : 3);
        if (chance(engine, 0.25))
            for (Index& index : polynomial.indices) index.sorted = false;
        return random::gradients(std::move(polynomial), order);
    }
    if (kind < 14) {
        random::Limits few = limits;
        few.paths = order == 3 ? 2 : limits.paths;
        return random::gradients(random::polynomial(engine, few), order);
    }
    order = std::min(order, 2);
    if (kind < 18) return gradients_of(random::program(engine, limits), std::min(order, 1));
    const Description description = build(pick(engine, samples()));
    if (const auto* polynomial = std::get_if<Polynomial>(&description)) return random::gradients(*polynomial, order);
    return gradients_of(std::get<Program>(description), std::min(order, 1));
}

}  // namespace

GpuDraw draw_for_gpu(std::uint64_t seed) {
    Engine engine(seed);
    random::Limits limits;
    limits.path_work = 5'000;
    limits.work = 3e5;
    limits.rows = pick(engine, std::vector<std::int64_t>{3, 24, 60, 200});
    limits.smooth_only = true;
    GpuDraw draw;
    draw.description = draw_description(engine, limits, draw.order);
    const auto* polynomial = std::get_if<Polynomial>(&draw.description);
    const std::size_t arrays = polynomial != nullptr
                                   ? polynomial->operands.size()
                                   : std::get<Program>(draw.description).inputs.size() + std::get<Program>(draw.description).outputs.size();
    const std::vector<DType> all = {DType::float32, DType::float64, DType::bfloat16, DType::float16};
    if (chance(engine, 0.7)) draw.dtypes.assign(arrays, pick(engine, all));
    else
        for (std::size_t i = 0; i < arrays; ++i) draw.dtypes.push_back(pick(engine, all));
    const bool wide = std::ranges::find(draw.dtypes, DType::float64) != draw.dtypes.end();
    draw.compute = wide || chance(engine, 0.1) ? DType::float64 : DType::float32;
    if (wide && chance(engine, 0.1)) draw.compute = DType::float32;
    if (const auto* program = std::get_if<Program>(&draw.description))  // an output that nodes read on is read as it is stored
        for (std::size_t o = 0; o < program->outputs.size(); ++o)
            if (std::ranges::any_of(program->nodes, [&](const Node& node) {
                    const std::vector<int> read = values_of(node, Role::input);
                    return std::ranges::find(read, program->outputs[o]) != read.end();
                }))
                draw.dtypes[program->inputs.size() + o] = draw.compute;
    draw.deterministic = chance(engine, 0.3);
    draw.compute_again = chance(engine, 0.5);
    draw.schedule =
        polynomial == nullptr ? "" : pick(engine, std::vector<std::string>{"", "", "", "", "general", "stream-whole", "stream-split"});
    draw.run = {.index_type = chance(engine, 0.5) ? IndexType::int64 : IndexType::int32,
                .padding = chance(engine, 0.5) ? 0 : below(engine, 9),
                .offset = chance(engine, 0.5) ? 0 : below(engine, 5),
                .launches = 1 + below(engine, 2)};
    for (int i = 0; i < 2; ++i)
        draw.inputs.push_back(
            std::visit([&](const auto& known) { return rounded_inputs(known, random::inputs(engine, known, limits), draw.dtypes); },
                       draw.description));
    return draw;
}

void add(Coverage& coverage, const GpuDraw& draw) {
    std::visit([&](const auto& known) { coverage.add(known); }, draw.description);
    for (const ReferenceInputs& inputs : draw.inputs) coverage.add(inputs);
    coverage.count("description", std::holds_alternative<Polynomial>(draw.description) ? "polynomial" : "program");
    coverage.count("derivative order", std::to_string(draw.order));
    for (const DType dtype : draw.dtypes) coverage.count("storage", to_text(dtype));
    coverage.count("storage of a description", std::ranges::adjacent_find(draw.dtypes, std::ranges::not_equal_to{}) == draw.dtypes.end()
                                                   ? "one dtype"
                                                   : "several dtypes");
    coverage.count("arithmetic", to_text(draw.compute));
    coverage.count("sums", draw.deterministic ? "in a fixed order" : "in any order");
    coverage.count("index width", draw.run.index_type == IndexType::int64 ? "int64" : "int32");
    coverage.count("rows", draw.run.padding != 0 ? "apart" : draw.run.offset != 0 ? "not aligned" : "packed");
    if (const auto* polynomial = std::get_if<Polynomial>(&draw.description))
        for (const Operand& operand : polynomial->operands) {
            const auto differ = [](const Segment& a, const Segment& b) { return a.multiplicity != b.multiplicity; };
            const bool unequal = std::ranges::adjacent_find(operand.segments, differ) != operand.segments.end();
            coverage.count("multiplicities of an operand", unequal ? "unequal" : "equal");
        }
}

std::string lacking(const Coverage& coverage) {
    std::string text;
    const auto ask = [&](const char* category, const std::vector<std::string>& items) {
        if (const std::string missing = joined(coverage.missing(category, items)); !missing.empty())
            text += std::string(category) + ": " + missing + "\n";
    };
    ask("description", {"polynomial", "program"});
    ask("derivative order", {"0", "1", "2", "3"});
    ask("storage", {"float32", "float64", "bfloat16", "float16"});
    ask("storage of a description", {"one dtype", "several dtypes"});
    ask("arithmetic", {"float32", "float64"});
    ask("sums", {"in a fixed order", "in any order"});
    ask("index width", {"int32", "int64"});
    ask("rows", {"packed", "apart", "not aligned"});
    ask("layout", {"mul_ir", "ir_mul"});
    ask("multiplicities of an operand", {"equal", "unequal"});
    ask("index", {"without masks", "with masked rows"});
    ask("rows of a space", {"0", "1", "2-7", "8-31", "32+"});
    for (const char* role : {"input rows", "output rows"})
        ask(role, {"each", "shared", "sorted", "unsorted", "sorted chain of 2", "unsorted chain of 2"});
    return text;
}

}  // namespace clebsch::testing
