// Runs a fold program over a block, fold_rows rows at a time. Lanes are rows where numbers are channel-free and channels everywhere else.
#include "run/kernels/ahead.hpp"
#include "run/kernels/fold_parts.hpp"

namespace clebsch::CLEBSCH_ISA {
namespace {

template <class T>
struct Run {
    const FoldView<T>& program;
    const Block<T>& block;
    int first = 0, rows = 0;  ///< of the block
    T* scratch = nullptr;
    T *slots = nullptr, *sums = nullptr, *matrix = nullptr, *product = nullptr, *reduced = nullptr;
    const T** blend_rows = nullptr;  ///< [blend][fold_rows]
    int* run_ends = nullptr;         ///< [run operand][sum_rows]
    Stream* streams = nullptr;       ///< [operand]; the last is for blends and stays empty

    RowsIn<T> in(const FoldRows& rows_of) const {
        if (rows_of.operand >= program.operands)
            return {blend_rows + (rows_of.operand - program.operands) * fold_rows, rows_of.offset, streams + program.operands};
        return {block.inputs[rows_of.operand] + first, rows_of.offset, streams + rows_of.operand};
    }
    RowsOut<T> out(const FoldRows& rows_of) const {
        return {block.outputs[rows_of.operand] + first, rows_of.offset, streams + rows_of.operand};
    }
    Factor<T> factor(const FoldFactor& f) const {
        Factor<T> result;
        result.weights = f.weights;
        result.scale = T(f.scale);
        for (int n = 0; n < f.weights; ++n) result.weight[n] = in(f.weight[n]);
        return result;
    }
    const int* run_end(int operand) const {
        int n = 0;
        while (program.run_operand[n] != operand) ++n;
        return run_ends + n * sum_rows;
    }
};

/// Slots of fold_rows rows from `first` on.
template <class T>
T* slots_of(const Run<T>& run, int first) {
    return run.slots + std::int64_t(1 + run.program.numbers + run.program.products) * first;
}

/// Channel-free numbers of all rows into slots, products of them, and zeroed sums.
template <class T>
void gather(const Run<T>& run, int first) {
    const FoldView<T>& p = run.program;
    T* const slots = slots_of(run, first);
    const int rows = run.rows - first < fold_rows ? run.rows - first : fold_rows;
    for (int r = 0; r < fold_rows; ++r) slots[r] = T(1);
    T* slot = slots + fold_rows;
    for (int n = 0; n < p.numbers; ++n, slot += fold_rows) {
        const T* const* row = run.block.inputs[p.number[n].operand] + run.first + first;
        const std::int64_t offset = p.number[n].offset;
        for (int r = 0; r < rows; ++r) slot[r] = row[r][offset];
        for (int r = rows; r < fold_rows; ++r) slot[r] = T(0);
    }
    for (int n = 0; n < p.products; ++n, slot += fold_rows) {
        const T *a = slots + std::int64_t(p.product[n].a) * fold_rows, *b = slots + std::int64_t(p.product[n].b) * fold_rows;
        for (int r = 0; r < fold_rows; ++r) slot[r] = a[r] * b[r];
    }
    for (std::int64_t i = 0; i < std::int64_t(p.outputs) * fold_rows; ++i) run.sums[i] = T(0);
}

/// One number of every row of a step.
template <class T>
struct RowVector {
    static constexpr int vectors = fold_rows / lanes_of<T>;
    Vector<T> v[vectors];
};
template <class T>
CLEBSCH_INLINE RowVector<T> load_rows(const T* p) {
    RowVector<T> result;
#pragma GCC unroll 8
    for (int n = 0; n < RowVector<T>::vectors; ++n) result.v[n] = load(p + n * lanes_of<T>);
    return result;
}
template <class T>
CLEBSCH_INLINE void store_rows(T* p, const RowVector<T>& rows) {
#pragma GCC unroll 8
    for (int n = 0; n < RowVector<T>::vectors; ++n) store(p + n * lanes_of<T>, rows.v[n]);
}
template <class T>
CLEBSCH_INLINE RowVector<T> product(T coefficient, const T* p) {
    const Vector<T> c = broadcast(coefficient);
    RowVector<T> result;
#pragma GCC unroll 8
    for (int n = 0; n < RowVector<T>::vectors; ++n) result.v[n] = c * load(p + n * lanes_of<T>);
    return result;
}
template <class T>
CLEBSCH_INLINE void add_product(RowVector<T>& sum, T coefficient, const T* p) {
    const Vector<T> c = broadcast(coefficient);
#pragma GCC unroll 8
    for (int n = 0; n < RowVector<T>::vectors; ++n) sum.v[n] += c * load(p + n * lanes_of<T>);
}

template <class T>
T* matrix_of(const Run<T>& run, int first) {
    return first < fold_rows ? run.matrix : run.matrix + run.program.matrix_half;
}

/// Targets of `Terms` terms each (0: `terms` of them). Known numbers of terms make straight code: a loop of few rounds costs a wrong guess
/// each time.
template <class T, int Halves, int Terms>
CLEBSCH_INLINE void fold_class(const Run<T>& run, int first, const int* target, const T* coefficient, const int* source, FoldClass kind) {
    const int count = Terms > 0 ? Terms : kind.terms;
    const T* slots[2] = {slots_of(run, first), slots_of(run, first + fold_rows)};
    T* at = matrix_of(run, first);
    T* matrix[2] = {at, at + run.program.matrix_half};
    for (int n = 0; n < kind.targets; ++n, coefficient += count, source += count) {
        RowVector<T> sum[Halves];
#pragma GCC unroll 2
        for (int h = 0; h < Halves; ++h) sum[h] = product(coefficient[0], slots[h] + source[0]);
#pragma GCC unroll 4
        for (int t = 1; t < count; ++t)
#pragma GCC unroll 2
            for (int h = 0; h < Halves; ++h) add_product(sum[h], coefficient[t], slots[h] + source[t]);
#pragma GCC unroll 2
        for (int h = 0; h < Halves; ++h) store_rows(matrix[h] + target[n], sum[h]);
    }
}

/// Of fold_rows rows from `first` on, or of twice as many.
template <class T, int Halves>
void fold_matrices(const Run<T>& run, const FoldFolding& folding, int first) {
    const FoldView<T>& p = run.program;
    const int* target = p.targets + folding.first_zero;
    for (int n = 0; n < folding.zeros; ++n)
        for (int h = 0; h < Halves; ++h) store_rows(matrix_of(run, first) + h * p.matrix_half + target[n], RowVector<T>{});
    target = p.targets + folding.first_target;
    const T* coefficient = p.coefficients + folding.first_term;
    const int* source = p.sources + folding.first_term;
    for (int c = 0; c < folding.classes; ++c) {
        const FoldClass& kind = p.classes[folding.first_class + c];
        if (kind.terms == 1) fold_class<T, Halves, 1>(run, first, target, coefficient, source, kind);
        else if (kind.terms == 2) fold_class<T, Halves, 2>(run, first, target, coefficient, source, kind);
        else fold_class<T, Halves, 0>(run, first, target, coefficient, source, kind);
        target += kind.targets;
        coefficient += kind.terms * kind.targets;
        source += kind.terms * kind.targets;
    }
}

/// Both halves at a time are worth code of their own where vectors are wide, and in the usual dtype.
template <class T>
void fold_matrices(const Run<T>& run, const FoldFolding& folding) {
    if constexpr (vector_bytes >= 32 && sizeof(T) == 4)
        if (run.rows > fold_rows) return fold_matrices<T, 2>(run, folding, 0);
    for (int first = 0; first < run.rows; first += fold_rows) fold_matrices<T, 1>(run, folding, first);
}

/// A vector of channels of sum over terms of factor * row, added to `out` where `add` says so.
template <class T, bool Part>
CLEBSCH_INLINE void blend_vector(const Factor<T>* factor, const RowsIn<T>* in, int terms, bool add, const FoldBlend& blend, T* out,
                                 unsigned r, std::int64_t c, Tile<T, 1, Part> tile) {
    Vector<T> f[most_sinks];
    const T* row[most_sinks];
    for (int n = 0; n < terms; ++n) {
        f[n] = broadcast(factor[n].scale);
        for (int w = 0; w < factor[n].weights; ++w) {
            f[n] *= tile.get(factor[n].weight[w].at(r) + c, 0);
            factor[n].weight[w].stream->advance(vector_bytes);
        }
        row[n] = in[n].at(r) + c;
    }
    for (int k = 0; k < blend.components; ++k) {
        T* o = out + k * blend.channels + c;
        Vector<T> sum{};
        if (add) sum = tile.get(o, 0);
        for (int n = 0; n < terms; ++n) sum += f[n] * tile.get(row[n] + k * blend.channels, 0);
        tile.put(o, 0, sum);
    }
}

template <class T>
void make_blend(const Run<T>& run, const FoldBlend& blend, int index) {
    constexpr int lanes = lanes_of<T>;
    Factor<T> factor[most_sinks];
    RowsIn<T> in[most_sinks];
    for (int first = 0; first < blend.terms; first += most_sinks) {
        const int terms = blend.terms - first < most_sinks ? blend.terms - first : most_sinks;
        for (int n = 0; n < terms; ++n) {
            factor[n] = run.factor(blend.term[first + n].factor);
            in[n] = run.in(blend.term[first + n].row);
        }
        for (int r = 0; r < run.rows; ++r) {
            T* out = run.scratch + run.program.blends_at + blend.offset + r * blend.stride;
            run.blend_rows[index * fold_rows + r] = out;
            std::int64_t c = 0;
            for (; c + lanes <= blend.channels; c += lanes)
                blend_vector<T, false>(factor, in, terms, first > 0, blend, out, unsigned(r), c, {});
            if (c < blend.channels)
                blend_vector<T, true>(factor, in, terms, first > 0, blend, out, unsigned(r), c, {int(blend.channels - c)});
        }
    }
}

template <class T>
void run_multiply(const Run<T>& run, const FoldMultiply& step) {
    const FoldMatrix& matrix = run.program.matrix[step.matrix];
    Multiply<T> task;
    task.rows = run.rows;
    task.inputs = matrix.inputs;
    task.outputs = matrix.outputs;
    task.diagonal = matrix.diagonal;
    task.channels = step.channels;
    task.in = run.in(step.in);
    task.matrix = run.matrix + std::int64_t(step.place) * fold_rows;
    for (int first = 0; first < step.sinks; first += most_sinks) {
        task.sinks = step.sinks - first < most_sinks ? step.sinks - first : most_sinks;
        for (int n = 0; n < task.sinks; ++n) {
            const FoldSink& from = step.sink[first + n];
            Sink<T>& to = task.sink[n];
            to.dot = from.dot;
            to.overwrite = from.overwrite;
            to.factor = run.factor(from.factor);
            to.out = run.out(from.out);
            if (from.dot) to.with = run.in(from.with);
            to.run_end = run.run_end(from.out.operand);
        }
        multiply(task);
    }
}

/// Rows that begin a sum where all do, or none does.
struct Begins {
    std::uint8_t begins[sum_rows];
};
constexpr Begins same_begins(std::uint8_t value) {
    Begins result{};
    for (std::uint8_t& begins : result.begins) begins = value;
    return result;
}
constexpr Begins every_row = same_begins(1), no_row = same_begins(0);

template <class T>
void prepare_sums(const Run<T>& run, const FoldSums& step, Sum<T>* sums) {
    for (int n = 0; n < step.multiplies; ++n) {
        const FoldMultiply& from = run.program.multiply[step.multiply[n]];
        const FoldMatrix& matrix = run.program.matrix[from.matrix];
        const FoldSink& sink = from.sink[0];
        Sum<T>& to = sums[n];
        const RowsIn<T> in = run.in(from.in);
        const RowsOut<T> out = run.out(sink.out);
        to = {.in = in.row,
              .weight = nullptr,
              .out = out.row,
              .run_end = run.run_end(sink.out.operand),
              .begins = sink.overwrite ? every_row.begins
                        : sink.begin   ? run.block.begins[sink.out.operand] + run.first
                                       : no_row.begins,
              .matrix = run.matrix + std::int64_t(from.place) * fold_rows,
              .half = run.program.matrix_half,
              .column = std::int64_t(matrix.outputs) * fold_rows,
              .in_offset = in.offset,
              .weight_offset = 0,
              .out_offset = out.offset,
              .channels = from.channels,
              .rows = run.rows,
              .inputs = matrix.inputs,
              .outputs = matrix.outputs,
              .diagonal = matrix.diagonal,
              .pattern = matrix.pattern,
              .stream = nullptr};
        if (sink.factor.weights == 0) continue;
        const RowsIn<T> weight = run.in(sink.factor.weight[0]);
        to.weight = weight.row;
        to.weight_offset = weight.offset;
        to.stream = weight.stream;
    }
}

/// To the next rows of the block.
template <class T>
CLEBSCH_INLINE void move_on(Sum<T>& sum, int rows) {
    sum.in += rows;
    sum.out += rows;
    if (sum.weight != nullptr) sum.weight += rows;
    if (sum.begins != every_row.begins && sum.begins != no_row.begins) sum.begins += rows;
}

template <class T>
void run_sums(const Run<T>& run, const FoldSums& step, Pace& pace) {
    static_assert(sizeof(Sum<T>) <= sum_bytes);
    Sum<T>* sums = reinterpret_cast<Sum<T>*>(run.scratch + run.program.multiplies_at) + step.first;
    if (run.first == 0 || run.program.blends > 0) prepare_sums(run, step, sums);  // blends are at the same place for all rows
    else
        for (int n = 0; n < step.multiplies; ++n) move_on(sums[n], run.program.rows);
    for (int n = 0; n < step.multiplies; ++n, pace.turn()) {
        sums[n].rows = run.rows;
        multiply_sum(sums[n]);
    }
}

/// D as [position][row], then its terms into the sums.
template <class T>
void contract(const Run<T>& run, const FoldReduce& step, int size) {
    constexpr int lanes = lanes_of<T>;
    const FoldView<T>& p = run.program;
    T* turned = run.product;  // free again after the reduction
    const int positions = step.diagonal ? 1 : step.left_components * step.right_components;
    for (int first_row = 0; first_row < run.rows; first_row += lanes) {
        const T* reduced = run.reduced + std::int64_t(first_row) * size;
        for (int at = 0; at < positions; at += lanes) {
            Vector<T> square[lanes];
#pragma GCC unroll 16
            for (int l = 0; l < lanes; ++l) square[l] = load(reduced + std::int64_t(l) * size + at);
            transpose_square<T>(square);
#pragma GCC unroll 16
            for (int l = 0; l < lanes; ++l) store(turned + (at + l) * fold_rows + first_row, square[l]);
        }
    }
    const int* target = p.targets + step.first_target;
    const T* coefficient = p.coefficients + step.first_term;
    const int* source = p.sources + step.first_term;
    const int* slot = p.term_slots + step.first_term;
    for (int c = 0; c < step.classes; ++c) {
        const FoldClass& kind = p.classes[step.first_class + c];
        for (int n = 0; n < kind.targets; ++n, ++target) {
            T* out = run.sums + *target;
            RowVector<T> sum = load_rows(out);
            for (int t = 0; t < kind.terms; ++t, ++coefficient, ++source, ++slot) {
                RowVector<T> term = load_rows(turned + *source);
                if (*slot > 0) {
                    const RowVector<T> by = load_rows(run.slots + *slot);
                    for (int v = 0; v < RowVector<T>::vectors; ++v) term.v[v] *= by.v[v];
                }
                const Vector<T> value = broadcast(*coefficient);
#pragma GCC unroll 8
                for (int v = 0; v < RowVector<T>::vectors; ++v) sum.v[v] += value * term.v[v];
            }
            store_rows(out, sum);
        }
    }
}

template <class T>
void run_reduce(const Run<T>& run, const FoldReduce& step) {
    Reduce<T> task;
    task.rows = run.rows;
    task.left_components = step.left_components;
    task.right_components = step.right_components;
    task.diagonal = step.diagonal;
    task.channels = step.channels;
    task.left = run.in(step.left);
    task.right = run.in(step.right);
    task.factor = run.factor(step.factor);
    task.product = run.product;
    task.reduced = run.reduced;
    reduce(task);
    contract(run, step, reduced_size(step.left_components, step.right_components, sizeof(T)));
}

/// Channel-free sums to their rows, in increasing order of rows.
template <class T>
void give_sums(const Run<T>& run) {
    const FoldView<T>& p = run.program;
    for (int n = 0; n < p.outputs; ++n) {
        T* const* row = run.block.outputs[p.output[n].operand] + run.first;
        const std::int64_t offset = p.output[n].offset;
        const T* sum = run.sums + n * fold_rows;
        if (p.output[n].overwrite)
            for (int r = 0; r < run.rows; ++r) row[r][offset] = sum[r];
        else
            for (int r = 0; r < run.rows; ++r) row[r][offset] += sum[r];
    }
}

template <class T>
void find_runs(const Run<T>& run) {
    for (int n = 0; n < run.program.run_operands; ++n) {
        T* const* row = run.block.outputs[run.program.run_operand[n]] + run.first;
        int* end = run.run_ends + n * sum_rows;
        end[run.rows - 1] = run.rows;
        for (int r = run.rows - 1; r-- > 0;) end[r] = row[r] == row[r + 1] ? end[r + 1] : r + 1;
    }
}

/// Where the rows after these begin: known inside the block, guessed beyond it (prefetches never fault).
template <class T>
void find_streams(const Run<T>& run) {
    const Block<T>& block = run.block;
    for (int o = 0; o <= run.program.operands; ++o) run.streams[o] = {};
    for (int o = 0; o < run.program.operands; ++o) {
        if (!run.program.streamed[o] || run.rows < 2) continue;
        const T* const* row = (block.inputs[o] != nullptr ? block.inputs[o] : block.outputs[o]) + run.first;
        const auto address = [&](int r) { return reinterpret_cast<std::uintptr_t>(row[r]); };
        const std::uintptr_t stride = (address(run.rows - 1) - address(0)) / unsigned(run.rows - 1);
        if (stride == 0 || stride > std::uintptr_t{1} << 20) continue;  // row does not follow row here
        const int step = run.program.rows;
        const std::uintptr_t next = run.first + step < block.rows ? address(step) : address(0) + unsigned(step) * stride;
        run.streams[o] = {reinterpret_cast<const char*>(next), reinterpret_cast<const char*>(next + unsigned(step) * stride)};
    }
}

template <class T>
void run_any(const FoldView<T>& program, const Block<T>& block) {
    T* scratch = reinterpret_cast<T*>(block.scratch);
    Run<T> run{program, block};
    run.scratch = scratch;
    run.slots = scratch + program.slots_at;
    run.sums = scratch + program.sums_at;
    run.matrix = scratch + program.matrix_at;
    run.product = scratch + program.product_at;
    run.reduced = scratch + program.reduced_at;
    run.blend_rows = reinterpret_cast<const T**>(scratch + program.pointers_at);
    run.run_ends = reinterpret_cast<int*>(scratch + program.runs_at);
    run.streams = reinterpret_cast<Stream*>(scratch + program.streams_at);
    int turns = 0;
    for (int s = 0; s < program.steps; ++s) {
        const FoldStep& step = program.step[s];
        turns += step.kind == FoldStepKind::sums ? program.sums[step.index].multiplies : step.kind == FoldStepKind::multiply ? 1 : 0;
    }
    Pace pace(block.ahead, turns * ((block.rows + program.rows - 1) / program.rows));
    for (run.first = 0; run.first < block.rows; run.first += program.rows) {
        run.rows = block.rows - run.first < program.rows ? block.rows - run.first : program.rows;
        find_runs(run);
        find_streams(run);
        for (int first = 0; first < run.rows; first += fold_rows) gather(run, first);
        for (int s = 0; s < program.steps; ++s) {
            const int index = program.step[s].index;
            switch (program.step[s].kind) {
                case FoldStepKind::blend:
                    make_blend(run, program.blend[index], index);
                    break;
                case FoldStepKind::folding:
                    fold_matrices(run, program.folding[index]);
                    break;
                case FoldStepKind::multiply:
                    run_multiply(run, program.multiply[index]);
                    pace.turn();
                    break;
                case FoldStepKind::sums:
                    run_sums(run, program.sums[index], pace);
                    break;
                case FoldStepKind::reduce:
                    run_reduce(run, program.reduce[index]);
                    break;
            }
        }
        give_sums(run);
    }
}

}  // namespace

void run_fold(const FoldView<float>& program, const Block<float>& block) { run_any(program, block); }
void run_fold(const FoldView<double>& program, const Block<double>& block) { run_any(program, block); }

}  // namespace clebsch::CLEBSCH_ISA
