#pragma once
// Atoms of the example structures, and how far arrays of a golden file are from what was found.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "graph/structure.hpp"
#include "io/xyz.hpp"

namespace clebsch::testing {

const std::string data = CLEBSCH_SOURCE_DIR "/examples/data/";

struct Atoms {
    Structure structure;
    std::vector<int> numbers;
};

/// The last frame of an example, as ase reads files.
inline Atoms read(const std::string& file) {
    const XyzFrame frame = read_xyz(data + file).back();
    return {frame.structure, frame.atomic_numbers()};
}

inline std::vector<double> flat(const nlohmann::json& rows) {
    std::vector<double> result;
    for (const auto& row : rows)
        for (const double number : row) result.push_back(number);
    return result;
}

inline double largest(const std::vector<double>& values) {
    double most = 0;
    for (const double value : values) most = std::max(most, std::abs(value));
    return most;
}

inline double deviation(const std::vector<double>& a, const std::vector<double>& b) {
    REQUIRE(a.size() == b.size());
    double most = 0;
    for (std::size_t i = 0; i < a.size(); ++i) most = std::isfinite(a[i]) ? std::max(most, std::abs(a[i] - b[i])) : INFINITY;
    return most;
}

}  // namespace clebsch::testing
