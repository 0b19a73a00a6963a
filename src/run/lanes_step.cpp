// A group of nodes as one tape (schedule/lanes.hpp), run over ranges of rows.
#include <algorithm>
#include <new>

#include "run/program_step.hpp"
#include "schedule/lanes.hpp"

namespace clebsch {
namespace {

std::size_t at(int position) { return static_cast<std::size_t>(position); }

class LanesStep final : public ProgramStep {
 public:
    LanesStep(const StepRequest& request, std::span<const Node* const> nodes, const std::vector<int>& stored)
        : code_(*request.program, nodes, stored),
          compute_(request.compute),
          space_(request.space_of(space_of(*request.program, *nodes[0]))) {
        using OfFloat = void (*)(const LanesTape&, const LanesArray<float>*, float*, std::int64_t, std::int64_t);
        using OfDouble = void (*)(const LanesTape&, const LanesArray<double>*, double*, std::int64_t, std::int64_t);
        float_ = CLEBSCH_SELECT(OfFloat, request.isa, run_lanes);
        double_ = CLEBSCH_SELECT(OfDouble, request.isa, run_lanes);
        using Bytes = std::int64_t (*)();
        slot_bytes_ = static_cast<std::size_t>(CLEBSCH_SELECT(Bytes, request.isa, lanes_tile_bytes)());
        std::string inputs, outputs;
        for (const int value : code_.arrays()) {
            sizes_.push_back(request.program->values[at(value)].size());
            std::string& list = is_stored(value) ? outputs : inputs;
            list += (list.empty() ? "" : ", ") + request.program->values[at(value)].name;
        }
        text_ = outputs + " from " + (inputs.empty() ? "nothing" : inputs) + ", " + std::to_string(nodes.size()) + " nodes fused\n" +
                code_.explain() + "\n";
    }

    std::vector<int> reads() const override { return with(false); }
    std::vector<int> writes() const override { return with(true); }
    std::string explain() const override { return text_; }
    double multiply_adds(std::span<const std::int64_t> rows) const override {
        return code_.estimate().multiply_adds * static_cast<double>(space_ < 0 ? 1 : rows[at(space_)]);
    }

    std::size_t workspace_bytes(std::span<const std::int64_t> rows, int threads) const override {
        return array_bytes() + static_cast<std::size_t>(workers(rows[at(space_)], threads)) * scratch_bytes();
    }

    void launch(const StepCall& call) const override {
        if (compute_ == DType::float64) run(call, double_);
        else run(call, float_);
    }

 private:
    static constexpr std::int64_t rows_per_task = 2048;

    static std::int64_t workers(std::int64_t rows, int threads) {
        return std::clamp<std::int64_t>((rows + rows_per_task - 1) / rows_per_task, 1, std::max(1, threads));
    }
    std::size_t array_bytes() const { return round_up(code_.arrays().size() * sizeof(LanesArray<double>), 64); }
    std::size_t scratch_bytes() const { return at(code_.slots()) * slot_bytes_; }
    bool is_stored(int value) const { return std::ranges::find(code_.stored(), value) != code_.stored().end(); }

    std::vector<int> with(bool stored) const {
        std::vector<int> result;
        for (const int value : code_.arrays())
            if (is_stored(value) == stored) result.push_back(value);
        return result;
    }

    template <class T>
    void run(const StepCall& call, void (*run_tape)(const LanesTape&, const LanesArray<T>*, T*, std::int64_t, std::int64_t)) const {
        const std::int64_t rows = call.rows[space_];
        if (rows == 0) return;
        auto* arrays = reinterpret_cast<LanesArray<T>*>(call.workspace);
        for (std::size_t i = 0; i < sizes_.size(); ++i) {
            const Buffer& buffer = call.values[code_.arrays()[i]];
            new (arrays + i) LanesArray<T>{static_cast<T*>(buffer.data),
                                           buffer.row_stride == 0 ? sizes_[i] : buffer.row_stride,
                                           buffer.rows,
                                           sizes_[i],
                                           nullptr,
                                           false};
        }
        const LanesTape tape = code_.tape();
        const std::int64_t count = workers(rows, call.parallel_for->run == nullptr ? 1 : call.parallel_for->threads);
        std::byte* const scratch = call.workspace + array_bytes();
        // Each worker takes every count-th range, with a scratch of its own.
        for_each_task(*call.parallel_for, count, [&](std::int64_t worker) {
            for (std::int64_t begin = worker * rows_per_task; begin < rows; begin += count * rows_per_task)
                run_tape(tape, arrays, reinterpret_cast<T*>(scratch + static_cast<std::size_t>(worker) * scratch_bytes()), begin,
                         std::min(rows, begin + rows_per_task));
        });
    }

    LanesCode code_;
    DType compute_;
    int space_;
    std::vector<std::int64_t> sizes_;
    std::size_t slot_bytes_ = 0;
    void (*float_)(const LanesTape&, const LanesArray<float>*, float*, std::int64_t, std::int64_t) = nullptr;
    void (*double_)(const LanesTape&, const LanesArray<double>*, double*, std::int64_t, std::int64_t) = nullptr;
    std::string text_;
};

}  // namespace

std::unique_ptr<ProgramStep> make_lanes_step(const StepRequest& request, std::span<const Node* const> nodes,
                                             const std::vector<int>& stored) {
    return std::make_unique<LanesStep>(request, nodes, stored);
}

}  // namespace clebsch
