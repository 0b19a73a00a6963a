#pragma once
// The entries behind the registry: options of each operation, and how they become a description.
#include <string>
#include <string_view>
#include <vector>

#include "describe/operations/registry.hpp"

namespace clebsch {

/// Options of one call, read with their types; every error names the operation and the option.
class OptionValues {
 public:
    OptionValues(const OperationInfo& operation, const OptionTexts& given) : operation_(operation), given_(given) {}

    std::string text(std::string_view option) const;  ///< as given, else the default
    bool empty(std::string_view option) const;
    Irreps irreps(std::string_view option) const;
    std::vector<Irrep> irrep_list(std::string_view option) const;  ///< "0e+1o": multiplicities do not matter
    std::int64_t integer(std::string_view option) const;
    int small_integer(std::string_view option) const;
    double number(std::string_view option) const;
    bool boolean(std::string_view option) const;
    std::string choice(std::string_view option) const;
    std::vector<std::int64_t> integers(std::string_view option) const;
    std::vector<double> numbers(std::string_view option) const;

 private:
    const OperationInfo& operation_;
    const OptionTexts& given_;
    const OptionInfo& info(std::string_view option) const;
    std::string where(std::string_view option) const;
};

struct OperationEntry {
    OperationInfo info;
    Description (*build)(const OptionValues&);
};
const std::vector<OperationEntry>& operation_table();

}  // namespace clebsch
