// ---- portable from here: it needs nothing of a device but device.cuh
// Whether a sorted index decreases, entries that are no row aside: each is compared with the last row before it. A block that meets one that
// is lower fills all outputs with bytes of ones, which are NaN in every dtype.
struct AscendingOutput { unsigned short* data; i64 stride, size, rows; };  // in pairs of bytes
struct AscendingArguments {
    const void* index;
    i64 wide, entries, index_rows, outputs;
    AscendingOutput output[8];
};

static __device__ __forceinline__ void ascending_or_nan(const AscendingArguments& a) {
    const int lane = threadIdx.x % 32;
    const auto row_at = [&](i64 i) -> i64 {
        if (i < 0 || i >= a.entries) return -1;
        const i64 row = a.wide ? static_cast<const i64*>(a.index)[i] : static_cast<i64>(static_cast<const int*>(a.index)[i]);
        return row < a.index_rows ? row : -1;
    };
    bool falls = false;
    const i64 step = static_cast<i64>(gridDim.x) * blockDim.x;
    for (i64 begin = static_cast<i64>(blockIdx.x) * blockDim.x + threadIdx.x - lane; begin < a.entries; begin += step) {
        const i64 row = row_at(begin + lane);
        i64 before = row_at(begin - 1);  // of the warp's first row
        const unsigned rows = __ballot_sync(0xffffffffu, row >= 0);
        if (rows == 0) continue;
        for (i64 end = begin - 1; before < 0 && end > 0; end -= 256) {  // past entries that are no row
            i64 last = -1;
            for (int i = 0; i < 8; ++i) {
                const i64 one = row_at(end - 256 + 8 * lane + i);
                if (one >= 0) last = one;
            }
            const unsigned there = __ballot_sync(0xffffffffu, last >= 0);
            if (there != 0) before = __shfl_sync(0xffffffffu, last, 31 - __clz(static_cast<int>(there)));
        }
        const unsigned lower = rows & ((1u << lane) - 1);
        const i64 in_warp = __shfl_sync(0xffffffffu, row, lower != 0 ? 31 - __clz(static_cast<int>(lower)) : lane);
        falls = falls || (row >= 0 && row < (lower != 0 ? in_warp : before));
    }
    wait_for_kernel_before();  // its indices it did not write, its outputs are written over
    if (!__syncthreads_or(falls)) return;
    for (i64 o = 0; o < a.outputs; ++o) {
        const AscendingOutput& output = a.output[o];
        for (i64 row = threadIdx.x / 32; row < output.rows; row += blockDim.x / 32)
            for (i64 i = lane; i < output.size; i += 32) output.data[row * output.stride + i] = 0xffff;
    }
}
extern "C" __global__ void __launch_bounds__(1024) clebsch_ascending(const __grid_constant__ AscendingArguments a) {
    ascending_or_nan(a);
}
