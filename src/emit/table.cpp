#include "emit/table.hpp"

#include <string>

#include "emit/text.hpp"
#include "schedule/gpu_table.hpp"

namespace clebsch {
namespace {

using Kind = KernelArgument::Kind;

std::string suffix(const GpuProblem& problem) { return problem.compute == GpuNumber::float64 ? "double" : "float"; }

}  // namespace

KernelText table_kernel(const GpuProblem& problem) {
    KernelText kernel{.name = "clebsch_table_" + suffix(problem),
                      .text = std::string(table_preamble()),
                      .arguments = {{Kind::table}, {Kind::rows}, {Kind::chunk}, {Kind::error}}};
    const auto indices = static_cast<int>(problem.polynomial.indices.size()), operands = static_cast<int>(problem.storage.size());
    for (int i = 0; i < TableSchedule::most_indices; ++i)
        for (const Kind kind : {Kind::index, Kind::index_rows, Kind::index_wide})
            kernel.arguments.push_back(i < indices ? KernelArgument{kind, i} : KernelArgument{Kind::constant, 0});
    for (int o = 0; o < TableSchedule::most_operands; ++o) {
        const bool output = o < operands && problem.polynomial.operands[static_cast<std::size_t>(o)].role == Role::output;
        for (const Kind kind : {output ? Kind::sums : Kind::data, output ? Kind::sums_stride : Kind::stride})
            kernel.arguments.push_back(o < operands ? KernelArgument{kind, o} : KernelArgument{Kind::constant, 0});
    }
    return kernel;
}

KernelText table_rounding(const GpuProblem& problem, int operand) {
    const auto o = static_cast<std::size_t>(operand);
    return {.name = "clebsch_table_round_" + suffix(problem),
            .text = std::string(table_preamble()),
            .arguments = {{Kind::sums, operand},
                          {Kind::sums_stride, operand},
                          {Kind::data, operand},
                          {Kind::stride, operand},
                          {Kind::output_rows, operand},
                          {Kind::constant, static_cast<int>(problem.polynomial.operands[o].size())},
                          {Kind::constant, static_cast<int>(problem.storage[o])}}};
}

}  // namespace clebsch
