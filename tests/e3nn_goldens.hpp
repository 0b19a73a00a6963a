#pragma once
// Reads tests/data/e3nn.json; tests/data/README.md documents it.
#include <cstdint>
#include <fstream>
#include <nlohmann/json.hpp>
#include <stdexcept>
#include <string>
#include <vector>

namespace clebsch {

/// The whole file, read once.
inline const nlohmann::json& e3nn_goldens() {
    static const nlohmann::json goldens = [] {
        std::ifstream file(CLEBSCH_TEST_DATA "/e3nn.json");
        if (!file) throw std::runtime_error("cannot open " CLEBSCH_TEST_DATA "/e3nn.json");
        return nlohmann::json::parse(file);
    }();
    return goldens;
}

/// Element i of an input stream, by the formula of tests/data/README.md.
inline double golden_number(int stream, std::int64_t i) {
    const std::int64_t k = i + 1;
    return (static_cast<double>((37 * k * k * k + 131 * k * k + 7919 * k + 10477 * stream) % 2003) - 1001.5) / 500.0;
}

inline std::vector<double> golden_numbers(int stream, std::int64_t count) {
    std::vector<double> values;
    for (std::int64_t i = 0; i < count; ++i) values.push_back(golden_number(stream, i));
    return values;
}

}  // namespace clebsch
