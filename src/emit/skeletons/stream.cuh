// What stream kernels stand on. A barrier in shared memory counts arrivals and, where the hardware has it, bytes of bulk copies; the
// producer waits on "empty", fills a stage and lets "full" complete by itself; consumers wait on "full", compute and arrive on "empty".
struct Barrier { unsigned long long state; };

static __device__ __forceinline__ unsigned in_shared(const void* pointer) { return static_cast<unsigned>(__cvta_generic_to_shared(pointer)); }

static __device__ __forceinline__ void barrier_start(Barrier* barrier, int arrivals) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(in_shared(barrier)), "r"(arrivals) : "memory");
}
static __device__ __forceinline__ void barrier_arrive(Barrier* barrier) {
    asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" ::"r"(in_shared(barrier)) : "memory");
}
// Arrives once this thread's earlier asynchronous copies have landed.
static __device__ __forceinline__ void barrier_arrive_after_copies(Barrier* barrier) {
    asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(in_shared(barrier)) : "memory");
}
static __device__ __forceinline__ void barrier_wait(Barrier* barrier, int parity) {
    unsigned done = 0;
    while (!done) {
#if __CUDA_ARCH__ >= 900
        asm volatile("{ .reg .pred p; mbarrier.try_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                     : "=r"(done) : "r"(in_shared(barrier)), "r"(parity) : "memory");
#else
        asm volatile("{ .reg .pred p; mbarrier.test_wait.parity.shared.b64 p, [%1], %2; selp.u32 %0, 1, 0, p; }"
                     : "=r"(done) : "r"(in_shared(barrier)), "r"(parity) : "memory");
#endif
    }
}
// Makes started barriers visible to the copy engine.
static __device__ __forceinline__ void barriers_ready() {
#if __CUDA_ARCH__ >= 900
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
#endif
}

// Registers move from producers to consumers: a warp group keeps or claims so many per thread.
template <int Count> static __device__ __forceinline__ void keep_registers() { asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(Count)); }
template <int Count> static __device__ __forceinline__ void claim_registers() { asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(Count)); }

// A row on its way into a stage, by the whole producer warp. `whole`: it starts at a multiple of 16 bytes. `kept`: other blocks will read
// it again, so the second-level cache should hold it; what is read once should leave first.
template <class S> static __device__ __forceinline__ void copy_row(S* to, const S* from, int count, bool whole, bool kept, Barrier* full, int lane) {
    const int bytes = count * static_cast<int>(sizeof(S));
#if __CUDA_ARCH__ >= 900
    if (whole && bytes % 16 == 0) {
        if (lane == 0) {
            unsigned long long policy;
            if (kept) asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
            else asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
            asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(in_shared(full)), "r"(bytes) : "memory");
            asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::"r"(
                             in_shared(to)), "l"(from), "r"(bytes), "r"(in_shared(full)), "l"(policy) : "memory");
        }
        return;
    }
#endif
    char* bytes_to = reinterpret_cast<char*>(to);
    const char* bytes_from = reinterpret_cast<const char*>(from);
    if (whole && bytes % 16 == 0) {
        for (int i = lane * 16; i < bytes; i += 512)
            asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(in_shared(bytes_to + i)), "l"(bytes_from + i) : "memory");
    } else if (sizeof(S) % 4 == 0) {
        for (int i = lane * 4; i < bytes; i += 128)
            asm volatile("cp.async.ca.shared.global [%0], [%1], 4;" ::"r"(in_shared(bytes_to + i)), "l"(bytes_from + i) : "memory");
    } else {
        for (int i = lane; i < count; i += 32) to[i] = from[i];
    }
}

static __device__ __forceinline__ void store_once(float* at, float value) { __stcs(at, value); }
static __device__ __forceinline__ void store_once(double* at, double value) { __stcs(at, value); }
template <class S, class T> static __device__ __forceinline__ void store_once(S* at, T value) { store(at, value); }

// Reads an entry of an index array (clamped) so that it lies in the first-level cache later; `keep` says until when the read may take.
static __device__ __forceinline__ int touch(const void* index, i64 wide, i64 row, i64 rows) {
    row = row < 0 ? 0 : row < rows ? row : rows - 1;
    int value;
    asm volatile("ld.global.b32 %0, [%1];" : "=r"(value) : "l"(static_cast<const char*>(index) + row * (wide ? 8 : 4)));
    return value;
}
static __device__ __forceinline__ void keep(int value) { asm volatile("" ::"r"(value)); }

// ---- portable from here: tests put their own definitions in front of it

// What the producer says about a stage: which row it holds, and whether a new receiver starts with it.
enum : int { row_starts = 1, rows_end = 2, sums_add = 4 };

// Sums of N values (a power of two, at most 32) over the lanes of a warp by exchanging halves: lane l gets that of value l % N.
template <int N, int Half, class T> struct LaneSums {
    static __device__ __forceinline__ void halve(T (&values)[N], int lane) {
        const bool upper = lane & Half;
        for (int i = 0; i < Half; ++i) {
            const T sent = upper ? values[i] : values[i + Half];
            const T kept = upper ? values[i + Half] : values[i];
            values[i] = kept + __shfl_xor_sync(0xffffffffu, sent, Half);
        }
        LaneSums<N, Half / 2, T>::halve(values, lane);
    }
};
template <int N, class T> struct LaneSums<N, 0, T> {
    static __device__ __forceinline__ void halve(T (&)[N], int) {}
};
template <int N, class T> static __device__ __forceinline__ T lane_sums(T (&values)[N], int lane) {
    LaneSums<N, N / 2, T>::halve(values, lane);
    T sum = values[0];
    for (int other = N; other < 32; other *= 2) sum += __shfl_xor_sync(0xffffffffu, sum, other);
    return sum;
}

// The last row before `row` whose index is not masked leads to ...; -1: there is none. `target(row)` is the lookup. By a whole warp.
template <class Target> static __device__ __forceinline__ i64 target_before(i64 row, int lane, Target target) {
    for (i64 end = row; end > 0; end -= 32) {
        const i64 at = end - 1 - lane;
        const i64 found = at >= 0 ? target(at) : -1;
        const unsigned valid = __ballot_sync(0xffffffffu, found >= 0);
        if (valid) return __shfl_sync(0xffffffffu, found, __ffs(valid) - 1);
    }
    return -1;
}
template <class Target> static __device__ __forceinline__ i64 target_from(i64 row, i64 rows, int lane, Target target) {
    for (i64 begin = row; begin < rows; begin += 32) {
        const i64 at = begin + lane;
        const i64 found = at < rows ? target(at) : -1;
        const unsigned valid = __ballot_sync(0xffffffffu, found >= 0);
        if (valid) return __shfl_sync(0xffffffffu, found, __ffs(valid) - 1);
    }
    return -1;
}

// Where a chunk begins: the first row from `row` on at which the target changes; `row` itself, and cut = true, if `reach` rows show no
// change (a receiver with very many rows: both sides then add to it). A function of the indices alone, so that neighbours agree.
template <class Target> static __device__ __forceinline__ i64 chunk_begin(i64 row, i64 rows, i64 reach, int lane, Target target, bool* cut) {
    *cut = false;
    if (row <= 0) return 0;
    if (row >= rows) return rows;
    for (i64 begin = row; begin < row + reach && begin < rows; begin += 32) {
        const i64 at = begin + lane;
        const bool inside = at < rows && at < row + reach;
        const i64 here = inside ? target(at) : -1, before = inside ? target(at - 1) : -1;
        const unsigned change = __ballot_sync(0xffffffffu, here >= 0 && before >= 0 && here != before);
        if (change) return begin + __ffs(change) - 1;
    }
    if (row + reach >= rows) return rows;
    *cut = true;
    return row;
}
