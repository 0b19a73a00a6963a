#include "emit/stream.hpp"

#include <algorithm>

#include "emit/stream_body.hpp"
#include "emit/stream_frame.hpp"
#include "emit/stream_producer.hpp"
#include "emit/text.hpp"

namespace clebsch {
namespace {

class StreamEmitter : StreamFrame {
 public:
    using StreamFrame::StreamFrame;

    KernelText emit() {
        KernelText kernel{.name = "clebsch_stream", .text = {}, .arguments = arguments()};
        source_.line(
            "// Stream kernel. Teams walk chunks of rows t, t + teams, ..., so that the rows in flight stay in the second-level cache.");
        source_.line("// A team's producer copies each row's data into a stage; its " + number(schedule_.consumer_warps()) +
                     " consumer warps hold the receiver's numbers in registers, one channel per lane.");
        write_arguments(source_, problem_, kernel.arguments);
        write_control();
        write_targets();
        write_stream_producer(source_, problem_, schedule_);
        std::vector<StreamBody> bodies;  // each once
        std::vector<std::size_t> body_of_warp;
        for (const std::vector<StreamShare>& shares : schedule_.warps) {
            const StreamBody body = stream_body(problem_, schedule_, shares);
            const auto found = std::ranges::find(bodies, body);
            body_of_warp.push_back(static_cast<std::size_t>(found - bodies.begin()));
            if (found == bodies.end()) bodies.push_back(body);
        }
        write_place();
        for (std::size_t b = 0; b < bodies.size(); ++b) {
            write_first_channel(b, warps_of(body_of_warp, b));
            write_consumer(b, bodies[b]);
        }
        write_kernel(body_of_warp, bodies.size());
        kernel.text = source_.text();
        return kernel;
    }

    KernelText emit_cuts() {
        KernelText kernel{.name = "clebsch_cuts", .text = {}, .arguments = arguments()};
        source_.line("// Rows of a receiver that several blocks add to begin as zero. One warp per border between chunks.");
        write_arguments(source_, problem_, kernel.arguments);
        write_targets();
        begin_kernel(source_, kernel.name, "128");
        source_.line("const int lane = threadIdx.x % 32;");
        source_.line("const auto target = [&](i64 row) { return target_of(a, row); };");
        source_.line("const i64 row = (static_cast<i64>(blockIdx.x) * 4 + threadIdx.x / 32 + 1) * a.chunk;");
        source_.line("if (row >= a.rows) return;");
        source_.line("bool cut;");
        source_.line("chunk_begin(row, a.rows, a.reach, lane, target, &cut);");
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
        begin_kernel(source_, kernel.name, "128");
        source_.line("const int lane = threadIdx.x % 32;");
        source_.line("const auto target_at = [&](i64 row) { return target_of(a, row); };");
        source_.line("const i64 chunk = static_cast<i64>(blockIdx.x) * 4 + threadIdx.x / 32, first = chunk * a.chunk;");
        source_.line("if (first >= a.rows) return;");
        write_chunk_borders("a.reach");
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
    static std::vector<std::size_t> warps_of(const std::vector<std::size_t>& body_of_warp, std::size_t body) {
        std::vector<std::size_t> warps;
        for (std::size_t w = 0; w < body_of_warp.size(); ++w)
            if (body_of_warp[w] == body) warps.push_back(w);
        return warps;
    }
    bool parts_are_stored_alike() const {
        for (int o = 0; o < operands(); ++o)
            if (plan(o).way == StreamWay::accumulated && problem_.storage[static_cast<std::size_t>(o)] != problem_.compute) return false;
        return true;
    }
    /// Whether the copy engine reads from or writes to stages.
    bool uses_bulk() const {
        for (int o = 0; o < operands(); ++o)
            if (plan(o).handed || (plan(o).way == StreamWay::staged && !plan(o).carried && divides_by_16(o))) return true;
        return false;
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

    void write_control() {
        source_.line("struct RowInfo {");
        source_.line("i64 row;");
        if (stationary()) source_.line("i64 target;");
        if (schedule_.frugal) source_.line("i64 before;  // the receiver whose sums end here; -1: none");
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

    /// A consumer keeps from row to row what it needs in every one, or, if the schedule is frugal, finds it out again: from the number of
    /// its thread, from where it is in its ring of stages, and from what the producer says about a row.
    void write_consumer(std::size_t b, const StreamBody& body) {
        source_.blank();
        source_.line("static __device__ __forceinline__ void consume_" + std::to_string(b) +
                     "(const Arguments& a, const SharedAddress team_stages, int own_channel, int warp, int own_lane) {");
        source_.line("const int channel = own_channel, lane = own_lane;");
        if (schedule_.turn_numbers > 0) source_.line(type() + "* turn = " + turn_place("team_stages", "warp") + ";");
        if (!schedule_.frugal) write_parked("team_stages", "warp", "lane");
        write_declarations(source_, problem_, body);
        if (stationary() && !schedule_.frugal) source_.line("i64 target = -1;");
        if (!stationary()) write_start(source_, problem_, body);
        if (schedule_.frugal) {
            source_.line("SharedAddress stage = opaque(team_stages, lane);");
            source_.line("int ring = " + number(schedule_.stages) + ";");
        } else {
            write_kept(body);
        }
        source_.line("while (true) {");
        if (schedule_.frugal) {
            source_.line("const Place found = place_of(thread_again());");
            source_.line("const int found_channel = first_channel_" + std::to_string(b) + "(found.warp) + found.lane;");
            write_parked(team_begin(), "found.warp", "found.lane");
        }
        source_.line("Control* control = " + control("stage") + ";");
        source_.line("barrier_wait(&control->full, " + std::string(schedule_.frugal ? "phase_of(ring)" : "phase") + ");");
        source_.line("const RowInfo& info = control->info;");
        if (stationary()) write_receiver(b, body);
        else source_.line("if (info.flags) break;");
        if (schedule_.partial_numbers > 0 && !schedule_.frugal)
            source_.line(type() + "* partial = at<" + type() + ">(stage + " + number(schedule_.partial_offset) + " + warp_partial);");
        write_row(source_, problem_, schedule_, body);
        if (uses_bulk()) source_.line("visible_to_bulk();  // and what was read is read: the copy engine may fill the stage again");
        source_.line("__syncwarp();");
        source_.line(std::string(problem_.lanes_arrive ? "" : "if (lane == 0) ") + "barrier_arrive(&control->empty);");
        if (schedule_.frugal)
            source_.line("stage += " + number(schedule_.stage_bytes) + "; if (stages_left(--ring) == 0) { ring = (ring ^ 256) + " +
                         number(schedule_.stages) + "; stage -= " + number(std::int64_t{schedule_.stages} * schedule_.stage_bytes) + "; }");
        else source_.line(next_stage("stage", "phase"));
        source_.line("}");
        source_.line("}");
    }

    /// What a consumer that is not frugal keeps.
    void write_kept(const StreamBody& body) {
        for (const int step : lane_steps(problem_, schedule_, body))
            source_.line("const int lane_" + number(step) + " = opaque(channel * " + number(step) + ", lane);");
        source_.line("const SharedAddress stages = opaque(team_stages, lane);");
        source_.line("const SharedAddress stages_end = opaque(team_stages + " +
                     number(std::int64_t{schedule_.stages} * schedule_.stage_bytes) + ", lane);");
        if (schedule_.partial_numbers > 0)
            source_.line("const int warp_partial = opaque(warp * " +
                         number(std::int64_t{schedule_.partial_numbers} * bytes_of(problem_.compute)) + ", lane);");
        source_.line("SharedAddress stage = stages;");
        source_.line("int phase = 0;");
    }

    /// Where a new receiver begins: the sums of the one before are stored, and its own numbers read.
    void write_receiver(std::size_t b, const StreamBody& body) {
        source_.line("if (info.flags) {");
        if (schedule_.frugal) {
            source_.line("const Place own = place_of(thread_again());");
            source_.line("const int channel = first_channel_" + std::to_string(b) + "(own.warp) + own.lane, lane = own.lane;");
            if (schedule_.turn_numbers > 0) source_.line(type() + "* turn = " + turn_place(team_begin(), "own.warp") + ";");
        } else {
            source_.line(
                "const int channel = again(own_channel), lane = again(own_lane);  // addresses would occupy registers in the rows");
        }
        if (std::ranges::any_of(body.shares, [](const BodyShare& share) { return !share.sums.empty(); })) {
            source_.line(schedule_.frugal ? "if (const i64 target = info.before; target >= 0) {" : "if (target >= 0) {");
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
        source_.line(schedule_.frugal ? "const i64 target = info.target;" : "target = info.target;");
        write_start(source_, problem_, body);
        source_.line("}");
    }

    void write_parked(const std::string& team_begin, const std::string& warp, const std::string& lane) {
        const int bytes = bytes_of(problem_.compute);
        if (schedule_.parked_numbers > 0)
            source_.line(type() + "* const parked = at<" + type() + ">(opaque(" + team_begin + " + " +
                         number(schedule_.parked_offset(bytes)) + " + " + warp + " * " +
                         number(std::int64_t{32} * schedule_.parked_numbers * bytes) + " + " + lane + " * " + number(bytes) + ", " + lane +
                         "));");
    }
    /// Where the team's shared memory begins, given a stage and the way round the ring.
    std::string team_begin() const {
        return "stage - (" + number(schedule_.stages) + " - stages_left(ring)) * " + number(schedule_.stage_bytes);
    }

    /// Where a warp turns numbers, given where its team's shared memory begins.
    std::string turn_place(const std::string& team_begin, const std::string& warp) const {
        const int bytes = bytes_of(problem_.compute);
        return "at<" + type() + ">(" + team_begin + " + " + number(schedule_.turn_offset(bytes)) + " + " + warp + " * " +
               number(std::int64_t{schedule_.turn_numbers} * bytes) + ")";
    }

    /// Which of the block's warps a thread is in, as roles are given out; then, of a consumer, its team and which warp of the team it is.
    void write_warp_of_block(const std::string& thread) {
        if (schedule_.teams > 1 || schedule_.producer_warps > 1) {
            source_.line("const int warp_of_block = " + thread + " / 32;");
        } else {
            // Resident blocks take their warps' roles in turn, so that the warps with most work do not share a scheduler.
            source_.line("const int wave = (gridDim.x + " + number(schedule_.blocks - 1) + ") / " + number(schedule_.blocks) + ";");
            source_.line("const int warp_of_block = (" + thread + " / 32 + blockIdx.x / wave) % " + number(schedule_.threads() / 32) + ";");
        }
    }
    void write_team_and_warp() {
        const std::string producers = number(schedule_.producer_warps), consumers = number(schedule_.consumer_warps());
        source_.line("const int team = (warp_of_block - " + producers + ") / " + consumers + ";");
        // Turned from team to team for the same reason.
        source_.line("const int warp = (warp_of_block - " + producers + (schedule_.pinned ? "" : " + team") + ") % " + consumers + ";");
    }
    /// The same for threads that find it out again.
    void write_place() {
        if (!schedule_.frugal) return;
        source_.blank();
        source_.line("struct Place { int team, warp, lane; };  // warp -1: a producer, of this team");
        source_.line("static __device__ __forceinline__ Place place_of(int thread) {");
        write_warp_of_block("thread");
        source_.line("if (warp_of_block < " + number(schedule_.producer_warps) + ") return {warp_of_block, -1, thread % 32};");
        write_team_and_warp();
        source_.line("return {team, warp, thread % 32};");
        source_.line("}");
    }

    /// The first of a warp's channels, of all warps that run this body.
    void write_first_channel(std::size_t b, const std::vector<std::size_t>& warps) {
        const auto block = [&](std::size_t w) { return std::int64_t{schedule_.warps[w].front().block}; };
        const std::int64_t ahead = block(warps.front()) - static_cast<std::int64_t>(warps.front());
        std::string text = "warp + " + number(ahead);
        if (std::ranges::any_of(warps, [&](std::size_t w) { return block(w) != static_cast<std::int64_t>(w) + ahead; })) {
            text = number(block(warps.back()));
            for (std::size_t i = warps.size() - 1; i-- > 0;)
                text = "warp == " + number(static_cast<std::int64_t>(warps[i])) + " ? " + number(block(warps[i])) + " : " + text;
        }
        source_.line("static __device__ __forceinline__ int first_channel_" + std::to_string(b) + "(int warp) { return (" + text +
                     ") * 32; }");
    }

    void write_kernel(const std::vector<std::size_t>& body_of_warp, std::size_t bodies) {
        const std::string consumers = number(schedule_.consumer_warps());
        source_.blank();
        begin_kernel(source_, "clebsch_stream", number(schedule_.threads()) + ", " + number(schedule_.blocks));
        source_.line("let_next_kernel_begin();");
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
        if (schedule_.frugal) source_.line("const Place own = place_of(threadIdx.x);\nconst int team = own.team, warp = own.warp;");
        else write_warp_of_block("threadIdx.x");
        source_.line(schedule_.frugal ? "if (warp < 0) {" : "if (warp_of_block < " + number(schedule_.producer_warps) + ") {");
        if (schedule_.consumer_registers > 0) source_.line("keep_registers<" + number(schedule_.producer_registers) + ">();");
        if (!schedule_.frugal) source_.line("const int team = warp_of_block;");
        source_.line("if (team < " + number(schedule_.teams) + ") produce(a, begin + team * " + number(schedule_.team_bytes) +
                     ", team * gridDim.x + blockIdx.x, gridDim.x * " + number(schedule_.teams) + ", lane);");
        source_.line("} else {");
        if (schedule_.consumer_registers > 0) source_.line("claim_registers<" + number(schedule_.consumer_registers) + ">();");
        if (!schedule_.frugal) write_team_and_warp();
        source_.line("switch (warp) {");
        for (std::size_t b = 0; b < bodies; ++b) {
            for (const std::size_t w : warps_of(body_of_warp, b)) source_.line("case " + std::to_string(w) + ":");
            const std::string body = std::to_string(b);
            source_.line("consume_" + body + "(a, begin + team * " + number(schedule_.team_bytes) + ", first_channel_" + body +
                         "(warp) + lane, warp, lane);");
            source_.line("break;");
        }
        source_.line("}");
        source_.line("}");
        source_.line("}");
    }
};

}  // namespace

KernelText emit_stream(const GpuProblem& problem, const StreamSchedule& schedule) {
    SourceText source;
    return StreamEmitter(source, problem, schedule).emit();
}

KernelText emit_stream_cuts(const GpuProblem& problem, const StreamSchedule& schedule) {
    SourceText source;
    return StreamEmitter(source, problem, schedule).emit_cuts();
}

KernelText emit_stream_parts(const GpuProblem& problem, const StreamSchedule& schedule) {
    SourceText source;
    return StreamEmitter(source, problem, schedule).emit_parts();
}

}  // namespace clebsch
