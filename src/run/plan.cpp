#include "run/plan.hpp"

#include <algorithm>
#include <bit>
#include <numeric>

#include "base/error.hpp"
#include "run/execute.hpp"
#include "run/plan_data.hpp"
#include "run/realigned.hpp"
#include "run/workspace.hpp"
#include "schedule/cpu.hpp"

namespace clebsch {
namespace {

using Data = PlanData;

/// What a block's staged rows and the kernels' scratch may take together: well inside the second-level cache.
constexpr std::size_t most_scratch = 384 * 1024;
constexpr int most_block_rows = 256;

void plan_operands(Data& plan) {
    const Polynomial& polynomial = plan.polynomial;
    for (std::size_t o = 0; o < polynomial.operands.size(); ++o) {
        const Operand& operand = polynomial.operands[o];
        OperandPlan result;
        result.output = operand.role == Role::output;
        const bool as_stored = std::ranges::any_of(plan.kernels, [&](const auto& kernel) {
            const std::vector<bool> operands = kernel->as_stored();
            return o < operands.size() && operands[o];
        });
        Operand seen = operand;
        if (as_stored) seen.layout = Layout::ir_mul;  // nothing to transpose
        result.form = row_form(seen, plan.dtypes[o], plan.isa);
        result.plain = result.form.plain(plan.compute);
        const std::int64_t line = 64 / static_cast<std::int64_t>(size_of(plan.compute));
        result.padded = (result.form.size + line - 1) / line * line;
        switch (operand.rows.kind) {
            case Addressing::Kind::each:
                result.kind = OperandPlan::Kind::each;
                break;
            case Addressing::Kind::shared:
                result.kind = OperandPlan::Kind::shared;
                break;
            case Addressing::Kind::indexed: {
                result.kind = OperandPlan::Kind::indexed;
                result.sorted = polynomial.is_sorted(operand);
                std::vector<int> chain;
                for (const std::string& name : operand.rows.via) chain.push_back(polynomial.find_index(name));
                const auto found = std::ranges::find(plan.chains, chain);
                result.chain = static_cast<int>(found - plan.chains.begin());
                if (found == plan.chains.end()) plan.chains.push_back(chain);
                break;
            }
        }
        plan.operands.push_back(std::move(result));
    }
    std::int64_t largest = -1;
    for (const OperandPlan& operand : plan.operands) {
        if (!operand.output || !operand.sorted || operand.form.size <= largest) continue;
        largest = operand.form.size;
        plan.border_chain = operand.chain;
    }
    if (plan.chains.size() > 64)
        throw Error(ErrorKind::unsupported,
                    "a polynomial with " + std::to_string(plan.chains.size()) + " chains of indices: at most 64 can run");
}

void plan_masks(Data& plan) {
    for (const Path& path : plan.polynomial.paths) {
        std::uint64_t chains = 0;
        for (const Factor& factor : path.factors) {
            const int chain = plan.operands[static_cast<std::size_t>(factor.operand)].chain;
            if (chain >= 0) chains |= std::uint64_t{1} << chain;
        }
        if (std::ranges::find(plan.path_chains, chains) == plan.path_chains.end()) plan.path_chains.push_back(chains);
    }
    // Chains that no path goes through count too: a kernel may touch the rows of outputs that it adds nothing to.
    const auto count = static_cast<int>(plan.chains.size());
    plan.partly_masked = std::ranges::any_of(plan.path_chains, [&](std::uint64_t chains) { return std::popcount(chains) != count; });
}

/// What is left of outputs' rows when the kernels' own segments are taken away.
void plan_zeroing(Data& plan) {
    for (std::size_t o = 0; o < plan.operands.size(); ++o) {
        OperandPlan& operand = plan.operands[o];
        if (!operand.output || (operand.kind != OperandPlan::Kind::each && !operand.sorted)) continue;
        const std::vector<Segment>& segments = plan.polynomial.operands[o].segments;
        std::int64_t offset = 0;
        for (std::size_t s = 0; s < segments.size(); ++s) {
            const std::int64_t end = offset + segments[s].size();
            const bool overwritten = std::ranges::any_of(plan.kernels, [&](const auto& kernel) {
                const OverwriteMap map = kernel->overwritten();
                return o < map.size() && s < map[o].size() && map[o][s];
            });
            if (!overwritten && end > offset) {
                if (!operand.zeroed.empty() && operand.zeroed.back().end == offset) operand.zeroed.back().end = end;
                else operand.zeroed.push_back({offset, end});
            }
            offset = end;
        }
        operand.begun = operand.sorted && operand.zeroed.empty();
    }
}

void plan_blocks(Data& plan) {
    const std::size_t element = size_of(plan.compute);
    std::int64_t staged =
        0;  // numbers per row of a block; gathered inputs are mostly converted as a whole, runs of sorted outputs are long
    plan.block_rows = 1;
    plan.work_per_row = 0;
    for (const OperandPlan& operand : plan.operands) {
        if (!operand.plain && operand.kind == OperandPlan::Kind::each) staged += operand.padded;
        plan.work_per_row += static_cast<double>(operand.form.size);
    }
    for (const auto& kernel : plan.kernels) {
        plan.block_rows = std::clamp(kernel->preferred_rows(), plan.block_rows, most_block_rows);
        plan.prepared_bytes.push_back(kernel->prepared_bytes(element));
        plan.work_per_row += kernel->estimate().multiply_adds;
        plan.fetch = std::max(plan.fetch, kernel->fetches());
    }
    const auto kernel_scratch = [&](int rows) {
        std::size_t bytes = 0;
        for (const auto& kernel : plan.kernels) bytes = std::max(bytes, kernel->scratch_bytes(element, rows));
        return bytes;
    };
    const auto scratch = [&](int rows) {
        return static_cast<double>(kernel_scratch(rows)) + static_cast<double>(staged) * static_cast<double>(element) * rows;
    };
    while (plan.block_rows > 1 && scratch(plan.block_rows) > static_cast<double>(most_scratch)) plan.block_rows = (plan.block_rows + 1) / 2;
    plan.scratch_bytes = kernel_scratch(plan.block_rows);
}

/// Lays out everything of a launch by itself.
template <class T>
LaunchState<T> arrange_alone(const Data& plan, std::span<const std::int64_t> rows, int threads, Arena& arena) {
    Division division{.rows = rows[0], .parts = count_parts(part_costs(plan, rows), rows[0])};
    division.workers = static_cast<int>(std::clamp<std::int64_t>(threads, 1, division.parts));
    division.of_caller = true;
    division.borders = arena.take<std::int64_t>(division.parts + 1);
    division.scratch = arena.take<std::byte*>(division.workers);
    for (int w = 0; w < division.workers; ++w) {
        std::byte* scratch = arena.take<std::byte>(static_cast<std::int64_t>(plan.scratch_bytes));
        if (!arena.measuring()) division.scratch[w] = scratch;
    }
    return arrange<T>(plan, rows, division, arena);
}

template <class T>
std::size_t measure(const Data& plan, std::span<const std::int64_t> rows, int threads) {
    Arena arena;
    arrange_alone<T>(plan, rows, threads, arena);
    return arena.used() + Arena::alignment;  // so that any address can be aligned
}

template <class T>
void launch_as(const Data& plan, const Call& call, Workspace workspace, int threads, const ParallelFor& parallel_for) {
    const std::size_t needed = measure<T>(plan, call.rows, threads);
    check_workspace(workspace, needed, threads);
    const auto address = reinterpret_cast<std::uintptr_t>(workspace.data);
    Arena arena(static_cast<std::byte*>(workspace.data) + (Arena::alignment - address % Arena::alignment) % Arena::alignment);
    Running<T> running{.plan = &plan, .call = call, .state = arrange_alone<T>(plan, call.rows, threads, arena)};
    const auto border = static_cast<std::size_t>(std::max(0, plan.border_chain));
    find_borders(running.state.division, call.indices.data(),
                 plan.border_chain < 0 ? std::span<const int>() : std::span<const int>(plan.chains[border]));
    execute(running, parallel_for);
}

std::string way_text(const OperandPlan& operand, DType compute) {
    std::string text = operand.output ? "output" : "input";
    switch (operand.kind) {
        case OperandPlan::Kind::each:
            text += ", row by row";
            break;
        case OperandPlan::Kind::shared:
            text += operand.output ? ", one row, summed per part" : ", one row";
            break;
        case OperandPlan::Kind::indexed:
            if (!operand.output) text += ", gathered";
            else text += operand.sorted ? ", summed in place (sorted)" : ", scattered, summed per part";
            break;
    }
    if (operand.plain) return text;
    text += operand.form.transposed ? ", transposed" : "";
    if (operand.form.dtype != compute) text += std::string(operand.form.transposed ? " and" : ",") + " converted to " + to_text(compute);
    return text + " on the way";
}

}  // namespace

PolynomialPlan::PolynomialPlan(Polynomial polynomial, const PlanOptions& options) {
    if (!options.checked) validate(polynomial);
    auto plan = std::make_unique<Data>(std::move(polynomial), options);
    plan->isa = options.instruction_set.value_or(default_instruction_set());
    require_available(plan->isa);
    KernelChoice choice = choose_kernels(plan->polynomial, plan->isa, options.family);
    plan->kernels = std::move(choice.kernels);
    plan->choice = std::move(choice.explain);
    plan_operands(*plan);
    plan_masks(*plan);
    plan_zeroing(*plan);
    plan_blocks(*plan);
    data_ = std::move(plan);
}

PolynomialPlan::~PolynomialPlan() = default;
PolynomialPlan::PolynomialPlan(PolynomialPlan&&) noexcept = default;
PolynomialPlan& PolynomialPlan::operator=(PolynomialPlan&&) noexcept = default;

const Polynomial& PolynomialPlan::polynomial() const { return data_->polynomial; }
const std::vector<std::string>& PolynomialPlan::spaces() const { return data_->spaces; }
const std::vector<DType>& PolynomialPlan::dtypes() const { return data_->dtypes; }
DType PolynomialPlan::compute() const { return data_->compute; }
const PlanData& PolynomialPlan::data() const { return *data_; }

std::size_t PolynomialPlan::workspace_bytes(std::span<const std::int64_t> rows, int threads) const {
    data_->check_rows(rows);
    return data_->compute == DType::float64 ? measure<double>(*data_, rows, threads) : measure<float>(*data_, rows, threads);
}

void PolynomialPlan::launch(const Call& call, Workspace workspace, const ParallelFor& parallel_for) const {
    data_->check(call, !call.indices_checked);
    const int threads = parallel_for.run == nullptr ? 1 : std::max(1, parallel_for.threads);
    launch_aligned(data_->polynomial.operands, call, [&](const Call& aligned) {
        if (data_->compute == DType::float64) launch_as<double>(*data_, aligned, workspace, threads, parallel_for);
        else launch_as<float>(*data_, aligned, workspace, threads, parallel_for);
    });
}

Work PolynomialPlan::work(std::span<const std::int64_t> rows) const {
    data_->check_rows(rows);
    Work work;
    for (const auto& kernel : data_->kernels) work.multiply_adds += kernel->estimate().multiply_adds * static_cast<double>(rows[0]);
    work.bytes = data_->bytes(rows);
    return work;
}

std::string PolynomialPlan::explain() const {
    std::string text = "computes in " + std::string(to_text(data_->compute)) + " on " + to_text(data_->isa) + ", blocks of " +
                       std::to_string(data_->block_rows) + " rows of '" + data_->polynomial.rows + "'\n" + data_->choice;
    for (std::size_t o = 0; o < data_->operands.size(); ++o) {
        const Operand& operand = data_->polynomial.operands[o];
        text += "operand '" + operand.name + "': " + std::to_string(data_->operands[o].form.size) + " x " + to_text(data_->dtypes[o]) +
                ", " + (operand.layout == Layout::ir_mul ? "ir_mul" : "mul_ir") + ", " + way_text(data_->operands[o], data_->compute) +
                "\n";
    }
    return text;
}

}  // namespace clebsch
