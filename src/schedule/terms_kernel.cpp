// Packs terms programs as the kernel that runs them, channel counts one after the other.
#include <algorithm>

#include "schedule/kernel.hpp"
#include "schedule/terms.hpp"

namespace clebsch {
namespace {

/// Owns the arrays a TermsGroup points to.
struct PackedGroup {
    std::vector<TermsPlace> inputs, scalar_inputs;
    std::vector<TermsStep> scalar_steps, steps;
    std::vector<TermsOutput> outputs;
    std::vector<TermsTerm> terms;
    std::vector<double> values;
    std::vector<TermsScaled> scaled;
    std::int64_t channels = 0;

    TermsGroup view() const {
        TermsGroup group;
        group.channels = channels;
        group.inputs = static_cast<int>(inputs.size());
        group.scalar_inputs = static_cast<int>(scalar_inputs.size());
        group.scalar_steps = static_cast<int>(scalar_steps.size());
        group.steps = static_cast<int>(steps.size());
        group.outputs = static_cast<int>(outputs.size());
        group.terms = static_cast<int>(terms.size());
        group.scaled = static_cast<int>(scaled.size());
        group.slots = 1 + group.inputs + group.steps;
        group.scalar_slots = group.scalar_inputs + group.scalar_steps;
        group.sums = static_cast<int>(std::ranges::count(outputs, false, &TermsOutput::per_channel));
        group.input = inputs.data();
        group.scalar_input = scalar_inputs.data();
        group.scalar_step = scalar_steps.data();
        group.step = steps.data();
        group.output = outputs.data();
        group.term = terms.data();
        group.value = values.data();
        group.scale = scaled.data();
        return group;
    }
};

TermsPlace place_of(const Polynomial& polynomial, const TermsVariable& variable) {
    const Operand& operand = polynomial.operands[static_cast<std::size_t>(variable.operand)];
    const std::int64_t channels = operand.segments[static_cast<std::size_t>(variable.segment)].multiplicity;
    return {variable.operand, operand.offset(variable.segment) + variable.component * channels};
}

PackedGroup pack(const Polynomial& polynomial, const TermsProgram& program, const OverwriteMap& overwritten) {
    PackedGroup packed;
    packed.channels = program.channels;
    for (const TermsVariable& variable : program.inputs)
        (variable.per_channel ? packed.inputs : packed.scalar_inputs).push_back(place_of(polynomial, variable));
    packed.scalar_steps = program.scalar_steps;
    packed.steps = program.steps;
    const auto append = [&](const TermsProduct& term) {
        if (term.scalar >= 0) packed.scaled.push_back({static_cast<int>(packed.terms.size()), term.scalar});
        packed.terms.push_back({term.a, std::max(term.b, 0)});
        packed.values.push_back(term.coefficient);
    };
    for (const TermsProduct& term : program.terms) append(term);
    const auto finish = [&](const TermsVariable& variable, std::vector<TermsProduct> terms) {
        const auto kind = [](const TermsProduct& term) { return term.b < 0 ? 0 : term.coefficient == 1 && term.scalar < 0 ? 1 : 2; };
        std::ranges::stable_sort(terms, {}, kind);
        const int first = static_cast<int>(packed.terms.size());
        const auto up_to = [&](int k) {
            return first + static_cast<int>(std::ranges::count_if(terms, [&](const auto& term) { return kind(term) <= k; }));
        };
        const auto o = static_cast<std::size_t>(variable.operand);
        const bool overwrite = o < overwritten.size() && overwritten[o][static_cast<std::size_t>(variable.segment)];
        packed.outputs.push_back({place_of(polynomial, variable), variable.per_channel, overwrite, first, up_to(0), up_to(1), up_to(2)});
        for (const TermsProduct& term : terms) append(term);
    };
    for (std::size_t i = 0; i < program.outputs.size(); ++i) finish(program.outputs[i], program.sums[i]);
    // Components of overwritten segments that no term reaches are stored too, as zero.
    for (std::size_t o = 0; o < overwritten.size(); ++o)
        for (std::size_t s = 0; s < overwritten[o].size(); ++s) {
            if (!overwritten[o][s]) continue;
            const auto here = [&](const TermsVariable& v) { return v.operand == static_cast<int>(o) && v.segment == static_cast<int>(s); };
            const auto any = std::ranges::find_if(program.outputs, here);
            if (any == program.outputs.end()) continue;  // another group's
            for (int c = 0; c < polynomial.operands[o].segments[s].components; ++c) {
                const TermsVariable variable{static_cast<int>(o), static_cast<int>(s), c, any->per_channel};
                if (std::ranges::find(program.outputs, variable) == program.outputs.end()) finish(variable, {});
            }
        }
    return packed;
}

class TermsKernel final : public Kernel {
 public:
    TermsKernel(const KernelRequest& request, const std::vector<TermsProgram>& programs) : isa_(request.isa) {
        find_overwritten(*request.polynomial, programs);
        for (const TermsProgram& program : programs) {
            paths_.insert(paths_.end(), program.paths.begin(), program.paths.end());
            if (program.channels > 0) packed_.push_back(pack(*request.polynomial, program, overwritten_));
        }
        std::ranges::sort(paths_);
        for (const PackedGroup& group : packed_) {
            views_.push_back(group.view());
            double work = static_cast<double>(group.terms.size());
            for (const TermsStep& step : group.steps) work += step.product ? 1 : 0;
            estimate_.multiply_adds += work * static_cast<double>(group.channels);
        }
    }

    std::string name() const override { return "terms"; }
    std::string explain() const override {
        std::string text = "channel by channel, " + to_text(isa_);
        for (const PackedGroup& group : packed_) {
            const auto products = std::ranges::count_if(group.steps, [](const TermsStep& step) { return step.product; });
            text += "; " + std::to_string(group.channels) + (group.channels == 1 ? " channel: " : " channels: ") +
                    std::to_string(products) + " products, " + std::to_string(static_cast<std::int64_t>(group.steps.size()) - products) +
                    " shared sums, " + std::to_string(group.terms.size()) + " terms, " + std::to_string(group.scalar_steps.size()) +
                    " scalar steps";
        }
        return text;
    }
    std::vector<int> paths() const override { return paths_; }
    Estimate estimate() const override { return estimate_; }
    OverwriteMap overwritten() const override { return overwritten_; }
    std::size_t scratch_bytes(std::size_t element_size, int) const override {
        std::size_t bytes = 0;
        for (const TermsGroup& group : views_) bytes = std::max(bytes, terms_scratch_bytes(group, element_size));
        return bytes;
    }
    void run(const Block<float>& block) const override { run_as(block); }
    void run(const Block<double>& block) const override { run_as(block); }

 private:
    InstructionSet isa_;
    std::vector<int> paths_;
    Estimate estimate_;
    OverwriteMap overwritten_;
    std::vector<PackedGroup> packed_;
    std::vector<TermsGroup> views_;

    template <class T>
    void run_as(const Block<T>& block) const {
        using Function = void (*)(const TermsGroup&, const Block<T>&);
        const Function function = CLEBSCH_SELECT(Function, isa_, run_terms);
        for (const TermsGroup& group : views_) function(group, block);
    }

    /// Segments of `each` outputs that only one group, and no other kernel, writes.
    void find_overwritten(const Polynomial& polynomial, const std::vector<TermsProgram>& programs) {
        for (std::size_t o = 0; o < polynomial.operands.size(); ++o) {
            const Operand& operand = polynomial.operands[o];
            overwritten_.emplace_back(operand.segments.size(), false);
            if (operand.role != Role::output || operand.rows.kind != Addressing::Kind::each) continue;
            for (std::size_t s = 0; s < operand.segments.size(); ++s) {
                const auto writes = [&](int p) {
                    const Factor& output = polynomial.paths[static_cast<std::size_t>(p)].output();
                    return output.operand == static_cast<int>(o) && output.segment == static_cast<int>(s);
                };
                std::ptrdiff_t all = 0, most = 0;
                for (std::size_t p = 0; p < polynomial.paths.size(); ++p) all += writes(static_cast<int>(p));
                for (const TermsProgram& program : programs) {
                    const auto here = [&](const TermsVariable& v) {
                        return v.operand == static_cast<int>(o) && v.segment == static_cast<int>(s);
                    };
                    if (program.channels > 0 && std::ranges::any_of(program.outputs, here))
                        most = std::max(most, std::ranges::count_if(program.paths, writes));
                }
                overwritten_[o][s] = all > 0 && most == all;
            }
        }
    }
};

}  // namespace

std::size_t terms_scratch_bytes(const TermsGroup& group, std::size_t element_size) {
    constexpr std::size_t line = 64, widest_vector = 64, widest_tile = 8;
    const auto rounded = [](std::size_t bytes) { return (bytes + line - 1) / line * line; };
    const auto count = [](int n) { return static_cast<std::size_t>(n); };
    return rounded(count(group.slots) * sizeof(void*)) + rounded(count(group.scalar_slots) * element_size) +
           rounded(count(group.terms) * element_size) + count(group.sums) * widest_vector +
           (count(group.inputs) + 4) * widest_tile * widest_vector +
           std::max(static_cast<std::size_t>(terms_tile_budget), count(group.steps + 1) * 2 * widest_vector) + line;
}

std::unique_ptr<Kernel> make_terms_kernel(const KernelRequest& request, std::vector<int>& taken) {
    const std::vector<TermsProgram> programs = schedule_terms(*request.polynomial, request.paths);
    for (const TermsProgram& program : programs) taken.insert(taken.end(), program.paths.begin(), program.paths.end());
    if (taken.empty()) return nullptr;
    return std::make_unique<TermsKernel>(request, programs);
}

}  // namespace clebsch
