// Products with weight matrices. A block computes one tile: some rows-and-components of one output segment by some of its columns. It walks
// the products that are added there (terms), for weights by an index once for every row of weights that rows of the tile ask for, a slab
// of `Depth` numbers at a time; copies of the next slabs into shared memory are under way while one is multiplied. Every sum has one order.

// One number on its way into shared memory, zero if it is not `there`.
template <class T> static __device__ __forceinline__ void copy_later(T* to, const T* from, bool there) {
    asm volatile("cp.async.ca.shared.global [%0], [%1], %2, %3;" ::"r"(static_cast<unsigned>(__cvta_generic_to_shared(to))), "l"(from),
                 "n"(sizeof(T)), "r"(there ? static_cast<int>(sizeof(T)) : 0) : "memory");
}
// What was put on its way since the last call is one group; waits until at most so many of the latest groups are left.
static __device__ __forceinline__ void end_copies() { asm volatile("cp.async.commit_group;" ::: "memory"); }
template <int Left> static __device__ __forceinline__ void wait_for_copies() { asm volatile("cp.async.wait_group %0;" ::"n"(Left) : "memory"); }

// A number as what tensor instructions take: a high part of 11 bits and the rest, rounded to as many.
static __device__ __forceinline__ void divide(float number, float* high, float* low) {
    *high = __uint_as_float(__float_as_uint(number) & 0xffffe000u);
    *low = __uint_as_float(__float_as_uint(number - *high) + 0x1000u);
}
// sum += x w for 16 x 8 numbers of a warp, 8 products each: lane 4 g + t has x at rows g and g + 8 and k = t, then at k = t + 4; w at
// column g and k = t, t + 4; the sums at row g and columns 2 t, 2 t + 1, then at row g + 8.
static __device__ __forceinline__ void multiply_pieces(float* sum, const float* x, const float* w) {
    asm("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(__float_as_uint(x[0])), "r"(__float_as_uint(x[1])), "r"(__float_as_uint(x[2])), "r"(__float_as_uint(x[3])),
          "r"(__float_as_uint(w[0])), "r"(__float_as_uint(w[1])));
}

// ---- portable from here: tests put their own definitions in front of it
struct MatrixTerm {
    i64 input, weight, input_offset, input_channel, input_component, weight_offset, weight_k, weight_column, depth, indexed;
    double scale;
};
struct MatrixJob { i64 output, offset, column, component, columns, components, adds, first_term, terms; };
struct MatrixOperand { void* data; i64 stride; };
struct MatrixArguments {
    const MatrixJob* jobs;
    const MatrixTerm* terms;
    i64 job_count, rows;
    const void* index;
    i64 index_wide, index_rows;
    unsigned* error;
    MatrixOperand operands[64];
};

// What a block works at, in shared memory: a job, and its terms if they are few.
struct MatrixWork {
    static const int most_terms = 24;
    MatrixJob job;
    MatrixTerm terms[most_terms];
};

// The job that tile `tile` of a launch belongs to, of which it then is the number; a lane looks at a job. Every warp finds it by itself.
template <class Tile> static __device__ __forceinline__ i64 job_of(const MatrixArguments& a, i64* tile) {
    const int lane = threadIdx.x % 32;
    for (i64 first = 0; first < a.job_count; first += 32) {
        i64 end = 0;  // tiles of the jobs from `first` to the lane's
        if (first + lane < a.job_count) {
            const MatrixJob& job = a.jobs[first + lane];
            end = (a.rows * job.components + Tile::rows - 1) / Tile::rows * ((job.columns + Tile::columns - 1) / Tile::columns);
        }
        for (int distance = 1; distance < 32; distance *= 2) {
            const i64 before = __shfl_sync(0xffffffffu, end, (lane - distance) % 32u);
            if (lane >= distance) end += before;
        }
        const int passed = __popc(__ballot_sync(0xffffffffu, end <= *tile));
        const i64 before = __shfl_sync(0xffffffffu, end, (passed - 1) % 32u);
        if (passed > 0) *tile -= before;
        if (passed < 32) return first + passed;
    }
    return -1;
}
// By all threads; read it behind a barrier.
static __device__ __forceinline__ void take_work(const MatrixArguments& a, i64 number, MatrixWork& work) {
    const i64* const job = reinterpret_cast<const i64*>(a.jobs + number);
    for (int i = threadIdx.x; i < static_cast<int>(sizeof(MatrixJob) / 8); i += 256) reinterpret_cast<i64*>(&work.job)[i] = job[i];
    const i64 terms = a.jobs[number].terms;
    const i64* const from = reinterpret_cast<const i64*>(a.terms + a.jobs[number].first_term);
    const i64 words = (terms < MatrixWork::most_terms ? terms : MatrixWork::most_terms) * (sizeof(MatrixTerm) / 8);
    for (int i = threadIdx.x; i < words; i += 256) reinterpret_cast<i64*>(work.terms)[i] = from[i];
}

template <class T, int Count> struct __align__(Count * sizeof(T)) Numbers { T at[Count]; };

// Calls multiply(left, right, scale) for every slab, by all threads; copies of the next ones are under way. `more`: whether there is any.
template <int Stages, class Slabs, class Multiply> static __device__ __forceinline__ void walk_slabs(Slabs& slabs, bool more, Multiply multiply) {
    int copied = 0;
    for (int stage = 0; stage + 1 < Stages; ++stage) {
        if (more) {
            slabs.copy(copied++);
            more = slabs.advance();
        }
        end_copies();
    }
    for (int at = 0; at < copied; ++at) {
        wait_for_copies<Stages - 2>();
        __syncthreads();  // everybody's copies have come, and nobody reads the slab before any more
        if (more) {
            slabs.copy(copied++ % Stages);
            more = slabs.advance();
        }
        end_copies();
        const typename Slabs::Number* const left = slabs.shared + at % Stages * Slabs::slab_numbers;
        multiply(left, left + Slabs::left_numbers, slabs.scales[at % Stages]);
    }
    __syncthreads();
}

// The slabs of a tile, one after the other, in `Stages` pieces of shared memory in turn. Number (row, k) of x goes to
// left[row * LeftRow + k * LeftK], number (k, column) of W to right[k * RightPitch + column].
template <class T, int Rows, int Columns, int Depth, int Stages, int LeftRow, int LeftK, int RightPitch> struct MatrixSlabs {
    typedef T Number;
    static const int rows = Rows, columns = Columns, slab_depth = Depth, left_row = LeftRow, left_k = LeftK, right_pitch = RightPitch;
    static const int threads = 256, no_kind = 0x7fffffff;
    static const int left_loads = Rows * Depth / threads, right_loads = Columns * Depth / threads;
    static const int left_numbers = LeftRow > LeftK ? Rows * LeftRow : Depth * LeftK;
    static const int slab_numbers = left_numbers + Depth * RightPitch, all_numbers = Stages * slab_numbers;

    const MatrixArguments& a;
    const MatrixJob& job;
    const MatrixTerm* const terms;  // of the job
    const int components, first_column, last_column;  // of the job
    const i64 first_row;                              // of x and the output, with component `before` the tile's first
    const int before, last_row;                       // rows from first_row on that there are
    T* const shared;
    T* const scales;   // of every stage
    int* const kinds;  // of every row: the row of indexed weights; -1: none
    const int thread;
    // The slab to copy: `k` first of the products of a term, for rows of x whose weights are row `kind`.
    int term = 0, k = 0, kind = -1;
    bool indexed = false;
    const T* x_data = nullptr;  // at the tile's first row
    const T* w_data = nullptr;
    int depth = 0, x_channel = 0, w_k = 0, w_column = 0;
    T scale = 0;
    int place[left_loads];  // of this thread's rows of x; -1: nothing there

    // `first`, `column`: of rows and components together, of the columns.
    __device__ __forceinline__ MatrixSlabs(const MatrixArguments& arguments, const MatrixWork& work, i64 first, i64 column, T* memory,
                                           T* of_stages, int* of_rows)
        : a(arguments), job(work.job),
          terms(work.job.terms <= MatrixWork::most_terms ? work.terms : arguments.terms + work.job.first_term),
          components(static_cast<int>(work.job.components)), first_column(static_cast<int>(column)),
          last_column(static_cast<int>(work.job.columns)), first_row(components == 1 ? first : first / components),
          before(static_cast<int>(first - first_row * components)),
          last_row(static_cast<int>(arguments.rows - first_row < Rows ? arguments.rows - first_row : Rows)), shared(memory),
          scales(of_stages), kinds(of_rows), thread(threadIdx.x) {}

    // Row of the tile (with components) to row of x and the output, from first_row on.
    __device__ __forceinline__ int row_of(int r) const { return components == 1 ? before + r : (before + r) / components; }

    __device__ __forceinline__ int next_kind(int after) const {
        int found = no_kind;
        for (int r = 0; r < Rows; ++r) found = kinds[r] > after && kinds[r] < found ? kinds[r] : found;
        return found;
    }

    // Where this term's numbers lie, for the kind at hand.
    __device__ __forceinline__ void open() {
        const MatrixTerm& t = terms[term];
        k = 0;
        depth = static_cast<int>(t.depth);
        x_channel = static_cast<int>(t.input_channel);
        w_k = static_cast<int>(t.weight_k);
        w_column = static_cast<int>(t.weight_column);
        scale = static_cast<T>(t.scale);
        const i64 stride = a.operands[t.input].stride;
        x_data = static_cast<const T*>(a.operands[t.input].data) + first_row * stride + t.input_offset;
        w_data = static_cast<const T*>(a.operands[t.weight].data) + t.weight_offset + (indexed ? kind * a.operands[t.weight].stride : 0);
        const int row_stride = static_cast<int>(stride), component_stride = static_cast<int>(t.input_component);
#pragma unroll
        for (int e = 0; e < left_loads; ++e) {
            const int r = (e * threads + thread) / Depth, row = row_of(r), component = before + r - row * components;
            const bool there = row < last_row && (!indexed || kinds[r] == kind);
            place[e] = there ? row * row_stride + component * component_stride : -1;
        }
    }
    // The first slab of the first term from `term` on that has any; false: there is none.
    __device__ __forceinline__ bool begin_term() {
        for (; term < job.terms; ++term) {
            indexed = terms[term].indexed != 0;
            if (indexed) {
                kind = next_kind(-1);
                if (kind == no_kind) continue;
            }
            open();
            return true;
        }
        return false;
    }
    __device__ __forceinline__ bool advance() {
        k += Depth;
        if (k < depth) return true;
        if (indexed) {
            kind = next_kind(kind);
            if (kind != no_kind) {
                open();
                return true;
            }
        }
        ++term;
        return begin_term();
    }

    // Threads side by side read what lies side by side.
    __device__ __forceinline__ int right_k(int e) const { return w_column == 1 ? (e * threads + thread) / Columns : thread % Depth; }
    __device__ __forceinline__ int right_column(int e) const {
        return w_column == 1 ? thread % Columns : (e * threads + thread) / Depth;
    }

    __device__ __forceinline__ void copy(int stage) {
        T* const left = shared + stage * slab_numbers;
        T* const right = left + left_numbers;
        const int own_k = k + thread % Depth;
#pragma unroll
        for (int e = 0; e < left_loads; ++e) {
            const bool there = place[e] >= 0 && own_k < depth;
            copy_later(left + (e * threads + thread) / Depth * LeftRow + thread % Depth * LeftK,
                       x_data + (there ? place[e] + own_k * x_channel : 0), there);
        }
#pragma unroll
        for (int e = 0; e < right_loads; ++e) {
            const int row = k + right_k(e), column = first_column + right_column(e);
            const bool there = row < depth && column < last_column;
            copy_later(right + right_k(e) * RightPitch + right_column(e), w_data + (there ? row * w_k + column * w_column : 0), there);
        }
        if (thread == 0) scales[stage] = scale;
    }

    // Calls multiply(left, right, scale of W) for every slab, by all threads.
    template <class Multiply> __device__ __forceinline__ void walk(Multiply multiply) {
        if (a.index != nullptr) {
            for (int r = thread; r < Rows; r += threads)
                kinds[r] = row_of(r) < last_row
                               ? static_cast<int>(look_up(a.index, a.index_wide, first_row + row_of(r), a.index_rows, a.error)) : -1;
            __syncthreads();
        }
        walk_slabs<Stages>(*this, begin_term(), multiply);
    }

    // Whether pieces of `count` numbers of the output may be stored as one.
    __device__ __forceinline__ bool whole(int count) const {
        const T* out = static_cast<const T*>(a.operands[job.output].data) + job.offset;
        return !job.adds && job.column == 1 && reinterpret_cast<unsigned long long>(out) % (count * sizeof(T)) == 0 &&
               a.operands[job.output].stride % count == 0 && job.component % count == 0 && job.columns % count == 0;
    }
    // Where a row of the tile goes; null: there is none.
    __device__ __forceinline__ T* output(int r) const {
        const int row = row_of(r);
        if (row >= last_row) return nullptr;
        return static_cast<T*>(a.operands[job.output].data) + job.offset + (first_row + row) * a.operands[job.output].stride +
               (before + r - row * components) * job.component;
    }
    // Stores, or adds, numbers that lie side by side in a row, from the tile's column `column` on.
    template <int Count> __device__ __forceinline__ void put(T* to, int column, const T* numbers, bool as_one) const {
        const int first = first_column + column;
        if (to == nullptr || first >= last_column) return;
        if (as_one) {
            Numbers<T, Count> piece;
#pragma unroll
            for (int j = 0; j < Count; ++j) piece.at[j] = numbers[j];
            *reinterpret_cast<Numbers<T, Count>*>(to + first) = piece;
            return;
        }
#pragma unroll
        for (int j = 0; j < Count; ++j) {
            if (first + j >= last_column) continue;
            T* const one = to + (first + j) * job.column;
            *one = job.adds ? *one + numbers[j] : numbers[j];
        }
    }
};

// A tile by threads: each has ThreadRows x ThreadColumns numbers in registers. Threads of several groups share the products of a slab.
// `Slabs`: MatrixSlabs, or others that walk, give places and put numbers like them (gradient.cuh); left_row has to be 1.
template <class Slabs, int ThreadRows, int ThreadColumns> struct ThreadTile : Slabs {
    typedef typename Slabs::Number T;
    static const int Rows = Slabs::rows, Columns = Slabs::columns, Depth = Slabs::slab_depth;
    static const int down = Rows / ThreadRows, across = Columns / ThreadColumns, groups = Slabs::threads / (down * across);
    static const int row_piece = ThreadRows < 4 ? ThreadRows : 4, column_piece = ThreadColumns < 4 ? ThreadColumns : 4;
    static const int row_pieces = ThreadRows / row_piece, column_pieces = ThreadColumns / column_piece;
    static const int sums = (groups - 1) * down * across * ThreadRows * ThreadColumns;
    static const int shared_numbers = Slabs::all_numbers > sums ? Slabs::all_numbers : sums;

    template <class... Given> __device__ __forceinline__ ThreadTile(Given&&... given) : Slabs(given...) {}

    __device__ __forceinline__ void run() {
        const int group = this->thread / (down * across), in_group = this->thread % (down * across);
        const int y = in_group / across, x = in_group % across;
        T sum[ThreadRows][ThreadColumns];
#pragma unroll
        for (int i = 0; i < ThreadRows; ++i)
#pragma unroll
            for (int j = 0; j < ThreadColumns; ++j) sum[i][j] = 0;
        this->walk([&](const T* left, const T* right, T scale) {
#pragma unroll
            for (int d = 0; d < Depth / groups; ++d) {
                const T* l = left + (group * (Depth / groups) + d) * Slabs::left_k;
                const T* r = right + (group * (Depth / groups) + d) * Slabs::right_pitch;
                Numbers<T, row_piece> of_row[row_pieces];
                Numbers<T, column_piece> of_column[column_pieces];
#pragma unroll
                for (int p = 0; p < row_pieces; ++p)
                    of_row[p] = *reinterpret_cast<const Numbers<T, row_piece>*>(l + (p * down + y) * row_piece);
#pragma unroll
                for (int p = 0; p < column_pieces; ++p) {
                    of_column[p] = *reinterpret_cast<const Numbers<T, column_piece>*>(r + (p * across + x) * column_piece);
#pragma unroll
                    for (int j = 0; j < column_piece; ++j) of_column[p].at[j] *= scale;
                }
#pragma unroll
                for (int i = 0; i < ThreadRows; ++i)
#pragma unroll
                    for (int j = 0; j < ThreadColumns; ++j)
                        sum[i][j] += of_row[i / row_piece].at[i % row_piece] * of_column[j / column_piece].at[j % column_piece];
            }
        });
        if (groups > 1) {
            T* const mine = this->shared + (group - 1) * ThreadRows * ThreadColumns * down * across + in_group;
#pragma unroll
            for (int i = 0; group > 0 && i < ThreadRows * ThreadColumns; ++i) mine[i * down * across] = sum[i / ThreadColumns][i % ThreadColumns];
            __syncthreads();
            if (group > 0) return;
            for (int g = 1; g < groups; ++g)
#pragma unroll
                for (int i = 0; i < ThreadRows * ThreadColumns; ++i)
                    sum[i / ThreadColumns][i % ThreadColumns] += this->shared[((g - 1) * ThreadRows * ThreadColumns + i) * down * across + in_group];
        }
        const bool as_one = this->whole(column_piece);
#pragma unroll
        for (int i = 0; i < ThreadRows; ++i) {
            T* const to = this->output((i / row_piece * down + y) * row_piece + i % row_piece);
#pragma unroll
            for (int p = 0; p < column_pieces; ++p)
                this->template put<column_piece>(to, (p * across + x) * column_piece, sum[i] + p * column_piece, as_one);
        }
    }
};

// A tile by tensor instructions, which multiply numbers of few digits: every number is the sum of a high and a low part, and of their four
// products the three that matter are taken. The sums of 8 products are added up by ordinary additions, since the instructions' own sums
// are cut off instead of rounded. A warp has WarpRows x WarpColumns numbers, in pieces of 16 x 8.
template <class Slabs, int WarpRows, int WarpColumns> struct WarpTile : Slabs {
    typedef typename Slabs::Number T;
    static const int Columns = Slabs::columns, Depth = Slabs::slab_depth;
    static const int across = Columns / WarpColumns, row_pieces = WarpRows / 16, column_pieces = WarpColumns / 8;
    static const int shared_numbers = Slabs::all_numbers;

    template <class... Given> __device__ __forceinline__ WarpTile(Given&&... given) : Slabs(given...) {}

    __device__ __forceinline__ void run() {
        const int warp = this->thread / 32, lane = this->thread % 32, group = lane / 4, place = lane % 4;
        const int own_row = warp / across * WarpRows, own_column = warp % across * WarpColumns;
        T sum[row_pieces][column_pieces][4];
#pragma unroll
        for (int i = 0; i < row_pieces; ++i)
#pragma unroll
            for (int j = 0; j < column_pieces; ++j)
#pragma unroll
                for (int c = 0; c < 4; ++c) sum[i][j][c] = 0;
        this->walk([&](const T* left, const T* right, T scale) {
#pragma unroll
            for (int d = 0; d < Depth; d += 8) {
                T w_high[column_pieces][2], w_low[column_pieces][2];
#pragma unroll
                for (int j = 0; j < column_pieces; ++j)
#pragma unroll
                    for (int h = 0; h < 2; ++h)
                        divide(scale * right[(d + place + 4 * h) * Slabs::right_pitch + own_column + j * 8 + group], &w_high[j][h], &w_low[j][h]);
#pragma unroll
                for (int i = 0; i < row_pieces; ++i) {
                    T x_high[4], x_low[4];
#pragma unroll
                    for (int h = 0; h < 4; ++h)
                        divide(left[(own_row + i * 16 + group + h % 2 * 8) * Slabs::left_row + (d + place + h / 2 * 4) * Slabs::left_k],
                               &x_high[h], &x_low[h]);
                    T part[column_pieces][4];  // sums that do not wait for one another
#pragma unroll
                    for (int j = 0; j < column_pieces; ++j)
#pragma unroll
                        for (int c = 0; c < 4; ++c) part[j][c] = 0;
#pragma unroll
                    for (int j = 0; j < column_pieces; ++j) multiply_pieces(part[j], x_low, w_high[j]);
#pragma unroll
                    for (int j = 0; j < column_pieces; ++j) multiply_pieces(part[j], x_high, w_low[j]);
#pragma unroll
                    for (int j = 0; j < column_pieces; ++j) multiply_pieces(part[j], x_high, w_high[j]);
#pragma unroll
                    for (int j = 0; j < column_pieces; ++j)
#pragma unroll
                        for (int c = 0; c < 4; ++c) sum[i][j][c] += part[j][c];
                }
            }
        });
        const bool as_one = this->whole(2);
#pragma unroll
        for (int i = 0; i < row_pieces; ++i)
#pragma unroll
            for (int h = 0; h < 2; ++h) {
                T* const to = this->output(own_row + i * 16 + group + 8 * h);
#pragma unroll
                for (int j = 0; j < column_pieces; ++j)
                    this->template put<2>(to, own_column + j * 8 + 2 * place, sum[i][j] + 2 * h, as_one);
            }
    }
};

