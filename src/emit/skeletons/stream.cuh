// What stream kernels stand on. A barrier in shared memory counts arrivals and, where the hardware has it, bytes of bulk copies; the
// producer waits on "empty", fills a stage and lets "full" complete by itself; consumers wait on "full", compute and arrive on "empty".
struct Barrier { unsigned long long state; };

// Places in shared memory are numbers: pointers made of them are known to point there.
typedef unsigned SharedAddress;
static __device__ __forceinline__ SharedAddress in_shared(const void* pointer) { return static_cast<unsigned>(__cvta_generic_to_shared(pointer)); }
template <class T> static __device__ __forceinline__ T* at(SharedAddress place) { return static_cast<T*>(__cvta_shared_to_generic(place)); }
// The same where a line of 16 bytes begins, which loads of several numbers need.
template <class T> static __device__ __forceinline__ T* at_line(SharedAddress place) {
    return static_cast<T*>(__builtin_assume_aligned(__cvta_shared_to_generic(place), 16));
}
// The same number, but the compiler does not know: what is computed from it here is neither kept from before nor for later.
template <class T> static __device__ __forceinline__ T again(T value) {
    asm volatile("" : "+r"(value));
    return value;
}
// threadIdx.x and gridDim.x, likewise.
static __device__ __forceinline__ int thread_again() {
    int thread;
    asm volatile("mov.u32 %0, %%tid.x;" : "=r"(thread));
    return thread;
}
static __device__ __forceinline__ int blocks_again() {
    int blocks;
    asm volatile("mov.u32 %0, %%nctaid.x;" : "=r"(blocks));
    return blocks;
}
// A number that is kept in a register: the compiler would rather compute it again in every row.
template <class T> static __device__ __forceinline__ T opaque(T value, int lane) { return __shfl_sync(0xffffffffu, value, lane); }

static __device__ __forceinline__ void barrier_start(Barrier* barrier, int arrivals) {
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(in_shared(barrier)), "r"(arrivals) : "memory");
}
static __device__ __forceinline__ void barrier_arrive(Barrier* barrier) {
    asm volatile("{ .reg .b64 state; mbarrier.arrive.shared.b64 state, [%0]; }" ::"r"(in_shared(barrier)) : "memory");
}
// The barrier also waits for so many bytes of bulk copies.
static __device__ __forceinline__ void barrier_expect(Barrier* barrier, int bytes) {
#if __CUDA_ARCH__ >= 900
    asm volatile("mbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(in_shared(barrier)), "r"(bytes) : "memory");
#endif
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

// The copy engine (sm_90 and newer): rows that start at multiples of 16 bytes and are as long, by one thread. Rows that are kept will be
// read again by other blocks, so the second-level cache should hold them; what is used once should leave first.
#if __CUDA_ARCH__ >= 900
static constexpr bool has_bulk = true;
template <bool Kept> static __device__ __forceinline__ unsigned long long cache_policy() {
    unsigned long long policy;
    if (Kept) asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
    else asm volatile("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
    return policy;
}
template <bool Kept> static __device__ __forceinline__ void copy_bulk(SharedAddress to, const void* from, int bytes, Barrier* full) {
    asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.L2::cache_hint [%0], [%1], %2, [%3], %4;" ::"r"(to),
                 "l"(from), "r"(bytes), "r"(in_shared(full)), "l"(cache_policy<Kept>()) : "memory");
}
static __device__ __forceinline__ void store_bulk(void* to, SharedAddress from, int bytes) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [%0], [%1], %2, %3;" ::"l"(to), "r"(from), "r"(bytes),
                 "l"(cache_policy<false>()) : "memory");
}
static __device__ __forceinline__ void add_bulk(float* to, SharedAddress from, int bytes) {
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.L2::cache_hint.add.f32 [%0], [%1], %2, %3;" ::"l"(to), "r"(from),
                 "r"(bytes), "l"(cache_policy<true>()) : "memory");
}
static __device__ __forceinline__ void add_bulk(double* to, SharedAddress from, int bytes) {
    asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.L2::cache_hint.add.f64 [%0], [%1], %2, %3;" ::"l"(to), "r"(from),
                 "r"(bytes), "l"(cache_policy<true>()) : "memory");
}
// What a thread handed to the copy engine since the last call is one group; all but the latest groups have been read from shared memory;
// everything has been written.
static __device__ __forceinline__ void bulk_group() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }
template <int Latest> static __device__ __forceinline__ void bulk_read() { asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(Latest) : "memory"); }
static __device__ __forceinline__ void bulk_written() { asm volatile("cp.async.bulk.wait_group 0;" ::: "memory"); }
// The copy engine sees what this thread wrote to shared memory, and writes only after what this thread has read: without it an arrival at a
// barrier overtakes loads on their way, and the next row lands in a stage that is still being read.
static __device__ __forceinline__ void visible_to_bulk() { asm volatile("fence.proxy.async.shared::cta;" ::: "memory"); }
#else
static constexpr bool has_bulk = false;
template <bool Kept> static __device__ __forceinline__ void copy_bulk(SharedAddress, const void*, int, Barrier*) {}
static __device__ __forceinline__ void store_bulk(void*, SharedAddress, int) {}
template <class T> static __device__ __forceinline__ void add_bulk(T*, SharedAddress, int) {}
static __device__ __forceinline__ void bulk_group() {}
template <int Latest> static __device__ __forceinline__ void bulk_read() {}
static __device__ __forceinline__ void bulk_written() {}
static __device__ __forceinline__ void visible_to_bulk() {}
#endif

// A row on its way into a stage, by the whole producer warp. `aligned`: it starts at a multiple of 16 bytes.
template <class S> static __device__ __forceinline__ void copy_row(S* to, const S* from, int count, bool aligned, int lane) {
    const int bytes = count * static_cast<int>(sizeof(S));
    char* bytes_to = reinterpret_cast<char*>(to);
    const char* bytes_from = reinterpret_cast<const char*>(from);
    if (aligned && bytes % 16 == 0) {
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

// ---- portable from here: tests put their own definitions in front of it

// What the producer says about a stage: which row it holds, and whether a new receiver starts with it.
enum : int { row_starts = 1, rows_end = 2, sums_add = 4 };

// Where a consumer is in its ring of stages: how many are left before the first one comes again and, 256 times, the parity of the barriers'
// phase. One register, where the ends of the ring and the phase would take three.
static __device__ __forceinline__ int stages_left(int ring) { return ring & 255; }
static __device__ __forceinline__ int phase_of(int ring) { return ring >> 8; }

// A lane's number for the whole warp.
static __device__ __forceinline__ i64 broadcast(i64 value, int lane) { return __shfl_sync(0xffffffffu, value, lane); }
template <class T> static __device__ __forceinline__ const T* broadcast(const T* value, int lane) {
    return reinterpret_cast<const T*>(broadcast(reinterpret_cast<i64>(value), lane));
}
// The highest lane of a set; 0 if there is none.
static __device__ __forceinline__ int last_of(unsigned lanes) { return lanes ? 31 - __clz(static_cast<int>(lanes)) : 0; }

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

// The last row from `begin` to before `row` whose index is not masked leads to ...; -1: there is none. `target(row)` is the lookup. By a
// whole warp.
template <class Target> static __device__ __forceinline__ i64 target_before(i64 row, i64 begin, int lane, Target target) {
    for (i64 end = row; end > begin; end -= 32) {
        const i64 at = end - 1 - lane;
        const i64 found = at >= begin ? target(at) : -1;
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
// change (a receiver that is divided: both sides then add to it). A function of the indices alone, so that neighbours agree.
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
