#include "emit/halves.hpp"

#include "emit/text.hpp"

namespace clebsch {
namespace {

KernelText emit(const std::string& name, const std::string& function, const std::string& bounds) {
    SourceText source;
    source.line("typedef HalvesArguments Arguments;");
    begin_kernel(source, name, bounds);
    source.line(function + "(a);");
    source.line("}");
    return {.name = name, .text = source.text(), .arguments = {}};
}

std::string of(GpuNumber compute, int columns) { return "<" + std::string(type_name(compute)) + ", " + std::to_string(columns) + ">"; }

}  // namespace

std::string halves_preambles() { return std::string(matrix_preamble()) + std::string(halves_preamble()); }

KernelText emit_halves_weights(GpuNumber compute, int columns) {
    return emit("clebsch_weight_halves", "divide_weights" + of(compute, columns), std::to_string(HalvesSchedule::weights_threads));
}

KernelText emit_halves(GpuNumber compute, int columns) {
    return emit("clebsch_matrix_halves", "multiply_by_halves" + of(compute, columns),
                std::to_string(HalvesSchedule::threads) + ", " + std::to_string(HalvesSchedule::blocks));
}

}  // namespace clebsch
