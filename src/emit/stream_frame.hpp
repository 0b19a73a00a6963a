#pragma once
// What the pieces of a stream kernel's text share: the problem and its schedule, and how its arguments and stages are called.
#include <algorithm>
#include <string>

#include "emit/text.hpp"
#include "schedule/gpu_stream.hpp"

namespace clebsch {

/// A piece of a stream kernel that writes itself into `source`. All three outlive it.
class StreamFrame {
 public:
    StreamFrame(SourceText& source, const GpuProblem& problem, const StreamSchedule& schedule)
        : source_(source), problem_(problem), schedule_(schedule) {}

 protected:
    using Kind = KernelArgument::Kind;
    SourceText& source_;
    const GpuProblem& problem_;
    const StreamSchedule& schedule_;

    static std::string number(std::int64_t value) { return literal(value); }
    const Polynomial& polynomial() const { return problem_.polynomial; }
    int operands() const { return static_cast<int>(polynomial().operands.size()); }
    const Operand& operand(int o) const { return polynomial().operands[static_cast<std::size_t>(o)]; }
    const StreamOperand& plan(int o) const { return schedule_.operands[static_cast<std::size_t>(o)]; }
    std::string type() const { return type_name(problem_.compute); }
    std::string storage(int o) const { return type_name(schedule_.number_of(problem_, static_cast<std::size_t>(o))); }
    std::string name(Kind kind, int which) const { return "a." + argument_name(problem_, {kind, which}); }
    bool stationary() const { return !schedule_.stationary.empty(); }
    bool retires() const { return schedule_.partial_numbers > 0 || std::ranges::any_of(schedule_.operands, &StreamOperand::handed); }
    std::string control(const std::string& stage) const { return "at<Control>(" + stage + " + " + number(schedule_.control_offset) + ")"; }
    std::string next_stage(const std::string& stage, const std::string& phase) const {
        return "if ((" + stage + " += " + number(schedule_.stage_bytes) + ") == stages_end) { " + stage + " = stages; " + phase +
               " ^= 1; }";
    }
    bool divides_by_16(int o) const {
        const int size = bytes_of(schedule_.number_of(problem_, static_cast<std::size_t>(o)));
        const auto fits = [&](std::int64_t count) { return count * size % 16 == 0; };
        return std::ranges::all_of(plan(o).runs, [&](const StreamRun& run) { return fits(run.begin) && fits(run.count); });
    }
    std::string bytes(int o, std::int64_t count) const { return number(count) + " * static_cast<int>(sizeof(" + storage(o) + "))"; }
    static std::string at(const std::string& pointer, const StreamRun& run) {
        return pointer + (run.begin == 0 ? "" : " + " + number(run.begin));
    }

    /// The rows of the chunk at `first`, and the targets of its sums that other chunks share (-1: none).
    void write_chunk_borders(const std::string& reach) {
        source_.line("bool begin_cut, end_cut;");
        source_.line("const i64 begin = chunk_begin(first, a.rows, " + reach + ", lane, target_at, &begin_cut);");
        source_.line("const i64 end = chunk_begin(first + a.chunk, a.rows, " + reach + ", lane, target_at, &end_cut);");
        source_.line("const i64 last_target = end_cut ? target_before(end, begin, lane, target_at) : -1;");
        source_.line("const i64 first_target = begin_cut ? target_from(begin, end, lane, target_at) : -1;");
    }
};

}  // namespace clebsch
