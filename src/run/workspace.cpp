#include "run/workspace.hpp"

#include <algorithm>
#include <limits>
#include <new>

#include "base/error.hpp"

namespace clebsch {
namespace {

/// Work (multiply-adds and numbers touched) that is worth handing to another thread: some tens of microseconds.
constexpr double work_of_a_part = 3e5;
constexpr std::int64_t most_parts = 64;
/// Parts with sums of their own cost their zeroing and adding up; few enough that this stays a small share of the traffic.
constexpr std::int64_t most_parts_with_sums = 8;
constexpr double share_of_sums = 0.1;
constexpr double multiply_adds_of_a_number = 8;  ///< that take as long as moving it

/// Such inputs are converted as a whole, once. Where rows come one after the other, each is converted once as well, just before its use,
/// and is still in a cache then.
bool read_several_times(const OperandPlan& operand, std::int64_t operand_rows, std::int64_t iteration_rows) {
    return operand.kind == OperandPlan::Kind::shared ||
           (operand.kind == OperandPlan::Kind::indexed && !operand.sorted && operand_rows <= iteration_rows / 2);
}

/// Rows gathered as often, on average, are moved once to addresses that vectors do not straddle cache lines at, if they are not there. For
/// kernels that are mostly loads.
constexpr std::int64_t gathers_worth_moving = 16;

bool may_move(const PlanData& plan, const OperandPlan& operand, std::int64_t operand_rows, const Division& division) {
    return division.of_caller && plan.fetch == Fetch::own && operand.kind == OperandPlan::Kind::indexed && operand.plain &&
           operand_rows <= division.rows / gathers_worth_moving;
}

std::int64_t checked_product(std::int64_t a, std::int64_t b) {
    std::int64_t product = 0;
    if (__builtin_mul_overflow(a, b, &product)) fail("the workspace of this launch would exceed 2^63 bytes");
    return product;
}

std::int64_t value_at(const IndexBuffer& index, std::int64_t i) {
    return index.type == IndexType::int32 ? std::int64_t{static_cast<const std::int32_t*>(index.data)[i]}
                                          : static_cast<const std::int64_t*>(index.data)[i];
}

}  // namespace

void PartCosts::add(const PartCosts& other) {
    work_per_row += other.work_per_row;
    numbers_per_row += other.numbers_per_row;
    sums += other.sums;
    least_rows = std::max(least_rows, other.least_rows);
}

PartCosts part_costs(const PlanData& plan, std::span<const std::int64_t> rows) {
    PartCosts costs{.work_per_row = plan.work_per_row, .numbers_per_row = 0, .sums = 0, .least_rows = plan.block_rows};
    for (std::size_t o = 0; o < plan.operands.size(); ++o) {
        const OperandPlan& operand = plan.operands[o];
        const auto size = static_cast<double>(operand.form.size);
        costs.numbers_per_row += size;
        if (operand.output && operand.kind != OperandPlan::Kind::each && !operand.sorted)
            costs.sums += size * static_cast<double>(plan.rows_of(o, rows));
    }
    return costs;
}

std::int64_t count_parts(const PartCosts& costs, std::int64_t rows) {
    const auto total = static_cast<double>(rows);
    const double least = std::max(work_of_a_part / std::max(costs.work_per_row, 1.0), static_cast<double>(costs.least_rows));
    const std::int64_t parts = std::clamp(static_cast<std::int64_t>(total / least), std::int64_t{1}, most_parts);
    if (costs.sums <= 0) return parts;
    // A sum is zeroed, read and written.
    const double time = total * (costs.numbers_per_row + costs.work_per_row / multiply_adds_of_a_number);
    return std::min({parts, most_parts_with_sums, static_cast<std::int64_t>(std::max(1.0, share_of_sums * time / (3 * costs.sums)))});
}

std::int64_t row_through(const IndexBuffer* indices, std::span<const int> chain, std::int64_t row) {
    for (const int index : chain) {
        row = value_at(indices[index], row);
        if (row < 0) return -1;
    }
    return row;
}

bool rows_through(const IndexBuffer* indices, std::span<const int> chain, std::int64_t begin, int count, std::int64_t* rows) {
    std::int64_t least = 0;
    const auto look_up = [&](const auto* values, bool first) {
        for (int r = 0; r < count; ++r) {
            if (first || rows[r] >= 0) rows[r] = values[first ? begin + r : rows[r]];
            least = std::min(least, rows[r]);
        }
    };
    for (std::size_t n = 0; n < chain.size(); ++n) {
        const IndexBuffer& index = indices[chain[n]];
        if (index.type == IndexType::int32) look_up(static_cast<const std::int32_t*>(index.data), n == 0);
        else look_up(static_cast<const std::int64_t*>(index.data), n == 0);
    }
    return least == 0;
}

void find_borders(const Division& division, const IndexBuffer* indices, std::span<const int> chain) {
    const std::int64_t quotient = division.rows / division.parts, remainder = division.rows % division.parts;
    for (std::int64_t part = 0; part <= division.parts; ++part) {
        const std::int64_t even = quotient * part + std::min(part, remainder);
        division.borders[part] = even;
        if (chain.empty() || part == 0 || part == division.parts) continue;
        const std::int64_t before = row_through(indices, chain, even - 1), end = even + quotient;
        for (std::int64_t i = even; i < end; ++i) {
            if (row_through(indices, chain, i) == before) continue;
            division.borders[part] = i;
            break;
        }
    }
}

std::byte* Arena::take(std::int64_t count, std::size_t bytes) {
    const auto size = static_cast<std::uint64_t>(checked_product(count, static_cast<std::int64_t>(bytes)));
    const std::size_t start = used_;
    constexpr std::uint64_t most = std::numeric_limits<std::int64_t>::max() - std::int64_t{alignment};
    if (size > most - start) fail("the workspace of this launch would exceed 2^63 bytes");
    used_ = (start + size + alignment - 1) / alignment * alignment;
    return memory_ == nullptr ? nullptr : memory_ + start;
}

template <class T>
LaunchState<T> arrange(const PlanData& plan, std::span<const std::int64_t> rows, const Division& division, Arena& arena) {
    using State = OperandState<T>;
    const auto operands = static_cast<std::int64_t>(plan.operands.size());
    LaunchState<T> launch;
    launch.division = division;
    launch.operands = arena.take<State>(operands);
    launch.shared_rows = arena.take<const T*>(operands);
    launch.prepared = arena.take<const std::byte*>(static_cast<std::int64_t>(plan.kernels.size()));
    launch.preparing = arena.take<std::byte*>(static_cast<std::int64_t>(plan.kernels.size()));
    std::int64_t widest = 0;
    for (std::int64_t o = 0; o < operands; ++o) {
        const OperandPlan& operand = plan.operands[static_cast<std::size_t>(o)];
        widest = std::max(widest, operand.padded);
        State state;
        state.rows = plan.rows_of(static_cast<std::size_t>(o), rows);
        if (!operand.output) {
            if (!operand.plain)
                state.way = read_several_times(operand, state.rows, division.rows) ? State::Way::staged_whole : State::Way::staged;
            const bool moved = !operand.sorted && may_move(plan, operand, state.rows, division);
            if (state.way == State::Way::staged_whole || moved) state.own = arena.take<T>(checked_product(state.rows, operand.padded));
        } else if (operand.kind == OperandPlan::Kind::each) {
            if (!operand.plain) state.way = State::Way::staged;
        } else if (operand.sorted) {
            if (!operand.plain) state.way = State::Way::staged;
            state.before = arena.take<std::int64_t>(division.parts + 1);
            state.head_used = arena.take<std::uint8_t>(division.parts);
            if (division.parts > 1) state.heads = arena.take<T>(checked_product(division.parts, operand.padded));
            if (!operand.plain) {
                state.tails = arena.take<T>(checked_product(division.parts, operand.padded));
                state.tail_row = arena.take<std::int64_t>(division.parts);
            }
        } else {
            state.way = State::Way::partial;
            state.first_in_place = operand.plain;
            if (division.parts > 1 || !operand.plain)
                state.own = arena.take<T>(checked_product(checked_product(division.parts, state.rows), operand.padded));
        }
        if (!arena.measuring()) new (launch.operands + o) State(state);
    }
    for (std::size_t k = 0; k < plan.kernels.size(); ++k) {
        std::byte* prepared = arena.take<std::byte>(static_cast<std::int64_t>(plan.prepared_bytes[k]));
        if (!arena.measuring()) launch.prepared[k] = launch.preparing[k] = prepared;
    }
    if (plan.partly_masked) launch.zero = arena.take<T>(widest);

    using Worker = WorkerState<T>;
    launch.worker = arena.take<Worker>(division.workers);
    for (int w = 0; w < division.workers; ++w) {
        Worker worker;
        worker.inputs = arena.take<const T**>(operands);
        worker.outputs = arena.take<T**>(operands);
        worker.begins = arena.take<std::uint8_t*>(operands);
        worker.staging = arena.take<T*>(operands);
        worker.runs = arena.take<typename Worker::Run>(operands);
        worker.each = arena.take<typename Worker::EachRows>(operands);
        worker.ahead = arena.take<Ahead::Piece>(operands);
        worker.iteration = arena.take<std::int64_t>(plan.block_rows);
        const auto chains = static_cast<std::int64_t>(plan.chains.size());
        worker.chain_rows = arena.take<std::int64_t*>(chains);
        for (std::int64_t c = 0; c < chains; ++c) {
            std::int64_t* chain_rows = arena.take<std::int64_t>(plan.block_rows);
            if (!arena.measuring()) worker.chain_rows[c] = chain_rows;
        }
        for (std::int64_t o = 0; o < operands; ++o) {
            const OperandPlan& operand = plan.operands[static_cast<std::size_t>(o)];
            T** pointers = arena.take<T*>(plan.block_rows);
            const std::int64_t operand_rows = plan.rows_of(static_cast<std::size_t>(o), rows);
            const bool moved = !operand.output && operand.sorted && may_move(plan, operand, operand_rows, division);
            const bool staged = moved || (!operand.plain && (operand.output ? operand.kind == OperandPlan::Kind::each || operand.sorted
                                                                            : !read_several_times(operand, operand_rows, division.rows)));
            T* staging = staged ? arena.take<T>(checked_product(plan.block_rows + 1, operand.padded)) : nullptr;
            std::uint8_t* begins = operand.begun ? arena.take<std::uint8_t>(plan.block_rows) : nullptr;
            if (arena.measuring()) continue;
            worker.begins[o] = begins;
            worker.inputs[o] = operand.output ? nullptr : const_cast<const T**>(pointers);
            worker.outputs[o] = operand.output ? pointers : nullptr;
            worker.staging[o] = staging;
            new (worker.runs + o) typename Worker::Run();
            new (worker.each + o) typename Worker::EachRows();
        }
        if (plan.partly_masked) worker.discard = arena.take<T>(widest);
        if (!arena.measuring()) worker.scratch = division.scratch[w];
        if (!arena.measuring()) new (launch.worker + w) Worker(worker);
    }
    return launch;
}

template LaunchState<float> arrange(const PlanData&, std::span<const std::int64_t>, const Division&, Arena&);
template LaunchState<double> arrange(const PlanData&, std::span<const std::int64_t>, const Division&, Arena&);

}  // namespace clebsch
