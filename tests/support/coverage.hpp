#pragma once
// What random tests have met: counts by category, so that a run shows which modes, row spaces, layouts and orders it hit.
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "describe/program.hpp"
#include "describe/reference.hpp"

namespace clebsch {

class Coverage {
 public:
    void count(const std::string& category, const std::string& item, long times = 1) { counts_[category][item] += times; }
    /// Channel modes (letters renamed in order of appearance: "u,v,uvw->w"), row addressing of inputs and outputs, layouts, coefficients,
    /// channels.
    void add(const Polynomial& polynomial);
    void add(const Program& program);
    /// Numbers of rows, masked indices.
    void add(const ReferenceInputs& inputs);

    long count_of(const std::string& category, const std::string& item) const;
    /// Those of `items` that were never met.
    std::vector<std::string> missing(const std::string& category, const std::vector<std::string>& items) const;
    /// One line per category, items by count.
    std::string to_text() const;

 private:
    std::map<std::string, std::map<std::string, long>> counts_;
};

/// "u,v,uvw->w": channels of a path's factors with letters renamed u, v, w, ... in order of first appearance.
std::string channel_mode(const Path& path);

}  // namespace clebsch
