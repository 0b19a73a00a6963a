// Polynomials whose rows have weight matrices of their own (fully connected tensor products, their derivatives). A warp has a row: numbers of
// the row that are no matrices lie in shared memory; matrices are read once, or written once, a piece a lane as they lie in memory.

// Asks the second-level cache for whole pieces of 16 bytes of a row's first numbers. Their address is computed for this alone: kept for later,
// it would take registers all the while.
template <class S> static __device__ __forceinline__ void ask_for(const S* rows, i64 row, i64 stride, int count) {
#if __CUDA_ARCH__ >= 900
    asm volatile("" : "+l"(row));
    const unsigned long long at = reinterpret_cast<unsigned long long>(rows + row * stride), begin = (at + 15) & ~15ull,
                             end = (at + count * sizeof(S)) & ~15ull;
    if (threadIdx.x % 32 == 0 && begin < end)
        asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(begin), "r"(static_cast<unsigned>(end - begin)) : "memory");
#endif
}

// ---- portable from here: tests put their own definitions in front of it
template <class S, int Count> struct __align__(Count * sizeof(S)) Piece { S at[Count]; };

// A matrix W[l][r] of a row and numbers of its two sides, left[l][k] and right[r][k] in shared memory; those of the right lie `Channel` apart from
// column to column, `Component` from k to k. `Lanes` lanes have a row of the matrix, or `Lanes * Vector` columns of it at a time; 32 / Lanes rows
// go side by side.
template <class T, int Left, int Right, int K, int Vector, int Lanes, int Channel, int Component> struct RowMatrix {
    static const int groups = 32 / Lanes, width = Lanes * Vector;
    // Rows of the matrix on their way at once: what sums leave of the registers.
    static const int words = static_cast<int>(sizeof(T)) / 4 * Vector, room = (40 - words * K) / words;
    static const int many = room >= 8 ? 8 : 2, few = many > 4 ? 4 : 2;

    template <class S> static __device__ __forceinline__ void load(const S* from, bool wide, bool there, T* numbers) {
        if (!there) {
#pragma unroll
            for (int v = 0; v < Vector; ++v) numbers[v] = 0;
        } else if (wide) {
            const Piece<S, Vector> piece = *reinterpret_cast<const Piece<S, Vector>*>(from);
#pragma unroll
            for (int v = 0; v < Vector; ++v) numbers[v] = number<T>(piece.at[v]);
        } else {
#pragma unroll
            for (int v = 0; v < Vector; ++v) numbers[v] = number<T>(from[v]);
        }
    }

    // right[r][k] += sum over l of W[l][r] left[l][k]
    template <class S> static __device__ __forceinline__ void into_right(const S* w, bool wide, const T* left, T* right) {
        const int lane = threadIdx.x % 32, group = lane / Lanes;
#pragma unroll 1
        for (int block = 0; block < Right; block += width) {
            const int first = block + lane % Lanes * Vector;
            T sum[Vector][K];
#pragma unroll
            for (int v = 0; v < Vector; ++v)
#pragma unroll
                for (int k = 0; k < K; ++k) sum[v][k] = 0;
#pragma unroll many
            for (int l = group; l < Left; l += groups) {
                T numbers[Vector];
                load(w + l * Right + first, wide, first < Right, numbers);
#pragma unroll
                for (int k = 0; k < K; ++k) {
                    const T z = left[l * K + k];
#pragma unroll
                    for (int v = 0; v < Vector; ++v) sum[v][k] += numbers[v] * z;
                }
            }
#pragma unroll
            for (int v = 0; v < Vector; ++v)
#pragma unroll
                for (int k = 0; k < K; ++k) {
#pragma unroll
                    for (int other = Lanes; other < 32; other *= 2) sum[v][k] += __shfl_xor_sync(0xffffffffu, sum[v][k], other);
                    if (group == 0 && first < Right) right[(first + v) * Channel + k * Component] += sum[v][k];
                }
        }
    }

    // left[l][k] = sum over r of W[l][r] right[r][k]
    template <class S> static __device__ __forceinline__ void into_left(const S* w, bool wide, T* left, const T* right) {
        const int lane = threadIdx.x % 32, group = lane / Lanes;
#pragma unroll 1
        for (int block = 0; block < Right; block += width) {
            const int first = block + lane % Lanes * Vector;
            T own[Vector][K];
#pragma unroll
            for (int v = 0; v < Vector; ++v)
#pragma unroll
                for (int k = 0; k < K; ++k) own[v][k] = first < Right ? right[(first + v) * Channel + k * Component] : static_cast<T>(0);
#pragma unroll few
            for (int l = group; l < Left + group; l += groups) {
                T numbers[Vector];
                load(w + l * Right + first, wide, first < Right && l < Left, numbers);
#pragma unroll
                for (int k = 0; k < K; ++k) {
                    T sum = 0;
#pragma unroll
                    for (int v = 0; v < Vector; ++v) sum += numbers[v] * own[v][k];
#pragma unroll
                    for (int other = 1; other < Lanes; other *= 2) sum += __shfl_xor_sync(0xffffffffu, sum, other);
                    if (lane % Lanes == 0 && l < Left) left[l * K + k] = block == 0 ? sum : left[l * K + k] + sum;
                }
            }
        }
    }

    // W[l][r] = sum over k of left[l][k] right[r][k]
    template <class S> static __device__ __forceinline__ void write(S* w, bool wide, const T* left, const T* right) {
        const int lane = threadIdx.x % 32, group = lane / Lanes;
#pragma unroll 1
        for (int first = lane % Lanes * Vector; first < Right; first += width) {
            T own[Vector][K];
#pragma unroll
            for (int v = 0; v < Vector; ++v)
#pragma unroll
                for (int k = 0; k < K; ++k) own[v][k] = right[(first + v) * Channel + k * Component];
#pragma unroll few
            for (int l = group; l < Left; l += groups) {
                Piece<S, Vector> piece;
#pragma unroll
                for (int v = 0; v < Vector; ++v) {
                    T sum = 0;
#pragma unroll
                    for (int k = 0; k < K; ++k) sum += left[l * K + k] * own[v][k];
                    store(piece.at + v, sum);
                }
                S* const to = w + l * Right + first;
                if (wide) *reinterpret_cast<Piece<S, Vector>*>(to) = piece;
                else
#pragma unroll
                    for (int v = 0; v < Vector; ++v) to[v] = piece.at[v];
            }
        }
    }
};
