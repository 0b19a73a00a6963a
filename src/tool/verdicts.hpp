#pragma once
// Checks with an error and a bound, counted and put into a table.
#include <string>

#include "tool/report.hpp"

namespace clebsch::tool {

/// The bounds of the library's promises, norm-wise and relative.
inline constexpr double float32_bound = 2e-6, float64_bound = 1e-13, equivariance_bound = 1e-12, difference_bound = 1e-8;

class Verdicts {
 public:
    /// An error within its bound passes; one that is not a number does not.
    bool add(double error, double bound) {
        const bool passed = error <= bound;
        ++checks_;
        failed_ += passed ? 0 : 1;
        return passed;
    }
    int checks() const { return checks_; }
    int failed() const { return failed_; }
    /// "all 12 checks passed", "2 of 12 checks FAILED".
    std::string text() const {
        if (failed_ == 0) return "all " + std::to_string(checks_) + " checks passed";
        return std::to_string(failed_) + " of " + std::to_string(checks_) + " checks FAILED";
    }
    static const char* word(bool passed) { return passed ? "ok" : "FAILED"; }

 private:
    int checks_ = 0, failed_ = 0;
};

}  // namespace clebsch::tool
