#pragma once
// What a plan knows before any call: how operands are reached and stored, kernels, the size of blocks. Internal to run/.
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "run/call_arguments.hpp"
#include "run/plan.hpp"
#include "run/stage.hpp"
#include "schedule/kernel.hpp"

namespace clebsch {

/// Numbers [begin, end) of a row.
struct Range {
    std::int64_t begin = 0, end = 0;
};

/// How the rows of one operand are reached and how kernels see them.
struct OperandPlan {
    enum class Kind : std::uint8_t { each, shared, indexed };
    Kind kind = Kind::each;
    bool output = false;
    bool sorted = false;  ///< indexed, its rows never decrease along the iteration
    bool plain = false;   ///< kernels work on the stored rows
    int chain = -1;       ///< indexed: which chain of indices
    RowForm form;
    std::int64_t padded = 0;    ///< numbers from one row of ours to the next, a multiple of 64 bytes
    std::vector<Range> zeroed;  ///< `each` and sorted outputs: what no kernel overwrites; of `each` ones zeroed before the first kernel
    bool begun = false;         ///< sorted outputs: a kernel stores where a row begins, so that the executor need not zero it
};

struct PlanData : CallArguments {
    PlanData(Polynomial given, const PlanOptions& options)
        : CallArguments(given, options.dtypes, options.compute), polynomial(std::move(given)) {}

    Polynomial polynomial;
    InstructionSet isa{};
    std::vector<std::unique_ptr<Kernel>> kernels;
    std::string choice;  ///< explain text of the kernels

    std::vector<OperandPlan> operands;
    std::vector<std::vector<int>> chains;    ///< positions in polynomial.indices, first applied first; distinct
    std::vector<std::uint64_t> path_chains;  ///< distinct sets of chains (bit c) that a path's factors go through
    bool partly_masked = false;              ///< whether -1 can mask some operands of a row and leave paths that go without
    int border_chain = -1;                   ///< the chain of the largest sorted output: parts begin where its row changes, if they can
    int block_rows = 1;
    Fetch fetch = Fetch::own;                 ///< who asks for the rows of the next block
    std::size_t scratch_bytes = 0;            ///< of one worker, for the kernels
    std::vector<std::size_t> prepared_bytes;  ///< of each kernel
    double work_per_row = 0;                  ///< multiply-adds and numbers touched, roughly: how many rows make a part worth while

    /// Whether a row that has no row of the chains in `missing` contributes to no path at all.
    bool masked(std::uint64_t missing) const {
        for (const std::uint64_t chains_of_path : path_chains)
            if ((chains_of_path & missing) == 0) return false;
        return true;
    }
};

}  // namespace clebsch
