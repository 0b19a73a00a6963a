// The lanes family: polynomials with few numbers per row, one row per vector lane.
#include <algorithm>
#include <new>

#include "describe/harmonics_chain.hpp"
#include "schedule/kernel.hpp"
#include "schedule/lanes.hpp"
#include "schedule/lanes_expressions.hpp"

namespace clebsch {
namespace {

/// The polynomial as a block sees it: every operand one row per row of the block, components outermost.
Program row_program(const Polynomial& polynomial) {
    Polynomial rows;
    rows.rows = "row";
    rows.operands = polynomial.operands;
    rows.paths = polynomial.paths;
    for (Operand& operand : rows.operands) {
        operand.layout = Layout::ir_mul;
        operand.rows = each_row();
    }
    return with_harmonic_chains(as_program(rows));
}

class LanesKernel final : public Kernel {
 public:
    LanesKernel(const KernelRequest& request, const Program& program, std::span<const Node* const> nodes)
        : paths_(request.paths), code_(program, nodes, program.outputs) {
        const Polynomial& polynomial = *request.polynomial;
        for (const int value : code_.arrays()) {
            const int operand = polynomial.find_operand(program.values[static_cast<std::size_t>(value)].name);
            const Operand& known = polynomial.operands[static_cast<std::size_t>(operand)];
            operands_.push_back({operand, known.role == Role::output, known.rows.kind == Addressing::Kind::each, known.size()});
        }
        for (const Operand& operand : polynomial.operands)
            overwritten_.emplace_back(operand.segments.size(), operand.role == Role::output && operand.rows.kind == Addressing::Kind::each);
        using OfFloat = void (*)(const LanesTape&, const LanesArray<float>*, float*, std::int64_t, std::int64_t);
        using OfDouble = void (*)(const LanesTape&, const LanesArray<double>*, double*, std::int64_t, std::int64_t);
        float_ = CLEBSCH_SELECT(OfFloat, request.isa, run_lanes);
        double_ = CLEBSCH_SELECT(OfDouble, request.isa, run_lanes);
        using Bytes = std::int64_t (*)();
        slot_bytes_ = static_cast<std::size_t>(CLEBSCH_SELECT(Bytes, request.isa, lanes_tile_bytes)());
    }

    std::string name() const override { return "lanes"; }
    std::string explain() const override { return code_.explain(); }
    std::vector<int> paths() const override { return paths_; }
    Estimate estimate() const override { return code_.estimate(); }
    OverwriteMap overwritten() const override { return overwritten_; }
    int preferred_rows() const override { return 128; }
    std::size_t scratch_bytes(std::size_t, int) const override {
        return table_bytes() + static_cast<std::size_t>(code_.slots()) * slot_bytes_;
    }

    void run(const Block<float>& block) const override { run_block(block, float_); }
    void run(const Block<double>& block) const override { run_block(block, double_); }

 private:
    struct OperandUse {
        int operand;
        bool output, each;
        std::int64_t size;
    };
    std::size_t table_bytes() const { return (operands_.size() * sizeof(LanesArray<double>) + 63) / 64 * 64; }

    template <class T>
    void run_block(const Block<T>& block, void (*run_tape)(const LanesTape&, const LanesArray<T>*, T*, std::int64_t, std::int64_t)) const {
        if (block.rows == 0) return;
        auto* arrays = reinterpret_cast<LanesArray<T>*>(block.scratch);
        for (std::size_t i = 0; i < operands_.size(); ++i) {
            const OperandUse& use = operands_[i];
            LanesArray<T> array;
            array.rows = block.rows;
            array.size = use.size;
            array.add = use.output && !use.each;
            array.pointers =
                use.output ? block.outputs[use.operand] : const_cast<T* const*>(block.inputs[use.operand]);  // inputs are only read
            new (arrays + i) LanesArray<T>(array);
        }
        run_tape(code_.tape(), arrays, reinterpret_cast<T*>(block.scratch + table_bytes()), 0, block.rows);
    }

    std::vector<int> paths_;
    LanesCode code_;
    std::vector<OperandUse> operands_;
    OverwriteMap overwritten_;
    std::size_t slot_bytes_ = 0;
    void (*float_)(const LanesTape&, const LanesArray<float>*, float*, std::int64_t, std::int64_t) = nullptr;
    void (*double_)(const LanesTape&, const LanesArray<double>*, double*, std::int64_t, std::int64_t) = nullptr;
};

}  // namespace

std::unique_ptr<Kernel> make_lanes_kernel(const KernelRequest& request, std::vector<int>& taken) {
    if (request.paths.size() != request.polynomial->paths.size()) return nullptr;
    const Program program = row_program(*request.polynomial);
    std::vector<const Node*> nodes;
    std::int64_t terms = 0;
    for (const Node& node : program.nodes) {
        const LanesSize size = lanes_size(std::get<PolynomialNode>(node).polynomial);
        if (!size.possible || (terms += size.terms) > 8192) return nullptr;
        nodes.push_back(&node);
    }
    if (nodes.empty()) return nullptr;
    taken = request.paths;
    return std::make_unique<LanesKernel>(request, program, nodes);
}

}  // namespace clebsch
