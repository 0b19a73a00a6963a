#pragma once
// What a program's call is made of, as every kind of plan checks and stores it. Internal to run/.
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "describe/program.hpp"
#include "run/call.hpp"

namespace clebsch {

struct ProgramArguments {
    Program given;
    std::vector<std::string> spaces;  ///< row_spaces(given)
    std::vector<DType> dtypes;        ///< of the arguments: inputs, then outputs
    DType compute = DType::float32;
    std::vector<Operand> arguments;    ///< inputs, then outputs, for messages and checks
    std::vector<int> argument_spaces;  ///< positions in `spaces`; -1: shared
    std::vector<int> index_from, index_to;

    /// `dtypes` empty: float32 all; `compute`: default float64 if every array is. Throws Error for a wrong number of dtypes or an unknown
    /// one.
    ProgramArguments(const Program& program, const std::vector<DType>& dtypes, std::optional<DType> compute);

    int space_of(const std::string& name) const;  ///< position in `spaces`; -1: shared
    std::int64_t rows_of(std::size_t argument, std::span<const std::int64_t> rows) const;
    /// Throws Error when the numbers of rows do not fit the spaces.
    void check_rows(std::span<const std::int64_t> rows) const;
    /// Throws Error: see check_buffer, check_index; an output that shares memory with another array. `values`: whether to look at the
    /// numbers of index arrays.
    void check(const Call& call, bool values) const;
    double bytes(std::span<const std::int64_t> rows) const;  ///< of all arrays and indices of a call
};

/// Gives every argument of `program` that is `needed` in the compute type, but stored otherwise, a copy that all nodes use instead; returns
/// pairs (argument, copy). `dtypes` are those of the program's values.
std::vector<std::pair<int, int>> add_copies(Program& program, const std::vector<bool>& needed, std::vector<DType>& dtypes, DType compute);

}  // namespace clebsch
