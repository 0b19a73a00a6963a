#include "schedule/gpu_rows.hpp"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "base/error.hpp"

namespace clebsch {
namespace {

constexpr std::int64_t least_numbers = 64;      ///< of a row's matrices
constexpr std::size_t most_entries = 512;       ///< coefficients of a path, written out
constexpr int most_components = 48;             ///< of a product
constexpr int most_registers = 16;              ///< of sums a lane keeps
constexpr std::int64_t most_ahead = 1024;       ///< numbers of the matrices' rows that are made before the first product
constexpr std::int64_t most_shared = 96 << 10;  ///< bytes of a block

std::size_t at(int position) { return static_cast<std::size_t>(position); }
std::int64_t up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

bool is_empty(const Path& path) {
    return std::ranges::any_of(path.extents, [](const auto& extent) { return extent.second == 0; });
}

/// How a path is a product with a matrix: where in its factors that is, and the factor along the matrix's columns.
struct Form {
    std::size_t matrix = 0, right = 0;
    std::string rows;  ///< letters of the matrix but the column's, if it has one
};

/// All there are with this factor as the matrix: columns are its last letter, or there is one column.
void add_forms(const Path& path, std::size_t matrix, std::vector<Form>& forms) {
    const std::string& channels = path.factors[matrix].channels;
    if (channels.size() != path.extents.size()) return;  // letters it lacks
    for (std::size_t f = 0; f < path.factors.size(); ++f) {
        if (f == matrix) continue;
        const std::string& own = path.factors[f].channels;
        if (own.empty()) forms.push_back({matrix, f, channels});
        if (own.size() != 1 || channels.empty() || own.back() != channels.back()) continue;
        const bool alone = std::ranges::count_if(path.factors, [&](const Factor& factor) {
                               return factor.channels.find(own.back()) != std::string::npos;
                           }) == 2;
        if (alone) forms.push_back({matrix, f, channels.substr(0, channels.size() - 1)});
    }
}

/// Whether every row has numbers of its own there, without components.
bool may_be_matrix(const Polynomial& polynomial, const Factor& factor) {
    const Operand& operand = polynomial.operands[at(factor.operand)];
    return operand.rows.kind == Addressing::Kind::each && operand.segments[at(factor.segment)].components == 1;
}

/// One form for every path that has any: what has two letters or more in some path is a matrix; of several factors the one that is along
/// columns of most numbers.
std::vector<std::optional<Form>> forms_of(const Polynomial& polynomial) {
    std::set<int> matrices;
    std::map<int, std::int64_t> votes;  // of operands along columns
    for (const Path& path : polynomial.paths)
        for (std::size_t m = 0; m < path.factors.size(); ++m)
            if (path.factors[m].channels.size() >= 2 && may_be_matrix(polynomial, path.factors[m]))
                matrices.insert(path.factors[m].operand);
    std::vector<std::vector<Form>> all;
    for (const Path& path : polynomial.paths) {
        std::vector<Form>& forms = all.emplace_back();
        if (!restrictions(path).empty()) continue;
        for (std::size_t m = 0; m < path.factors.size(); ++m)
            if (matrices.contains(path.factors[m].operand) && may_be_matrix(polynomial, path.factors[m])) add_forms(path, m, forms);
        for (const Form& form : forms)
            if (form.rows.size() < path.factors[form.matrix].channels.size())
                votes[path.factors[form.right].operand] += channel_count(path, path.factors[form.matrix]);
    }
    std::vector<std::optional<Form>> chosen;
    for (std::size_t p = 0; p < all.size(); ++p) {
        const auto best = std::ranges::max_element(all[p], {}, [&](const Form& form) {
            return std::pair(votes[polynomial.paths[p].factors[form.right].operand],
                             polynomial.paths[p].factors[form.right].channels.size());
        });
        chosen.push_back(best == all[p].end() ? std::nullopt : std::optional(*best));
    }
    return chosen;
}

int registers_of_a_thread(const GpuProblem& problem, int blocks) {
    return std::min(255, problem.target.registers / (32 * RowsSchedule::warps * blocks) / 8 * 8);
}

/// Blocks on a multiprocessor: the more warps, the more of what a row waits for is hidden, as long as no number is spilled for it. Doubles
/// take two registers, 16-bit numbers of derivatives are unpacked eight at a time.
int blocks_for(const GpuProblem& problem, const RowsSchedule& schedule) {
    constexpr int reserved = 1024;  // bytes of a block, the hardware's own
    const auto is_narrow = [](GpuNumber number) { return bytes_of(number) == 2; };
    const auto only_read = [](const RowsProduct& product) { return product.kind == RowsProduct::Kind::into_right; };
    const bool forward = std::ranges::all_of(schedule.products, only_read);
    int most = 12;
    if (problem.compute == GpuNumber::float64) most = forward ? 8 : 6;
    else if (!forward && std::ranges::any_of(problem.storage, is_narrow)) most = 8;
    return std::clamp(problem.target.shared_bytes / (schedule.shared_bytes + reserved), 1, most);
}

/// What hides the way of the first matrices while a row's other numbers arrive. Much more drives out what earlier rows asked for: of
/// diffdock-1 3 kB make forward 4 % faster and 15 kB 9 % slower; gradients, which have more to do before, gain where that is the whole row.
std::vector<RowsAsked> asked_for(const GpuProblem& problem, const RowsSchedule& schedule) {
    constexpr std::int64_t beginning = 3072, small = 6144;  // bytes
    if (!problem.target.bulk_copies()) return {};
    std::vector<RowsAsked> list;
    std::int64_t bytes = 0;
    bool forward = true;
    for (const RowsProduct& product : schedule.products) {
        if (product.kind != RowsProduct::Kind::into_right) forward = false;
        if (product.kind == RowsProduct::Kind::written) continue;
        if (std::ranges::find(list, product.operand, &RowsAsked::operand) != list.end()) continue;
        list.push_back({product.operand, problem.polynomial.operands[at(product.operand)].size()});
        bytes += list.back().numbers * bytes_of(problem.storage[at(product.operand)]);
    }
    if (list.empty() || bytes <= small) return list;
    if (!forward) return {};
    const RowsAsked first = list.front();
    return {{first.operand, std::min(first.numbers, beginning / bytes_of(problem.storage[at(first.operand)]))}};
}

}  // namespace

std::optional<RowsSchedule> schedule_rows(const GpuProblem& problem, std::string& why_not) {
    using Kind = RowsProduct::Kind;
    const Polynomial& polynomial = problem.polynomial;
    const auto no = [&](const std::string& reason) {
        why_not = reason;
        return std::nullopt;
    };
    RowsSchedule schedule;
    schedule.matrix.assign(polynomial.operands.size(), false);
    using Matrix = std::tuple<int, int, Kind, std::string, std::string, std::vector<std::int64_t>>;  // the last: extents of its letters
    std::map<Matrix, std::map<std::pair<int, int>, RowsUse>> found;
    std::set<int> others;
    const std::vector<std::optional<Form>> forms = forms_of(polynomial);
    for (std::size_t p = 0; p < polynomial.paths.size(); ++p) {
        const Path& path = polynomial.paths[p];
        if (is_empty(path)) continue;
        const std::optional<Form>& form = forms[p];
        if (!form) return no("a path is no product with a matrix that every row has for itself");
        if (reduced_entries(path).size() > most_entries) return no("a path has too many coefficients");
        const Factor &matrix = path.factors[form->matrix], &right = path.factors[form->right];
        const Kind kind = form->matrix + 1 == path.factors.size()  ? Kind::written
                          : form->right + 1 == path.factors.size() ? Kind::into_right
                                                                   : Kind::into_left;
        schedule.matrix[at(matrix.operand)] = true;
        for (std::size_t f = 0; f < path.factors.size(); ++f)
            if (f != form->matrix) others.insert(path.factors[f].operand);
        std::vector<std::int64_t> shape;  // one segment may be matrices of several
        for (const char letter : matrix.channels) shape.push_back(path.extent(letter));
        RowsUse& use = found[{matrix.operand, matrix.segment, kind, matrix.channels, form->rows, shape}][{right.operand, right.segment}];
        use.operand = right.operand;
        use.segment = right.segment;
        use.components = polynomial.operands[at(right.operand)].segments[at(right.segment)].components;
        use.paths.push_back(static_cast<int>(p));
    }
    std::int64_t numbers = 0;
    for (std::size_t o = 0; o < polynomial.operands.size(); ++o)
        if (schedule.matrix[o]) numbers += polynomial.operands[o].size();
    if (numbers < least_numbers) return no("there are no matrices, or small ones");
    for (std::size_t o = 0; o < polynomial.operands.size(); ++o) {
        const Operand& operand = polynomial.operands[o];
        if (schedule.matrix[o] && others.contains(static_cast<int>(o))) return no("'" + operand.name + "' has matrices and other numbers");
        if (operand.role == Role::output && operand.rows.kind != Addressing::Kind::each && problem.ordered)
            return no("sums over rows have a fixed order");
        if (problem.is_message(o)) return no("messages are asked for");
    }
    // Where an index leads nowhere, paths that use it are zero: all, or the row could not be left out.
    std::optional<std::set<std::vector<std::string>>> chains;
    for (const Path& path : polynomial.paths) {
        if (is_empty(path)) continue;
        std::set<std::vector<std::string>> own;
        for (const Factor& factor : path.factors) own.insert(polynomial.operands[at(factor.operand)].rows.via);
        own.erase(std::vector<std::string>());
        if (chains && *chains != own) return no("paths go through different indices");
        chains = std::move(own);
    }
    for (const Operand& operand : polynomial.operands)
        if (operand.rows.kind == Addressing::Kind::indexed && !chains->contains(operand.rows.via)) return no("an operand is in no path");
    std::set<std::pair<int, int>> written;
    std::int64_t left = 0, right = 0, all_left = 0;
    for (const auto& [key, uses] : found) {
        const auto& [operand, segment, kind, channels, rows, shape] = key;
        const Path& path = polynomial.paths[at(uses.begin()->second.paths.front())];
        RowsProduct product{.kind = kind, .operand = operand, .segment = segment, .rows = rows, .uses = {}};
        for (const char letter : product.rows) product.left *= path.extent(letter);
        product.right = rows.size() < channels.size() ? path.extent(channels.back()) : 1;
        if (kind == Kind::written && !written.emplace(operand, segment).second) return no("a matrix is written in two arrangements");
        const auto add = [&] {
            const Operand& matrix = polynomial.operands[at(product.operand)];
            const std::int64_t most = 16 / bytes_of(problem.storage[at(product.operand)]);
            for (product.vector = 1; product.vector * 2 <= most; product.vector *= 2)
                if (product.right % (2 * product.vector) != 0 || matrix.offset(product.segment) % (2 * product.vector) != 0 ||
                    2 * product.vector * product.components > most_registers)
                    break;
            product.lanes = 1;
            while (product.lanes < 32 && product.lanes * product.vector < product.right) product.lanes *= 2;
            const std::int64_t numbers_of_rows = product.left * product.components;
            left = std::max(left, numbers_of_rows);
            if (product.kind != Kind::into_left) all_left += numbers_of_rows;
            if (product.uses.size() > 1) right = std::max(right, product.right * product.components);
            schedule.products.push_back(product);
            product.components = 0;
            product.uses.clear();
        };
        for (const auto& [factor, use] : uses) {
            if (product.components > 0 && product.components + use.components > most_components) {
                if (kind == Kind::written) return no("a matrix is the sum of too many products");
                add();
            }
            product.uses.push_back(use);
            product.uses.back().first = product.components;
            product.components += use.components;
        }
        if (product.components > most_components) return no("a factor has too many components");
        add();
    }
    for (std::size_t o = 0; o < polynomial.operands.size(); ++o) {
        const Operand& operand = polynomial.operands[o];
        if (!schedule.matrix[o]) {
            schedule.place.push_back(schedule.numbers);
            if (operand.role == Role::output || others.contains(static_cast<int>(o))) schedule.numbers += operand.size();
            continue;
        }
        schedule.place.push_back(-1);
        for (std::size_t s = 0; operand.role == Role::output && s < operand.segments.size(); ++s)
            if (operand.segments[s].size() > 0 && !written.contains({static_cast<int>(o), static_cast<int>(s)}))
                schedule.zero.emplace_back(static_cast<int>(o), static_cast<int>(s));
    }
    schedule.ahead = all_left <= most_ahead;
    const std::int64_t common = schedule.numbers;
    schedule.numbers += left;
    for (RowsProduct& product : schedule.products) {
        product.left_place = common;
        if (!schedule.ahead || product.kind == Kind::into_left) continue;
        product.left_place = schedule.numbers;
        schedule.numbers += product.left * product.components;
    }
    schedule.right_place = schedule.numbers;
    schedule.numbers += right;
    const std::int64_t bytes = RowsSchedule::warps * schedule.numbers * bytes_of(problem.compute);
    if (bytes > std::min<std::int64_t>(most_shared, problem.target.shared_bytes))
        return no("a row has too many numbers beside its matrices");
    schedule.shared_bytes = static_cast<int>(bytes);
    const int usual = blocks_for(problem, schedule);
    for (schedule.blocks = usual; schedule.blocks >= 1; --schedule.blocks) {
        schedule.spare_registers = registers_of_a_thread(problem, schedule.blocks) - registers_of_a_thread(problem, usual);
        if (schedule.blocks == 1 || schedule.spare_registers >= problem.spare.wanted) break;
    }
    schedule.asked = asked_for(problem, schedule);
    return schedule;
}

LaunchShape rows_shape(const RowsSchedule& schedule, std::int64_t rows) {
    const std::int64_t blocks = up(rows, RowsSchedule::warps);
    if (blocks > 0x7fffffff)
        throw Error(ErrorKind::unsupported,
                    "a launch of " + std::to_string(blocks) + " blocks is beyond what a GPU takes; divide the rows");
    return {.grid = {blocks, 1}, .threads = 32 * RowsSchedule::warps, .shared_bytes = schedule.shared_bytes};
}

std::string explain(const RowsSchedule& schedule, const GpuProblem& problem) {
    std::string text = "rows: " + std::to_string(problem.polynomial.paths.size()) + " paths, " + std::to_string(schedule.products.size()) +
                       " products with matrices; a warp a row, " + std::to_string(schedule.blocks) + " blocks of " +
                       std::to_string(RowsSchedule::warps) + " per multiprocessor, " + std::to_string(schedule.numbers) +
                       " other numbers in shared memory\n";
    for (const RowsAsked& asked : schedule.asked)
        text += "  asks the second-level cache for the first " + std::to_string(asked.numbers) + " numbers of " +
                problem.polynomial.operands[at(asked.operand)].name + " as it begins\n";
    for (const RowsProduct& product : schedule.products) {
        const Operand& operand = problem.polynomial.operands[at(product.operand)];
        text += "  " + operand.name + "." + std::to_string(product.segment) + ", " + std::to_string(product.left) + " x " +
                std::to_string(product.right) +
                (product.kind == RowsProduct::Kind::into_right  ? ", read for its columns: "
                 : product.kind == RowsProduct::Kind::into_left ? ", read for its rows: "
                                                                : ", written: ") +
                std::to_string(product.components) + " components, " + std::to_string(product.vector) + " numbers a lane, " +
                std::to_string(product.lanes) + " lanes a row of it\n";
    }
    return text;
}

}  // namespace clebsch
