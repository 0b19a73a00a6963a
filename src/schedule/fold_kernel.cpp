// Packs a fold program for an instruction set, as the kernel that runs it.
#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <set>

#include "run/kernels/fold.hpp"
#include "schedule/fold.hpp"
#include "schedule/kernel.hpp"

namespace clebsch {
namespace {

/// Whether the kernel keeps the sums that z goes into in registers (run/kernels/fold_sums.cpp).
bool is_weighted_sum(const FoldMultiplyPlan& multiply) {
    const FoldSink& sink = multiply.sinks[0];
    return multiply.sinks.size() == 1 && !sink.dot && sink.factor.weights == 1;
}
/// How many components it multiplies by the weight then, those of v or those of z.
int weighted_components(const FoldMatrixPlan& matrix) {
    return matrix.inputs <= matrix.outputs || matrix.outputs > 3 ? matrix.inputs : matrix.outputs;
}

/// Owns what a FoldView points to.
class Packed {
 public:
    Packed(const Polynomial& polynomial, const FoldProgram& program, InstructionSet isa)
        : operands_(static_cast<int>(polynomial.operands.size())),
          program_(program),
          isa_(isa),
          streamed_(new bool[polynomial.operands.size()]) {
        for (std::size_t o = 0; o < polynomial.operands.size(); ++o)
            streamed_[o] = polynomial.operands[o].rows.kind == Addressing::Kind::each;
        for (const FoldMatrixPlan& matrix : program_.matrices) pack(matrix);
        for (const std::vector<FoldPlaced>& folding : program_.foldings) pack(folding);
        for (const FoldReducePlan& reduce : program_.reduces) pack(reduce);
        for (const FoldMultiplyPlan& multiply : program_.multiplies) pack(multiply);
        for (const std::vector<int>& sums : program_.sums) {
            sums_.push_back({static_cast<int>(sums.size()), sums.data(), sum_count_});
            sum_count_ += static_cast<int>(sums.size());
        }
        place_blends();
        coefficients_float_.assign(coefficients_.begin(), coefficients_.end());
        std::ranges::sort(run_operands_);
        run_operands_.erase(std::unique(run_operands_.begin(), run_operands_.end()), run_operands_.end());
        // Slot 0 is 1, then the numbers, then products: only now is it known how many numbers there are.
        for (std::vector<int>* places : {&targets_, &sources_, &term_slots_})
            for (int& place : *places) place = (place <= -2 ? product_slot(place) : place) * fold_rows;
        for (FoldProduct& product : products_) {
            if (product.a <= -2) product.a = product_slot(product.a);
            if (product.b <= -2) product.b = product_slot(product.b);
        }
    }

    /// Multiplications that skip zeros of their matrices in float32.
    int skipping() const {
        int count = 0;
        for (const std::vector<int>& sums : program_.sums)
            for (const int m : sums) {
                const FoldMultiplyPlan& multiply = program_.multiplies[static_cast<std::size_t>(m)];
                const bool skips = is_weighted_sum(multiply) && matrices_[static_cast<std::size_t>(multiply.matrix)].pattern >= 0;
                count += skips ? 1 : 0;
            }
        return count;
    }

    template <class T>
    FoldView<T> view() const {
        FoldView<T> v;
        v.operands = operands_;
        v.streamed = streamed_.get();
        v.numbers = static_cast<int>(program_.numbers.size());
        v.number = program_.numbers.data();
        v.products = static_cast<int>(products_.size());
        v.product = products_.data();
        v.outputs = static_cast<int>(program_.outputs.size());
        v.output = program_.outputs.data();
        v.blend = blends_.data();
        v.blends = static_cast<int>(blends_.size());
        v.matrix = matrices_.data();
        v.folding = foldings_.data();
        v.matrix_half = numbers_ * fold_rows;
        v.multiply = multiplies_.data();
        v.reduce = reduces_.data();
        v.sums = sums_.data();
        v.steps = static_cast<int>(program_.steps.size());
        v.step = program_.steps.data();
        v.rows = program_.streamed * static_cast<std::int64_t>(sizeof(T)) <= most_streamed ? program_.rows : fold_rows;
        v.classes = classes_.data();
        v.targets = targets_.data();
        if constexpr (sizeof(T) == 4) v.coefficients = coefficients_float_.data();
        else v.coefficients = coefficients_.data();
        v.sources = sources_.data();
        v.term_slots = term_slots_.data();
        v.run_operands = static_cast<int>(run_operands_.size());
        v.run_operand = run_operands_.data();
        // Scratch. One buffer serves the product of a reduction's weights and the turned squares of its result.
        std::int64_t product = 0, reduced = 0;
        for (const FoldReduce& r : reduces_) {
            const std::int64_t turned = (static_cast<std::int64_t>(r.left_components) * r.right_components + 16) * 16;
            product = std::max({product, r.channels + 16, turned});
            reduced = std::max<std::int64_t>(reduced, size_of_reduced(r, sizeof(T)) * fold_rows);
        }
        std::int64_t at = 0;
        const auto place = [&](std::int64_t size) {
            const std::int64_t start = at;
            at += rounded(size);
            return start;
        };
        v.slots_at = place(static_cast<std::int64_t>(1 + program_.numbers.size() + products_.size()) * v.rows);
        v.sums_at = place(static_cast<std::int64_t>(program_.outputs.size()) * fold_rows);
        v.matrix_at = place(numbers_ * v.rows);
        v.product_at = place(product);
        v.reduced_at = place(reduced);
        v.pointers_at = place(static_cast<std::int64_t>(blends_.size() * fold_rows * sizeof(void*) / sizeof(T)));
        v.runs_at = place(static_cast<std::int64_t>(run_operands_.size() * sum_rows * sizeof(int) / sizeof(T)));
        v.streams_at = place(static_cast<std::int64_t>(static_cast<std::size_t>(operands_ + 1) * 2 * sizeof(void*) / sizeof(T)));
        v.multiplies_at = place(sum_count_ * sum_bytes / static_cast<std::int64_t>(sizeof(T)));
        v.blends_at = place(blend_size_);
        v.scratch = at;
        return v;
    }

 private:
    /// Scratch for blends by lifetime: one takes the place of another whose last reader has run and which was no smaller.
    void place_blends() {
        const int count = static_cast<int>(program_.blends.size()), steps = static_cast<int>(program_.steps.size());
        std::vector<int> made(static_cast<std::size_t>(count)), last(static_cast<std::size_t>(count));
        const auto read = [&](const FoldRows& rows, int step) {
            if (rows.operand >= operands_) last[static_cast<std::size_t>(rows.operand - operands_)] = step;
        };
        for (int s = 0; s < steps; ++s) {
            const FoldStep& step = program_.steps[static_cast<std::size_t>(s)];
            const auto index = static_cast<std::size_t>(step.index);
            if (step.kind == FoldStepKind::blend) made[index] = s;
            if (step.kind == FoldStepKind::multiply) read(program_.multiplies[index].in, s);
            if (step.kind == FoldStepKind::sums) read(program_.multiplies[static_cast<std::size_t>(program_.sums[index][0])].in, s);
            if (step.kind == FoldStepKind::reduce) {
                read(program_.reduces[index].left, s);
                read(program_.reduces[index].right, s);
            }
            if (step.kind != FoldStepKind::blend) continue;
            for (const FoldBlendTerm& term : program_.blends[index].terms) read(term.row, s);
        }
        struct Place {
            std::int64_t offset, size;
            int free_after;
        };
        std::vector<Place> places;
        std::vector<int> order(static_cast<std::size_t>(count));
        std::iota(order.begin(), order.end(), 0);
        std::ranges::sort(order, {}, [&](int b) { return made[static_cast<std::size_t>(b)]; });
        blends_.resize(static_cast<std::size_t>(count));
        for (const int b : order) {
            const auto index = static_cast<std::size_t>(b);
            const FoldBlendPlan& blend = program_.blends[index];
            const std::int64_t stride = rounded(blend.components * blend.channels), size = stride * fold_rows;
            auto place = std::ranges::find_if(places, [&](const Place& p) { return p.free_after < made[index] && p.size >= size; });
            if (place == places.end()) {
                places.push_back({blend_size_, size, 0});
                blend_size_ += size;
                place = places.end() - 1;
            }
            place->free_after = last[index];
            blends_[index] = {blend.components,   blend.channels, static_cast<int>(blend.terms.size()),
                              blend.terms.data(), place->offset,  stride};
        }
    }

    static std::int64_t rounded(std::int64_t elements) { return (elements + 15) / 16 * 16; }  // 64 bytes of float; float64 gets more
    int position(int k, int i, const FoldReduce& reduce) const {
        using Function = int (*)(int, int, int, int);
        return CLEBSCH_SELECT(Function, isa_, reduce_position)(k, i, reduce.left_components, reduce.right_components);
    }
    std::int64_t size_of_reduced(const FoldReduce& reduce, int element_size) const {
        using Function = int (*)(int, int, int);
        return CLEBSCH_SELECT(Function, isa_, reduced_size)(reduce.left_components, reduce.right_components, element_size);
    }

    /// Slot of a product of numbers; products are -2, -3, ... until all numbers are known.
    int slot_of(const std::vector<int>& numbers) {
        if (numbers.empty()) return 0;
        if (numbers.size() == 1) return 1 + numbers[0];
        const auto found = product_of_.find(numbers);
        if (found != product_of_.end()) return found->second;
        const int a = slot_of({numbers.begin(), numbers.end() - 1}), b = 1 + numbers.back();
        products_.push_back({a, b});
        return product_of_[numbers] = -1 - static_cast<int>(products_.size());
    }
    int product_slot(int provisional) const { return 1 + static_cast<int>(program_.numbers.size()) + (-2 - provisional); }

    struct Term {
        int target, source, slot;
        double value;
    };
    /// Terms by target, targets with equally many terms together.
    void pack_terms(const std::vector<Term>& terms, int& classes, int& first_class, int& first_target, int& first_term) {
        std::map<int, std::vector<Term>> of_target;
        for (const Term& term : terms) of_target[term.target].push_back(term);
        std::map<std::size_t, std::vector<int>> of_size;
        for (const auto& [target, list] : of_target) of_size[list.size()].push_back(target);
        first_class = static_cast<int>(classes_.size());
        first_target = static_cast<int>(targets_.size());
        first_term = static_cast<int>(coefficients_.size());
        classes = static_cast<int>(of_size.size());
        for (const auto& [size, targets] : of_size) {
            classes_.push_back({static_cast<int>(size), static_cast<int>(targets.size())});
            for (const int target : targets) {
                targets_.push_back(target);
                for (const Term& term : of_target[target]) {
                    coefficients_.push_back(term.value);
                    sources_.push_back(term.source);
                    term_slots_.push_back(term.slot);
                }
            }
        }
    }

    /// The pattern with the fewest entries that has all of the matrix.
    int pattern_of(const FoldMatrix& matrix, const std::vector<bool>& has_term) const {
        using Function = bool (*)(int);
        if (!CLEBSCH_SELECT(Function, isa_, skips_zeros)(sizeof(float))) return -1;
        int best = -1;
        for (int p = 0; p < fold_pattern_count && !matrix.diagonal; ++p) {
            const FoldPattern& pattern = fold_patterns[p];
            if (pattern.outputs != matrix.outputs || pattern.inputs != matrix.inputs) continue;
            bool has_all = true;
            for (std::size_t target = 0; target < has_term.size(); ++target)
                has_all &= !has_term[target] || (pattern.entries >> target & 1) != 0;
            if (has_all && (best < 0 || std::popcount(pattern.entries) < std::popcount(fold_patterns[best].entries))) best = p;
        }
        return best;
    }

    void pack(const FoldMatrixPlan& plan) {
        FoldMatrix matrix;
        matrix.outputs = plan.outputs;
        matrix.inputs = plan.inputs;
        matrix.diagonal = plan.diagonal;
        std::vector<bool> has_term(static_cast<std::size_t>(plan.outputs) * static_cast<std::size_t>(plan.inputs), false);
        for (const FoldEntry& entry : plan.entries) {
            const int place = entry.i * plan.outputs + entry.k;
            has_term[static_cast<std::size_t>(place)] = true;
        }
        matrix.pattern = pattern_of(matrix, has_term);
        matrices_.push_back(matrix);
    }

    void pack(const std::vector<FoldPlaced>& placed) {
        FoldFolding folding;
        std::vector<Term> terms;
        std::set<int> zeros;
        for (const auto& [matrix, place] : placed) {
            const FoldMatrixPlan& plan = program_.matrices[static_cast<std::size_t>(matrix)];
            const int size = plan.diagonal ? 1 : plan.outputs * plan.inputs;
            for (int target = 0; target < size; ++target) zeros.insert(place + target);
            for (const FoldEntry& entry : plan.entries) {
                if (plan.diagonal && entry.k > 0) continue;
                const int target = place + entry.i * plan.outputs + entry.k;
                terms.push_back({target, slot_of(entry.numbers), 0, entry.value});
                zeros.erase(target);
            }
            numbers_ = std::max<std::int64_t>(numbers_, place + size);
        }
        pack_terms(terms, folding.classes, folding.first_class, folding.first_target, folding.first_term);
        folding.first_zero = static_cast<int>(targets_.size());
        folding.zeros = static_cast<int>(zeros.size());
        targets_.insert(targets_.end(), zeros.begin(), zeros.end());
        foldings_.push_back(folding);
    }

    void pack(const FoldReducePlan& plan) {
        FoldReduce reduce;
        const bool swap = plan.left_components < plan.right_components;  // the right side is weighted: let it be the smaller one
        reduce.left_components = swap ? plan.right_components : plan.left_components;
        reduce.right_components = swap ? plan.left_components : plan.right_components;
        reduce.left = swap ? plan.right : plan.left;
        reduce.right = swap ? plan.left : plan.right;
        reduce.diagonal = plan.diagonal;
        reduce.channels = plan.channels;
        reduce.factor = plan.factor;
        std::vector<Term> terms;
        for (const FoldEntry& entry : plan.entries) {
            if (plan.diagonal && entry.k > 0) continue;
            const int at = plan.diagonal ? 0 : position(swap ? entry.i : entry.k, swap ? entry.k : entry.i, reduce);
            terms.push_back({entry.target, at, slot_of(entry.numbers), entry.value * plan.factor.scale});
        }
        pack_terms(terms, reduce.classes, reduce.first_class, reduce.first_target, reduce.first_term);
        reduces_.push_back(reduce);
    }

    void pack(const FoldMultiplyPlan& plan) {
        FoldMultiply multiply;
        multiply.matrix = plan.matrix;
        multiply.place = plan.place;
        multiply.channels = plan.channels;
        multiply.in = plan.in;
        multiply.sinks = static_cast<int>(plan.sinks.size());
        sinks_.push_back(plan.sinks);
        multiply.sink = sinks_.back().data();
        for (const FoldSink& s : plan.sinks) run_operands_.push_back(s.out.operand);
        multiplies_.push_back(multiply);
    }

    int operands_;
    const FoldProgram& program_;
    InstructionSet isa_;
    std::unique_ptr<bool[]> streamed_;
    std::vector<FoldProduct> products_;
    std::map<std::vector<int>, int> product_of_;
    std::vector<FoldBlend> blends_;
    std::int64_t blend_size_ = 0;
    std::vector<FoldMatrix> matrices_;
    std::vector<FoldFolding> foldings_;
    std::int64_t numbers_ = 0;  ///< per row, of matrices at a time
    std::vector<FoldReduce> reduces_;
    std::vector<std::vector<FoldSink>> sinks_;
    std::vector<FoldMultiply> multiplies_;
    std::vector<FoldSums> sums_;
    int sum_count_ = 0;
    std::vector<FoldClass> classes_;
    std::vector<int> targets_, sources_, term_slots_, run_operands_;
    std::vector<double> coefficients_;
    std::vector<float> coefficients_float_;
};

class FoldKernel final : public Kernel {
 public:
    FoldKernel(const Polynomial& polynomial, FoldProgram program, InstructionSet isa)
        : program_(std::move(program)),
          isa_(isa),
          packed_(polynomial, program_, isa),
          float_(packed_.view<float>()),
          double_(packed_.view<double>()) {
        measure(polynomial);
    }
    FoldKernel(const FoldKernel&) = delete;
    FoldKernel& operator=(const FoldKernel&) = delete;

    std::string name() const override { return "fold"; }
    std::string explain() const override {
        return std::to_string(program_.matrices.size()) + " matrices folded per row from " + std::to_string(program_.numbers.size()) +
               " channel-free numbers, " + std::to_string(program_.multiplies.size()) + " multiplications" +
               (packed_.skipping() > 0 ? " (" + std::to_string(packed_.skipping()) + " skip zeros in float32), " : ", ") +
               std::to_string(program_.reduces.size()) + " reductions over channels, " + std::to_string(program_.blends.size()) +
               " sums of weighted rows; " + to_text(isa_);
    }
    std::vector<int> paths() const override { return program_.paths; }
    Estimate estimate() const override { return estimate_; }
    OverwriteMap overwritten() const override { return overwritten_; }
    Fetch fetches() const override { return Fetch::own; }
    int preferred_rows() const override { return 2 * float_.rows; }
    std::size_t scratch_bytes(std::size_t element_size, int) const override {
        return element_size * static_cast<std::size_t>(element_size == 4 ? float_.scratch : double_.scratch);
    }
    void run(const Block<float>& block) const override {
        using Function = void (*)(const FoldView<float>&, const Block<float>&);
        CLEBSCH_SELECT(Function, isa_, run_fold)(float_, block);
    }
    void run(const Block<double>& block) const override {
        using Function = void (*)(const FoldView<double>&, const Block<double>&);
        CLEBSCH_SELECT(Function, isa_, run_fold)(double_, block);
    }

 private:
    /// Multiply-adds per row as the loops do them (docs/limits.md), and which segments are stored rather than added to.
    void measure(const Polynomial& polynomial) {
        for (const Operand& operand : polynomial.operands) overwritten_.emplace_back(operand.segments.size(), false);
        const auto overwrite = [&](int operand, std::int64_t offset) {
            const Operand& out = polynomial.operands[static_cast<std::size_t>(operand)];
            for (std::size_t s = 0; s < out.segments.size(); ++s)
                if (out.offset(static_cast<int>(s)) == offset && out.segments[s].size() > 0)
                    overwritten_[static_cast<std::size_t>(operand)][s] = true;
        };
        double work = 0;
        for (const FoldMultiplyPlan& multiply : program_.multiplies) {
            const FoldMatrixPlan& matrix = program_.matrices[static_cast<std::size_t>(multiply.matrix)];
            double ops = matrix.diagonal ? matrix.outputs : static_cast<double>(matrix.outputs) * matrix.inputs;
            if (is_weighted_sum(multiply)) ops += matrix.diagonal ? 1 : weighted_components(matrix);
            else
                for (const FoldSink& sink : multiply.sinks)
                    ops += sink.dot || sink.factor.weights > 0 || multiply.sinks.size() > 1 ? matrix.outputs : 0;
            for (const FoldSink& sink : multiply.sinks)
                if (sink.overwrite || sink.begin) overwrite(sink.out.operand, sink.out.offset);
            work += ops * static_cast<double>(multiply.channels);
        }
        for (const FoldReducePlan& reduce : program_.reduces) {
            const double left = reduce.left_components, right = reduce.right_components;
            const double ops = reduce.diagonal ? left : left * right;
            work += (ops + (reduce.factor.weights == 0 ? 0
                            : reduce.diagonal          ? 1
                                                       : std::min(left, right))) *
                        static_cast<double>(reduce.channels) +
                    static_cast<double>(reduce.entries.size()) / (reduce.diagonal ? left : 1);
        }
        for (const FoldMatrixPlan& matrix : program_.matrices)
            work += static_cast<double>(matrix.entries.size()) / (matrix.diagonal ? matrix.outputs : 1);
        for (const FoldBlendPlan& blend : program_.blends)
            work += static_cast<double>(blend.terms.size()) * blend.components * static_cast<double>(blend.channels);
        for (const FoldNumber& output : program_.outputs)
            if (output.overwrite) overwrite(output.operand, output.offset);
        estimate_.multiply_adds = work;
        for (const Operand& operand : polynomial.operands)
            if (operand.rows.kind == Addressing::Kind::each) estimate_.bytes += 4.0 * static_cast<double>(operand.size());
    }

    FoldProgram program_;
    InstructionSet isa_;
    Packed packed_;
    FoldView<float> float_;
    FoldView<double> double_;
    Estimate estimate_;
    OverwriteMap overwritten_;
};

}  // namespace

std::unique_ptr<Kernel> make_fold_kernel(const KernelRequest& request, std::vector<int>& taken) {
    taken = foldable_paths(*request.polynomial, request.paths);
    if (taken.empty()) return nullptr;
    return std::make_unique<FoldKernel>(*request.polynomial, schedule_fold(*request.polynomial, taken), request.isa);
}

}  // namespace clebsch
