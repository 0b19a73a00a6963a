#pragma once

namespace clebsch {

/// "0.1.0", as in the project's CMakeLists.txt.
const char* version();
/// Compiler and its version, and the kind of build: "gcc 12.2.0, optimised".
const char* build_description();

}  // namespace clebsch
