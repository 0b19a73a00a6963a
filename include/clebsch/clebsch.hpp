#pragma once
/// Clebsch for C++: values with destructors over the C interface, whose header clebsch.h has the contracts. Errors are exceptions:
/// clebsch::Failure with the library's message, std::invalid_argument for arrays that do not fit the names of a call.
///
///   const auto conv = clebsch::Operation::build("convolution", "in=8x0e+8x1o\nedge=0e+1o\nout=0e+1o");
///   const clebsch::Plan plan(conv, CLEBSCH_FLOAT32);
///   plan.run({{"edge", edges}, {"node", nodes}}, {{"x", x}, {"y", y}, {"weights", weights}},
///            {{"sender", sender}, {"receiver", receiver}}, {{"out", out}});
///
/// Irreps, Operation, Plan, Graph and Potential are immutable; their copies share one handle and may be used by several threads.
#include <clebsch/algebra.hpp>
#include <clebsch/library.hpp>
#include <clebsch/operation.hpp>
#include <clebsch/potential.hpp>
