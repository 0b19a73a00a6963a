#pragma once
// The packed form of channel-wise polynomials: straight-line work on tiles of channels; made by schedule/terms_kernel.cpp.
#include <cstdint>

#include "run/block.hpp"
#include "run/kernels/instruction_sets.hpp"

namespace clebsch {

/// Bytes that the tiles of the steps' results may take before tiles get narrower. More than a first-level cache: wide tiles read fewer
/// instructions for each number, which weighs more than the second level's latency.
inline constexpr std::int64_t terms_tile_budget = 256 * 1024;

struct TermsPlace {
    int operand = 0;
    std::int64_t offset = 0;  ///< of channel 0
};
struct TermsTerm {
    int a = 0, b = 0;  ///< slots
};
struct TermsStep {
    bool product = false;  ///< destination = slot first * slot second, else sum over terms [first, second) of coefficient * slot a
    int destination = 0, first = 0, second = 0;
};
/// number += sum over terms [sums, products) of coefficient * a + over [products, end) of coefficient * a * b.
struct TermsOutput {
    TermsPlace place;
    bool per_channel = true;                                 ///< else the sum over all channels
    bool overwrite = false;                                  ///< the number is stored instead of added to
    int sums = 0, products = 0, unit_products = 0, end = 0;  ///< terms [products, unit_products) have coefficient 1
};
/// coefficient[term] = value[term] * scalar slot, afresh for every row.
struct TermsScaled {
    int term = 0, scalar = 0;
};

/// All of one channel count. Vector slots are tiles of channels: slot 0 is one in every channel, then the inputs, then the steps' results.
/// Scalar slots: the inputs without channels, then the scalar steps' results. Term t has coefficient value[t].
struct TermsGroup {
    std::int64_t channels = 0;
    int inputs = 0, scalar_inputs = 0, scalar_steps = 0, steps = 0, outputs = 0, terms = 0, scaled = 0;
    int slots = 0, scalar_slots = 0, sums = 0;  ///< counts; sums: outputs that are not per channel
    const TermsPlace* input = nullptr;
    const TermsPlace* scalar_input = nullptr;
    const TermsStep* scalar_step = nullptr;
    const TermsStep* step = nullptr;
    const TermsOutput* output = nullptr;
    const TermsTerm* term = nullptr;
    const double* value = nullptr;
    const TermsScaled* scale = nullptr;
};

/// Bytes of scratch for a group: as large as any instruction set's version needs.
std::size_t terms_scratch_bytes(const TermsGroup& group, std::size_t element_size);

CLEBSCH_PER_INSTRUCTION_SET(                                             //
    void run_terms(const TermsGroup& group, const Block<float>& block);  //
    void run_terms(const TermsGroup& group, const Block<double>& block);)

}  // namespace clebsch
