#include "schedule/gpu_stream.hpp"

#include <algorithm>
#include <map>
#include <set>

namespace clebsch {
namespace {

int size_of(GpuNumber type) { return type == GpuNumber::float64 ? 8 : type == GpuNumber::float32 ? 4 : 2; }
int up(int value, int multiple) { return (value + multiple - 1) / multiple * multiple; }

constexpr int most_channels = 256;      // of a block
constexpr int most_live = 152;          // registers that may hold numbers through the loop: 168 leave room for 3 blocks of 4 warps
constexpr int bookkeeping_bytes = 640;  // of a team: barriers and row descriptions

/// Why a path is not for this schedule; empty if it is.
std::string obstacle(const Path& path) {
    if (path.extents.size() != 1) return "a path has " + std::to_string(path.extents.size()) + " channel letters, not one";
    const std::string letter(1, path.extents.front().first);
    if (path.extents.front().second == 0) return "a path has no channels";
    for (const Factor& factor : path.factors)
        if (!factor.channels.empty() && factor.channels != letter) return "a path mixes channels";
    if (path.coefficients.rank() > 3) return "a path's coefficients have " + std::to_string(path.coefficients.rank()) + " axes";
    return {};
}

/// Which factor stands on which of three axes. Couplings say so themselves and derivatives keep it; for coefficients that were simplified
/// to fewer axes an operand takes the axis it has elsewhere.
bool choose_axes(const Polynomial& polynomial, std::vector<std::array<int, 3>>& axes, std::string& why_not) {
    std::map<int, int> usual;  // operand -> axis
    for (const Path& path : polynomial.paths)
        if (path.coefficients.rank() == 3)
            for (const Factor& factor : path.factors)
                if (factor.axis >= 0) usual.emplace(factor.operand, factor.axis);
    for (const Path& path : polynomial.paths) {
        std::array<int, 3> chosen{-1, -1, -1};
        for (int f = 0; f < static_cast<int>(path.factors.size()); ++f) {
            const Factor& factor = path.factors[static_cast<std::size_t>(f)];
            int axis = factor.axis;
            if (path.coefficients.rank() < 3) {
                const auto found = usual.find(factor.operand);
                axis = found == usual.end() ? -1 : found->second;
                if (axis >= 0 && chosen[static_cast<std::size_t>(axis)] >= 0 && factor.axis < 0) axis = -1;  // stays in front
                if (axis < 0 && factor.axis >= 0) return why_not = "an operand's axis is not known", false;
            }
            if (axis < 0) continue;
            int& place = chosen[static_cast<std::size_t>(axis)];
            if (place >= 0) return why_not = "two factors of a path stand on one axis", false;
            place = f;
        }
        axes.push_back(chosen);
    }
    return true;
}

bool has_channels(const Polynomial& polynomial, int operand) {
    for (const Path& path : polynomial.paths)
        for (const Factor& factor : path.factors)
            if (factor.operand == operand && !factor.channels.empty()) return true;
    return false;
}

/// Numbers of one channel that a group keeps in registers through the loop (constants, sums) or through a row (scattered, reduced).
int live_numbers(const GpuProblem& problem, const StreamSchedule& schedule, const std::vector<int>& paths) {
    std::set<std::pair<int, int>> segments;
    for (const int p : paths)
        for (const Factor& factor : problem.polynomial.paths[static_cast<std::size_t>(p)].factors) {
            const StreamWay way = schedule.operands[static_cast<std::size_t>(factor.operand)].way;
            if (way != StreamWay::staged && way != StreamWay::stored) segments.emplace(factor.operand, factor.segment);
        }
    int count = 0;
    for (const auto& [operand, segment] : segments)
        count += problem.polynomial.operands[static_cast<std::size_t>(operand)].segments[static_cast<std::size_t>(segment)].components;
    return count * (problem.compute == GpuNumber::float64 ? 2 : 1);
}

/// Divides paths into `count` groups. Paths that share a stationary output segment stay together, so that each sum has one owner; heavy
/// bundles are dealt first, each to the group with the least work.
std::vector<std::vector<int>> divide(const GpuProblem& problem, const StreamSchedule& schedule, std::size_t count) {
    const std::vector<Path>& paths = problem.polynomial.paths;
    std::map<std::pair<int, int>, std::pair<std::size_t, std::vector<int>>> bundles;  // by the segment on the third axis
    for (int p = 0; p < static_cast<int>(paths.size()); ++p) {
        const Path& path = paths[static_cast<std::size_t>(p)];
        std::pair<int, int> key{-1, p};
        if (const int third = schedule.axes[static_cast<std::size_t>(p)][2]; third >= 0)
            key = {-1, path.factors[static_cast<std::size_t>(third)].segment};
        const Factor& output = path.output();
        if (schedule.operands[static_cast<std::size_t>(output.operand)].way == StreamWay::accumulated) key = {-1, output.segment};
        auto& [cost, members] = bundles[key];
        cost += path.coefficients.entries().size() + 4;
        members.push_back(p);
    }
    std::vector<std::pair<std::size_t, std::vector<int>>> order;
    for (auto& [key, bundle] : bundles) order.push_back(std::move(bundle));
    std::ranges::stable_sort(order, std::greater<>{}, [](const auto& bundle) { return bundle.first; });
    std::vector<std::vector<int>> groups(count);
    std::vector<std::size_t> work(count, 0);
    for (const auto& [cost, members] : order) {
        const auto least = static_cast<std::size_t>(std::ranges::min_element(work) - work.begin());
        work[least] += cost;
        groups[least].insert(groups[least].end(), members.begin(), members.end());
    }
    std::erase_if(groups, [](const auto& group) { return group.empty(); });
    for (auto& group : groups) std::ranges::sort(group);
    return groups;
}

/// The sorted chain of indices whose row stays: the one that most numbers go through.
std::vector<std::string> stationary_chain(const Polynomial& polynomial) {
    std::map<std::vector<std::string>, std::int64_t> sizes;
    for (const Operand& operand : polynomial.operands)
        if (operand.rows.kind == Addressing::Kind::indexed && polynomial.is_sorted(operand)) sizes[operand.rows.via] += operand.size() + 1;
    std::vector<std::string> best;
    std::int64_t most = 0;
    for (const auto& [chain, size] : sizes)
        if (size > most) {
            most = size;
            best = chain;
        }
    return best;
}

bool choose_ways(const GpuProblem& problem, StreamSchedule& schedule, std::string& why_not) {
    const Polynomial& polynomial = problem.polynomial;
    std::set<int> used;
    std::set<std::vector<std::string>> chains;
    for (const Path& path : polynomial.paths)
        for (const Factor& factor : path.factors) {
            used.insert(factor.operand);
            const Operand& operand = polynomial.operands[static_cast<std::size_t>(factor.operand)];
            if (operand.rows.kind == Addressing::Kind::indexed) chains.insert(operand.rows.via);
        }
    for (const Path& path : polynomial.paths) {
        std::set<std::vector<std::string>> own;
        for (const Factor& factor : path.factors) {
            const Operand& operand = polynomial.operands[static_cast<std::size_t>(factor.operand)];
            if (operand.rows.kind == Addressing::Kind::indexed) own.insert(operand.rows.via);
        }
        if (own != chains) return why_not = "paths differ in the indices they use", false;
    }
    for (int o = 0; o < static_cast<int>(polynomial.operands.size()); ++o) {
        const Operand& operand = polynomial.operands[static_cast<std::size_t>(o)];
        StreamOperand result;
        const bool channels = has_channels(polynomial, o);
        const bool stationary = operand.rows.kind == Addressing::Kind::indexed && operand.rows.via == schedule.stationary;
        if (operand.role == Role::input) {
            if (!used.contains(o)) result.way = StreamWay::unused;
            else if (stationary || operand.rows.kind == Addressing::Kind::shared) result.way = StreamWay::constant;
            else result.way = StreamWay::staged;
            result.kept = operand.rows.kind == Addressing::Kind::indexed;
        } else {
            std::set<std::pair<int, bool>> segments;
            for (const Path& path : polynomial.paths)
                if (path.output().operand == o) segments.emplace(path.output().segment, !path.output().channels.empty());
            if (segments.size() != operand.segments.size())
                return why_not = "output '" + operand.name + "' has segments no path writes", false;
            if (operand.rows.kind == Addressing::Kind::shared) return why_not = "output '" + operand.name + "' has one row for all", false;
            if (operand.rows.kind == Addressing::Kind::each) result.way = channels ? StreamWay::stored : StreamWay::reduced;
            else if (!channels) return why_not = "output '" + operand.name + "' is summed over rows and channels", false;
            else result.way = stationary ? StreamWay::accumulated : StreamWay::scattered;
            for (const auto& [segment, with_channels] : segments)
                if (with_channels != channels)
                    return why_not = "output '" + operand.name + "' has segments with and without channels", false;
        }
        // A channel-free segment of several channels never occurs: without a letter a factor has one.
        schedule.operands.push_back(result);
    }
    return true;
}

void place(const GpuProblem& problem, StreamSchedule& schedule) {
    int bytes = 0;
    for (std::size_t o = 0; o < schedule.operands.size(); ++o) {
        StreamOperand& operand = schedule.operands[o];
        const int size = static_cast<int>(problem.polynomial.operands[o].size());
        if (operand.way == StreamWay::staged) {
            operand.stage_offset = bytes;
            bytes = up(bytes + size * size_of(problem.storage[o]), 128);
        } else if (operand.way == StreamWay::reduced) {
            operand.stage_offset = schedule.partial_numbers;
            schedule.partial_numbers += size;
        } else if (operand.way != StreamWay::constant && problem.polynomial.operands[o].layout == Layout::mul_ir) {
            for (const Segment& segment : problem.polynomial.operands[o].segments)
                if (problem.polynomial.operands[o].role == Role::output && segment.components > 1)
                    schedule.turn_numbers = std::max(schedule.turn_numbers, 32 * segment.components);
        }
    }
    schedule.stage_bytes = bytes;
}

/// Whether two groups write one segment that is stored from registers.
bool stored_twice(const GpuProblem& problem, const StreamSchedule& schedule) {
    std::map<std::pair<int, int>, std::size_t> owner;
    for (std::size_t g = 0; g < schedule.groups.size(); ++g)
        for (const int p : schedule.groups[g]) {
            const Factor& output = problem.polynomial.paths[static_cast<std::size_t>(p)].output();
            const StreamWay way = schedule.operands[static_cast<std::size_t>(output.operand)].way;
            if (way != StreamWay::stored && way != StreamWay::accumulated) continue;
            if (owner.emplace(std::pair{output.operand, output.segment}, g).first->second != g) return true;
        }
    return false;
}

/// Registers a thread may have when `blocks` blocks share a multiprocessor: each of its four schedulers has a quarter of the registers and
/// takes whole warps.
int register_cap(const GpuProblem& problem, const StreamSchedule& schedule, int blocks) {
    const int warps = schedule.threads() / 32 * blocks, per_scheduler = (warps + 3) / 4;
    return std::min(255, problem.target.registers / 4 / (32 * per_scheduler) / 8 * 8);
}

/// One block with `per_scheduler` consumer warps on each scheduler; its producers give registers to the consumers. False if teams do not
/// divide them.
bool form_teams(const GpuProblem& problem, StreamSchedule& schedule, int per_scheduler) {
    if (4 * per_scheduler % schedule.consumer_warps() != 0) return false;
    schedule.teams = 4 * per_scheduler / schedule.consumer_warps();
    schedule.producer_warps = (schedule.teams + 3) / 4 * 4;
    schedule.producer_registers = schedule.producer_warps == 4 ? 56 : 40;  // beyond that they only take from consumers
    schedule.blocks = 1;
    if (schedule.threads() > 1024) return false;
    const int launched = std::min(248, problem.target.registers / schedule.threads() / 8 * 8) * schedule.threads();
    const int left = launched - schedule.producer_warps * 32 * schedule.producer_registers;
    schedule.consumer_registers = std::min(240, left / (128 * per_scheduler) / 8 * 8);
    return true;
}

/// What a group needs besides the numbers that live through the loop: addresses, products, and the row's own numbers.
int working_registers(const GpuProblem& problem, const StreamSchedule& schedule) {
    std::set<int> operands;  // staged, on an axis
    for (std::size_t p = 0; p < schedule.axes.size(); ++p)
        for (const int factor : schedule.axes[p])
            if (factor >= 0) {
                const int operand = problem.polynomial.paths[p].factors[static_cast<std::size_t>(factor)].operand;
                if (schedule.operands[static_cast<std::size_t>(operand)].way == StreamWay::staged) operands.insert(operand);
            }
    constexpr int least = 36, for_another = 16;
    const int more = std::max(0, static_cast<int>(operands.size()) - 2) * for_another;
    return (least + more) * (problem.compute == GpuNumber::float64 ? 3 : 2) / 2;
}

/// As many stages as shared memory holds; false if they are too few to hide the way from memory.
bool fill_stages(const GpuProblem& problem, StreamSchedule& schedule) {
    constexpr int most_stages = 8;
    const int number = size_of(problem.compute), parts = schedule.blocks * schedule.teams;
    const int per_stage = schedule.stage_bytes + up(schedule.partial_numbers * schedule.consumer_warps() * number, 128);
    const int turns = schedule.turn_numbers * schedule.consumer_warps() * number;
    const int stages = ((problem.target.shared_bytes / parts - bookkeeping_bytes) / 128 * 128 - turns) / std::max(per_stage, 1);
    if (stages < (parts > 1 ? 3 : 2)) return false;
    schedule.stages = std::min(stages, most_stages);
    schedule.team_bytes = up(schedule.stages * per_stage + turns, 128);
    return true;
}

bool fit_blocks(const GpuProblem& problem, StreamSchedule& schedule, int needed) {
    schedule.teams = schedule.producer_warps = 1;
    schedule.producer_registers = schedule.consumer_registers = 0;
    constexpr int most_blocks = 4;
    for (schedule.blocks = problem.blocks > 0 ? problem.blocks : most_blocks; schedule.blocks >= 1; --schedule.blocks)
        if ((problem.blocks > 0 || register_cap(problem, schedule, schedule.blocks) >= needed) && fill_stages(problem, schedule))
            return true;
    return false;
}

bool fit_teams(const GpuProblem& problem, StreamSchedule& schedule, int needed) {
    constexpr int most_warps = 4;
    for (int warps = problem.team_warps > 0 ? problem.team_warps : most_warps; warps >= 1; --warps)
        if (form_teams(problem, schedule, warps) && (schedule.consumer_registers >= needed || problem.team_warps > 0) &&
            fill_stages(problem, schedule))
            return true;
    return false;
}

/// As many consumer warps as registers and shared memory allow, in blocks of one team or in teams that take registers from their
/// producers.
bool fit(const GpuProblem& problem, StreamSchedule& schedule) {
    const int needed = schedule.live_numbers + working_registers(problem, schedule);
    const bool moves = problem.target.bulk_copies() && problem.blocks == 0;
    if (problem.team_warps == 0 && fit_blocks(problem, schedule, needed)) {
        // Measured on an H200: one team a block is best where 16 warps fit with registers to spare, and where warps have unequal work.
        constexpr int enough_warps = 16, spare_registers = 16;
        const bool alike = std::ranges::all_of(
            problem.polynomial.paths, [&](const Path& path) { return (path.extents.front().second + 31) / 32 == schedule.channel_warps; });
        const bool roomy = schedule.blocks * schedule.consumer_warps() >= enough_warps &&
                           register_cap(problem, schedule, schedule.blocks) >= needed + spare_registers;
        if (!moves || !alike || roomy) return true;
        StreamSchedule teams = schedule;
        if (fit_teams(problem, teams, needed) && teams.teams * teams.consumer_warps() >= schedule.blocks * schedule.consumer_warps())
            schedule = teams;
        return true;
    }
    return moves && fit_teams(problem, schedule, needed);
}

}  // namespace

std::optional<StreamSchedule> schedule_stream(const GpuProblem& problem, std::string& why_not) {
    const Polynomial& polynomial = problem.polynomial;
    StreamSchedule schedule;
    if (polynomial.paths.empty()) return why_not = "there are no paths", std::nullopt;
    if (polynomial.rows.empty()) return why_not = "there is one row", std::nullopt;
    for (const Path& path : polynomial.paths) {
        why_not = obstacle(path);
        if (!why_not.empty()) return std::nullopt;
        schedule.channels = std::max(schedule.channels, static_cast<int>(std::min<std::int64_t>(path.extents.front().second, 1 << 20)));
    }
    constexpr int least_channels = 17;
    if (schedule.channels > most_channels || schedule.channels < least_channels)
        return why_not = std::to_string(schedule.channels) + " channels; the stream kernel takes " + std::to_string(least_channels) +
                         " to " + std::to_string(most_channels),
               std::nullopt;
    if (!choose_axes(polynomial, schedule.axes, why_not)) return std::nullopt;
    schedule.channel_warps = (schedule.channels + 31) / 32;
    schedule.stationary = stationary_chain(polynomial);
    if (!choose_ways(problem, schedule, why_not)) return std::nullopt;
    place(problem, schedule);
    constexpr std::size_t most_groups = 4;
    for (std::size_t count = 1; count <= most_groups; ++count) {
        schedule.groups = divide(problem, schedule, count);
        schedule.live_numbers = 0;
        for (const auto& group : schedule.groups)
            schedule.live_numbers = std::max(schedule.live_numbers, live_numbers(problem, schedule, group));
        if (schedule.threads() > 1024) break;
        if (stored_twice(problem, schedule)) continue;
        if (schedule.live_numbers > most_live || !fit(problem, schedule)) continue;
        schedule.cuts = true;
        for (std::size_t o = 0; o < schedule.operands.size(); ++o)
            if (schedule.operands[o].way == StreamWay::accumulated && problem.storage[o] != problem.compute) schedule.cuts = false;
        if (schedule.stationary.empty()) schedule.cuts = false;
        why_not.clear();
        return schedule;
    }
    return why_not = "too many numbers would live in registers or shared memory, even divided over four groups of warps", std::nullopt;
}

std::int64_t stream_chunk(const StreamSchedule& schedule, std::int64_t rows, std::int64_t stationary_rows) {
    if (schedule.stationary.empty()) return 16;
    const std::int64_t average = stationary_rows > 0 ? rows / stationary_rows : rows;
    return std::clamp<std::int64_t>(average, 32, 1024);
}

std::string explain(const StreamSchedule& schedule, const GpuProblem& problem) {
    std::string text = "stream: " + std::to_string(problem.polynomial.paths.size()) + " paths, " + std::to_string(schedule.channels) +
                       " channels; " + std::to_string(schedule.channel_warps) + " consumer warps";
    if (schedule.groups.size() > 1) text += " x " + std::to_string(schedule.groups.size()) + " groups of paths";
    text += " and a producer, " + std::to_string(schedule.teams) + " such teams a block, " + std::to_string(schedule.blocks) +
            " blocks per multiprocessor, " + std::to_string(schedule.stages) + " stages of " + std::to_string(schedule.stage_bytes) +
            " bytes\n";
    if (schedule.consumer_registers > 0)
        text += "consumers claim " + std::to_string(schedule.consumer_registers) + " registers from producers, which keep " +
                std::to_string(schedule.producer_registers) + "\n";
    std::string chain;
    for (const std::string& index : schedule.stationary) chain += (chain.empty() ? "" : ", ") + index;
    text += schedule.stationary.empty() ? "every row for itself" : "the row through " + chain + " stays in registers";
    text += ", " + std::to_string(schedule.live_numbers) + " registers of numbers live through the loop\n";
    for (std::size_t o = 0; o < schedule.operands.size(); ++o) {
        const char* way = "";
        switch (schedule.operands[o].way) {
            case StreamWay::unused:
                way = "not used";
                break;
            case StreamWay::staged:
                way = problem.target.bulk_copies() ? "bulk copies into shared memory" : "asynchronous copies into shared memory";
                break;
            case StreamWay::constant:
                way = "in registers while the receiver stays";
                break;
            case StreamWay::accumulated:
                way = "summed in registers, stored once a receiver";
                break;
            case StreamWay::stored:
                way = "stored row by row from registers";
                break;
            case StreamWay::scattered:
                way = "added atomically row by row";
                break;
            case StreamWay::reduced:
                way = "summed over lanes and warps, stored row by row";
                break;
        }
        text += "operand '" + problem.polynomial.operands[o].name + "': " + way + "\n";
    }
    return text;
}

}  // namespace clebsch
