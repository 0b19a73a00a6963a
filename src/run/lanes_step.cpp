// A group of nodes as one tape (schedule/lanes.hpp), run over ranges of rows.
#include <algorithm>
#include <new>

#include "run/program_step.hpp"
#include "schedule/lanes.hpp"
#include "schedule/program_groups.hpp"

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

    PartCosts costs(std::span<const std::int64_t>) const override {
        PartCosts costs;
        for (const std::int64_t size : sizes_) costs.numbers_per_row += static_cast<double>(size);
        costs.work_per_row = code_.estimate().multiply_adds + work_of_function * code_.functions() + costs.numbers_per_row;
        return costs;
    }
    std::size_t scratch_bytes() const override { return array_bytes() + at(code_.slots()) * slot_bytes_; }

    void run(const GroupLaunch& launch, std::byte*, const Chunk& chunk) const override {
        if (compute_ == DType::float64) run_chunk(launch, chunk, double_);
        else run_chunk(launch, chunk, float_);
    }

 private:
    std::size_t array_bytes() const { return round_up(code_.arrays().size() * sizeof(LanesArray<double>), 64); }
    bool is_stored(int value) const { return std::ranges::find(code_.stored(), value) != code_.stored().end(); }

    std::vector<int> with(bool stored) const {
        std::vector<int> result;
        for (const int value : code_.arrays())
            if (is_stored(value) == stored) result.push_back(value);
        return result;
    }

    template <class T>
    void run_chunk(const GroupLaunch& launch, const Chunk& chunk,
                   void (*run_tape)(const LanesTape&, const LanesArray<T>*, T*, std::int64_t, std::int64_t)) const {
        if (chunk.begin == chunk.end) return;
        std::byte* const scratch = launch.division.scratch[chunk.worker];
        auto* arrays = reinterpret_cast<LanesArray<T>*>(scratch);
        for (std::size_t i = 0; i < sizes_.size(); ++i) {
            const Buffer& buffer = chunk.values[code_.arrays()[i]];
            new (arrays + i) LanesArray<T>{static_cast<T*>(buffer.data),
                                           buffer.row_stride == 0 ? sizes_[i] : buffer.row_stride,
                                           buffer.rows,
                                           sizes_[i],
                                           nullptr,
                                           false};
        }
        run_tape(code_.tape(), arrays, reinterpret_cast<T*>(scratch + array_bytes()), 0, chunk.end - chunk.begin);
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
