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

template <class T>
CLEBSCH_INLINE RowSource<T> source_of(const Rows<T>& rows, const MixNumbers& numbers) {
    const MixView& program = rows.program;
    const int buffer = numbers.operand - program.operands;
    if (buffer >= 0) return {nullptr, rows.buffers[buffer], program.buffer_size[buffer], numbers.offset};
    const T* const* inputs = rows.block.inputs[numbers.operand];
    return {inputs != nullptr ? inputs : rows.block.outputs[numbers.operand], nullptr, 0, numbers.offset};
}

/// Rows a product handles at a time, and entries that it takes together.
constexpr int product_rows = 64, product_entries = 5;

/// f(row) for `count` rows from the first; one loop for each way of reaching rows.
template <class T, class F>
CLEBSCH_INLINE void for_each_row(const RowSource<T>& source, int first_row, int count, F f) {
    if (source.pointers != nullptr)
        for (int r = 0; r < count; ++r) f(r, source.pointers[first_row + r] + source.offset);
    else
        for (int r = 0; r < count; ++r) f(r, source.base + (first_row + r) * source.stride + source.offset);
}

/// The scalar factor of an entry for `count` rows.
template <class T>
void scales_of(const MixView& program, const MixEntry& entry, const Rows<T>& rows, int first_row, int count, T* scale) {
    T product[product_rows];
    for (int t = 0; t < entry.terms; ++t) {
        const MixScalarTerm& term = program.term[entry.first_term + t];
        const T coefficient = T(term.coefficient);
        T* const to = t == 0 ? scale : product;
        if (term.count == 0)
            for (int r = 0; r < count; ++r) to[r] = coefficient;
        for (int s = 0; s < term.count; ++s) {
            const RowSource<T> number = source_of<T>(rows, program.scalar[term.first + s]);
            if (s == 0) for_each_row(number, first_row, count, [&](int r, const T* at) { to[r] = coefficient * *at; });
            else for_each_row(number, first_row, count, [&](int r, const T* at) { to[r] *= *at; });
        }
        if (t > 0)
            for (int r = 0; r < count; ++r) scale[r] += product[r];
    }
}

/// The scalar factors of entries that are taken together: coefficient[e] * (number(row) + offset[e])[0].
template <class T>
struct Factors {
    RowSource<T> number;
    std::int64_t offset[product_entries];
    T coefficient[product_entries];
    T scale[product_entries][product_rows];  ///< where they are more than a coefficient and one number
    T one = 1;
};
/// `Count` of them in registers.
template <class T, int Count>
struct SomeFactors {
    RowSource<T> number;
    std::int64_t offset[Count];
    T coefficient[Count];
    CLEBSCH_INLINE explicit SomeFactors(const Factors<T>& factors) : number(factors.number) {
#pragma GCC unroll 8
        for (int e = 0; e < Count; ++e) offset[e] = factors.offset[e] + number.offset, coefficient[e] = factors.coefficient[e];
        number.offset = 0;
    }
    CLEBSCH_INLINE void at(int row, T* factor) const {
        const T* from = number(row);
#pragma GCC unroll 8
        for (int e = 0; e < Count; ++e) factor[e] = coefficient[e] * from[offset[e]];
    }
};
template <class T>
void factors_of(const MixView& program, const MixEntry* entries, int count, const Rows<T>& rows, int first_row, int row_count,
                Factors<T>& factors) {
    const auto term = [&](int e) -> const MixScalarTerm& { return program.term[entries[e].first_term]; };
    const int numbers = term(0).count, operand = numbers == 1 ? program.scalar[term(0).first].operand : -1;
    bool simple = numbers <= 1;
    for (int e = 0; e < count; ++e)
        simple = simple && entries[e].terms == 1 && term(e).count == numbers &&
                 (numbers == 0 || program.scalar[term(e).first].operand == operand);
    factors.number = simple && numbers == 1 ? source_of<T>(rows, {.operand = operand})
                     : simple               ? RowSource<T>{nullptr, &factors.one, 0, 0}
                                            : RowSource<T>{nullptr, factors.scale[0], 1, -std::int64_t(first_row)};
    for (int e = 0; e < count; ++e) {
        factors.coefficient[e] = simple ? T(term(e).coefficient) : T(1);
        factors.offset[e] = !simple ? e * std::int64_t(product_rows) : numbers == 1 ? program.scalar[term(e).first].offset : 0;
        if (!simple) scales_of<T>(program, entries[e], rows, first_row, row_count, factors.scale[e]);
    }
}

/// Sum or update over one run of inner numbers. Vectors of stride 0 are one number.
template <class T, int Vectors, bool Contiguous>
CLEBSCH_INLINE T inner_loop(T* to, bool summed, bool store_it, std::int64_t inner, const T* const* v, const std::int64_t* stride,
                            int vectors, T scale) {
    constexpr int lanes = lanes_of<T>;
    if (Vectors >= 0) vectors = Vectors;
    const Vector<T> factor = broadcast<T>(scale);
    const auto product = [&](std::int64_t n, int left) {
        Vector<T> value = factor;
#pragma GCC unroll 4
        for (int k = 0; k < vectors; ++k) {
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

constexpr int any_number = -1;  ///< of vectors, those of the entry
template <class T, int Vectors>
[[gnu::noinline]] void run_entry(const MixEntry& entry, const Rows<T>& rows, int first_row, int count, const T* scale, Pace& pace) {
    const bool summed = entry.to.inner_stride == 0;
    std::int64_t stride[mix_vectors] = {};
    bool contiguous = true;
    const int vectors = Vectors == any_number ? entry.vectors : Vectors;
    for (int k = 0; k < vectors; ++k) {
        stride[k] = entry.vector[k].inner_stride;
        contiguous = contiguous && stride[k] == 1;
    }
    for (int r = 0; r < count; ++r) {
        pace.turn();
        T* to = rows.at(entry.to.operand, first_row + r) + entry.to.offset;
        const T* start[mix_vectors];
        for (int k = 0; k < vectors; ++k) start[k] = rows.at(entry.vector[k].operand, first_row + r) + entry.vector[k].offset;
        bool store_it = entry.store;
        for (std::int64_t o = 0; o < entry.outer; ++o) {
            const T* v[mix_vectors];
            for (int k = 0; k < vectors; ++k) v[k] = start[k] + o * entry.vector[k].outer_stride;
            T* target = to + o * entry.to.outer_stride;
            constexpr bool few = Vectors != any_number;
            const T sum = few && contiguous
                              ? inner_loop<T, Vectors, few>(target, summed, store_it, entry.inner, v, stride, vectors, scale[r])
                              : inner_loop<T, Vectors, false>(target, summed, store_it, entry.inner, v, stride, vectors, scale[r]);
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
void run_plain(const MixEntry* entries, const Rows<T>& rows, int first_row, int row_count, const Factors<T>& factors, Pace& pace) {
    constexpr int lanes = lanes_of<T>;
    const std::int64_t inner = entries[0].inner, whole = inner / lanes * lanes;
    const SomeFactors<T, Count> factor_of(factors);
    const int left = int(inner - whole);
    const bool store_it = entries[0].store;
    const RowSource<T> target = source_of<T>(rows, entries[0].to);
    const RowSource<T> source = source_of<T>(rows, entries[0].vector[0]);
    std::int64_t offset[Count];
#pragma GCC unroll 8
    for (int e = 0; e < Count; ++e) offset[e] = entries[e].vector[0].offset - entries[0].vector[0].offset;
    for (int r = 0; r < row_count; ++r) {
        pace.turn();
        T* to = const_cast<T*>(target(first_row + r));
        const T* x = source(first_row + r);
        T scale[Count];
        factor_of.at(first_row + r, scale);
        Vector<T> factor[Count];
#pragma GCC unroll 8
        for (int e = 0; e < Count; ++e) factor[e] = broadcast<T>(scale[e]);
        const T* const end = x + whole;
        for (; x < end; x += lanes, to += lanes) {
            Vector<T> sum = store_it ? Vector<T>{} : load<T>(to);
#pragma GCC unroll 8
            for (int e = 0; e < Count; ++e) sum += factor[e] * load<T>(x + offset[e]);
            store<T>(to, sum);
        }
        if (left > 0) {
            Vector<T> sum = store_it ? Vector<T>{} : load_first<T>(to, left);
#pragma GCC unroll 8
            for (int e = 0; e < Count; ++e) sum += factor[e] * load_first<T>(x + offset[e], left);
            store_first<T>(to, sum, left);
        }
    }
}

/// Plain entries of one vector with targets in one row: the vector is read once.
template <class T, int Count>
void run_spread(const MixEntry* entries, const Rows<T>& rows, int first_row, int row_count, const Factors<T>& factors, Pace& pace) {
    constexpr int lanes = lanes_of<T>;
    const std::int64_t inner = entries[0].inner, whole = inner / lanes * lanes;
    const SomeFactors<T, Count> factor_of(factors);
    const int left = int(inner - whole);
    const RowSource<T> target = source_of<T>(rows, entries[0].to), source = source_of<T>(rows, entries[0].vector[0]);
    std::int64_t offset[Count];
#pragma GCC unroll 8
    for (int e = 0; e < Count; ++e) offset[e] = entries[e].to.offset - entries[0].to.offset;
    const bool store_it = entries[0].store;
    for (int r = 0; r < row_count; ++r) {
        pace.turn();
        T* to = const_cast<T*>(target(first_row + r));
        const T* v = source(first_row + r);
        T scale[Count];
        factor_of.at(first_row + r, scale);
        Vector<T> factor[Count];
#pragma GCC unroll 8
        for (int e = 0; e < Count; ++e) factor[e] = broadcast<T>(scale[e]);
        for (std::int64_t n = 0; n < whole; n += lanes) {
            const Vector<T> x = load<T>(v + n);
#pragma GCC unroll 8
            for (int e = 0; e < Count; ++e) {
                T* at = to + offset[e] + n;
                store<T>(at, store_it ? factor[e] * x : load<T>(at) + factor[e] * x);
            }
        }
        if (left > 0) {
            const Vector<T> x = load_first<T>(v + whole, left);
#pragma GCC unroll 8
            for (int e = 0; e < Count; ++e) {
                T* at = to + offset[e] + whole;
                store_first<T>(at, store_it ? factor[e] * x : load_first<T>(at, left) + factor[e] * x, left);
            }
        }
    }
}

/// Scalar products of two contiguous vectors, each from one row: the lanes of as many sums as a vector has are added up together.
template <class T, int Count>
void run_dots(const MixEntry* entries, const Rows<T>& rows, int first_row, int row_count, const Factors<T>& factors, Pace& pace) {
    constexpr int lanes = lanes_of<T>, together = lanes / Count;  // rows
    const std::int64_t inner = entries[0].inner, whole = inner / lanes * lanes;
    const SomeFactors<T, Count> factor_of(factors);
    const int left = int(inner - whole);
    const RowSource<T> target = source_of<T>(rows, entries[0].to), a = source_of<T>(rows, entries[0].vector[0]),
                       b = source_of<T>(rows, entries[0].vector[1]);
    std::int64_t to_offset[Count], a_offset[Count], b_offset[Count];
#pragma GCC unroll 8
    for (int e = 0; e < Count; ++e) {
        to_offset[e] = entries[e].to.offset - entries[0].to.offset;
        a_offset[e] = entries[e].vector[0].offset - entries[0].vector[0].offset;
        b_offset[e] = entries[e].vector[1].offset - entries[0].vector[1].offset;
    }
    for (int r = 0; r < row_count; r += together) {
        Vector<T> sum[lanes] = {};
        for (int k = 0; k < together && r + k < row_count; ++k) {
            pace.turn();
            const T *left_row = a(first_row + r + k), *right_row = b(first_row + r + k);
            Vector<T> part[Count] = {};
            for (std::int64_t n = 0; n < whole; n += lanes)
#pragma GCC unroll 8
                for (int e = 0; e < Count; ++e) part[e] += load<T>(left_row + a_offset[e] + n) * load<T>(right_row + b_offset[e] + n);
            if (left > 0)
#pragma GCC unroll 8
                for (int e = 0; e < Count; ++e)
                    part[e] += load_first<T>(left_row + a_offset[e] + whole, left) * load_first<T>(right_row + b_offset[e] + whole, left);
#pragma GCC unroll 8
            for (int e = 0; e < Count; ++e) sum[k * Count + e] = part[e];
        }
        T result[lanes];
        store<T>(result, sum_lanes<T>(sum));
        for (int k = 0; k < together && r + k < row_count; ++k) {
            T *to = const_cast<T*>(target(first_row + r + k)), scale[Count];
            factor_of.at(first_row + r + k, scale);
#pragma GCC unroll 8
            for (int e = 0; e < Count; ++e) {
                const T value = scale[e] * result[k * Count + e];
                to[to_offset[e]] = entries[e].store ? value : to[to_offset[e]] + value;
            }
        }
    }
}

/// Entries that follow one another and that one loop can take together.
enum class Together {
    one,     ///< an entry like no other
    sums,    ///< plain, one target
    spread,  ///< plain, one vector, targets in one row
    dots,    ///< scalar products of vectors in two rows, into one row
};

bool is_dot(const MixEntry& entry) {
    return entry.vectors == 2 && entry.outer == 1 && entry.to.inner_stride == 0 && entry.vector[0].inner_stride == 1 &&
           entry.vector[1].inner_stride == 1;
}
bool same_numbers(const MixNumbers& a, const MixNumbers& b) { return a.operand == b.operand && a.offset == b.offset; }

template <class T>
Together how(const MixEntry* entry, int most, int& count) {
    const auto extend = [&](int limit, auto&& fits) {
        count = 1;
        while (count < limit && count < most && fits(entry[count])) ++count;
    };
    if (is_plain(*entry)) {
        extend(product_entries, [&](const MixEntry& next) {
            return is_plain(next) && same_numbers(next.to, entry->to) && !next.store && next.vector[0].operand == entry->vector[0].operand;
        });
        if (count > 1) return Together::sums;
        extend(product_entries, [&](const MixEntry& next) {
            return is_plain(next) && next.to.operand == entry->to.operand && next.to.offset != entry->to.offset &&
                   next.store == entry->store && next.inner == entry->inner && same_numbers(next.vector[0], entry->vector[0]);
        });
        return count > 1 ? Together::spread : Together::sums;
    }
    if (is_dot(*entry)) {
        extend(lanes_of<T> < product_entries ? lanes_of<T> : product_entries, [&](const MixEntry& next) {
            return is_dot(next) && next.to.operand == entry->to.operand && next.inner == entry->inner &&
                   next.vector[0].operand == entry->vector[0].operand && next.vector[1].operand == entry->vector[1].operand;
        });
        return Together::dots;
    }
    count = 1;
    return Together::one;
}

template <class T, int Count = 1>
void run_together(Together kind, const MixEntry* entries, int count, const Rows<T>& rows, int first_row, int row_count,
                  const Factors<T>& factors, Pace& pace) {
    if constexpr (Count <= product_entries) {
        if (count != Count) return run_together<T, Count + 1>(kind, entries, count, rows, first_row, row_count, factors, pace);
        if (kind == Together::sums) return run_plain<T, Count>(entries, rows, first_row, row_count, factors, pace);
        if (kind == Together::spread) return run_spread<T, Count>(entries, rows, first_row, row_count, factors, pace);
        if constexpr (Count <= lanes_of<T>) run_dots<T, Count>(entries, rows, first_row, row_count, factors, pace);
    }
}

template <class T>
void run_product(const MixView& program, const MixProduct& product, const Rows<T>& rows, Pace& pace) {
    Factors<T> factors;
    for (int first_row = 0; first_row < rows.block.rows; first_row += product_rows) {
        const int count = rows.block.rows - first_row < product_rows ? rows.block.rows - first_row : product_rows;
        for (int e = 0; e < product.entries;) {
            const MixEntry* entry = program.entry + product.first_entry + e;
            int together = 1;
            const Together kind = how<T>(entry, product.entries - e, together);
            if (kind != Together::one) {
                factors_of<T>(program, entry, together, rows, first_row, count, factors);
                run_together<T>(kind, entry, together, rows, first_row, count, factors, pace);
            } else {
                T* const scale = factors.scale[0];
                scales_of<T>(program, *entry, rows, first_row, count, scale);
                if (entry->vectors == 1) run_entry<T, 1>(*entry, rows, first_row, count, scale, pace);
                else if (entry->vectors == 2) run_entry<T, 2>(*entry, rows, first_row, count, scale, pace);
                else run_entry<T, any_number>(*entry, rows, first_row, count, scale, pace);
            }
            e += together;
        }
    }
}

/// Pointers to every (row, component), row-major.
template <class T>
void pointers_of(const MixRows& from, int components, const Rows<T>& rows, int first_row, int count, const T** pointers) {
    const RowSource<T> source = source_of<T>(rows, {.operand = from.operand, .offset = from.offset});
    if (components == 1) {
        for_each_row(source, first_row, count, [&](int r, const T* row) { pointers[r] = row; });
        return;
    }
    for_each_row(source, first_row, count, [&](int, const T* row) {
        for (int c = 0; c < components; ++c) *pointers++ = row + c * from.stride;
    });
}

template <class T>
CLEBSCH_INLINE void pointers_of(const MixRows& to, int components, const Rows<T>& rows, int first_row, int count, T** pointers) {
    pointers_of<T>(to, components, rows, first_row, count, const_cast<const T**>(pointers));
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
void run_narrow(const MixView& program, const MixNarrow& m, const Rows<T>& rows, Pace& pace) {
    constexpr int lanes = lanes_of<T>;
    const T* packed = reinterpret_cast<const T*>(rows.block.prepared);
    const T one = 1;
    for (int first = 0; first < m.parts; first += narrow_parts) {
        const int count = m.parts - first < narrow_parts ? m.parts - first : narrow_parts;
        NarrowPart<T> parts[narrow_parts];
        for (int p = 0; p < count; ++p) {
            const MixNarrowPart& from = program.narrow_part[m.first_part + first + p];
            NarrowPart<T>& part = parts[p];
            part.from = source_of<T>(rows, {.operand = from.operand});
            part.number =
                from.number_operand < 0 ? RowSource<T>{nullptr, &one, 0, 0} : source_of<T>(rows, {.operand = from.number_operand});
            part.weight = m.shared ? RowSource<T>{nullptr, packed + from.packed_at, 0, 0}
                                   : source_of<T>(rows, {.operand = from.weight, .offset = from.weight_offset});
            for (int v = 0; v < from.vectors; ++v) {
                part.offset[v] = from.offset[v] * std::int64_t(sizeof(T));
                part.number_offset[v] = from.number_offset[v] * std::int64_t(sizeof(T));
                part.coefficient[v] = T(from.coefficient[v]);
            }
            part.whole = from.sources / lanes * lanes;
            part.left = int(from.sources - part.whole);
            part.vectors = from.vectors;
            part.interleaved = from.interleaved;
        }
        const RowSource<T> to = source_of<T>(rows, {.operand = m.to, .offset = m.to_offset});
        multiply_narrow<T>(parts, count, m.shared, to, rows.block.rows, m.targets, m.store && first == 0, pace);
    }
}

template <class T>
void run_gradient(const MixView& program, const MixGradient& m, const Rows<T>& rows, Pace& pace) {
    const auto table = [&](const MixNumbers& at) { return RowTable<T>{source_of<T>(rows, at).pointers, at.offset}; };  // of operands
    const RowTable<T> to = m.y_gradient.operand < 0 ? RowTable<T>{} : table(m.y_gradient);
    for (int begin = 0; begin < m.parts; begin += gradient_parts) {
        const int count = m.parts - begin < gradient_parts ? m.parts - begin : gradient_parts;
        GradientPart<T> parts[gradient_parts];
        for (int p = 0; p < count; ++p) {
            const MixGradientPart& from = program.gradient_part[m.first_part + begin + p];
            parts[p] = {.x = table(from.x),
                        .x_gradient = table(from.x_gradient),
                        .y = table(m.y),
                        .factor = from.factor.operand < 0 ? RowTable<T>{} : table(from.factor),
                        .weights = source_of<T>(rows, from.weights),
                        .weights_gradient = source_of<T>(rows, from.weights_gradient),
                        .coefficient = T(from.coefficient),
                        .channels = from.channels,
                        .components = m.components,
                        .interleaved = from.interleaved,
                        .store = from.store};
        }
        Vector<T> sums[gradient_sums] = {};
        for (int row = 0; row < rows.block.rows; row += gradient_rows) {
            const int now = rows.block.rows - row < gradient_rows ? rows.block.rows - row : gradient_rows;
            for (int p = 0; p < count; ++p) gradients_of_part<T>(parts[p], row, now, sums, p == 0, pace);
            if (to.pointers != nullptr) add_sums<T>(sums, m.components, to, row, now, m.store && begin == 0);
        }
    }
}

/// Turns of a block (Pace): a row of every loop over rows.
template <class T>
std::int64_t turns_of(const MixView& program, int rows) {
    std::int64_t turns = 0;
    for (int s = 0; s < program.steps; ++s) {
        const MixStep& step = program.step[s];
        if (step.kind == MixStepKind::multiply) {
            const MixMultiply& m = program.multiply[step.index];
            turns += m.shared ? m.components : m.gathered ? 0 : 1;
        } else if (step.kind == MixStepKind::narrow) {
            ++turns;
        } else if (step.kind == MixStepKind::gradient) {
            turns += program.gradient[step.index].parts;
        } else if (step.kind == MixStepKind::outer) {
            turns += program.outer[step.index].shared ? 0 : 1;
        } else {
            const MixProduct& product = program.product[step.index];
            for (int e = 0, together = 1; e < product.entries; e += together, ++turns)
                how<T>(program.entry + product.first_entry + e, product.entries - e, together);
        }
    }
    return turns * rows;
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
    Pace pace(block.ahead, turns_of<T>(program, block.rows));
    for (int s = 0; s < program.steps; ++s) {
        const MixStep& step = program.step[s];
        if (step.kind == MixStepKind::product) {
            run_product<T>(program, program.product[step.index], rows, pace);
        } else if (step.kind == MixStepKind::multiply) {
            const MixMultiply& m = program.multiply[step.index];
            if (m.shared) {
                pointers_of<T>(m.from, m.components, rows, 0, block.rows, a);
                pointers_of<T>(m.to, m.components, rows, 0, block.rows, c);
                multiply_rows<T>(a, c, std::int64_t(block.rows) * m.components, m.sources, m.targets, packed + m.packed_at, T(m.scale),
                                 m.store, absorb, pace);
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
            pointers_of<T>(m.from, m.components, rows, 0, block.rows, a);
            pointers_of<T>(m.to, m.components, rows, 0, block.rows, c);
            const RowSource<T> weight = source_of<T>(rows, {.operand = m.weight, .offset = m.weight_offset});
            for (int r = 0, first = 0; r < block.rows; ++r, first += m.components) {
                pace.turn();
                if (m.transposed)
                    multiply_row_transposed<T>(a + first, c + first, m.components, m.sources, m.targets, weight(r), T(m.scale), m.store);
                else multiply_row<T>(a + first, c + first, m.components, m.sources, m.targets, weight(r), T(m.scale), m.store);
            }
        } else if (step.kind == MixStepKind::narrow) {
            run_narrow<T>(program, program.narrow[step.index], rows, pace);
        } else if (step.kind == MixStepKind::gradient) {
            run_gradient<T>(program, program.gradient[step.index], rows, pace);
        } else {
            const MixOuter& m = program.outer[step.index];
            const T** b = const_cast<const T**>(c);
            const int together = m.shared ? block.rows : 1;
            pointers_of<T>(m.left, m.components, rows, 0, block.rows, a);
            pointers_of<T>(m.right, m.components, rows, 0, block.rows, b);
            for (int r = 0; r < block.rows; r += together) {
                if (together == 1) pace.turn();
                const std::int64_t first = std::int64_t(r) * m.components;
                add_outer<T>(a + first, b + first, std::int64_t(together) * m.components, m.rows, m.columns,
                             rows.at(m.weight, r) + m.weight_offset, T(m.scale), m.store);
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
    for (int i = 0; i < program.narrows; ++i) {
        const MixNarrow& m = program.narrow[i];
        for (int p = 0; m.shared && p < m.parts; ++p) {
            const MixNarrowPart& part = program.narrow_part[m.first_part + p];
            const T* w = inputs[part.weight] + part.weight_offset;
            if (part.transposed) pack_narrow<T>(w, part.sources, m.targets, 1, part.sources, packed + part.packed_at);
            else pack_narrow<T>(w, part.sources, m.targets, m.targets, 1, packed + part.packed_at);
        }
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
