// The straight-line code of a row. Paths of one coupling and its derivatives differ only in which axis of the same coefficients C[a,b,c]
// the output takes, so two kinds of shared sums cover all of them:
//   output on the third axis or on none:  z[c] = sum over a, b of C[a,b,c] p[a,b] with products p of the first two axes' factors
//   output on the first or second axis:   t[a,b] = sum over c of C[a,b,c] w[c] with w of everything else; out[a] += t[a,b] y[b]
// Paths that differ only in their products p, or only in their w, are added before coefficients are applied. What stays with the receiver
// is scaled once so that C is +-1 where possible.
#include <algorithm>
#include <map>
#include <set>

#include "emit/stream_body.hpp"
#include "emit/stream_names.hpp"
#include "emit/stream_terms.hpp"

namespace clebsch {
namespace {

using Kind = KernelArgument::Kind;
using Term = StreamTerm;
using Entry = StreamTerm::Entry;

/// Where a sum t[a,b] goes: multiplied by `other`, into an output on axis 0 or 1.
struct User {
    SegmentName output, other;
    int axis = 0;
    friend auto operator<=>(const User&, const User&) = default;
};

/// Bytes from channel to channel of a segment in shared memory.
int lane_step(const GpuProblem& problem, const StreamSchedule& schedule, SegmentName name) {
    const Operand& operand = problem.polynomial.operands[static_cast<std::size_t>(name.operand)];
    const int size = bytes_of(schedule.number_of(problem, static_cast<std::size_t>(name.operand)));
    return size * (operand.layout == Layout::mul_ir ? operand.segments[static_cast<std::size_t>(name.segment)].components : 1);
}

/// One share's part of a row.
class RowWriter {
 public:
    RowWriter(SourceText& source, const GpuProblem& problem, const StreamSchedule& schedule, const BodyShare& share, std::size_t number)
        : source_(source),
          problem_(problem),
          schedule_(schedule),
          share_(share),
          type_(type_name(problem.compute)),
          suffix_(share_suffix(number)),
          channel_(channel_text(share)) {
        for (const int path : share.paths) terms_.push_back(scaled_term(problem, schedule, share, path));
        for (std::size_t i = 0; i < share.paths.size(); ++i)
            for (const Factor& factor : terms_[i].path->factors) {
                if (factor.channels.empty()) continue;
                with_channels_.insert({factor.operand, factor.segment});
                if (share.partial[i]) guards_[{factor.operand, factor.segment}] = terms_[i].path->extents.front().second;
            }
    }

    /// An output is written once the next pair's inputs are loaded: a load cannot pass a store into the same memory.
    void write() {
        std::map<std::pair<int, int>, std::vector<const Term*>> pairs;  // by the segments on the first two axes
        for (const Term& term : terms_) pairs[{term.axis[0].segment, term.axis[1].segment}].push_back(&term);
        std::map<SegmentName, std::size_t> last;  // the pair after which an output is complete, and what it replaces is not read any more
        std::size_t n = 0;
        for (const auto& [key, terms] : pairs) {
            for (const Term* term : terms) last[term->output] = n;
            ++n;
        }
        n = 0;
        for (const auto& [key, terms] : pairs) {
            for (auto& [output, pair] : last) {
                const int over = schedule_.operands[static_cast<std::size_t>(output.operand)].over;
                if (over < 0) continue;
                for (const Term* term : terms)
                    for (const Factor& factor : term->path->factors)
                        if (factor.operand == over && factor.segment == output.segment) pair = std::max(pair, n);
            }
            ++n;
        }
        n = 0;
        int first = -2;
        for (const auto& [key, terms] : pairs) {
            source_.line("// segments " + std::to_string(key.first) + " x " + std::to_string(key.second));
            if (schedule_.reloads && key.first != first && n > 0) read_again();
            first = key.first;
            for (const Term* term : terms) load(*term);
            for (const auto& [output, pair] : last)
                if (pair + 1 == n) write_output(output);
            write_products(terms);
            write_couplings(terms);
            ++n;
        }
        for (const auto& [output, pair] : last)
            if (pair + 1 == n) write_output(output);
    }

 private:
    SourceText& source_;
    const GpuProblem& problem_;
    const StreamSchedule& schedule_;
    const BodyShare& share_;
    std::string type_, suffix_, channel_;
    std::string turn_;  // what tells apart numbers without channels that are read again
    std::vector<Term> terms_;
    std::map<SegmentName, std::int64_t> guards_;  // channels of segments that end within the warp
    std::set<SegmentName> with_channels_;
    std::set<std::string> declared_;
    int count_ = 0;

    const Operand& operand(int o) const { return problem_.polynomial.operands[static_cast<std::size_t>(o)]; }
    const Segment& segment(SegmentName name) const { return operand(name.operand).segments[static_cast<std::size_t>(name.segment)]; }
    StreamWay way(SegmentName name) const { return schedule_.operands[static_cast<std::size_t>(name.operand)].way; }
    std::string fresh(const char* letter) { return letter + std::to_string(count_++); }

    /// From here on numbers without channels come from shared memory again: they are many, and would occupy registers all along.
    void read_again() {
        turn_ = "t" + std::to_string(count_++);
        source_.line("const SharedAddress stage" + turn_ + " = again(stage);");
        std::set<int> operands;
        for (const Term& term : terms_)
            for (const Factor& factor : term.path->factors)
                if (is_reread({factor.operand, factor.segment})) operands.insert(factor.operand);
        for (const int o : operands) {
            const std::string type = std::string("const ") + type_name(schedule_.number_of(problem_, static_cast<std::size_t>(o)));
            source_.line(type + "* row_" + std::to_string(o) + "_0" + turn_ + " = at_line<" + type + ">(stage" + turn_ + " + " +
                         std::to_string(schedule_.operands[static_cast<std::size_t>(o)].stage_offset) + ");");
        }
    }
    bool is_reread(SegmentName name) const { return way(name) == StreamWay::staged && !with_channels_.contains(name); }

    void load(const Term& term) {
        const auto all = [&](SegmentName name) {
            if (name == Term::absent || (way(name) != StreamWay::staged && !share_.parked.contains(name))) return;
            for (int c = 0; c < segment(name).components; ++c) (void)value(name, c);
        };
        for (const SegmentName name : term.axis) all(name);
        for (const SegmentName name : term.scalars) all(name);
    }

    /// An element of a staged or handed operand's row: pointers are declared by write_row.
    std::string element(SegmentName name, int component) const {
        const Operand& o = operand(name.operand);
        const Segment& s = segment(name);
        const bool mul_ir = o.layout == Layout::mul_ir, channels = with_channels_.contains(name);
        const StreamOperand& staged = schedule_.operands[static_cast<std::size_t>(name.operand)];
        std::int64_t place = staged.places[static_cast<std::size_t>(name.segment)] + component * (mul_ir ? 1 : s.multiplicity);
        if (channels) place += 32 * share_.blocks * (mul_ir ? s.components : 1);
        return "row_" + std::to_string(name.operand) + "_" + std::to_string(channels ? lane_step(problem_, schedule_, name) : 0) +
               (is_reread(name) ? turn_ : "") + "[" + literal(place) + "]";
    }

    /// The name of an input's number, loaded when first asked for.
    std::string value(SegmentName name, int component) {
        std::string text = number_name("v", name, component) + suffix_ + (is_reread(name) ? turn_ : "");
        const auto parked = share_.parked.find(name);
        if ((way(name) == StreamWay::constant && parked == share_.parked.end()) || !declared_.insert(text).second) return text;
        if (parked != share_.parked.end()) {
            source_.line("const " + type_ + " " + text + " = " + parked_number(parked->second + component) + ";");
            return text;
        }
        std::string load = "number<" + type_ + ">(" + element(name, component) + ")";
        if (const auto guard = guards_.find(name); guard != guards_.end() && with_channels_.contains(name))
            load = channel_ + " < " + literal(guard->second) + " ? " + load + " : " + type_ + "(0)";
        source_.line("const " + type_ + " " + text + " = " + load + ";");
        return text;
    }
    /// Adds to an output's number; sums of the receiver and of the row's channel-free outputs are declared outside.
    void add_to(SegmentName name, int component, const std::string& text) {
        const bool channels = way(name) != StreamWay::reduced;
        const std::string number = number_name("d", name, component) + (channels ? suffix_ : "");
        const bool first = channels && way(name) != StreamWay::accumulated && declared_.insert(number).second;
        source_.line((first ? type_ + " " : "") + number + (first ? " = " : " += ") + text + ";");
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
    /// The product of two inputs' numbers, either of which may be absent.
    std::string product(SegmentName a, int i, SegmentName b, int j) {
        std::vector<std::string> parts;
        if (a != Term::absent) parts.push_back(value(a, i));
        if (b != Term::absent) parts.push_back(value(b, j));
        return parts.empty() ? type_ + "(1)" : joined(parts, " * ");
    }

    /// Outputs on the third axis or on none. Products of a row of one factor at a time meet all sums they belong to: few numbers wait.
    void write_products(const std::vector<const Term*>& terms) {
        using Pairs = std::multiset<std::pair<SegmentName, SegmentName>>;
        struct Form {
            const Term* first = nullptr;
            Pairs pairs;
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
        // Sums of the same products are complete before others begin: fewer wait at a time.
        struct Group {
            std::map<std::pair<int, int>, std::vector<std::pair<std::string, double>>> places;  // a product: sums and coefficients
            std::map<std::string, std::string> sums;                                            // coefficients -> name
            std::vector<std::pair<const Term*, std::string>> forms;                             // and their sum
        };
        std::map<Pairs, Group> groups;
        std::vector<Pairs> in_order;
        for (const std::string& key : order) {
            const Form& form = forms.at(key);
            const auto [group, first] = groups.try_emplace(form.pairs);
            if (first) in_order.push_back(form.pairs);
            const auto [sum, fresh_one] = group->second.sums.try_emplace(form.first->coefficients);
            if (fresh_one) {
                sum->second = fresh("z") + "_";
                for (const Entry& entry : form.first->entries)
                    group->second.places[{entry.index[0], entry.index[1]}].emplace_back(sum->second + std::to_string(entry.index[2]),
                                                                                        entry.value);
            }
            group->second.forms.emplace_back(form.first, sum->second);
        }
        for (const Pairs& pairs : in_order) {
            const Group& group = groups.at(pairs);
            for (const auto& [place, addends] : group.places) {
                std::vector<std::string> parts;
                for (const auto& [a, b] : pairs) parts.push_back(product(a, place.first, b, place.second));
                const std::string name = fresh("p");
                source_.line("const " + type_ + " " + name + " = " + joined(parts, " + ") + ";");
                for (const auto& [sum, value] : addends) {
                    const std::string number = times(value, name, problem_.compute);
                    if (declared_.insert(sum).second) source_.line(type_ + " " + sum + " = " + number + ";");
                    else source_.line(sum + " += " + number + ";");
                }
            }
            for (const auto& [term, sum] : group.forms) write_form(*term, sum);
        }
    }

    /// Adds what sums of products belong to.
    void write_form(const Term& term, const std::string& sums) {
        const int components = term.axis[2] == Term::absent ? 1 : segment(term.axis[2]).components;
        std::vector<std::string> parts;
        for (int c = 0; c < components; ++c) {
            const std::string z = sums + std::to_string(c);
            if (!declared_.contains(z)) continue;
            if (term.output_axis == 2) {
                const std::string front = scalars_text(term);
                add_to(term.output, c, (front.empty() ? "" : front + " * ") + z);
            } else {
                parts.push_back((term.axis[2] == Term::absent ? "" : value(term.axis[2], c) + " * ") + z);
            }
        }
        if (parts.empty()) return;
        const std::string sum = joined(parts, " + "), front = scalars_text(term);
        add_to(term.output, 0, front.empty() ? sum : front + " * (" + sum + ")");
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
                    if (!w.empty()) factor = w + std::to_string(entry.index[2]);
                    else if (term->axis[2] != Term::absent) factor = value(term->axis[2], entry.index[2]);
                    sums[{entry.index[0], entry.index[1]}].push_back(times(entry.value, factor, problem_.compute));
                }
            }
            for (const auto& [place_of_sum, parts] : sums) {
                const auto [a, b] = place_of_sum;
                const std::string t = fresh("t");
                source_.line("const " + type_ + " " + t + " = " + joined(parts, " + ") + ";");
                for (const User& user : list) {
                    const std::string other = user.other == Term::absent ? "" : " * " + value(user.other, user.axis == 0 ? b : a);
                    add_to(user.output, user.axis == 0 ? a : b, t + other);
                }
            }
        }
    }

    /// Hands over, stores or adds an output of the row that is complete.
    void write_output(SegmentName name) {
        const StreamWay how = way(name);
        if (how != StreamWay::stored && how != StreamWay::scattered) return;
        const bool adds = how == StreamWay::scattered;
        const auto argument = [&](Kind kind) { return "a." + argument_name(problem_, {kind, name.operand}); };
        std::vector<std::string> numbers;
        for (int c = 0; c < segment(name).components; ++c) {
            const std::string number = number_name("d", name, c) + suffix_;
            numbers.push_back(declared_.contains(number) ? number : type_ + "(0)");
        }
        const auto guard = guards_.find(name);
        if (schedule_.operands[static_cast<std::size_t>(name.operand)].handed) {
            if (guard != guards_.end()) source_.line("if (" + channel_ + " < " + literal(guard->second) + ") {");
            for (int c = 0; c < segment(name).components; ++c)
                source_.line("store(&" + element(name, c) + ", " + numbers[static_cast<std::size_t>(c)] + ");");
            if (guard != guards_.end()) source_.line("}");
            return;
        }
        const std::string row = adds ? "info.at_" + std::to_string(name.operand) : "info.row";
        source_.line("{");
        source_.line("const int channel = again(own_channel), lane = again(own_lane);");
        write_numbers(
            source_, problem_,
            {.name = name,
             .base = argument(adds ? Kind::sums : Kind::data) + " + " + row + " * " + argument(adds ? Kind::sums_stride : Kind::stride),
             .channel = channel_,
             .adds = adds,
             .guard = guard == guards_.end() ? -1 : guard->second},
            numbers);
        source_.line("}");
    }
};

/// Sums over lanes of all channel-free outputs of the row, 32 numbers at a time.
void write_reduced(SourceText& source, const GpuProblem& problem, const StreamSchedule& schedule, const std::set<SegmentName>& written) {
    const std::string type = type_name(problem.compute);
    std::vector<std::string> names(static_cast<std::size_t>(schedule.partial_numbers), type + "(0)");
    for (const SegmentName name : written) {
        const Operand& output = problem.polynomial.operands[static_cast<std::size_t>(name.operand)];
        for (int c = 0; c < output.segments[static_cast<std::size_t>(name.segment)].components; ++c)
            names[static_cast<std::size_t>(schedule.operands[static_cast<std::size_t>(name.operand)].stage_offset +
                                           output.offset(name.segment) + c)] = number_name("d", name, c);
    }
    for (std::size_t begin = 0; begin < names.size(); begin += 32) {
        const std::size_t count = std::min<std::size_t>(32, names.size() - begin);
        std::size_t padded = 1;
        while (padded < count) padded *= 2;
        std::vector<std::string> list(names.begin() + static_cast<std::ptrdiff_t>(begin),
                                      names.begin() + static_cast<std::ptrdiff_t>(begin + count));
        list.resize(padded, type + "(0)");
        source.line("{");
        source.line(type + " values[" + std::to_string(padded) + "] = {" + joined(list, ", ") + "};");
        source.line("const " + type + " sum = lane_sums(values, lane);");
        source.line("if (lane < " + std::to_string(count) + ") partial[" + std::to_string(begin) + " + lane] = sum;");
        source.line("}");
    }
}

/// Segments that a body reads or writes in a stage, and whether they carry channels.
std::map<SegmentName, bool> staged_segments(const GpuProblem& problem, const StreamSchedule& schedule, const StreamBody& body) {
    std::map<SegmentName, bool> segments;
    for (const BodyShare& share : body.shares)
        for (const int p : share.paths)
            for (const Factor& factor : problem.polynomial.paths[static_cast<std::size_t>(p)].factors) {
                const StreamOperand& operand = schedule.operands[static_cast<std::size_t>(factor.operand)];
                if (operand.way == StreamWay::staged || operand.handed)
                    segments.emplace(SegmentName{factor.operand, factor.segment}, !factor.channels.empty());
            }
    return segments;
}

}  // namespace

std::vector<int> lane_steps(const GpuProblem& problem, const StreamSchedule& schedule, const StreamBody& body) {
    std::set<int> steps;
    for (const auto& [name, channels] : staged_segments(problem, schedule, body))
        if (channels) steps.insert(lane_step(problem, schedule, name));
    return {steps.begin(), steps.end()};
}

void write_row(SourceText& source, const GpuProblem& problem, const StreamSchedule& schedule, const StreamBody& body) {
    // Every product is of another register that comes from a lane, this one: of several products of one register the assembler of CUDA 13.0
    // made wrong ones (write_numbers).
    if (schedule.frugal)
        for (const int step : lane_steps(problem, schedule, body))
            source.line("const SharedAddress stage_" + std::to_string(step) + " = stage + opaque(found_channel, found.lane) * " +
                        std::to_string(step) + ";");
    std::set<std::pair<int, int>> pointers;  // operand, step
    for (const auto& [name, channels] : staged_segments(problem, schedule, body)) {
        const int step = channels ? lane_step(problem, schedule, name) : 0;
        if (!pointers.emplace(name.operand, step).second) continue;
        const StreamOperand& operand = schedule.operands[static_cast<std::size_t>(name.operand)];
        const std::string type =
            std::string(operand.handed ? "" : "const ") + type_name(schedule.number_of(problem, static_cast<std::size_t>(name.operand)));
        const std::string offset = std::to_string(operand.stage_offset);
        source.line(type + "* row_" + std::to_string(name.operand) + "_" + std::to_string(step) + " = " + (step == 0 ? "at_line<" : "at<") +
                    type + ">(" +
                    (step == 0         ? "stage + " + offset
                     : schedule.frugal ? "stage_" + std::to_string(step) + " + " + offset
                                       : "stage + " + offset + " + lane_" + std::to_string(step)) +
                    ");");
    }
    std::set<SegmentName> reduced;
    for (const BodyShare& share : body.shares)
        for (const int p : share.paths) {
            const Factor& output = problem.polynomial.paths[static_cast<std::size_t>(p)].output();
            if (schedule.operands[static_cast<std::size_t>(output.operand)].way == StreamWay::reduced)
                reduced.insert({output.operand, output.segment});
        }
    for (const SegmentName name : reduced) {
        std::vector<std::string> list;
        list.reserve(static_cast<std::size_t>(components_of(problem, name)));
        for (int c = 0; c < components_of(problem, name); ++c) list.push_back(number_name("d", name, c) + " = 0");
        source.line(std::string(type_name(problem.compute)) + " " + joined(list, ", ") + ";");
    }
    for (std::size_t s = 0; s < body.shares.size(); ++s) {
        if (body.shares.size() > 1) source.line("{");
        RowWriter(source, problem, schedule, body.shares[s], s).write();
        if (body.shares.size() > 1) source.line("}");
    }
    if (schedule.frugal) {
        source.line("const Place own = place_of(thread_again());");
        source.line("const int lane = own.lane;");
        if (schedule.partial_numbers > 0)
            source.line(type_name(problem.compute) + std::string("* partial = at<") + type_name(problem.compute) + ">(stage + " +
                        std::to_string(schedule.partial_offset) + " + own.warp * " +
                        std::to_string(schedule.partial_numbers * bytes_of(problem.compute)) + ");");
    }
    write_reduced(source, problem, schedule, reduced);
}

}  // namespace clebsch
