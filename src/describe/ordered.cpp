#include "describe/ordered.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace clebsch {

Polynomial in_order_of(const Polynomial& polynomial, const std::vector<std::string>& by, const std::string& row,
                       const std::string& target) {
    Polynomial ordered = polynomial;
    const Index& last = polynomial.indices[static_cast<std::size_t>(polynomial.find_index(by.back()))];
    for (Operand& operand : ordered.operands) {
        std::vector<std::string>& via = operand.rows.via;
        if (operand.rows.kind == Addressing::Kind::each) operand.rows = row_of(row);
        else if (operand.rows.kind == Addressing::Kind::indexed && via.size() >= by.size() && std::equal(by.begin(), by.end(), via.begin()))
            via.erase(via.begin() + 1, via.begin() + static_cast<std::ptrdiff_t>(by.size())), via.front() = target;
        else if (operand.rows.kind == Addressing::Kind::indexed) via.insert(via.begin(), row);
    }
    std::erase_if(ordered.indices, [&](const Index& index) {  // what nothing needs any more
        return std::ranges::none_of(ordered.operands, [&](const Operand& operand) {
            return std::ranges::find(operand.rows.via, index.name) != operand.rows.via.end();
        });
    });
    ordered.indices.push_back({row, polynomial.rows, polynomial.rows, false});
    ordered.indices.push_back({target, polynomial.rows, last.to, true});
    return ordered;
}

Polynomial in_order_of(const Polynomial& polynomial, const std::string& index) {
    const Index& by = polynomial.indices[static_cast<std::size_t>(polynomial.find_index(index))];
    if (by.from != polynomial.rows)
        fail("index '" + index + "': expected an index of the iteration space '" + polynomial.rows + "', got one of '" + by.from + "'");
    const std::string row = index + "_order", target = index + "_sorted";
    for (const Index& other : polynomial.indices)
        if (other.name == row || other.name == target) fail("index '" + other.name + "': the operation has an index of this name already");
    Polynomial ordered = in_order_of(polynomial, {index}, row, target);
    validate(ordered);
    return ordered;
}

}  // namespace clebsch
