#include "run/stage.hpp"

#include "run/half.hpp"
#include "run/kernels/transpose.hpp"

namespace clebsch {
namespace {

template <class T, class Stored>
T loaded(Stored value) {
    if constexpr (std::is_floating_point_v<Stored>) return static_cast<T>(value);
    else return static_cast<T>(to_float(value));
}

template <class Stored, class T>
Stored stored_as(T value) {
    if constexpr (std::is_same_v<Stored, Bfloat16>) return to_bfloat16(static_cast<float>(value));
    else if constexpr (std::is_same_v<Stored, Float16>) return to_float16(static_cast<float>(value));
    else return static_cast<Stored>(value);
}

template <class T>
const TransposeFunctions<T>& functions_of(const RowForm& form) {
    if constexpr (std::is_same_v<T, float>) return form.of_float;
    else return form.of_double;
}

template <class T>
TransposeFunctions<T> functions_for(InstructionSet isa) {
    return {CLEBSCH_SELECT(TransposeFunction<T>, isa, components_apart), CLEBSCH_SELECT(TransposeFunction<T>, isa, components_together)};
}

template <class T, class Stored>
void load(const RowForm& form, const Stored* __restrict stored, T* __restrict row) {
    for (const RowForm::Piece& piece : form.pieces) {
        const Stored* from = stored + piece.offset;
        T* to = row + piece.offset;
        const std::int64_t channels = piece.channels;
        if (piece.components == 1) {
            for (std::int64_t u = 0; u < channels; ++u) to[u] = loaded<T>(from[u]);
            continue;
        }
        if constexpr (std::is_same_v<T, Stored>) {
            functions_of<T>(form).apart(from, to, channels, piece.components);
            continue;
        }
        for (int i = 0; i < piece.components; ++i)
            for (std::int64_t u = 0; u < channels; ++u) to[i * channels + u] = loaded<T>(from[u * piece.components + i]);
    }
}

template <class T, class Stored>
void store(const RowForm& form, const T* __restrict row, Stored* __restrict stored) {
    for (const RowForm::Piece& piece : form.pieces) {
        const T* from = row + piece.offset;
        Stored* to = stored + piece.offset;
        const std::int64_t channels = piece.channels;
        if (piece.components == 1) {
            for (std::int64_t u = 0; u < channels; ++u) to[u] = stored_as<Stored>(from[u]);
            continue;
        }
        if constexpr (std::is_same_v<T, Stored>) {
            functions_of<T>(form).together(from, to, channels, piece.components);
            continue;
        }
        for (std::int64_t u = 0; u < channels; ++u)
            for (int i = 0; i < piece.components; ++i) to[u * piece.components + i] = stored_as<Stored>(from[i * channels + u]);
    }
}

}  // namespace

RowForm row_form(const Operand& operand, DType dtype, InstructionSet isa) {
    RowForm form;
    form.of_float = functions_for<float>(isa);
    form.of_double = functions_for<double>(isa);
    form.dtype = dtype;
    form.size = operand.size();
    std::int64_t offset = 0;
    for (const Segment& segment : operand.segments) {
        const std::int64_t size = segment.size();
        if (size == 0) continue;
        if (operand.layout == Layout::mul_ir && segment.multiplicity > 1 && segment.components > 1) {
            form.pieces.push_back({offset, segment.multiplicity, segment.components});
            form.transposed = true;
        } else if (!form.pieces.empty() && form.pieces.back().components == 1) {
            form.pieces.back().channels += size;
        } else {
            form.pieces.push_back({offset, size, 1});
        }
        offset += size;
    }
    return form;
}

template <class T>
void load_row(const RowForm& form, const void* stored, T* row) {
    switch (form.dtype) {
        case DType::float32:
            return load(form, static_cast<const float*>(stored), row);
        case DType::float64:
            return load(form, static_cast<const double*>(stored), row);
        case DType::bfloat16:
            return load(form, static_cast<const Bfloat16*>(stored), row);
        case DType::float16:
            return load(form, static_cast<const Float16*>(stored), row);
    }
}

template <class T>
void store_row(const RowForm& form, const T* row, void* stored) {
    switch (form.dtype) {
        case DType::float32:
            return store(form, row, static_cast<float*>(stored));
        case DType::float64:
            return store(form, row, static_cast<double*>(stored));
        case DType::bfloat16:
            return store(form, row, static_cast<Bfloat16*>(stored));
        case DType::float16:
            return store(form, row, static_cast<Float16*>(stored));
    }
}

template void load_row(const RowForm&, const void*, float*);
template void load_row(const RowForm&, const void*, double*);
template void store_row(const RowForm&, const float*, void*);
template void store_row(const RowForm&, const double*, void*);

}  // namespace clebsch
