#pragma once
// Arithmetic without denormal numbers. Processors take a hundred times as long for a product with one of them as for any other, and weights
// that training has let decay are full of them.
#include "run/threads.hpp"

namespace clebsch {

/// As long as it lives, numbers below the smallest normal one are zero for this thread: as results, and as factors and terms.
class FlushToZero {
 public:
    FlushToZero();
    ~FlushToZero();
    FlushToZero(const FlushToZero&) = delete;
    FlushToZero& operator=(const FlushToZero&) = delete;

 private:
    unsigned long long saved_ = 0;
};

/// Tasks of another ParallelFor, each under a FlushToZero; both outlive the result's use.
class FlushedTasks {
 public:
    explicit FlushedTasks(const ParallelFor& inner) : inner_(inner) {}
    ParallelFor parallel_for() const;

 private:
    ParallelFor inner_;
};

}  // namespace clebsch
