// Generated kernels as host C++: this text goes in front of a kernel in place of the device's preamble. Every thread of a block is a fiber
// with a stack of its own; fibers run in turn and give way wherever threads could meet (barriers, exchanges of lanes, waits), so that code
// which relies on an order that hardware does not promise is likely to fail here too.
#include <ucontext.h>

#include <cmath>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#define __device__
#define __global__
#define __forceinline__ inline
#define __noinline__
#define __launch_bounds__(...)
#define __grid_constant__
#define __shared__ static
#define __align__(n) alignas(n)

typedef long long i64;
struct Dimensions {
    unsigned x = 0, y = 0;
};
static Dimensions threadIdx, blockIdx, gridDim, blockDim;

namespace host {
/// Where to go on: __builtin_longjmp's frame, stack and address, which unlike swapcontext asks nothing of the kernel.
struct Place {
    void* words[5];
};
struct Fiber {
    ucontext_t context;  // of its start
    std::unique_ptr<char[]> stack;
    Place place;
    Dimensions thread;
    bool started = false, done = false;
};
struct Lanes {
    double of[32] = {};
};
static std::deque<Fiber> fibers;  // (a context must not move) those of a block come first; stacks are kept from block to block
static Place scheduler;
static std::size_t current = 0, threads_of_block = 0;
static void (*body)();
static std::vector<int> arrived;  // per warp: lanes that have come to an exchange
static std::vector<Lanes> exchanged;
static std::vector<long> generation;
static int block_arrived = 0;
static long block_generation = 0;

__attribute__((noinline, noreturn)) static void go_on_at(Place& place) { __builtin_longjmp(place.words, 1); }
__attribute__((noinline, noreturn)) static void go_on_with(Fiber& fiber) {
    if (fiber.started) go_on_at(fiber.place);
    fiber.started = true;
    setcontext(&fiber.context);
    __builtin_trap();
}
__attribute__((noinline)) static void give_way() {
    if (__builtin_setjmp(fibers[current].place.words) == 0) go_on_at(scheduler);
}
/// Until the current fiber gives way.
__attribute__((noinline)) static void turn() {
    if (__builtin_setjmp(scheduler.words) == 0) go_on_with(fibers[current]);
}
static void run() {
    for (;;) {  // a block after the other
        body();
        fibers[current].done = true;
        give_way();
    }
}
static void start(Fiber& fiber) {
    constexpr std::size_t stack_bytes = 1 << 18;
    fiber.stack.reset(new char[stack_bytes]);
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.get();
    fiber.context.uc_stack.ss_size = stack_bytes;
    fiber.context.uc_link = nullptr;
    makecontext(&fiber.context, run, 0);
}
/// Runs `threads` fibers of one block to their ends, in an order that changes from block to block. False: they wait for one another, and
/// nothing can be run any more.
static bool run_block(int threads, unsigned seed) {
    threads_of_block = static_cast<std::size_t>(threads);
    while (fibers.size() < threads_of_block) {
        fibers.emplace_back();
        start(fibers.back());
    }
    arrived.assign(threads_of_block / 32 + 1, 0);
    generation.assign(arrived.size(), 0);
    exchanged.assign(arrived.size(), Lanes());
    block_arrived = 0;
    for (std::size_t t = 0; t < threads_of_block; ++t) {
        fibers[t].done = false;
        fibers[t].thread.x = static_cast<unsigned>(t);
    }
    for (long turns = 0; turns < 2'000'000; ++turns) {
        bool all = true;
        for (std::size_t i = 0; i < threads_of_block; ++i) {
            current = (i + seed) % threads_of_block;
            if (fibers[current].done) continue;
            all = false;
            threadIdx = fibers[current].thread;
            turn();
        }
        if (all) return true;
    }
    return false;
}
/// All 32 lanes of the warp come with a value; each gets to see all.
static Lanes meet(double value) {
    const std::size_t warp = threadIdx.x / 32;
    const Dimensions thread = threadIdx;
    exchanged[warp].of[threadIdx.x % 32] = value;
    const long mine = generation[warp];
    if (++arrived[warp] == 32) {
        arrived[warp] = 0;
        ++generation[warp];
    }
    while (generation[warp] == mine) give_way();
    threadIdx = thread;
    const Lanes seen = exchanged[warp];
    // Everybody has to have read before anybody writes again.
    const long reading = generation[warp];
    if (++arrived[warp] == 32) {
        arrived[warp] = 0;
        ++generation[warp];
    }
    while (generation[warp] == reading) give_way();
    threadIdx = thread;
    return seen;
}
}  // namespace host

static void __syncthreads() {
    const Dimensions thread = threadIdx;
    const long mine = host::block_generation;
    if (++host::block_arrived == static_cast<int>(host::threads_of_block)) {
        host::block_arrived = 0;
        ++host::block_generation;
    }
    while (host::block_generation == mine) host::give_way();
    threadIdx = thread;
}
static void wait_for_kernel_before() {}
static void let_next_kernel_begin() {}
static int __syncthreads_or(int yes) {
    static int any;
    __syncthreads();  // all have read the last one
    any = 0;
    __syncthreads();
    any |= yes != 0 ? 1 : 0;
    __syncthreads();
    return any;
}
static void __syncwarp() { host::meet(0); }
template <class T>
static T __shfl_xor_sync(unsigned, T value, int other) {
    const unsigned lane = threadIdx.x % 32;
    return static_cast<T>(host::meet(static_cast<double>(value)).of[lane ^ static_cast<unsigned>(other)]);
}
template <class T>
static T __shfl_sync(unsigned, T value, int lane) {
    return static_cast<T>(host::meet(static_cast<double>(value)).of[lane]);
}
static unsigned __ballot_sync(unsigned, bool yes) {
    const host::Lanes seen = host::meet(yes ? 1 : 0);
    unsigned bits = 0;
    for (unsigned l = 0; l < 32; ++l) bits |= (seen.of[l] != 0 ? 1U : 0U) << l;
    return bits;
}
static int __ffs(unsigned bits) { return __builtin_ffs(static_cast<int>(bits)); }
static int __popc(unsigned bits) { return __builtin_popcount(bits); }
static int __clz(int bits) { return bits == 0 ? 32 : __builtin_clz(static_cast<unsigned>(bits)); }

// bfloat16 rounds as devices do; float16 is tested on a device alone, and here only takes its room.
struct Bfloat16 {
    unsigned short bits;
    Bfloat16() = default;
    Bfloat16(double number) {
        const float single = static_cast<float>(number);
        unsigned word;
        std::memcpy(&word, &single, sizeof word);
        bits = static_cast<unsigned short>((word + 0x7fffu + (word >> 16 & 1u)) >> 16);
    }
    operator double() const {
        const unsigned word = static_cast<unsigned>(bits) << 16;
        float single;
        std::memcpy(&single, &word, sizeof single);
        return single;
    }
};
struct Float16 {
    unsigned short bits;
    Float16() = default;
    Float16(double) : bits(0x7e00) {}
    operator double() const { return NAN; }
};
template <class T, class S>
static T number(S stored) {
    return static_cast<T>(stored);
}
template <class S, class T>
static void store(S* at, T value) {
    *at = static_cast<S>(value);
}
template <class S, class T>
static void store_once(S* at, T value) {
    *at = static_cast<S>(value);
}
template <class T>
static void add(T* at, T value) {
    *at += value;
}

// Copies have come when they are put on their way.
template <class T>
static void copy_later(T* to, const T* from, bool there) {
    *to = there ? *from : T(0);
}
static void end_copies() {}
template <int>
static void wait_for_copies() {}

// Tensor instructions: lanes meet, and each sums up its own numbers of the piece.
static void divide(double number, double* high, double* low) {
    unsigned long long bits;
    std::memcpy(&bits, &number, sizeof bits);
    bits &= ~((1ULL << 27) - 1);
    std::memcpy(high, &bits, sizeof bits);
    *low = number - *high;
}
static void multiply_pieces(double* sum, const double* x, const double* w) {
    static double of_lanes[32][32][6];
    double(*const warp)[6] = of_lanes[threadIdx.x / 32];
    const unsigned lane = threadIdx.x % 32, group = lane / 4, place = lane % 4;
    for (int i = 0; i < 4; ++i) warp[lane][i] = x[i];
    for (int i = 0; i < 2; ++i) warp[lane][4 + i] = w[i];
    __syncwarp();
    for (unsigned c = 0; c < 4; ++c)
        for (unsigned k = 0; k < 8; ++k)
            sum[c] += warp[4 * group + k % 4][c / 2 + k / 4 * 2] * warp[4 * (2 * place + c % 2) + k % 4][4 + k / 4];
    __syncwarp();
}

// Two numbers in two parts each, and tensor instructions that take three of the four products.
struct Halves {
    double high[2], low[2];
};
static Halves divide(double first, double second) {
    Halves parts;
    divide(first, &parts.high[0], &parts.low[0]);
    divide(second, &parts.high[1], &parts.low[1]);
    return parts;
}
template <int Count>
static void multiply_pieces(double (*sum)[4], const Halves* x, const Halves (*w)[2]) {
    static Halves of_lanes[32][32][4 + 2 * Count];
    Halves(*const warp)[4 + 2 * Count] = of_lanes[threadIdx.x / 32];
    const unsigned lane = threadIdx.x % 32, group = lane / 4, place = lane % 4;
    for (int i = 0; i < 4; ++i) warp[lane][i] = x[i];
    for (int i = 0; i < 2 * Count; ++i) warp[lane][4 + i] = w[i / 2][i % 2];
    __syncwarp();
    for (int j = 0; j < Count; ++j)
        for (unsigned c = 0; c < 4; ++c)
            for (unsigned k = 0; k < 16; ++k) {
                const Halves& one = warp[4 * group + k / 4][c / 2 + k % 4 / 2 * 2];
                const Halves& other = warp[4 * (2 * place + c % 2) + k / 4][4 + 2 * j + k % 4 / 2];
                sum[j][c] += one.low[k % 2] * other.high[k % 2] + one.high[k % 2] * other.low[k % 2] + one.high[k % 2] * other.high[k % 2];
            }
    __syncwarp();
}
static double scale_of(double greatest) { return greatest > 0 ? std::ldexp(1.0, 15 - std::ilogb(greatest)) : 1; }
static double unscale_of(double greatest) { return greatest > 0 ? std::ldexp(1.0, std::ilogb(greatest) - 15) : 1; }
static void copy_line(void* to, const void* from, int bytes) {
    std::memset(to, 0, 16);
    std::memcpy(to, from, static_cast<std::size_t>(bytes));
}

// Barriers count arrivals; copies have landed when they return.
struct Barrier {
    short expected, pending;
    int parity;
};
static void barrier_start(Barrier* barrier, int arrivals) { *barrier = {short(arrivals), short(arrivals), 0}; }
static void barrier_arrive(Barrier* barrier) {
    if (--barrier->pending == 0) {
        barrier->pending = barrier->expected;
        barrier->parity ^= 1;
    }
}
static void barrier_arrive_after_copies(Barrier* barrier) { barrier_arrive(barrier); }
static void barrier_wait(Barrier* barrier, int parity) {
    const Dimensions thread = threadIdx;
    while (barrier->parity == parity) host::give_way();
    threadIdx = thread;
}
static void barriers_ready() {}
static void barrier_expect(Barrier*, int) {}

typedef unsigned long long SharedAddress;
static SharedAddress in_shared(const void* pointer) { return reinterpret_cast<SharedAddress>(pointer); }
template <class T>
static T* at(SharedAddress place) {
    return reinterpret_cast<T*>(place);
}
template <class T>
static T* at_line(SharedAddress place) {
    return reinterpret_cast<T*>(place);
}
template <class T>
static T again(T value) {
    return value;
}
static int thread_again() { return static_cast<int>(threadIdx.x); }
static int blocks_again() { return static_cast<int>(gridDim.x); }
template <class T>
static T opaque(T value, int lane) {
    return __shfl_sync(0xffffffffu, value, lane);
}

/// Looks at them, so that a sanitizer sees what lies beyond an array.
template <class S>
static void ask_for(const S* rows, i64 row, i64 stride, int count) {
    for (int i = 0; i < count; ++i) static_cast<void>(const_cast<const volatile S*>(rows)[row * stride + i]);
}

// The copy engine: what leaves shared memory is read as late as a wait allows, so that a stage filled too early shows.
static constexpr bool has_bulk = true;
namespace host {
using Group = std::vector<std::function<void()>>;
static std::map<std::size_t, std::vector<Group>> groups;  // per thread; the last one is still open
static std::vector<Group>& own_groups() {
    std::vector<Group>& own = groups[current];
    if (own.empty()) own.emplace_back();
    return own;
}
static void run_groups(std::size_t latest) {
    std::vector<Group>& own = own_groups();
    while (own.size() > latest + 1) {
        for (const auto& action : own.front()) action();
        own.erase(own.begin());
    }
}
}  // namespace host
template <bool Kept>
static void copy_bulk(SharedAddress to, const void* from, int bytes, Barrier*) {
    std::memcpy(at<char>(to), from, bytes);
}
static void store_bulk(void* to, SharedAddress from, int bytes) {
    host::own_groups().back().push_back([=] { std::memcpy(to, at<char>(from), bytes); });
}
static void add_bulk(double* to, SharedAddress from, int bytes) {
    host::own_groups().back().push_back([=] {
        for (int i = 0; i < bytes / 8; ++i) to[i] += at<double>(from)[i];
    });
}
static void bulk_group() { host::own_groups().emplace_back(); }
template <int Latest>
static void bulk_read() {
    host::run_groups(Latest);
}
static void bulk_written() { host::run_groups(0); }
static void visible_to_bulk() {}

template <int>
static void keep_registers() {}
template <int>
static void claim_registers() {}
template <class S>
static void copy_row(S* to, const S* from, int count, bool, int lane) {
    for (int i = lane; i < count; i += 32) to[i] = from[i];
}
#define DYNAMIC_SHARED(name) alignas(128) static char name[1 << 19]
// From here the device's own text goes on: lookups, sums over lanes, borders of chunks, then the kernel.
