// ---- portable from here: it needs nothing of a device but device.cuh
// Sorts rows by where they lead, equal ones as they come: by 8 bits of the target at a time, the lowest first. For each such digit blocks
// count their rows of every value, counts become places, and rows go there. Nothing depends on which block comes first.
struct OrderArguments {
    const i64* targets_from;  // of places; rows that are masked lead to `masked`, behind all others
    const i64* rows_from;
    i64* targets_to;
    i64* rows_to;
    i64* counts;  // [digit][block], then the sum of every digit
    i64 rows, blocks, shift, masked;
    i64 last;  // whether this is the last digit: masked rows lead to -1 from here on
};
static constexpr int order_threads = 256, order_tile = 2048;

static __device__ __forceinline__ int digit_of(i64 target, i64 shift) { return static_cast<int>(target >> shift & 255); }

static __device__ __forceinline__ void order_count(const OrderArguments& a) {
    __shared__ int counts[256];
    const int me = threadIdx.x;
    counts[me] = 0;
    __syncthreads();
    const i64 begin = static_cast<i64>(blockIdx.x) * order_tile;
    for (int i = me; i < order_tile; i += order_threads)
        if (begin + i < a.rows) add(&counts[digit_of(a.targets_from[begin + i], a.shift)], 1);
    __syncthreads();
    a.counts[me * a.blocks + blockIdx.x] = counts[me];
}

// The sum of what lower threads of the block have, and of all in `total`.
static __device__ __forceinline__ i64 sum_below(i64 value, i64* of_warps, i64* total) {
    const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    i64 sum = value;
    for (int distance = 1; distance < 32; distance *= 2) {
        const i64 other = __shfl_sync(0xffffffffu, sum, lane >= distance ? lane - distance : lane);
        if (lane >= distance) sum += other;
    }
    if (lane == 31) of_warps[warp] = sum;
    __syncthreads();
    i64 before = 0, all = 0;
    for (int w = 0; w < order_threads / 32; ++w) {
        if (w < warp) before += of_warps[w];
        all += of_warps[w];
    }
    __syncthreads();
    *total = all;
    return before + sum - value;
}

// A block for every digit: counts become the sums of those of earlier blocks.
static __device__ __forceinline__ void order_scan(const OrderArguments& a) {
    __shared__ i64 of_warps[order_threads / 32];
    i64* const counts = a.counts + blockIdx.x * a.blocks;
    i64 before = 0;
    for (i64 begin = 0; begin < a.blocks; begin += order_threads) {
        const i64 i = begin + threadIdx.x;
        const i64 count = i < a.blocks ? counts[i] : 0;
        i64 total;
        const i64 below = sum_below(count, of_warps, &total);
        if (i < a.blocks) counts[i] = before + below;
        before += total;
    }
    if (threadIdx.x == 0) a.counts[256 * a.blocks + blockIdx.x] = before;
}

static __device__ __forceinline__ void order_place(const OrderArguments& a) {
    __shared__ i64 next[256];                             // of every digit: where its next row goes
    __shared__ i64 of_warp[order_threads / 32][256];      // of those 256 rows: how many, then where each warp's begin
    __shared__ i64 of_warps[order_threads / 32];
    const int me = threadIdx.x, lane = me % 32, warp = me / 32;
    i64 total;
    const i64 lower = sum_below(a.counts[256 * a.blocks + me], of_warps, &total);
    next[me] = lower + a.counts[me * a.blocks + blockIdx.x];
    const i64 begin = static_cast<i64>(blockIdx.x) * order_tile;
    for (int round = 0; round < order_tile && begin + round < a.rows; round += order_threads) {
        for (int w = 0; w < order_threads / 32; ++w) of_warp[w][me] = 0;
        __syncthreads();
        const i64 at = begin + round + me;
        const bool inside = at < a.rows;
        const i64 target = inside ? a.targets_from[at] : 0, row = inside ? a.rows_from[at] : 0;
        const int digit = digit_of(target, a.shift);
        unsigned alike = __ballot_sync(0xffffffffu, inside);  // lanes with the same digit
        for (int bit = 1; bit < 256; bit *= 2) {
            const unsigned set = __ballot_sync(0xffffffffu, (digit & bit) != 0);
            alike &= digit & bit ? set : ~set;
        }
        const int rank = __popc(alike & ((1u << lane) - 1));
        if (inside && rank == 0) of_warp[warp][digit] = __popc(alike);
        __syncthreads();
        i64 place = next[me];
        for (int w = 0; w < order_threads / 32; ++w) {
            const i64 count = of_warp[w][me];
            of_warp[w][me] = place;
            place += count;
        }
        next[me] = place;
        __syncthreads();
        if (inside) {
            const i64 to = of_warp[warp][digit] + rank;
            a.targets_to[to] = a.last && target == a.masked ? -1 : target;
            a.rows_to[to] = row;
        }
        __syncthreads();
    }
}
