#include "emit/stream.hpp"

#include <algorithm>
#include <map>

#include "emit/stream_body.hpp"
#include "emit/text.hpp"

namespace clebsch {
namespace {

using Kind = KernelArgument::Kind;

std::string number(std::int64_t value) { return literal(value); }

class StreamEmitter {
 public:
    StreamEmitter(const GpuProblem& problem, const StreamSchedule& schedule) : problem_(problem), schedule_(schedule) {}

    KernelText emit() {
        KernelText kernel{.name = "clebsch_stream", .text = {}, .arguments = arguments()};
        source_.line(
            "// Stream kernel. Teams walk chunks of rows t, t + teams, ..., so that the rows in flight stay in the second-level cache.");
        source_.line("// A team's producer copies each row's data into a stage; its " + number(schedule_.consumer_warps()) +
                     " consumer warps hold the receiver's numbers in registers, one channel per lane.");
        write_arguments(source_, problem_, kernel.arguments);
        write_control();
        write_targets();
        write_retire();
        write_producer();
        std::vector<StreamBody> bodies;  // each once
        std::vector<std::size_t> body_of_warp;
        for (const std::vector<StreamShare>& shares : schedule_.warps) {
            const StreamBody body = stream_body(problem_, schedule_, shares);
            const auto found = std::ranges::find(bodies, body);
            body_of_warp.push_back(static_cast<std::size_t>(found - bodies.begin()));
            if (found == bodies.end()) bodies.push_back(body);
        }
        for (std::size_t b = 0; b < bodies.size(); ++b) write_consumer(b, bodies[b]);
        write_kernel(body_of_warp, bodies.size());
        kernel.text = source_.text();
        return kernel;
    }

    KernelText emit_cuts() {
        KernelText kernel{.name = "clebsch_cuts", .text = {}, .arguments = arguments()};
        source_.line("// Rows of a receiver that several blocks add to begin as zero. One warp per border between chunks.");
        write_arguments(source_, problem_, kernel.arguments);
        write_targets();
        source_.line("extern \"C\" __global__ void __launch_bounds__(128) clebsch_cuts(const __grid_constant__ Arguments a) {");
        source_.line("const int lane = threadIdx.x % 32;");
        source_.line("const auto target = [&](i64 row) { return target_of(a, row); };");
        source_.line("const i64 row = (static_cast<i64>(blockIdx.x) * 4 + threadIdx.x / 32 + 1) * a.chunk;");
        source_.line("if (row >= a.rows) return;");
        source_.line("bool cut;");
        source_.line("chunk_begin(row, a.rows, a.chunk, lane, target, &cut);");
        source_.line("if (!cut) return;");
        source_.line("const i64 before = target_before(row, 0, lane, target), after = target_from(row, a.rows, lane, target);");
        source_.line("if (before >= 0) zero_sums(a, before, before + 1, lane);");
        source_.line("if (after >= 0) zero_sums(a, after, after + 1, lane);");
        source_.line("}");
        kernel.text = source_.text();
        return kernel;
    }

    KernelText emit_parts() {
        KernelText kernel{.name = "clebsch_stream_parts", .text = {}, .arguments = arguments()};
        source_.line(
            "// Whom the first and the last sum of a chunk belong to, if other chunks have parts of it, too; these parts begin as zero.");
        source_.line("// A warp for every chunk.");
        write_arguments(source_, problem_, kernel.arguments);
        write_targets();
        source_.line("static __device__ __forceinline__ void zero_part(const Arguments& a, i64 part, int lane) {");
        for (int o = 0; o < operands(); ++o)
            if (plan(o).way == StreamWay::accumulated)
                for (const StreamRun& run : plan(o).runs)  // other kernels may have summed the rest
                    source_.line("for (int i = lane; i < " + number(run.count) + "; i += 32) " + name(Kind::parts, o) + "[part * " +
                                 number(operand(o).size()) + " + " + number(run.begin) + " + i] = 0;");
        source_.line("}");
        source_.line("extern \"C\" __global__ void __launch_bounds__(128) clebsch_stream_parts(const __grid_constant__ Arguments a) {");
        source_.line("const int lane = threadIdx.x % 32;");
        source_.line("const auto target_at = [&](i64 row) { return target_of(a, row); };");
        source_.line("const i64 chunk = static_cast<i64>(blockIdx.x) * 4 + threadIdx.x / 32, first = chunk * a.chunk;");
        source_.line("if (first >= a.rows) return;");
        write_chunk_borders("a.chunk");
        source_.line("if (lane == 0) {");
        source_.line("a.part_targets[2 * chunk] = first_target;");
        source_.line("a.part_targets[2 * chunk + 1] = last_target != first_target ? last_target : -1;");
        source_.line("}");
        source_.line("if (first_target >= 0) zero_part(a, 2 * chunk, lane);");
        source_.line("if (last_target >= 0 && last_target != first_target) zero_part(a, 2 * chunk + 1, lane);");
        source_.line("}");
        kernel.text = source_.text();
        return kernel;
    }

 private:
    const GpuProblem& problem_;
    const StreamSchedule& schedule_;
    SourceText source_;

    const Polynomial& polynomial() const { return problem_.polynomial; }
    int operands() const { return static_cast<int>(polynomial().operands.size()); }
    const Operand& operand(int o) const { return polynomial().operands[static_cast<std::size_t>(o)]; }
    const StreamOperand& plan(int o) const { return schedule_.operands[static_cast<std::size_t>(o)]; }
    std::string type() const { return type_name(problem_.compute); }
    std::string storage(int o) const { return type_name(schedule_.number_of(problem_, static_cast<std::size_t>(o))); }
    std::string name(Kind kind, int which) const { return "a." + argument_name(problem_, {kind, which}); }
    bool stationary() const { return !schedule_.stationary.empty(); }
    bool retires() const { return schedule_.partial_numbers > 0 || std::ranges::any_of(schedule_.operands, &StreamOperand::handed); }
    bool parts_are_stored_alike() const {
        for (int o = 0; o < operands(); ++o)
            if (plan(o).way == StreamWay::accumulated && problem_.storage[static_cast<std::size_t>(o)] != problem_.compute) return false;
        return true;
    }
    std::string control(const std::string& stage) const { return "at<Control>(" + stage + " + " + number(schedule_.control_offset) + ")"; }
    std::string next_stage(const std::string& stage, const std::string& phase) const {
        return "if ((" + stage + " += " + number(schedule_.stage_bytes) + ") == stages_end) { " + stage + " = stages; " + phase +
               " ^= 1; }";
    }
    /// Whether the copy engine reads from or writes to stages.
    bool uses_bulk() const {
        for (int o = 0; o < operands(); ++o)
            if (plan(o).handed || (plan(o).way == StreamWay::staged && divides_by_16(o))) return true;
        return false;
    }
    bool divides_by_16(int o) const {
        const int size = bytes_of(schedule_.number_of(problem_, static_cast<std::size_t>(o)));
        const auto fits = [&](std::int64_t count) { return count * size % 16 == 0; };
        return std::ranges::all_of(plan(o).runs, [&](const StreamRun& run) { return fits(run.begin) && fits(run.count); });
    }
    /// Whether the copy engine takes the rows of an operand.
    std::string whole(int o) const { return divides_by_16(o) ? "(has_bulk && a.aligned >> " + number(o) + " & 1)" : "false"; }
    std::string bytes(int o, std::int64_t count) const { return number(count) + " * static_cast<int>(sizeof(" + storage(o) + "))"; }
    /// Where a run of an operand lies in a stage.
    std::string place(const std::string& stage, int o, const StreamRun& run) const {
        return stage + " + " + number(plan(o).stage_offset) + (run.place == 0 ? "" : " + " + bytes(o, run.place));
    }
    static std::string at(const std::string& pointer, const StreamRun& run) {
        return pointer + (run.begin == 0 ? "" : " + " + number(run.begin));
    }

    std::vector<KernelArgument> arguments() const {
        std::vector<KernelArgument> list;
        for (int o = 0; o < operands(); ++o) {
            const bool sums = plan(o).summed;
            list.push_back({sums ? Kind::sums : Kind::data, o});
            list.push_back({sums ? Kind::sums_stride : Kind::stride, o});
            if (plan(o).way == StreamWay::accumulated) list.push_back({Kind::output_rows, o});
            if (plan(o).way == StreamWay::accumulated && schedule_.parts) list.push_back({Kind::parts, o});
        }
        if (schedule_.parts) list.push_back({Kind::part_targets, -1});
        for (int i = 0; i < static_cast<int>(polynomial().indices.size()); ++i)
            for (const Kind kind : {Kind::index, Kind::index_rows, Kind::index_wide}) list.push_back({kind, i});
        for (const Kind kind : {Kind::rows, Kind::chunk, Kind::reach, Kind::aligned, Kind::error}) list.push_back({kind, -1});
        return list;
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
    int chain_leader(int o) const {
        for (const int other : other_chains())
            if (operand(other).rows.via == operand(o).rows.via) return other;
        return o;
    }

    void write_control() {
        source_.line("struct RowInfo {");
        source_.line("i64 row;");
        if (stationary()) source_.line("i64 target;");
        if (schedule_.parts) source_.line("i64 part;  // of a receiver whose sums end here");
        for (int o = 0; o < operands(); ++o)
            if (plan(o).way == StreamWay::scattered) source_.line("i64 at_" + number(o) + ";");
        source_.line("int flags;");
        source_.line("};");
        source_.line("struct Control {");
        source_.line("Barrier full, empty;");
        source_.line("RowInfo info;");
        source_.line("};");
        source_.line("static_assert(sizeof(Control) <= " + number(schedule_.stage_bytes - schedule_.control_offset) + ");");
    }

    /// The receiver of a row, and zeros for receivers without rows.
    void write_targets() {
        if (!stationary()) return;
        source_.line("static __device__ __forceinline__ i64 target_of(const Arguments& a, i64 row) {");
        source_.line("return " + look_up(problem_, schedule_.stationary, "row") + ";");
        source_.line("}");
        source_.line("static __device__ __forceinline__ void zero_sums(const Arguments& a, i64 begin, i64 end, int lane) {");
        source_.line("for (i64 row = begin; row < end; ++row) {");
        for (int o = 0; o < operands(); ++o)
            if (plan(o).way == StreamWay::accumulated)
                for (const StreamRun& run : plan(o).runs)
                    source_.line("for (int i = lane; i < " + number(run.count) + "; i += 32) store(" +
                                 at(name(Kind::data, o) + " + row * " + name(Kind::stride, o), run) + " + i, " + type() + "(0));");
        source_.line("}");
        source_.line("}");
    }

    /// The rows of the chunk at `first`, and the targets of its sums that other chunks share (-1: none).
    void write_chunk_borders(const std::string& reach) {
        source_.line("bool begin_cut, end_cut;");
        source_.line("const i64 begin = chunk_begin(first, a.rows, " + reach + ", lane, target_at, &begin_cut);");
        source_.line("const i64 end = chunk_begin(first + a.chunk, a.rows, " + reach + ", lane, target_at, &end_cut);");
        source_.line("const i64 last_target = end_cut ? target_before(end, begin, lane, target_at) : -1;");
        source_.line("const i64 first_target = begin_cut ? target_from(begin, end, lane, target_at) : -1;");
    }

    void write_producer() {
        std::vector<int> staged;
        for (int o = 0; o < operands(); ++o)
            if (plan(o).way == StreamWay::staged) staged.push_back(o);
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
        source_.line("for (i64 first = team * a.chunk; first < a.rows; first += teams * a.chunk) {");
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
        source_.line("unsigned left = __ballot_sync(0xffffffffu, " + joined(valid, " && ") + ");");
        if (stationary()) write_receivers();
        if (valid.size() > 1) write_masked_rows();
        source_.line("while (left) {");
        source_.line("const int i = __ffs(left) - 1;");
        source_.line("left &= left - 1;");
        if (retires()) source_.line("if (held == " + number(schedule_.stages - schedule_.lag) + ") retire_next();");
        source_.line("Control* control = " + control("stage") + ";");
        if (!retires() && problem_.lanes_arrive) source_.line("barrier_wait(&control->empty, phase);");
        source_.line("if (lane == i) {");
        if (!retires() && !problem_.lanes_arrive) source_.line("barrier_wait(&control->empty, phase);");
        write_further_addresses();
        source_.line("control->info.row = row;");
        source_.line("control->info.flags = " + std::string(stationary() ? "flags" : "0") + ";");
        if (stationary()) source_.line("control->info.target = target;");
        if (schedule_.parts) source_.line("control->info.part = earlier_part;");
        for (int o = 0; o < operands(); ++o)
            if (plan(o).way == StreamWay::scattered)
                source_.line("control->info.at_" + number(o) + " = at_" + number(chain_leader(o)) + ";");
        std::vector<std::string> expected;
        expected.reserve(staged.size());
        for (const int o : staged) expected.push_back("(" + whole(o) + " ? " + bytes(o, plan(o).numbers()) + " : 0)");
        source_.line("barrier_expect(&control->full, " + (expected.empty() ? std::string("0") : joined(expected, " + ")) + ");");
        for (const int o : staged)
            if (divides_by_16(o)) {
                source_.line("if (" + whole(o) + ") {");
                for (const StreamRun& run : plan(o).runs)
                    source_.line("copy_bulk<" + std::string(plan(o).kept ? "true" : "false") + ">(" + place("stage", o, run) + ", " +
                                 at("from_" + number(o), run) + ", " + bytes(o, run.count) + ", &control->full);");
                source_.line("}");
            }
        if (!problem_.lanes_arrive) source_.line("if (alone) barrier_arrive(&control->full);");
        source_.line("}");
        source_.line("__syncwarp();  // a lane ahead by all stages would take a stage for free");
        if (problem_.lanes_arrive) source_.line("if (alone) barrier_arrive(&control->full);");
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

    void write_consumer(std::size_t b, const StreamBody& body) {
        source_.blank();
        source_.line("static __device__ __forceinline__ void consume_" + std::to_string(b) +
                     "(const Arguments& a, const SharedAddress team_stages, int own_channel, int warp, int own_lane) {");
        source_.line("const int channel = own_channel, lane = own_lane;");
        const int bytes = problem_.compute == GpuNumber::float64 ? 8 : 4;
        if (schedule_.turn_numbers > 0)
            source_.line(type() + "* turn = at<" + type() + ">(team_stages + " + number(schedule_.turn_offset(bytes)) + " + warp * " +
                         number(std::int64_t{schedule_.turn_numbers} * bytes) + ");");
        if (schedule_.parked_numbers > 0)
            source_.line(type() + "* const parked = at<" + type() + ">(opaque(team_stages + " + number(schedule_.parked_offset(bytes)) +
                         " + warp * " + number(std::int64_t{32} * schedule_.parked_numbers * bytes) + " + lane * " + number(bytes) +
                         ", lane));");
        write_declarations(source_, problem_, body);
        if (stationary()) source_.line("i64 target = -1;");
        else write_start(source_, problem_, body);
        for (const int step : lane_steps(problem_, schedule_, body))
            source_.line("const int lane_" + number(step) + " = opaque(channel * " + number(step) + ", lane);");
        source_.line("const SharedAddress stages = opaque(team_stages, lane);");
        source_.line("const SharedAddress stages_end = opaque(team_stages + " +
                     number(std::int64_t{schedule_.stages} * schedule_.stage_bytes) + ", lane);");
        if (schedule_.partial_numbers > 0)
            source_.line("const int warp_partial = opaque(warp * " + number(std::int64_t{schedule_.partial_numbers} * bytes) + ", lane);");
        source_.line("SharedAddress stage = stages;");
        source_.line("int phase = 0;");
        source_.line("while (true) {");
        source_.line("Control* control = " + control("stage") + ";");
        source_.line("barrier_wait(&control->full, phase);");
        source_.line("const RowInfo& info = control->info;");
        if (stationary()) {
            source_.line("if (info.flags) {");
            source_.line(
                "const int channel = again(own_channel), lane = again(own_lane);  // addresses would occupy registers in the rows");
            if (std::ranges::any_of(body.shares, [](const BodyShare& share) { return !share.sums.empty(); })) {
                source_.line("if (target >= 0) {");
                if (schedule_.parts && parts_are_stored_alike()) {
                    write_flush(source_, problem_, body, StreamSums::either);
                } else if (schedule_.cuts) {
                    source_.line("if (info.flags & sums_add) {");
                    write_flush(source_, problem_, body, schedule_.parts ? StreamSums::part : StreamSums::added);
                    source_.line("} else {");
                    write_flush(source_, problem_, body, StreamSums::stored);
                    source_.line("}");
                } else {
                    write_flush(source_, problem_, body, StreamSums::stored);
                }
                source_.line("}");
            }
            source_.line("if (info.flags & rows_end) break;");
            source_.line("target = info.target;");
            write_start(source_, problem_, body);
            source_.line("}");
        } else {
            source_.line("if (info.flags) break;");
        }
        if (schedule_.partial_numbers > 0)
            source_.line(type() + "* partial = at<" + type() + ">(stage + " + number(schedule_.partial_offset) + " + warp_partial);");
        write_row(source_, problem_, schedule_, body);
        if (uses_bulk()) source_.line("visible_to_bulk();  // and what was read is read: the copy engine may fill the stage again");
        source_.line("__syncwarp();");
        source_.line(std::string(problem_.lanes_arrive ? "" : "if (lane == 0) ") + "barrier_arrive(&control->empty);");
        source_.line(next_stage("stage", "phase"));
        source_.line("}");
        source_.line("}");
    }

    void write_kernel(const std::vector<std::size_t>& body_of_warp, std::size_t bodies) {
        const std::string producers = number(schedule_.producer_warps), consumers = number(schedule_.consumer_warps());
        source_.blank();
        source_.line("extern \"C\" __global__ void __launch_bounds__(" + number(schedule_.threads()) + ", " + number(schedule_.blocks) +
                     ") clebsch_stream(const __grid_constant__ Arguments a) {");
        source_.line("DYNAMIC_SHARED(memory);");
        source_.line("const SharedAddress begin = in_shared(memory);");
        source_.line("const int lane = threadIdx.x % 32;");
        source_.line("if (threadIdx.x == 0) {");
        source_.line("for (int team = 0; team < " + number(schedule_.teams) + "; ++team) {");
        source_.line("for (int k = 0; k < " + number(schedule_.stages) + "; ++k) {");
        source_.line("Control* control = " +
                     control("begin + team * " + number(schedule_.team_bytes) + " + k * " + number(schedule_.stage_bytes)) + ";");
        source_.line("barrier_start(&control->full, fills_alone(a) ? " + std::string(problem_.lanes_arrive ? "32" : "1") + " : 33);");
        source_.line("barrier_start(&control->empty, " + consumers + (problem_.lanes_arrive ? " * 32);" : ");"));
        source_.line("}");
        source_.line("}");
        source_.line("barriers_ready();");
        source_.line("}");
        source_.line("__syncthreads();");
        if (schedule_.teams > 1 || schedule_.producer_warps > 1) {
            source_.line("const int warp_of_block = threadIdx.x / 32;");
        } else {
            // Resident blocks take their warps' roles in turn, so that the warps with most work do not share a scheduler.
            source_.line("const int wave = (gridDim.x + " + number(schedule_.blocks - 1) + ") / " + number(schedule_.blocks) + ";");
            source_.line("const int warp_of_block = (threadIdx.x / 32 + blockIdx.x / wave) % " + number(schedule_.threads() / 32) + ";");
        }
        source_.line("if (warp_of_block < " + producers + ") {");
        if (schedule_.consumer_registers > 0) source_.line("keep_registers<" + number(schedule_.producer_registers) + ">();");
        source_.line("const int team = warp_of_block;");
        source_.line("if (team < " + number(schedule_.teams) + ") produce(a, begin + team * " + number(schedule_.team_bytes) +
                     ", team * gridDim.x + blockIdx.x, gridDim.x * " + number(schedule_.teams) + ", lane);");
        source_.line("} else {");
        if (schedule_.consumer_registers > 0) source_.line("claim_registers<" + number(schedule_.consumer_registers) + ">();");
        source_.line("const int team = (warp_of_block - " + producers + ") / " + consumers + ";");
        // Turned from team to team for the same reason.
        source_.line("const int warp = (warp_of_block - " + producers + (schedule_.pinned ? "" : " + team") + ") % " + consumers + ";");
        source_.line("switch (warp) {");
        for (std::size_t b = 0; b < bodies; ++b) {
            std::vector<std::size_t> warps;
            for (std::size_t w = 0; w < body_of_warp.size(); ++w)
                if (body_of_warp[w] == b) warps.push_back(w);
            const auto block = [&](std::size_t w) { return std::int64_t{schedule_.warps[w].front().block}; };
            const std::int64_t ahead = block(warps.front()) - static_cast<std::int64_t>(warps.front());
            std::string text = "warp + " + number(ahead);
            if (std::ranges::any_of(warps, [&](std::size_t w) { return block(w) != static_cast<std::int64_t>(w) + ahead; })) {
                text = number(block(warps.back()));
                for (std::size_t i = warps.size() - 1; i-- > 0;)
                    text = "warp == " + number(static_cast<std::int64_t>(warps[i])) + " ? " + number(block(warps[i])) + " : " + text;
            }
            for (const std::size_t w : warps) source_.line("case " + std::to_string(w) + ":");
            source_.line("consume_" + std::to_string(b) + "(a, begin + team * " + number(schedule_.team_bytes) + ", (" + text +
                         ") * 32 + lane, warp, lane);");
            source_.line("break;");
        }
        source_.line("}");
        source_.line("}");
        source_.line("}");
    }
};

}  // namespace

KernelText emit_stream(const GpuProblem& problem, const StreamSchedule& schedule) { return StreamEmitter(problem, schedule).emit(); }

KernelText emit_stream_cuts(const GpuProblem& problem, const StreamSchedule& schedule) {
    return StreamEmitter(problem, schedule).emit_cuts();
}

KernelText emit_stream_parts(const GpuProblem& problem, const StreamSchedule& schedule) {
    return StreamEmitter(problem, schedule).emit_parts();
}

}  // namespace clebsch
