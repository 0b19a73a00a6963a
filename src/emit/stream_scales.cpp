// Which numbers to scale by what, so that few coefficients of a row need a multiplication of their own. A sum of products
// c1 n1 + c2 n2 + ... costs an instruction for every addend, the first one of them only if no coefficient is +-1. What stays with the
// receiver is loaded and stored once for many rows, so that its scales are free: each is chosen among the coefficients' magnitudes.
#include <algorithm>
#include <array>
#include <cmath>
#include <numeric>

#include "emit/stream_terms.hpp"

namespace clebsch {
namespace {

using Number = std::pair<SegmentName, int>;  // a component of a segment

/// A coefficient of a sum, and the numbers whose scales divide it.
struct Addend {
    double value = 0;
    std::vector<int> scaled;  // classes
};
using Sum = std::vector<Addend>;

bool is_unit(double value) {
    constexpr double tolerance = 1e-12;
    return std::abs(std::abs(value) - 1) < tolerance;
}

class Search {
 public:
    Search(const GpuProblem& problem, const StreamSchedule& schedule, const std::vector<int>& paths) {
        for (const int p : paths)
            terms_.push_back(
                stream_term(problem.polynomial.paths[static_cast<std::size_t>(p)], schedule.axes[static_cast<std::size_t>(p)]));
        for (const StreamTerm& term : terms_)
            for (const StreamTerm::Entry& entry : term.entries)
                for_each_staying(schedule, term, entry, [&](SegmentName name, int component) { number_of({name, component}); });
        parent_.resize(numbers_.size());
        std::iota(parent_.begin(), parent_.end(), 0);
        std::vector<std::vector<std::vector<int>>> ids;  // of every term's entries
        for (const StreamTerm& term : terms_) {
            auto& of_term = ids.emplace_back();
            for (const StreamTerm::Entry& entry : term.entries) {
                auto& list = of_term.emplace_back();
                for_each_staying(schedule, term, entry, [&](SegmentName name, int component) {
                    list.push_back(number_of({name, component}));
                });
            }
        }
        collect(ids);
    }

    std::map<SegmentName, std::vector<double>> scales(const GpuProblem& problem) {
        improve();
        std::map<SegmentName, std::vector<double>> result;
        for (const auto& [number, id] : numbers_) {
            const Operand& operand = problem.polynomial.operands[static_cast<std::size_t>(number.first.operand)];
            std::vector<double>& scale = result[number.first];
            scale.resize(static_cast<std::size_t>(operand.segments[static_cast<std::size_t>(number.first.segment)].components), 1.0);
            scale[static_cast<std::size_t>(number.second)] = scale_[static_cast<std::size_t>(root(id))];
        }
        return result;
    }

 private:
    std::vector<StreamTerm> terms_;
    std::map<Number, int> numbers_;
    std::vector<int> parent_;  // numbers that one sum is shared through have one scale
    std::vector<Sum> sums_;
    std::vector<double> scale_;

    int number_of(const Number& number) { return numbers_.emplace(number, static_cast<int>(numbers_.size())).first->second; }
    int root(int number) const {
        while (parent_[static_cast<std::size_t>(number)] != number) number = parent_[static_cast<std::size_t>(number)];
        return number;
    }
    void tie(int one, int other) {
        one = root(one);
        other = root(other);
        parent_[static_cast<std::size_t>(std::max(one, other))] = std::min(one, other);
    }

    /// The sums that the row's code will have (emit/stream_row.cpp), each once.
    void collect(const std::vector<std::vector<std::vector<int>>>& ids) {
        std::map<std::pair<int, int>, std::vector<std::size_t>> pairs;
        for (std::size_t t = 0; t < terms_.size(); ++t) pairs[{terms_[t].axis[0].segment, terms_[t].axis[1].segment}].push_back(t);
        for (const auto& [pair, list] : pairs) {
            // Sums of coefficients by what they add to, then each once.
            std::map<std::tuple<SegmentName, SegmentName, int>, std::vector<std::size_t>> users;
            std::map<std::string, std::vector<std::size_t>> products;
            for (const std::size_t t : list) {
                const StreamTerm& term = terms_[t];
                if (term.output_axis == 0 || term.output_axis == 1)
                    users[{term.output, term.axis[1 - term.output_axis], term.output_axis}].push_back(t);
                else products[text_of(term, true)].push_back(t);
            }
            std::map<std::string, std::vector<std::size_t>> shared;
            for (auto& [user, terms] : users) {
                std::ranges::stable_sort(terms, {}, [&](std::size_t t) { return text_of(terms_[t], false); });
                std::string key;
                for (const std::size_t t : terms) key += text_of(terms_[t], false) + "#";
                add(shared, key, terms, ids, [&](const StreamTerm::Entry& entry) { return std::array{entry.index[0], entry.index[1]}; });
            }
            shared.clear();
            for (const auto& [text, terms] : products) {
                std::string key = coefficients(terms_[terms.front()]);
                for (const std::size_t t : terms)
                    for (int k = 0; k < 2; ++k) key += name_of(terms_[t].axis[k]);
                add(shared, key, {terms.front()}, ids, [&](const StreamTerm::Entry& entry) { return std::array{entry.index[2], 0}; });
            }
        }
    }

    /// Sums of terms by `place_of` an entry, or numbers that have one scale with those of `known` terms whose sums they take.
    template <class PlaceOf>
    void add(std::map<std::string, std::vector<std::size_t>>& known, const std::string& key, const std::vector<std::size_t>& terms,
             const std::vector<std::vector<std::vector<int>>>& ids, PlaceOf place_of) {
        const auto [found, fresh] = known.emplace(key, terms);
        if (!fresh) {
            for (std::size_t i = 0; i < terms.size(); ++i)
                for (std::size_t e = 0; e < ids[terms[i]].size(); ++e) {
                    const std::vector<int>&one = ids[terms[i]][e], &other = ids[found->second[i]][e];
                    for (std::size_t k = 0; k < std::min(one.size(), other.size()); ++k) tie(one[k], other[k]);
                }
            return;
        }
        std::map<std::array<int, 2>, Sum> sums;
        for (const std::size_t t : terms)
            for (std::size_t e = 0; e < terms_[t].entries.size(); ++e)
                sums[place_of(terms_[t].entries[e])].push_back({terms_[t].entries[e].value, ids[t][e]});
        for (auto& [place, sum] : sums) sums_.push_back(std::move(sum));
    }

    static std::string name_of(SegmentName name) { return std::to_string(name.operand) + "." + std::to_string(name.segment) + ","; }
    static std::string coefficients(const StreamTerm& term) {
        std::string text;
        for (const StreamTerm::Entry& entry : term.entries) {
            for (const int index : entry.index) text += std::to_string(index) + ",";
            text += literal(entry.value, GpuNumber::float64) + ";";
        }
        return text + "|";
    }
    static std::string text_of(const StreamTerm& term, bool output) {
        std::string text = coefficients(term);
        for (const SegmentName name : term.scalars) text += name_of(name);
        text += "|" + (output && term.output_axis == 2 ? std::string("-") : name_of(term.axis[2]));
        return output ? text + name_of(term.output) : text;
    }

    /// Every scale in turn takes the magnitude with which fewest sums need a multiplication more, until none gets better; the first guess
    /// is the magnitude that most coefficients have.
    void improve() {
        constexpr double least = 1e-4, most = 1e4;  // beyond, quotients might leave float32's range
        std::vector<std::map<double, int>> counts(parent_.size());
        std::vector<std::vector<std::size_t>> touched(parent_.size());
        for (std::size_t s = 0; s < sums_.size(); ++s)
            for (Addend& addend : sums_[s])
                for (int& number : addend.scaled) {
                    number = root(number);
                    const double magnitude = std::abs(addend.value);
                    if (magnitude >= least && magnitude <= most) ++counts[static_cast<std::size_t>(number)][magnitude];
                    std::vector<std::size_t>& list = touched[static_cast<std::size_t>(number)];
                    if (list.empty() || list.back() != s) list.push_back(s);
                }
        scale_.assign(parent_.size(), 1.0);
        for (std::size_t n = 0; n < counts.size(); ++n)
            if (!counts[n].empty()) scale_[n] = std::ranges::max_element(counts[n], {}, [](const auto& one) { return one.second; })->first;
        const auto cost = [&](std::size_t n) {
            int multiplied = 0;
            for (const std::size_t s : touched[n])
                multiplied += std::ranges::none_of(sums_[s], [&](const Addend& addend) { return is_unit(scaled(addend)); }) ? 1 : 0;
            return multiplied;
        };
        constexpr int rounds = 8;
        bool better = true;
        for (int round = 0; round < rounds && better; ++round) {
            better = false;
            for (std::size_t n = 0; n < counts.size(); ++n) {
                double best = scale_[n];
                int fewest = cost(n);
                for (const auto& [magnitude, count] : counts[n]) {
                    scale_[n] = magnitude;
                    if (const int now = cost(n); now < fewest) {
                        fewest = now;
                        best = magnitude;
                        better = true;
                    }
                }
                scale_[n] = best;
            }
        }
    }
    double scaled(const Addend& addend) const {
        double value = addend.value;
        for (const int number : addend.scaled) value /= scale_[static_cast<std::size_t>(number)];
        return value;
    }
};

}  // namespace

std::map<SegmentName, std::vector<double>> scales_of(const GpuProblem& problem, const StreamSchedule& schedule,
                                                     const std::vector<int>& paths) {
    return Search(problem, schedule, paths).scales(problem);
}

}  // namespace clebsch
