#pragma once
// Runs a plan on the reference's inputs: stores arrays in the asked dtypes and strides, launches, reads the outputs back as long double.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "describe/reference.hpp"
#include "run/half.hpp"
#include "run/plan.hpp"

namespace clebsch::testing {

inline void store_number(std::byte* at, DType dtype, long double value) {
    const auto put = [&](auto number) { std::memcpy(at, &number, sizeof number); };
    switch (dtype) {
        case DType::float32:
            return put(static_cast<float>(value));
        case DType::float64:
            return put(static_cast<double>(value));
        case DType::bfloat16:
            return put(to_bfloat16(static_cast<float>(value)));
        case DType::float16:
            return put(to_float16(static_cast<float>(value)));
    }
}

inline long double load_number(const std::byte* at, DType dtype) {
    const auto get = [&](auto number) {
        std::memcpy(&number, at, sizeof number);
        return number;
    };
    switch (dtype) {
        case DType::float32:
            return get(float{});
        case DType::float64:
            return get(double{});
        case DType::bfloat16:
            return to_float(get(Bfloat16{}));
        case DType::float16:
            return to_float(get(Float16{}));
    }
    return 0;
}

inline long double rounded(long double value, DType dtype) {
    std::byte bytes[8];
    store_number(bytes, dtype, value);
    return load_number(bytes, dtype);
}

/// An array with room around its rows; everything outside rows is a pattern that must survive.
class StoredArray {
 public:
    /// `shift`: bytes from a multiple of 16 to the array.
    StoredArray(DType dtype, std::int64_t rows, std::int64_t size, std::int64_t stride, std::size_t shift = 0)
        : dtype_(dtype), rows_(rows), size_(size), stride_(stride), shift_(shift) {
        bytes_.assign(static_cast<std::size_t>(rows * stride + 16) * size_of(dtype) + shift, std::byte{0x5a});
    }
    Buffer buffer(bool packed) { return {.data = row(0), .dtype = dtype_, .rows = rows_, .row_stride = packed ? 0 : stride_}; }
    void fill(const ReferenceArray& numbers) {
        for (std::int64_t r = 0; r < rows_; ++r)
            for (std::int64_t i = 0; i < size_; ++i)
                store_number(row(r) + static_cast<std::size_t>(i) * size_of(dtype_), dtype_,
                             numbers[static_cast<std::size_t>(r * size_ + i)]);
    }
    ReferenceArray numbers() {
        ReferenceArray result;
        for (std::int64_t r = 0; r < rows_; ++r)
            for (std::int64_t i = 0; i < size_; ++i)
                result.push_back(load_number(row(r) + static_cast<std::size_t>(i) * size_of(dtype_), dtype_));
        return result;
    }
    bool surroundings_intact() {
        const std::size_t element = size_of(dtype_);
        for (std::size_t b = 0; b < bytes_.size(); ++b) {
            const auto number = b < shift_ ? -1 : static_cast<std::int64_t>((b - shift_) / element) - offset;
            const bool inside = number >= 0 && number < rows_ * stride_ && number % stride_ < size_;
            if (!inside && bytes_[b] != std::byte{0x5a}) return false;
        }
        return true;
    }

 private:
    static constexpr std::int64_t offset = 3;  // so that rows are aligned to their elements only
    DType dtype_;
    std::int64_t rows_, size_, stride_;
    std::size_t shift_;
    std::vector<std::byte> bytes_;
    std::byte* row(std::int64_t r) { return bytes_.data() + shift_ + static_cast<std::size_t>(offset + r * stride_) * size_of(dtype_); }
};

/// An index array with `shift` bytes from a multiple of 16 to it.
class StoredIndex {
 public:
    StoredIndex(const std::vector<std::int64_t>& values, IndexType type, std::size_t shift) : type_(type), shift_(shift) {
        size_ = static_cast<std::int64_t>(values.size());
        bytes_.resize(values.size() * size_of(type) + shift + 1);
        for (std::size_t i = 0; i < values.size(); ++i) {
            const auto narrow = static_cast<std::int32_t>(values[i]);
            const void* value = type == IndexType::int64 ? static_cast<const void*>(&values[i]) : &narrow;
            std::memcpy(bytes_.data() + shift + i * size_of(type), value, size_of(type));
        }
    }
    IndexBuffer buffer() const { return {bytes_.data() + shift_, type_, size_}; }

 private:
    IndexType type_;
    std::int64_t size_ = 0;
    std::size_t shift_;
    std::vector<std::byte> bytes_;
};

struct RunOptions {
    std::int64_t padding = 0;  ///< numbers between rows
    IndexType index_type = IndexType::int64;
    ParallelFor parallel_for = {};
    std::size_t shift = 0;  ///< bytes that every array is shifted by; 4 makes arrays of 8-byte numbers lie between their multiples
    bool prepare = false;   ///< programs: weights are prepared before the launch
    const std::map<std::string, std::int64_t>* prepared_rows = nullptr;  ///< for other numbers of rows than the launch's
};

struct RunResult {
    std::map<std::string, ReferenceArray> outputs;
    bool surroundings_intact = true;
};

/// Inputs rounded to what `dtypes` can store.
inline ReferenceInputs rounded_inputs(const Polynomial& polynomial, ReferenceInputs inputs, const std::vector<DType>& dtypes) {
    for (std::size_t o = 0; o < polynomial.operands.size(); ++o)
        if (polynomial.operands[o].role == Role::input)
            for (long double& number : inputs.arrays.at(polynomial.operands[o].name)) number = rounded(number, dtypes[o]);
    return inputs;
}

inline RunResult run_plan(const PolynomialPlan& plan, const ReferenceInputs& inputs, const RunOptions& options = {}) {
    const Polynomial& polynomial = plan.polynomial();
    std::vector<StoredArray> arrays;
    std::vector<Buffer> buffers;
    for (std::size_t o = 0; o < polynomial.operands.size(); ++o) {
        const Operand& operand = polynomial.operands[o];
        const std::string space = polynomial.space_of(operand);
        arrays.emplace_back(plan.dtypes()[o], space.empty() ? 1 : inputs.rows.at(space), operand.size(), operand.size() + options.padding,
                            options.shift);
        if (operand.role == Role::input) arrays.back().fill(inputs.arrays.at(operand.name));
    }
    for (StoredArray& array : arrays) buffers.push_back(array.buffer(options.padding == 0));
    std::vector<StoredIndex> stored;
    std::vector<IndexBuffer> indices;
    for (const Index& index : polynomial.indices) stored.emplace_back(inputs.indices.at(index.name), options.index_type, options.shift);
    for (const StoredIndex& index : stored) indices.push_back(index.buffer());
    std::vector<std::int64_t> rows;
    for (const std::string& space : plan.spaces()) rows.push_back(space.empty() ? 1 : inputs.rows.at(space));
    const int threads = options.parallel_for.run == nullptr ? 1 : options.parallel_for.threads;
    // Garbage, at an odd address: nothing may be expected of a workspace.
    std::vector<unsigned char> workspace(plan.workspace_bytes(rows, threads) + 1, 0xff);
    plan.launch({.buffers = buffers, .indices = indices, .rows = rows}, {.data = workspace.data() + 1, .bytes = workspace.size() - 1},
                options.parallel_for);
    RunResult result;
    for (std::size_t o = 0; o < arrays.size(); ++o) {
        if (polynomial.operands[o].role == Role::output) result.outputs[polynomial.operands[o].name] = arrays[o].numbers();
        result.surroundings_intact = result.surroundings_intact && arrays[o].surroundings_intact();
    }
    return result;
}

/// Norm of the difference over the norm of the reference (0 if both vanish); infinite when a number is not finite.
inline double relative_error(const ReferenceArray& result, const ReferenceArray& reference) {
    if (result.size() != reference.size()) return INFINITY;
    long double difference = 0, norm = 0;
    for (std::size_t i = 0; i < result.size(); ++i) {
        if (!std::isfinite(result[i])) return INFINITY;
        difference += (result[i] - reference[i]) * (result[i] - reference[i]);
        norm += reference[i] * reference[i];
    }
    if (difference == 0) return 0;
    return static_cast<double>(std::sqrt(difference / norm));
}

/// The largest of the outputs; infinite when something beside the arrays was written.
inline double error_against(const RunResult& result, const std::map<std::string, ReferenceArray>& reference) {
    if (!result.surroundings_intact) return INFINITY;
    double largest = 0;
    for (const auto& [name, numbers] : reference) largest = std::max(largest, relative_error(result.outputs.at(name), numbers));
    return largest;
}

}  // namespace clebsch::testing
