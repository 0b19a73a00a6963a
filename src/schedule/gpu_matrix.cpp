#include "schedule/gpu_matrix.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "base/error.hpp"
#include "describe/rewrites.hpp"

namespace clebsch {
namespace {

constexpr std::int64_t least_extent = 8;          ///< of a matrix worth tiles
constexpr std::int64_t most_products = 1 << 15;   ///< of a row, before a matrix
constexpr std::int64_t least_gradient = 1 << 12;  ///< numbers of a matrix for whose gradient products of a row are worth their memory
constexpr std::int64_t most_numbers = 1 << 23;    ///< of a matrix or a row: a tile's rows are reached by 32-bit distances

std::size_t at(int position) { return static_cast<std::size_t>(position); }
std::int64_t up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

const Segment& segment_of(const Polynomial& polynomial, const Factor& factor) {
    return polynomial.operands[at(factor.operand)].segments[at(factor.segment)];
}
std::int64_t stride_of_channel(const Polynomial& polynomial, const Factor& factor) {
    return polynomial.operands[at(factor.operand)].layout == Layout::mul_ir ? segment_of(polynomial, factor).components : 1;
}
std::int64_t stride_of_component(const Polynomial& polynomial, const Factor& factor) {
    return polynomial.operands[at(factor.operand)].layout == Layout::mul_ir ? 1 : segment_of(polynomial, factor).multiplicity;
}

std::int64_t extent_of(const Path& path, const std::string& letters) {
    std::int64_t extent = 1;
    for (const char letter : letters) extent *= path.extent(letter);
    return extent;
}

bool plain(const std::string& letters) { return letters.find('(') == std::string::npos; }

/// The one number on the diagonal of a path's coefficients between the axes of x and of the output; nothing if there is anything else.
std::optional<double> diagonal(const Path& path, std::size_t x, std::size_t weight, int components) {
    const std::vector<CoefficientEntry> entries = reduced_entries(path);
    if (static_cast<int>(entries.size()) != components) return std::nullopt;
    std::set<int> met;
    for (const CoefficientEntry& entry : entries) {
        if (entry.index[x] != entry.index.back() || entry.index[weight] != 0 || entry.value != entries.front().value) return std::nullopt;
        met.insert(entry.index[x]);
    }
    if (static_cast<int>(met.size()) != components) return std::nullopt;
    return entries.front().value;
}

/// A path as a product: which factor is x, which the weight. `index`: the only one weights may go through; -1: none so far.
std::optional<MatrixTerm> matrix_term(const Polynomial& polynomial, const Path& path, int& index) {
    if (path.factors.size() != 3 || polynomial.operands[at(path.output().operand)].rows.kind != Addressing::Kind::each) return std::nullopt;
    const std::string& columns = path.output().channels;
    const int components = segment_of(polynomial, path.output()).components;
    for (const std::size_t x : {std::size_t{0}, std::size_t{1}}) {
        const std::size_t w = 1 - x;
        const Factor &input = path.factors[x], &weight = path.factors[w];
        const Operand &x_operand = polynomial.operands[at(input.operand)], &w_operand = polynomial.operands[at(weight.operand)];
        const std::string& depth = input.channels;
        if (!plain(columns) || !plain(depth) || !plain(weight.channels)) return std::nullopt;
        const bool k_first = weight.channels == depth + columns;
        if (!k_first && weight.channels != columns + depth) continue;
        if (segment_of(polynomial, weight).components != 1 || segment_of(polynomial, input).components != components) continue;
        if (x_operand.rows.kind != Addressing::Kind::each) continue;
        int through = -1;
        if (w_operand.rows.kind == Addressing::Kind::each || w_operand.rows.via.size() > 1) continue;
        if (w_operand.rows.kind == Addressing::Kind::indexed) through = polynomial.find_index(w_operand.rows.via.front());
        if (through >= 0 && index >= 0 && through != index) continue;
        const std::int64_t k = extent_of(path, depth), n = extent_of(path, columns);
        if (k < least_extent || n < least_extent || k * n > most_numbers || x_operand.size() * components > most_numbers)
            return std::nullopt;
        const std::optional<double> scale = diagonal(path, x, w, components);
        if (!scale) continue;
        if (through >= 0) index = through;
        return MatrixTerm{.input = input.operand,
                          .weight = weight.operand,
                          .input_offset = x_operand.offset(input.segment),
                          .input_channel = stride_of_channel(polynomial, input),
                          .input_component = stride_of_component(polynomial, input),
                          .weight_offset = w_operand.offset(weight.segment),
                          .weight_k = k_first ? n : 1,
                          .weight_column = k_first ? 1 : k,
                          .depth = k,
                          .indexed = through >= 0 ? 1 : 0,
                          .scale = *scale};
    }
    return std::nullopt;
}

/// The paths that are left, over the operands they need and the outputs that matrix products do not write whole.
void find_rest(const Polynomial& polynomial, const std::vector<bool>& taken, MatrixSchedule& schedule) {
    std::set<std::pair<int, int>> covered;
    for (const MatrixJob& job : schedule.jobs) covered.emplace(job.output, job.offset);
    for (const GradientJob& job : schedule.gradient.jobs) covered.emplace(job.output, job.offset);
    std::vector<bool> used(polynomial.operands.size(), false);
    for (std::size_t p = 0; p < polynomial.paths.size(); ++p)
        if (!taken[p])
            for (const Factor& factor : polynomial.paths[p].factors) used[at(factor.operand)] = true;
    for (std::size_t o = 0; o < polynomial.operands.size(); ++o) {
        const Operand& operand = polynomial.operands[o];
        if (operand.role != Role::output) continue;
        for (std::size_t s = 0; s < operand.segments.size(); ++s)
            if (operand.segments[s].size() > 0 &&
                !covered.contains({static_cast<int>(o), static_cast<int>(operand.offset(static_cast<int>(s)))}))
                used[o] = true;
    }
    Polynomial rest;
    rest.rows = polynomial.rows;
    rest.indices = polynomial.indices;
    std::vector<int> place(polynomial.operands.size(), -1);
    bool any = false;
    for (std::size_t o = 0; o < polynomial.operands.size(); ++o) {
        if (!used[o]) continue;
        place[o] = static_cast<int>(rest.operands.size());
        rest.operands.push_back(polynomial.operands[o]);
        schedule.rest_operands.push_back(static_cast<int>(o));
        any = any || polynomial.operands[o].role == Role::output;
    }
    if (!any) return schedule.rest_operands.clear();
    for (std::size_t p = 0; p < polynomial.paths.size(); ++p) {
        if (taken[p]) continue;
        Path path = polynomial.paths[p];
        for (Factor& factor : path.factors) factor.operand = place[at(factor.operand)];
        rest.paths.push_back(std::move(path));
    }
    for (MatrixJob& job : schedule.jobs) job.adds = used[static_cast<std::size_t>(job.output)] ? 1 : 0;
    for (GradientJob& job : schedule.gradient.jobs) job.adds = used[static_cast<std::size_t>(job.output)] ? 1 : 0;
    schedule.rest = std::move(rest);
}

/// Jobs in the order of their tiles, whatever the compute type: from narrow to wide.
void add_gradients(const Polynomial& polynomial, const std::map<std::pair<int, int>, std::vector<GradientPath>>& by_segment,
                   MatrixSchedule& schedule) {
    GradientSchedule& gradient = schedule.gradient;
    for (const auto& [place, paths] : by_segment) {
        gradient.jobs.push_back({.output = place.first,
                                 .offset = polynomial.operands[at(place.first)].offset(place.second),
                                 .rows = paths.front().rows,
                                 .columns = paths.front().columns,
                                 .adds = 0,
                                 .first_term = static_cast<std::int64_t>(gradient.terms.size()),
                                 .terms = static_cast<std::int64_t>(paths.size()),
                                 .place = gradient.numbers});
        for (const GradientPath& path : paths) {
            gradient.terms.push_back(path.term);
            schedule.multiply_adds += static_cast<double>(path.rows * path.columns * path.term.components);
        }
        constexpr std::int64_t together = 4;  // numbers that are stored as one
        gradient.numbers += up(paths.front().rows * paths.front().columns, together) * together;
    }
    std::ranges::stable_sort(gradient.jobs, {}, [](const GradientJob& job) { return std::min(job.rows, job.columns); });
}

}  // namespace

std::optional<MatrixSchedule> schedule_matrix(const Polynomial& polynomial) {
    if (polynomial.operands.size() > MatrixSchedule::most_operands) return std::nullopt;
    MatrixSchedule schedule;
    std::map<std::pair<int, int>, std::vector<MatrixTerm>> by_segment;  // output operand, segment
    std::map<std::pair<int, int>, std::vector<GradientPath>> gradients;
    std::vector<bool> taken(polynomial.paths.size(), false);
    for (std::size_t p = 0; p < polynomial.paths.size(); ++p) {
        const Path& path = polynomial.paths[p];
        if (const std::optional<GradientPath> found = gradient_path(polynomial, path)) {
            std::vector<GradientPath>& others = gradients[{path.output().operand, path.output().segment}];
            if (!others.empty() && others.front().rows != found->rows) continue;  // other letters first
            others.push_back(*found);
            taken[p] = true;
            continue;
        }
        const std::optional<MatrixTerm> term = matrix_term(polynomial, path, schedule.index);
        if (!term) continue;
        taken[p] = true;
        by_segment[{path.output().operand, path.output().segment}].push_back(*term);
    }
    if (by_segment.empty() && gradients.empty()) return std::nullopt;
    add_gradients(polynomial, gradients, schedule);
    std::vector<std::pair<std::pair<int, int>, std::vector<MatrixTerm>>> ordered(by_segment.begin(), by_segment.end());
    std::ranges::stable_sort(
        ordered, {}, [&](const auto& one) { return polynomial.operands[at(one.first.first)].segments[at(one.first.second)].multiplicity; });
    for (const auto& [place, terms] : ordered) {
        const Operand& output = polynomial.operands[at(place.first)];
        const Segment& segment = output.segments[at(place.second)];
        const bool by_channel = output.layout == Layout::mul_ir;
        MatrixJob job{.output = place.first,
                      .offset = output.offset(place.second),
                      .column = by_channel ? segment.components : 1,
                      .component = by_channel ? 1 : segment.multiplicity,
                      .columns = segment.multiplicity,
                      .components = segment.components,
                      .adds = 0,
                      .first_term = static_cast<std::int64_t>(schedule.terms.size()),
                      .terms = static_cast<std::int64_t>(terms.size())};
        for (const MatrixTerm& term : terms)
            schedule.multiply_adds += static_cast<double>(job.components) * static_cast<double>(job.columns * term.depth);
        schedule.terms.insert(schedule.terms.end(), terms.begin(), terms.end());
        schedule.jobs.push_back(job);
    }
    find_rest(polynomial, taken, schedule);
    return schedule;
}

std::vector<MatrixTile> matrix_tiles(GpuNumber compute, MatrixRows rows) {
    const bool wide = compute == GpuNumber::float64;
    if (rows == MatrixRows::fewest)
        return {{.rows = 16,
                 .columns = 16,
                 .depth = wide ? 32 : 64,
                 .stages = 3,
                 .own_rows = 2,
                 .own_columns = 2,
                 .tensor = false,
                 .blocks = 2}};
    if (rows == MatrixRows::few)
        return {{.rows = 32,
                 .columns = 32,
                 .depth = wide ? 32 : 64,
                 .stages = 2,
                 .own_rows = 4,
                 .own_columns = 4,
                 .tensor = false,
                 .blocks = 1}};
    if (wide)
        return {{.rows = 64, .columns = 32, .depth = 16, .stages = 3, .own_rows = 4, .own_columns = 2},
                {.rows = 64, .columns = 64, .depth = 8, .stages = 4, .own_rows = 4, .own_columns = 4}};
    return {{.rows = 128, .columns = 32, .depth = 16, .stages = 3, .own_rows = 16, .own_columns = 32, .tensor = true},
            {.rows = 128, .columns = 64, .depth = 8, .stages = 4, .own_rows = 32, .own_columns = 32, .tensor = true},
            {.rows = 128, .columns = 128, .depth = 8, .stages = 4, .own_rows = 64, .own_columns = 32, .tensor = true}};
}

std::vector<MatrixLaunch> matrix_launches(const MatrixSchedule& schedule, const std::vector<MatrixTile>& tiles) {
    std::vector<MatrixLaunch> launches;
    for (std::size_t j = 0; j < schedule.jobs.size(); ++j) {
        std::size_t tile = 0;
        while (tile + 1 < tiles.size() && schedule.jobs[j].columns > tiles[tile].columns) ++tile;
        if (launches.empty() || launches.back().tile != tile) launches.push_back({tile, static_cast<std::int64_t>(j), 0});
        ++launches.back().count;
    }
    return launches;
}

LaunchShape matrix_shape(const MatrixSchedule& schedule, const MatrixLaunch& launch, const MatrixTile& tile, std::int64_t rows) {
    LaunchShape shape{.grid = {0, 1}, .threads = MatrixTile::threads};
    for (std::int64_t j = launch.first; j < launch.first + launch.count; ++j) {
        const MatrixJob& job = schedule.jobs[static_cast<std::size_t>(j)];
        shape.grid[0] += up(rows * job.components, tile.rows) * up(job.columns, tile.columns);
    }
    if (shape.grid[0] > 0x7fffffff)
        throw Error(ErrorKind::unsupported,
                    "a launch of " + std::to_string(shape.grid[0]) + " blocks is beyond what a GPU takes; divide the rows");
    return shape;
}

MatrixRows matrix_rows(const MatrixSchedule& schedule, GpuNumber compute, std::int64_t rows, int multiprocessors) {
    for (const MatrixRows tried : {MatrixRows::many, MatrixRows::few}) {
        const std::vector<MatrixTile> tiles = matrix_tiles(compute, tried);
        std::int64_t blocks = 0;
        for (const MatrixLaunch& launch : matrix_launches(schedule, tiles))
            blocks += matrix_shape(schedule, launch, tiles[launch.tile], rows).grid[0];
        if (blocks >= multiprocessors) return tried;
    }
    return MatrixRows::fewest;
}

std::optional<Program> with_matrix_products(const Polynomial& polynomial) {
    if (!std::ranges::is_partitioned(polynomial.operands, [](const Operand& operand) { return operand.role == Role::input; }))
        return std::nullopt;
    Program program = split_mixing(polynomial, 0, least_gradient);
    for (std::size_t v = polynomial.operands.size(); v < program.values.size(); ++v)
        if (program.values[v].size() > most_products) return std::nullopt;
    const bool any = std::ranges::any_of(
        program.nodes, [](const Node& node) { return schedule_matrix(std::get<PolynomialNode>(node).polynomial).has_value(); });
    return any ? std::optional(std::move(program)) : std::nullopt;
}

std::string explain(const MatrixSchedule& schedule, const Polynomial& polynomial) {
    std::string text = "matrix: " + std::to_string(schedule.jobs.size() + schedule.gradient.jobs.size()) + " products, " +
                       std::to_string(static_cast<long>(schedule.multiply_adds)) + " multiply-adds a row";
    if (schedule.index >= 0) text += ", weights by '" + polynomial.indices[at(schedule.index)].name + "'";
    text += "\n";
    for (const MatrixJob& job : schedule.jobs) {
        std::int64_t depth = 0;
        for (std::int64_t t = 0; t < job.terms; ++t) depth += schedule.terms[static_cast<std::size_t>(job.first_term + t)].depth;
        text += "  " + polynomial.operands[static_cast<std::size_t>(job.output)].name + " + " + std::to_string(job.offset) + ": " +
                std::to_string(job.components) + " x " + std::to_string(job.columns) + " from " + std::to_string(depth) + " in " +
                std::to_string(job.terms) + " pieces" + (job.adds != 0 ? ", added to the other paths" : "") + "\n";
    }
    for (const GradientJob& job : schedule.gradient.jobs)
        text += "  " + polynomial.operands[at(static_cast<int>(job.output))].name + " + " + std::to_string(job.offset) + ": " +
                std::to_string(job.rows) + " x " + std::to_string(job.columns) + " summed over rows, in " + std::to_string(job.terms) +
                " pieces" + (job.adds != 0 ? ", added to the other paths" : "") + "\n";
    if (schedule.rest) text += "  other paths: " + std::to_string(schedule.rest->paths.size()) + "\n";
    return text;
}

}  // namespace clebsch
