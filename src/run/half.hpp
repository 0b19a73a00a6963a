#pragma once
// The two 16-bit floating-point types as bits: IEEE binary16 and bfloat16, to and from float, rounding to nearest even. Portable: no 16-bit
// arithmetic is asked of the compiler.
#include <bit>
#include <cmath>
#include <cstdint>

namespace clebsch {

struct Bfloat16 {
    std::uint16_t bits;
};
struct Float16 {
    std::uint16_t bits;
};

inline float to_float(Bfloat16 value) { return std::bit_cast<float>(std::uint32_t{value.bits} << 16); }

inline Bfloat16 to_bfloat16(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    if (std::isnan(value)) return {static_cast<std::uint16_t>(bits >> 16 | 0x40U)};  // keeps its sign, stays a NaN
    return {static_cast<std::uint16_t>((bits + 0x7fffU + (bits >> 16 & 1U)) >> 16)};
}

inline float to_float(Float16 value) {
    const std::uint32_t sign = (value.bits & 0x8000U) << 16;
    const std::uint32_t exponent = value.bits >> 10 & 31U, fraction = value.bits & 0x3ffU;
    if (exponent == 31) return std::bit_cast<float>(sign | 0x7f800000U | fraction << 13);
    if (exponent == 0) {  // zero or subnormal: fraction * 2^-24
        const float magnitude = static_cast<float>(fraction) * 0x1p-24F;
        return sign != 0 ? -magnitude : magnitude;
    }
    return std::bit_cast<float>(sign | (exponent + 112) << 23 | fraction << 13);
}

inline Float16 to_float16(float value) {
    const auto bits = std::bit_cast<std::uint32_t>(value);
    const auto sign = static_cast<std::uint16_t>(bits >> 16 & 0x8000U);
    const std::uint32_t magnitude = bits & 0x7fffffffU;
    if (magnitude > 0x7f800000U) return {static_cast<std::uint16_t>(sign | 0x7e00U)};
    if (magnitude >= 0x477ff000U) return {static_cast<std::uint16_t>(sign | 0x7c00U)};  // 65520 and above round to infinity
    if (magnitude < 0x38800000U) {                                                      // below 2^-14: a multiple of 2^-24
        const float scaled = std::bit_cast<float>(magnitude) + 0.5F;                    // the last place of 0.5 is 2^-24
        return {static_cast<std::uint16_t>(sign | (std::bit_cast<std::uint32_t>(scaled) - 0x3f000000U))};
    }
    const std::uint32_t rounded = magnitude + 0xfffU + (magnitude >> 13 & 1U) - (std::uint32_t{112} << 23);
    return {static_cast<std::uint16_t>(sign | rounded >> 13)};
}

}  // namespace clebsch
