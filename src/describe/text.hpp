#pragma once
// Canonical text of polynomials and programs (docs/text.md): to_text(parse(t)) == t for canonical t, parse(to_text(p)) == p always.
#include <span>
#include <string>
#include <string_view>

#include "describe/polynomial.hpp"
#include "describe/program.hpp"

namespace clebsch {

std::string to_text(const Polynomial& polynomial);       // "clebsch polynomial 0\n..."
std::string to_text(const Program& program);             // "clebsch program 0\n..."
std::string to_text(const Segment& segment);             // "64x1o"; without an irrep "1312x(1)"
std::string to_text(std::span<const Segment> segments);  // joined by '+'; "()" for none
/// Throw Error(parse) with line and column and what was expected. The result is validated.
Polynomial parse_polynomial(std::string_view text);
Program parse_program(std::string_view text);

Hash hash_of(const Polynomial& polynomial);  // of the canonical text
Hash hash_of(const Program& program);

}  // namespace clebsch
