#pragma once
// What a plan's call is made of, as every kind of plan checks it: arguments with their types and row spaces, index arrays. Internal to
// run/.
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "run/call.hpp"

namespace clebsch {

struct CallArguments {
    std::vector<std::string> spaces;  ///< in the order of Call::rows
    std::vector<Operand> arguments;   ///< in the order of Call::buffers
    std::vector<std::int64_t> sizes;  ///< numbers in a row of each argument
    std::vector<DType> dtypes;        ///< of the arguments
    DType compute = DType::float32;
    std::vector<int> argument_spaces;       ///< positions in `spaces`; -1: shared
    std::vector<Index> indices;             ///< in the order of Call::indices
    std::vector<int> index_from, index_to;  ///< positions in `spaces`

    /// `dtypes` empty: float32 all; `compute`: default float64 if every array is. `space_names`: of each argument, "" if it is shared.
    /// Throws Error for a wrong number of dtypes, an unknown one, or a compute type that is neither float32 nor float64.
    CallArguments(std::vector<std::string> spaces, std::vector<Operand> arguments, const std::vector<std::string>& space_names,
                  std::vector<Index> indices, const std::vector<DType>& dtypes, std::optional<DType> compute);
    CallArguments(const Polynomial& polynomial, const std::vector<DType>& dtypes, std::optional<DType> compute);

    int space_of(const std::string& name) const;  ///< position in `spaces`; -1 for none of them, as ""
    std::int64_t rows_of(std::size_t argument, std::span<const std::int64_t> rows) const;
    /// Throws Error when the numbers of rows do not fit the spaces.
    void check_rows(std::span<const std::int64_t> rows) const;
    /// Throws Error: see check_buffer, check_index; an output that shares memory with another array. `values`: whether to look at the
    /// numbers of index arrays. Allocates nothing unless it throws, or meets more arguments than before in this thread.
    void check(const Call& call, bool values) const;
    double bytes(std::span<const std::int64_t> rows) const;  ///< of all arrays and indices of a call
};

}  // namespace clebsch
