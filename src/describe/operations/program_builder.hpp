#pragma once
// Programs step by step: values are added as nodes write them.
#include <string>
#include <vector>

#include "describe/program.hpp"

namespace clebsch {

/// Collects values and nodes of a program. Every method returns the number of the value it made; `finish` validates.
class ProgramBuilder {
 public:
    /// An input of the program: a row per row of `space` ("": shared).
    int input(const std::string& name, const std::string& space, std::vector<Segment> segments, Layout layout = Layout::mul_ir);

    /// Applies a polynomial whose only output is new: inputs bound by operand order (without the output). The new value is called `name`
    /// and takes space, segments and layout of the output operand.
    int apply(const std::string& name, const Polynomial& polynomial, const std::vector<int>& inputs);

    /// The same with several outputs, named in operand order.
    std::vector<int> apply(const std::vector<std::string>& names, const Polynomial& polynomial, const std::vector<int>& inputs);

    int apply(const std::string& name, const Function& function, int input);

    /// The nodes of another program, its inputs bound in their order; returns the values of its outputs. The value of its only output is
    /// called `name`, all others `name.` and their own name.
    std::vector<int> apply(const std::string& name, const Program& program, const std::vector<int>& inputs);

    /// The sum of values of one row space whose numbers are arranged alike.
    int sum(const std::string& name, const std::vector<int>& values);

    /// factor x value (+ constant on every number), as a polynomial.
    int affine(const std::string& name, int value, double factor, double constant = 0);

    Program finish(const std::vector<int>& outputs);

    const Value& value(int number) const { return program_.values[static_cast<std::size_t>(number)]; }

 private:
    Program program_;
    int add(Value value);
    void add_index(const Index& index);
};

/// A polynomial under construction whose inputs are values of a program, in any number. Operand 0 is the output; paths go into
/// `polynomial`.
class Assembly {
 public:
    Assembly(ProgramBuilder& program, const std::string& rows, Operand output);

    /// The operand of a value, added when it is first asked for. Values of the rows' space have one row per row; shared ones one row.
    int operand(int value);
    int finish();  ///< adds the node; returns the number of the output's value

    Polynomial polynomial;

 private:
    ProgramBuilder& program_;
    std::vector<int> values_;
};

}  // namespace clebsch
