#include "run/gpu/program_step.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "base/error.hpp"
#include "emit/chain.hpp"
#include "emit/general.hpp"
#include "emit/gradient.hpp"
#include "emit/halves.hpp"
#include "emit/matrix.hpp"
#include "emit/tape.hpp"
#include "emit/text.hpp"
#include "run/gpu/kernels.hpp"
#include "schedule/gpu_halves.hpp"
#include "schedule/program_order.hpp"

namespace clebsch::gpu {
namespace {

using Kind = KernelArgument::Kind;

std::size_t at(int position) { return static_cast<std::size_t>(position); }

std::uint64_t address(const void* pointer) { return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(pointer)); }
std::uint64_t stride(const Buffer& buffer, std::int64_t size) {
    return static_cast<std::uint64_t>(buffer.row_stride == 0 ? size : buffer.row_stride);
}

std::string names(const Program& program, const std::vector<int>& values) {
    std::string text;
    for (const int value : values) text += (text.empty() ? "" : ", ") + program.values[at(value)].name;
    return text.empty() ? "nothing" : text;
}

std::shared_ptr<const Module> load_one(const Device& device, const KernelText& kernel, std::string_view preamble = {}) {
    return load_kernels(device, {source_of(kernel, preamble)}).front();
}

/// A kernel with a thread per place of every row, or with a block for some rows (a chain).
class PlaceStep final : public ProgramStep {
 public:
    PlaceStep(const ProgramStepRequest& request, KernelText kernel, std::vector<int> reads, std::vector<int> writes, int space,
              std::int64_t width, std::string text, std::int64_t rows_of_block = 0)
        : kernel_(std::move(kernel)),
          module_(load_one(*request.device, kernel_)),
          reads_(std::move(reads)),
          writes_(std::move(writes)),
          space_(space),
          width_(width),
          rows_of_block_(rows_of_block),
          text_(std::move(text)) {
        for (const KernelArgument& argument : kernel_.arguments)
            sizes_.push_back(argument.which < 0 ? 0 : request.program->values[at(argument.which)].size());
        text_ +=
            "    " + std::to_string(module_->registers()) + " registers, " + std::to_string(module_->spilled_bytes()) + " bytes spilled\n";
    }

    std::vector<int> reads() const override { return reads_; }
    std::vector<int> writes() const override { return writes_; }
    std::string explain() const override { return text_; }

    void launch(const ProgramLaunch& launch) const override {
        const std::int64_t rows = space_ < 0 ? 1 : launch.rows[space_];
        if (rows * width_ == 0) return;
        constexpr std::size_t most_arguments = 512;
        std::uint64_t words[most_arguments];
        for (std::size_t i = 0; i < kernel_.arguments.size(); ++i) {
            const KernelArgument& argument = kernel_.arguments[i];
            switch (argument.kind) {
                case Kind::data:
                    words[i] = address(launch.values[argument.which].data);
                    break;
                case Kind::stride:
                    words[i] = stride(launch.values[argument.which], sizes_[i]);
                    break;
                case Kind::rows:
                    words[i] = static_cast<std::uint64_t>(rows);
                    break;
                default:  // of polynomials without indices: unused
                    words[i] = 0;
                    break;
            }
        }
        const LaunchShape shape = rows_of_block_ > 0 ? chain_shape(rows, rows_of_block_) : tape_shape(rows * width_);
        module_->launch(shape.grid, shape.threads, 0, launch.stream, {words, kernel_.arguments.size()});
    }

 private:
    KernelText kernel_;
    std::shared_ptr<const Module> module_;
    std::vector<int> reads_, writes_;
    std::vector<std::int64_t> sizes_;  ///< of the values behind arguments
    int space_;
    std::int64_t width_, rows_of_block_;
    std::string text_;
};

/// The arrays of a node among those of the program.
class NodeArrays {
 public:
    NodeArrays(const ProgramStepRequest& request, const Polynomial& polynomial, std::vector<int> arguments)
        : arguments_(std::move(arguments)) {
        for (const Index& index : polynomial.indices) {
            const auto& known = request.program->indices;
            indices_.push_back(static_cast<int>(std::ranges::find(known, index.name, &Index::name) - known.begin()));
        }
        for (const std::string& space : row_spaces(polynomial)) spaces_.push_back(request.space_of(space));
    }

    /// Calls use(call) with the node's arrays. Each thread keeps the lists it needs for it.
    template <class Use>
    void with(const Buffer* values, const IndexBuffer* indices, const std::int64_t* rows, Use use) const {
        static thread_local std::vector<Buffer> buffers;
        static thread_local std::vector<IndexBuffer> index_buffers;
        static thread_local std::vector<std::int64_t> counts;
        buffers.clear();
        index_buffers.clear();
        if (values != nullptr)
            for (const int value : arguments_) buffers.push_back(values[value]);
        if (indices != nullptr)
            for (const int index : indices_) index_buffers.push_back(indices[index]);
        find_rows(rows, counts);
        use(Call{.buffers = buffers, .indices = index_buffers, .rows = counts, .indices_checked = true});
    }
    void find_rows(const std::int64_t* rows, std::vector<std::int64_t>& counts) const {
        counts.clear();
        for (const int space : spaces_) counts.push_back(space < 0 ? 1 : rows[space]);
    }
    const std::vector<int>& arguments() const { return arguments_; }
    int index(int of_polynomial) const { return indices_[at(of_polynomial)]; }

 private:
    std::vector<int> arguments_, indices_, spaces_;
};

std::vector<int> with_role(const Polynomial& polynomial, const std::vector<int>& arguments, Role role) {
    std::vector<int> result;
    for (std::size_t i = 0; i < arguments.size(); ++i)
        if (polynomial.operands[i].role == role) result.push_back(arguments[i]);
    return result;
}

class PolynomialStep final : public ProgramStep {
 public:
    PolynomialStep(const ProgramStepRequest& request, const Polynomial& polynomial, std::vector<int> arguments)
        : arrays_(request, polynomial, std::move(arguments)), plan_(polynomial, options(request, arrays_.arguments())) {
        text_ = names(*request.program, writes()) + " = polynomial of " + names(*request.program, reads()) + "\n";
    }

    std::vector<int> reads() const override { return with_role(plan_.polynomial(), arrays_.arguments(), Role::input); }
    std::vector<int> writes() const override { return with_role(plan_.polynomial(), arrays_.arguments(), Role::output); }
    std::size_t scratch_bytes(const std::int64_t* rows) const override {
        std::vector<std::int64_t> counts;
        arrays_.find_rows(rows, counts);
        return plan_.workspace_bytes(counts);
    }
    void launch(const ProgramLaunch& launch) const override {
        arrays_.with(launch.values, launch.indices, launch.rows,
                     [&](const Call& call) { plan_.launch(call, launch.scratch, launch.stream); });
    }
    bool index_error() const override { return plan_.index_error(); }
    double multiply_adds(const std::int64_t* rows) const override {
        std::vector<std::int64_t> counts;
        arrays_.find_rows(rows, counts);
        return plan_.work(counts).multiply_adds;
    }
    std::string explain() const override { return text_ + plan_.explain(); }

 private:
    static PlanOptions options(const ProgramStepRequest& request, const std::vector<int>& arguments) {
        PlanOptions options{.dtypes = {}, .compute = request.compute, .schedule = {}, .device = request.device->number()};
        options.deterministic = request.deterministic;
        for (const int value : arguments) options.dtypes.push_back(request.dtypes[at(value)]);
        return options;
    }

    NodeArrays arrays_;
    PolynomialPlan plan_;
    std::string text_;
};

/// Matrix products of many rows by half-precision parts: weights are divided into the scratch memory first.
class HalvesKernels {
 public:
    HalvesKernels(const Device& device, HalvesSchedule schedule)
        : device_(device), schedule_(std::move(schedule)), tables_(device, job_bytes() + schedule_.pieces.size() * sizeof(HalvesPiece)) {
        device.to_device(tables_.data(), schedule_.jobs.data(), job_bytes());
        device.to_device(static_cast<std::byte*>(tables_.data()) + job_bytes(), schedule_.pieces.data(),
                         schedule_.pieces.size() * sizeof(HalvesPiece));
        for (const HalvesLaunch& launch : schedule_.launches) {
            kernels_.push_back({launch, load_one(device, emit_halves_weights(GpuNumber::float32, launch.columns), halves_preambles()),
                                load_one(device, emit_halves(GpuNumber::float32, launch.columns), halves_preambles())});
            kernels_.back().products->allow_shared(halves_shape(schedule_, launch, 1, 1).shared_bytes);
        }
    }

    std::size_t scratch_bytes() const { return static_cast<std::size_t>(schedule_.weights_bytes); }

    /// `operands`: address and stride of each.
    void launch(std::int64_t rows, std::span<const std::uint64_t> operands, const ProgramLaunch& launch) const {
        std::array<std::uint64_t, halves_first_operand + 2 * MatrixSchedule::most_operands> words{};
        std::ranges::copy(operands, words.begin() + halves_first_operand);
        for (const LaunchKernels& own : kernels_) {
            const std::int64_t share = halves_share(schedule_, own.launch, rows, device_.multiprocessors());
            words[0] = address(tables_.data()) + static_cast<std::uint64_t>(own.launch.first_job) * sizeof(HalvesJob);
            words[1] = address(tables_.data()) + job_bytes() + static_cast<std::uint64_t>(own.launch.first_piece) * sizeof(HalvesPiece);
            words[2] = address(launch.scratch.data) + static_cast<std::uint64_t>(own.launch.weights_at);
            words[3] = static_cast<std::uint64_t>(own.launch.jobs);
            words[4] = static_cast<std::uint64_t>(rows);
            words[5] = static_cast<std::uint64_t>(share);
            own.weights->launch({own.launch.pieces, 1}, HalvesSchedule::weights_threads, 0, launch.stream, words);
            const LaunchShape shape = halves_shape(schedule_, own.launch, rows, share);
            own.products->launch(shape.grid, shape.threads, shape.shared_bytes, launch.stream, words);
        }
    }

    std::string explain() const {
        std::string text;
        for (const LaunchKernels& own : kernels_)
            text += "    many rows: " + std::to_string(own.launch.pieces) + " tiles of weights, 64 x " +
                    std::to_string(own.launch.columns) + ", by half-precision parts: " + std::to_string(own.products->registers()) +
                    " registers, " + std::to_string(own.products->spilled_bytes()) + " bytes spilled\n";
        return text;
    }

 private:
    std::size_t job_bytes() const { return schedule_.jobs.size() * sizeof(HalvesJob); }

    struct LaunchKernels {
        HalvesLaunch launch;
        std::shared_ptr<const Module> weights, products;
    };
    const Device& device_;
    HalvesSchedule schedule_;
    Memory tables_;
    std::vector<LaunchKernels> kernels_;
};

/// Gradients of weights that rows share: tiles for chunks of rows leave parts in the scratch memory, which are added up then.
class GradientKernels {
 public:
    GradientKernels(const Device& device, const GradientSchedule& schedule, GpuNumber compute)
        : device_(device),
          schedule_(schedule),
          tiles_(gradient_tiles(compute)),
          number_bytes_(static_cast<std::size_t>(bytes_of(compute))),
          tables_(device, job_bytes() + schedule_.terms.size() * sizeof(GradientTerm)),
          sum_(load_one(device, emit_gradient_sum(compute), gradient_preambles())) {
        device.to_device(tables_.data(), schedule_.jobs.data(), job_bytes());
        device.to_device(static_cast<std::byte*>(tables_.data()) + job_bytes(), schedule_.terms.data(),
                         schedule_.terms.size() * sizeof(GradientTerm));
        for (const GradientLaunch& launch : gradient_launches(schedule_, tiles_))
            kernels_.push_back({launch, load_one(device, emit_gradient(compute, tiles_[launch.tile]), gradient_preambles())});
    }

    std::size_t scratch_bytes(std::int64_t rows) const {
        return static_cast<std::size_t>(chunks(rows).count * schedule_.numbers) * number_bytes_;
    }

    /// `operands`: address and stride of each. Without rows gradients are zero.
    void launch(std::int64_t rows, std::span<const std::uint64_t> operands, const ProgramLaunch& launch) const {
        const GradientChunks divided = chunks(rows);
        std::array<std::uint64_t, gradient_first_operand + 2 * MatrixSchedule::most_operands> words{};
        std::ranges::copy(operands, words.begin() + gradient_first_operand);
        words[1] = address(tables_.data()) + job_bytes();
        words[3] = static_cast<std::uint64_t>(rows);
        words[4] = static_cast<std::uint64_t>(divided.rows);
        words[5] = static_cast<std::uint64_t>(divided.count);
        words[6] = static_cast<std::uint64_t>(schedule_.numbers);
        words[7] = address(launch.scratch.data);
        for (const auto& [own, module] : kernels_) {
            if (rows == 0) break;
            words[0] = address(tables_.data()) + static_cast<std::uint64_t>(own.first) * sizeof(GradientJob);
            words[2] = static_cast<std::uint64_t>(own.count);
            const LaunchShape shape = gradient_shape(schedule_, own, tiles_[own.tile], divided.count);
            module->launch(shape.grid, shape.threads, 0, launch.stream, words);
        }
        words[0] = address(tables_.data());
        const LaunchShape shape = gradient_sum_shape(schedule_);
        sum_->launch(shape.grid, shape.threads, 0, launch.stream, words);
    }

    std::string explain() const {
        std::string text;
        for (const auto& [own, module] : kernels_)
            text += "    sums over rows: tiles of " + std::to_string(tiles_[own.tile].rows) + " x " +
                    std::to_string(tiles_[own.tile].columns) + ": " + std::to_string(module->registers()) + " registers, " +
                    std::to_string(module->spilled_bytes()) + " bytes spilled\n";
        return text;
    }

 private:
    std::size_t job_bytes() const { return schedule_.jobs.size() * sizeof(GradientJob); }
    GradientChunks chunks(std::int64_t rows) const { return gradient_chunks(schedule_, tiles_, rows, device_.multiprocessors()); }

    const Device& device_;
    GradientSchedule schedule_;
    std::vector<GradientTile> tiles_;
    std::size_t number_bytes_;
    Memory tables_;
    std::vector<std::pair<GradientLaunch, std::shared_ptr<const Module>>> kernels_;
    std::shared_ptr<const Module> sum_;
};

class MatrixStep final : public ProgramStep {
 public:
    MatrixStep(const ProgramStepRequest& request, const PolynomialNode& node, MatrixSchedule schedule)
        : schedule_(std::move(schedule)),
          arrays_(request, node.polynomial, node.arguments),
          device_(*request.device),
          tables_(device_, table_bytes()),
          error_(device_, 256),
          reads_(with_role(node.polynomial, node.arguments, Role::input)),
          writes_(with_role(node.polynomial, node.arguments, Role::output)),
          compute_(number_of(request.compute)),
          space_(request.space_of(node.polynomial.rows)) {
        const std::uint64_t clear = 0;
        device_.to_device(error_.data(), &clear, sizeof clear);
        device_.to_device(tables_.data(), schedule_.jobs.data(), job_bytes());
        device_.to_device(static_cast<std::byte*>(tables_.data()) + job_bytes(), schedule_.terms.data(),
                          schedule_.terms.size() * sizeof(MatrixTerm));
        for (const Operand& operand : node.polynomial.operands) sizes_.push_back(operand.size());
        if (std::optional<HalvesSchedule> halves = schedule_halves(schedule_, compute_))
            halves_ = std::make_unique<HalvesKernels>(device_, std::move(*halves));
        if (!schedule_.gradient.jobs.empty()) gradient_ = std::make_unique<GradientKernels>(device_, schedule_.gradient, compute_);
        for (const MatrixRows rows : all_matrix_rows) {
            if (rows == MatrixRows::many && halves_) continue;
            const std::vector<MatrixTile> tiles = matrix_tiles(compute_, rows);
            for (const MatrixLaunch& launch : matrix_launches(schedule_, tiles))
                kernels_[static_cast<std::size_t>(rows)].push_back(
                    {launch, tiles[launch.tile], load_one(device_, emit_matrix(compute_, tiles[launch.tile]), matrix_preamble())});
        }
        if (schedule_.index >= 0) index_space_ = request.space_of(node.polynomial.indices[at(schedule_.index)].to);
        if (schedule_.rest) {
            std::vector<int> arguments;
            for (const int operand : schedule_.rest_operands) arguments.push_back(node.arguments[at(operand)]);
            rest_ = std::make_unique<PolynomialStep>(request, *schedule_.rest, std::move(arguments));
        }
        text_ = names(*request.program, writes_) + " = " + clebsch::explain(schedule_, node.polynomial);
        if (halves_) text_ += halves_->explain();
        if (gradient_) text_ += gradient_->explain();
        for (const TileKernel& kernel : kernels_[static_cast<std::size_t>(halves_ ? MatrixRows::few : MatrixRows::many)])
            text_ += std::string("    ") + (halves_ ? "few rows: " : "") + "tiles of " + std::to_string(kernel.tile.rows) + " x " +
                     std::to_string(kernel.tile.columns) + ": " + std::to_string(kernel.module->registers()) + " registers, " +
                     std::to_string(kernel.module->spilled_bytes()) + " bytes spilled\n";
        if (rest_) text_ += "  " + rest_->explain();
    }

    std::vector<int> reads() const override { return reads_; }
    std::vector<int> writes() const override { return writes_; }
    std::size_t scratch_bytes(const std::int64_t* rows) const override {
        const std::size_t of_weights = halves_ && tiles_for(rows_of(rows)) == MatrixRows::many ? halves_->scratch_bytes() : 0;
        return std::max({rest_ ? rest_->scratch_bytes(rows) : 0, of_weights, gradient_ ? gradient_->scratch_bytes(rows_of(rows)) : 0});
    }
    bool index_error() const override {
        std::uint64_t flag = 0;
        device_.from_device(&flag, error_.data(), sizeof flag);
        const std::uint64_t clear = 0;
        if (flag != 0) device_.to_device(error_.data(), &clear, sizeof clear);
        return (rest_ && rest_->index_error()) || flag != 0;
    }
    double multiply_adds(const std::int64_t* rows) const override {
        return schedule_.multiply_adds * static_cast<double>(rows_of(rows)) + (rest_ ? rest_->multiply_adds(rows) : 0.0);
    }
    std::string explain() const override { return text_; }

    void launch(const ProgramLaunch& launch) const override {
        if (rest_) rest_->launch(launch);
        const std::int64_t rows = rows_of(launch.rows);
        if (rows == 0 && !gradient_) return;
        std::array<std::uint64_t, matrix_first_operand + 2 * MatrixSchedule::most_operands> words{};
        words[1] = address(tables_.data()) + job_bytes();
        words[3] = static_cast<std::uint64_t>(rows);
        if (schedule_.index >= 0) {
            const IndexBuffer& index = launch.indices[arrays_.index(schedule_.index)];
            words[4] = address(index.data);
            words[5] = index.type == IndexType::int64 ? 1 : 0;
            words[6] = static_cast<std::uint64_t>(launch.rows[index_space_]);
        }
        words[7] = address(error_.data());
        for (std::size_t o = 0; o < sizes_.size(); ++o) {
            const Buffer& buffer = launch.values[arrays_.arguments()[o]];
            words[matrix_first_operand + 2 * o] = address(buffer.data);
            words[matrix_first_operand + 2 * o + 1] = stride(buffer, sizes_[o]);
            if (!schedule_.jobs.empty() && buffer.row_stride > most_stride)
                throw Error(ErrorKind::unsupported, "a row stride of " + std::to_string(buffer.row_stride) + " numbers, more than " +
                                                        std::to_string(most_stride) + ", in a matrix product on a GPU");
        }
        if (gradient_) gradient_->launch(rows, std::span(words).subspan(matrix_first_operand), launch);
        if (rows == 0 || schedule_.jobs.empty()) return;
        const MatrixRows tiles = tiles_for(rows);
        if (halves_ && tiles == MatrixRows::many) return halves_->launch(rows, std::span(words).subspan(matrix_first_operand), launch);
        for (const TileKernel& kernel : kernels_[static_cast<std::size_t>(tiles)]) {
            words[0] = address(tables_.data()) + static_cast<std::uint64_t>(kernel.launch.first) * sizeof(MatrixJob);
            words[2] = static_cast<std::uint64_t>(kernel.launch.count);
            const LaunchShape shape = matrix_shape(schedule_, kernel.launch, kernel.tile, rows);
            kernel.module->launch(shape.grid, shape.threads, 0, launch.stream, words);
        }
    }

 private:
    static constexpr std::int64_t most_stride = 1 << 23;  ///< the rows of a tile are reached by 32-bit distances
    std::size_t job_bytes() const { return schedule_.jobs.size() * sizeof(MatrixJob); }
    std::size_t table_bytes() const { return job_bytes() + schedule_.terms.size() * sizeof(MatrixTerm); }
    std::int64_t rows_of(const std::int64_t* rows) const { return space_ < 0 ? 1 : rows[space_]; }
    MatrixRows tiles_for(std::int64_t rows) const { return matrix_rows(schedule_, compute_, rows, device_.multiprocessors()); }

    MatrixSchedule schedule_;
    NodeArrays arrays_;
    const Device& device_;
    Memory tables_, error_;
    std::vector<int> reads_, writes_;
    GpuNumber compute_;
    int space_, index_space_ = -1;
    std::vector<std::int64_t> sizes_;
    struct TileKernel {
        MatrixLaunch launch;
        MatrixTile tile;
        std::shared_ptr<const Module> module;
    };
    std::array<std::vector<TileKernel>, all_matrix_rows.size()> kernels_;  ///< by MatrixRows
    std::unique_ptr<HalvesKernels> halves_;                                ///< instead of the tiles for many rows
    std::unique_ptr<GradientKernels> gradient_;
    std::unique_ptr<PolynomialStep> rest_;
    std::string text_;
};

}  // namespace

int ProgramStepRequest::space_of(const std::string& name) const {
    return name.empty() ? -1 : static_cast<int>(std::ranges::find(*spaces, name) - spaces->begin());
}

std::unique_ptr<ProgramStep> make_tape_step(const ProgramStepRequest& request, const GpuProgramStep& step) {
    const Program& program = *request.program;
    const LanesCode code = tape_of(program, step);
    std::vector<int> reads;
    for (const int value : code.arrays())
        if (std::ranges::find(code.stored(), value) == code.stored().end()) reads.push_back(value);
    std::string text = names(program, step.stored) + " from " + names(program, reads) + ", " + std::to_string(step.nodes.size()) +
                       " nodes, " + (step.width == 1 ? "a thread per row: " : std::to_string(step.width) + " threads per row: ") +
                       std::to_string(static_cast<long>(code.estimate().multiply_adds)) + " multiply-adds and " +
                       std::to_string(code.functions()) + " functions in each\n";
    return std::make_unique<PlaceStep>(
        request, emit_tape(program, code, step.width, numbers_of(request.dtypes), number_of(request.compute)), std::move(reads),
        step.stored, request.space_of(space_of(program, program.nodes[at(step.nodes[0])])), step.width, std::move(text));
}

KernelText chain_kernel(const Program& program, const std::vector<GpuProgramStep>& links, const std::vector<DType>& dtypes, DType compute,
                        const GpuTarget& target) {
    std::vector<KernelText> texts;
    std::vector<const GpuProgramStep*> chain;
    chain.reserve(links.size());
    for (const GpuProgramStep& step : links) chain.push_back(&step);
    const std::int64_t rows_of_block = chain_rows(program, chain);
    for (const GpuProgramStep& step : links) {
        if (step.width != 0) {
            texts.push_back(emit_tape_link(program, tape_of(program, step), step.width, numbers_of(dtypes), number_of(compute)));
            continue;
        }
        const auto& node = std::get<PolynomialNode>(program.nodes[at(step.nodes[0])]);
        std::vector<DType> own;
        for (const int value : node.arguments) own.push_back(dtypes[at(value)]);
        const GpuProblem problem = gpu_problem(node.polynomial, own, compute, target);
        texts.push_back(emit_general_link(problem, schedule_general(problem), rows_of_block));
        for (KernelArgument& argument : texts.back().arguments)
            if (argument.which >= 0) argument.which = node.arguments[at(argument.which)];
    }
    return emit_chain(texts, rows_of_block);
}

std::unique_ptr<ProgramStep> make_chain_step(const ProgramStepRequest& request, const std::vector<GpuProgramStep>& links) {
    const Program& program = *request.program;
    std::vector<int> reads, writes;
    std::vector<const GpuProgramStep*> chain;
    std::string steps;
    for (const GpuProgramStep& step : links) {
        chain.push_back(&step);
        std::vector<int> own = step.stored;
        if (step.width == 0) own = values_of(program.nodes[at(step.nodes[0])], Role::output);
        for (const int node : step.nodes)
            for (const int value : values_of(program.nodes[at(node)], Role::input)) reads.push_back(value);
        writes.insert(writes.end(), own.begin(), own.end());
        steps += "    " + names(program, own) + (step.width == 0 ? ": polynomial\n" : ": " + std::to_string(step.width) + " places\n");
    }
    std::ranges::sort(reads);
    reads.erase(std::unique(reads.begin(), reads.end()), reads.end());
    // What stays within a tape has no memory.
    std::vector<bool> written(program.values.size(), false);
    for (const GpuProgramStep& step : links)
        for (const int node : step.nodes)
            for (const int value : values_of(program.nodes[at(node)], Role::output)) written[at(value)] = true;
    std::erase_if(reads, [&](int value) { return written[at(value)]; });
    const std::int64_t rows_of_block = chain_rows(program, chain);
    std::string text = names(program, writes) + " from " + names(program, reads) + ", a chain of " + std::to_string(links.size()) +
                       " steps, " + std::to_string(rows_of_block) + " rows a block\n" + steps;
    return std::make_unique<PlaceStep>(
        request, chain_kernel(program, links, request.dtypes, request.compute, request.device->target()), std::move(reads),
        std::move(writes), request.space_of(space_of(program, program.nodes[at(links[0].nodes[0])])), 1, std::move(text), rows_of_block);
}

std::unique_ptr<ProgramStep> make_polynomial_step(const ProgramStepRequest& request, const PolynomialNode& node) {
    return std::make_unique<PolynomialStep>(request, node.polynomial, node.arguments);
}

std::unique_ptr<ProgramStep> make_matrix_step(const ProgramStepRequest& request, const PolynomialNode& node, MatrixSchedule schedule) {
    return std::make_unique<MatrixStep>(request, node, std::move(schedule));
}

std::unique_ptr<ProgramStep> make_conversion_step(const ProgramStepRequest& request, int from, int to) {
    const Program& program = *request.program;
    const Value& value = program.values[at(from)];
    return std::make_unique<PlaceStep>(
        request, emit_conversion(program, from, to, number_of(request.dtypes[at(from)]), number_of(request.dtypes[at(to)])),
        std::vector<int>{from}, std::vector<int>{to}, request.space_of(value.space), value.size(),
        program.values[at(to)].name + " = " + value.name + " as " + to_text(request.dtypes[at(to)]) + "\n");
}

}  // namespace clebsch::gpu
