#include "tool/progress.hpp"

#include <cstdio>

namespace clebsch::tool {

void Progress::now(const std::string& what) {
    using namespace std::chrono_literals;
    const auto time = Clock::now();
    if (time - start_ < 2s || (last_ != start_ && time - last_ < 1s)) return;
    last_ = time;
    std::fprintf(stderr, "  %4.0f s  %s ...\n", std::chrono::duration<double>(time - start_).count(), what.c_str());
}

}  // namespace clebsch::tool
