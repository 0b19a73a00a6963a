#pragma once
/// Operations as calls from XLA name them, each prepared once per dtype and device and kept for good: a process has few.
#include <clebsch/clebsch.h>

#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace clebsch_jax {

/// A status of the C interface that is not CLEBSCH_OK, with its message.
struct Failure : std::runtime_error {
    Failure(clebsch_status failed, const std::string& message) : std::runtime_error(message), status(failed) {}
    clebsch_status status;
};
/// Throws the failed call's message.
void check(clebsch_status status);

constexpr int host = -1;

/// What a call carries: the operation's canonical text and its hash, the dtype of its operands.
struct Request {
    std::string_view hash;  ///< 32 hexadecimal digits
    std::string_view text;
    int dtype = CLEBSCH_FLOAT32;
    int device = host;           ///< or the ordinal of a GPU
    bool deterministic = false;  ///< on a GPU: every sum in one order; on the processor that is always so
};

struct Prepared {
    struct Operand {
        bool is_output;
        int space;
        std::int64_t row_size;
    };
    struct Index {
        int from, to;
    };
    clebsch_plan* plan = nullptr;
    int dtype = CLEBSCH_FLOAT32;
    std::vector<Operand> operands;
    std::vector<Index> indices;
    std::size_t inputs = 0, outputs = 0, spaces = 0;

    /// Scratch bytes of a call with these rows.
    [[nodiscard]] std::size_t workspace_bytes(const std::vector<std::int64_t>& rows) const;
};

/// Finds it by all but the text; prepares it where it is new. Any thread.
const Prepared& prepared(const Request& request);

}  // namespace clebsch_jax
