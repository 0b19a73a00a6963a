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

/// Where the rows of an operand are: wherever pointers say, or one after another in a buffer.
template <class T>
struct RowSource {
    const T* const* pointers = nullptr;
    const T* base = nullptr;
    std::int64_t stride = 0, offset = 0;
    CLEBSCH_INLINE const T* operator()(int row) const { return (pointers != nullptr ? pointers[row] : base + row * stride) + offset; }
};
template <class T>
CLEBSCH_INLINE RowSource<T> source_of(const Rows<T>& rows, const MixNumbers& numbers) {
    const MixView& program = rows.program;
    const int buffer = numbers.operand - program.operands;
    if (buffer >= 0) return {nullptr, rows.buffers[buffer], program.buffer_size[buffer], numbers.offset};
    const T* const* inputs = rows.block.inputs[numbers.operand];
    return {inputs != nullptr ? inputs : rows.block.outputs[numbers.operand], nullptr, 0, numbers.offset};
}

/// Rows a product handles at a time, and entries with one target that it adds up in registers.
constexpr int product_rows = 64, product_entries = 8;

/// The scalar factor of an entry for `count` rows.
template <class T>
void scales_of(const MixView& program, const MixEntry& entry, const Rows<T>& rows, int first_row, int count, T* scale) {
    for (int r = 0; r < count; ++r) scale[r] = T(0);
    for (int t = 0; t < entry.terms; ++t) {
        const MixScalarTerm& term = program.term[entry.first_term + t];
        const T coefficient = T(term.coefficient);
        if (term.count == 1) {
            const RowSource<T> number = source_of<T>(rows, program.scalar[term.first]);
            for (int r = 0; r < count; ++r) scale[r] += coefficient * *number(first_row + r);
            continue;
        }
        for (int r = 0; r < count; ++r) {
            T value = coefficient;
            for (int s = 0; s < term.count; ++s) {
                const MixNumbers& number = program.scalar[term.first + s];
                value *= rows.at(number.operand, first_row + r)[number.offset];
            }
            scale[r] += value;
        }
    }
}

/// Sum or update over one run of inner numbers. Vectors of stride 0 are one number.
template <class T, int Vectors, bool Contiguous>
CLEBSCH_INLINE T inner_loop(T* to, bool summed, bool store_it, std::int64_t inner, const T* const* v, const std::int64_t* stride, T scale) {
    constexpr int lanes = lanes_of<T>;
    const Vector<T> factor = broadcast<T>(scale);
    const auto product = [&](std::int64_t n, int left) {
        Vector<T> value = factor;
#pragma GCC unroll 4
        for (int k = 0; k < Vectors; ++k) {
            if (!Contiguous && stride[k] == 0) value *= broadcast<T>(v[k][0]);
            else value *= left >= lanes ? load<T>(v[k] + n) : load_first<T>(v[k] + n, left);
        }
        return value;
    };
    const std::int64_t whole = inner / lanes * lanes;
    const int left = int(inner - whole);
    if (!summed) {
        if (store_it) {
            for (std::int64_t n = 0; n < whole; n += lanes) store<T>(to + n, product(n, lanes));
            if (left > 0) store_first<T>(to + whole, product(whole, left), left);
        } else {
            for (std::int64_t n = 0; n < whole; n += lanes) store<T>(to + n, load<T>(to + n) + product(n, lanes));
            if (left > 0) store_first<T>(to + whole, load_first<T>(to + whole, left) + product(whole, left), left);
        }
        return T(0);
    }
    Vector<T> total{};
    for (std::int64_t n = 0; n < whole; n += lanes) total += product(n, lanes);
    T sum = T(0);
    if (left > 0) {
        const Vector<T> last = product(whole, left);
        for (int l = 0; l < left; ++l) sum += last[l];
    }
    for (int l = 0; l < lanes; ++l) sum += total[l];
    return sum;
}

template <class T, int Vectors>
void run_entry(const MixEntry& entry, const Rows<T>& rows, int first_row, int count, const T* scale) {
    const bool summed = entry.to.inner_stride == 0;
    std::int64_t stride[mix_vectors] = {};
    bool contiguous = true;
    for (int k = 0; k < Vectors; ++k) {
        stride[k] = entry.vector[k].inner_stride;
        contiguous = contiguous && stride[k] == 1;
    }
    for (int r = 0; r < count; ++r) {
        T* to = rows.at(entry.to.operand, first_row + r) + entry.to.offset;
        const T* start[mix_vectors];
        for (int k = 0; k < Vectors; ++k) start[k] = rows.at(entry.vector[k].operand, first_row + r) + entry.vector[k].offset;
        bool store_it = entry.store;
        for (std::int64_t o = 0; o < entry.outer; ++o) {
            const T* v[mix_vectors];
            for (int k = 0; k < Vectors; ++k) v[k] = start[k] + o * entry.vector[k].outer_stride;
            T* target = to + o * entry.to.outer_stride;
            const T sum = contiguous ? inner_loop<T, Vectors, true>(target, summed, store_it, entry.inner, v, stride, scale[r])
                                     : inner_loop<T, Vectors, false>(target, summed, store_it, entry.inner, v, stride, scale[r]);
            if (summed) *target = store_it ? sum : *target + sum;
            if (entry.to.outer_stride == 0) store_it = false;
        }
    }
}

/// Whether an entry is scale * one contiguous vector into contiguous numbers.
bool is_plain(const MixEntry& entry) {
    return entry.vectors == 1 && entry.outer == 1 && entry.to.inner_stride == 1 && entry.vector[0].inner_stride == 1;
}

/// Plain entries with one target: their sum is made in registers.
template <class T, int Count>
void run_plain(const MixEntry* entries, const Rows<T>& rows, int first_row, int row_count, const T (*scale)[product_rows]) {
    constexpr int lanes = lanes_of<T>;
    const std::int64_t inner = entries[0].inner, whole = inner / lanes * lanes;
    const int left = int(inner - whole);
    const bool store_it = entries[0].store;
    const RowSource<T> target = source_of<T>(rows, entries[0].to);
    RowSource<T> source[Count];
    for (int e = 0; e < Count; ++e) source[e] = source_of<T>(rows, entries[e].vector[0]);
    for (int r = 0; r < row_count; ++r) {
        T* to = const_cast<T*>(target(first_row + r));
        const T* v[Count];
        Vector<T> factor[Count];
#pragma GCC unroll 8
        for (int e = 0; e < Count; ++e) {
            v[e] = source[e](first_row + r);
            factor[e] = broadcast<T>(scale[e][r]);
        }
        for (std::int64_t n = 0; n < whole; n += lanes) {
            Vector<T> sum = store_it ? Vector<T>{} : load<T>(to + n);
#pragma GCC unroll 8
            for (int e = 0; e < Count; ++e) sum += factor[e] * load<T>(v[e] + n);
            store<T>(to + n, sum);
        }
        if (left > 0) {
            Vector<T> sum = store_it ? Vector<T>{} : load_first<T>(to + whole, left);
#pragma GCC unroll 8
            for (int e = 0; e < Count; ++e) sum += factor[e] * load_first<T>(v[e] + whole, left);
            store_first<T>(to + whole, sum, left);
        }
    }
}

template <class T>
void run_plain(const MixEntry* entries, int count, const Rows<T>& rows, int first_row, int row_count, const T (*scale)[product_rows]) {
    switch (count) {
        case 1:
            return run_plain<T, 1>(entries, rows, first_row, row_count, scale);
        case 2:
            return run_plain<T, 2>(entries, rows, first_row, row_count, scale);
        case 3:
            return run_plain<T, 3>(entries, rows, first_row, row_count, scale);
        case 4:
            return run_plain<T, 4>(entries, rows, first_row, row_count, scale);
        case 5:
            return run_plain<T, 5>(entries, rows, first_row, row_count, scale);
        case 6:
            return run_plain<T, 6>(entries, rows, first_row, row_count, scale);
        case 7:
            return run_plain<T, 7>(entries, rows, first_row, row_count, scale);
        default:
            return run_plain<T, 8>(entries, rows, first_row, row_count, scale);
    }
}

template <class T>
void run_product(const MixView& program, const MixProduct& product, const Rows<T>& rows) {
    T scale[product_entries][product_rows];
    for (int first_row = 0; first_row < rows.block.rows; first_row += product_rows) {
        const int count = rows.block.rows - first_row < product_rows ? rows.block.rows - first_row : product_rows;
        for (int e = 0; e < product.entries;) {
            const MixEntry* entry = program.entry + product.first_entry + e;
            int together = 1;
            while (together < product_entries && e + together < product.entries && is_plain(entry[0]) && is_plain(entry[together]) &&
                   entry[together].to.operand == entry[0].to.operand && entry[together].to.offset == entry[0].to.offset &&
                   !entry[together].store)
                ++together;
            for (int k = 0; k < together; ++k) scales_of<T>(program, entry[k], rows, first_row, count, scale[k]);
            if (is_plain(*entry)) {
                run_plain<T>(entry, together, rows, first_row, count, scale);
            } else {
                switch (entry->vectors) {
                    case 0:
                        run_entry<T, 0>(*entry, rows, first_row, count, scale[0]);
                        break;
                    case 1:
                        run_entry<T, 1>(*entry, rows, first_row, count, scale[0]);
                        break;
                    case 2:
                        run_entry<T, 2>(*entry, rows, first_row, count, scale[0]);
                        break;
                    case 3:
                        run_entry<T, 3>(*entry, rows, first_row, count, scale[0]);
                        break;
                    default:
                        run_entry<T, 4>(*entry, rows, first_row, count, scale[0]);
                }
            }
            e += together;
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

RowGroups groups_in(std::byte* memory, int rows) {
    RowGroups groups{};
    groups.matrix = reinterpret_cast<const void**>(memory);
    groups.first = reinterpret_cast<int*>(memory + std::int64_t(rows) * 8);
    groups.last = groups.first + rows;
    groups.next_group = groups.last + rows;
    groups.next = groups.next_group + rows;
    groups.bucket = groups.next + rows;
    return groups;
}

/// A product with one matrix for the rows of every group.
template <class T>
void multiply_gathered(const MixMultiply& m, const Rows<T>& rows, const RowGroups& groups, const T** a, T** c) {
    for (int g = 0; g < groups.count; ++g) {
        std::int64_t count = 0;
        for (int r = groups.first[g]; r >= 0; r = groups.next[r], count += m.components) {
            pointers_of<T>(m.from, m.components, rows, r, 1, a + count);
            pointers_of<T>(m.to, m.components, rows, r, 1, c + count);
        }
        const T* w = static_cast<const T*>(groups.matrix[groups.first[g]]) + m.weight_offset;
        if (m.transposed) multiply_group_transposed<T>(a, c, count, m.sources, m.targets, w, T(m.scale), m.store);
        else multiply_group<T>(a, c, count, m.sources, m.targets, w, T(m.scale), m.store);
    }
}

template <class T>
void run(const MixView& program, const Block<T>& block) {
    const std::int64_t pointers = (std::int64_t(block.rows) * program.most_components + mix_tile_rows);
    const T** a = reinterpret_cast<const T**>(block.scratch);
    T** c = reinterpret_cast<T**>(block.scratch + round_up(pointers * 8));
    T* absorb = reinterpret_cast<T*>(block.scratch + 2 * round_up(pointers * 8));
    std::byte* const group_memory = block.scratch + 2 * round_up(pointers * 8) + 256;
    RowGroups groups = groups_in(group_memory, block.rows);
    int grouped = -1;  // operand whose rows the groups are
    const Rows<T> rows(program, block, group_memory + mix_group_bytes(block.rows));
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
                multiply_rows<T>(a, c, std::int64_t(block.rows) * m.components, m.sources, m.targets, packed + m.packed_at, T(m.scale),
                                 m.store, absorb);
                continue;
            }
            if (m.gathered) {
                if (grouped != m.weight) {
                    for (int r = 0; r < block.rows; ++r) groups.matrix[r] = rows.at(m.weight, r);
                    group_rows(block.rows, groups);
                    grouped = m.weight;
                }
                multiply_gathered<T>(m, rows, groups, a, c);
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
                add_outer<T>(a, b, std::int64_t(together) * m.components, m.rows, m.columns, rows.at(m.weight, r) + m.weight_offset,
                             T(m.scale), m.store);
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
