#pragma once
#include <random>

#include "algebra/rotation.hpp"

namespace clebsch {

inline Quaternion random_quaternion(std::mt19937_64& random) {
    std::normal_distribution<double> normal;
    return {normal(random), normal(random), normal(random), normal(random)};
}

}  // namespace clebsch
