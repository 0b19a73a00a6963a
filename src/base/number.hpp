#pragma once
#include <string>

namespace clebsch {

/// The shortest decimal that reads back to the same bits: 0.1, 1e-300, inf, nan.
std::string number_text(double value);

}  // namespace clebsch
