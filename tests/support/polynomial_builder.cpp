#include "support/polynomial_builder.hpp"

#include <algorithm>
#include <cmath>
#include <set>

#include "describe/symmetric.hpp"

namespace clebsch::random {
namespace {

/// e3nn's modes with and without weights, their derivatives' modes, and others; the last entry of each list is the output.
const std::vector<std::vector<std::string>> modes = {
    {"u", "v", "uvw", "w"},
    {"u", "v", "uv", "u"},
    {"u", "v", "uv", "v"},
    {"u", "u", "uw", "w"},
    {"u", "u", "u", "u"},
    {"u", "v", "uv", "uv"},
    {"u", "v", "(u<v)", "(u<v)"},
    {"u", "v", "(u<v)w", "w"},  // e3nn, weighted
    {"u", "v", "u"},
    {"u", "v", "v"},
    {"u", "u", "u"},
    {"u", "v", "uv"},
    {"u", "v", "(u<v)"},  // unweighted
    {"u", "", "u"},
    {"u", "", "u", "u"},
    {"u", "v", "w", "uvw"},
    {"v", "uvw", "w", "u"},
    {"u", "uv", "v"},
    {"u", "vu", "v"},
    {"u", "v", "", "uv"},
    {"u", "u"},
    {"u", ""},
    {"", "u"},
    {"u", "uv"},
    {"uv", "vu"},
    {"uv", "vw", "uw"},
    {"u", "u", ""},
    {"u", "v", ""},
    {"", ""},
    {"", "", ""},
    {"u", "", "", "u"},
    {"u", "u", "u", "u", "u"},
    {"(u<v)", "u"},
    {"(u<v)", "u", "v"},
    {"(u<v)w", "w", "(u<v)"},
    {"u"},
    {""},
    {"uv"},
};

std::set<char> letters_of(const std::string& channels) {
    std::set<char> letters;
    for (const char c : channels)
        if (c >= 'a' && c <= 'z') letters.insert(c);
    return letters;
}

template <class T>
void shuffle(Engine& engine, std::vector<T>& items) {
    std::shuffle(items.begin(), items.end(), engine);
}

}  // namespace

int below(Engine& engine, int n) { return static_cast<int>(engine() % static_cast<std::uint64_t>(n)); }
bool chance(Engine& engine, double probability) { return std::uniform_real_distribution<double>()(engine) < probability; }
double normal(Engine& engine) { return std::normal_distribution<double>()(engine); }

std::vector<Index> random_indices(Engine& engine) {
    const std::vector<Index> all = {{"sender", "edge", "node", chance(engine, 0.1)},
                                    {"receiver", "edge", "node", chance(engine, 0.6)},
                                    {"graph", "node", "graph", chance(engine, 0.7)},
                                    {"species", "node", "species", false},
                                    {"parent", "node", "node", chance(engine, 0.2)}};
    std::vector<Index> chosen;
    for (const Index& index : all)
        if (chance(engine, index.name == "parent" ? 0.15 : 0.75)) chosen.push_back(index);
    return chosen;
}

std::vector<Index> reachable(const std::vector<Index>& indices, const std::string& space) {
    std::vector<std::string> spaces = {space};
    for (std::size_t i = 0; i < spaces.size(); ++i)
        for (const Index& index : indices)
            if (index.from == spaces[i] && std::ranges::find(spaces, index.to) == spaces.end()) spaces.push_back(index.to);
    std::vector<Index> result;
    for (const Index& index : indices)
        if (std::ranges::find(spaces, index.from) != spaces.end()) result.push_back(index);
    return result;
}

PolynomialBuilder::PolynomialBuilder(Engine& engine, const Limits& limits, std::string rows, std::vector<Index> indices)
    : engine_(engine), limits_(limits) {
    polynomial_.rows = std::move(rows);
    polynomial_.indices = std::move(indices);
    addressings_ = {each_row(), each_row(), shared_row()};
    for (const Index& first : polynomial_.indices) {
        if (first.from != polynomial_.rows) continue;
        addressings_.insert(addressings_.end(), 2, row_of(first.name));
        for (const Index& second : polynomial_.indices)
            if (second.from == first.to) addressings_.push_back(row_of({first.name.c_str(), second.name.c_str()}));
    }
}

bool PolynomialBuilder::reaches(const std::string& space) const {
    return std::ranges::any_of(addressings_, [&](const Addressing& rows) {
        return polynomial_.space_of({"", {}, Layout::mul_ir, Role::input, rows}) == space;
    });
}

void PolynomialBuilder::offer(const std::string& name, const std::vector<Segment>& segments, Layout layout, const std::string& space) {
    std::vector<Operand> choices;
    for (const Addressing& rows : addressings_) {
        const Operand operand{name, segments, layout, Role::input, rows};
        if (polynomial_.space_of(operand) == space) choices.push_back(operand);
    }
    polynomial_.operands.push_back(pick(engine_, choices));
    given_.push_back(true);
}

void PolynomialBuilder::letters_of_random_mode(Mode& mode) {
    const std::size_t inputs = static_cast<std::size_t>(1 + below(engine_, 3));
    for (std::size_t f = 0; f <= inputs; ++f) {
        std::vector<char> letters = {'k', 'u', 'w'};
        shuffle(engine_, letters);
        letters.resize(static_cast<std::size_t>(below(engine_, 3)));
        const std::string channels(letters.begin(), letters.end());
        if (f < inputs) mode.inputs.push_back(channels);
        else mode.output = channels;
    }
}

PolynomialBuilder::Mode PolynomialBuilder::random_mode() {
    Mode mode;
    if (chance(engine_, 0.12)) {
        letters_of_random_mode(mode);
    } else if (chance(engine_, 0.2)) {  // powers, as in harmonics and symmetric contractions
        mode.power = 2 + below(engine_, 3);
        const std::string channels = chance(engine_, 0.6) ? "u" : "";
        mode.inputs.assign(static_cast<std::size_t>(mode.power), channels);
        if (chance(engine_, 0.5)) mode.inputs.push_back(chance(engine_, 0.7) ? channels : "u");
        mode.output = chance(engine_, 0.8) ? channels : "";
    } else {
        mode.inputs = pick(engine_, modes);
        mode.output = mode.inputs.back();
        mode.inputs.pop_back();
    }
    return mode;
}

/// operand -1: none.
PolynomialBuilder::Place PolynomialBuilder::random_input_segment() {
    const std::int64_t most = std::ranges::max(limits_.channels);
    std::vector<Place> places;
    for (std::size_t o = 0; o < polynomial_.operands.size(); ++o)
        for (std::size_t s = 0; polynomial_.operands[o].role == Role::input && s < polynomial_.operands[o].segments.size(); ++s)
            if (const std::int64_t channels = polynomial_.operands[o].segments[s].multiplicity; channels > 0 && channels <= most)
                places.emplace_back(o, s);
    if (places.empty() || chance(engine_, 0.3)) return {-1, -1};
    return pick(engine_, places);
}

Coefficients PolynomialBuilder::literal(std::vector<Need>& needs, std::vector<std::size_t> carriers, int first_components) {
    std::vector<int> shape;
    int size = 1;
    for (std::size_t axis = 0; axis < carriers.size(); ++axis) {
        Need& need = needs[carriers[axis]];
        const int wanted = carriers[axis] == 0 && first_components > 0 ? first_components : 1 + below(engine_, 7);
        need.components = size * wanted > 60 && carriers[axis] != 0 ? 2 : wanted;
        need.axis = static_cast<int>(axis);
        if (need.components % 2 == 1 && chance(engine_, 0.3))
            need.irrep = Irrep{need.components / 2, chance(engine_, 0.5) ? Parity::odd : Parity::even};
        shape.push_back(need.components);
        size *= need.components;
    }
    std::vector<CoefficientEntry> entries;
    std::vector<int> index(shape.size(), 0);
    const double density = size < 4 ? 0.9 : 0.35;
    for (int i = 0; i < size; ++i) {
        if (chance(engine_, density)) entries.push_back({index, normal(engine_)});
        for (std::size_t a = 0; a < shape.size() && ++index[a] == shape[a]; ++a) index[a] = 0;
    }
    return Coefficients::literal(std::move(shape), std::move(entries));
}

Coefficients PolynomialBuilder::coupling(std::vector<Need>& needs, std::vector<std::size_t> carriers, int first_components) {
    // The first carrier's degree may be given; the others follow from it, whatever axes they get.
    int degrees[3];
    degrees[0] = carriers[0] == 0 && first_components > 0 ? first_components / 2 : below(engine_, chance(engine_, 0.1) ? 6 : 4);
    degrees[1] = below(engine_, 4);
    degrees[2] = std::abs(degrees[0] - degrees[1]) + below(engine_, 2 * std::min(degrees[0], degrees[1]) + 1);
    const int kind = below(engine_, 3);  // SO(3), all even, two odd
    std::vector<int> axes = {0, 1, 2};
    if (chance(engine_, 0.5)) shuffle(engine_, axes);
    Irrep irreps[3];
    for (std::size_t i = 0; i < 3; ++i) {
        const Irrep irrep{degrees[i], kind == 0 ? Parity::none : kind == 1 || i == 1 ? Parity::even : Parity::odd};
        Need& need = needs[carriers[i]];
        need.components = irrep.dim();
        need.axis = axes[i];
        if (chance(engine_, 0.8)) need.irrep = irrep;
        irreps[axes[i]] = irrep;
    }
    return Coefficients::cg(irreps[0], irreps[1], irreps[2], chance(engine_, 0.2));
}

/// harmonic(power) or a symmetric coupling of equal irreps, to the output.
Coefficients PolynomialBuilder::power_coefficients(std::vector<Need>& needs, int power) {
    const auto inputs = static_cast<std::size_t>(power);
    const auto set = [&](std::size_t factor, int axis, Irrep irrep) {
        needs[factor].axis = axis;
        needs[factor].components = irrep.dim();
        needs[factor].irrep = irrep;
    };
    if (chance(engine_, 0.4)) {
        for (std::size_t f = 0; f < inputs; ++f) set(f, static_cast<int>(f), {1, Parity::odd});
        set(needs.size() - 1, power, {power, power % 2 ? Parity::odd : Parity::even});
        return Coefficients::harmonic(power);
    }
    const Irrep irrep{1 + below(engine_, power == 2 ? 3 : 2), chance(engine_, 0.5) ? Parity::odd : Parity::even};
    const std::vector<Irrep> list(inputs, irrep);
    while (true) {  // the irrep itself or a scalar always appears
        const Irrep output{below(engine_, 4), power % 2 ? irrep.parity : Parity::even};
        const auto couplings = symmetric_couplings(list, output);
        if (couplings->empty()) continue;
        for (std::size_t f = 0; f < inputs; ++f) set(f, static_cast<int>(f), irrep);
        set(needs.size() - 1, power, output);
        return Coefficients::named("symmetric(" + symmetric_text(list, output) + ";" +
                                   std::to_string(below(engine_, static_cast<int>(couplings->size()))) + ")");
    }
}

Coefficients PolynomialBuilder::choose_coefficients(const Mode& mode, std::vector<Need>& needs, int first_components) {
    const bool power = mode.power > 1;
    if (power && first_components == 0 && chance(engine_, 0.5)) return power_coefficients(needs, mode.power);
    if (first_components <= 1 && chance(engine_, 0.2)) return {};  // one: all factors have one component
    std::vector<std::size_t> carriers;
    for (std::size_t f = 0; f < needs.size(); ++f)
        if ((f == 0 && first_components > 1) || chance(engine_, 0.75)) carriers.push_back(f);
    if (power) {  // repeated factors have equal components: all of them or none carry an axis
        std::erase_if(carriers, [&](std::size_t f) { return f < static_cast<std::size_t>(mode.power); });
        if (first_components != 1)
            for (int f = 0; f < mode.power; ++f) carriers.insert(carriers.begin() + f, static_cast<std::size_t>(f));
        const int components = first_components > 0 ? first_components : 1 + below(engine_, mode.power == 2 ? 5 : 3);
        Coefficients tensor = literal(needs, carriers, components);
        bool equal = true;
        for (int f = 1; f < mode.power; ++f) equal = equal && needs[static_cast<std::size_t>(f)].components == needs[0].components;
        if (equal) return tensor;
        // A cube of the first factor's components instead, the rest without axes.
        for (Need& need : needs) need = {need.channels, 1, 1, -1, std::nullopt};
        std::vector<CoefficientEntry> entries;
        for (int i = 0; i < 3 * components; ++i) {
            std::vector<int> index;
            for (int f = 0; f < mode.power; ++f) index.push_back(below(engine_, components));
            entries.push_back({std::move(index), normal(engine_)});
        }
        for (int f = 0; f < mode.power; ++f) {
            needs[static_cast<std::size_t>(f)].axis = f;
            needs[static_cast<std::size_t>(f)].components = components;
        }
        return Coefficients::literal(std::vector<int>(static_cast<std::size_t>(mode.power), components), std::move(entries));
    }
    const bool odd = first_components == 0 || (first_components % 2 == 1 && first_components < 12);
    if (carriers.size() == 3 && odd && chance(engine_, 0.8)) return coupling(needs, carriers, first_components);
    if (carriers.size() == 2 && chance(engine_, 0.6)) {
        const int n = carriers[0] == 0 && first_components > 0 ? first_components : 1 + below(engine_, 5);
        for (std::size_t i = 0; i < 2; ++i) {
            needs[carriers[i]].axis = static_cast<int>(i);
            needs[carriers[i]].components = n;
        }
        return Coefficients::identity(n);
    }
    if (chance(engine_, 0.3)) shuffle(engine_, carriers);
    return literal(needs, carriers, first_components);
}

std::vector<std::pair<char, std::int64_t>> PolynomialBuilder::choose_extents(const Mode& mode, double entries,
                                                                             std::int64_t first_multiplicity) {
    std::map<char, std::int64_t> extents;
    const auto visit = [&](const std::string& channels) {
        for (const char letter : letters_of(channels)) extents[letter] = pick(engine_, limits_.channels);
    };
    for (const std::string& channels : mode.inputs) visit(channels);
    visit(mode.output);
    if (!mode.inputs.empty() && mode.inputs[0].size() == 1 && first_multiplicity > 0) extents[mode.inputs[0][0]] = first_multiplicity;
    const char anchor = !mode.inputs.empty() && mode.inputs[0].size() == 1 && first_multiplicity > 0 ? mode.inputs[0][0] : '\0';
    const auto equal_pairs = [&](const std::string& channels) {
        for (std::size_t i = channels.find('('); i != channels.npos; i = channels.find('(', i + 1)) {
            const char first = channels[i + 1], second = channels[i + 3];
            (second == anchor ? extents[first] : extents[second]) = second == anchor ? extents[second] : extents[first];
        }
    };
    const auto equalize = [&] {
        for (const std::string& channels : mode.inputs) equal_pairs(channels);
        equal_pairs(mode.output);
    };
    equalize();
    for (int attempt = 0; attempt < 20; ++attempt) {
        double loops = 1;
        for (const auto& [letter, extent] : extents) loops *= static_cast<double>(extent);
        if (loops * entries <= limits_.path_work) break;
        auto largest = extents.end();  // shrink the largest that may change
        for (auto it = extents.begin(); it != extents.end(); ++it)
            if (it->first != anchor && (largest == extents.end() || it->second > largest->second)) largest = it;
        if (largest == extents.end()) break;
        largest->second =
            attempt < 10 ? std::min(largest->second, pick(engine_, limits_.channels)) : std::min<std::int64_t>(largest->second, 2);
        equalize();
    }
    return {extents.begin(), extents.end()};
}

void PolynomialBuilder::append(Operand& operand, const Need& need) {
    if (chance(engine_, 0.08)) operand.segments.push_back({below(engine_, 4), 1 + below(engine_, 3), std::nullopt});  // used by no path
    operand.segments.push_back({need.multiplicity, need.components, need.irrep});
}

PolynomialBuilder::Place PolynomialBuilder::place(const Need& need, Role role) {
    std::vector<Place> fitting;
    std::vector<int> open;
    int count = 0;
    for (std::size_t o = 0; o < polynomial_.operands.size(); ++o) {
        const Operand& operand = polynomial_.operands[o];
        if (operand.role != role) continue;
        ++count;
        if (!given_[o]) open.push_back(static_cast<int>(o));
        for (std::size_t s = 0; s < operand.segments.size(); ++s)
            if (operand.segments[s].multiplicity == need.multiplicity && operand.segments[s].components == need.components)
                fitting.emplace_back(o, s);
    }
    if (!fitting.empty() && chance(engine_, 0.7)) return pick(engine_, fitting);
    const int most = role == Role::output ? limits_.outputs : 6;
    if (open.empty() || (count < most && chance(engine_, 0.5))) {
        Operand operand;
        operand.name = (role == Role::output ? "out" : "in") + std::to_string(polynomial_.operands.size());
        operand.layout = chance(engine_, 0.5) ? Layout::mul_ir : Layout::ir_mul;
        operand.role = role;
        operand.rows = pick(engine_, addressings_);
        open = {static_cast<int>(polynomial_.operands.size())};
        polynomial_.operands.push_back(std::move(operand));
        given_.push_back(false);
    }
    const int chosen = pick(engine_, open);
    Operand& operand = polynomial_.operands[static_cast<std::size_t>(chosen)];
    append(operand, need);
    return {chosen, static_cast<int>(operand.segments.size()) - 1};
}

void PolynomialBuilder::add_path() {
    const Mode mode = random_mode();
    // The first factor may be a segment that is there already; its multiplicity and components then are given.
    Place first = {-1, -1};
    Segment given{0, 0, std::nullopt};
    if (!mode.inputs.empty() && mode.inputs[0].size() <= 1) first = random_input_segment();
    if (first.first >= 0) {
        given = polynomial_.operands[static_cast<std::size_t>(first.first)].segments[static_cast<std::size_t>(first.second)];
        const bool fits = (!mode.inputs[0].empty() || given.multiplicity == 1) && (mode.power <= 2 || given.components <= 5);
        if (!fits) first = {-1, -1}, given = {0, 0, std::nullopt};
    }

    std::vector<Need> needs;
    for (const std::string& channels : mode.inputs) needs.push_back({channels, 1, 1, -1, std::nullopt});
    needs.push_back({mode.output, 1, 1, -1, std::nullopt});

    Path path;
    path.coefficients = choose_coefficients(mode, needs, given.components);
    const double entries = static_cast<double>(path.coefficients.entries().size());
    path.extents = choose_extents(mode, entries, given.multiplicity);
    for (std::size_t f = 0; f < needs.size(); ++f) {
        Need& need = needs[f];
        need.multiplicity = channel_count(path, {0, 0, need.channels, -1});
        Place chosen;
        if (f == 0 && first.first >= 0) chosen = first;
        else if (f > 0 && f < static_cast<std::size_t>(mode.power)) chosen = {path.factors[0].operand, path.factors[0].segment};
        else chosen = place(need, f + 1 == needs.size() ? Role::output : Role::input);
        path.factors.push_back({chosen.first, chosen.second, need.channels, need.axis});
    }
    // Outputs near 1 for inputs near 1: divide by the root of the number of terms summed per output number.
    double loops = 1;
    for (const auto& [letter, extent] : path.extents) loops *= static_cast<double>(extent);
    const double numbers = static_cast<double>(needs.back().multiplicity * needs.back().components);
    path.scale =
        chance(engine_, 0.1) ? 1.0 : (0.5 + std::abs(normal(engine_))) / std::sqrt(std::max(1.0, loops * entries / std::max(1.0, numbers)));
    if (chance(engine_, 0.3)) path.scale = -path.scale;
    polynomial_.paths.push_back(std::move(path));
}

}  // namespace clebsch::random
