// A launch: convert what is read several times, prepare the kernels, run the parts, add up what parts share.
#include "run/execute.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>

namespace clebsch {
namespace {

template <class T>
void add_to(T* __restrict sum, const T* __restrict summand, std::int64_t size) {
    for (std::int64_t i = 0; i < size; ++i) sum[i] += summand[i];
}

constexpr std::int64_t cache_line = 64;  // bytes

template <class T>
class Launch {
    using Kind = OperandPlan::Kind;
    using State = OperandState<T>;
    using Way = typename State::Way;
    using Worker = WorkerState<T>;

 public:
    explicit Launch(Running<T>& running) : plan_(*running.plan), call_(running.call), launch_(running.state) {}

    void start(const ParallelFor& parallel_for) {
        for (std::size_t o = 0; o < plan_.operands.size(); ++o) {
            const OperandPlan& operand = plan_.operands[o];
            State& state = launch_.operands[o];
            state.data = static_cast<std::byte*>(call_.buffers[o].data);
            state.row_bytes = row_bytes(plan_.polynomial.operands[o], call_.buffers[o]);
            launch_.shared_rows[o] = nullptr;
            const bool straddles = reinterpret_cast<std::uintptr_t>(state.data) % cache_line != 0 || state.row_bytes % cache_line != 0;
            if (!operand.output && state.way == Way::stored && straddles) {
                if (state.own != nullptr) state.way = Way::staged_whole;
                else if (launch_.worker[0].staging[o] != nullptr) state.way = Way::staged;
            }
            if (state.way == Way::staged_whole) convert_all(o, parallel_for);
            if (!operand.output && operand.kind == Kind::shared)
                launch_.shared_rows[o] = state.way == Way::staged_whole ? state.own : plain_row(state, 0);
            if (operand.output && operand.sorted) find_last_rows(operand, state);
        }
        if (launch_.zero != nullptr) {
            std::int64_t widest = 0;
            for (const OperandPlan& operand : plan_.operands) widest = std::max(widest, operand.padded);
            std::fill_n(launch_.zero, widest, T{0});
        }
        for_each_task(parallel_for, launch_.is_prepared ? 0 : static_cast<std::int64_t>(plan_.kernels.size()), [&](std::int64_t k) {
            if (plan_.prepared_bytes[static_cast<std::size_t>(k)] > 0)
                plan_.kernels[static_cast<std::size_t>(k)]->prepare(launch_.shared_rows, launch_.preparing[k]);
        });
        for (int w = 0; w < launch_.division.workers; ++w) {
            for (std::size_t o = 0; o < plan_.operands.size(); ++o) {
                point_shared_input(o, launch_.worker[w]);
                launch_.worker[w].each[o] = {launch_.operands[o].data, 0};
            }
        }
    }

    void start_part(std::int64_t part, Worker& worker) {
        for (std::size_t o = 0; o < plan_.operands.size(); ++o) start_output(o, part, worker);
    }

    void run_rows(std::int64_t part, std::int64_t begin, std::int64_t end, Worker& worker) {
        for (std::int64_t i = begin; i < end;) {
            const int rows = collect(i, end, worker);
            if (rows == 0) continue;
            Ahead ahead = plan_.fetch == Fetch::own ? Ahead{} : ahead_of(i, std::min(end, i + plan_.block_rows), worker);
            if (plan_.fetch == Fetch::executor) fetch(ahead);
            for (std::size_t o = 0; o < plan_.operands.size(); ++o) {
                if (plan_.operands[o].output) point_output(o, part, rows, worker);
                else point_input(o, rows, worker);
            }
            if (plan_.fetch == Fetch::own) ahead = rows_in_order(rows, i, std::min(end, i + plan_.block_rows), worker);
            Block<T> block{
                .rows = rows, .inputs = worker.inputs, .outputs = worker.outputs, .begins = worker.begins, .scratch = worker.scratch};
            for (std::size_t k = 0; k < plan_.kernels.size(); ++k) {
                block.prepared = launch_.prepared[k];
                block.ahead = ahead.pieces > 0 ? &ahead : nullptr;
                plan_.kernels[k]->run(block);
            }
            fetch(ahead);
            for (std::size_t o = 0; o < plan_.operands.size(); ++o)
                if (plan_.operands[o].output) finish_block(o, part, rows, worker);
        }
    }

    void end_part(std::int64_t part, Worker& worker) {
        for (std::size_t o = 0; o < plan_.operands.size(); ++o) {
            if (!plan_.operands[o].output || !plan_.operands[o].sorted) continue;
            const State& state = launch_.operands[o];
            const bool last = part + 1 == launch_.division.parts;
            zero_stored(o, worker.runs[o].zeroed, last ? state.rows : state.before[part + 1] + 1);
            finish_last_run(o, part, worker);
        }
    }

    void finish(const ParallelFor& parallel_for) {
        for (std::size_t o = 0; o < plan_.operands.size(); ++o) {
            const OperandPlan& operand = plan_.operands[o];
            if (!operand.output) continue;
            if (launch_.operands[o].way == Way::partial) add_partial_sums(o, parallel_for);
            if (operand.sorted && launch_.division.parts > 1) add_heads(o);
        }
    }

 private:
    const PlanData& plan_;
    const Call& call_;
    LaunchState<T>& launch_;

    std::int64_t part_begin(std::int64_t part) const { return launch_.division.borders[part]; }

    std::int64_t row_of(int chain, std::int64_t row) const {
        return row_through(call_.indices.data(), plan_.chains[static_cast<std::size_t>(chain)], row);
    }

    std::byte* stored_row(const State& state, std::int64_t row) const { return state.data + row * state.row_bytes; }
    T* plain_row(const State& state, std::int64_t row) const { return reinterpret_cast<T*>(stored_row(state, row)); }
    std::byte* each_row(std::size_t o, std::int64_t row, const Worker& worker) const {
        return worker.each[o].data + (row - worker.each[o].first) * launch_.operands[o].row_bytes;
    }

    void zero_stored(std::size_t o, std::int64_t begin, std::int64_t end) const {
        if (begin < end) zero_rows(o, stored_row(launch_.operands[o], begin), end - begin);
    }
    void zero_rows(std::size_t o, std::byte* row, std::int64_t rows) const {
        const RowForm& form = plan_.operands[o].form;
        const std::int64_t stride = launch_.operands[o].row_bytes;
        const auto bytes = static_cast<std::size_t>(form.size) * size_of(form.dtype);
        if (bytes == 0) return;
        if (static_cast<std::size_t>(stride) == bytes) std::memset(row, 0, bytes * static_cast<std::size_t>(rows));
        else
            for (std::int64_t r = 0; r < rows; ++r) std::memset(row + r * stride, 0, bytes);
    }

    void zero_own(T* row, const OperandPlan& operand, std::int64_t rows = 1) const {
        if (operand.padded > 0) std::memset(static_cast<void*>(row), 0, static_cast<std::size_t>(operand.padded * rows) * sizeof(T));
    }

    // ---- before the parts

    void convert_all(std::size_t o, const ParallelFor& parallel_for) {
        const OperandPlan& operand = plan_.operands[o];
        const State& state = launch_.operands[o];
        const std::int64_t chunk = std::max<std::int64_t>(1, 16384 / std::max<std::int64_t>(1, operand.padded));
        for_each_task(parallel_for, (state.rows + chunk - 1) / chunk, [&](std::int64_t task) {
            const std::int64_t end = std::min(state.rows, (task + 1) * chunk);
            for (std::int64_t row = task * chunk; row < end; ++row)
                load_row(operand.form, stored_row(state, row), state.own + row * operand.padded);
        });
    }

    void find_last_rows(const OperandPlan& operand, State& state) const {
        state.before[0] = -1;
        for (std::int64_t part = 0; part < launch_.division.parts; ++part) {
            state.before[part + 1] = state.before[part];
            for (std::int64_t i = part_begin(part + 1); i-- > part_begin(part);) {
                const std::int64_t row = row_of(operand.chain, i);
                if (row < 0) continue;
                state.before[part + 1] = row;
                break;
            }
        }
    }

    // ---- one part

    void point_shared_input(std::size_t o, Worker& worker) const {
        if (launch_.shared_rows[o] != nullptr) std::fill_n(worker.inputs[o], plan_.block_rows, launch_.shared_rows[o]);
    }

    /// The rows of the next block: kernels read pieces of rows, which hardware does not foresee.
    Ahead ahead_of(std::int64_t begin, std::int64_t end, const Worker& worker) const {
        Ahead ahead{.piece = worker.ahead};
        for (std::size_t o = 0; o < plan_.operands.size() && begin < end; ++o) {
            const OperandPlan& operand = plan_.operands[o];
            const std::int64_t bytes = operand.form.size * static_cast<std::int64_t>(size_of(operand.form.dtype));
            if (operand.kind != Kind::each || bytes == 0) continue;
            Ahead::Piece& piece = worker.ahead[ahead.pieces++];
            piece = {.at = each_row(o, begin, worker), .bytes = bytes, .stride = launch_.operands[o].row_bytes, .rows = end - begin};
            if (piece.stride == bytes) piece = {.at = piece.at, .bytes = bytes * piece.rows, .stride = 0, .rows = 1};
            ahead.lines += (piece.bytes + cache_line - 1) / cache_line * piece.rows;
        }
        return ahead;
    }

    /// Rows reached through sorted indices: those of results that begin in this block and are written when they are complete, else those
    /// that begin in the next one, which reads [begin, end).
    Ahead rows_in_order(int rows, std::int64_t begin, std::int64_t end, const Worker& worker) const {
        Ahead ahead{.piece = worker.ahead};
        for (std::size_t o = 0; o < plan_.operands.size(); ++o) {
            const OperandPlan& operand = plan_.operands[o];
            const State& state = launch_.operands[o];
            const std::int64_t bytes = operand.form.size * static_cast<std::int64_t>(size_of(operand.form.dtype));
            if (!operand.sorted || state.way == Way::staged_whole || bytes == 0) continue;
            std::int64_t first = worker.runs[o].first_begun, count = worker.runs[o].begun;
            if (!operand.output || state.way == Way::stored) {
                first = worker.chain_rows[operand.chain][rows - 1] + 1;
                count = begin < end ? row_of(operand.chain, end - 1) + 1 - first : 0;
            }
            if (count <= 0 || count > plan_.block_rows) continue;
            worker.ahead[ahead.pieces++] = {.at = stored_row(state, first), .bytes = bytes, .stride = state.row_bytes, .rows = count};
            ahead.lines += (bytes + cache_line - 1) / cache_line * count;
        }
        return ahead;
    }

    /// Asks for what kernels have not asked for.
    static void fetch(Ahead& ahead) {
        for (; ahead.pieces > 0; ++ahead.piece, --ahead.pieces, ahead.taken = 0)
            for (Ahead::Piece& piece = *ahead.piece; piece.rows > 0; --piece.rows, piece.at += piece.stride, ahead.taken = 0)
                for (; ahead.taken < piece.bytes; ahead.taken += cache_line) __builtin_prefetch(piece.at + ahead.taken, 0, 2);
    }

    void start_output(std::size_t o, std::int64_t part, Worker& worker) const {
        const OperandPlan& operand = plan_.operands[o];
        State& state = launch_.operands[o];
        if (!operand.output) {
            worker.runs[o] = {};
        } else if (operand.sorted) {
            state.head_used[part] = 0;
            if (state.tail_row != nullptr) state.tail_row[part] = -1;
            worker.runs[o] = {};
            worker.runs[o].zeroed = state.before[part] + 1;
        } else if (state.way == Way::partial) {
            if (part == 0 && state.first_in_place) zero_stored(o, 0, state.rows);
            else zero_own(state.own + part * state.rows * operand.padded, operand, state.rows);
        }
    }

    /// Gathers rows that contribute, from i on, until a block is full; zeroes the `each` outputs of the others. Returns how many there are.
    int collect(std::int64_t& i, std::int64_t end, Worker& worker) const {
        const std::size_t chains = plan_.chains.size();
        int rows = static_cast<int>(std::min<std::int64_t>(end - i, plan_.block_rows));
        bool whole = true;
        for (std::size_t c = 0; c < chains; ++c)
            whole &= rows_through(call_.indices.data(), plan_.chains[c], i, rows, worker.chain_rows[c]);
        if (whole) {
            for (int r = 0; r < rows; ++r) worker.iteration[r] = i++;
            return rows;
        }
        for (rows = 0; i < end && rows < plan_.block_rows; ++i) {
            std::uint64_t missing = 0;
            for (std::size_t c = 0; c < chains; ++c) {
                const std::int64_t row = row_of(static_cast<int>(c), i);
                worker.chain_rows[c][rows] = row;
                if (row < 0) missing |= std::uint64_t{1} << c;
            }
            worker.iteration[rows] = i;
            if (missing != 0 && plan_.masked(missing)) {
                for (std::size_t o = 0; o < plan_.operands.size(); ++o)
                    if (plan_.operands[o].output && plan_.operands[o].kind == Kind::each) zero_rows(o, each_row(o, i, worker), 1);
                continue;
            }
            ++rows;
        }
        return rows;
    }

    void point_input(std::size_t o, int rows, Worker& worker) const {
        const OperandPlan& operand = plan_.operands[o];
        const State& state = launch_.operands[o];
        if (operand.kind == Kind::shared) return;
        const T** pointers = worker.inputs[o];
        if (operand.kind == Kind::each) {
            for (int r = 0; r < rows; ++r) pointers[r] = reinterpret_cast<const T*>(each_row(o, worker.iteration[r], worker));
            if (state.way == Way::stored) return;
            for (int r = 0; r < rows; ++r) {
                T* staged = worker.staging[o] + r * operand.padded;
                load_row(operand.form, reinterpret_cast<const std::byte*>(pointers[r]), staged);
                pointers[r] = staged;
            }
            return;
        }
        const std::int64_t* numbers = worker.chain_rows[operand.chain];
        if (operand.sorted && state.way == Way::staged) return point_sorted_input(o, rows, worker);
        for (int r = 0; r < rows; ++r) {
            const std::int64_t row = numbers[r];
            if (row < 0) {
                pointers[r] = launch_.zero;
            } else if (state.way == Way::stored) {
                pointers[r] = plain_row(state, row);
            } else if (state.way == Way::staged_whole) {
                pointers[r] = state.own + row * operand.padded;
            } else if (r > 0 && numbers[r - 1] == row) {
                pointers[r] = pointers[r - 1];
            } else {
                T* staged = worker.staging[o] + r * operand.padded;
                load_row(operand.form, stored_row(state, row), staged);
                pointers[r] = staged;
            }
        }
    }

    /// Every row is converted once a part, just before it is used.
    void point_sorted_input(std::size_t o, int rows, Worker& worker) const {
        const OperandPlan& operand = plan_.operands[o];
        const State& state = launch_.operands[o];
        typename Worker::Run& run = worker.runs[o];
        const std::int64_t open = run.numbers != nullptr ? run.slot : -1;
        std::int64_t free = 0;
        for (int r = 0; r < rows; ++r) {
            const std::int64_t row = worker.chain_rows[operand.chain][r];
            if (row < 0) {
                worker.inputs[o][r] = launch_.zero;
                continue;
            }
            if (run.numbers == nullptr || row != run.row) {
                if (free == open) ++free;
                run.row = row;
                run.slot = free++;
                run.numbers = worker.staging[o] + run.slot * operand.padded;
                load_row(operand.form, stored_row(state, row), run.numbers);
            }
            worker.inputs[o][r] = run.numbers;
        }
    }

    void point_output(std::size_t o, std::int64_t part, int rows, Worker& worker) const {
        const OperandPlan& operand = plan_.operands[o];
        const State& state = launch_.operands[o];
        T** pointers = worker.outputs[o];
        if (operand.kind == Kind::each) {
            for (int r = 0; r < rows; ++r) {
                pointers[r] = state.way == Way::stored ? reinterpret_cast<T*>(each_row(o, worker.iteration[r], worker))
                                                       : worker.staging[o] + r * operand.padded;
                for (const Range& range : operand.zeroed) std::fill(pointers[r] + range.begin, pointers[r] + range.end, T{0});
            }
            return;
        }
        if (operand.sorted) return point_sorted_output(o, part, rows, worker);
        const bool in_place = part == 0 && state.first_in_place;
        for (int r = 0; r < rows; ++r) {
            const std::int64_t row = operand.kind == Kind::shared ? 0 : worker.chain_rows[operand.chain][r];
            if (row < 0) pointers[r] = worker.discard;
            else pointers[r] = in_place ? plain_row(state, row) : state.own + (part * state.rows + row) * operand.padded;
        }
    }

    void point_sorted_output(std::size_t o, std::int64_t part, int rows, Worker& worker) const {
        const OperandPlan& operand = plan_.operands[o];
        const State& state = launch_.operands[o];
        typename Worker::Run& run = worker.runs[o];
        bool seen = false;  // whether a row of this block is of the run at hand
        run.begun = 0;
        const std::int64_t open = run.numbers != nullptr ? run.slot : -1;
        std::int64_t free = 0;  // rows of earlier blocks are stored: their places, still in a cache, take the next ones
        if (operand.begun) std::fill_n(worker.begins[o], rows, std::uint8_t{0});
        for (int r = 0; r < rows; ++r) {
            const std::int64_t row = worker.chain_rows[operand.chain][r];
            if (row < 0) {
                worker.outputs[o][r] = worker.discard;
                continue;
            }
            if (row != run.row) {
                if (state.way == Way::staged && !seen) store_run(o, part, run);
                run.row = row;
                if (run.begun == 0) run.first_begun = row;
                run.begun = row - run.first_begun + 1;
                const bool zeroes = state.way == Way::stored && !operand.begun;  // staged rows are written as a whole
                zero_stored(o, run.zeroed, zeroes ? row + 1 : row);
                run.zeroed = std::max(run.zeroed, row + 1);
                if (operand.begun) worker.begins[o][r] = 1;
                if (row == state.before[part]) {  // the part before has begun this row
                    run.numbers = state.heads + part * operand.padded;
                    state.head_used[part] = 1;
                    if (!operand.begun) zero_own(run.numbers, operand);
                } else if (state.way == Way::stored) {
                    run.numbers = plain_row(state, row);
                } else {
                    if (free == open) ++free;
                    run.slot = free++;
                    run.numbers = worker.staging[o] + run.slot * operand.padded;
                    if (!operand.begun) zero_own(run.numbers, operand);
                }
            }
            seen = true;
            worker.outputs[o][r] = run.numbers;
        }
    }

    bool is_head(const State& state, const OperandPlan& operand, std::int64_t part, const T* numbers) const {
        return state.heads != nullptr && numbers == state.heads + part * operand.padded;
    }

    void store_run(std::size_t o, std::int64_t part, const typename Worker::Run& run) const {
        const State& state = launch_.operands[o];
        if (run.numbers != nullptr && !is_head(state, plan_.operands[o], part, run.numbers))
            store_row(plan_.operands[o].form, run.numbers, stored_row(state, run.row));
    }

    void finish_block(std::size_t o, std::int64_t part, int rows, Worker& worker) const {
        const OperandPlan& operand = plan_.operands[o];
        const State& state = launch_.operands[o];
        if (state.way != Way::staged) return;
        T** pointers = worker.outputs[o];
        if (operand.kind == Kind::each) {
            for (int r = 0; r < rows; ++r) store_row(operand.form, pointers[r], each_row(o, worker.iteration[r], worker));
            return;
        }
        // Runs that ended inside the block; the last one goes on.
        for (int r = 0; r + 1 < rows; ++r)
            if (pointers[r] != pointers[r + 1] && pointers[r] != worker.discard)
                store_run(o, part, {.row = worker.chain_rows[operand.chain][r], .numbers = pointers[r]});
    }

    /// Whether later parts may add to the last row of this one.
    bool may_go_on(const OperandPlan& operand, std::int64_t part, std::int64_t row) const {
        if (part + 1 == launch_.division.parts || part_begin(part + 1) == launch_.division.rows) return false;
        const std::int64_t next = row_of(operand.chain, part_begin(part + 1));
        return next < 0 || next == row;
    }

    void finish_last_run(std::size_t o, std::int64_t part, Worker& worker) const {
        const OperandPlan& operand = plan_.operands[o];
        const State& state = launch_.operands[o];
        const typename Worker::Run& run = worker.runs[o];
        if (state.way != Way::staged || run.numbers == nullptr || is_head(state, operand, part, run.numbers)) return;
        if (!may_go_on(operand, part, run.row)) return store_run(o, part, run);
        std::copy_n(run.numbers, operand.padded, state.tails + part * operand.padded);
        state.tail_row[part] = run.row;
    }

    // ---- after the parts

    void add_heads(std::size_t o) const {
        const OperandPlan& operand = plan_.operands[o];
        const State& state = launch_.operands[o];
        typename Worker::Run open;  // staged rows: a sum that the next part's head may still add to
        for (std::int64_t part = 0; part < launch_.division.parts; ++part) {
            T* head = state.heads + part * operand.padded;
            const std::int64_t row = state.before[part];
            if (state.head_used[part] != 0) {
                if (state.way == Way::stored) {
                    add_to(plain_row(state, row), head, operand.form.size);
                } else if (open.numbers != nullptr && open.row == row) {
                    add_to(open.numbers, head, operand.form.size);
                } else {
                    if (open.numbers != nullptr) store_row(operand.form, open.numbers, stored_row(state, open.row));
                    open = {.row = row, .numbers = head};
                }
            }
            if (state.way == Way::staged && state.tail_row[part] >= 0) {
                if (open.numbers != nullptr) store_row(operand.form, open.numbers, stored_row(state, open.row));
                open = {.row = state.tail_row[part], .numbers = state.tails + part * operand.padded};
            }
        }
        if (open.numbers != nullptr) store_row(operand.form, open.numbers, stored_row(state, open.row));
    }

    void add_partial_sums(std::size_t o, const ParallelFor& parallel_for) const {
        const OperandPlan& operand = plan_.operands[o];
        const State& state = launch_.operands[o];
        const std::int64_t size = operand.form.size;
        if (size == 0 || (state.first_in_place && launch_.division.parts == 1)) return;
        const auto own_row = [&](std::int64_t part, std::int64_t row) { return state.own + (part * state.rows + row) * operand.padded; };
        constexpr std::int64_t chunk = 8192;  // numbers a task adds up
        if (state.first_in_place && size >= 2 * chunk) {
            const std::int64_t pieces = (size + chunk - 1) / chunk;
            for_each_task(parallel_for, state.rows * pieces, [&](std::int64_t task) {
                const std::int64_t row = task / pieces, begin = task % pieces * chunk;
                for (std::int64_t part = 1; part < launch_.division.parts; ++part)
                    add_to(plain_row(state, row) + begin, own_row(part, row) + begin, std::min(chunk, size - begin));
            });
            return;
        }
        const std::int64_t rows_each = std::max<std::int64_t>(1, chunk / size);
        for_each_task(parallel_for, (state.rows + rows_each - 1) / rows_each, [&](std::int64_t task) {
            for (std::int64_t row = task * rows_each; row < std::min(state.rows, (task + 1) * rows_each); ++row) {
                T* sum = state.first_in_place ? plain_row(state, row) : own_row(0, row);
                for (std::int64_t part = 1; part < launch_.division.parts; ++part) add_to(sum, own_row(part, row), size);
                if (!state.first_in_place) store_row(operand.form, sum, stored_row(state, row));
            }
        });
    }
};

}  // namespace

template <class T>
void start(Running<T>& running, const ParallelFor& parallel_for) {
    Launch<T>(running).start(parallel_for);
}
template <class T>
void start_part(Running<T>& running, std::int64_t part, int worker) {
    Launch<T>(running).start_part(part, running.state.worker[worker]);
}
template <class T>
void see_each(Running<T>& running, std::size_t operand, int worker, void* data, std::int64_t first) {
    running.state.worker[worker].each[operand] = {static_cast<std::byte*>(data), first};
}
template <class T>
void run_rows(Running<T>& running, std::int64_t part, int worker, std::int64_t begin, std::int64_t end) {
    Launch<T>(running).run_rows(part, begin, end, running.state.worker[worker]);
}
template <class T>
void end_part(Running<T>& running, std::int64_t part, int worker) {
    Launch<T>(running).end_part(part, running.state.worker[worker]);
}
template <class T>
void finish(Running<T>& running, const ParallelFor& parallel_for) {
    Launch<T>(running).finish(parallel_for);
}

template <class T>
void execute(Running<T>& running, const ParallelFor& parallel_for) {
    const Division& division = running.state.division;
    start(running, parallel_for);
    std::atomic<std::int64_t> next{0};
    for_each_task(parallel_for, division.workers, [&](std::int64_t w) {
        const int worker = static_cast<int>(w);
        for (std::int64_t part = next.fetch_add(1); part < division.parts; part = next.fetch_add(1)) {
            start_part(running, part, worker);
            run_rows(running, part, worker, division.borders[part], division.borders[part + 1]);
            end_part(running, part, worker);
        }
    });
    finish(running, parallel_for);
}

template void start(Running<float>&, const ParallelFor&);
template void start(Running<double>&, const ParallelFor&);
template void start_part(Running<float>&, std::int64_t, int);
template void start_part(Running<double>&, std::int64_t, int);
template void see_each(Running<float>&, std::size_t, int, void*, std::int64_t);
template void see_each(Running<double>&, std::size_t, int, void*, std::int64_t);
template void run_rows(Running<float>&, std::int64_t, int, std::int64_t, std::int64_t);
template void run_rows(Running<double>&, std::int64_t, int, std::int64_t, std::int64_t);
template void end_part(Running<float>&, std::int64_t, int);
template void end_part(Running<double>&, std::int64_t, int);
template void finish(Running<float>&, const ParallelFor&);
template void finish(Running<double>&, const ParallelFor&);
template void execute(Running<float>&, const ParallelFor&);
template void execute(Running<double>&, const ParallelFor&);

}  // namespace clebsch
