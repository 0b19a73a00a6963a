#pragma once
// Nodes of a program written out number by number: what one row computes, as a graph of scalar expressions without duplicates.
#include <cstdint>
#include <map>
#include <tuple>
#include <vector>

#include "describe/program.hpp"

namespace clebsch {

class LanesExpressions {
 public:
    struct Term {
        double coefficient = 0;
        std::vector<int> factors;  ///< expressions, sorted
        friend bool operator<(const Term& a, const Term& b) {
            return std::tie(a.coefficient, a.factors) < std::tie(b.coefficient, b.factors);
        }
    };
    enum class Kind : std::uint8_t { load, sum, product, function };
    struct Expression {
        Kind kind = Kind::load;
        int value = -1;  ///< load: number `position` of this value's row
        std::int64_t position = 0;
        Function function;  ///< function of `a`; product of `a` and `b`
        int a = -1, b = -1;
        double constant = 0;  ///< sum: constant + terms
        std::vector<Term> terms;
    };

    /// Adds the expressions of a node's results.
    void add(const Program& program, const Node& node);

    /// Afterwards every term of `roots` and what they need has at most two factors; products of two that several terms share are
    /// expressions of their own, and terms that share a factor are summed before they are multiplied where that takes fewer operations.
    void reduce(const std::vector<int>& roots);

    const std::vector<Expression>& all() const { return expressions_; }
    /// Of every number of a value; reads it from memory unless a node was added that writes it.
    const std::vector<int>& of_value(const Program& program, int value);
    bool written(int value) const { return written_.contains(value); }

 private:
    int load(int value, std::int64_t position);
    int product(int a, int b);
    int function(const Function& function, int a);
    int sum(double constant, std::vector<Term> terms);

    void split_long_terms(const std::vector<int>& sums);
    void share_products(const std::vector<int>& sums);

    std::vector<Expression> expressions_;
    std::map<int, std::vector<int>> values_;  ///< expression of every number
    std::map<int, bool> written_;
    std::map<std::pair<int, std::int64_t>, int> loads_;
    std::map<std::pair<int, int>, int> products_;
    std::map<std::tuple<int, double, int>, int> functions_;
    std::map<std::pair<double, std::vector<Term>>, int> sums_;
};

/// Scalar multiply-adds of a polynomial for one row, and whether it can be written out at all: `each` and `shared` inputs, `each` outputs.
struct LanesSize {
    bool possible = false;
    std::int64_t terms = 0;
};
LanesSize lanes_size(const Polynomial& polynomial);

}  // namespace clebsch
