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
        source_.line("// A team's producer copies each row's data into stage k; its " + number(schedule_.consumer_warps()) +
                     " consumer warps hold the receiver's numbers in registers, one channel per lane.");
        write_arguments(source_, problem_, kernel.arguments);
        write_row_info();
        write_targets();
        write_producer();
        std::vector<StreamBody> bodies;  // each once
        std::vector<int> body_of_warp;
        for (int group = 0; group < static_cast<int>(schedule_.groups.size()); ++group)
            for (int warp = 0; warp < schedule_.channel_warps; ++warp) {
                const StreamBody body = stream_body(problem_, schedule_, group, warp);
                const auto found = std::ranges::find(bodies, body);
                body_of_warp.push_back(static_cast<int>(found - bodies.begin()));
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
        source_.line("const i64 before = target_before(row, lane, target), after = target_from(row, a.rows, lane, target);");
        source_.line("if (before >= 0) zero_sums(a, before, before + 1, lane);");
        source_.line("if (after >= 0) zero_sums(a, after, after + 1, lane);");
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
    std::string storage(int o) const { return type_name(problem_.storage[static_cast<std::size_t>(o)]); }
    std::string name(Kind kind, int which) const { return "a." + argument_name(problem_, {kind, which}); }
    bool stationary() const { return !schedule_.stationary.empty(); }
    int partials() const { return schedule_.partial_numbers * schedule_.consumer_warps(); }

    std::vector<KernelArgument> arguments() const {
        std::vector<KernelArgument> list;
        for (int o = 0; o < operands(); ++o) {
            const bool sums = plan(o).way == StreamWay::scattered;
            list.push_back({sums ? Kind::sums : Kind::data, o});
            list.push_back({sums ? Kind::sums_stride : Kind::stride, o});
            if (plan(o).way == StreamWay::accumulated) list.push_back({Kind::output_rows, o});
        }
        for (int i = 0; i < static_cast<int>(polynomial().indices.size()); ++i)
            for (const Kind kind : {Kind::index, Kind::index_rows, Kind::index_wide}) list.push_back({kind, i});
        for (const Kind kind : {Kind::rows, Kind::chunk, Kind::aligned, Kind::error}) list.push_back({kind, -1});
        return list;
    }

    std::string look_up_text(const std::vector<std::string>& chain, std::string row) const {
        for (const std::string& via : chain) {
            const int i = polynomial().find_index(via);
            row = "look_up(" + name(Kind::index, i) + ", " + name(Kind::index_wide, i) + ", " + row + ", " + name(Kind::index_rows, i) +
                  ", a.error)";
        }
        return row;
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

    void write_row_info() {
        source_.line("struct RowInfo {");
        source_.line("i64 row;");
        if (stationary()) source_.line("i64 target;");
        for (int o = 0; o < operands(); ++o)
            if (plan(o).way == StreamWay::scattered) source_.line("i64 at_" + number(o) + ";");
        source_.line("int flags;");
        source_.line("};");
    }

    /// The receiver of a row, and zeros for receivers without rows.
    void write_targets() {
        if (!stationary()) return;
        source_.line("static __device__ __forceinline__ i64 target_of(const Arguments& a, i64 row) {");
        source_.line("return " + look_up_text(schedule_.stationary, "row") + ";");
        source_.line("}");
        source_.line("static __device__ __forceinline__ void zero_sums(const Arguments& a, i64 begin, i64 end, int lane) {");
        source_.line("for (i64 row = begin; row < end; ++row) {");
        for (int o = 0; o < operands(); ++o)
            if (plan(o).way == StreamWay::accumulated)
                source_.line("for (int i = lane; i < " + number(operand(o).size()) + "; i += 32) store(" + name(Kind::data, o) +
                             " + row * " + name(Kind::stride, o) + " + i, " + type() + "(0));");
        source_.line("}");
        source_.line("}");
    }

    /// Rows of outputs that belong to a row nothing is computed for.
    void write_masked_row() {
        for (int o = 0; o < operands(); ++o)
            if (plan(o).way == StreamWay::stored || plan(o).way == StreamWay::reduced)
                source_.line("for (int j = lane; j < " + number(operand(o).size()) + "; j += 32) store(" + name(Kind::data, o) +
                             " + row * " + name(Kind::stride, o) + " + j, " + type() + "(0));");
    }

    void write_producer() {
        source_.blank();
        source_.line("struct Shared {");
        source_.line("Barrier full[" + number(schedule_.stages) + "], empty[" + number(schedule_.stages) + "];");
        source_.line("RowInfo infos[" + number(schedule_.stages) + "];");
        source_.line("};");
        source_.blank();
        write_retire();
        source_.line("// Waits until stage n % stages is free again and says what it will hold.");
        source_.line("static __device__ __forceinline__ void claim(const Arguments& a, Shared* shared, char* stages, int n, int lane) {");
        source_.line("const int k = n % " + number(schedule_.stages) + ";");
        source_.line("if (n < " + number(schedule_.stages) + ") return;");
        source_.line("barrier_wait(&shared->empty[k], (n / " + number(schedule_.stages) + " - 1) & 1);");
        if (schedule_.partial_numbers > 0) source_.line("retire(a, shared, stages, k, lane);");
        source_.line("}");
        source_.blank();
        source_.line(
            "static __device__ __forceinline__ void produce(const Arguments& a, Shared* shared, char* stages, int team, int teams, int "
            "lane) {");
        source_.line("int n = 0;");
        if (stationary()) {
            source_.line("i64 current = -1;");
            source_.line("bool adds = false;  // whether the current receiver's sums are one part of several");
            source_.line("const auto target_at = [&](i64 row) { return target_of(a, row); };");
        }
        source_.line("for (i64 first = team * a.chunk; first < a.rows; first += teams * a.chunk) {");
        if (stationary()) {
            const std::string reach = schedule_.cuts ? "a.rows > 4096 ? a.chunk : a.rows" : "a.rows";
            source_.line("bool begin_cut, end_cut;");
            source_.line("const i64 begin = chunk_begin(first, a.rows, " + reach + ", lane, target_at, &begin_cut);");
            source_.line("const i64 end = chunk_begin(first + a.chunk, a.rows, " + reach + ", lane, target_at, &end_cut);");
            source_.line("if (begin >= end) continue;");
            source_.line("i64 previous = target_before(begin, lane, target_at);");
            source_.line("const i64 last_target = end_cut ? target_before(end, lane, target_at) : -1;");
            source_.line("i64 first_target = begin_cut ? target_from(begin, a.rows, lane, target_at) : -1;");
        } else {
            source_.line("const i64 begin = first, end = first + a.chunk < a.rows ? first + a.chunk : a.rows;");
        }
        // The indices of the block's next chunk come into the first-level cache while this one is worked on.
        std::vector<std::string> ahead;
        for (int i = 0; i < static_cast<int>(polynomial().indices.size()); ++i) {
            if (std::ranges::none_of(polynomial().operands, [&](const Operand& o) {
                    return o.rows.kind == Addressing::Kind::indexed && polynomial().find_index(o.rows.via.front()) == i;
                }))
                continue;
            ahead.push_back("ahead_" + number(i));
            source_.line("const int " + ahead.back() + " = touch(" + name(Kind::index, i) + ", " + name(Kind::index_wide, i) +
                         ", first + teams * a.chunk - 32 + lane * 16, a.rows);");
        }
        source_.line("for (i64 base = begin; base < end; base += 32) {");
        source_.line("const i64 mine = base + lane < end ? base + lane : end - 1;");
        std::vector<std::string> masks;
        if (stationary()) {
            source_.line("const i64 my_target = target_at(mine);");
            masks.push_back("my_target < 0");
        }
        for (const int o : other_chains()) {
            source_.line("const i64 my_at_" + number(o) + " = " + look_up_text(operand(o).rows.via, "mine") + ";");
            masks.push_back("my_at_" + number(o) + " < 0");
        }
        source_.line("const int masked = " + (masks.empty() ? std::string("0") : joined(masks, " || ")) + ";");
        source_.line("const int count = end - base < 32 ? static_cast<int>(end - base) : 32;");
        source_.line("for (int i = 0; i < count; ++i) {");
        source_.line("const i64 row = base + i;");
        if (stationary()) {
            source_.line("const i64 target = __shfl_sync(0xffffffffu, my_target, i);");
            source_.line("if (target > previous + 1) zero_sums(a, previous + 1, target, lane);");
            source_.line("if (target >= 0) previous = target;");
        }
        if (!masks.empty()) {
            source_.line("if (__shfl_sync(0xffffffffu, masked, i)) {");
            if (stationary()) write_orphan();
            write_masked_row();
            source_.line("continue;");
            source_.line("}");
        }
        for (const int o : other_chains())
            source_.line("const i64 at_" + number(o) + " = __shfl_sync(0xffffffffu, my_at_" + number(o) + ", i);");
        source_.line("claim(a, shared, stages, n, lane);");
        source_.line("const int k = n % " + number(schedule_.stages) + ";");
        source_.line("char* stage = stages + k * " + number(schedule_.stage_bytes) + ";");
        source_.line("Barrier* full = &shared->full[k];");
        source_.line("if (lane == 0) {");
        source_.line("RowInfo info;");
        source_.line("info.row = row;");
        source_.line("info.flags = 0;");
        if (stationary()) {
            source_.line("info.target = target;");
            source_.line("if (target != current) info.flags = row_starts | (adds ? sums_add : 0);");
        }
        for (int o = 0; o < operands(); ++o)
            if (plan(o).way == StreamWay::scattered) source_.line("info.at_" + number(o) + " = at_" + number(chain_leader(o)) + ";");
        source_.line("shared->infos[k] = info;");
        source_.line("}");
        if (stationary()) {
            source_.line("if (target != current) adds = target == first_target || target == last_target;");
            source_.line("current = target;");
        }
        for (int o = 0; o < operands(); ++o) {
            if (plan(o).way != StreamWay::staged) continue;
            const std::string row = operand(o).rows.kind == Addressing::Kind::each ? "row" : "at_" + number(chain_leader(o));
            source_.line("copy_row(reinterpret_cast<" + storage(o) + "*>(stage + " + number(plan(o).stage_offset) + "), " +
                         name(Kind::data, o) + " + " + row + " * " + name(Kind::stride, o) + ", " + number(operand(o).size()) +
                         ", a.aligned >> " + number(o) + " & 1, " + (plan(o).kept ? "true" : "false") + ", full, lane);");
        }
        source_.line("__syncwarp();");
        source_.line("barrier_arrive_after_copies(full);");
        source_.line("if (lane == 0) barrier_arrive(full);");
        source_.line("++n;");
        source_.line("}");
        source_.line("}");
        for (const std::string& value : ahead) source_.line("keep(" + value + ");");
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
        source_.line("claim(a, shared, stages, n, lane);");
        source_.line("if (lane == 0) {");
        source_.line("RowInfo info = {};");
        source_.line("info.flags = rows_end" + std::string(stationary() ? " | (adds ? sums_add : 0)" : "") + ";");
        source_.line("shared->infos[n % " + number(schedule_.stages) + "] = info;");
        source_.line("}");
        source_.line("__syncwarp();");
        source_.line("barrier_arrive_after_copies(&shared->full[n % " + number(schedule_.stages) + "]);");
        source_.line("if (lane == 0) barrier_arrive(&shared->full[n % " + number(schedule_.stages) + "]);");
        if (schedule_.partial_numbers > 0) {
            source_.line("// The rows still in stages: the last ones before the end.");
            source_.line("for (int m = n < " + number(schedule_.stages) + " ? 0 : n - " + number(schedule_.stages - 1) + "; m < n; ++m) {");
            source_.line("barrier_wait(&shared->empty[m % " + number(schedule_.stages) + "], m / " + number(schedule_.stages) + " & 1);");
            source_.line("retire(a, shared, stages, m % " + number(schedule_.stages) + ", lane);");
            source_.line("}");
        }
        source_.line("}");
    }

    /// A receiver all of whose rows are masked otherwise gets its zeros here: its first row of the chunk clears it, and a later unmasked
    /// row stores the sum over it.
    void write_orphan() {
        source_.line("if (target >= 0 && target != current && target != first_target && target != last_target) {");
        source_.line("zero_sums(a, target, target + 1, lane);");
        source_.line("}");
    }

    void write_retire() {
        if (schedule_.partial_numbers == 0) return;
        source_.line("// Adds up what the warps found for the channel-free outputs of the row in stage k.");
        source_.line("static __device__ __forceinline__ void retire(const Arguments& a, Shared* shared, char* stages, int k, int lane) {");
        source_.line("const i64 row = shared->infos[k].row;");
        source_.line("const " + type() + "* partial = reinterpret_cast<const " + type() + "*>(stages + " +
                     number(static_cast<std::int64_t>(schedule_.stages) * schedule_.stage_bytes) + ") + k * " + number(partials()) + ";");
        for (int o = 0; o < operands(); ++o) {
            if (plan(o).way != StreamWay::reduced) continue;
            source_.line("for (int i = lane; i < " + number(operand(o).size()) + "; i += 32) {");
            source_.line(type() + " sum = 0;");
            source_.line("for (int warp = 0; warp < " + number(schedule_.consumer_warps()) + "; ++warp) sum += partial[warp * " +
                         number(schedule_.partial_numbers) + " + " + number(plan(o).stage_offset) + " + i];");
            source_.line("store(" + name(Kind::data, o) + " + row * " + name(Kind::stride, o) + " + i, sum);");
            source_.line("}");
        }
        source_.line("__syncwarp();");
        source_.line("}");
        source_.blank();
    }

    void write_consumer(std::size_t b, const StreamBody& body) {
        source_.blank();
        source_.line("static __device__ __forceinline__ void consume_" + std::to_string(b) +
                     "(const Arguments& a, Shared* shared, char* stages, int channel, int warp, int lane) {");
        if (schedule_.turn_numbers > 0) {
            const int bytes = problem_.compute == GpuNumber::float64 ? 8 : 4;
            source_.line(type() + "* turn = reinterpret_cast<" + type() + "*>(stages + " + number(schedule_.turn_offset(bytes)) +
                         ") + warp * " + number(schedule_.turn_numbers) + ";");
        }
        write_declarations(source_, problem_, body);
        if (stationary()) source_.line("i64 target = -1;");
        else { write_start(source_, problem_, schedule_, body); }
        source_.line("int k = 0, phase = 0;");
        source_.line("while (true) {");
        source_.line("barrier_wait(&shared->full[k], phase);");
        source_.line("const RowInfo info = shared->infos[k];");
        if (stationary()) {
            source_.line("if (info.flags) {");
            if (!body.sums.empty()) {
                source_.line("if (target >= 0) {");
                if (schedule_.cuts) {
                    source_.line("if (info.flags & sums_add) {");
                    write_flush(source_, problem_, body, true);
                    source_.line("} else {");
                    write_flush(source_, problem_, body, false);
                    source_.line("}");
                } else {
                    write_flush(source_, problem_, body, false);
                }
                source_.line("}");
            }
            source_.line("if (info.flags & rows_end) break;");
            source_.line("target = info.target;");
            write_start(source_, problem_, schedule_, body);
            source_.line("}");
        } else {
            source_.line("if (info.flags) break;");
        }
        source_.line("const char* stage = stages + k * " + number(schedule_.stage_bytes) + ";");
        for (int o = 0; o < operands(); ++o)
            if (plan(o).way == StreamWay::staged)
                source_.line("const " + storage(o) + "* stage_" + number(o) + " = reinterpret_cast<const " + storage(o) + "*>(stage + " +
                             number(plan(o).stage_offset) + ");");
        if (schedule_.partial_numbers > 0)
            source_.line(type() + "* partial = reinterpret_cast<" + type() + "*>(stages + " +
                         number(static_cast<std::int64_t>(schedule_.stages) * schedule_.stage_bytes) + ") + k * " + number(partials()) +
                         " + warp * " + number(schedule_.partial_numbers) + ";");
        write_row(source_, problem_, schedule_, body);
        source_.line("__syncwarp();");
        source_.line("if (lane == 0) barrier_arrive(&shared->empty[k]);");
        source_.line("if (++k == " + number(schedule_.stages) + ") {");
        source_.line("k = 0;");
        source_.line("phase ^= 1;");
        source_.line("}");
        source_.line("}");
        source_.line("}");
    }

    void write_kernel(const std::vector<int>& body_of_warp, std::size_t bodies) {
        const std::string producers = number(schedule_.producer_warps);
        source_.blank();
        source_.line("extern \"C\" __global__ void __launch_bounds__(" + number(schedule_.threads()) + ", " + number(schedule_.blocks) +
                     ") clebsch_stream(const __grid_constant__ Arguments a) {");
        source_.line("DYNAMIC_SHARED(memory);");
        source_.line("__shared__ Shared shared[" + number(schedule_.teams) + "];");
        source_.line("const int lane = threadIdx.x % 32, warp_of_block = threadIdx.x / 32;");
        source_.line("if (threadIdx.x == 0) {");
        source_.line("for (int team = 0; team < " + number(schedule_.teams) + "; ++team) {");
        source_.line("for (int k = 0; k < " + number(schedule_.stages) + "; ++k) {");
        source_.line("barrier_start(&shared[team].full[k], 33);");
        source_.line("barrier_start(&shared[team].empty[k], " + number(schedule_.consumer_warps()) + ");");
        source_.line("}");
        source_.line("}");
        source_.line("barriers_ready();");
        source_.line("}");
        source_.line("__syncthreads();");
        source_.line("if (warp_of_block < " + producers + ") {");
        if (schedule_.consumer_registers > 0) source_.line("keep_registers<" + number(schedule_.producer_registers) + ">();");
        source_.line("const int team = warp_of_block;");
        const std::string team_memory = "memory + team * " + number(schedule_.team_bytes);
        source_.line("if (team < " + number(schedule_.teams) + ") produce(a, &shared[team], " + team_memory + ", blockIdx.x * " +
                     number(schedule_.teams) + " + team, gridDim.x * " + number(schedule_.teams) + ", lane);");
        source_.line("} else {");
        if (schedule_.consumer_registers > 0) source_.line("claim_registers<" + number(schedule_.consumer_registers) + ">();");
        source_.line("const int team = (warp_of_block - " + producers + ") / " + number(schedule_.consumer_warps()) + ";");
        // Turned from team to team, so that the warps with most paths do not share a scheduler.
        source_.line("const int warp = (warp_of_block - " + producers + " + team) % " + number(schedule_.consumer_warps()) + ";");
        const std::string channel = schedule_.groups.size() > 1 ? "warp % " + number(schedule_.channel_warps) : "warp";
        source_.line("const int channel = " + channel + " * 32 + lane;");
        const std::string call = "(a, &shared[team], " + team_memory + ", channel, warp, lane);";
        if (bodies == 1) {
            source_.line("consume_0" + call);
        } else {
            source_.line("switch (warp) {");
            for (std::size_t w = 0; w < body_of_warp.size(); ++w) {
                source_.line("case " + std::to_string(w) + ":");
                if (w + 1 < body_of_warp.size() && body_of_warp[w + 1] == body_of_warp[w]) continue;
                source_.line("consume_" + std::to_string(body_of_warp[w]) + call);
                source_.line("break;");
            }
            source_.line("}");
        }
        source_.line("}");
        source_.line("}");
    }
};

}  // namespace

KernelText emit_stream(const GpuProblem& problem, const StreamSchedule& schedule) { return StreamEmitter(problem, schedule).emit(); }

KernelText emit_stream_cuts(const GpuProblem& problem, const StreamSchedule& schedule) {
    return StreamEmitter(problem, schedule).emit_cuts();
}

}  // namespace clebsch
