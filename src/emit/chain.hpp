#pragma once
// Steps of a program over the same rows as one kernel: a block takes a few rows through all of them (links of the chain), so that what they
// hand to one another stays near and nothing is started in between.
#include <cstdint>
#include <vector>

#include "schedule/gpu_kernel.hpp"

namespace clebsch {

constexpr int chain_threads = 256;

/// Of links as emit_tape_link and emit_general_link write them: arguments and a function `run` of them and a range of rows. The arguments
/// are those of the links one after the other, then the number of rows.
KernelText emit_chain(const std::vector<KernelText>& links, std::int64_t rows_of_block);
LaunchShape chain_shape(std::int64_t rows, std::int64_t rows_of_block);

}  // namespace clebsch
