// The product rule. In a path every factor, output included, plays the same part: a sum over letters and components of coefficients times
// all of them. So a derivative only exchanges roles: one input factor becomes the output (reverse) or a tangent (forward), where it stands,
// with its segment, channels, axis and rows. Coefficients are never touched; what coincides afterwards is merged by `simplified_paths`.
#include "describe/derivative.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "describe/derivative_origins.hpp"
#include "describe/rewrites.hpp"
#include "describe/simplify.hpp"

namespace clebsch {
namespace {

class Derivation {
 public:
    explicit Derivation(const Polynomial& polynomial) : source_(polynomial) {
        result_.polynomial.rows = polynomial.rows;
        result_.polynomial.indices = polynomial.indices;
        for (std::size_t i = 0; i < polynomial.operands.size(); ++i) {
            if (polynomial.operands[i].role != Role::input) continue;
            taken_.insert(polynomial.operands[i].name);
            add(static_cast<int>(i), Origin::Kind::same, Role::input, "");
        }
    }

    /// Adds operands like `operands`; the result has one position per operand of the source, -1 for those not in `operands`.
    std::vector<int> add_all(std::span<const int> operands, Origin::Kind kind, Role role, const char* suffix) {
        std::vector<int> position(source_.operands.size(), -1);
        for (const int operand : operands) position[static_cast<std::size_t>(operand)] = add(operand, kind, role, suffix);
        return position;
    }

    /// Position of a source input in the result.
    int input(int operand) const { return inputs_[static_cast<std::size_t>(operand)]; }
    void add(Path path) { result_.polynomial.paths.push_back(std::move(path)); }

    DerivedPolynomial finish() {
        result_.polynomial.paths = simplified_paths(result_.polynomial);
        OperandSelection selection = drop_unused(result_.polynomial);
        DerivedPolynomial derived{std::move(selection.polynomial), {}};
        for (const int kept : selection.kept) derived.origins.push_back(result_.origins[static_cast<std::size_t>(kept)]);
        return derived;
    }

 private:
    int add(int operand, Origin::Kind kind, Role role, const char* suffix) {
        const int position = static_cast<int>(result_.origins.size());
        Operand added = source_.operands[static_cast<std::size_t>(operand)];
        if (kind != Origin::Kind::same) added.name = unique_name(added.name + suffix, taken_);
        if (kind == Origin::Kind::same) {
            inputs_.resize(source_.operands.size(), -1);
            inputs_[static_cast<std::size_t>(operand)] = position;
        }
        added.role = role;
        result_.polynomial.operands.push_back(std::move(added));
        result_.origins.push_back({kind, operand});
        return position;
    }

    const Polynomial& source_;
    DerivedPolynomial result_;
    std::vector<int> inputs_;
    std::set<std::string> taken_;
};

std::vector<int> find_inputs(const Polynomial& polynomial, std::span<const std::string> names) {
    std::vector<int> found;
    for (const std::string& name : names) {
        const int operand = polynomial.find_operand(name);
        if (polynomial.operands[static_cast<std::size_t>(operand)].role != Role::input)
            fail("derivative: operand '" + name + "' is an output, expected an input");
        if (std::ranges::find(found, operand) != found.end()) fail("derivative: input '" + name + "' is requested twice");
        found.push_back(operand);
    }
    return found;
}

std::vector<int> all_outputs(const Polynomial& polynomial) {
    std::vector<int> outputs;
    for (std::size_t i = 0; i < polynomial.operands.size(); ++i)
        if (polynomial.operands[i].role == Role::output) outputs.push_back(static_cast<int>(i));
    return outputs;
}

}  // namespace

std::string unique_name(const std::string& name, std::set<std::string>& taken) {
    std::string unique = name;
    for (int number = 2; !taken.insert(unique).second; ++number) unique = name + "_" + std::to_string(number);
    return unique;
}

DerivedPolynomial derive_reverse(const Polynomial& polynomial, std::span<const int> inputs, std::span<const int> outputs) {
    Derivation derivation(polynomial);
    const std::vector<int> cotangents = derivation.add_all(outputs, Origin::Kind::cotangent, Role::input, "_cotangent");
    const std::vector<int> gradients = derivation.add_all(inputs, Origin::Kind::gradient, Role::output, "_gradient");
    for (const Path& path : polynomial.paths) {
        const int cotangent = cotangents[static_cast<std::size_t>(path.output().operand)];
        if (cotangent < 0) continue;
        for (std::size_t f = 0; f + 1 < path.factors.size(); ++f) {
            const int gradient = gradients[static_cast<std::size_t>(path.factors[f].operand)];
            if (gradient < 0) continue;
            Path derived = path;
            for (std::size_t i = 0; i + 1 < path.factors.size(); ++i)
                derived.factors[i].operand = derivation.input(path.factors[i].operand);
            derived.factors.back().operand = cotangent;
            derived.factors[f].operand = gradient;
            std::swap(derived.factors[f], derived.factors.back());
            derivation.add(std::move(derived));
        }
    }
    return derivation.finish();
}

DerivedPolynomial derive_forward(const Polynomial& polynomial, std::span<const int> inputs) {
    Derivation derivation(polynomial);
    const std::vector<int> tangents = derivation.add_all(inputs, Origin::Kind::tangent, Role::input, "_tangent");
    const std::vector<int> outputs = derivation.add_all(all_outputs(polynomial), Origin::Kind::tangent, Role::output, "_tangent");
    for (const Path& path : polynomial.paths) {
        for (std::size_t f = 0; f + 1 < path.factors.size(); ++f) {
            const int tangent = tangents[static_cast<std::size_t>(path.factors[f].operand)];
            if (tangent < 0) continue;
            Path derived = path;
            for (std::size_t i = 0; i + 1 < path.factors.size(); ++i)
                derived.factors[i].operand = derivation.input(path.factors[i].operand);
            derived.factors.back().operand = outputs[static_cast<std::size_t>(path.output().operand)];
            derived.factors[f].operand = tangent;
            derivation.add(std::move(derived));
        }
    }
    return derivation.finish();
}

Polynomial vjp(const Polynomial& polynomial, std::span<const std::string> inputs) {
    return derive_reverse(polynomial, find_inputs(polynomial, inputs), all_outputs(polynomial)).polynomial;
}

Polynomial jvp(const Polynomial& polynomial, std::span<const std::string> inputs) {
    return derive_forward(polynomial, find_inputs(polynomial, inputs)).polynomial;
}

}  // namespace clebsch
