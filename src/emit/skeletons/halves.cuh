// Products with weight matrices that all rows share, for many rows. Tensor instructions multiply half-precision numbers: a row's numbers and a
// column's weights are scaled by powers of two so that the greatest is below 2^15, and each is the sum of two half-precision parts, 22 bits
// together; of the four products of parts the three that matter are taken. What is lost lies 2^-40 below the greatest of the row or
// column. A first kernel divides the weights once, in the order in which lanes take them. Then every warp has 16 rows (with components) of
// x in registers and meets one tile of weights after the other, which the block copies into shared memory while the tile before is
// multiplied. Sums of 64 products are the instructions' own, which are cut off instead of rounded; they are added up by ordinary additions.

// Two numbers, each as two parts.
struct Halves { unsigned high, low; };
static __device__ __forceinline__ Halves divide(float first, float second) {
    Halves parts;
    float of_first, of_second;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(parts.high) : "f"(second), "f"(first));
    asm("{ .reg .f16 a, b; mov.b32 {a, b}, %2; cvt.f32.f16 %0, a; cvt.f32.f16 %1, b; }" : "=f"(of_first), "=f"(of_second) : "r"(parts.high));
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(parts.low) : "f"(second - of_second), "f"(first - of_first));
    return parts;
}
static __device__ __forceinline__ void multiply_halves(float* sum, unsigned x0, unsigned x1, unsigned x2, unsigned x3, unsigned w0, unsigned w1) {
    asm("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(x0), "r"(x1), "r"(x2), "r"(x3), "r"(w0), "r"(w1));
}
// sum += x w for 16 x 8 numbers of a warp, 16 products each. Lane 4 g + t has x of products 4 t to 4 t + 3 (row g: first and third of x,
// row g + 8: second and fourth), w of the same products at column g; the sums at row g and columns 2 t, 2 t + 1, then at row g + 8.
template <int Count> static __device__ __forceinline__ void multiply_pieces(float (*sum)[4], const Halves* x, const Halves (*w)[2]) {
#pragma unroll
    for (int j = 0; j < Count; ++j) multiply_halves(sum[j], x[0].low, x[1].low, x[2].low, x[3].low, w[j][0].high, w[j][1].high);
#pragma unroll
    for (int j = 0; j < Count; ++j) multiply_halves(sum[j], x[0].high, x[1].high, x[2].high, x[3].high, w[j][0].low, w[j][1].low);
#pragma unroll
    for (int j = 0; j < Count; ++j) multiply_halves(sum[j], x[0].high, x[1].high, x[2].high, x[3].high, w[j][0].high, w[j][1].high);
}
// The power of two that brings a number to 2^14 and beyond but not to 2^15 (numbers below 2^-110 less far), and what undoes it.
static __device__ __forceinline__ float scale_of(float greatest) {
    const unsigned exponent = __float_as_uint(greatest) >> 23;
    return __uint_as_float((268u - (exponent < 17u ? 17u : exponent)) << 23);
}
static __device__ __forceinline__ float unscale_of(float greatest) {
    const unsigned exponent = __float_as_uint(greatest) >> 23;
    return __uint_as_float(((exponent < 17u ? 17u : exponent) - 14u) << 23);
}
// Up to 16 bytes on their way into shared memory, the rest of them zero.
static __device__ __forceinline__ void copy_line(void* to, const void* from, int bytes) {
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(to))), "l"(from), "r"(bytes)
                 : "memory");
}

// ---- portable from here: tests put their own definitions in front of it
// Up to 64 products of one term, for a tile of columns.
struct HalvesPiece {
    i64 input, weight, input_offset, input_channel, input_component, weight_offset, weight_k, weight_column, k, depth, column, columns;
    double scale;
};
// One segment of an output; `pieces` for every tile of columns, one tile after the other.
struct HalvesJob { i64 output, offset, column, component, columns, components, adds, first_piece, pieces; };
struct HalvesArguments {
    const HalvesJob* jobs;
    const HalvesPiece* pieces;
    void* weights;
    i64 job_count, rows, share;  // a block takes `share` tiles of columns
    MatrixOperand operands[64];
};

template <class T> static __device__ __forceinline__ T larger(T most, T number) {
    const T size = number < 0 ? -number : number;
    return size > most ? size : most;
}

// Weights of a piece, as lanes take them: of 16 products and 8 columns after the other. Columns are arranged so that a lane's sums of two
// neighbouring eights lie side by side.
template <class T, int Columns> struct WeightTile {
    static const int eights = Columns / 8;
    Halves at[4 * eights * 32][2];
    T unscale[Columns];
};

template <class T, int Columns> static __device__ __forceinline__ void divide_weights(const HalvesArguments& a) {
    __shared__ T numbers[64][Columns + 1];
    __shared__ T greatest[1024 / Columns][Columns];
    const int threads = 1024, thread = threadIdx.x;
    const HalvesPiece& piece = a.pieces[blockIdx.x];
    WeightTile<T, Columns>& tile = static_cast<WeightTile<T, Columns>*>(a.weights)[blockIdx.x];
    const T* const from = static_cast<const T*>(a.operands[piece.weight].data) + piece.weight_offset + piece.k * piece.weight_k +
                          piece.column * piece.weight_column;
    const T scale = static_cast<T>(piece.scale);
    const int products = static_cast<int>(piece.depth - piece.k), columns = static_cast<int>(piece.columns - piece.column);
#pragma unroll 4
    for (int e = thread; e < 64 * Columns; e += threads) {
        const int k = piece.weight_column == 1 ? e / Columns : e % 64, c = piece.weight_column == 1 ? e % Columns : e / 64;
        numbers[k][c] = k < products && c < columns ? scale * from[k * piece.weight_k + c * piece.weight_column] : static_cast<T>(0);
    }
    __syncthreads();
    const int part = thread / Columns, own = thread % Columns;
    T most = 0;
    for (int k = part; k < 64; k += threads / Columns) most = larger(most, numbers[k][own]);
    greatest[part][own] = most;
    __syncthreads();
    for (int e = thread; e < 4 * WeightTile<T, Columns>::eights * 32; e += threads) {
        const int lane = e % 32, eight = e / 32 % (Columns / 8), k = e / 32 / (Columns / 8) * 16 + lane % 4 * 4;
        const int column = eight / 2 * 16 + lane / 8 * 4 + lane / 4 % 2 + eight % 2 * 2;
        T of_column = 0;
        for (int p = 0; p < threads / Columns; ++p) of_column = larger(of_column, greatest[p][column]);
        const T up = scale_of(of_column);
        tile.at[e][0] = divide(up * numbers[k][column], up * numbers[k + 1][column]);
        tile.at[e][1] = divide(up * numbers[k + 2][column], up * numbers[k + 3][column]);
    }
    if (thread >= Columns) return;
    for (int p = 1; p < threads / Columns; ++p) most = larger(most, greatest[p][own]);
    tile.unscale[own] = unscale_of(most);
}

template <class T, int Columns> struct HalvesTile {
    static const int rows = 128, threads = 256, eights = Columns / 8, line = 16 / sizeof(T), lines = 64 / line;
    typedef WeightTile<T, Columns> Weights;
    struct Stage {
        Weights weights;
        T x[rows * 64];
    };
    static const int shared_bytes = 2 * sizeof(Stage);

    const HalvesArguments& a;
    const HalvesJob& job;
    Stage* const stages;
    int* const row_of;        // of the tile's rows: the row of x and the output; -1: none
    int* const component_of;
    const int thread, warp, lane;
    const i64 first_row;      // of x and the output
    const int pieces;

    __device__ __forceinline__ HalvesTile(const HalvesArguments& arguments, const HalvesJob& of, i64 first, void* memory, int* row_places,
                                          int* component_places)
        : a(arguments), job(of), stages(static_cast<Stage*>(memory)), row_of(row_places), component_of(component_places),
          thread(threadIdx.x), warp(threadIdx.x / 32), lane(threadIdx.x % 32), first_row(first / of.components),
          pieces(static_cast<int>(of.pieces)) {
        if (thread < rows) {
            const int components = static_cast<int>(job.components), place = static_cast<int>(first - first_row * components) + thread;
            row_of[thread] = first_row + place / components < a.rows ? place / components : -1;
            component_of[thread] = place % components;
        }
        __syncthreads();
    }

    // Number k of a row lies at k ^ (16 * (row % 2)), so that lanes of two rows read from all banks.
    static __device__ __forceinline__ int place(int row, int k) { return row * 64 + (k ^ row % 2 * 16); }

    __device__ __forceinline__ void copy(Stage& stage, i64 number, bool with_x) {
        const HalvesPiece& piece = a.pieces[job.first_piece + number];
        const char* const from = reinterpret_cast<const char*>(static_cast<const Weights*>(a.weights) + job.first_piece + number);
        for (int e = thread; e < static_cast<int>(sizeof(Weights) / 16); e += threads)
            copy_line(reinterpret_cast<char*>(&stage.weights) + e * 16, from + e * 16, 16);
        if (!with_x) return;
        const i64 stride = a.operands[piece.input].stride;
        const T* const x = static_cast<const T*>(a.operands[piece.input].data) + piece.input_offset + first_row * stride;
        const int row_stride = static_cast<int>(stride), component_stride = static_cast<int>(piece.input_component);
        const int left = static_cast<int>(piece.depth - piece.k), channel = static_cast<int>(piece.input_channel), first = static_cast<int>(piece.k);
        const bool whole = channel == 1 && reinterpret_cast<unsigned long long>(x) % 16 == 0 && row_stride % line == 0 &&
                           (job.components == 1 || component_stride % line == 0);
        if (whole) {
#pragma unroll
            for (int e = 0; e < 16 * lines / 32; ++e) {
                const int row = warp * 16 + (e * 32 + lane) / lines, k = (e * 32 + lane) % lines * line;
                const int numbers = row_of[row] < 0 ? 0 : left - k < 0 ? 0 : left - k < line ? left - k : line;
                copy_line(stage.x + place(row, k),
                          x + (numbers > 0 ? row_of[row] * row_stride + component_of[row] * component_stride + first + k : 0),
                          numbers * static_cast<int>(sizeof(T)));
            }
        } else {
#pragma unroll 4
            for (int e = 0; e < 32; ++e) {
                const int row = warp * 16 + e / 2, k = e % 2 * 32 + lane;
                const bool there = row_of[row] >= 0 && k < left;
                copy_later(stage.x + place(row, k),
                           x + (there ? row_of[row] * row_stride + component_of[row] * component_stride + (first + k) * channel : 0), there);
            }
        }
    }

    __device__ __forceinline__ void take(const Stage& stage, Halves (*x)[4], T* unscale) const {
        const int row = warp * 16 + lane / 4, k = lane % 4 * 4;
        T scale[2];
#pragma unroll
        for (int h = 0; h < 2; ++h) {
            T most = 0;
#pragma unroll
            for (int s = 0; s < 4; ++s) {
                const Numbers<T, 4> four = *reinterpret_cast<const Numbers<T, 4>*>(stage.x + place(row + 8 * h, 16 * s + k));
#pragma unroll
                for (int i = 0; i < 4; ++i) most = larger(most, four.at[i]);
            }
            most = larger(most, __shfl_xor_sync(0xffffffffu, most, 1));
            most = larger(most, __shfl_xor_sync(0xffffffffu, most, 2));
            scale[h] = scale_of(most);
            unscale[h] = unscale_of(most);
        }
#pragma unroll
        for (int h = 0; h < 2; ++h)
#pragma unroll
            for (int s = 0; s < 4; ++s) {
                const Numbers<T, 4> four = *reinterpret_cast<const Numbers<T, 4>*>(stage.x + place(row + 8 * h, 16 * s + k));
                x[s][h] = divide(scale[h] * four.at[0], scale[h] * four.at[1]);
                x[s][h + 2] = divide(scale[h] * four.at[2], scale[h] * four.at[3]);
            }
    }

    // The warp's sums into the output, by way of its room for x: what lies side by side in a row goes as whole lines.
    __device__ __forceinline__ void put(const T (*sum)[4], T* room, i64 column) const {
        __syncwarp();  // everybody has taken x
#pragma unroll
        for (int j = 0; j < eights; j += 2)
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                Numbers<T, 4> four;
#pragma unroll
                for (int i = 0; i < 4; ++i) four.at[i] = sum[j + i / 2][2 * h + i % 2];
                *reinterpret_cast<Numbers<T, 4>*>(room + place(lane / 4 + 8 * h, j * 8 + lane % 4 * 4)) = four;
            }
        __syncwarp();
        T* const data = static_cast<T*>(a.operands[job.output].data) + job.offset;
        const i64 stride = a.operands[job.output].stride;
        const int left = static_cast<int>(job.columns - column);
        const bool as_one = !job.adds && job.column == 1 && reinterpret_cast<unsigned long long>(data) % (4 * sizeof(T)) == 0 &&
                            stride % 4 == 0 && (job.components == 1 || job.component % 4 == 0) && job.columns % 4 == 0;
        if (as_one) {
#pragma unroll
            for (int e = lane; e < 4 * Columns; e += 32) {
                const int row = e / (Columns / 4), k = e % (Columns / 4) * 4, own = row_of[warp * 16 + row];
                if (own < 0 || k >= left) continue;
                *reinterpret_cast<Numbers<T, 4>*>(data + (first_row + own) * stride + component_of[warp * 16 + row] * job.component + column +
                                                  k) = *reinterpret_cast<const Numbers<T, 4>*>(room + place(row, k));
            }
            return;
        }
        for (int e = lane; e < 16 * Columns; e += 32) {
            const int row = e / Columns, k = e % Columns, own = row_of[warp * 16 + row];
            if (own < 0 || k >= left) continue;
            T* const to = data + (first_row + own) * stride + component_of[warp * 16 + row] * job.component + (column + k) * job.column;
            const T number = room[place(row, k)];
            *to = job.adds ? *to + number : number;
        }
    }

    // Tiles of columns `begin` to `end` - 1.
    __device__ __forceinline__ void run(i64 begin, i64 end) {
        const int eights_at_once = 4;
        const i64 first = begin * pieces;
        const int count = static_cast<int>(end * pieces - first);
        Halves x[4][4];
        T unscale[2] = {0, 0}, sum[eights][4];
#pragma unroll
        for (int j = 0; j < eights; ++j)
#pragma unroll
            for (int c = 0; c < 4; ++c) sum[j][c] = 0;
        copy(stages[0], first, true);
        end_copies();
        int piece = 0;
        i64 column = begin * Columns;
        for (int at = 0; at < count; ++at) {
            wait_for_copies<0>();
            __syncthreads();  // everybody's copies have come, and nobody reads the tile before any more
            Stage& stage = stages[at % 2];
            if (at + 1 < count) copy(stages[(at + 1) % 2], first + at + 1, pieces > 1);
            end_copies();
            if (pieces > 1 || at == 0) take(stage, x, unscale);
#pragma unroll
            for (int j = 0; j < eights; j += eights_at_once) {
                T part[eights_at_once][4];
#pragma unroll
                for (int i = 0; i < eights_at_once; ++i)
#pragma unroll
                    for (int c = 0; c < 4; ++c) part[i][c] = 0;
#pragma unroll
                for (int s = 0; s < 4; ++s) {
                    Halves w[eights_at_once][2];
#pragma unroll
                    for (int i = 0; i < eights_at_once; ++i) {
                        const Numbers<Halves, 2> two =
                            *reinterpret_cast<const Numbers<Halves, 2>*>(&stage.weights.at[(s * eights + j + i) * 32 + lane]);
                        w[i][0] = two.at[0];
                        w[i][1] = two.at[1];
                    }
                    multiply_pieces<eights_at_once>(part, x[s], w);
                }
#pragma unroll
                for (int i = 0; i < eights_at_once; i += 2) {
                    const Numbers<T, 4> undo =
                        *reinterpret_cast<const Numbers<T, 4>*>(stage.weights.unscale + (j + i) * 8 + lane % 4 * 4);
#pragma unroll
                    for (int c = 0; c < 4; ++c)
#pragma unroll
                        for (int side = 0; side < 2; ++side) sum[j + i + side][c] += part[i + side][c] * undo.at[side * 2 + c % 2] * unscale[c / 2];  // their product may be no float
                }
            }
            if (++piece < pieces) continue;
            piece = 0;
            put(sum, stage.x + warp * 16 * 64, column);
#pragma unroll
            for (int j = 0; j < eights; ++j)
#pragma unroll
                for (int c = 0; c < 4; ++c) sum[j][c] = 0;
            column += Columns;
        }
    }
};

// Block to rows and tiles of columns of one of the jobs.
template <class T, int Columns> static __device__ __forceinline__ void multiply_by_halves(const HalvesArguments& a) {
    DYNAMIC_SHARED(memory);
    __shared__ int row_places[HalvesTile<T, Columns>::rows], component_places[HalvesTile<T, Columns>::rows];
    i64 block = blockIdx.x;
    for (i64 j = 0; j < a.job_count; ++j) {
        const HalvesJob& job = a.jobs[j];
        const i64 tiles = (job.columns + Columns - 1) / Columns, shares = (tiles + a.share - 1) / a.share;
        const i64 blocks = (a.rows * job.components + HalvesTile<T, Columns>::rows - 1) / HalvesTile<T, Columns>::rows * shares;
        if (block < blocks) {
            const unsigned down = static_cast<unsigned>(block) / static_cast<unsigned>(shares);
            const i64 begin = (block - down * shares) * a.share, end = begin + a.share;
            HalvesTile<T, Columns>(a, job, static_cast<i64>(down) * HalvesTile<T, Columns>::rows, memory, row_places, component_places)
                .run(begin, end < tiles ? end : tiles);
            return;
        }
        block -= blocks;
    }
}
