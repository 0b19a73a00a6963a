// The kernel for every channel-wise description: paths, coefficients and places are tables in memory that it reads when it runs, so that it
// can be compiled with the library (schedule/gpu_table makes the tables). As in the general kernel every number of an output has one owner,
// a thread, or a warp where few channels meet a long sum over channels: a job (blockIdx.y) is one component of a segment, its owners are
// told apart by channel and by chunk of rows. An owner walks rows, the job's paths, and the entries of their coefficients.

static const int table_threads = 128, table_run_rows = 16, table_most_inputs = 8;
struct TableJob { i64 output, chain, sum, place, channel_stride, channels, lanes, reduced, first_path, paths; };  // sum: of enum RowSum
struct TablePath { i64 first_factor, factors, first_entry, entries, first_place, contracted; };  // the extent of the letter; -1: the output's
struct TableFactor { i64 operand, chain, channel_stride; };
struct TableIndex { const void* data; i64 rows, wide; };
struct TableOperand { void* data; i64 stride; };
struct Arguments {
    const i64* table;
    i64 rows, chunk;
    unsigned* error;
    TableIndex indices[8];
    TableOperand operands[64];
};

// The number at a place of an array, stored as enum GpuNumber says.
template <class T> static __device__ __forceinline__ T table_read(i64 type, const void* data, i64 at) {
    switch (type) {
        case 0: return number<T>(static_cast<const float*>(data)[at]);
        case 1: return number<T>(static_cast<const double*>(data)[at]);
        case 2: return number<T>(static_cast<const Bfloat16*>(data)[at]);
        default: return number<T>(static_cast<const Float16*>(data)[at]);
    }
}
template <class T> static __device__ __forceinline__ void table_write(i64 type, void* data, i64 at, T value) {
    switch (type) {
        case 0: return store(static_cast<float*>(data) + at, value);
        case 1: return store(static_cast<double*>(data) + at, value);
        case 2: return store(static_cast<Bfloat16*>(data) + at, value);
        default: return store(static_cast<Float16*>(data) + at, value);
    }
}

template <class T> struct TableOwner {
    const Arguments& a;
    const i64* const table;
    const TableJob& job;
    const i64 lane;
    i64 channel;

    // Tables in the order of enum TableParts.
    template <class Row> __device__ __forceinline__ const Row* part(int which) const {
        return reinterpret_cast<const Row*>(table + table[which]);
    }

    // The row a chain of indices leads to; -1: none.
    __device__ __forceinline__ i64 row_of(i64 chain, i64 row) const {
        if (chain < 0) return chain == -1 ? row : 0;
        const i64* const chains = part<i64>(5);
        const i64* next = chains + chains[2 * chain];
        for (i64 left = chains[2 * chain + 1]; left > 0; --left, ++next)
            row = look_up(a.indices[*next].data, a.indices[*next].wide, row, a.indices[*next].rows, a.error);
        return row;
    }

    // A path's sum for a row; zero where one of its factors has no row.
    __device__ __forceinline__ T path_sum(const TablePath& path, i64 row) const {
        const TableFactor* const factors = part<TableFactor>(2) + path.first_factor;
        const i64* const types = part<i64>(6);
        i64 begin[table_most_inputs];  // of the factors' rows
        for (int f = 0; f < path.factors; ++f) {
            const i64 own = row_of(factors[f].chain, row);
            if (own < 0) return 0;
            begin[f] = own * a.operands[factors[f].operand].stride;
        }
        const bool sums_letter = path.contracted >= 0;
        const i64 step = sums_letter && job.reduced ? 32 : 1;
        const i64 first = !sums_letter ? channel : job.reduced ? lane : 0;
        i64 last = sums_letter ? path.contracted : channel + 1;
        if (!sums_letter && job.reduced && lane != 0) last = first;
        T sum = 0;
        for (i64 u = first; u < last; u += step) {
            const double* value = part<double>(4) + path.first_entry;
            const i64* place = part<i64>(3) + path.first_place;
            for (i64 entry = 0; entry < path.entries; ++entry) {
                T product = static_cast<T>(*value++);
                for (int f = 0; f < path.factors; ++f)
                    product *= table_read<T>(types[factors[f].operand], a.operands[factors[f].operand].data,
                                             begin[f] + *place++ + u * factors[f].channel_stride);
                sum += product;
            }
        }
        return sum;
    }

    __device__ __forceinline__ void put(i64 row, T sum) const {
        if (job.reduced) sum = warp_sum(sum);
        if (job.reduced && lane != 0) return;
        const TableOperand& output = a.operands[job.output];
        const i64 at = row * output.stride + job.place + channel * job.channel_stride;
        if (job.sum == 0) table_write(part<i64>(6)[job.output], output.data, at, sum);
        else add(static_cast<T*>(output.data) + at, sum);
    }

    __device__ void walk() {
        const i64 unit = static_cast<i64>(blockIdx.x) * (table_threads / job.lanes) + threadIdx.x / job.lanes;
        const i64 columns = job.reduced ? job.channels : (job.channels + job.lanes - 1) / job.lanes;
        channel = job.reduced ? unit % columns : unit % columns * job.lanes + lane;
        const i64 chunk = job.sum == 0 ? 1 : job.sum == 1 ? table_run_rows : a.chunk;
        const i64 begin = unit / columns * chunk;
        if (begin >= a.rows || channel >= job.channels) return;
        const i64 end = begin + chunk < a.rows ? begin + chunk : a.rows;
        T sum = 0;
        i64 target = job.sum == 1 ? -1 : 0;
        for (i64 row = begin; row < end; ++row) {
            if (job.sum == 1) {
                const i64 own = row_of(job.chain, row);
                if (own < 0) continue;
                if (own != target && target >= 0) put(target, sum);
                if (own != target) sum = 0;
                target = own;
            }
            for (i64 p = 0; p < job.paths; ++p) sum += path_sum(part<TablePath>(1)[job.first_path + p], row);
            if (job.sum != 0) continue;
            put(row, sum);
            sum = 0;
        }
        if (job.sum != 0 && target >= 0) put(target, sum);
    }
};

template <class T> static __device__ __forceinline__ void table_walk(const Arguments& a) {
    const TableJob& job = reinterpret_cast<const TableJob*>(a.table + a.table[0])[blockIdx.y];
    TableOwner<T>{a, a.table, job, static_cast<i64>(threadIdx.x) % job.lanes, 0}.walk();
}
extern "C" __global__ void __launch_bounds__(128) clebsch_table_float(const __grid_constant__ Arguments a) { table_walk<float>(a); }
extern "C" __global__ void __launch_bounds__(128) clebsch_table_double(const __grid_constant__ Arguments a) { table_walk<double>(a); }

// Sums in the compute type become the output as it is stored.
struct TableRounding { const void* sums; i64 sums_stride; void* data; i64 stride, rows, size, type; };
template <class T> static __device__ __forceinline__ void table_round(const TableRounding& a) {
    for (i64 i = static_cast<i64>(blockIdx.x) * 256 + threadIdx.x; i < a.rows * a.size; i += static_cast<i64>(gridDim.x) * 256)
        table_write(a.type, a.data, i / a.size * a.stride + i % a.size, static_cast<const T*>(a.sums)[i / a.size * a.sums_stride + i % a.size]);
}
extern "C" __global__ void __launch_bounds__(256) clebsch_table_round_float(const __grid_constant__ TableRounding a) { table_round<float>(a); }
extern "C" __global__ void __launch_bounds__(256) clebsch_table_round_double(const __grid_constant__ TableRounding a) { table_round<double>(a); }
