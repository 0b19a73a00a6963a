// As many independent chains as hide the latency of two multiply-add units and fit the registers.
#include "run/kernels/peaks.hpp"

#include "run/simd.hpp"

namespace clebsch::CLEBSCH_ISA {
namespace {

constexpr int chains = vector_registers >= 32 ? 24 : 12;

template <class T>
std::int64_t spin(std::int64_t rounds, T* start) {
    const Vector<T> factor = broadcast(start[0]), added = broadcast(start[1]);
    Vector<T> sums[chains];
#pragma GCC unroll 24
    for (int c = 0; c < chains; ++c) sums[c] = broadcast(start[0] + static_cast<T>(c));
    for (std::int64_t r = 0; r < rounds; ++r) {
#pragma GCC unroll 24
        for (int c = 0; c < chains; ++c) sums[c] = sums[c] * factor + added;
    }
    for (int c = 1; c < chains; ++c) sums[0] += sums[c];
    start[0] = sums[0][0];
    return rounds * chains * lanes_of<T>;
}

}  // namespace

std::int64_t spin_multiply_adds(std::int64_t rounds, float* start) { return spin(rounds, start); }
std::int64_t spin_multiply_adds(std::int64_t rounds, double* start) { return spin(rounds, start); }

}  // namespace clebsch::CLEBSCH_ISA
