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

/// A line on standard error that changes as a long run goes on: in place on a terminal, twice a second; elsewhere a new one every 30 s.
class LiveLine {
 public:
    LiveLine();
    ~LiveLine();  ///< takes the line away
    LiveLine(const LiveLine&) = delete;
    LiveLine& operator=(const LiveLine&) = delete;

    bool due() const;  ///< time for a new one?
    void show(const std::string& text);

 private:
    using Clock = std::chrono::steady_clock;
    bool terminal_, shown_ = false;
    Clock::time_point last_ = Clock::now();
};

}  // namespace clebsch::tool
