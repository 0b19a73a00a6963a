// Gradients of weight matrices that rows share, behind matrix.cuh: weights[r, c] = sum over rows and components of left[row, component, r]
// right[row, component, c]. A block computes one tile of a matrix for a chunk of rows and leaves it as a part; parts are added afterwards, in
// the order of the chunks.
struct GradientTerm {
    i64 left, right, left_offset, left_channel, left_component, right_offset, right_channel, right_component, components;
    double scale;
};
struct GradientJob { i64 output, offset, rows, columns, adds, first_term, terms, place; };
struct GradientArguments {
    const GradientJob* jobs;
    const GradientTerm* terms;
    i64 job_count, rows, chunk, chunks, numbers;
    void* parts;
    MatrixOperand operands[64];
};

// The slabs of a tile: of `Depth` rows each, one component after the other. Threads side by side read channels side by side.
template <class T, int Rows, int Columns, int Depth, int Stages> struct GradientSlabs {
    typedef T Number;
    static const int rows = Rows, columns = Columns, slab_depth = Depth, left_row = 1, left_k = Rows + 8, right_pitch = Columns + 8;
    static const int threads = 256, left_loads = Rows * Depth / threads, right_loads = Columns * Depth / threads;
    static const int left_numbers = Depth * left_k, slab_numbers = left_numbers + Depth * right_pitch, all_numbers = Stages * slab_numbers;

    const GradientArguments& a;
    const GradientJob& job;
    const i64 first_row, first_column, begin;  // of the matrix; of the chunk
    const int count, thread;                   // rows of the chunk
    T* const shared;
    T* const scales;  // of every stage
    // The slab to copy: rows of the chunk from `row` on.
    int term = 0, row = 0, component = 0, components = 0;
    const T* left = nullptr;  // of this thread's channel, at the chunk's first row
    const T* right = nullptr;
    i64 left_stride = 0, right_stride = 0, left_component = 0, right_component = 0;
    T scale = 0;

    __device__ __forceinline__ GradientSlabs(const GradientArguments& arguments, const GradientJob& of, i64 tile, T* memory, T* of_stages)
        : a(arguments), job(of), first_row(tile / ((of.columns + Columns - 1) / Columns) * Rows),
          first_column(tile % ((of.columns + Columns - 1) / Columns) * Columns), begin(static_cast<i64>(blockIdx.y) * arguments.chunk),
          count(static_cast<int>(arguments.rows - begin < arguments.chunk ? arguments.rows - begin : arguments.chunk)), thread(threadIdx.x),
          shared(memory), scales(of_stages) {}

    __device__ __forceinline__ void open() {
        const GradientTerm& t = a.terms[job.first_term + term];
        row = component = 0;
        components = static_cast<int>(t.components);
        scale = static_cast<T>(t.scale);
        left_stride = a.operands[t.left].stride;
        right_stride = a.operands[t.right].stride;
        left_component = t.left_component;
        right_component = t.right_component;
        left = static_cast<const T*>(a.operands[t.left].data) + begin * left_stride + t.left_offset + (first_row + thread % Rows) * t.left_channel;
        right = static_cast<const T*>(a.operands[t.right].data) + begin * right_stride + t.right_offset +
                (first_column + thread % Columns) * t.right_channel;
    }
    __device__ __forceinline__ bool advance() {
        if (++component < components) return true;
        component = 0;
        row += Depth;
        if (row < count) return true;
        if (++term == job.terms) return false;
        open();
        return true;
    }
    __device__ __forceinline__ void copy(int stage) {
        T* const to_left = shared + stage * slab_numbers;
        T* const to_right = to_left + left_numbers;
        const bool is_row = first_row + thread % Rows < job.rows, is_column = first_column + thread % Columns < job.columns;
#pragma unroll
        for (int e = 0; e < left_loads; ++e) {
            const int k = e * (threads / Rows) + thread / Rows;
            const bool there = is_row && row + k < count;
            copy_later(to_left + k * left_k + thread % Rows, there ? left + (row + k) * left_stride + component * left_component : left, there);
        }
#pragma unroll
        for (int e = 0; e < right_loads; ++e) {
            const int k = e * (threads / Columns) + thread / Columns;
            const bool there = is_column && row + k < count;
            copy_later(to_right + k * right_pitch + thread % Columns, there ? right + (row + k) * right_stride + component * right_component : right,
                       there);
        }
        if (thread == 0) scales[stage] = scale;
    }
    template <class Multiply> __device__ __forceinline__ void walk(Multiply multiply) {
        open();
        walk_slabs<Stages>(*this, true, multiply);
    }

    __device__ __forceinline__ bool whole(int count) const { return job.columns % count == 0; }
    // Where a row of the tile goes, of the part; null: there is none.
    __device__ __forceinline__ T* output(int r) const {
        if (first_row + r >= job.rows) return nullptr;
        return static_cast<T*>(a.parts) + blockIdx.y * a.numbers + job.place + (first_row + r) * job.columns;
    }
    template <int Count> __device__ __forceinline__ void put(T* to, int column, const T* numbers, bool as_one) const {
        const i64 first = first_column + column;
        if (to == nullptr || first >= job.columns) return;
        if (as_one) {
            Numbers<T, Count> piece;
#pragma unroll
            for (int j = 0; j < Count; ++j) piece.at[j] = numbers[j];
            *reinterpret_cast<Numbers<T, Count>*>(to + first) = piece;
            return;
        }
#pragma unroll
        for (int j = 0; j < Count; ++j)
            if (first + j < job.columns) to[first + j] = numbers[j];
    }
};

// A thread adds up the parts of one number.
template <class T> static __device__ __forceinline__ void add_gradient_parts(const GradientArguments& a) {
    const GradientJob& job = a.jobs[blockIdx.y];
    const i64 i = static_cast<i64>(blockIdx.x) * 256 + threadIdx.x;
    if (i >= job.rows * job.columns) return;
    const T* part = static_cast<const T*>(a.parts) + job.place + i;
    T sum = 0;
#pragma unroll 8
    for (i64 p = 0; p < a.chunks; ++p) sum += part[p * a.numbers];
    T* const to = static_cast<T*>(a.operands[job.output].data) + job.offset + i;
    *to = job.adds ? *to + sum : sum;
}
