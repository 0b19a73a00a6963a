#include "run/flush_to_zero.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace clebsch {
namespace {

#if defined(__x86_64__)
constexpr unsigned long long bits = 0x8040;  // results, and what instructions read
unsigned long long control() { return _mm_getcsr(); }
void set_control(unsigned long long value) { _mm_setcsr(static_cast<unsigned>(value)); }
#elif defined(__aarch64__)
constexpr unsigned long long bits = 1ULL << 24;
unsigned long long control() {
    unsigned long long value = 0;
    asm volatile("mrs %0, fpcr" : "=r"(value));
    return value;
}
void set_control(unsigned long long value) { asm volatile("msr fpcr, %0" : : "r"(value)); }
#else
constexpr unsigned long long bits = 0;
unsigned long long control() { return 0; }
void set_control(unsigned long long) {}
#endif

}  // namespace

FlushToZero::FlushToZero() : saved_(control()) { set_control(saved_ | bits); }
FlushToZero::~FlushToZero() { set_control(saved_); }

ParallelFor FlushedTasks::parallel_for() const {
    ParallelFor result = inner_;
    if (inner_.run == nullptr) return result;
    result.context = const_cast<ParallelFor*>(&inner_);
    result.run = [](void* context, std::int64_t tasks, ParallelFor::Task task, void* argument) {
        struct Given {
            ParallelFor::Task task;
            void* argument;
        } given{task, argument};
        const auto call = [](void* of, std::int64_t index) {
            const FlushToZero flush;
            static_cast<Given*>(of)->task(static_cast<Given*>(of)->argument, index);
        };
        const auto& inner = *static_cast<const ParallelFor*>(context);
        inner.run(inner.context, tasks, call, &given);
    };
    return result;
}

}  // namespace clebsch
