#include "emit/stream_producer.hpp"

#include <algorithm>

#include "emit/stream_frame.hpp"

namespace clebsch {
namespace {

class ProducerEmitter : StreamFrame {
 public:
    using StreamFrame::StreamFrame;

    void emit() {
        write_retire();
        write_producer();
    }

 private:
    /// Whether the copy engine takes the rows of an operand.
    std::string whole(int o) const { return divides_by_16(o) ? "(has_bulk && a.aligned >> " + number(o) + " & 1)" : "false"; }
    /// Where a run of an operand lies in a stage.
    std::string place(const std::string& stage, int o, const StreamRun& run) const {
        return stage + " + " + number(plan(o).stage_offset) + (run.place == 0 ? "" : " + " + bytes(o, run.place));
    }
    /// Chains of indices other than the stationary one, each once, with an operand that uses it.
    std::vector<int> other_chains() const {
        std::vector<int> list;
        for (int o = 0; o < operands(); ++o) {
            const Addressing& rows = operand(o).rows;
            if (rows.kind != Addressing::Kind::indexed || rows.via == schedule_.stationary || plan(o).way == StreamWay::unused) continue;
            if (std::ranges::none_of(list, [&](int other) { return operand(other).rows.via == rows.via; })) list.push_back(o);
        }
        return list;
    }
    std::string stored(int o) const { return type_name(problem_.storage[static_cast<std::size_t>(o)]); }
    int chain_leader(int o) const {
        for (const int other : other_chains())
            if (operand(other).rows.via == operand(o).rows.via) return other;
        return o;
    }

    /// Where rows of a carried operand lie behind the stages.
    std::int64_t carried_place(int o) const {
        std::int64_t place = 0;
        for (int other = 0; other < o; ++other)
            if (plan(other).carried) place += 32 * plan(other).numbers() * bytes_of(problem_.compute);
        return place;
    }
    /// All lanes read the next 32 rows, neighbours neighbouring numbers, whatever the rows' bytes and where they begin.
    void write_carried(int o) {
        const bool each = operand(o).rows.kind == Addressing::Kind::each;
        const std::string count = number(plan(o).numbers()), begin = number(plan(o).runs.front().begin);
        const std::string data = name(Kind::data, o), stride = name(Kind::stride, o);
        source_.line("{");
        source_.line(type() + "* to = at<" + type() + ">(carried + " + number(carried_place(o)) + ") + lane;");
        if (each && plan(o).numbers() == operand(o).size()) {
            source_.line("if (" + stride + " == " + count + ") {");
            source_.line("const " + stored(o) + "* from = " + data + " + base * " + count + " + lane;");
            source_.line("const int numbers_left = static_cast<int>(end - base < 32 ? end - base : 32) * " + count + " - lane;");
            // So many on their way at once; more would take registers that producers lack.
            constexpr std::int64_t most = 5;
            for (std::int64_t first = 0; first < plan(o).numbers(); first += most) {
                const std::string some = number(std::min(most, plan(o).numbers() - first)), at = " + " + number(first * 32);
                source_.line("{");
                source_.line(type() + " numbers[" + some + "];");
                source_.line("for (int i = 0; i < " + some + "; ++i) numbers[i] = i * 32" + at + " < numbers_left ? number<" + type() +
                             ">(from[i * 32" + at + "]) : 0;");
                source_.line("for (int i = 0; i < " + some + "; ++i) to[i * 32" + at + "] = numbers[i];");
                source_.line("}");
            }
            source_.line("} else");
        }
        source_.line("for (int i = lane; i < 32 * " + count + "; i += 32) {");
        source_.line("const int of = i / " + count + ";");
        if (each) source_.line("const i64 from = base + of < end ? base + of : -1;");
        else source_.line("const i64 from = broadcast(inside ? at_" + number(chain_leader(o)) + " : -1, of);");
        source_.line("to[i - lane] = from >= 0 ? number<" + type() + ">(" + data + "[from * " + stride + " + " + begin + " + i % " + count +
                     "]) : 0;");
        source_.line("}");
        source_.line("}");
    }

    void write_producer() {
        std::vector<int> staged, carried;
        for (int o = 0; o < operands(); ++o)
            if (plan(o).way == StreamWay::staged) (plan(o).carried ? carried : staged).push_back(o);
        std::vector<std::string> all_whole;
        all_whole.reserve(staged.size());
        for (const int o : staged) all_whole.push_back(whole(o));
        source_.blank();
        source_.line("// Whether one lane and the copy engine fill a stage; else the whole warp does.");
        source_.line("static __device__ __forceinline__ bool fills_alone(const Arguments& a) {");
        source_.line("return " + (all_whole.empty() ? std::string("true") : joined(all_whole, " && ")) + ";");
        source_.line("}");
        source_.line(
            "static __device__ __forceinline__ void produce(const Arguments& a, SharedAddress stages, int team, int teams, int lane) {");
        source_.line("const SharedAddress stages_end = stages + " + number(std::int64_t{schedule_.stages} * schedule_.stage_bytes) + ";");
        source_.line("const bool alone = fills_alone(a);");
        if (!carried.empty())
            source_.line("const SharedAddress carried = stages + " + number(schedule_.carried_offset()) + ";  // of 32 rows");
        source_.line("SharedAddress stage = stages;  // that comes next");
        if (retires()) {
            source_.line("SharedAddress done = stages;  // that retires next");
            source_.line("int phase_done = 0, held = 0;  // rows filled and not retired");
            source_.line("const auto retire_next = [&] {");
            source_.line("barrier_wait(&" + control("done") + "->empty, phase_done);");
            source_.line("retire(a, done, lane);");
            source_.line(next_stage("done", "phase_done"));
            source_.line("--held;");
            source_.line("};");
        } else {
            source_.line("int phase = 1;");
        }
        if (stationary()) {
            source_.line("i64 current = -1;");
            if (schedule_.parts) source_.line("i64 part = -1;  // that the current receiver's sums are, if others have some, too");
            else source_.line("bool adds = false;  // whether the current receiver's sums are one part of several");
            source_.line("const auto target_at = [&](i64 row) { return target_of(a, row); };");
        }
        source_.line("for (i64 first = team * a.chunk; first < a.rows; first += " +
                     (schedule_.frugal ? "blocks_again() * " + number(schedule_.teams) : std::string("teams")) + " * a.chunk) {");
        if (stationary()) {
            write_chunk_borders(schedule_.cuts ? "a.reach" : "a.rows");
            source_.line("if (begin >= end) continue;");
            source_.line("i64 previous = target_before(begin, 0, lane, target_at);");
            if (schedule_.parts) {
                source_.line("const i64 first_part = first / a.chunk * 2;");
                source_.line("const auto part_of = [&](i64 target) -> i64 {");
                source_.line("return target == first_target ? first_part : target == last_target ? first_part + 1 : -1;");
                source_.line("};");
            }
        } else {
            source_.line("const i64 begin = first, end = first + a.chunk < a.rows ? first + a.chunk : a.rows;");
        }
        source_.line("for (i64 base = begin; base < end; base += 32) {");
        source_.line("// Every lane prepares a row.");
        source_.line("const bool inside = base + lane < end;");
        source_.line("const i64 row = inside ? base + lane : end - 1;");
        std::vector<std::string> valid = {"inside"};
        if (stationary()) {
            source_.line("const i64 target = target_at(row);");
            valid.push_back("target >= 0");
        }
        for (const int o : other_chains()) {
            source_.line("const i64 at_" + number(o) + " = " + look_up(problem_, operand(o).rows.via, "row") + ";");
            valid.push_back("at_" + number(o) + " >= 0");
        }
        // Where a row is read from: what all lanes keep for so many operands, and what the lane of the row finds out when its turn comes.
        constexpr std::size_t kept_addresses = 4;
        const auto write_addresses = [&](std::size_t first, std::size_t end, const std::string& again) {
            for (std::size_t i = first; i < std::min(end, staged.size()); ++i) {
                const int o = staged[i];
                const std::string at = operand(o).rows.kind == Addressing::Kind::each ? "row" : "at_" + number(chain_leader(o));
                source_.line("const " + storage(o) + "* from_" + number(o) + " = " + name(Kind::data, o) + " + " +
                             (again.empty() ? at : "(" + at + again + ")") + " * " + name(Kind::stride, o) + ";");
            }
        };
        const auto write_further_addresses = [&] {
            if (staged.size() <= kept_addresses) return;
            source_.line("const int nothing = again(0);  // what the compiler does not know it does not compute beforehand");
            write_addresses(kept_addresses, staged.size(), " + nothing");
        };
        write_addresses(0, kept_addresses, "");
        for (const int o : carried) write_carried(o);
        if (!carried.empty()) source_.line("__syncwarp();");
        source_.line("unsigned left = __ballot_sync(0xffffffffu, " + joined(valid, " && ") + ");");
        if (stationary()) write_receivers();
        if (valid.size() > 1) write_masked_rows();
        source_.line("while (left) {");
        source_.line("const int i = __ffs(left) - 1;");
        source_.line("left &= left - 1;");
        if (retires()) source_.line("if (held == " + number(schedule_.stages - schedule_.lag) + ") retire_next();");
        source_.line("Control* control = " + control("stage") + ";");
        const bool all_wait = problem_.lanes_arrive || !carried.empty();
        if (!retires() && all_wait) source_.line("barrier_wait(&control->empty, phase);");
        for (const int o : carried)
            source_.line("if (lane < " + number(plan(o).numbers()) + ") at<" + type() + ">(stage + " + number(plan(o).stage_offset) +
                         ")[lane] = at<const " + type() + ">(carried + " + number(carried_place(o)) + ")[i * " + number(plan(o).numbers()) +
                         " + lane];");
        source_.line("if (lane == i) {");
        if (!retires() && !all_wait) source_.line("barrier_wait(&control->empty, phase);");
        write_further_addresses();
        source_.line("control->info.row = row;");
        source_.line("control->info.flags = " + std::string(stationary() ? "flags" : "0") + ";");
        if (stationary()) source_.line("control->info.target = target;");
        if (schedule_.frugal) source_.line("control->info.before = earlier;");
        if (schedule_.parts) source_.line("control->info.part = earlier_part;");
        for (int o = 0; o < operands(); ++o)
            if (plan(o).way == StreamWay::scattered)
                source_.line("control->info.at_" + number(o) + " = at_" + number(chain_leader(o)) + ";");
        // `known`: that the copy engine takes all rows, which is so for a whole launch or never.
        const auto write_copies = [&](bool known) {
            std::vector<std::string> expected;
            expected.reserve(staged.size());
            std::int64_t all = 0;
            for (const int o : staged) {
                expected.push_back("(" + whole(o) + " ? " + bytes(o, plan(o).numbers()) + " : 0)");
                all += plan(o).numbers() * bytes_of(schedule_.number_of(problem_, static_cast<std::size_t>(o)));
            }
            const std::string sum = expected.empty() ? std::string("0") : joined(expected, " + ");
            source_.line("barrier_expect(&control->full, " + (known ? number(all) : sum) + ");");
            for (const int o : staged)
                if (divides_by_16(o)) {
                    if (!known) source_.line("if (" + whole(o) + ") {");
                    for (const StreamRun& run : plan(o).runs)
                        source_.line("copy_bulk<" + std::string(plan(o).kept ? "true" : "false") + ">(" + place("stage", o, run) + ", " +
                                     at("from_" + number(o), run) + ", " + bytes(o, run.count) + ", &control->full);");
                    if (!known) source_.line("}");
                }
        };
        if (!carried.empty()) {
            source_.line("if (alone) {");
            write_copies(true);
            source_.line("} else {");
            write_copies(false);
            source_.line("}");
        } else {
            write_copies(false);
        }
        if (!problem_.lanes_arrive && carried.empty()) source_.line("if (alone) barrier_arrive(&control->full);");
        source_.line("}");
        source_.line("__syncwarp();  // a lane ahead by all stages would take a stage for free");
        if (problem_.lanes_arrive) source_.line("if (alone) barrier_arrive(&control->full);");
        else if (!carried.empty()) source_.line("if (alone && lane == i) barrier_arrive(&control->full);");
        source_.line("if (!alone) {");
        write_further_addresses();
        for (const int o : staged) {
            source_.line("if (!" + whole(o) + ") {");
            for (const StreamRun& run : plan(o).runs)
                source_.line("copy_row(at<" + storage(o) + ">(" + place("stage", o, run) + "), " +
                             at("broadcast(from_" + number(o) + ", i)", run) + ", " + number(run.count) + ", " +
                             (divides_by_16(o) ? "a.aligned >> " + number(o) + " & 1" : "false") + ", lane);");
            source_.line("}");
        }
        source_.line("__syncwarp();");
        source_.line("barrier_arrive_after_copies(&control->full);");
        source_.line("if (lane == i) barrier_arrive(&control->full);");
        source_.line("}");
        if (retires()) {
            source_.line("++held;");
            source_.line("if ((stage += " + number(schedule_.stage_bytes) + ") == stages_end) stage = stages;");
        } else {
            source_.line(next_stage("stage", "phase"));
        }
        source_.line("}");
        source_.line("}");
        if (stationary()) {
            source_.line("if (end == a.rows) {");
            for (int o = 0; o < operands(); ++o)
                if (plan(o).way == StreamWay::accumulated) {
                    source_.line("zero_sums(a, previous + 1, " + name(Kind::output_rows, o) + ", lane);");
                    break;
                }
            source_.line("}");
        }
        source_.line("}");
        if (retires()) source_.line("if (held == " + number(schedule_.stages - schedule_.lag) + ") retire_next();");
        source_.line("Control* control = " + control("stage") + ";");
        if (!retires()) source_.line("barrier_wait(&control->empty, phase);");
        const char* const adds = schedule_.parts ? " | (part >= 0 ? sums_add : 0)" : " | (adds ? sums_add : 0)";
        source_.line("if (lane == 0) control->info.flags = rows_end" + std::string(stationary() ? adds : "") + ";");
        if (schedule_.frugal) source_.line("if (lane == 0) control->info.before = current;");
        if (schedule_.parts) source_.line("if (lane == 0) control->info.part = part;");
        source_.line("__syncwarp();");
        source_.line("if (!alone) barrier_arrive_after_copies(&control->full);");
        source_.line(std::string(problem_.lanes_arrive ? "if (alone || lane == 0)" : "if (lane == 0)") +
                     " barrier_arrive(&control->full);");
        if (retires()) {
            source_.line("while (held > 0) retire_next();");
            source_.line("bulk_written();");
        }
        source_.line("}");
    }

    /// What changes from receiver to receiver, for 32 rows at once: zeros where receivers have no rows, and the rows' flags.
    void write_receivers() {
        source_.line("const unsigned below = (1u << lane) - 1;");
        source_.line("const unsigned seen = __ballot_sync(0xffffffffu, inside && target >= 0);");
        source_.line("i64 before = broadcast(target, last_of(seen & below));");
        source_.line("if (!(seen & below)) before = previous;");
        source_.line("if (inside && target >= 0 && target < before) *a.error = 1;");
        source_.line("unsigned gaps = __ballot_sync(0xffffffffu, inside && target > before + 1);");
        source_.line("while (gaps) {");
        source_.line("const int i = __ffs(gaps) - 1;");
        source_.line("gaps &= gaps - 1;");
        source_.line("const i64 gap_begin = broadcast(before, i) + 1, gap_end = broadcast(target, i);");
        source_.line("zero_sums(a, gap_begin, gap_end, lane);");
        source_.line("}");
        source_.line("if (seen) previous = broadcast(target, last_of(seen));");
        source_.line("i64 earlier = broadcast(target, last_of(left & below));  // of the last row that is not masked");
        source_.line("if (!(left & below)) earlier = current;");
        if (schedule_.parts) {
            source_.line("const i64 earlier_part = left & below ? part_of(earlier) : part;");
            source_.line("const bool earlier_adds = earlier_part >= 0;");
        } else {
            source_.line("const bool earlier_adds = left & below ? earlier == first_target || earlier == last_target : adds;");
        }
        source_.line("const int flags = target != earlier ? row_starts | (earlier_adds ? sums_add : 0) : 0;");
        source_.line("if (left) {");
        source_.line("const i64 newest = broadcast(target, last_of(left));");
        if (schedule_.parts) source_.line("if (newest != current) part = part_of(newest);");
        else source_.line("if (newest != current) adds = newest == first_target || newest == last_target;");
        source_.line("current = newest;");
        source_.line("}");
    }

    /// Rows that an index masks. A receiver all of whose rows are masked otherwise gets its zeros here: its first row of the chunk clears
    /// it, and a later unmasked row stores the sum over it.
    void write_masked_rows() {
        source_.line("unsigned masked = __ballot_sync(0xffffffffu, inside) & ~left;");
        source_.line("while (masked) {");
        source_.line("const int i = __ffs(masked) - 1;");
        source_.line("masked &= masked - 1;");
        source_.line("const i64 masked_row = base + i;");
        if (stationary()) {
            source_.line("const i64 orphan = broadcast(target, i), kept = broadcast(earlier, i);");
            source_.line("if (orphan >= 0 && orphan != kept && orphan != first_target && orphan != last_target) {");
            source_.line("zero_sums(a, orphan, orphan + 1, lane);");
            source_.line("}");
        }
        for (int o = 0; o < operands(); ++o)
            // Masked for every kernel: all may be cleared. Sums begin as zero.
            if ((plan(o).way == StreamWay::stored || plan(o).way == StreamWay::reduced) && !plan(o).summed)
                source_.line("for (int j = lane; j < " + number(operand(o).size()) + "; j += 32) store(" + name(Kind::data, o) +
                             " + masked_row * " + name(Kind::stride, o) + " + j, " + type() + "(0));");
        source_.line("}");
    }

    void write_retire() {
        if (!retires()) return;
        source_.blank();
        source_.line(
            "// The outputs of the row in a stage, by the whole producer warp: what the warps found for channel-free ones is added up,");
        source_.line("// rows that they left in the stage go to memory as a whole.");
        source_.line("static __device__ __forceinline__ void retire(const Arguments& a, SharedAddress stage, int lane) {");
        source_.line("const RowInfo& info = " + control("stage") + "->info;");
        for (int o = 0; o < operands(); ++o) {
            if (!plan(o).handed) continue;
            const bool adds = plan(o).way == StreamWay::scattered;
            source_.line("{");
            source_.line(storage(o) + "* to = " + name(adds ? Kind::sums : Kind::data, o) + " + info." +
                         (adds ? "at_" + number(o) : "row") + " * " + name(adds ? Kind::sums_stride : Kind::stride, o) + ";");
            source_.line("if (" + whole(o) + ") {");
            source_.line("if (lane == 0) {");
            for (const StreamRun& run : plan(o).runs)
                source_.line(std::string(adds ? "add" : "store") + "_bulk(" + at("to", run) + ", " + place("stage", o, run) + ", " +
                             bytes(o, run.count) + ");");
            source_.line("}");
            source_.line("} else {");
            for (const StreamRun& run : plan(o).runs) {
                source_.line("{");
                source_.line("const " + storage(o) + "* from = at<const " + storage(o) + ">(" + place("stage", o, run) + ");");
                const std::string target = at("to", run);
                source_.line("for (int i = lane; i < " + number(run.count) + "; i += 32) " +
                             (adds ? "add(" + target + " + i, from[i]);" : "(" + target + ")[i] = from[i];"));
                source_.line("}");
            }
            source_.line("visible_to_bulk();");
            source_.line("}");
            source_.line("}");
        }
        if (schedule_.lag > 0) {
            source_.line("bulk_group();");
            source_.line("bulk_read<" + number(schedule_.lag) + ">();  // the stage that is filled next has left");
        }
        if (schedule_.partial_numbers > 0)
            source_.line("const " + type() + "* partial = at<const " + type() + ">(stage + " + number(schedule_.partial_offset) + ");");
        for (int o = 0; o < operands(); ++o) {
            if (plan(o).way != StreamWay::reduced) continue;
            source_.line("for (int i = lane; i < " + number(operand(o).size()) + "; i += 32) {");
            source_.line(type() + " sum = 0;");
            source_.line("for (int warp = 0; warp < " + number(schedule_.consumer_warps()) + "; ++warp) sum += partial[warp * " +
                         number(schedule_.partial_numbers) + " + " + number(plan(o).stage_offset) + " + i];");
            const bool sums = plan(o).summed;
            const std::string to =
                name(sums ? Kind::sums : Kind::data, o) + " + info.row * " + name(sums ? Kind::sums_stride : Kind::stride, o) + " + i";
            const bool begun = !problem_.begun.empty() && problem_.begun[static_cast<std::size_t>(o)];
            // Nobody else adds to the row meanwhile; to load the number would make the producer wait.
            source_.line((begun ? "add(" : "store(") + to + ", sum);");
            source_.line("}");
        }
        source_.line("__syncwarp();");
        source_.line("}");
    }
};

}  // namespace

void write_stream_producer(SourceText& source, const GpuProblem& problem, const StreamSchedule& schedule) {
    ProducerEmitter(source, problem, schedule).emit();
}

}  // namespace clebsch
