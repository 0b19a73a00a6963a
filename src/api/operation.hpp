#pragma once
// An operation behind its handle, with the lists a call needs: arrays, spaces, indices, in the order of the C interface.
#include <string>
#include <variant>
#include <vector>

#include "clebsch/clebsch.h"
#include "describe/polynomial.hpp"
#include "describe/program.hpp"

namespace clebsch::api {

struct OperandFacts {
    std::string name, segments;
    bool is_output = false;
    Layout layout = Layout::mul_ir;
    std::int64_t row_size = 0;
    int space = -1;  ///< position in `spaces`, -1: shared
};

struct IndexFacts {
    std::string name;
    int from = 0, to = 0;
    bool sorted = false;
};

}  // namespace clebsch::api

struct clebsch_operation {
    std::variant<clebsch::Polynomial, clebsch::Program> value;
    std::vector<std::string> spaces;
    std::vector<clebsch::api::OperandFacts> operands;
    std::vector<clebsch::api::IndexFacts> indices;

    explicit clebsch_operation(std::variant<clebsch::Polynomial, clebsch::Program> description);
};
