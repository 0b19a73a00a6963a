#pragma once
// The documented cost model (docs/limits.md): what `explain` predicts and `bench` compares with.
#include <string>

namespace clebsch {

/// Work of one iteration row (an edge, a node), and of rows amortised over it.
struct Estimate {
    double multiply_adds = 0;   ///< folded multiply-adds per iteration row
    double bytes = 0;           ///< every array read or written once, per iteration row
};

}  // namespace clebsch
