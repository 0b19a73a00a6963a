// The straight-line code of a row. Paths of one coupling and its derivatives differ only in which axis of the same coefficients C[a,b,c]
// the output takes, so two kinds of shared sums cover all of them:
//   output on the third axis or on none:  z[c] = sum over a, b of C[a,b,c] p[a,b] with products p of the first two axes' factors
//   output on the first or second axis:   t[a,b] = sum over c of C[a,b,c] w[c] with w of everything else; out[a] += t[a,b] y[b]
// Paths that differ only in their products p, or only in their w, are added before coefficients are applied.
#include "emit/stream_body.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <set>

namespace clebsch {
namespace {

using Kind = KernelArgument::Kind;

struct Entry {
    int index[3];
    double value;  // scale included
};

/// A path with its factors on three axes.
struct Term {
    const Path* path = nullptr;
    SegmentName axis[3] = {absent, absent, absent};
    std::vector<SegmentName> scalars;  // inputs without an axis
    SegmentName output;
    int output_axis = -1;
    std::vector<Entry> entries;
    std::string coefficients;  // text that tells entries apart

    static constexpr SegmentName absent{-1, -1};
};

Term term_of(const Path& path, const std::array<int, 3>& axes) {
    Term term;
    term.path = &path;
    std::array<int, 3> source{-1, -1, -1};  // axis of the coefficients for each of the three
    for (int f = 0; f < static_cast<int>(path.factors.size()); ++f) {
        const Factor& factor = path.factors[static_cast<std::size_t>(f)];
        const SegmentName name{factor.operand, factor.segment};
        const auto place = std::ranges::find(axes, f);
        const bool output = f + 1 == static_cast<int>(path.factors.size());
        if (place != axes.end()) {
            term.axis[place - axes.begin()] = name;
            source[static_cast<std::size_t>(place - axes.begin())] = factor.axis;
        } else if (!output) {
            term.scalars.push_back(name);
        }
        if (output) {
            term.output = name;
            term.output_axis = place == axes.end() ? -1 : static_cast<int>(place - axes.begin());
        }
    }
    std::ranges::sort(term.scalars);
    for (const CoefficientEntry& entry : path.coefficients.entries()) {
        Entry copy{{0, 0, 0}, entry.value * path.scale};
        for (std::size_t k = 0; k < 3; ++k)
            if (source[k] >= 0) copy.index[k] = entry.index[static_cast<std::size_t>(source[k])];
        term.entries.push_back(copy);
    }
    term.coefficients = path.coefficients.to_text() + "@" + std::to_string(source[0]) + std::to_string(source[1]) +
                        std::to_string(source[2]) + "*" + literal(path.scale, GpuNumber::float64);
    return term;
}

/// Where numbers of a segment, one channel per lane, go in memory.
struct Destination {
    SegmentName name;
    std::string base;  // pointer expression of the row
    bool adds = false;
    std::int64_t guard = -1;  // channels of the paths if they end within the warp
};

/// Stores or adds the numbers. A warp's channels of a mul_ir segment are one run of memory: they are turned in shared memory so that
/// neighbouring lanes write neighbouring numbers.
void write_numbers(SourceText& source, const GpuProblem& problem, const Destination& to, const std::vector<std::string>& numbers) {
    const Operand& operand = problem.polynomial.operands[static_cast<std::size_t>(to.name.operand)];
    const Segment& segment = operand.segments[static_cast<std::size_t>(to.name.segment)];
    const bool mul_ir = operand.layout == Layout::mul_ir && segment.components > 1;
    const std::string put = to.adds ? "add(" : "store_once(", begin = to.base + " + " + literal(operand.offset(to.name.segment));
    const auto components = static_cast<std::int64_t>(numbers.size());
    if (mul_ir && to.guard < 0) {
        for (std::int64_t c = 0; c < components; ++c)
            source.line("turn[lane * " + literal(components) + " + " + literal(c) + "] = " + numbers[static_cast<std::size_t>(c)] + ";");
        source.line("__syncwarp();");
        for (std::int64_t c = 0; c < components; ++c)
            source.line(put + begin + " + (channel - lane) * " + literal(components) + " + " + literal(32 * c) + " + lane, turn[" +
                        literal(32 * c) + " + lane]);");
        source.line("__syncwarp();");
        return;
    }
    if (to.guard >= 0) source.line("if (channel < " + literal(to.guard) + ") {");
    for (std::int64_t c = 0; c < components; ++c)
        source.line(
            put + begin +
            (mul_ir ? " + channel * " + literal(components) + " + " + literal(c) : " + channel + " + literal(c * segment.multiplicity)) +
            ", " + numbers[static_cast<std::size_t>(c)] + ");");
    if (to.guard >= 0) source.line("}");
}

/// Where a sum t[a,b] goes: multiplied by `other`, into an output on axis 0 or 1.
struct User {
    SegmentName output, other;
    int axis = 0;
    friend auto operator<=>(const User&, const User&) = default;
};

class RowWriter {
 public:
    RowWriter(SourceText& source, const GpuProblem& problem, const StreamSchedule& schedule, const StreamBody& body)
        : source_(source), problem_(problem), schedule_(schedule), type_(type_name(problem.compute)) {
        for (std::size_t i = 0; i < body.paths.size(); ++i)
            terms_.push_back(term_of(problem.polynomial.paths[static_cast<std::size_t>(body.paths[i])],
                                     schedule.axes[static_cast<std::size_t>(body.paths[i])]));
        for (std::size_t i = 0; i < body.paths.size(); ++i)
            for (const Factor& factor : terms_[i].path->factors)
                if (body.partial[i] && !factor.channels.empty())
                    guards_[{factor.operand, factor.segment}] = terms_[i].path->extents.front().second;
        for (const Factor* factor : channel_factors()) with_channels_.insert({factor->operand, factor->segment});
    }

    void write() {
        std::map<std::pair<int, int>, std::vector<const Term*>> pairs;  // by the segments on the first two axes
        for (const Term& term : terms_) pairs[{term.axis[0].segment, term.axis[1].segment}].push_back(&term);
        std::map<SegmentName, std::size_t> last;  // the pair after which an output is complete
        std::size_t n = 0;
        for (const auto& [key, terms] : pairs) {
            for (const Term* term : terms) last[term->output] = n;
            ++n;
        }
        n = 0;
        for (const auto& [key, terms] : pairs) {
            source_.line("// segments " + std::to_string(key.first) + " x " + std::to_string(key.second));
            write_products(terms);
            write_couplings(terms);
            for (const auto& [output, pair] : last)
                if (pair == n) write_output(output);
            ++n;
        }
        write_reduced();
    }

 private:
    SourceText& source_;
    const GpuProblem& problem_;
    const StreamSchedule& schedule_;
    std::string type_;
    std::vector<Term> terms_;
    std::map<SegmentName, std::int64_t> guards_;  // channels of segments that end within the warp
    std::set<SegmentName> with_channels_;
    std::set<std::string> declared_;
    std::map<std::string, std::string> products_;  // key -> name prefix
    int count_ = 0;

    std::vector<const Factor*> channel_factors() const {
        std::vector<const Factor*> list;
        for (const Term& term : terms_)
            for (const Factor& factor : term.path->factors)
                if (!factor.channels.empty()) list.push_back(&factor);
        return list;
    }
    const Operand& operand(int o) const { return problem_.polynomial.operands[static_cast<std::size_t>(o)]; }
    const Segment& segment(SegmentName name) const { return operand(name.operand).segments[static_cast<std::size_t>(name.segment)]; }
    StreamWay way(SegmentName name) const { return schedule_.operands[static_cast<std::size_t>(name.operand)].way; }
    std::string fresh(const char* letter) { return letter + std::to_string(count_++); }

    std::string place(SegmentName name, int component) const {
        const Operand& o = operand(name.operand);
        const Segment& s = segment(name);
        const bool mul_ir = o.layout == Layout::mul_ir;
        std::string text = literal(o.offset(name.segment) + component * (mul_ir ? 1 : s.multiplicity));
        if (with_channels_.contains(name))
            text += mul_ir && s.components > 1 ? " + channel * " + literal(std::int64_t{s.components}) : " + channel";
        return text;
    }

    /// The name of an input's number, loaded when first asked for.
    std::string value(SegmentName name, int component) {
        const std::string text = "v" + std::to_string(name.operand) + "_" + std::to_string(name.segment) + "_" + std::to_string(component);
        if (way(name) == StreamWay::constant || !declared_.insert(text).second) return text;
        std::string load = "number<" + type_ + ">(stage_" + std::to_string(name.operand) + "[" + place(name, component) + "])";
        if (const auto guard = guards_.find(name); guard != guards_.end() && with_channels_.contains(name))
            load = "channel < " + literal(guard->second) + " ? " + load + " : " + type_ + "(0)";
        source_.line("const " + type_ + " " + text + " = " + load + ";");
        return text;
    }
    /// The name of an output's number; sums of the receiver are declared outside.
    std::string result(SegmentName name, int component) {
        const std::string text = "d" + std::to_string(name.operand) + "_" + std::to_string(name.segment) + "_" + std::to_string(component);
        if (way(name) != StreamWay::accumulated && declared_.insert(text).second) source_.line(type_ + " " + text + " = 0;");
        return text;
    }
    std::string scalars_text(const Term& term) {
        std::vector<std::string> parts;
        for (const SegmentName name : term.scalars) parts.push_back(value(name, 0));
        return joined(parts, " * ");
    }
    static std::string key_of(SegmentName name) { return std::to_string(name.operand) + "." + std::to_string(name.segment) + ","; }
    static std::string key_of(const Term& term) {
        std::string key = term.coefficients + "|";
        for (const SegmentName name : term.scalars) key += key_of(name);
        return key;
    }
    std::string coefficient(const Entry& entry) const { return literal(entry.value, problem_.compute); }
    /// The product of two inputs' numbers, either of which may be absent.
    std::string product(SegmentName a, int i, SegmentName b, int j) {
        std::vector<std::string> parts;
        if (a != Term::absent) parts.push_back(value(a, i));
        if (b != Term::absent) parts.push_back(value(b, j));
        return parts.empty() ? type_ + "(1)" : joined(parts, " * ");
    }

    /// Outputs on the third axis or on none.
    void write_products(const std::vector<const Term*>& terms) {
        struct Form {
            const Term* first = nullptr;
            std::multiset<std::pair<SegmentName, SegmentName>> pairs;
        };
        std::map<std::string, Form> forms;
        std::vector<std::string> order;
        for (const Term* term : terms) {
            if (term->output_axis == 0 || term->output_axis == 1) continue;
            std::string key = key_of(*term) + "|" + key_of(term->output);
            if (term->output_axis < 0) key += "|" + key_of(term->axis[2]);
            Form& form = forms[key];
            if (form.first == nullptr) order.push_back(key);
            form.first = form.first == nullptr ? term : form.first;
            form.pairs.emplace(term->axis[0], term->axis[1]);
        }
        std::map<std::string, std::string> sums;  // of products: coefficients and pairs -> name
        for (const std::string& key : order) {
            const Form& form = forms.at(key);
            const Term& term = *form.first;
            std::string sum_key = term.coefficients, pair_key;
            for (const auto& [a, b] : form.pairs) pair_key += key_of(a) + key_of(b);
            sum_key += pair_key;
            const bool known = sums.contains(sum_key);
            if (!known) sums[sum_key] = fresh("z");
            const std::string z = sums.at(sum_key) + "_";
            const int components = term.axis[2] == Term::absent ? 1 : segment(term.axis[2]).components;
            std::vector<std::string> parts;
            if (!known)  // all sums before their uses: a use right behind its sum would wait for it
                for (int c = 0; c < components; ++c) write_sum(term, form.pairs, pair_key, c, z + std::to_string(c));
            for (int c = 0; c < components; ++c) {
                if (!declared_.contains(z + std::to_string(c))) continue;
                if (term.output_axis == 2) {
                    const std::string front = scalars_text(term);
                    source_.line(result(term.output, c) + " += " + (front.empty() ? "" : front + " * ") + z + std::to_string(c) + ";");
                } else {
                    parts.push_back((term.axis[2] == Term::absent ? "" : value(term.axis[2], c) + " * ") + z + std::to_string(c));
                }
            }
            if (parts.empty()) continue;
            const std::string sum = joined(parts, " + "), front = scalars_text(term), out = result(term.output, 0);
            source_.line(out + " += " + (front.empty() ? sum : front + " * (" + sum + ")") + ";");
        }
    }

    /// z[c] = sum over a, b of C[a,b,c] p[a,b] under the given name, unless there are no such entries.
    void write_sum(const Term& term, const std::multiset<std::pair<SegmentName, SegmentName>>& pairs, const std::string& pair_key, int c,
                   const std::string& name) {
        std::vector<std::string> parts;
        for (const Entry& entry : term.entries) {
            if (entry.index[2] != c) continue;
            const int a = entry.index[0], b = entry.index[1];
            const std::string key = pair_key + "|" + std::to_string(a) + "," + std::to_string(b);
            auto found = products_.find(key);
            if (found == products_.end()) {
                std::vector<std::string> products;
                for (const auto& [first, second] : pairs) products.push_back(product(first, a, second, b));
                found = products_.emplace(key, fresh("p")).first;
                source_.line("const " + type_ + " " + found->second + " = " + joined(products, " + ") + ";");
            }
            parts.push_back(coefficient(entry) + " * " + found->second);
        }
        if (parts.empty()) return;
        source_.line("const " + type_ + " " + name + " = " + joined(parts, " + ") + ";");
        declared_.insert(name);
    }

    /// Outputs on the first or second axis.
    void write_couplings(const std::vector<const Term*>& terms) {
        std::map<User, std::multimap<std::string, const Term*>> contributions;  // equal paths count as often as they occur
        for (const Term* term : terms)
            if (term->output_axis == 0 || term->output_axis == 1)
                contributions[{term->output, term->axis[1 - term->output_axis], term->output_axis}].emplace(
                    key_of(*term) + "|" + key_of(term->axis[2]), term);
        std::map<std::string, std::vector<User>> users;
        for (const auto& [user, list] : contributions) {
            std::string key;
            for (const auto& [text, term] : list) key += text + "#";
            users[key].push_back(user);
        }
        std::map<std::string, std::string> weighted;  // w: scalars and third factor -> name
        for (const auto& [key, list] : users) {
            std::map<std::pair<int, int>, std::vector<std::string>> sums;
            for (const auto& [text, term] : contributions.at(list.front())) {
                std::string w;
                if (!term->scalars.empty()) {
                    std::string w_key = key_of(term->axis[2]);
                    for (const SegmentName name : term->scalars) w_key += key_of(name);
                    auto found = weighted.find(w_key);
                    if (found == weighted.end()) {
                        found = weighted.emplace(w_key, fresh("w")).first;
                        const std::string front = scalars_text(*term);
                        const bool alone = term->axis[2] == Term::absent;
                        for (int c = 0; c < (alone ? 1 : segment(term->axis[2]).components); ++c)
                            source_.line("const " + type_ + " " + found->second + "_" + std::to_string(c) + " = " + front +
                                         (alone ? "" : " * " + value(term->axis[2], c)) + ";");
                    }
                    w = found->second + "_";
                }
                for (const Entry& entry : term->entries) {
                    std::string factor;
                    if (!w.empty()) factor = " * " + w + std::to_string(entry.index[2]);
                    else if (term->axis[2] != Term::absent) factor = " * " + value(term->axis[2], entry.index[2]);
                    sums[{entry.index[0], entry.index[1]}].push_back(coefficient(entry) + factor);
                }
            }
            for (const auto& [place_of_sum, parts] : sums) {
                const auto [a, b] = place_of_sum;
                const std::string t = fresh("t");
                source_.line("const " + type_ + " " + t + " = " + joined(parts, " + ") + ";");
                for (const User& user : list) {
                    const std::string other = user.other == Term::absent ? "" : " * " + value(user.other, user.axis == 0 ? b : a);
                    source_.line(result(user.output, user.axis == 0 ? a : b) + " += " + t + other + ";");
                }
            }
        }
    }

    /// Stores or adds an output of the row that is complete.
    void write_output(SegmentName name) {
        const StreamWay how = way(name);
        if (how != StreamWay::stored && how != StreamWay::scattered) return;
        const bool adds = how == StreamWay::scattered;
        const auto argument = [&](Kind kind) { return "a." + argument_name(problem_, {kind, name.operand}); };
        std::vector<std::string> numbers;
        for (int c = 0; c < segment(name).components; ++c) {
            const std::string number = "d" + std::to_string(name.operand) + "_" + std::to_string(name.segment) + "_" + std::to_string(c);
            numbers.push_back(declared_.contains(number) ? number : type_ + "(0)");
        }
        const std::string row = adds ? "info.at_" + std::to_string(name.operand) : "info.row";
        const auto guard = guards_.find(name);
        write_numbers(
            source_, problem_,
            {.name = name,
             .base = argument(adds ? Kind::sums : Kind::data) + " + " + row + " * " + argument(adds ? Kind::sums_stride : Kind::stride),
             .adds = adds,
             .guard = guard == guards_.end() ? -1 : guard->second},
            numbers);
    }

    /// Sums over lanes of all channel-free outputs of the row, 32 numbers at a time.
    void write_reduced() {
        std::vector<std::string> names(static_cast<std::size_t>(schedule_.partial_numbers), type_ + "(0)");
        for (std::size_t o = 0; o < schedule_.operands.size(); ++o) {
            if (schedule_.operands[o].way != StreamWay::reduced) continue;
            const Operand& output = operand(static_cast<int>(o));
            for (std::size_t s = 0; s < output.segments.size(); ++s)
                for (int c = 0; c < output.segments[s].components; ++c) {
                    const std::string number = "d" + std::to_string(o) + "_" + std::to_string(s) + "_" + std::to_string(c);
                    if (declared_.contains(number))
                        names[static_cast<std::size_t>(schedule_.operands[o].stage_offset + output.offset(static_cast<int>(s)) + c)] =
                            number;
                }
        }
        for (std::size_t begin = 0; begin < names.size(); begin += 32) {
            const std::size_t count = std::min<std::size_t>(32, names.size() - begin);
            std::size_t padded = 1;
            while (padded < count) padded *= 2;
            std::vector<std::string> list(names.begin() + static_cast<std::ptrdiff_t>(begin),
                                          names.begin() + static_cast<std::ptrdiff_t>(begin + count));
            list.resize(padded, type_ + "(0)");
            source_.line("{");
            source_.line(type_ + " values[" + std::to_string(padded) + "] = {" + joined(list, ", ") + "};");
            source_.line("const " + type_ + " sum = lane_sums(values, lane);");
            source_.line("if (lane < " + std::to_string(count) + ") partial[" + std::to_string(begin) + " + lane] = sum;");
            source_.line("}");
        }
    }
};

std::string number_name(const char* letter, SegmentName name, int component) {
    return letter + std::to_string(name.operand) + "_" + std::to_string(name.segment) + "_" + std::to_string(component);
}

/// Whether a segment carries channels, and the channels of the paths that use it within this body if they end within the warp (else -1).
struct ChannelUse {
    bool channels = false;
    std::int64_t guard = -1;
};
ChannelUse use_of(const GpuProblem& problem, const StreamBody& body, SegmentName name) {
    ChannelUse use;
    for (std::size_t i = 0; i < body.paths.size(); ++i) {
        const Path& path = problem.polynomial.paths[static_cast<std::size_t>(body.paths[i])];
        for (const Factor& factor : path.factors)
            if (factor.operand == name.operand && factor.segment == name.segment && !factor.channels.empty()) {
                use.channels = true;
                if (body.partial[i]) use.guard = path.extents.front().second;
            }
    }
    return use;
}

std::string place_text(const GpuProblem& problem, SegmentName name, int component, bool channels) {
    const Operand& operand = problem.polynomial.operands[static_cast<std::size_t>(name.operand)];
    const Segment& segment = operand.segments[static_cast<std::size_t>(name.segment)];
    const bool mul_ir = operand.layout == Layout::mul_ir;
    std::string text = literal(operand.offset(name.segment) + component * (mul_ir ? 1 : segment.multiplicity));
    if (channels) text += mul_ir ? " + channel * " + literal(std::int64_t{segment.components}) : " + channel";
    return text;
}

int components_of(const GpuProblem& problem, SegmentName name) {
    return problem.polynomial.operands[static_cast<std::size_t>(name.operand)].segments[static_cast<std::size_t>(name.segment)].components;
}

}  // namespace

StreamBody stream_body(const GpuProblem& problem, const StreamSchedule& schedule, int group, int warp) {
    StreamBody body;
    std::set<SegmentName> constants, sums;
    for (const int p : schedule.groups[static_cast<std::size_t>(group)]) {
        const Path& path = problem.polynomial.paths[static_cast<std::size_t>(p)];
        const std::int64_t channels = path.extents.front().second;
        if (channels <= 32 * warp) continue;
        body.paths.push_back(p);
        body.partial.push_back(channels < 32 * (warp + 1));
        for (const Factor& factor : path.factors) {
            const StreamWay way = schedule.operands[static_cast<std::size_t>(factor.operand)].way;
            if (way == StreamWay::constant) constants.insert({factor.operand, factor.segment});
            if (way == StreamWay::accumulated) sums.insert({factor.operand, factor.segment});
        }
    }
    body.constants.assign(constants.begin(), constants.end());
    body.sums.assign(sums.begin(), sums.end());
    return body;
}

void write_declarations(SourceText& source, const GpuProblem& problem, const StreamBody& body) {
    const std::string type = type_name(problem.compute);
    const auto declare = [&](const char* letter, const std::vector<SegmentName>& names) {
        for (const SegmentName name : names) {
            std::vector<std::string> list;
            for (int c = 0; c < components_of(problem, name); ++c) list.push_back(number_name(letter, name, c) + " = 0");
            source.line(type + " " + joined(list, ", ") + ";");
        }
    };
    declare("v", body.constants);
    declare("d", body.sums);
}

void write_start(SourceText& source, const GpuProblem& problem, const StreamSchedule& schedule, const StreamBody& body) {
    const std::string type = type_name(problem.compute);
    for (const SegmentName name : body.sums)
        for (int c = 0; c < components_of(problem, name); ++c) source.line(number_name("d", name, c) + " = 0;");
    for (const SegmentName name : body.constants) {
        const ChannelUse use = use_of(problem, body, name);
        const bool shared = problem.polynomial.operands[static_cast<std::size_t>(name.operand)].rows.kind == Addressing::Kind::shared;
        if (use.guard >= 0) source.line("if (channel < " + literal(use.guard) + ") {");
        for (int c = 0; c < components_of(problem, name); ++c)
            source.line(number_name("v", name, c) + " = number<" + type + ">(a." + argument_name(problem, {Kind::data, name.operand}) +
                        "[" + (shared ? "" : "target * a." + argument_name(problem, {Kind::stride, name.operand}) + " + ") +
                        place_text(problem, name, c, use.channels) + "]);");
        if (use.guard >= 0) source.line("}");
    }
    (void)schedule;
}

void write_flush(SourceText& source, const GpuProblem& problem, const StreamBody& body, bool adds) {
    for (const SegmentName name : body.sums) {
        std::vector<std::string> numbers;
        for (int c = 0; c < components_of(problem, name); ++c) numbers.push_back(number_name("d", name, c));
        write_numbers(source, problem,
                      {.name = name,
                       .base = "a." + argument_name(problem, {Kind::data, name.operand}) + " + target * a." +
                               argument_name(problem, {Kind::stride, name.operand}),
                       .adds = adds,
                       .guard = use_of(problem, body, name).guard},
                      numbers);
    }
}

void write_row(SourceText& source, const GpuProblem& problem, const StreamSchedule& schedule, const StreamBody& body) {
    RowWriter(source, problem, schedule, body).write();
}

}  // namespace clebsch
