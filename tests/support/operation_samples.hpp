#pragma once
// Small descriptions that between them use every builder, mode and layout.
#include <string>
#include <vector>

#include "describe/operations/registry.hpp"

namespace clebsch::testing {

struct Sample {
    const char* operation;
    OptionTexts options;
    bool equivariant = true;
};
const std::vector<Sample>& samples();

Description build(const Sample& sample);
std::string label(const Sample& sample);  ///< "linear in=... out=..."

}  // namespace clebsch::testing
