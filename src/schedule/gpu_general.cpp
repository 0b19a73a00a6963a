#include "schedule/gpu_general.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace clebsch {
namespace {

std::int64_t up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

/// The longest letter the output lacks: what the lanes of a warp may divide.
std::int64_t longest_contracted(const Path& path) {
    std::int64_t longest = 1;
    for (const auto& [letter, extent] : path.extents)
        if (path.output().channels.find(letter) == std::string::npos) longest = std::max(longest, extent);
    return longest;
}

bool is_empty(const Path& path) {
    return std::ranges::any_of(path.extents, [](const auto& extent) { return extent.second == 0; });
}

std::int64_t chunk_of(RowSum sum, std::int64_t rows, bool ordered) {
    if (sum == RowSum::own) return 1;
    return sum == RowSum::run && !ordered ? general_run(rows) : general_chunk(rows, ordered);
}

}  // namespace

std::vector<std::vector<CoefficientEntry>> entries_by_component(const Polynomial& polynomial, const Path& path) {
    const Factor& output = path.output();
    const Segment& segment =
        polynomial.operands[static_cast<std::size_t>(output.operand)].segments[static_cast<std::size_t>(output.segment)];
    std::vector<std::vector<CoefficientEntry>> result(static_cast<std::size_t>(segment.components));
    for (CoefficientEntry& entry : reduced_entries(path))
        if (entry.value != 0) result[static_cast<std::size_t>(entry.index.back())].push_back(std::move(entry));
    return result;
}

GeneralSchedule schedule_general(const GpuProblem& problem) {
    const Polynomial& polynomial = problem.polynomial;
    GeneralSchedule schedule;
    schedule.ordered = problem.ordered;
    for (std::size_t o = 0; o < polynomial.operands.size(); ++o) {
        const Operand& operand = polynomial.operands[o];
        const bool own = operand.role == Role::input || operand.rows.kind == Addressing::Kind::each || problem.is_message(o);
        schedule.sums.push_back(own ? RowSum::own : operand.rows.kind == Addressing::Kind::shared ? RowSum::single : RowSum::run);
    }
    for (std::size_t o = 0; o < polynomial.operands.size(); ++o) {
        const Operand& operand = polynomial.operands[o];
        if (operand.role != Role::output) continue;
        for (std::size_t s = 0; s < operand.segments.size(); ++s) {
            const Segment& segment = operand.segments[s];
            if (segment.size() == 0) continue;
            GeneralJob job{.operand = static_cast<int>(o), .segment = static_cast<int>(s), .paths = {}, .channels = segment.multiplicity};
            std::vector<std::size_t> terms(static_cast<std::size_t>(segment.components), 0);
            std::int64_t contracted = 1;
            for (std::size_t p = 0; p < polynomial.paths.size(); ++p) {
                const Path& path = polynomial.paths[p];
                if (path.output().operand != job.operand || path.output().segment != job.segment || is_empty(path)) continue;
                job.paths.push_back(static_cast<int>(p));
                contracted = std::max(contracted, longest_contracted(path));
                const auto entries = entries_by_component(polynomial, path);
                for (std::size_t c = 0; c < entries.size(); ++c) terms[c] += entries[c].size();
            }
            if (job.paths.empty() && schedule.sums[o] != RowSum::own && !schedule.ordered)
                continue;  // zero from the start, unless parts are added
            job.reduced = segment.multiplicity < 32 && contracted >= 32;
            while (!job.reduced && job.lanes < GeneralSchedule::threads && job.lanes < segment.multiplicity) job.lanes *= 2;
            if (job.reduced) job.lanes = 32;
            std::size_t sum = 0;
            for (int c = 0; c < segment.components; ++c) {
                if (job.components > 0 && sum + terms[static_cast<std::size_t>(c)] > GeneralSchedule::most_terms) {
                    schedule.jobs.push_back(job);
                    job.first_component = c;
                    job.components = 0;
                    sum = 0;
                }
                ++job.components;
                sum += terms[static_cast<std::size_t>(c)];
            }
            schedule.jobs.push_back(job);
        }
    }
    return schedule;
}

std::int64_t general_chunk(std::int64_t rows, bool ordered) {
    constexpr std::int64_t owners = 1024;
    const std::int64_t least = ordered ? GeneralSchedule::run_rows : 1;  // every chunk leaves parts to be added
    return std::max(least, up(rows, owners));
}

std::int64_t general_run(std::int64_t rows) {
    constexpr std::int64_t owners = 256;  // few rows: their time is that of one owner
    return std::clamp<std::int64_t>(up(rows, owners), 1, GeneralSchedule::run_rows);
}

LaunchShape general_shape(const GeneralSchedule& schedule, std::int64_t rows) {
    LaunchShape shape{.grid = {0, static_cast<std::int64_t>(schedule.jobs.size())}, .threads = GeneralSchedule::threads};
    for (const GeneralJob& job : schedule.jobs) {
        const std::int64_t parts = up(rows, chunk_of(schedule.sums[static_cast<std::size_t>(job.operand)], rows, schedule.ordered));
        const std::int64_t columns = job.reduced ? job.channels : up(job.channels, job.lanes);
        shape.grid[0] = std::max(shape.grid[0], up(parts * columns, GeneralSchedule::threads / job.lanes));
    }
    if (shape.grid[0] > 0x7fffffff || shape.grid[1] > 65535)
        throw Error(ErrorKind::unsupported, "a launch of " + std::to_string(shape.grid[0]) + " x " + std::to_string(shape.grid[1]) +
                                                " blocks is beyond what a GPU takes; divide the rows");
    return shape;
}

std::string explain(const GeneralSchedule& schedule, const GpuProblem& problem) {
    std::string text = "general: " + std::to_string(problem.polynomial.paths.size()) + " paths, " + std::to_string(schedule.jobs.size()) +
                       " jobs; one owner per output number, loops over letters\n";
    for (std::size_t o = 0; o < problem.polynomial.operands.size(); ++o) {
        const Operand& operand = problem.polynomial.operands[o];
        if (operand.role != Role::output) continue;
        const char* way = schedule.sums[o] == RowSum::own   ? "stored by its owner"
                          : schedule.ordered                ? "summed over chunks of rows, whose parts are then added in their order"
                          : schedule.sums[o] == RowSum::run ? "summed over runs of equal rows, then added atomically"
                                                            : "summed over chunks of rows, then added atomically";
        text += "output '" + operand.name + "': " + way + "\n";
    }
    return text;
}

}  // namespace clebsch
