#pragma once
// How the straight-line code of stream kernels calls numbers, and how it puts a lane's numbers into memory.
#include <string>
#include <vector>

#include "emit/stream_body.hpp"

namespace clebsch {

/// The channel of a share's lane, given that of the first share's.
std::string channel_text(const BodyShare& share);
/// What tells the registers of a body's shares apart.
std::string share_suffix(std::size_t share);
/// A number that the lane has parked.
std::string parked_number(int number);
std::string number_name(const char* letter, SegmentName name, int component);

int components_of(const GpuProblem& problem, SegmentName name);

/// Where numbers of a segment, one channel per lane, go in memory.
struct Destination {
    SegmentName name;
    std::string base;     // pointer expression of the row
    std::string channel;  // expression
    bool adds = false;
    std::int64_t guard = -1;  // channels of the paths if they end within the warp
};

/// Stores or adds the numbers. A warp's channels of a mul_ir segment are one run of memory: they are turned in shared memory so that
/// neighbouring lanes write neighbouring numbers.
void write_numbers(SourceText& source, const GpuProblem& problem, const Destination& to, const std::vector<std::string>& numbers);

}  // namespace clebsch
