#include "emit/order.hpp"

#include <algorithm>

#include "emit/text.hpp"

namespace clebsch {
namespace {

using Kind = KernelArgument::Kind;

std::string number(int value) { return std::to_string(value); }

}  // namespace

KernelText emit_order_targets(int indices) {
    KernelText kernel{.name = "clebsch_order_targets", .text = {}, .arguments = {}};
    SourceText source;
    source.line("// Where every row leads; masked ones behind all others.");
    source.line("struct Arguments {");
    for (int i = 0; i < indices; ++i) {
        const std::string n = std::to_string(i);
        source.line("const void* index_" + n + ";");
        for (const char* what : {"_rows", "_wide"}) source.line("i64 index_" + n + what + ";");
    }
    source.line("i64 rows;");
    source.line("unsigned* error;");
    source.line("i64* targets;");
    source.line("i64* places;");
    source.line("};");
    begin_kernel(source, kernel.name, number(order_threads));
    source.line(
        "for (i64 row = static_cast<i64>(blockIdx.x) * 256 + threadIdx.x; row < a.rows; row += static_cast<i64>(gridDim.x) * 256) {");
    std::string found = "row";
    for (int i = 0; i < indices; ++i) found = look_up("a.index_" + std::to_string(i), found);
    source.line("const i64 target = " + found + ";");
    source.line("a.targets[row] = target < 0 ? a.index_" + std::to_string(indices - 1) + "_rows : target;");
    source.line("a.places[row] = row;");
    source.line("}");
    source.line("}");
    kernel.text = source.text();
    return kernel;
}

KernelText emit_order_step(const std::string& step) {
    KernelText kernel{.name = "clebsch_order_" + step, .text = {}, .arguments = {}};
    SourceText source;
    source.line("typedef OrderArguments Arguments;");
    begin_kernel(source, kernel.name, number(order_threads));
    source.line("order_" + step + "(a);");
    source.line("}");
    kernel.text = source.text();
    return kernel;
}

KernelText emit_ascending() { return {.name = "clebsch_ascending", .text = std::string(ascending_preamble()), .arguments = {}}; }

KernelText emit_part_targets(const GpuProblem& problem) {
    const Polynomial& polynomial = problem.polynomial;
    KernelText kernel{.name = "clebsch_part_targets", .text = {}, .arguments = {}};
    const auto summed = std::ranges::find_if(polynomial.operands, [&](const Operand& operand) {
        return operand.role == Role::output && operand.rows.kind != Addressing::Kind::each &&
               !problem.is_message(static_cast<std::size_t>(&operand - polynomial.operands.data()));
    });
    for (int i = 0; i < static_cast<int>(polynomial.indices.size()); ++i)
        if (std::ranges::find(summed->rows.via, polynomial.indices[static_cast<std::size_t>(i)].name) != summed->rows.via.end())
            for (const Kind kind : {Kind::index, Kind::index_rows, Kind::index_wide}) kernel.arguments.push_back({kind, i});
    const std::string target = summed->rows.kind == Addressing::Kind::shared ? "i64(0)" : look_up(problem, summed->rows.via, "row");
    for (const Kind kind : {Kind::part_targets, Kind::rows, Kind::chunk, Kind::error}) kernel.arguments.push_back({kind, -1});
    SourceText source;
    source.line("// The first and the last row that the sums of each chunk go to.");
    write_arguments(source, problem, kernel.arguments);
    begin_kernel(source, kernel.name, "128");
    source.line("const int lane = threadIdx.x % 32;");
    source.line("const i64 chunk = static_cast<i64>(blockIdx.x) * 4 + threadIdx.x / 32, begin = chunk * a.chunk;");
    source.line("if (begin >= a.rows) return;");
    source.line("const i64 end = begin + a.chunk < a.rows ? begin + a.chunk : a.rows;");
    source.line("const auto target = [&](i64 row) { return " + target + "; };");
    source.line("const i64 first = target_from(begin, end, lane, target), last = target_before(end, begin, lane, target);");
    source.line("if (lane == 0) {");
    source.line("a.part_targets[2 * chunk] = first;");
    source.line("a.part_targets[2 * chunk + 1] = last != first ? last : -1;");
    source.line("}");
    source.line("}");
    kernel.text = source.text();
    return kernel;
}

KernelText emit_join(const GpuProblem& problem, int operand) {
    KernelText kernel{
        .name = "clebsch_join",
        .text = {},
        .arguments = {
            {Kind::data, operand}, {Kind::stride, operand}, {Kind::parts, operand}, {Kind::part_targets, -1}, {Kind::part_count, -1}}};
    const auto name = [&](Kind kind) { return "a." + argument_name(problem, {kind, operand}); };
    const std::string size = literal(problem.polynomial.operands[static_cast<std::size_t>(operand)].size());
    const std::string type = type_name(problem.compute);
    SourceText source;
    source.line("// Parts of sums are added in their order, by the block of the first one.");
    write_arguments(source, problem, kernel.arguments);
    begin_kernel(source, kernel.name, "256");
    source.line("for (i64 first = blockIdx.x; first < a.part_count; first += gridDim.x) {");
    source.line("const i64 target = a.part_targets[first];");
    source.line("if (target < 0) continue;");
    source.line("i64 before = first - 1;");
    source.line("while (before >= 0 && a.part_targets[before] < 0) --before;");
    source.line("if (before >= 0 && a.part_targets[before] == target) continue;");
    source.line("i64 end = first + 1;");
    source.line("while (end < a.part_count && (a.part_targets[end] < 0 || a.part_targets[end] == target)) ++end;");
    source.line("for (i64 i = static_cast<i64>(blockIdx.y) * 256 + threadIdx.x; i < " + size +
                "; i += static_cast<i64>(gridDim.y) * 256) {");
    source.line(type + " sum = 0;");
    source.line("#pragma unroll 8");
    source.line("for (i64 part = first; part < end; ++part)");
    source.line("    if (a.part_targets[part] >= 0) sum += " + name(Kind::parts) + "[part * " + size + " + i];");
    source.line("store(" + name(Kind::data) + " + target * " + name(Kind::stride) + " + i, sum);");
    source.line("}");
    source.line("}");
    source.line("}");
    kernel.text = source.text();
    return kernel;
}

}  // namespace clebsch
