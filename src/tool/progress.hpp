#pragma once
// What the program is doing, on standard error, once that takes longer than a person likes to wait.
#include <chrono>
#include <string>

namespace clebsch::tool {

class Progress {
 public:
    /// Says what comes next: silent in the first two seconds, then at most once a second.
    void now(const std::string& what);

 private:
    using Clock = std::chrono::steady_clock;
    Clock::time_point start_ = Clock::now(), last_ = start_;
};

}  // namespace clebsch::tool
