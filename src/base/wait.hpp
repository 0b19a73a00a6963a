#pragma once
#include <pthread.h>

#include <condition_variable>
#include <mutex>

namespace clebsch {

/// std::condition_variable::wait, by the mutex and the variable inside. The library of GCC 12 gave that function a new version, and a
/// program that calls it does not start beside the library of GCC 11, which wheels for manylinux_2_34 meet.
template <class Condition>
void wait(std::condition_variable& variable, std::unique_lock<std::mutex>& lock, Condition condition) {
    while (!condition()) pthread_cond_wait(variable.native_handle(), lock.mutex()->native_handle());
}

}  // namespace clebsch
