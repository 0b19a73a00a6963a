#pragma once
// What rounding errors are measured against. Where terms cancel, a result is small while the rounding errors of its terms are not, so that
// errors relative to the result mean nothing; the scale here is the sum of the terms' magnitudes instead.
#include <map>
#include <string>

#include "describe/program.hpp"
#include "describe/reference.hpp"
#include "run/buffers.hpp"

namespace clebsch::testing {

/// The polynomial with the absolute value of every scale and coefficient.
Polynomial with_magnitudes(const Polynomial& polynomial);

/// Every output as the sum of the magnitudes of its terms: the reference on absolute coefficients and inputs. Outputs by name. None is less
/// than the smallest normal number of `compute`, below which numbers have fewer digits; infinite: the number may be beyond the largest one.
std::map<std::string, ReferenceArray> magnitudes(const Polynomial& polynomial, const ReferenceInputs& inputs, DType compute);

/// The same through a program, node by node: m of an input is |x|; of a polynomial, its magnitudes on those of its arguments; of a function
/// |f(x)| + |f'(x)| m(x). An error of c units of rounding in every argument, c m(x), then is one of about c m in every result.
/// Infinite, too, where nothing is known of a result: the argument may round to one that the function has no value for.
std::map<std::string, ReferenceArray> magnitudes(const Program& program, const ReferenceInputs& inputs, DType compute);

/// Norm of the difference over the norm of the magnitudes (0 if there is no difference), over the numbers whose magnitude is finite;
/// infinite when one of them is not.
double error_in_magnitudes(const ReferenceArray& result, const ReferenceArray& reference, const ReferenceArray& magnitudes);

}  // namespace clebsch::testing
