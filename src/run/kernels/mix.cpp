// Runs the steps of a mix program on a block of rows.
#include "run/kernels/mix.hpp"

#include "run/kernels/mix_parts.hpp"

namespace clebsch::CLEBSCH_ISA {
namespace {

constexpr std::int64_t round_up(std::int64_t bytes) { return (bytes + 63) / 64 * 64; }

/// Rows of operands and of scratch buffers under one numbering.
template <class T>
struct Rows {
    const MixView& program;
    const Block<T>& block;
    T* buffers[mix_buffers];

    Rows(const MixView& view, const Block<T>& rows, std::byte* scratch) : program(view), block(rows) {
        for (int b = 0; b < view.buffers; ++b) {
            buffers[b] = reinterpret_cast<T*>(scratch);
            scratch += round_up(view.buffer_size[b] * rows.rows * std::int64_t(sizeof(T)));
        }
    }

    T* at(int operand, int row) const {
        if (operand >= program.operands) return buffers[operand - program.operands] + program.buffer_size[operand - program.operands] * row;
        const T* const* inputs = block.inputs[operand];
        return inputs != nullptr ? const_cast<T*>(inputs[row]) : block.outputs[operand][row];
    }
};

/// sum or update over one run of inner numbers.
template <class T, int Vectors>
CLEBSCH_INLINE T inner_loop(T* to, bool summed, bool store_it, std::int64_t inner, const T* const* v, const std::int64_t* stride, T scale) {
    constexpr int lanes = lanes_of<T>;
    Vector<T> total{};
    const Vector<T> factor = broadcast<T>(scale);
    for (std::int64_t n = 0; n < inner; n += lanes) {
        const int left = inner - n < lanes ? int(inner - n) : lanes;
        Vector<T> value = factor;
#pragma GCC unroll 4
        for (int k = 0; k < Vectors; ++k) {
            if (stride[k] == 0) value *= broadcast<T>(v[k][0]);
            else value *= left == lanes ? load<T>(v[k] + n) : load_first<T>(v[k] + n, left);
        }
        if (summed) {
            if (left < lanes)
                for (int l = left; l < lanes; ++l) value[l] = T(0);
            total += value;
        } else if (left == lanes) {
            store<T>(to + n, store_it ? value : load<T>(to + n) + value);
        } else {
            store_first<T>(to + n, store_it ? value : load_first<T>(to + n, left) + value, left);
        }
    }
    T sum = T(0);
    if (summed)
        for (int l = 0; l < lanes; ++l) sum += total[l];
    return sum;
}

template <class T, int Vectors>
void run_entry(const MixEntry& entry, const Rows<T>& rows, int row, T scale) {
    const T* start[mix_vectors];
    std::int64_t stride[mix_vectors];
    for (int k = 0; k < Vectors; ++k) {
        start[k] = rows.at(entry.vector[k].operand, row) + entry.vector[k].offset;
        stride[k] = entry.vector[k].inner_stride;
    }
    T* to = rows.at(entry.to.operand, row) + entry.to.offset;
    const bool summed = entry.to.inner_stride == 0;
    bool store_it = entry.store;
    for (std::int64_t o = 0; o < entry.outer; ++o) {
        const T* v[mix_vectors];
        for (int k = 0; k < Vectors; ++k) v[k] = start[k] + o * entry.vector[k].outer_stride;
        T* target = to + o * entry.to.outer_stride;
        const T sum = inner_loop<T, Vectors>(target, summed, store_it, entry.inner, v, stride, scale);
        if (summed) *target = store_it ? sum : *target + sum;
        if (entry.to.outer_stride == 0) store_it = false;
    }
}

template <class T>
void run_product(const MixView& program, const MixProduct& product, const Rows<T>& rows) {
    for (int row = 0; row < rows.block.rows; ++row)
        for (int e = 0; e < product.entries; ++e) {
            const MixEntry& entry = program.entry[product.first_entry + e];
            T scale = T(0);
            for (int t = 0; t < entry.terms; ++t) {
                const MixScalarTerm& term = program.term[entry.first_term + t];
                T value = T(term.coefficient);
                for (int s = 0; s < term.count; ++s) {
                    const MixNumbers& number = program.scalar[term.first + s];
                    value *= rows.at(number.operand, row)[number.offset];
                }
                scale += value;
            }
            switch (entry.vectors) {
                case 0: run_entry<T, 0>(entry, rows, row, scale); break;
                case 1: run_entry<T, 1>(entry, rows, row, scale); break;
                case 2: run_entry<T, 2>(entry, rows, row, scale); break;
                case 3: run_entry<T, 3>(entry, rows, row, scale); break;
                default: run_entry<T, 4>(entry, rows, row, scale);
            }
        }
}

/// Pointers to every (row, component), row-major.
template <class T, class P>
void pointers_of(const MixRows& from, int components, const Rows<T>& rows, int first_row, int count, P** pointers) {
    for (int r = 0; r < count; ++r) {
        T* row = rows.at(from.operand, first_row + r) + from.offset;
        for (int c = 0; c < components; ++c) *pointers++ = row + c * from.stride;
    }
}

template <class T>
void run(const MixView& program, const Block<T>& block) {
    const std::int64_t pointers = (std::int64_t(block.rows) * program.most_components + mix_tile_rows);
    const T** a = reinterpret_cast<const T**>(block.scratch);
    T** c = reinterpret_cast<T**>(block.scratch + round_up(pointers * 8));
    T* absorb = reinterpret_cast<T*>(block.scratch + 2 * round_up(pointers * 8));
    const Rows<T> rows(program, block, block.scratch + 2 * round_up(pointers * 8) + 256);
    const T* packed = reinterpret_cast<const T*>(block.prepared);
    for (int s = 0; s < program.steps; ++s) {
        const MixStep& step = program.step[s];
        if (step.kind == MixStepKind::product) {
            run_product<T>(program, program.product[step.index], rows);
        } else if (step.kind == MixStepKind::multiply) {
            const MixMultiply& m = program.multiply[step.index];
            if (m.shared) {
                pointers_of<T>(m.from, m.components, rows, 0, block.rows, a);
                pointers_of<T>(m.to, m.components, rows, 0, block.rows, c);
                multiply_rows<T>(a, c, std::int64_t(block.rows) * m.components, m.sources, m.targets, packed + m.packed_at, T(m.scale), m.store, absorb);
                continue;
            }
            for (int r = 0; r < block.rows; ++r) {
                pointers_of<T>(m.from, m.components, rows, r, 1, a);
                pointers_of<T>(m.to, m.components, rows, r, 1, c);
                const T* w = rows.at(m.weight, r) + m.weight_offset;
                if (m.transposed) multiply_row_transposed<T>(a, c, m.components, m.sources, m.targets, w, T(m.scale), m.store);
                else multiply_row<T>(a, c, m.components, m.sources, m.targets, w, T(m.scale), m.store);
            }
        } else {
            const MixOuter& m = program.outer[step.index];
            const T** b = const_cast<const T**>(c);
            const int together = m.shared ? block.rows : 1;
            for (int r = 0; r < block.rows; r += together) {
                pointers_of<T>(m.left, m.components, rows, r, together, a);
                pointers_of<T>(m.right, m.components, rows, r, together, b);
                add_outer<T>(a, b, std::int64_t(together) * m.components, m.rows, m.columns, rows.at(m.weight, r) + m.weight_offset, T(m.scale), m.store);
            }
        }
    }
}

template <class T>
void pack(const MixView& program, const T* const* inputs, T* packed) {
    for (int i = 0; i < program.multiplies; ++i) {
        const MixMultiply& m = program.multiply[i];
        if (!m.shared) continue;
        const T* w = inputs[m.weight] + m.weight_offset;
        if (m.transposed) pack_panels<T>(w, m.sources, m.targets, 1, m.sources, packed + m.packed_at);
        else pack_panels<T>(w, m.sources, m.targets, m.targets, 1, packed + m.packed_at);
    }
}

}  // namespace

void run_mix(const MixView& program, const Block<float>& block) { run<float>(program, block); }
void run_mix(const MixView& program, const Block<double>& block) { run<double>(program, block); }
void pack_mix(const MixView& program, const float* const* inputs, float* packed) { pack<float>(program, inputs, packed); }
void pack_mix(const MixView& program, const double* const* inputs, double* packed) { pack<double>(program, inputs, packed); }

std::int64_t packed_mix_size(std::int64_t sources, std::int64_t targets, int element_size) {
    const std::int64_t width = element_size == 4 ? mix_tile_columns<float> : mix_tile_columns<double>;
    return (targets + width - 1) / width * width * sources;
}

}  // namespace clebsch::CLEBSCH_ISA
