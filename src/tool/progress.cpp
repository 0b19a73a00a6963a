#include "tool/progress.hpp"

#include <unistd.h>

#include <cstdio>

namespace clebsch::tool {

void Progress::now(const std::string& what) {
    using namespace std::chrono_literals;
    const auto time = Clock::now();
    if (time - start_ < 2s || (last_ != start_ && time - last_ < 1s)) return;
    last_ = time;
    std::fprintf(stderr, "  %4.0f s  %s ...\n", std::chrono::duration<double>(time - start_).count(), what.c_str());
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
