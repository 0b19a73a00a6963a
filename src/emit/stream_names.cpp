#include "emit/stream_names.hpp"

namespace clebsch {

std::string channel_text(const BodyShare& share) {
    return share.blocks == 0 ? "channel" : "(channel + " + std::to_string(32 * share.blocks) + ")";
}

std::string share_suffix(std::size_t share) { return share == 0 ? "" : "s" + std::to_string(share); }

std::string number_name(const char* letter, SegmentName name, int component) {
    return letter + std::to_string(name.operand) + "_" + std::to_string(name.segment) + "_" + std::to_string(component);
}

std::string parked_number(int number) { return "parked[" + literal(std::int64_t{32} * number) + "]"; }

int components_of(const GpuProblem& problem, SegmentName name) {
    return problem.polynomial.operands[static_cast<std::size_t>(name.operand)].segments[static_cast<std::size_t>(name.segment)].components;
}

void write_numbers(SourceText& source, const GpuProblem& problem, const Destination& to, const std::vector<std::string>& numbers) {
    const Operand& operand = problem.polynomial.operands[static_cast<std::size_t>(to.name.operand)];
    const Segment& segment = operand.segments[static_cast<std::size_t>(to.name.segment)];
    const bool mul_ir = operand.layout == Layout::mul_ir && segment.components > 1;
    const std::string put = to.adds ? "add(" : "store_once(", begin = to.base + " + " + literal(operand.offset(to.name.segment));
    const auto components = static_cast<std::int64_t>(numbers.size());
    if (mul_ir && to.guard < 0) {
        // The product comes from another lane's register, this one's own, so that the assembler does not make one of it with the bytes of a
        // number: that of CUDA 13.0 turned (8 * lane) * 3 into (8 * lane) * 8 beside (8 * lane) * 7 and (8 * lane) * 9.
        source.line("{");
        source.line("const int place = opaque(lane * " + literal(components) + ", lane);");
        for (std::int64_t c = 0; c < components; ++c)
            source.line("turn[place + " + literal(c) + "] = " + numbers[static_cast<std::size_t>(c)] + ";");
        source.line("}");
        source.line("__syncwarp();");
        for (std::int64_t c = 0; c < components; ++c)
            source.line(put + begin + " + (" + to.channel + " - lane) * " + literal(components) + " + " + literal(32 * c) +
                        " + lane, turn[" + literal(32 * c) + " + lane]);");
        source.line("__syncwarp();");
        return;
    }
    if (to.guard >= 0) source.line("if (" + to.channel + " < " + literal(to.guard) + ") {");
    for (std::int64_t c = 0; c < components; ++c)
        source.line(put + begin + " + " + to.channel +
                    (mul_ir ? " * " + literal(components) + " + " + literal(c) : " + " + literal(c * segment.multiplicity)) + ", " +
                    numbers[static_cast<std::size_t>(c)] + ");");
    if (to.guard >= 0) source.line("}");
}

}  // namespace clebsch
