#include "schedule/estimate.hpp"

#include <algorithm>
#include <cstdio>

namespace clebsch {
namespace {

/// Three digits with a unit: 12.3 M, 4.50 k.
std::string scaled(double value, const char* unit) {
    const char* prefix = "";
    for (const char* next : {"k", "M", "G", "T"}) {
        if (value < 1000) break;
        value /= 1000;
        prefix = next;
    }
    char text[64];
    std::snprintf(text, sizeof text, "%.3g %s%s", value, prefix, unit);
    return text;
}

std::string duration(double seconds) {
    char text[64];
    if (seconds < 1e-3) std::snprintf(text, sizeof text, "%.3g us", seconds * 1e6);
    else if (seconds < 1) std::snprintf(text, sizeof text, "%.3g ms", seconds * 1e3);
    else std::snprintf(text, sizeof text, "%.3g s", seconds);
    return text;
}

}  // namespace

double limit_seconds(const Work& work, const Peaks& peaks) {
    const double memory = peaks.copy_bytes_per_second > 0 ? work.bytes / peaks.copy_bytes_per_second : 0;
    const double arithmetic = peaks.multiply_adds_per_second > 0 ? work.multiply_adds / peaks.multiply_adds_per_second : 0;
    return std::max(memory, arithmetic);
}

std::string explain_limit(const Work& work, const Peaks& peaks) {
    std::string text = scaled(work.bytes, "B") + " moved once, " + scaled(work.multiply_adds, "") + " multiply-adds";
    if (peaks.copy_bytes_per_second <= 0 && peaks.multiply_adds_per_second <= 0) return text;
    const double memory = limit_seconds({.multiply_adds = 0, .bytes = work.bytes}, peaks);
    const double arithmetic = limit_seconds({.multiply_adds = work.multiply_adds, .bytes = 0}, peaks);
    text += "; limit " + duration(std::max(memory, arithmetic)) + (memory >= arithmetic ? " (memory" : " (arithmetic");
    if (peaks.copy_bytes_per_second > 0) text += ", " + duration(memory) + " at " + scaled(peaks.copy_bytes_per_second, "B/s");
    if (peaks.multiply_adds_per_second > 0)
        text += ", " + duration(arithmetic) + " at " + scaled(2 * peaks.multiply_adds_per_second, "FLOP/s");
    return text + ")";
}

}  // namespace clebsch
