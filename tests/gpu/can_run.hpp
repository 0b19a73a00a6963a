#pragma once
// Whether tests that need a GPU can run here.
#include <doctest/doctest.h>

#include "run/gpu/compiler.hpp"
#include "run/gpu/driver.hpp"

namespace clebsch::testing {

inline bool can_run_on_gpu() {
    const gpu::CompilerStatus compiler = gpu::compiler_status();
    if (gpu::device_count() > 0 && compiler.found) return true;
    MESSAGE("skipped: " << (compiler.found ? gpu::driver_status().text : compiler.text));
    return false;
}

}  // namespace clebsch::testing
