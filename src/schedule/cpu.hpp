#pragma once
// Which kernels run a polynomial on the CPU, and why.
#include <memory>
#include <string>
#include <vector>

#include "describe/polynomial.hpp"
#include "schedule/kernel.hpp"

namespace clebsch {

/// Kernels that together compute every path of a polynomial, each path once, in the order they run.
struct KernelChoice {
    std::vector<std::unique_ptr<Kernel>> kernels;
    std::string explain;  ///< which family took which paths and why, one line or more per kernel
};

/// Families are asked in the order lanes, fold, mix, terms, general; each takes the paths it suits. `family` (empty: all) names the only
/// one asked before `general`, for tests and measurements; an unknown name throws Error(invalid_argument) that lists them. `polynomial` is
/// valid.
KernelChoice choose_kernels(const Polynomial& polynomial, InstructionSet isa, const std::string& family = "");

}  // namespace clebsch
