// Energies and forces on a GPU. Neighbours are searched on the host; a call copies one block of edges and indices to the device and one of
// results back. From the second call of a size on all of it is one recorded graph, so that the host does next to nothing.
#include <algorithm>
#include <array>
#include <bit>
#include <cstring>

#include "base/error.hpp"
#include "emit/tape.hpp"
#include "model/evaluation.hpp"
#include "run/gpu/program_plan.hpp"
#include "run/threads.hpp"

namespace clebsch {
namespace {

constexpr std::int64_t alignment = 256;
std::int64_t up(std::int64_t bytes, std::int64_t unit = alignment) { return (bytes + unit - 1) / unit * unit; }

GpuModelProgram on_gpu(Program program, std::vector<DType> dtypes, DType compute, const PotentialOptions& options) {
    return {std::move(program),
            {.dtypes = std::move(dtypes), .compute = compute, .device = options.gpu.value_or(0), .deterministic = options.deterministic}};
}

gpu::ProgramPlan planned(const GpuModelProgram& made) { return gpu::ProgramPlan(made.program, made.options); }

/// Memory of the host that the device reads and writes.
class HostMemory {
 public:
    explicit HostMemory(const gpu::Device& device) : device_(device) {}
    ~HostMemory() {
        if (data_ != nullptr) device_.release_host(data_);
    }
    HostMemory(const HostMemory&) = delete;
    HostMemory& operator=(const HostMemory&) = delete;
    /// Whether the memory moved.
    bool grow(std::int64_t bytes) {
        if (bytes <= size_) return false;
        if (data_ != nullptr) device_.release_host(data_);
        data_ = nullptr;
        size_ = 0;
        data_ = static_cast<std::byte*>(device_.allocate_host(static_cast<std::size_t>(bytes)));
        size_ = bytes;
        return true;
    }
    std::byte* data() const { return data_; }

 private:
    const gpu::Device& device_;
    std::byte* data_ = nullptr;
    std::int64_t size_ = 0;
};

/// Copies between the host's memory and the device's, in the order of a stream. Of few bytes by a kernel, which takes less than to set the
/// copy engines going.
class HostCopies {
 public:
    explicit HostCopies(const gpu::Device& device) : device_(device) {
        try {
            kernel_ = gpu::load_kernels(device, {gpu_copy_kernel()}).front();
        } catch (const gpu::KernelMissing&) { return; }  // kernels prebuilt by an earlier version
    }

    void to_device(void* to, const void* from, std::int64_t bytes, gpu::Stream stream) const {
        if (!by_kernel(to, from, bytes, stream)) device_.to_device(to, from, static_cast<std::size_t>(bytes), stream);
    }
    void from_device(void* to, const void* from, std::int64_t bytes, gpu::Stream stream) const {
        if (!by_kernel(to, from, bytes, stream)) device_.from_device(to, from, static_cast<std::size_t>(bytes), stream);
    }

 private:
    /// Blocks of memory begin and end at multiples of `alignment`.
    bool by_kernel(void* to, const void* from, std::int64_t bytes, gpu::Stream stream) const {
        constexpr std::int64_t most_bytes = std::int64_t{1} << 17, line = 16;
        if (!kernel_ || bytes > most_bytes) return false;
        const auto word = [](const void* pointer) { return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(pointer)); };
        const std::uint64_t words[] = {word(from), word(to), static_cast<std::uint64_t>(bytes / line)};
        const LaunchShape shape = tape_shape(bytes / line);
        kernel_->launch(shape.grid, shape.threads, 0, stream, words);
        return true;
    }

    const gpu::Device& device_;
    std::shared_ptr<const gpu::Module> kernel_;
};

/// Numbers of atoms, of edges that there is room for, of structures.
struct Size {
    std::int64_t atoms = -1, edges = -1, structures = -1;
    friend bool operator==(const Size&, const Size&) = default;
};

/// Room for edges, so that the numbers of neighbours of moving atoms need no other one: at most a sixteenth more. Depends on the number of
/// edges alone.
std::int64_t room_for(std::int64_t edges) {
    if (edges == 0) return 0;
    const std::int64_t step = std::max<std::int64_t>(32, static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(edges))) / 16);
    return up(edges, step);
}

/// Where everything lies in a block of memory, in bytes.
struct BlockLayout {
    std::int64_t vectors = 0, sender = 0, receiver = 0, piece = 0, species = 0, graph = 0, inputs = 0;        // copied to the device
    std::int64_t atom_energy = 0, energy = 0, forces = 0, virial = 0, outputs = 0;                            // copied back, from 0 on
    std::int64_t first_output = 0, own_energy = 0, cotangent = 0, edge_gradient = 0, workspace = 0, all = 0;  // on the device only

    BlockLayout(const Size& size, std::int64_t number, std::int64_t workspace_bytes) {
        std::int64_t end = 0;
        const auto take = [&](std::int64_t& at, std::int64_t count, std::int64_t bytes) {
            at = end;
            end = up(end + count * bytes);
        };
        take(vectors, 3 * size.edges, sizeof(double));
        take(sender, size.edges, sizeof(std::int64_t));
        take(receiver, size.edges, sizeof(std::int64_t));
        take(piece, size.edges, sizeof(std::int64_t));
        take(species, size.atoms, sizeof(std::int64_t));
        take(graph, size.atoms, sizeof(std::int64_t));
        inputs = first_output = end;
        end = 0;
        take(atom_energy, size.atoms, sizeof(double));
        take(energy, size.structures, sizeof(double));
        take(forces, 3 * size.atoms, sizeof(double));
        take(virial, 9 * size.structures, sizeof(double));
        outputs = end;
        end += first_output;
        take(own_energy, size.atoms, number);
        take(cotangent, size.atoms, number);
        take(edge_gradient, 3 * size.edges, number);
        take(workspace, workspace_bytes, 1);
        all = end;
    }
};

class GpuEvaluation final : public Evaluation {
 public:
    GpuEvaluation(const Model& model, const PotentialOptions& options, const std::vector<GpuModelProgram>& programs)
        : dtype_(options.dtype),
          elements_(std::ssize(model.atomic_numbers)),
          pieces_(std::ssize(model.piece_ends)),
          device_(gpu::Device::get(*options.gpu)),
          gradient_(planned(programs[0])),
          sums_(planned(programs[1])),
          gradient_arrays_(gradient_.program(), gradient_.spaces(), gradient_.dtypes()),
          sums_arrays_(sums_.program(), sums_.spaces(), sums_.dtypes()),
          host_inputs_(device_),
          host_outputs_(device_),
          copies_(device_),
          stream_(device_.make_stream()) {
        for (CallArrays* arrays : {&gradient_arrays_, &sums_arrays_}) {
            arrays->rows("element", elements_);
            arrays->rows("piece", pieces_);
        }
        const auto upload = [&](const std::vector<std::byte>& bytes) -> const void* {
            weights_.emplace_back(device_, std::max<std::size_t>(bytes.size(), 16));
            device_.to_device(weights_.back().data(), bytes.data(), bytes.size());
            return weights_.back().data();
        };
        weights_.reserve(model.weights.size() + 1);
        sums_arrays_.array("element_energies", upload(as_stored(model.element_energies, DType::float64)), elements_);
        for (const ModelWeights& given : model.weights) {
            const Value& value = model.program.values[static_cast<std::size_t>(model.program.find_value(given.name))];
            gradient_arrays_.array(given.name, upload(as_stored(given.values, dtype_)), rows_of_weights(model, value.space));
        }
    }
    ~GpuEvaluation() override {
        recorded_.reset();
        device_.destroy_stream(stream_);
    }
    GpuEvaluation(const GpuEvaluation&) = delete;
    GpuEvaluation& operator=(const GpuEvaluation&) = delete;

    std::string explain() const override { return gradient_.explain(); }
    std::size_t workspace_bytes() const override { return memory_ ? memory_->bytes() : 0; }
    std::size_t workspace_bytes(std::int64_t atoms, std::int64_t edges) const override {
        CallArrays arrays(gradient_.program(), gradient_.spaces(), gradient_.dtypes());
        arrays.rows("element", elements_);
        arrays.rows("piece", pieces_);
        arrays.rows("node", atoms);
        arrays.rows("edge", room_for(edges));
        return gradient_.workspace_bytes(arrays.rows());
    }

    std::vector<StepTime> time_steps() override {
        if (size_ == Size{}) return {};
        const BlockLayout layout = this->layout(size_);
        const Workspace workspace{static_cast<std::byte*>(memory_->data()) + layout.workspace, workspace_bytes_};
        std::vector<StepTime> times;
        for (const auto& [plan, arrays] : {std::pair(&gradient_, &gradient_arrays_), std::pair(&sums_, &sums_arrays_)})
            for (gpu::ProgramPlan::StepTime& time : plan->time_steps(arrays->call(), workspace, stream_))
                times.push_back({std::move(time.step), time.milliseconds});
        return times;
    }

    void set_parallel_for(const ParallelFor& parallel_for) override { parallel_for_ = parallel_for; }

    void run(const EvaluationCall& call, Energies& result) override {
        const Size size{std::ssize(call.species), room_for(call.graph->edges()), call.structures};
        const bool known = size == size_;
        if (!known) arrange(size);
        const BlockLayout layout = this->layout(size);
        fill(call, layout);
        if (known && !recorded_) recorded_ = std::make_unique<gpu::CapturedWork>(device_, stream_, [&] { launch(layout, true); });
        if (recorded_) recorded_->launch(stream_);
        else launch(layout, false);
        device_.synchronize(stream_);
        const auto take = [&](std::vector<double>& to, std::int64_t at) {
            if (!to.empty()) std::memcpy(to.data(), host_outputs_.data() + at, to.size() * sizeof(double));
        };
        take(result.atom_energy, layout.atom_energy);
        take(result.energy, layout.energy);
        take(result.forces, layout.forces);
        take(result.virial, layout.virial);
    }

 private:
    BlockLayout layout(const Size& size) {
        for (CallArrays* arrays : {&gradient_arrays_, &sums_arrays_}) {
            arrays->rows("edge", size.edges);
            arrays->rows("node", size.atoms);
            arrays->rows("graph", size.structures);
        }
        // Each its own, so that sums need not wait for all gradients.
        gradient_bytes_ = static_cast<std::size_t>(up(static_cast<std::int64_t>(gradient_.workspace_bytes(gradient_arrays_.rows()))));
        workspace_bytes_ = gradient_bytes_ + sums_.workspace_bytes(sums_arrays_.rows());
        return BlockLayout(size, static_cast<std::int64_t>(size_of(dtype_)), static_cast<std::int64_t>(workspace_bytes_));
    }

    /// Memory and addresses for calls of another size.
    void arrange(const Size& size) {
        size_ = {};
        recorded_.reset();
        const BlockLayout layout = this->layout(size);
        host_inputs_.grow(layout.inputs);
        host_outputs_.grow(layout.outputs);
        if (!memory_ || memory_->bytes() < static_cast<std::size_t>(layout.all)) {
            memory_.reset();
            memory_.emplace(device_, static_cast<std::size_t>(std::max<std::int64_t>(layout.all, alignment)));
        }
        auto* const at = static_cast<std::byte*>(memory_->data());
        const std::vector<std::byte> ones = as_stored(std::vector<double>(static_cast<std::size_t>(size.atoms), 1), dtype_);
        device_.to_device(at + layout.cotangent, ones.data(), ones.size());
        const auto index = [&](std::int64_t offset) { return reinterpret_cast<const std::int64_t*>(at + offset); };
        std::byte* const out = at + layout.first_output;
        for (CallArrays* arrays : {&gradient_arrays_, &sums_arrays_}) {
            arrays->index("sender", index(layout.sender), size.edges);
            arrays->index("receiver", index(layout.receiver), size.edges);
            arrays->index("piece", index(layout.piece), size.edges);
            arrays->index("species", index(layout.species), size.atoms);
            arrays->index("graph", index(layout.graph), size.atoms);
            arrays->array("vectors", at + layout.vectors, size.edges);
            arrays->array("atom_energy", at + layout.own_energy, size.atoms);
            arrays->array("atom_energy_cotangent", at + layout.cotangent, size.atoms);
            arrays->array("vectors_gradient", at + layout.edge_gradient, size.edges);
        }
        sums_arrays_.array("total_atom_energy", out + layout.atom_energy, size.atoms);
        sums_arrays_.array("energy", out + layout.energy, size.structures);
        sums_arrays_.array("forces", out + layout.forces, size.atoms);
        sums_arrays_.array("virial", out + layout.virial, size.structures);
        size_ = size;
    }

    /// The block that is copied to the device. Room that is left holds edges of length 1 that belong to no atom.
    void fill(const EvaluationCall& call, const BlockLayout& layout) {
        const Graph& graph = *call.graph;
        const std::size_t edges = graph.sender.size(), room = static_cast<std::size_t>(size_.edges);
        const auto numbers = [&](std::int64_t at) { return reinterpret_cast<std::int64_t*>(host_inputs_.data() + at); };
        if (room > 0) {
            auto* const vectors = reinterpret_cast<double*>(host_inputs_.data() + layout.vectors);
            constexpr std::size_t part = 8192;
            for_each_task(parallel_for_, static_cast<std::int64_t>((edges + part - 1) / part), [&](std::int64_t p) {
                const std::size_t begin = static_cast<std::size_t>(p) * part, count = std::min(part, edges - begin);
                std::copy_n(graph.vectors.begin() + static_cast<std::ptrdiff_t>(3 * begin), 3 * count, vectors + 3 * begin);
                const auto copy = [&](std::span<const std::int64_t> values, std::int64_t at) {
                    std::copy_n(values.begin() + static_cast<std::ptrdiff_t>(begin), count, numbers(at) + begin);
                };
                copy(graph.sender, layout.sender);
                copy(graph.receiver, layout.receiver);
                if (!call.piece.empty()) copy(call.piece, layout.piece);
            });
            std::fill(vectors + 3 * edges, vectors + 3 * room, 0.0);
            for (std::size_t e = edges; e < room; ++e) vectors[3 * e] = 1;
            for (const std::int64_t at : {layout.sender, layout.receiver, layout.piece}) {
                const std::size_t filled = at == layout.piece ? call.piece.size() : edges;
                std::fill(numbers(at) + filled, numbers(at) + room, std::int64_t{-1});
            }
        }
        std::copy(call.species.begin(), call.species.end(), numbers(layout.species));
        std::copy(graph.structure.begin(), graph.structure.end(), numbers(layout.graph));
    }

    void launch(const BlockLayout& layout, bool recorded) const {
        auto* const at = static_cast<std::byte*>(memory_->data());
        copies_.to_device(at, host_inputs_.data(), layout.inputs, stream_);
        std::byte* const workspace = at + layout.workspace;
        const std::array<gpu::ProgramPlan::Recorded, 2> launches = {
            {{&gradient_, gradient_arrays_.call(), {workspace, gradient_bytes_}},
             {&sums_, sums_arrays_.call(), {workspace + gradient_bytes_, workspace_bytes_ - gradient_bytes_}}}};
        if (recorded) {
            gpu::ProgramPlan::record(launches, stream_);
        } else {
            for (const auto& [plan, call, own] : launches) plan->launch(call, own, stream_);
        }
        copies_.from_device(host_outputs_.data(), at + layout.first_output, layout.outputs, stream_);
    }

    DType dtype_;
    ParallelFor parallel_for_ = default_pool().parallel_for();  ///< writes what is copied to the device
    std::int64_t elements_, pieces_;
    const gpu::Device& device_;
    gpu::ProgramPlan gradient_, sums_;
    CallArrays gradient_arrays_, sums_arrays_;
    std::vector<gpu::Memory> weights_;
    HostMemory host_inputs_, host_outputs_;
    HostCopies copies_;
    std::optional<gpu::Memory> memory_;
    std::unique_ptr<gpu::CapturedWork> recorded_;
    gpu::Stream stream_;
    Size size_;
    std::size_t gradient_bytes_ = 0, workspace_bytes_ = 0;
};

}  // namespace

std::vector<GpuModelProgram> gpu_programs(const Model& model, const PotentialOptions& options) {
    const Program gradient = with_gradient(model), sums = totals();
    return {on_gpu(gradient, gradient_dtypes(gradient, options.dtype), options.dtype, options),
            on_gpu(sums, totals_dtypes(sums, options.dtype), DType::float64, options)};
}

gpu::KernelSource gpu_copy_kernel() { return gpu::source_of(emit_copy()); }

std::unique_ptr<Evaluation> evaluation_on_gpu(const Model& model, const PotentialOptions& options) {
    return std::make_unique<GpuEvaluation>(model, options, gpu_programs(model, options));
}

}  // namespace clebsch
