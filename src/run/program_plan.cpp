#include "run/program_plan.hpp"

#include <algorithm>
#include <functional>
#include <mutex>

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

/// What groups do with the values that others use, too.
std::vector<ValueUse> uses_by_groups(const TiledProgram& tiled) {
    std::vector<ValueUse> uses;
    for (const TileGroup& group : tiled.groups) {
        ValueUse& use = uses.emplace_back();
        for (const int n : group.nodes) {
            const Node& node = tiled.program.nodes[static_cast<std::size_t>(n)];
            for (const RowUse& value : row_uses(tiled.program, node)) (value.output ? use.writes : use.reads).push_back(value.value);
        }
    }
    return uses;
}

/// Where what groups hand to one another would lie: bytes of every space's row are known before steps are made.
ProgramMemory memory_between_groups(const TiledProgram& tiled, StepRequest request) {
    request.program = &tiled.program;
    request.dtypes.assign(tiled.program.values.size(), request.compute);
    std::vector<bool> placed(tiled.program.values.size(), false);
    for (const int value : tiled.kept) placed[static_cast<std::size_t>(value)] = true;
    return plan_memory(request, uses_by_groups(tiled), placed);
}

/// A way to run the program. Its plan is made when it is first needed: of two, most callers need one.
class LaterPlan {
 public:
    explicit LaterPlan(std::function<std::unique_ptr<const TiledPlan>()> make) : make_(std::move(make)) {}

    /// An attempt that throws may be made again.
    const TiledPlan& get() const {
        std::call_once(once_, [this] {
            plan_ = make_();
            make_ = nullptr;  // the programs it holds
        });
        return *plan_;
    }

 private:
    mutable std::function<std::unique_ptr<const TiledPlan>()> make_;
    mutable std::once_flag once_;
    mutable std::unique_ptr<const TiledPlan> plan_;
};

/// Stands before what was prepared: other numbers of rows may run another way, which wants other things.
struct alignas(64) PreparedFor {
    const TiledPlan* plan;
};

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
    /// One, or two: that keeps more, which runs while what its groups hand to one another takes at most keep_bytes, and that computes more
    /// again.
    std::vector<std::unique_ptr<const LaterPlan>> ways;
    ProgramMemory kept;  ///< by the first of two
    std::int64_t keep_bytes = 0;

    /// Depends on the numbers of rows alone, so that results do.
    std::size_t way_of(std::span<const std::int64_t> rows) const {
        return ways.size() == 2 && kept.size(rows) <= static_cast<double>(keep_bytes) ? 0 : ways.size() - 1;
    }
    const TiledPlan& plan_for(std::span<const std::int64_t> rows) const {
        check_rows(rows);
        return ways[way_of(rows)]->get();
    }
};

ProgramPlan::ProgramPlan(const Program& program, const ProgramOptions& options) {
    if (!options.checked) validate(program);
    auto data = std::make_unique<Data>(program, options.dtypes, options.compute);
    if (options.for_more_rows) {
        if (!options.checked) validate(*options.for_more_rows);
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
                              .family = options.family,
                              .threads = options.threads};
    const auto add_way = [&](std::function<TiledProgram()> divide) {
        data->ways.push_back(std::make_unique<const LaterPlan>([=, divide = std::move(divide), rows = options.chunk_rows] {
            return std::make_unique<const TiledPlan>(divide(), request, fuse, rows);
        }));
    };
    const auto ready = [fuse](const Program& given) {
        Program simple = simplified(with_harmonic_chains(given));
        return fuse ? with_partial_sums(simple) : std::move(simple);
    };
    const auto divided = [fuse](const Program& given, const AgainLimits& limits) { return tile_program(given, fuse, limits); };
    const auto add_little = [&](const Program& given) {
        add_way([divided, ready, held = std::make_shared<const Program>(given)] { return divided(ready(*held), keep_little); });
    };
    if (!fuse || options.keep_bytes == 0) {
        add_little(options.for_more_rows.value_or(program));
    } else {
        const Program parts = ready(program);
        TiledProgram much = divided(parts, keep_much);
        data->kept = memory_between_groups(much, request);
        // Copies of the divisions, since an attempt to plan one may be made again.
        const auto add_divided = [&](TiledProgram tiled) {
            add_way([held = std::make_shared<const TiledProgram>(std::move(tiled))] { return *held; });
        };
        std::optional<TiledProgram> little;
        if (!options.for_more_rows) {
            little = divided(parts, keep_little);
            if (much.groups == little->groups && much.program == little->program) little.reset();
        }
        add_divided(std::move(much));
        if (options.for_more_rows) add_little(*options.for_more_rows);
        else if (little) add_divided(std::move(*little));
    }
    if (data->ways.size() == 1) data->ways[0]->get();  // what does not fit is refused now
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
    return data_->plan_for(rows).workspace_bytes(rows, threads);
}

std::size_t ProgramPlan::way(std::span<const std::int64_t> rows) const {
    data_->check_rows(rows);
    return data_->way_of(rows);
}

std::size_t ProgramPlan::prepared_bytes(std::span<const std::int64_t> rows) const {
    return sizeof(PreparedFor) + data_->plan_for(rows).prepared_bytes();
}

void ProgramPlan::prepare(std::span<const std::int64_t> rows, std::span<const Buffer> buffers, void* prepared, std::size_t bytes) const {
    const Data& data = *data_;
    const std::size_t needed = prepared_bytes(rows);
    if (buffers.size() != data.arguments.size())
        fail("prepare: expected " + std::to_string(data.arguments.size()) + " buffers, got " + std::to_string(buffers.size()));
    if (prepared == nullptr || reinterpret_cast<std::uintptr_t>(prepared) % 64 != 0 || bytes < needed)
        fail("prepare: expected " + std::to_string(needed) + " bytes at an address that is a multiple of 64, got " +
             (prepared == nullptr ? "a null pointer" : std::to_string(bytes)));
    for (std::size_t i = 0; i < data.given.inputs.size(); ++i) {
        if (data.argument_spaces[i] >= 0) continue;
        check_buffer(data.arguments[i], data.sizes[i], buffers[i], data.dtypes[i], 1);
        if (reinterpret_cast<std::uintptr_t>(buffers[i].data) % size_of(data.dtypes[i]) != 0)
            fail("prepare: operand " + named(data.arguments[i].name) + ": the address is not a multiple of the size of its numbers");
    }
    const TiledPlan& plan = data.plan_for(rows);
    auto* const made = new (prepared) PreparedFor{&plan};
    plan.prepare(buffers, reinterpret_cast<std::byte*>(made + 1));
}

void ProgramPlan::launch(const Call& call, Workspace workspace, const ParallelFor& parallel_for, const void* prepared) const {
    const Data& data = *data_;
    data.check(call, !call.indices_checked);
    const TiledPlan& plan = data.plan_for(call.rows);
    check_workspace(workspace, plan.workspace_bytes(call.rows, parallel_for.threads), std::max(1, parallel_for.threads));
    const auto* made = static_cast<const PreparedFor*>(prepared);
    if (made != nullptr && made->plan != &plan) fail("prepared: expected what prepare made for numbers of rows that run the same way");
    launch_aligned(data.arguments, call, [&](const Call& aligned) {
        plan.run(aligned, workspace, parallel_for, made == nullptr ? nullptr : reinterpret_cast<const std::byte*>(made + 1));
    });
}

Work ProgramPlan::work(std::span<const std::int64_t> rows) const {
    Work work;
    work.multiply_adds = data_->plan_for(rows).multiply_adds(rows);
    work.bytes = data_->bytes(rows);
    return work;
}

std::string ProgramPlan::explain() const {
    const Data& data = *data_;
    const std::string arithmetic = std::string("arithmetic in ") + to_text(data.compute) + ", " + to_text(data.isa) + "\n";
    const auto size = [](const TiledPlan& way) {
        return std::to_string(way.steps()) + " steps in " + std::to_string(way.groups()) + " groups";
    };
    if (data.ways.size() == 1) return "program: " + size(data.ways[0]->get()) + ", " + arithmetic + data.ways[0]->get().explain();
    std::string text = "program: two ways to run it, by the number of rows; " + arithmetic;
    const std::vector<Way> described = ways();
    for (std::size_t w = 0; w < described.size(); ++w)
        text += "\n" + described[w].when + ": " + size(data.ways[w]->get()) + "\n" + data.ways[w]->get().explain();
    return text;
}

std::vector<ProgramPlan::Way> ProgramPlan::ways() const {
    const auto& ways = data_->ways;
    if (ways.size() == 1) return {{"", &ways[0]->get().division()}};
    const std::string limit = std::to_string(data_->keep_bytes) + " bytes of intermediates";
    return {{"up to " + limit + " more is kept", &ways[0]->get().division()},
            {"beyond " + limit + " more is computed again", &ways[1]->get().division()}};
}

}  // namespace clebsch
