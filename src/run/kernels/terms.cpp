// Channel-wise polynomials: every step works on a tile of up to eight vectors of channels, which stay in registers while a step's terms are
// added; results that later steps need live in scratch, small enough for the first-level cache.
#include "run/kernels/terms.hpp"

#include "run/simd.hpp"

namespace clebsch::CLEBSCH_ISA {
namespace {

template <class T, int n>
struct Tile {
    Vector<T> v[n];
};

/// sum[k] += sum over terms [first, end) of coefficient * a's vector k (* b's). Narrow tiles keep several sums, to have enough independent
/// additions.
template <class T, int n, bool with_coefficient, bool with_b>
[[gnu::always_inline]] inline void add_terms(const TermsGroup& group, int first, int end, const T* const* slots, const T* coefficients,
                                             Tile<T, n>& sum) {
    constexpr int lanes = lanes_of<T>;
    constexpr int chains = n >= 8 ? 1 : n == 4 ? 2 : 4;
    const auto add = [&](int t, Tile<T, n>& to) {
        const T* a = slots[group.term[t].a];
        const T* b = with_b ? slots[group.term[t].b] : nullptr;
        const T c = with_coefficient ? coefficients[t] : T{1};
        for (int k = 0; k < n; ++k) {
            Vector<T> factor = load(a + k * lanes);
            if constexpr (with_b && with_coefficient) factor *= c;
            if constexpr (with_b) to.v[k] += factor * load(b + k * lanes);
            else to.v[k] += factor * c;
        }
    };
    int t = first;
    if constexpr (chains > 1) {
        Tile<T, n> more[chains - 1] = {};
        for (; t + chains <= end; t += chains) {
            add(t, sum);
            for (int c = 1; c < chains; ++c) add(t + c, more[c - 1]);
        }
        for (int c = 1; c < chains; ++c)
            for (int k = 0; k < n; ++k) sum.v[k] += more[c - 1].v[k];
    }
    for (; t < end; ++t) add(t, sum);
}

template <class T>
struct Scratch {
    const T** slots;
    T* scalars;
    T* coefficients;
    T* sums;   ///< one vector per output that sums over channels
    T* tiles;  ///< slots * tile width
    T* edge;   ///< inputs and one output of the last, incomplete tile
};

/// Computes all steps on n vectors of channels and hands every output's tile to `finish`.
template <class T, int n, class Finish>
[[gnu::always_inline]] inline void run_tile(const TermsGroup& group, const Scratch<T>& scratch, const Finish& finish) {
    constexpr int lanes = lanes_of<T>;
    for (int s = 0; s < group.steps; ++s) {
        const TermsStep& step = group.step[s];
        T* to = scratch.tiles + std::int64_t{step.destination - 1 - group.inputs} * n * lanes;
        scratch.slots[step.destination] = to;
        if (step.product) {
            const T* a = scratch.slots[step.first];
            const T* b = scratch.slots[step.second];
            for (int k = 0; k < n; ++k) store(to + k * lanes, load(a + k * lanes) * load(b + k * lanes));
        } else {
            Tile<T, n> sum = {};
            add_terms<T, n, true, false>(group, step.first, step.second, scratch.slots, scratch.coefficients, sum);
            for (int k = 0; k < n; ++k) store(to + k * lanes, sum.v[k]);
        }
    }
    for (int o = 0; o < group.outputs; ++o) {
        const TermsOutput& output = group.output[o];
        Tile<T, n> sum = {};
        add_terms<T, n, true, false>(group, output.sums, output.products, scratch.slots, scratch.coefficients, sum);
        add_terms<T, n, false, true>(group, output.products, output.unit_products, scratch.slots, scratch.coefficients, sum);
        add_terms<T, n, true, true>(group, output.unit_products, output.end, scratch.slots, scratch.coefficients, sum);
        finish(output, sum);
    }
}

template <class T>
T* number(const Block<T>& block, const TermsOutput& output, int row) {
    return block.outputs[output.place.operand][row] + output.place.offset;
}

template <class T, int n>
void add_to_sums(const Scratch<T>& scratch, int which, const Tile<T, n>& tile) {
    Vector<T> sum = load(scratch.sums + which * lanes_of<T>);
    for (int k = 0; k < n; ++k) sum += tile.v[k];
    store(scratch.sums + which * lanes_of<T>, sum);
}

/// Tiles of n full vectors from `channel` on, as many as fit; returns the first channel left.
template <class T, int n>
std::int64_t run_full(const TermsGroup& group, const Block<T>& block, int row, std::int64_t channel, const Scratch<T>& scratch) {
    constexpr int lanes = lanes_of<T>, width = n * lanes;
    for (; channel + width <= group.channels; channel += width) {
        for (int i = 0; i < group.inputs; ++i)
            scratch.slots[i + 1] = block.inputs[group.input[i].operand][row] + group.input[i].offset + channel;
        int sums = 0;
        run_tile<T, n>(group, scratch, [&](const TermsOutput& output, const Tile<T, n>& tile) {
            if (!output.per_channel) return add_to_sums(scratch, sums++, tile);
            T* to = number(block, output, row) + channel;
            if (output.overwrite)
                for (int k = 0; k < n; ++k) store(to + k * lanes, tile.v[k]);
            else
                for (int k = 0; k < n; ++k) store(to + k * lanes, load(to + k * lanes) + tile.v[k]);
        });
    }
    return channel;
}

/// The last channels, fewer than n vectors: inputs are copied to full tiles with zeros behind.
template <class T, int n>
void run_edge(const TermsGroup& group, const Block<T>& block, int row, std::int64_t channel, const Scratch<T>& scratch) {
    constexpr int lanes = lanes_of<T>, width = n * lanes;
    const std::int64_t count = group.channels - channel;
    for (int i = 0; i < group.inputs; ++i) {
        const T* from = block.inputs[group.input[i].operand][row] + group.input[i].offset + channel;
        T* to = scratch.edge + std::int64_t{i + 1} * width;
        for (std::int64_t u = 0; u < width; ++u) to[u] = u < count ? from[u] : T{0};
        scratch.slots[i + 1] = to;
    }
    // "One" is one in the channels there are, so that sums over channels count them only.
    const T* ones = scratch.slots[0];
    T* some_ones = scratch.edge + std::int64_t{group.inputs + 2} * width;
    for (std::int64_t u = 0; u < width; ++u) some_ones[u] = u < count ? T{1} : T{0};
    scratch.slots[0] = some_ones;
    int sums = 0;
    run_tile<T, n>(group, scratch, [&](const TermsOutput& output, const Tile<T, n>& tile) {
        if (!output.per_channel) return add_to_sums(scratch, sums++, tile);
        T* result = scratch.edge;
        for (int k = 0; k < n; ++k) store(result + k * lanes, tile.v[k]);
        T* to = number(block, output, row) + channel;
        for (std::int64_t u = 0; u < count; ++u) to[u] = output.overwrite ? result[u] : to[u] + result[u];
    });
    scratch.slots[0] = ones;
}

template <class T>
void run_scalars(const TermsGroup& group, const Block<T>& block, int row, const Scratch<T>& scratch) {
    for (int i = 0; i < group.scalar_inputs; ++i)
        scratch.scalars[i] = block.inputs[group.scalar_input[i].operand][row][group.scalar_input[i].offset];
    for (int s = 0; s < group.scalar_steps; ++s) {
        const TermsStep& step = group.scalar_step[s];
        T result = T{0};
        if (step.product) result = scratch.scalars[step.first] * scratch.scalars[step.second];
        else
            for (int t = step.first; t < step.second; ++t) result += scratch.coefficients[t] * scratch.scalars[group.term[t].a];
        scratch.scalars[step.destination] = result;
    }
    for (int s = 0; s < group.scaled; ++s)
        scratch.coefficients[group.scale[s].term] =
            static_cast<T>(group.value[group.scale[s].term]) * scratch.scalars[group.scale[s].scalar];
}

template <class T>
T* aligned(std::byte*& at, std::int64_t count) {
    T* result = reinterpret_cast<T*>(at);
    at += (count * static_cast<std::int64_t>(sizeof(T)) + 63) / 64 * 64;
    return result;
}

template <class T>
void run(const TermsGroup& group, const Block<T>& block) {
    constexpr int lanes = lanes_of<T>;
    constexpr int widest = 8;
    std::byte* at = block.scratch;
    Scratch<T> scratch;
    scratch.slots = aligned<const T*>(at, group.slots);
    scratch.scalars = aligned<T>(at, group.scalar_slots);
    scratch.coefficients = aligned<T>(at, group.terms);
    scratch.sums = aligned<T>(at, std::int64_t{group.sums} * lanes);
    scratch.edge = aligned<T>(at, std::int64_t{group.inputs + 3} * widest * lanes);
    T* ones = aligned<T>(at, widest * lanes);
    scratch.tiles = aligned<T>(at, 0);
    for (int i = 0; i < widest * lanes; ++i) ones[i] = T{1};
    for (int t = 0; t < group.terms; ++t) scratch.coefficients[t] = static_cast<T>(group.value[t]);
    scratch.slots[0] = ones;
    const std::int64_t bytes = std::int64_t{group.slots - group.inputs} * vector_bytes;
    for (int row = 0; row < block.rows; ++row) {
        run_scalars(group, block, row, scratch);
        for (int i = 0; i < group.sums * lanes; ++i) scratch.sums[i] = T{0};
        std::int64_t channel = 0;
        if (bytes * 8 <= terms_tile_budget) channel = run_full<T, 8>(group, block, row, channel, scratch);
        if (bytes * 4 <= terms_tile_budget) channel = run_full<T, 4>(group, block, row, channel, scratch);
        channel = run_full<T, 2>(group, block, row, channel, scratch);
        if (channel < group.channels) {
            if (group.channels - channel <= lanes) run_edge<T, 1>(group, block, row, channel, scratch);
            else run_edge<T, 2>(group, block, row, channel, scratch);
        }
        int sums = 0;
        for (int o = 0; o < group.outputs; ++o) {
            if (group.output[o].per_channel) continue;
            T sum = T{0};
            for (int k = 0; k < lanes; ++k) sum += scratch.sums[sums * lanes + k];
            ++sums;
            T* to = number(block, group.output[o], row);
            *to = group.output[o].overwrite ? sum : *to + sum;
        }
    }
}

}  // namespace

void run_terms(const TermsGroup& group, const Block<float>& block) { run(group, block); }
void run_terms(const TermsGroup& group, const Block<double>& block) { run(group, block); }

}  // namespace clebsch::CLEBSCH_ISA
