#include "tool/progress.hpp"

#include <unistd.h>

#include <cstdio>

#include "base/wait.hpp"

namespace clebsch::tool {

Progress::Progress() : thread_([this] { watch(); }) {}

Progress::~Progress() {
    {
        const std::scoped_lock lock(mutex_);
        done_ = true;
    }
    changed_.notify_one();
    thread_.join();
}

void Progress::now(const std::string& what) {
    {
        const std::scoped_lock lock(mutex_);
        what_ = what;
    }
    changed_.notify_one();
}

void Progress::watch() {
    using namespace std::chrono_literals;
    std::unique_lock lock(mutex_);
    for (auto next = start_ + 2s; !changed_.wait_until(lock, next, [&] { return done_; }); next = Clock::now() + 1s) {
        wait(changed_, lock, [&] { return done_ || (!what_.empty() && what_ != shown_); });
        if (done_) return;
        std::fprintf(stderr, "  %4.0f s  %s ...\n", std::chrono::duration<double>(Clock::now() - start_).count(), what_.c_str());
        shown_ = what_;
    }
}

LiveLine::LiveLine() : terminal_(::isatty(STDERR_FILENO) == 1) {}

LiveLine::~LiveLine() {
    if (shown_ && terminal_) std::fputs("\r\033[K", stderr);
}

bool LiveLine::due() const {
    using namespace std::chrono_literals;
    return Clock::now() - last_ > (terminal_ ? 500ms : 30s);
}

void LiveLine::show(const std::string& text) {
    last_ = Clock::now();
    shown_ = true;
    std::fprintf(stderr, terminal_ ? "\r\033[K  %s" : "  %s\n", text.c_str());
    std::fflush(stderr);
}

}  // namespace clebsch::tool
