// What generated kernels stand on: stored numbers to and from the compute type, atomic additions, lookups in index arrays.
// No headers: the run-time compiler has none.
#pragma nv_diag_suppress 177  // not every kernel uses every function
typedef long long i64;

struct Bfloat16 { unsigned short bits; };
struct Float16 { unsigned short bits; };

template <class T> static __device__ __forceinline__ T number(float stored) { return static_cast<T>(stored); }
template <class T> static __device__ __forceinline__ T number(double stored) { return static_cast<T>(stored); }
template <class T> static __device__ __forceinline__ T number(Bfloat16 stored) {
    return static_cast<T>(__uint_as_float(static_cast<unsigned>(stored.bits) << 16));
}
template <class T> static __device__ __forceinline__ T number(Float16 stored) {
    float value;
    asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(stored.bits));
    return static_cast<T>(value);
}

static __device__ __forceinline__ void store(float* at, float value) { *at = value; }
static __device__ __forceinline__ void store(float* at, double value) { *at = static_cast<float>(value); }
static __device__ __forceinline__ void store(double* at, double value) { *at = value; }
static __device__ __forceinline__ void store(double* at, float value) { *at = static_cast<double>(value); }
template <class T> static __device__ __forceinline__ void store(Bfloat16* at, T value) {
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(at->bits) : "f"(static_cast<float>(value)));
}
template <class T> static __device__ __forceinline__ void store(Float16* at, T value) {
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(at->bits) : "f"(static_cast<float>(value)));
}

template <class T> static __device__ __forceinline__ void add(T* at, T value) { atomicAdd(at, value); }

// Kernels that may begin before the one in front of them on the stream has ended wait for it here; that one says when they may.
static __device__ __forceinline__ void wait_for_kernel_before() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}
static __device__ __forceinline__ void let_next_kernel_begin() {
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;" ::: "memory");
#endif
}

// Shared memory whose size a launch decides.
#define DYNAMIC_SHARED(name) extern __shared__ __align__(128) char name[]

// ---- portable from here: tests put their own definitions in front of it
// Sum over the lanes of a warp; every lane gets it.
template <class T> static __device__ __forceinline__ T warp_sum(T value) {
    for (int other = 16; other > 0; other /= 2) value += __shfl_xor_sync(0xffffffffu, value, other);
    return value;
}

// The row an index leads to; -1 where it says so, and where it lies, which the flag then tells.
static __device__ __forceinline__ i64 look_up(const void* index, i64 wide, i64 row, i64 rows, unsigned* error) {
    if (row < 0) return -1;
    const i64 found = wide ? static_cast<const i64*>(index)[row] : static_cast<i64>(static_cast<const int*>(index)[row]);
    if (found >= -1 && found < rows) return found;
    *error = 1;
    return -1;
}

// The two letters of pair number `pair` among u < v < n.
static __device__ __forceinline__ void unpair(i64 pair, i64 n, i64* u, i64* v) {
    i64 first = 0, left = pair;
    while (left >= n - 1 - first) left -= n - 1 - first++;
    *u = first;
    *v = first + 1 + left;
}
