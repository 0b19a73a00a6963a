#include "run/program_plan.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "describe/harmonics_chain.hpp"
#include "run/program_arguments.hpp"
#include "run/realigned.hpp"
#include "run/tiled_plan.hpp"
#include "schedule/partial_sums.hpp"
#include "schedule/program_groups.hpp"

namespace clebsch {
namespace {

std::string named(const std::string& name) { return "'" + name + "'"; }

/// Throws Error where calls of the two would differ.
void check_same_call(const Program& program, const Program& other, const std::vector<std::string>& spaces) {
    const auto same_values = [&](const std::vector<int>& of_program, const std::vector<int>& of_other) {
        return std::ranges::equal(
            of_program, of_other, {}, [&](int value) { return program.values[static_cast<std::size_t>(value)]; },
            [&](int value) { return other.values[static_cast<std::size_t>(value)]; });
    };
    const bool same_spaces =
        std::ranges::all_of(row_spaces(other), [&](const std::string& space) { return std::ranges::find(spaces, space) != spaces.end(); });
    if (program.indices != other.indices || !same_spaces || !same_values(program.inputs, other.inputs) ||
        !same_values(program.outputs, other.outputs))
        fail("the program for more rows: expected inputs, outputs, indices and row spaces of the program for fewer");
}

}  // namespace

std::vector<std::string> row_spaces(const Program& program) {
    std::vector<std::string> spaces;
    const auto meet = [&](const std::string& space) {
        if (!space.empty() && std::ranges::find(spaces, space) == spaces.end()) spaces.push_back(space);
    };
    for (const Index& index : program.indices) {
        meet(index.from);
        meet(index.to);
    }
    for (const Value& value : program.values) meet(value.space);
    for (const Node& node : program.nodes)
        if (const auto* polynomial = std::get_if<PolynomialNode>(&node)) meet(polynomial->polynomial.rows);
    return spaces;
}

struct ProgramPlan::Data : ProgramArguments {
    using ProgramArguments::ProgramArguments;
    InstructionSet isa{};
    /// One, or two: that keeps more, which runs while its intermediates take at most keep_bytes, and that computes more again.
    std::vector<std::unique_ptr<const TiledPlan>> ways;
    std::int64_t keep_bytes = 0;

    /// Depends on the numbers of rows alone, so that results do.
    std::size_t way_of(std::span<const std::int64_t> rows) const {
        return ways.size() == 2 && ways.front()->intermediate_size(rows) <= static_cast<double>(keep_bytes) ? 0 : ways.size() - 1;
    }
    const TiledPlan& plan_for(std::span<const std::int64_t> rows) const { return *ways[way_of(rows)]; }

    std::size_t workspace_bytes(std::span<const std::int64_t> rows, int threads) const {
        check_rows(rows);
        return plan_for(rows).workspace_bytes(rows, threads);
    }

    /// A launch whose call and workspace have been checked.
    void run(const Call& call, const Workspace& workspace, const ParallelFor& parallel_for, const void* prepared) const {
        const auto* made = static_cast<const std::byte*>(prepared);
        const std::size_t way = way_of(call.rows);
        for (std::size_t w = 0; w < way && made != nullptr; ++w) made += ways[w]->prepared_bytes();
        ways[way]->run(call, workspace, parallel_for, made);
    }
};

ProgramPlan::ProgramPlan(const Program& program, const ProgramOptions& options) {
    validate(program);
    auto data = std::make_unique<Data>(program, options.dtypes, options.compute);
    if (options.for_more_rows) {
        validate(*options.for_more_rows);
        check_same_call(program, *options.for_more_rows, data->spaces);
    }
    data->isa = options.instruction_set.value_or(default_instruction_set());
    require_available(data->isa);
    if (options.keep_bytes < 0) fail("keep_bytes: expected at least 0, got " + std::to_string(options.keep_bytes));
    data->keep_bytes = options.keep_bytes;

    const bool fuse = options.fuse && options.family.empty();
    const StepRequest request{.program = nullptr,
                              .spaces = &data->spaces,
                              .dtypes = data->dtypes,
                              .compute = data->compute,
                              .isa = data->isa,
                              .family = options.family};
    const auto add_way = [&](TiledProgram tiled) {
        data->ways.push_back(std::make_unique<const TiledPlan>(std::move(tiled), request, fuse, options.chunk_rows));
    };
    const auto ready = [&](const Program& given) {
        Program simple = simplified(with_harmonic_chains(given));
        return fuse ? with_partial_sums(simple) : simple;
    };
    const Program parts = ready(program);
    TiledProgram little = tile_program(options.for_more_rows ? ready(*options.for_more_rows) : parts, fuse, keep_little);
    if (fuse && options.keep_bytes > 0) {
        TiledProgram much = tile_program(parts, fuse, keep_much);
        if (much.groups != little.groups || much.program != little.program) add_way(std::move(much));
    }
    add_way(std::move(little));
    data_ = std::move(data);
}

ProgramPlan::~ProgramPlan() = default;
ProgramPlan::ProgramPlan(ProgramPlan&&) noexcept = default;
ProgramPlan& ProgramPlan::operator=(ProgramPlan&&) noexcept = default;

const Program& ProgramPlan::program() const { return data_->given; }
const std::vector<std::string>& ProgramPlan::spaces() const { return data_->spaces; }
const std::vector<DType>& ProgramPlan::dtypes() const { return data_->dtypes; }
DType ProgramPlan::compute() const { return data_->compute; }

std::size_t ProgramPlan::workspace_bytes(std::span<const std::int64_t> rows, int threads) const {
    return data_->workspace_bytes(rows, threads);
}

std::size_t ProgramPlan::prepared_bytes() const {
    std::size_t bytes = 0;
    for (const auto& way : data_->ways) bytes += way->prepared_bytes();
    return bytes;
}

void ProgramPlan::prepare(std::span<const Buffer> buffers, void* prepared, std::size_t bytes) const {
    const Data& data = *data_;
    if (buffers.size() != data.arguments.size())
        fail("prepare: expected " + std::to_string(data.arguments.size()) + " buffers, got " + std::to_string(buffers.size()));
    if (prepared_bytes() == 0) return;
    if (prepared == nullptr || reinterpret_cast<std::uintptr_t>(prepared) % 64 != 0 || bytes < prepared_bytes())
        fail("prepare: expected " + std::to_string(prepared_bytes()) + " bytes at an address that is a multiple of 64, got " +
             (prepared == nullptr ? "a null pointer" : std::to_string(bytes)));
    for (std::size_t i = 0; i < data.given.inputs.size(); ++i) {
        if (data.argument_spaces[i] >= 0) continue;
        check_buffer(data.arguments[i], buffers[i], data.dtypes[i], 1);
        if (reinterpret_cast<std::uintptr_t>(buffers[i].data) % size_of(data.dtypes[i]) != 0)
            fail("prepare: operand " + named(data.arguments[i].name) + ": the address is not a multiple of the size of its numbers");
    }
    auto* to = static_cast<std::byte*>(prepared);
    for (const auto& way : data.ways) {
        way->prepare(buffers, to);
        to += way->prepared_bytes();
    }
}

void ProgramPlan::launch(const Call& call, Workspace workspace, const ParallelFor& parallel_for, const void* prepared) const {
    const Data& data = *data_;
    data.check(call, !call.indices_checked);
    const std::size_t needed = data.workspace_bytes(call.rows, parallel_for.threads);
    check_workspace(workspace, needed, std::max(1, parallel_for.threads));
    launch_aligned(data.arguments, call, [&](const Call& aligned) { data.run(aligned, workspace, parallel_for, prepared); });
}

Work ProgramPlan::work(std::span<const std::int64_t> rows) const {
    const Data& data = *data_;
    data.check_rows(rows);
    Work work;
    work.multiply_adds = data.plan_for(rows).multiply_adds(rows);
    work.bytes = data.bytes(rows);
    return work;
}

std::string ProgramPlan::explain() const {
    const Data& data = *data_;
    const std::string arithmetic = std::string("arithmetic in ") + to_text(data.compute) + ", " + to_text(data.isa) + "\n";
    const auto size = [](const TiledPlan& way) {
        return std::to_string(way.steps()) + " steps in " + std::to_string(way.groups()) + " groups";
    };
    if (data.ways.size() == 1) return "program: " + size(*data.ways[0]) + ", " + arithmetic + data.ways[0]->explain();
    std::string text = "program: two ways to run it, by the number of rows; " + arithmetic;
    const std::vector<Way> described = ways();
    for (std::size_t w = 0; w < described.size(); ++w)
        text += "\n" + described[w].when + ": " + size(*data.ways[w]) + "\n" + data.ways[w]->explain();
    return text;
}

std::vector<ProgramPlan::Way> ProgramPlan::ways() const {
    const auto& ways = data_->ways;
    if (ways.size() == 1) return {{"", &ways[0]->division()}};
    const std::string limit = std::to_string(data_->keep_bytes) + " bytes of intermediates";
    return {{"up to " + limit + " more is kept", &ways[0]->division()},
            {"beyond " + limit + " more is computed again", &ways[1]->division()}};
}

}  // namespace clebsch
