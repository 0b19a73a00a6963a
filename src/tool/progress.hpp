#pragma once
// What the program is doing, on standard error, once that takes longer than a person likes to wait.
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace clebsch::tool {

class Progress {
 public:
    Progress();
    ~Progress();
    Progress(const Progress&) = delete;
    Progress& operator=(const Progress&) = delete;

    /// Says what comes next, which is shown while it lasts: nothing in the first two seconds, then at most once a second. "": the end,
    /// before results are printed.
    void now(const std::string& what);

 private:
    using Clock = std::chrono::steady_clock;
    const Clock::time_point start_ = Clock::now();
    std::mutex mutex_;
    std::condition_variable changed_;
    std::string what_, shown_;
    bool done_ = false;
    std::thread thread_;  ///< last: it uses the others

    void watch();
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
