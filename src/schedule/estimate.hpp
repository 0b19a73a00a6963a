#pragma once
// The documented cost model (docs/limits.md): what `explain` predicts and `bench` compares with.
#include <string>

namespace clebsch {

/// Work of one iteration row (an edge, a node), and of rows amortised over it.
struct Estimate {
    double multiply_adds = 0;  ///< folded multiply-adds per iteration row
    double bytes = 0;          ///< every array read or written once, per iteration row
};

/// Work of one launch.
struct Work {
    double multiply_adds = 0;  ///< what the chosen kernels perform; a multiply-add is two flops
    double bytes = 0;          ///< every array of the call once: rows x numbers per row x bytes per number; index arrays once
};

/// What this machine can do, measured with the threads of the launch. 0: not known.
struct Peaks {
    double copy_bytes_per_second = 0;     ///< bytes read plus bytes written, arrays beyond the last-level cache
    double multiply_adds_per_second = 0;  ///< in the compute type and instruction set of the plan
};

/// The limit: the longer of moving every byte once at the copy bandwidth and of all multiply-adds at their peak. Seconds; 0 when no peak is
/// known.
double limit_seconds(const Work& work, const Peaks& peaks);
/// "limit: 1.23 ms (memory: 4.5 MB at 24.0 GB/s; arithmetic 0.61 ms: 36.0 M multiply-adds at 59.0 G/s)"; counts alone when no peak is
/// known.
std::string explain_limit(const Work& work, const Peaks& peaks);

}  // namespace clebsch
