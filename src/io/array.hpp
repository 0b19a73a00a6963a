#pragma once
// An array as files hold it: element type, shape, bytes in C order.
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace clebsch {

/// Element types of the file formats. Arithmetic happens in few of them; the rest can be carried through and converted.
enum class ElementType : std::uint8_t {
    boolean,
    uint8,
    int8,
    uint16,
    int16,
    uint32,
    int32,
    uint64,
    int64,
    float8_e4m3,
    float8_e5m2,
    float8_e8m0,
    float16,
    bfloat16,
    float32,
    float64,
    complex64,
    complex128,
};

std::int64_t size_of(ElementType type);  ///< bytes per element
std::string to_text(ElementType type);   ///< "float32"

/// Owns its bytes: little-endian, C order (last axis fastest). An empty shape is one number.
struct Array {
    ElementType type = ElementType::float32;
    std::vector<std::int64_t> shape;
    std::vector<std::byte> bytes;

    std::int64_t elements() const { return static_cast<std::int64_t>(bytes.size()) / size_of(type); }
    friend bool operator==(const Array&, const Array&) = default;
};

struct NamedArray {
    std::string name;
    Array array;
    friend bool operator==(const NamedArray&, const NamedArray&) = default;
};

/// The product of the axes times the size of an element; nothing for a negative axis or where a 64-bit signed number does not hold it
/// (axes of a shape with a zero are held to the same bound without the zero).
std::optional<std::int64_t> byte_count(ElementType type, const std::vector<std::int64_t>& shape);

std::string to_text(const std::vector<std::int64_t>& shape);  ///< "[89, 256]"

/// Copies of numbers. Throws Error when shape and count disagree.
Array make_array(const std::vector<float>& values, std::vector<std::int64_t> shape);
Array make_array(const std::vector<double>& values, std::vector<std::int64_t> shape);
Array make_array(const std::vector<std::int64_t>& values, std::vector<std::int64_t> shape);

/// The numbers of a float16, bfloat16, float32, float64, boolean or integer array (64-bit integers round to nearest); Error(unsupported)
/// for the rest.
std::vector<double> to_float64(const Array& array);
/// The numbers of a float16, bfloat16 or float32 array, all exact; Error(unsupported) for the rest.
std::vector<float> to_float32(const Array& array);

}  // namespace clebsch
