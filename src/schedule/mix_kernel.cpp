// Packs a mix program for both arithmetics, as the kernel that runs it.
#include <algorithm>

#include "schedule/kernel.hpp"
#include "schedule/mix.hpp"

namespace clebsch {
namespace {

class MixKernel final : public Kernel {
 public:
    MixKernel(const KernelRequest& request, MixProgram program) : program_(std::move(program)), isa_(request.isa) {
        for (const Operand& operand : request.polynomial->operands) overwritten_.emplace_back(operand.segments.size(), false);
        for (const auto& [operand, segment] : program_.stored)
            overwritten_[static_cast<std::size_t>(operand)][static_cast<std::size_t>(segment)] = true;
        for (const std::size_t size : {sizeof(float), sizeof(double)}) {
            View& view = size == sizeof(float) ? single_ : double_;
            view.multiplies = program_.multiplies;
            for (MixMultiply& multiply : view.multiplies) {
                if (!multiply.shared) continue;
                multiply.packed_at = view.packed;
                view.packed += packed_size(multiply, static_cast<int>(size));
            }
            view.narrow_parts = program_.narrow_parts;
            for (const MixNarrow& narrow : program_.narrows)
                for (int p = narrow.first_part; narrow.shared && p < narrow.first_part + narrow.parts; ++p) {
                    MixNarrowPart& part = view.narrow_parts[static_cast<std::size_t>(p)];
                    part.packed_at = view.packed;
                    view.packed += packed_narrow_size(part.sources, narrow.targets, static_cast<std::int64_t>(size));
                }
            view.program = {.operands = static_cast<int>(request.polynomial->operands.size()),
                            .steps = static_cast<int>(program_.steps.size()),
                            .step = program_.steps.data(),
                            .product = program_.products.data(),
                            .entry = program_.entries.data(),
                            .term = program_.terms.data(),
                            .scalar = program_.scalars.data(),
                            .multiply = view.multiplies.data(),
                            .multiplies = static_cast<int>(view.multiplies.size()),
                            .outer = program_.outers.data(),
                            .narrow = program_.narrows.data(),
                            .narrows = static_cast<int>(program_.narrows.size()),
                            .narrow_part = view.narrow_parts.data(),
                            .gradient = program_.gradients.data(),
                            .gradient_part = program_.gradient_parts.data(),
                            .buffers = static_cast<int>(program_.buffer_size.size()),
                            .buffer_size = program_.buffer_size.data()};
            for (const MixMultiply& multiply : program_.multiplies)
                view.program.most_components = std::max(view.program.most_components, multiply.components);
            for (const MixOuter& outer : program_.outers)
                view.program.most_components = std::max(view.program.most_components, outer.components);
        }
        // Scratch of a block and rows that follow one another stay in the second cache while the next block's rows arrive there.
        std::int64_t scratch = 1, streamed = 1;
        for (const std::int64_t size : program_.buffer_size) scratch += size;
        for (const Operand& operand : request.polynomial->operands)
            if (operand.rows.kind == Addressing::Kind::each) streamed += operand.size();
        const std::int64_t rows = std::min((std::int64_t{1} << 17) / scratch, (std::int64_t{1} << 16) / streamed);
        constexpr std::int64_t whole_tiles = 24;  // of every instruction set
        preferred_rows_ = static_cast<int>(std::clamp<std::int64_t>(rows < whole_tiles ? rows : rows / whole_tiles * whole_tiles, 1, 48));
    }

    std::string name() const override { return "mix"; }
    std::string explain() const override {
        int shared = 0, gathered = 0;
        for (const MixMultiply& multiply : program_.multiplies) shared += multiply.shared, gathered += multiply.gathered;
        return "channel-mixing: " + std::to_string(program_.multiplies.size()) + " matrix products (" + std::to_string(shared) +
               " with packed shared weights" +
               (gathered > 0 ? ", " + std::to_string(gathered) + " with rows grouped by the weights they gather" : std::string()) + "), " +
               (program_.narrows.empty() ? std::string()
                                         : std::to_string(program_.narrows.size()) + " sums of " +
                                               std::to_string(program_.narrow_parts.size()) + " products with few columns, ") +
               (program_.gradient_parts.empty()
                    ? std::string()
                    : "gradients in one pass of " + std::to_string(program_.gradient_parts.size()) + " scalar products of channels, ") +
               std::to_string(program_.outers.size()) + " outer products, " + std::to_string(program_.products.size()) +
               " channel-wise products beside them; " + to_text(isa_);
    }
    std::vector<int> paths() const override { return program_.paths; }
    Estimate estimate() const override { return {.multiply_adds = program_.multiply_adds, .bytes = 0}; }
    OverwriteMap overwritten() const override { return overwritten_; }
    Fetch fetches() const override { return Fetch::ahead; }
    std::vector<bool> as_stored() const override { return program_.as_stored; }
    int preferred_rows() const override { return preferred_rows_; }
    std::size_t scratch_bytes(std::size_t element_size, int rows) const override {
        return static_cast<std::size_t>(mix_scratch_bytes(single_.program, static_cast<std::int64_t>(element_size), rows));
    }
    std::size_t prepared_bytes(std::size_t element_size) const override {
        return static_cast<std::size_t>(element_size == sizeof(float) ? single_.packed : double_.packed) * element_size;
    }
    void prepare(const float* const* inputs, std::byte* prepared) const override { prepare_typed(single_, inputs, prepared); }
    void prepare(const double* const* inputs, std::byte* prepared) const override { prepare_typed(double_, inputs, prepared); }
    void run(const Block<float>& block) const override { run_typed(single_, block); }
    void run(const Block<double>& block) const override { run_typed(double_, block); }

 private:
    struct View {
        MixView program;
        std::vector<MixMultiply> multiplies;
        std::vector<MixNarrowPart> narrow_parts;
        std::int64_t packed = 0;
    };

    std::int64_t packed_size(const MixMultiply& multiply, int element_size) const {
        using Function = std::int64_t (*)(std::int64_t, std::int64_t, int);
        return CLEBSCH_SELECT(Function, isa_, packed_mix_size)(multiply.sources, multiply.targets, element_size);
    }
    template <class T>
    void prepare_typed(const View& view, const T* const* inputs, std::byte* prepared) const {
        using Function = void (*)(const MixView&, const T* const*, T*);
        CLEBSCH_SELECT(Function, isa_, pack_mix)(view.program, inputs, reinterpret_cast<T*>(prepared));
    }
    template <class T>
    void run_typed(const View& view, const Block<T>& block) const {
        using Function = void (*)(const MixView&, const Block<T>&);
        CLEBSCH_SELECT(Function, isa_, run_mix)(view.program, block);
    }

    MixProgram program_;
    InstructionSet isa_;
    OverwriteMap overwritten_;
    View single_, double_;
    int preferred_rows_ = 1;
};

}  // namespace

std::int64_t mix_scratch_bytes(const MixView& program, std::int64_t element_size, int rows) {
    const auto round_up = [](std::int64_t bytes) { return (bytes + 63) / 64 * 64; };
    std::int64_t bytes = 2 * round_up((std::int64_t{rows} * program.most_components + 8) * 8) + 256 + mix_group_bytes(rows);
    for (int b = 0; b < program.buffers; ++b) bytes += round_up(program.buffer_size[b] * rows * element_size);
    return bytes;
}

std::unique_ptr<Kernel> make_mix_kernel(const KernelRequest& request, std::vector<int>& taken) {
    MixProgram program = schedule_mix(*request.polynomial, request.paths);
    if (program.paths.empty()) return nullptr;
    taken = program.paths;
    return std::make_unique<MixKernel>(request, std::move(program));
}

}  // namespace clebsch
