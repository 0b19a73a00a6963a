#include "model/evaluation.hpp"

#include <algorithm>
#include <cstring>

namespace clebsch {
namespace {

/// The value behind an argument: inputs, then outputs.
const Value& argument(const Program& program, std::size_t i) {
    const std::size_t inputs = program.inputs.size();
    return program.values[static_cast<std::size_t>(i < inputs ? program.inputs[i] : program.outputs[i - inputs])];
}

/// One type for all but the named arguments, which have the other.
std::vector<DType> dtypes_of(const Program& program, DType usual, DType other, const std::vector<std::string>& names) {
    std::vector<DType> dtypes(program.inputs.size() + program.outputs.size(), usual);
    for (std::size_t i = 0; i < program.inputs.size(); ++i)
        if (std::ranges::find(names, argument(program, i).name) != names.end()) dtypes[i] = other;
    return dtypes;
}

}  // namespace

std::int64_t rows_of_weights(const Model& model, const std::string& space) {
    if (space.empty()) return 1;
    return space == "piece" ? std::ssize(model.piece_ends) : std::ssize(model.atomic_numbers);
}

std::vector<DType> gradient_dtypes(const Program& program, DType dtype) { return dtypes_of(program, dtype, DType::float64, {"vectors"}); }

std::vector<DType> totals_dtypes(const Program& program, DType dtype) {
    return dtypes_of(program, DType::float64, dtype, {"atom_energy", "vectors_gradient"});
}

std::vector<std::byte> as_stored(std::span<const double> values, DType dtype) {
    std::vector<std::byte> bytes(values.size() * size_of(dtype));
    if (dtype == DType::float64) {
        if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
        return bytes;
    }
    std::byte* out = bytes.data();
    for (const double value : values) {
        const auto rounded = static_cast<float>(value);
        std::memcpy(out, &rounded, sizeof rounded);
        out += sizeof rounded;
    }
    return bytes;
}

CallArrays::CallArrays(const Program& program, const std::vector<std::string>& spaces, const std::vector<DType>& dtypes)
    : program_(program),
      spaces_(spaces),
      dtypes_(dtypes),
      buffers_(dtypes.size()),
      indices_(program.indices.size()),
      rows_(spaces.size()) {}

void CallArrays::rows(const char* space, std::int64_t count) {
    const auto found = std::ranges::find(spaces_, space);
    if (found != spaces_.end()) rows_[static_cast<std::size_t>(found - spaces_.begin())] = count;
}

void CallArrays::index(const char* name, const std::int64_t* values, std::int64_t count) {
    const auto found = std::ranges::find(program_.indices, name, &Index::name);
    if (found != program_.indices.end())
        indices_[static_cast<std::size_t>(found - program_.indices.begin())] = {values, IndexType::int64, count};
}

void CallArrays::array(const std::string& name, const void* data, std::int64_t count) {
    for (std::size_t i = 0; i < buffers_.size(); ++i)
        if (argument(program_, i).name == name) buffers_[i] = {const_cast<void*>(data), dtypes_[i], count, 0};
}

}  // namespace clebsch
