// The family that takes every path: loops over its letters, the most suitable one innermost.
#include <algorithm>
#include <numeric>

#include "base/error.hpp"
#include "run/kernels/general.hpp"
#include "schedule/kernel.hpp"
#include "schedule/letters.hpp"

namespace clebsch {
namespace {

/// Letters from the outermost to the innermost: a restricted pair in its order; innermost the longest letter that runs contiguously (or not
/// at all) through every factor, preferably one the output has.
std::string loop_order(const Path& path, const std::vector<LetterPlace>& places) {
    const std::vector<ChannelGroup> pairs = restrictions(path);
    std::string letters;
    for (const auto& [letter, extent] : path.extents) letters += letter;
    const auto is_first = [&](char letter) {
        return std::ranges::any_of(pairs, [&](const ChannelGroup& pair) { return pair.first == letter; });
    };
    const auto suits = [&](char letter) {
        std::int64_t score = std::min<std::int64_t>(path.extent(letter), 64);
        bool contiguous = true;
        for (const LetterPlace& place : places)
            contiguous = contiguous && place.linear[letter - 'a'] >= 0 && place.linear[letter - 'a'] <= 1;
        if (contiguous) score += 1000;
        if (places.back().linear[letter - 'a'] == 1) score += 32;
        return score;
    };
    char inner = 0;
    for (const char letter : letters)
        if (!is_first(letter) && (inner == 0 || suits(letter) > suits(inner))) inner = letter;
    std::erase(letters, inner);
    // Firsts of pairs before their seconds: repeatedly take a letter that is the second of no pair whose first is still waiting.
    std::string order;
    while (!letters.empty()) {
        const auto free = std::ranges::find_if(letters, [&](char letter) {
            return std::ranges::none_of(
                pairs, [&](const ChannelGroup& pair) { return pair.second == letter && letters.find(pair.first) != std::string::npos; });
        });
        if (free == letters.end()) fail("path: the restrictions of its letters contradict one another");
        order += *free;
        letters.erase(free);
    }
    if (inner != 0) order += inner;
    return order;
}

/// Owns the arrays a GeneralPath points to.
struct PackedPath {
    std::vector<int> operand;
    std::vector<std::int64_t> base, linear, triangular, extent, entry_offset;
    std::vector<std::uint32_t> after;
    std::vector<double> value;

    GeneralPath view() const {
        return {.factors = static_cast<int>(operand.size()),
                .letters = static_cast<int>(extent.size()),
                .entries = static_cast<std::int64_t>(value.size()),
                .operand = operand.data(),
                .base = base.data(),
                .linear = linear.data(),
                .triangular = triangular.data(),
                .extent = extent.data(),
                .after = after.data(),
                .value = value.data(),
                .entry_offset = entry_offset.data()};
    }
};

PackedPath pack(const Polynomial& polynomial, const Path& path) {
    constexpr std::size_t most_factors = 64;
    if (path.factors.size() > most_factors)
        throw Error(ErrorKind::unsupported,
                    "a path of " + std::to_string(path.factors.size()) + " factors: at most " + std::to_string(most_factors) + " can run");
    PackedPath packed;
    std::vector<LetterPlace> places;
    for (const Factor& factor : path.factors) places.push_back(place_of(path, factor));
    const std::string order = loop_order(path, places);
    for (const char letter : order) {
        packed.extent.push_back(path.extent(letter));
        std::uint32_t after = 0;
        for (const ChannelGroup& pair : restrictions(path))
            if (pair.second == letter) after |= 1U << order.find(pair.first);
        packed.after.push_back(after);
    }
    std::vector<std::int64_t> component_step;
    for (std::size_t f = 0; f < path.factors.size(); ++f) {
        const Factor& factor = path.factors[f];
        const Operand& operand = polynomial.operands[static_cast<std::size_t>(factor.operand)];
        packed.operand.push_back(factor.operand);
        packed.base.push_back(operand.offset(factor.segment) + places[f].constant);
        component_step.push_back(operand.segments[static_cast<std::size_t>(factor.segment)].multiplicity);
        for (const char letter : order) {
            packed.linear.push_back(places[f].linear[letter - 'a']);
            packed.triangular.push_back(places[f].triangular[letter - 'a']);
        }
    }
    for (const CoefficientEntry& entry : reduced_entries(path)) {
        packed.value.push_back(entry.value);
        for (std::size_t f = 0; f < path.factors.size(); ++f) packed.entry_offset.push_back(entry.index[f] * component_step[f]);
    }
    return packed;
}

class GeneralKernel final : public Kernel {
 public:
    explicit GeneralKernel(const KernelRequest& request) : paths_(request.paths), isa_(request.isa) {
        for (const int p : paths_) {
            const Path& path = request.polynomial->paths[static_cast<std::size_t>(p)];
            if (std::ranges::any_of(path.extents, [](const auto& extent) { return extent.second == 0; })) continue;
            packed_.push_back(pack(*request.polynomial, path));
            double terms = static_cast<double>(packed_.back().value.size());
            for (const auto& [letter, extent] : path.extents) terms *= static_cast<double>(extent);
            estimate_.multiply_adds += terms * static_cast<double>(std::max<std::size_t>(1, path.factors.size() - 1));
        }
        for (const PackedPath& path : packed_) views_.push_back(path.view());
    }

    std::string name() const override { return "general"; }
    std::string explain() const override { return "loops over letters and coefficients, path by path; " + to_text(isa_); }
    std::vector<int> paths() const override { return paths_; }
    Estimate estimate() const override { return estimate_; }
    std::size_t scratch_bytes(std::size_t, int) const override { return 0; }

    void run(const Block<float>& block) const override {
        using Function = void (*)(const GeneralPath*, int, const Block<float>&);
        CLEBSCH_SELECT(Function, isa_, run_general)(views_.data(), static_cast<int>(views_.size()), block);
    }
    void run(const Block<double>& block) const override {
        using Function = void (*)(const GeneralPath*, int, const Block<double>&);
        CLEBSCH_SELECT(Function, isa_, run_general)(views_.data(), static_cast<int>(views_.size()), block);
    }

 private:
    std::vector<int> paths_;
    InstructionSet isa_;
    Estimate estimate_;
    std::vector<PackedPath> packed_;
    std::vector<GeneralPath> views_;
};

}  // namespace

std::unique_ptr<Kernel> make_general_kernel(const KernelRequest& request, std::vector<int>& taken) {
    taken = request.paths;
    if (taken.empty()) return nullptr;
    return std::make_unique<GeneralKernel>(request);
}

}  // namespace clebsch
