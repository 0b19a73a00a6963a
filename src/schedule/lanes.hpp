#pragma once
// Runs of nodes with few numbers per row, as one tape that works on many rows at a time, one in each vector lane (run/kernels/lanes.hpp).
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "describe/program.hpp"
#include "run/kernels/lanes.hpp"
#include "schedule/estimate.hpp"

namespace clebsch {

/// Multiply-adds and functions per row of a node that suits a tape: a polynomial whose operands are addressed `each` (outputs too) or
/// `shared` and small, or a function of a small value. Nothing for others.
std::optional<std::int64_t> lanes_work(const Program& program, const Node& node);
/// Row space of a node: a polynomial's iteration space, a function's space.
std::string space_of(const Program& program, const Node& node);

/// Owns what a LanesTape points to. Immutable.
class LanesCode {
 public:
    /// Nodes of one row space that suit lanes, in their order. `stored`: of the values they write, those that are needed in memory.
    LanesCode(const Program& program, std::span<const Node* const> nodes, const std::vector<int>& stored);

    LanesTape tape() const;
    const std::vector<int>& arrays() const { return arrays_; }  ///< the value behind every array number, those read and those stored
    const std::vector<int>& stored() const { return stored_; }
    int slots() const { return slots_; }
    int functions() const { return static_cast<int>(functions_.size()); }  ///< per row
    Estimate estimate() const { return estimate_; }
    std::string explain() const;

 private:
    std::vector<std::int32_t> prologue_, body_;
    std::vector<float> constants_float_;
    std::vector<double> constants_double_;
    std::vector<FunctionCode> functions_;
    std::vector<int> arrays_, stored_;
    int slots_ = 0, instructions_ = 0, loads_ = 0, stores_ = 0;
    Estimate estimate_;
};

}  // namespace clebsch
