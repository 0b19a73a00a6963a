#include "io/array.hpp"

#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>

#include "base/error.hpp"

namespace clebsch {

static_assert(std::endian::native == std::endian::little, "arrays of files are copied as they are: a big-endian machine needs swaps here");

namespace {

struct ElementName {
    ElementType type;
    std::int64_t size;
    const char* name;
};
constexpr ElementName element_names[] = {
    {ElementType::boolean, 1, "bool"},
    {ElementType::uint8, 1, "uint8"},
    {ElementType::int8, 1, "int8"},
    {ElementType::uint16, 2, "uint16"},
    {ElementType::int16, 2, "int16"},
    {ElementType::uint32, 4, "uint32"},
    {ElementType::int32, 4, "int32"},
    {ElementType::uint64, 8, "uint64"},
    {ElementType::int64, 8, "int64"},
    {ElementType::float8_e4m3, 1, "float8_e4m3"},
    {ElementType::float8_e5m2, 1, "float8_e5m2"},
    {ElementType::float8_e8m0, 1, "float8_e8m0"},
    {ElementType::float16, 2, "float16"},
    {ElementType::bfloat16, 2, "bfloat16"},
    {ElementType::float32, 4, "float32"},
    {ElementType::float64, 8, "float64"},
    {ElementType::complex64, 8, "complex64"},
    {ElementType::complex128, 16, "complex128"},
};

const ElementName& entry(ElementType type) {
    for (const ElementName& candidate : element_names)
        if (candidate.type == type) return candidate;
    fail("unknown element type " + std::to_string(static_cast<int>(type)));
}

/// IEEE half precision; every value is a float.
float from_float16(std::uint16_t bits) {
    const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
    const std::uint32_t exponent = (bits >> 10) & 31u, fraction = bits & 1023u;
    if (exponent == 0) {  // zero and subnormals: fraction * 2^-24
        const float magnitude = static_cast<float>(fraction) * 0x1p-24f;
        return sign != 0 ? -magnitude : magnitude;
    }
    const std::uint32_t wide = exponent == 31 ? 255u : exponent + 112u;
    return std::bit_cast<float>(sign | wide << 23 | fraction << 13);
}

/// `out` has as many numbers as the array.
template <class Stored, class Value, class Convert>
void convert(const Array& array, std::vector<Value>& out, Convert from) {
    if constexpr (std::is_same_v<Stored, Value>) {
        if (!out.empty()) std::memcpy(out.data(), array.bytes.data(), out.size() * sizeof(Value));
        return;
    }
    const std::byte* read = array.bytes.data();
    for (Value& value : out) {
        Stored stored;
        std::memcpy(&stored, read, sizeof stored);
        read += sizeof stored;
        value = from(stored);
    }
}

template <class Value>
bool convert_floats(const Array& array, std::vector<Value>& out) {
    switch (array.type) {
        case ElementType::float16:
            convert<std::uint16_t>(array, out, [](std::uint16_t bits) { return static_cast<Value>(from_float16(bits)); });
            return true;
        case ElementType::bfloat16:
            convert<std::uint16_t>(array, out, [](std::uint16_t bits) {
                return static_cast<Value>(std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16));
            });
            return true;
        case ElementType::float32:
            convert<float>(array, out, [](float value) { return static_cast<Value>(value); });
            return true;
        default:
            return false;
    }
}

template <class Value>
Array copy_of(ElementType type, const std::vector<Value>& values, std::vector<std::int64_t> shape) {
    const std::optional<std::int64_t> bytes = byte_count(type, shape);
    if (!bytes || *bytes != static_cast<std::int64_t>(values.size() * sizeof(Value)))
        fail("array: shape " + to_text(shape) + " does not hold " + std::to_string(values.size()) + " values");
    Array array{type, std::move(shape), {}};
    array.bytes.resize(values.size() * sizeof(Value));
    if (!values.empty()) std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
    return array;
}

}  // namespace

std::int64_t size_of(ElementType type) { return entry(type).size; }
std::string to_text(ElementType type) { return entry(type).name; }

std::optional<std::int64_t> byte_count(ElementType type, const std::vector<std::int64_t>& shape) {
    std::int64_t product = size_of(type);
    bool empty = false;
    for (const std::int64_t extent : shape) {
        if (extent < 0) return std::nullopt;
        if (extent == 0) {
            empty = true;
        } else if (__builtin_mul_overflow(product, extent, &product)) {
            return std::nullopt;
        }
    }
    return empty ? 0 : product;
}

std::string to_text(const std::vector<std::int64_t>& shape) {
    std::string out = "[";
    for (std::size_t axis = 0; axis < shape.size(); ++axis) {
        if (axis == 8) return out + ", ...]";
        out += (axis ? ", " : "") + std::to_string(shape[axis]);
    }
    return out + "]";
}

Array make_array(const std::vector<float>& values, std::vector<std::int64_t> shape) {
    return copy_of(ElementType::float32, values, std::move(shape));
}
Array make_array(const std::vector<double>& values, std::vector<std::int64_t> shape) {
    return copy_of(ElementType::float64, values, std::move(shape));
}
Array make_array(const std::vector<std::int64_t>& values, std::vector<std::int64_t> shape) {
    return copy_of(ElementType::int64, values, std::move(shape));
}

std::vector<double> to_float64(const Array& array) {
    std::vector<double> out(static_cast<std::size_t>(array.elements()));
    if (convert_floats(array, out)) return out;
    const auto number = [](auto stored) { return static_cast<double>(stored); };
    switch (array.type) {
        case ElementType::float64:
            convert<double>(array, out, number);
            break;
        case ElementType::boolean:
            convert<std::uint8_t>(array, out, [](std::uint8_t stored) { return stored != 0 ? 1.0 : 0.0; });
            break;
        case ElementType::uint8:
            convert<std::uint8_t>(array, out, number);
            break;
        case ElementType::int8:
            convert<std::int8_t>(array, out, number);
            break;
        case ElementType::uint16:
            convert<std::uint16_t>(array, out, number);
            break;
        case ElementType::int16:
            convert<std::int16_t>(array, out, number);
            break;
        case ElementType::uint32:
            convert<std::uint32_t>(array, out, number);
            break;
        case ElementType::int32:
            convert<std::int32_t>(array, out, number);
            break;
        case ElementType::uint64:
            convert<std::uint64_t>(array, out, number);
            break;
        case ElementType::int64:
            convert<std::int64_t>(array, out, number);
            break;
        default:
            throw Error(ErrorKind::unsupported, "array of " + to_text(array.type) + ": expected real numbers");
    }
    return out;
}

std::vector<float> to_float32(const Array& array) {
    std::vector<float> out(static_cast<std::size_t>(array.elements()));
    if (!convert_floats(array, out))
        throw Error(ErrorKind::unsupported, "array of " + to_text(array.type) + ": expected float32, float16 or bfloat16");
    return out;
}

}  // namespace clebsch
