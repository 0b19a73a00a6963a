#include "schedule/gpu_table.hpp"

#include <algorithm>
#include <array>
#include <bit>

namespace clebsch {
namespace {

/// Whether a path has one letter at most, which is the whole of a factor's channels or none of it.
bool is_channelwise(const Path& path) {
    std::string letter;
    for (const Factor& factor : path.factors) {
        if (factor.channels.empty()) continue;
        if (factor.channels.size() != 1 || (!letter.empty() && letter != factor.channels)) return false;
        letter = factor.channels;
    }
    return true;
}

std::string why_not_tables(const GpuProblem& problem) {
    const Polynomial& polynomial = problem.polynomial;
    if (problem.ordered) return "its sums have no fixed order";
    for (std::size_t p = 0; p < polynomial.paths.size(); ++p) {
        if (!is_channelwise(polynomial.paths[p])) return "path " + std::to_string(p) + " is not channel-wise";
        if (polynomial.paths[p].factors.size() > TableSchedule::most_inputs + 1)
            return "path " + std::to_string(p) + " has more than " + std::to_string(TableSchedule::most_inputs) + " inputs";
    }
    if (polynomial.operands.size() > TableSchedule::most_operands)
        return std::to_string(polynomial.operands.size()) + " operands are more than " + std::to_string(TableSchedule::most_operands);
    if (polynomial.indices.size() > TableSchedule::most_indices)
        return std::to_string(polynomial.indices.size()) + " indices are more than " + std::to_string(TableSchedule::most_indices);
    return "";
}

std::int64_t channel_stride(const Operand& operand, const Segment& segment) {
    return operand.layout == Layout::mul_ir ? segment.components : 1;
}
std::int64_t component_stride(const Operand& operand, const Segment& segment) {
    return operand.layout == Layout::mul_ir ? 1 : segment.multiplicity;
}

/// Fills the tables; one instance per schedule.
class TableBuilder {
 public:
    explicit TableBuilder(const GpuProblem& problem) : problem_(problem) {}

    TableSchedule build() {
        TableSchedule schedule;
        GeneralSchedule general = schedule_general(problem_);
        schedule.general = general;
        schedule.general.jobs.clear();
        for (const GeneralJob& job : general.jobs)
            for (int c = 0; c < job.components; ++c) {
                GeneralJob one = job;
                one.first_component = job.first_component + c;
                one.components = 1;
                add_job(one, general.sums[static_cast<std::size_t>(job.operand)]);
                schedule.general.jobs.push_back(std::move(one));
            }
        for (const GpuNumber type : problem_.storage) part(TableParts::types).push_back(static_cast<std::int64_t>(type));
        std::vector<std::int64_t> chains;
        for (const std::vector<std::int64_t>& chain : chains_) {  // where each begins among the indices that follow, and how long it is
            chains.push_back(static_cast<std::int64_t>(2 * chains_.size() + part(TableParts::chains).size()));
            chains.push_back(std::ssize(chain));
            part(TableParts::chains).insert(part(TableParts::chains).end(), chain.begin(), chain.end());
        }
        part(TableParts::chains).insert(part(TableParts::chains).begin(), chains.begin(), chains.end());
        std::int64_t begin = std::ssize(parts_);
        for (const auto& table : parts_) {
            schedule.words.push_back(begin);
            begin += std::ssize(table);
        }
        for (const auto& table : parts_) schedule.words.insert(schedule.words.end(), table.begin(), table.end());
        return schedule;
    }

 private:
    const GpuProblem& problem_;
    std::array<std::vector<std::int64_t>, static_cast<std::size_t>(TableParts::count)> parts_;
    std::vector<std::vector<std::int64_t>> chains_;

    const Polynomial& polynomial() const { return problem_.polynomial; }
    std::vector<std::int64_t>& part(TableParts which) { return parts_[static_cast<std::size_t>(which)]; }
    const Operand& operand(const Factor& factor) const { return polynomial().operands[static_cast<std::size_t>(factor.operand)]; }
    const Segment& segment(const Factor& factor) const { return operand(factor).segments[static_cast<std::size_t>(factor.segment)]; }

    /// -1: the row itself; -2: the one row there is; else the number of a chain of indices.
    std::int64_t chain_of(const Operand& operand) {
        if (operand.rows.kind == Addressing::Kind::each) return -1;
        if (operand.rows.kind == Addressing::Kind::shared) return -2;
        std::vector<std::int64_t> chain;
        for (const std::string& index : operand.rows.via) chain.push_back(polynomial().find_index(index));
        const auto known = std::ranges::find(chains_, chain);
        if (known != chains_.end()) return known - chains_.begin();
        chains_.push_back(std::move(chain));
        return std::ssize(chains_) - 1;
    }

    void add_job(const GeneralJob& job, RowSum sum) {
        const Operand& output = polynomial().operands[static_cast<std::size_t>(job.operand)];
        const Segment& to = output.segments[static_cast<std::size_t>(job.segment)];
        constexpr std::int64_t path_words = 6;
        const std::int64_t first_path = std::ssize(part(TableParts::paths)) / path_words;
        std::int64_t paths = 0;
        for (const int p : job.paths)
            if (add_path(polynomial().paths[static_cast<std::size_t>(p)], job.first_component)) ++paths;
        const std::int64_t words[] = {job.operand,
                                      chain_of(output),
                                      static_cast<std::int64_t>(sum),
                                      output.offset(job.segment) + job.first_component * component_stride(output, to),
                                      channel_stride(output, to),
                                      job.channels,
                                      job.lanes,
                                      job.reduced ? 1 : 0,
                                      first_path,
                                      paths};
        part(TableParts::jobs).insert(part(TableParts::jobs).end(), std::begin(words), std::end(words));
    }

    /// A path's entries for one component of its output; false if there are none.
    bool add_path(const Path& path, int component) {
        const std::vector<CoefficientEntry> entries = entries_by_component(polynomial(), path)[static_cast<std::size_t>(component)];
        if (entries.empty()) return false;
        const std::size_t inputs = path.factors.size() - 1;
        std::int64_t contracted = -1;
        for (const auto& [letter, extent] : path.extents)
            if (path.output().channels.find(letter) == std::string::npos) contracted = extent;
        constexpr std::int64_t factor_words = 3;
        const std::int64_t words[] = {std::ssize(part(TableParts::factors)) / factor_words,
                                      static_cast<std::int64_t>(inputs),
                                      std::ssize(part(TableParts::values)),
                                      std::ssize(entries),
                                      std::ssize(part(TableParts::places)),
                                      contracted};
        part(TableParts::paths).insert(part(TableParts::paths).end(), std::begin(words), std::end(words));
        for (std::size_t f = 0; f < inputs; ++f) {
            const Factor& factor = path.factors[f];
            const std::int64_t stride = factor.channels.empty() ? 0 : channel_stride(operand(factor), segment(factor));
            for (const std::int64_t word : {std::int64_t{factor.operand}, chain_of(operand(factor)), stride})
                part(TableParts::factors).push_back(word);
        }
        for (const CoefficientEntry& entry : entries) {
            part(TableParts::values).push_back(std::bit_cast<std::int64_t>(static_cast<double>(entry.value)));
            for (std::size_t f = 0; f < inputs; ++f) {
                const Factor& factor = path.factors[f];
                part(TableParts::places)
                    .push_back(operand(factor).offset(factor.segment) +
                               entry.index[f] * component_stride(operand(factor), segment(factor)));
            }
        }
        return true;
    }
};

}  // namespace

std::optional<TableSchedule> schedule_table(const GpuProblem& problem, std::string& why_not) {
    why_not = why_not_tables(problem);
    if (!why_not.empty()) return std::nullopt;
    return TableBuilder(problem).build();
}

std::string explain(const TableSchedule& schedule, const GpuProblem& problem) {
    return "table: " + std::to_string(problem.polynomial.paths.size()) + " paths and their coefficients are read when the kernel runs (" +
           std::to_string(schedule.words.size() * sizeof(std::int64_t)) + " bytes); one owner per output number, " +
           std::to_string(schedule.general.jobs.size()) + " of them for a row and channel\n";
}

}  // namespace clebsch
