#include "schedule/gpu_stream.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <numeric>
#include <set>
#include <tuple>

#include "schedule/stream_division.hpp"
#include "schedule/stream_operands.hpp"
#include "schedule/stream_parking.hpp"
#include "schedule/stream_speed.hpp"

namespace clebsch {
namespace {

int up(int value, int multiple) { return (value + multiple - 1) / multiple * multiple; }

constexpr int least_channels = 4;            // fewer would leave nearly all lanes idle
constexpr int most_channels = 1024;          // 32 blocks of 32
constexpr double parked_instructions = 5;    // of a warp for a row and number that it has parked: reading it, and having it in mind
constexpr double spilled_instructions = 16;  // likewise of one that may be spilled: writing and reading it
constexpr int most_live = 176;               // registers that may hold numbers through the loop

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

/// Which factor stands on which of three axes: an operand on the one that it has in most couplings, so that a path and its derivatives,
/// whose coefficients may be another arrangement of the same numbers, share sums; where two factors ask for one axis, the couplings' own.
/// For coefficients that were simplified to fewer axes an operand takes the axis it has elsewhere.
bool choose_axes(const Polynomial& polynomial, std::vector<std::array<int, 3>>& axes, std::string& why_not) {
    std::map<int, std::array<int, 3>> votes;  // operand -> how often on each axis
    for (const Path& path : polynomial.paths)
        if (path.coefficients.rank() == 3)
            for (const Factor& factor : path.factors)
                if (factor.axis >= 0) ++votes[factor.operand][static_cast<std::size_t>(factor.axis)];
    std::map<int, int> usual;  // operand -> axis
    for (const auto& [operand, counts] : votes) usual[operand] = static_cast<int>(std::ranges::max_element(counts) - counts.begin());
    const auto place = [&](const Path& path, bool as_usual, std::array<int, 3>& chosen) {
        chosen = {-1, -1, -1};
        for (int f = 0; f < static_cast<int>(path.factors.size()); ++f) {
            const Factor& factor = path.factors[static_cast<std::size_t>(f)];
            int axis = factor.axis;
            if (as_usual || path.coefficients.rank() < 3) {
                const auto found = usual.find(factor.operand);
                const bool known = found != usual.end() && (path.coefficients.rank() < 3 || factor.axis >= 0);
                axis = known ? found->second : -1;
                if (axis >= 0 && chosen[static_cast<std::size_t>(axis)] >= 0 && factor.axis < 0) axis = -1;  // stays in front
                if (axis < 0 && factor.axis >= 0) return why_not = "an operand's axis is not known", false;
            }
            if (axis < 0) continue;
            int& taken = chosen[static_cast<std::size_t>(axis)];
            if (taken >= 0) return why_not = "two factors of a path stand on one axis", false;
            taken = f;
        }
        return true;
    };
    for (const Path& path : polynomial.paths) {
        std::array<int, 3> chosen{};
        if (!(path.coefficients.rank() == 3 && place(path, true, chosen)) && !place(path, false, chosen)) return false;
        axes.push_back(chosen);
    }
    why_not.clear();
    return true;
}

/// The sorted chain of indices whose row stays: the one that most numbers go through; for sums in a fixed order theirs.
std::vector<std::string> stationary_chain(const GpuProblem& problem) {
    const Polynomial& polynomial = problem.polynomial;
    for (const Operand& operand : polynomial.operands)
        if (problem.ordered && operand.role == Role::output && operand.rows.kind == Addressing::Kind::indexed &&
            !problem.is_message(static_cast<std::size_t>(&operand - polynomial.operands.data())))
            return operand.rows.via;
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

/// Whether two operands have the same segments in the same places, and numbers of one type in a stage.
bool alike(const GpuProblem& problem, const StreamSchedule& schedule, std::size_t one, std::size_t other) {
    const Operand &a = problem.polynomial.operands[one], &b = problem.polynomial.operands[other];
    return schedule.number_of(problem, one) == schedule.number_of(problem, other) && a.layout == b.layout && a.segments == b.segments;
}

/// The warps that read or write a segment, by block of channels; a path's part of it is the same channels.
using Users = std::map<std::tuple<int, int, int>, std::set<std::size_t>>;  // operand, segment, block -> warps
Users users_of(const GpuProblem& problem, const std::vector<std::vector<StreamShare>>& warps) {
    Users users;
    for (std::size_t w = 0; w < warps.size(); ++w)
        for (const StreamShare& share : warps[w])
            for (const int p : share.paths)
                for (const Factor& factor : problem.polynomial.paths[static_cast<std::size_t>(p)].factors)
                    users[{factor.operand, factor.segment, share.block}].insert(w);
    return users;
}

/// Decides which outputs go through the stage, given who writes what: one owner for each number, and, in the place of an input, nobody else
/// who still reads that.
void choose_handed(const GpuProblem& problem, StreamSchedule& schedule) {
    const Users users = users_of(problem, schedule.warps);
    std::set<int> taken;
    for (std::size_t o = 0; o < schedule.operands.size(); ++o) {
        StreamOperand& output = schedule.operands[o];
        output.handed = false;
        output.over = -1;
        if (output.way != StreamWay::stored && output.way != StreamWay::scattered) continue;
        output.handed = std::ranges::none_of(
            users, [&](const auto& user) { return std::get<0>(user.first) == static_cast<int>(o) && user.second.size() > 1; });
        if (!output.handed) continue;
        for (std::size_t i = 0; i < schedule.operands.size() && output.over < 0; ++i) {
            if (schedule.operands[i].way != StreamWay::staged || taken.contains(static_cast<int>(i)) || !alike(problem, schedule, o, i) ||
                schedule.operands[i].runs != output.runs)
                continue;
            const bool safe = std::ranges::all_of(users, [&](const auto& user) {
                const auto& [operand, segment, block] = user.first;
                if (operand != static_cast<int>(i)) return true;
                const auto writers = users.find({static_cast<int>(o), segment, block});
                return writers != users.end() && user.second == writers->second;
            });
            if (safe) output.over = static_cast<int>(i);
        }
        if (output.over >= 0) taken.insert(output.over);
    }
}

constexpr int line = 128;  // bytes to which parts of a stage are aligned

/// Where everything lies in a stage.
void place(const GpuProblem& problem, StreamSchedule& schedule) {
    int bytes = 0;
    schedule.partial_numbers = schedule.turn_numbers = 0;
    schedule.lag = 0;
    for (std::size_t o = 0; o < schedule.operands.size(); ++o) {
        StreamOperand& operand = schedule.operands[o];
        const Operand& described = problem.polynomial.operands[o];
        const int size = static_cast<int>(operand.numbers());
        if (operand.way == StreamWay::staged || (operand.handed && operand.over < 0)) {
            operand.stage_offset = bytes;
            bytes = up(bytes + size * bytes_of(schedule.number_of(problem, o)), line);
        } else if (operand.way == StreamWay::reduced) {
            operand.stage_offset = schedule.partial_numbers;
            schedule.partial_numbers += size;
        } else if (described.role == Role::output && !operand.handed && described.layout == Layout::mul_ir) {
            for (const Segment& segment : described.segments)
                if (segment.components > 1) schedule.turn_numbers = std::max(schedule.turn_numbers, 32 * segment.components);
        }
        if (operand.handed && problem.target.bulk_copies()) schedule.lag = 1;
    }
    for (StreamOperand& operand : schedule.operands)
        if (operand.over >= 0) operand.stage_offset = schedule.operands[static_cast<std::size_t>(operand.over)].stage_offset;
    schedule.partial_offset = bytes;
    schedule.control_offset = up(bytes + schedule.partial_numbers * schedule.consumer_warps() * bytes_of(problem.compute), line);
    int lookups = 0;
    for (const StreamOperand& operand : schedule.operands) lookups += operand.way == StreamWay::scattered ? 1 : 0;
    constexpr int control_bytes = 56;  // two barriers, row, two receivers, part, flags
    schedule.stage_bytes = up(schedule.control_offset + control_bytes + 8 * lookups, line);
}

/// Registers a thread may have when `blocks` blocks share a multiprocessor: each of its four schedulers has a quarter of the registers and
/// takes whole warps.
int register_cap(const GpuProblem& problem, const StreamSchedule& schedule, int blocks) {
    const int warps = schedule.threads() / 32 * blocks, per_scheduler = (warps + 3) / 4;
    return std::min(255, problem.target.registers / 4 / (32 * per_scheduler) / 8 * 8);
}

/// One block with `per_scheduler` consumer warps on each scheduler; its producers give registers to the consumers. False if teams do not
/// divide them, or consumers get fewer registers than they need.
bool form_teams(const GpuProblem& problem, StreamSchedule& schedule, int per_scheduler, int needed) {
    if (4 * per_scheduler % schedule.consumer_warps() != 0) return false;
    schedule.teams = 4 * per_scheduler / schedule.consumer_warps();
    schedule.producer_warps = (schedule.teams + 3) / 4 * 4;
    const bool retires = schedule.partial_numbers > 0 || std::ranges::any_of(schedule.operands, &StreamOperand::handed);
    schedule.blocks = 1;
    if (schedule.threads() > 1024) return false;
    const int each = std::min(248, problem.target.registers / schedule.threads() / 8 * 8), launched = each * schedule.threads();
    schedule.producer_registers = schedule.consumer_registers = 0;
    constexpr int spare = 12;  // with so many more nothing is gained
    schedule.spare_registers = each - needed;
    if (each >= needed + spare || problem.fixed_registers) return each >= needed;
    // Producers get what consumers can do without, and never so little that they spill.
    const int least = (schedule.producer_warps == 4 ? 56 : 48) + (retires ? 16 : 0);
    const int most = problem.spare.least > 0 ? 88 : 72;  // it may be producers that spill
    for (schedule.producer_registers = std::min(most, each); schedule.producer_registers >= least; schedule.producer_registers -= 8) {
        const int left = launched - schedule.producer_warps * 32 * schedule.producer_registers;
        schedule.consumer_registers = std::min(240, left / (128 * per_scheduler) / 8 * 8);
        schedule.spare_registers = schedule.consumer_registers - needed;
        if (schedule.consumer_registers >= needed) return true;
    }
    schedule.producer_registers = least;
    return problem.team_warps > 0;  // measurements may ask for what does not fit
}

/// What a warp needs besides the numbers that live through the loop: addresses, products, sums of products, and the row's own numbers.
/// Fitted to what the compiler needs for the named problems without spilling (tests/data/gpu_kernels.txt).
int working_registers(const GpuProblem& problem, const StreamSchedule& schedule) {
    std::set<int> operands;  // staged, on an axis
    int products = 0;
    std::map<std::pair<int, int>, std::map<int, int>> sums;  // of a pair of segments on the first two axes: by segment on the third
    for (std::size_t p = 0; p < schedule.axes.size(); ++p) {
        int product = 1;
        std::array<int, 3> segments{-1, -1, -1};
        for (std::size_t k = 0; k < 3; ++k) {
            const int f = schedule.axes[p][k];
            if (f < 0) continue;
            const Factor& factor = problem.polynomial.paths[p].factors[static_cast<std::size_t>(f)];
            const Operand& operand = problem.polynomial.operands[static_cast<std::size_t>(factor.operand)];
            const int components = operand.segments[static_cast<std::size_t>(factor.segment)].components;
            segments[k] = factor.segment;
            if (k < 2) product *= components;
            else sums[{segments[0], segments[1]}][factor.segment] = components;
            if (schedule.operands[static_cast<std::size_t>(factor.operand)].way == StreamWay::staged) operands.insert(factor.operand);
        }
        products = std::max(products, product);
    }
    int waiting = products / 5;
    for (const auto& [pair, components] : sums) {
        int sum = 0;
        for (const auto& [segment, count] : components) sum += count;
        waiting = std::max(waiting, sum - 2);
    }
    const bool wide = problem.compute == GpuNumber::float64;
    const int least = (wide ? 38 : 40) + waiting, for_another = 10 + waiting;
    const int more = std::max(0, static_cast<int>(operands.size()) - 2) * for_another;
    return (least + more) * (wide ? 4 : 3) / 3;
}

/// Stages that hide the way from memory: one is read, and one or two are on their way.
int enough_stages(const StreamSchedule& schedule) { return (schedule.blocks * schedule.teams > 1 ? 3 : 2) + schedule.lag; }

/// As many stages as shared memory holds; false if those are not enough.
bool fill_stages(const GpuProblem& problem, StreamSchedule& schedule, int enough) {
    constexpr int most_stages = 8;
    const int parts = schedule.blocks * schedule.teams;
    const int turns = (schedule.turn_numbers + 32 * schedule.parked_numbers) * schedule.consumer_warps() * bytes_of(problem.compute) +
                      schedule.carried_bytes(problem);
    constexpr int reserved_bytes = 1024;  // the hardware's own, of every block
    const int team = (problem.target.shared_bytes + reserved_bytes - schedule.blocks * reserved_bytes) / parts / line * line - turns;
    const int stages = team / schedule.stage_bytes;
    if (stages < enough) return false;
    schedule.stages = std::min(stages, most_stages);
    schedule.team_bytes = up(schedule.stages * schedule.stage_bytes + turns, line);
    return true;
}

/// Gives every scheduler warps of equal work in all and of few different codes: straight-line code that a scheduler's warps do not share
/// comes from the second instruction cache, and too slowly. Warp w of a team runs on scheduler w % 4.
void pin(StreamSchedule& schedule) {
    constexpr std::size_t schedulers = 4;
    const std::size_t count = schedule.warps.size(), each = count / schedulers;
    std::vector<std::vector<std::size_t>> of(schedulers);
    std::vector<double> work(schedulers, 0);
    for (std::size_t w = 0; w < count; ++w) {  // neighbours share code
        of[w / each].push_back(w);
        work[w / each] += schedule.instructions[w];
    }
    const double total = std::accumulate(work.begin(), work.end(), 0.0);
    constexpr double tolerated = 1.12;
    if (std::ranges::max(work) > tolerated * total / schedulers) {
        std::vector<std::size_t> order(count);
        std::iota(order.begin(), order.end(), std::size_t{0});
        std::ranges::stable_sort(order, std::greater<>{}, [&](std::size_t w) { return schedule.instructions[w]; });
        for (auto& list : of) list.clear();
        std::ranges::fill(work, 0);
        for (const std::size_t w : order) {
            std::size_t best = schedulers;
            for (std::size_t s = 0; s < schedulers; ++s)
                if (of[s].size() < each && (best == schedulers || work[s] < work[best])) best = s;
            of[best].push_back(w);
            work[best] += schedule.instructions[w];
        }
    }
    const StreamSchedule before = schedule;
    for (std::size_t w = 0; w < count; ++w) {
        const std::size_t from = of[w % schedulers][w / schedulers];
        schedule.warps[w] = before.warps[from];
        schedule.instructions[w] = before.instructions[from];
    }
    schedule.pinned = true;
}

/// The fastest way to run the schedule's division: blocks of one team, or one block of teams that take registers from their producers.
/// Nothing if it does not fit. `spare`: registers that consumers need beyond what they are thought to.
std::optional<StreamSchedule> fit(const GpuProblem& problem, StreamSchedule schedule, int spare) {
    const int needed = schedule.live_numbers + working_registers(problem, schedule) + spare;
    std::optional<StreamSchedule> best;
    double most = 0;
    const auto consider = [&](double factor) {
        if (!fill_stages(problem, schedule, enough_stages(schedule))) return;
        if (const double value = stream_speed(schedule) * factor; value > most) {
            most = value;
            best = schedule;
        }
    };
    schedule.teams = schedule.producer_warps = 1;
    schedule.producer_registers = schedule.consumer_registers = 0;
    constexpr int most_blocks = 8, comfortable_registers = 16;
    if (schedule.threads() <= 1024 && problem.team_warps == 0)
        for (schedule.blocks = problem.blocks > 0 ? problem.blocks : most_blocks; schedule.blocks >= 1; --schedule.blocks) {
            const int cap = register_cap(problem, schedule, schedule.blocks);
            schedule.spare_registers = cap - needed;
            if (cap >= needed || problem.blocks > 0) consider(cap >= needed + comfortable_registers ? 1.0 : 0.98);
            if (problem.blocks > 0) break;
        }
    if (problem.target.bulk_copies() && problem.blocks == 0) {
        if (schedule.consumer_warps() % 4 == 0) pin(schedule);
        constexpr int most_warps = 5;
        for (int warps = problem.team_warps > 0 ? problem.team_warps : most_warps; warps >= 1; --warps) {
            if (form_teams(problem, schedule, warps, needed)) consider(0.99);
            if (problem.team_warps > 0) break;
        }
    }
    return best;
}

/// Parks what shared memory has room for beside so many stages, until a consumer has so many registers to spare.
void park_more(const GpuProblem& problem, StreamSchedule& schedule, const std::vector<std::pair<int, int>>& order, int spare, int stages) {
    for (int wanted = spare - schedule.spare_registers; wanted > 0; --wanted) {
        StreamSchedule roomy = schedule;
        park(problem, roomy, order, schedule.parked_numbers + wanted);
        const int more = roomy.parked_numbers - schedule.parked_numbers;
        roomy.live_numbers -= more;
        roomy.spare_registers += more;
        for (double& instructions : roomy.instructions) instructions += parked_instructions * more;
        if (!fill_stages(problem, roomy, stages)) continue;
        schedule = std::move(roomy);
        break;
    }
}

/// What so many operands need is more than estimated at times, and a number that is spilled costs more than one that is parked: makes room,
/// and counts what may be spilled instead.
void make_room(const GpuProblem& problem, StreamSchedule& schedule, const std::vector<std::pair<int, int>>& order) {
    constexpr int enough_spare = 24, short_of_spare = 16, many_operands = 5;
    if (std::ranges::count(schedule.operands, StreamWay::staged, &StreamOperand::way) < many_operands) return;
    park_more(problem, schedule, order, enough_spare, enough_stages(schedule));
    if (schedule.wide) return;  // none of these kernels was seen to spill
    const int missing = std::max(0, short_of_spare - schedule.spare_registers);
    for (double& instructions : schedule.instructions) instructions += spilled_instructions * missing;
}

/// The schedule's paths divided over warps, which is what costs: the fastest way. Nothing if nothing fits.
std::optional<StreamSchedule> best_division(const GpuProblem& problem, const StreamSchedule& schedule,
                                            const std::vector<std::pair<int, int>>& order, int spare) {
    std::vector<int> counts;
    constexpr int most_warps = 16;
    for (int warps = 1; warps <= most_warps; ++warps)
        if (problem.consumers == 0 || warps == problem.consumers) counts.push_back(warps);
    std::optional<StreamSchedule> best;
    const auto consider = [&](const StreamDivision& division, int parked) {
        StreamSchedule candidate = schedule;
        candidate.warps = division.warps;
        candidate.live_numbers = division.live;
        candidate.instructions = division.instructions;
        park(problem, candidate, order, parked);
        candidate.live_numbers -= candidate.parked_numbers;
        for (double& instructions : candidate.instructions) instructions += parked_instructions * candidate.parked_numbers;
        if (candidate.live_numbers > most_live) return;
        choose_handed(problem, candidate);
        for (std::size_t o = 0; o < candidate.operands.size(); ++o)
            if (schedule.operands[o].handed && !candidate.operands[o].handed) {
                const double more = 6.0 / 32 * static_cast<double>(problem.polynomial.operands[o].size()) / candidate.consumer_warps();
                for (double& instructions : candidate.instructions) instructions += more;
            }
        place(problem, candidate);
        const std::optional<StreamSchedule> fitted = fit(problem, candidate, spare);
        constexpr double enough = 1.02;  // a gain that is worth more warps
        if (fitted && (!best || stream_speed(*fitted) > enough * stream_speed(*best))) best = fitted;
    };
    const std::vector<StreamDivision> list = divisions(problem, schedule, counts);
    for (const StreamDivision& division : list) consider(division, 0);
    // Fewer warps with more registers each, where those are what is short, and not memory.
    constexpr double worth_it = 1.14;
    constexpr int parts[] = {16, 32, 48}, short_of = 64;  // numbers that live through the loop
    const std::size_t most_parked = best ? best->warps.size() : most_warps;
    if (!best || spare > 0 || stream_cycles(*best, problem) > worth_it * stream_memory_cycles(*best, problem))
        for (const StreamDivision& division : list)
            if (division.live > short_of && division.warps.size() <= most_parked)
                for (const int parked : parts) consider(division, parked);
    return best;
}

}  // namespace

std::optional<StreamSchedule> schedule_stream(const GpuProblem& problem, std::string& why_not) {
    const Polynomial& polynomial = problem.polynomial;
    StreamSchedule schedule;
    schedule.wide = problem.compute == GpuNumber::float64;
    if (polynomial.paths.empty()) return why_not = "there are no paths", std::nullopt;
    if (polynomial.rows.empty()) return why_not = "there is one row", std::nullopt;
    for (const Path& path : polynomial.paths) {
        why_not = obstacle(path);
        if (!why_not.empty()) return std::nullopt;
        schedule.channels = std::max(schedule.channels, static_cast<int>(std::min<std::int64_t>(path.extents.front().second, 1 << 20)));
    }
    if (schedule.channels > most_channels || schedule.channels < least_channels)
        return why_not = std::to_string(schedule.channels) + " channels; the stream kernel takes " + std::to_string(least_channels) +
                         " to " + std::to_string(most_channels),
               std::nullopt;
    if (!choose_axes(polynomial, schedule.axes, why_not)) return std::nullopt;
    schedule.stationary = stationary_chain(problem);
    if (!choose_ways(problem, schedule, why_not)) return std::nullopt;
    for (std::size_t o = 0; o < schedule.operands.size(); ++o)  // as costs are to be predicted; choose_handed looks closer
        schedule.operands[o].handed = schedule.operands[o].way == StreamWay::stored || schedule.operands[o].way == StreamWay::scattered;
    place(problem, schedule);
    const std::vector<std::pair<int, int>> order = parking_order(problem, schedule);
    std::optional<StreamSchedule> best = best_division(problem, schedule, order, 0);
    if (problem.spare.least > 0) {
        // Rows with so many numbers take longer than the way from memory: two stages hide it.
        if (best) park_more(problem, *best, order, problem.spare.wanted, 2 + best->lag);
        if (best && best->consumer_registers > 0 && best->spare_registers >= problem.spare.least) {
            form_teams(problem, *best, best->teams * best->consumer_warps() / 4,
                       best->consumer_registers - best->spare_registers + problem.spare.least);
            best->spare_registers += problem.spare.least;
        }
        if (!best || best->spare_registers < problem.spare.least) {
            std::optional<StreamSchedule> roomier = best_division(problem, schedule, order, problem.spare.least);
            if (roomier) {
                best = std::move(roomier);
                best->spare_registers += problem.spare.least;
            }
        }
    }
    if (!best)
        return why_not = "too many numbers would live in registers or shared memory, however they are divided over warps", std::nullopt;
    best->cuts = !best->stationary.empty();
    std::int64_t without_channels = 0;
    for (std::size_t o = 0; o < best->operands.size(); ++o)
        if (best->operands[o].way == StreamWay::staged && !has_channels(polynomial, static_cast<int>(o)))
            without_channels += polynomial.operands[o].size();
    constexpr std::int64_t affordable = 24;  // registers
    best->reloads = without_channels > affordable;
    best->frugal = problem.spare.frugal && !best->stationary.empty();
    make_room(problem, *best, order);
    // 16-bit numbers cannot be added atomically in the precision of the sums.
    for (std::size_t o = 0; o < best->operands.size(); ++o)
        if (best->operands[o].way == StreamWay::accumulated && (problem.ordered || problem.storage[o] != problem.compute))
            best->parts = true;
    why_not.clear();
    return best;
}

bool StreamSchedule::is_parked(int operand, int segment) const {
    return std::ranges::find(parked, std::pair(operand, segment)) != parked.end();
}

bool StreamSchedule::same_code(std::size_t one, std::size_t other) const {
    const std::vector<StreamShare>&a = warps[one], &b = warps[other];
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i)
        if (a[i].paths != b[i].paths || a[i].block - a.front().block != b[i].block - b.front().block) return false;
    return true;
}

namespace {

constexpr std::int64_t few_rows = 4096;

/// About a receiver's rows.
std::int64_t usual_chunk(std::int64_t rows, std::int64_t stationary_rows) {
    return std::clamp<std::int64_t>(stationary_rows > 0 ? rows / stationary_rows : rows, 32, 1024);
}

/// Where teams would have a few chunks each, and some one more than others, which then wait for them: how many chunks there have to be for
/// all to have the same number. 0: it does not matter, or receivers cannot be divided for it.
std::int64_t even_chunks(const StreamSchedule& schedule, std::int64_t rows, std::int64_t chunk, int multiprocessors) {
    constexpr double most_turns = 8, least_waste = 1.08;
    if (rows <= few_rows || !schedule.cuts || schedule.parts) return 0;
    const std::int64_t teams = std::int64_t{multiprocessors} * schedule.blocks * schedule.teams;
    const double turns = static_cast<double>(rows) / static_cast<double>(chunk * teams);
    if (turns > most_turns || std::ceil(turns) < least_waste * turns) return 0;
    return teams * std::max<std::int64_t>(1, std::lround(turns));
}

}  // namespace

StreamChunks stream_chunks(const StreamSchedule& schedule, std::int64_t rows, std::int64_t stationary_rows, int multiprocessors) {
    const std::int64_t share = std::max<std::int64_t>(1, (rows + multiprocessors - 1) / multiprocessors);
    if (schedule.stationary.empty()) return {.rows = std::min<std::int64_t>(share, 16), .reach = rows, .divided = rows > few_rows};
    const std::int64_t usual = usual_chunk(rows, stationary_rows);
    if (const std::int64_t count = even_chunks(schedule, rows, usual, multiprocessors); count > 0) {
        constexpr std::int64_t fewest = 8;  // sums that are divided are added, which costs more than a row
        const std::int64_t own = std::max(fewest, (rows + count - 1) / count);
        return {.rows = own, .reach = (own + 7) / 8, .divided = true};
    }
    const std::int64_t own = std::min(share, usual), average = stationary_rows > 0 ? rows / stationary_rows : rows;
    const bool divided = rows > few_rows || average > 2 * own + 4;
    return {.rows = own, .reach = divided ? own : rows, .divided = divided};
}

std::string explain(const StreamSchedule& schedule, const GpuProblem& problem) {
    std::string text = "stream: " + std::to_string(problem.polynomial.paths.size()) + " paths, " + std::to_string(schedule.channels) +
                       " channels; " + std::to_string(schedule.consumer_warps()) + " consumer warps and a producer, " +
                       std::to_string(schedule.teams) + " such teams a block, " + std::to_string(schedule.blocks) +
                       " blocks per multiprocessor, " + std::to_string(schedule.stages) + " stages of " +
                       std::to_string(schedule.stage_bytes) + " bytes\n";
    for (std::size_t w = 0; w < schedule.warps.size(); ++w) {
        text += "warp " + std::to_string(w) + ", about " + std::to_string(std::lround(schedule.instructions[w])) + " instructions a row:";
        for (const StreamShare& share : schedule.warps[w])
            text += " " + std::to_string(share.paths.size()) + " paths on channels " + std::to_string(32 * share.block) + " to " +
                    std::to_string(std::min(schedule.channels, 32 * (share.block + 1)) - 1) +
                    (&share == &schedule.warps[w].back() ? "" : ",");
        text += "\n";
    }
    if (schedule.consumer_registers > 0)
        text += "consumers claim " + std::to_string(schedule.consumer_registers) + " registers from producers, which keep " +
                std::to_string(schedule.producer_registers) + "\n";
    std::string chain;
    for (const std::string& index : schedule.stationary) chain += (chain.empty() ? "" : ", ") + index;
    text += schedule.stationary.empty() ? "every row for itself" : "the row through " + chain + " stays in registers";
    text += ", " + std::to_string(schedule.live_numbers) + " registers of numbers live through the loop\n";
    if (schedule.parked_numbers > 0)
        text += std::to_string(schedule.parked_numbers) + " numbers of the receiver lie in shared memory instead, for every lane\n";
    if (schedule.parts) text += "sums of a receiver that is divided among blocks are added in the order of the rows\n";
    for (std::size_t o = 0; o < schedule.operands.size(); ++o) {
        const char* way = "";
        switch (schedule.operands[o].way) {
            case StreamWay::unused:
                way = "not used";
                break;
            case StreamWay::staged:
                way = schedule.operands[o].carried   ? "read for 32 rows at once, put into shared memory in the compute type"
                      : problem.target.bulk_copies() ? "bulk copies into shared memory"
                                                     : "asynchronous copies into shared memory";
                break;
            case StreamWay::constant:
                way = "in registers while the receiver stays";
                break;
            case StreamWay::accumulated:
                way = "summed in registers, stored once a receiver";
                break;
            case StreamWay::stored:
                way = schedule.operands[o].handed ? "left in shared memory, stored row by row by the producer"
                                                  : "stored row by row from registers";
                break;
            case StreamWay::scattered:
                way = schedule.operands[o].handed ? "left in shared memory, added atomically row by row by the producer"
                                                  : "added atomically row by row";
                break;
            case StreamWay::reduced:
                way = "summed over lanes and warps, stored row by row";
                break;
        }
        text += "operand '" + problem.polynomial.operands[o].name + "': " + way + "\n";
    }
    return text;
}

bool paths_use_the_same_indices(const Polynomial& polynomial) {
    std::set<std::set<std::vector<std::string>>> of_paths;
    for (const Path& path : polynomial.paths) {
        std::set<std::vector<std::string>> chains;
        for (const Factor& factor : path.factors) {
            const Operand& operand = polynomial.operands[static_cast<std::size_t>(factor.operand)];
            if (operand.rows.kind == Addressing::Kind::indexed) chains.insert(operand.rows.via);
        }
        of_paths.insert(std::move(chains));
    }
    return of_paths.size() <= 1;
}

}  // namespace clebsch
