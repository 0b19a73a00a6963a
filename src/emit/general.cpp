#include "emit/general.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include "base/error.hpp"
#include "emit/chain.hpp"
#include "emit/text.hpp"
#include "schedule/letters.hpp"

namespace clebsch {
namespace {

using Kind = KernelArgument::Kind;

std::string number(std::int64_t value) { return literal(value); }

/// Writes the kernel; one instance per kernel.
class GeneralEmitter {
 public:
    GeneralEmitter(const GpuProblem& problem, const GeneralSchedule& schedule) : problem_(problem), schedule_(schedule) {
        for (const Operand& operand : polynomial().operands) {
            if (operand.rows.kind != Addressing::Kind::indexed) continue;
            if (std::ranges::find(chains_, operand.rows.via) == chains_.end()) chains_.push_back(operand.rows.via);
        }
    }

    KernelText emit() {
        KernelText kernel{.name = "clebsch_general", .text = {}, .arguments = arguments()};
        source_.line("// General kernel: every output number has one owner, which walks rows and contracted letters.");
        write_jobs(kernel);
        begin_kernel(source_, kernel.name, number(GeneralSchedule::threads));
        source_.line("switch (blockIdx.y) {");
        for (std::size_t j = 0; j < schedule_.jobs.size(); ++j) {
            const std::string n = std::to_string(j);
            source_.line("case " + n + ": job_" + n + "(a, static_cast<i64>(blockIdx.x) * " +
                         number(GeneralSchedule::threads / schedule_.jobs[j].lanes) + " + threadIdx.x / " +
                         number(schedule_.jobs[j].lanes) + "); break;");
        }
        source_.line("}");
        source_.line("}");
        kernel.text = tables_.text() + source_.text();
        return kernel;
    }

    KernelText emit_link(std::int64_t rows_of_block) {
        KernelText link{.name = "run", .text = {}, .arguments = arguments()};
        write_jobs(link);
        source_.line("static __device__ __forceinline__ void run(const Arguments& a, i64 begin, i64 end) {");
        std::int64_t first = 0;  // thread of the next job: each goes on where the one before ends, so that the same warp does not do all
        for (std::size_t j = 0; j < schedule_.jobs.size(); ++j) {
            const GeneralJob& job = schedule_.jobs[j];
            const std::string columns = number(columns_of(job)), lanes = number(job.lanes);
            first = (first + job.lanes - 1) / job.lanes * job.lanes % chain_threads;
            const std::string thread =
                first == 0 ? "threadIdx.x" : "(threadIdx.x + " + number(chain_threads - first) + ") % " + number(chain_threads);
            source_.line("for (i64 unit = begin * " + columns + " + " + thread + " / " + lanes + "; unit < end * " + columns +
                         "; unit += " + number(chain_threads / job.lanes) + ") job_" + std::to_string(j) + "(a, unit);");
            first += rows_of_block * columns_of(job) * job.lanes;
        }
        source_.line("}");
        link.text = tables_.text() + source_.text();
        return link;
    }

 private:
    const GpuProblem& problem_;
    const GeneralSchedule& schedule_;
    std::vector<std::vector<std::string>> chains_;  // of indices, each once
    SourceText source_, tables_;
    int table_count_ = 0;

    const Polynomial& polynomial() const { return problem_.polynomial; }
    const Operand& operand(int o) const { return polynomial().operands[static_cast<std::size_t>(o)]; }
    std::string type() const { return type_name(problem_.compute); }
    std::string name(Kind kind, int which) const { return "a." + argument_name(problem_, {kind, which}); }
    int chain_of(const Operand& o) const {
        if (o.rows.kind != Addressing::Kind::indexed) return -1;
        return static_cast<int>(std::ranges::find(chains_, o.rows.via) - chains_.begin());
    }
    bool summed(int o) const { return schedule_.sums[static_cast<std::size_t>(o)] != RowSum::own; }

    std::vector<KernelArgument> arguments() const {
        std::vector<KernelArgument> list;
        for (int o = 0; o < static_cast<int>(polynomial().operands.size()); ++o) {
            const bool summed_here = operand(o).role == Role::output && summed(o), sums = summed_here && !problem_.ordered;
            list.push_back({sums ? Kind::sums : Kind::data, o});
            list.push_back({sums ? Kind::sums_stride : Kind::stride, o});
            if (summed_here && problem_.ordered) list.push_back({Kind::parts, o});
        }
        for (int i = 0; i < static_cast<int>(polynomial().indices.size()); ++i)
            for (const Kind kind : {Kind::index, Kind::index_rows, Kind::index_wide}) list.push_back({kind, i});
        for (const Kind kind : {Kind::rows, Kind::chunk, Kind::reach, Kind::error}) list.push_back({kind, -1});
        constexpr std::size_t most = 4096 / 8;
        if (list.size() > most)
            throw Error(ErrorKind::unsupported, "a polynomial with " + std::to_string(polynomial().operands.size()) +
                                                    " operands is more than one GPU kernel takes");
        return list;
    }

    /// Row of an operand as an expression: "row", "0" or "at_2".
    std::string row_of(const Operand& o) const {
        switch (o.rows.kind) {
            case Addressing::Kind::each:
                return "row";
            case Addressing::Kind::shared:
                return "0";
            case Addressing::Kind::indexed:
                break;
        }
        return "at_" + std::to_string(chain_of(o));
    }

    void write_chain(int chain) {
        const std::string row = look_up(problem_, chains_[static_cast<std::size_t>(chain)], "row");
        source_.line("const i64 at_" + std::to_string(chain) + " = " + row + ";");
    }

    std::string letter(int path, char name) const { return "p" + std::to_string(path) + "_" + name; }

    /// constant + sum of linear and triangular terms; `path` < 0: letters by their bare name.
    std::string place_text(const Path& path, int number_of_path, const Factor& factor) const {
        const LetterPlace place = place_of(path, factor);
        const std::int64_t channel_stride = stride_of_channel(factor);
        std::vector<std::string> parts;
        const std::int64_t base = operand(factor.operand).offset(factor.segment) + place.constant * channel_stride;
        if (base != 0) parts.push_back(number(base));
        for (int l = 0; l < 26; ++l) {
            const std::string v = letter(number_of_path, static_cast<char>('a' + l));
            if (place.linear[l] != 0) parts.push_back(number(place.linear[l] * channel_stride) + " * " + v);
            if (place.triangular[l] != 0)
                parts.push_back(number(place.triangular[l] * channel_stride) + " * (" + v + " * (" + v + " + 1) / 2)");
        }
        return parts.empty() ? "0" : joined(parts, " + ");
    }
    const Segment& segment_of(const Factor& factor) const {
        return operand(factor.operand).segments[static_cast<std::size_t>(factor.segment)];
    }
    std::int64_t stride_of_channel(const Factor& factor) const {
        return operand(factor.operand).layout == Layout::mul_ir ? segment_of(factor).components : 1;
    }
    std::int64_t stride_of_component(const Factor& factor) const {
        return operand(factor.operand).layout == Layout::mul_ir ? 1 : segment_of(factor).multiplicity;
    }

    static std::int64_t columns_of(const GeneralJob& job) {
        return job.reduced ? job.channels : (job.channels + job.lanes - 1) / job.lanes;
    }

    void write_jobs(const KernelText& kernel) {
        write_arguments(source_, problem_, kernel.arguments);
        for (std::size_t j = 0; j < schedule_.jobs.size(); ++j) write_job(j);
        source_.blank();
    }

    /// A function of the arguments and of which owner of the job this thread is, or its warp.
    void write_job(std::size_t j) {
        const GeneralJob& job = schedule_.jobs[j];
        const Operand& output = operand(job.operand);
        const RowSum sum = schedule_.sums[static_cast<std::size_t>(job.operand)];
        source_.blank();
        source_.line("// " + output.name + "." + std::to_string(job.segment) + ", components " + std::to_string(job.first_component) +
                     " to " + std::to_string(job.first_component + job.components - 1) + ", " + std::to_string(job.channels) +
                     " channels, " + std::to_string(job.paths.size()) + " paths");
        source_.line("static __device__ __noinline__ void job_" + std::to_string(j) + "(const Arguments& a, i64 unit) {");
        source_.line("const int lane = threadIdx.x % " + number(job.lanes) + ";");
        const std::int64_t columns = columns_of(job);
        source_.line("const i64 part = unit / " + number(columns) + ";");
        source_.line("const i64 channel = unit % " + number(columns) + (job.reduced ? ";" : " * " + number(job.lanes) + " + lane;"));
        const std::string chunk = sum == RowSum::own ? "1" : sum == RowSum::run && !problem_.ordered ? "a.reach" : "a.chunk";
        source_.line("const i64 begin = part * " + chunk + ";");
        source_.line("if (begin >= a.rows || channel >= " + number(job.channels) + ") return;");
        source_.line("const i64 end = begin + " + chunk + " < a.rows ? begin + " + chunk + " : a.rows;");
        for (const int p : job.paths) write_output_letters(p);
        for (int c = 0; c < job.components; ++c) source_.line(type() + " sum_" + std::to_string(c) + " = 0;");
        if (sum == RowSum::run) source_.line("i64 target = -1;");
        // Sums in a fixed order: what an owner begins or ends with may go on with its neighbours, so it is a part; the rest is complete.
        if (sum == RowSum::run && problem_.ordered) source_.line("bool is_first = true;");
        source_.line("for (i64 row = begin; row < end; ++row) {");
        std::set<int> chains;
        if (sum == RowSum::run) chains.insert(chain_of(output));
        for (const int p : job.paths)
            for (const Factor& factor : polynomial().paths[static_cast<std::size_t>(p)].factors)
                if (const int chain = chain_of(operand(factor.operand)); chain >= 0) chains.insert(chain);
        for (const int chain : chains) write_chain(chain);
        if (sum == RowSum::run) {
            const std::string at = row_of(output);
            source_.line("if (" + at + " < 0) continue;");
            source_.line("if (" + at + " != target) {");
            if (problem_.ordered) source_.line("if (" + at + " < target) *a.error = 1;");
            source_.line("if (target >= 0) {");
            if (problem_.ordered) {
                write_lane_sums(job);
                source_.line("if (is_first) {");
                write_numbers(job, part_row(job, "2 * part"));
                source_.line("} else {");
                write_numbers(job, stored_row(job, "target"));
                source_.line("}");
                source_.line("is_first = false;");
            } else {
                write_flush(job, sum, "target");
            }
            source_.line("}");
            source_.line("target = " + at + ";");
            for (int c = 0; c < job.components; ++c) source_.line("sum_" + std::to_string(c) + " = 0;");
            source_.line("}");
        }
        for (const int p : job.paths) write_path(job, p);
        if (sum == RowSum::own) write_flush(job, sum, "row");
        source_.line("}");
        if (sum == RowSum::run) {
            source_.line("if (target < 0) return;");
            write_flush(job, sum, "target");
        }
        if (sum == RowSum::single) write_flush(job, sum, "0");
        source_.line("}");
    }

    /// The letters of a path that the owner's flat channel gives.
    void write_output_letters(int p) {
        const Path& path = polynomial().paths[static_cast<std::size_t>(p)];
        const std::vector<ChannelGroup> groups = parse_channels(path.output().channels);
        std::int64_t below = 1;
        for (auto group = groups.rbegin(); group != groups.rend(); ++group) {
            const std::int64_t n = path.extent(group->first), count = group->restricted() ? n * (n - 1) / 2 : n;
            const std::string digit = "channel / " + number(below) + " % " + number(count);
            if (group->restricted()) {
                const std::string u = letter(p, group->first), v = letter(p, group->second);
                source_.line("i64 " + u + ", " + v + ";");
                source_.line("unpair(" + digit + ", " + number(n) + ", &" + u + ", &" + v + ");");
            } else {
                source_.line("const i64 " + letter(p, group->first) + " = " + digit + ";");
            }
            below *= count;
        }
    }

    /// Where a row of numbers goes: its address as an expression, and by which function.
    struct Destination {
        std::string row, put;
    };
    Destination stored_row(const GeneralJob& job, const std::string& row) const {
        return {name(Kind::data, job.operand) + " + " + row + " * " + name(Kind::stride, job.operand), "store("};
    }
    Destination added_row(const GeneralJob& job, const std::string& row) const {
        return {name(Kind::sums, job.operand) + " + " + row + " * " + name(Kind::sums_stride, job.operand), "add("};
    }
    Destination part_row(const GeneralJob& job, const std::string& part) const {
        return {name(Kind::parts, job.operand) + " + (" + part + ") * " + number(operand(job.operand).size()), "store("};
    }

    /// The sums of an owner that is a warp.
    void write_lane_sums(const GeneralJob& job) {
        if (!job.reduced) return;
        for (int c = 0; c < job.components; ++c) source_.line("sum_" + std::to_string(c) + " = warp_sum(sum_" + std::to_string(c) + ");");
    }

    void write_numbers(const GeneralJob& job, const Destination& to) {
        const Operand& output = operand(job.operand);
        const Segment& segment = output.segments[static_cast<std::size_t>(job.segment)];
        const bool by_channel = output.layout == Layout::mul_ir;
        const std::int64_t channel = by_channel ? segment.components : 1, component = by_channel ? 1 : segment.multiplicity;
        if (job.reduced) source_.line("if (lane == 0) {");
        for (int c = 0; c < job.components; ++c)
            source_.line(to.put + to.row + " + " + number(output.offset(job.segment) + (job.first_component + c) * component) +
                         " + channel * " + number(channel) + ", sum_" + std::to_string(c) + ");");
        if (job.reduced) source_.line("}");
    }

    /// An owner's last sums, and those of every row where it owns rows.
    void write_flush(const GeneralJob& job, RowSum sum, const std::string& row) {
        write_lane_sums(job);
        if (sum == RowSum::own) write_numbers(job, stored_row(job, row));
        else if (!problem_.ordered) write_numbers(job, added_row(job, row));
        else write_numbers(job, part_row(job, sum == RowSum::run ? "2 * part + (is_first ? 0 : 1)" : "2 * part"));
    }

    void write_path(const GeneralJob& job, int p) {
        const Path& path = polynomial().paths[static_cast<std::size_t>(p)];
        const std::size_t inputs = path.factors.size() - 1;
        std::vector<std::string> present;
        for (std::size_t f = 0; f < inputs; ++f) {
            const std::string row = row_of(operand(path.factors[f].operand));
            const std::string test = row + " >= 0";
            const bool known = summed(job.operand) && row == row_of(operand(job.operand));
            if (row.starts_with("at_") && !known && std::ranges::find(present, test) == present.end()) present.push_back(test);
        }
        // An output through the same indices is present already (run); for others its row always is.
        source_.line("// path " + std::to_string(p));
        source_.line(present.empty() ? "{" : "if (" + joined(present, " && ") + ") {");
        int loops = 0;
        for (const std::string& text : loop_headers(job, p)) {
            if (job.reduced) source_.line("#pragma unroll 4  // loads need not wait for one another");
            source_.line(text);
            ++loops;
        }
        write_restrictions(path, p);
        for (std::size_t f = 0; f < inputs; ++f) {
            const Factor& factor = path.factors[f];
            source_.line("const auto* f" + std::to_string(f) + " = " + name(Kind::data, factor.operand) + " + " +
                         row_of(operand(factor.operand)) + " * " + name(Kind::stride, factor.operand) + " + " +
                         place_text(path, p, factor) + ";");
        }
        auto entries = entries_by_component(polynomial(), path);
        std::size_t terms = 0;
        for (int c = 0; c < job.components; ++c)
            terms += entries[static_cast<std::size_t>(job.first_component) + static_cast<std::size_t>(c)].size();
        if (terms <= static_cast<std::size_t>(GeneralSchedule::most_terms)) write_terms(job, path, entries);
        else
            for (int c = 0; c < job.components; ++c)
                write_table(path, c, entries[static_cast<std::size_t>(job.first_component) + static_cast<std::size_t>(c)]);
        for (int l = 0; l < loops + 2; ++l) source_.line("}");
    }

    /// Loops over the letters the output lacks, the longest innermost, divided among lanes if the job says so.
    std::vector<std::string> loop_headers(const GeneralJob& job, int p) const {
        const Path& path = polynomial().paths[static_cast<std::size_t>(p)];
        std::vector<std::pair<std::int64_t, char>> letters;
        for (const auto& [name_of_letter, extent] : path.extents)
            if (path.output().channels.find(name_of_letter) == std::string::npos) letters.emplace_back(extent, name_of_letter);
        std::ranges::stable_sort(letters, {}, [](const auto& pair) { return pair.first; });
        std::vector<std::string> headers;
        if (job.reduced && letters.empty()) headers.push_back("if (lane == 0) {");
        for (std::size_t i = 0; i < letters.size(); ++i) {
            const bool divided = job.reduced && i + 1 == letters.size();
            const std::string v = letter(p, letters[i].second);
            headers.push_back("for (i64 " + v + (divided ? " = lane; " : " = 0; ") + v + " < " + number(letters[i].first) + "; " + v +
                              (divided ? " += 32) {" : " += 1) {"));
        }
        return headers;
    }

    void write_restrictions(const Path& path, int p) {
        const std::vector<ChannelGroup> given = parse_channels(path.output().channels);
        for (const ChannelGroup& pair : restrictions(path))
            if (std::ranges::find(given, pair) == given.end())
                source_.line("if (" + letter(p, pair.first) + " < " + letter(p, pair.second) + ")");
        source_.line("{");
    }

    void write_terms(const GeneralJob& job, const Path& path, const std::vector<std::vector<CoefficientEntry>>& entries) {
        const std::size_t inputs = path.factors.size() - 1;
        std::set<std::pair<std::size_t, int>> loaded;
        for (int c = 0; c < job.components; ++c)
            for (const CoefficientEntry& entry : entries[static_cast<std::size_t>(job.first_component) + static_cast<std::size_t>(c)])
                for (std::size_t f = 0; f < inputs; ++f) loaded.emplace(f, entry.index[f]);
        for (const auto& [f, component] : loaded)
            source_.line("const " + type() + " v" + std::to_string(f) + "_" + std::to_string(component) + " = number<" + type() + ">(f" +
                         std::to_string(f) + "[" + number(component * stride_of_component(path.factors[f])) + "]);");
        // Factors of one component stand in front of the sum.
        std::vector<std::size_t> common, rest;
        for (std::size_t f = 0; f < inputs; ++f) (segment_of(path.factors[f]).components == 1 ? common : rest).push_back(f);
        std::string front;
        for (const std::size_t f : common) front += "v" + std::to_string(f) + "_0 * ";
        for (int c = 0; c < job.components; ++c) {
            std::vector<std::string> parts;
            for (const CoefficientEntry& entry : entries[static_cast<std::size_t>(job.first_component) + static_cast<std::size_t>(c)]) {
                std::string product = literal(entry.value, problem_.compute);
                for (const std::size_t f : rest) product += " * v" + std::to_string(f) + "_" + std::to_string(entry.index[f]);
                parts.push_back(product);
            }
            if (!parts.empty()) source_.line("sum_" + std::to_string(c) + " += " + front + "(" + joined(parts, " + ") + ");");
        }
    }

    void write_table(const Path& path, int c, const std::vector<CoefficientEntry>& entries) {
        if (entries.empty()) return;
        const std::size_t inputs = path.factors.size() - 1;
        const std::string n = std::to_string(table_count_++), count = std::to_string(entries.size());
        std::string values, offsets;
        for (const CoefficientEntry& entry : entries) {
            values += literal(entry.value, problem_.compute) + ",";
            for (std::size_t f = 0; f < inputs; ++f) offsets += number(entry.index[f] * stride_of_component(path.factors[f])) + ",";
        }
        tables_.line("static __device__ const " + type() + " value_" + n + "[" + count + "] = {" + values + "};");
        if (inputs > 0)
            tables_.line("static __device__ const int place_" + n + "[" + std::to_string(entries.size() * inputs) + "] = {" + offsets +
                         "};");
        source_.line("for (int entry = 0; entry < " + count + "; ++entry) {");
        std::string product = "value_" + n + "[entry]";
        for (std::size_t f = 0; f < inputs; ++f)
            product += " * number<" + type() + ">(f" + std::to_string(f) + "[place_" + n + "[entry * " + std::to_string(inputs) + " + " +
                       std::to_string(f) + "]])";
        source_.line("sum_" + std::to_string(c) + " += " + product + ";");
        source_.line("}");
    }
};

}  // namespace

KernelText emit_general(const GpuProblem& problem, const GeneralSchedule& schedule) { return GeneralEmitter(problem, schedule).emit(); }

KernelText emit_general_link(const GpuProblem& problem, const GeneralSchedule& schedule, std::int64_t rows_of_block) {
    return GeneralEmitter(problem, schedule).emit_link(rows_of_block);
}

KernelText emit_rounding(const GpuProblem& problem, int operand) {
    KernelText kernel{.name = "clebsch_round",
                      .text = {},
                      .arguments = {{Kind::sums, operand},
                                    {Kind::sums_stride, operand},
                                    {Kind::data, operand},
                                    {Kind::stride, operand},
                                    {Kind::output_rows, operand}}};
    const auto name = [&](Kind kind) { return "a." + argument_name(problem, {kind, operand}); };
    const std::int64_t size = problem.polynomial.operands[static_cast<std::size_t>(operand)].size();
    SourceText source;
    source.line("// Sums in the compute type become the output as it is stored.");
    write_arguments(source, problem, kernel.arguments);
    begin_kernel(source, kernel.name, "256");
    source.line("const i64 count = " + name(Kind::output_rows) + " * " + literal(size) + ";");
    source.line("for (i64 i = static_cast<i64>(blockIdx.x) * 256 + threadIdx.x; i < count; i += static_cast<i64>(gridDim.x) * 256) {");
    source.line("const i64 row = i / " + literal(size) + ", column = i % " + literal(size) + ";");
    source.line("store(" + name(Kind::data) + " + row * " + name(Kind::stride) + " + column, " + name(Kind::sums) + "[row * " +
                name(Kind::sums_stride) + " + column]);");
    source.line("}");
    source.line("}");
    kernel.text = source.text();
    return kernel;
}

}  // namespace clebsch
