#include "run/gpu/plan.hpp"

#include <algorithm>

#include "base/error.hpp"
#include "run/gpu/kernels.hpp"

namespace clebsch::gpu {
namespace {

constexpr std::size_t alignment = 256;
std::size_t up(std::size_t bytes) { return (bytes + alignment - 1) / alignment * alignment; }
std::size_t at(int position) { return static_cast<std::size_t>(position); }

int position(const std::vector<std::string>& names, const std::string& name) {
    return static_cast<int>(std::ranges::find(names, name) - names.begin());
}

}  // namespace

GpuNumber number_of(DType dtype) {
    switch (dtype) {
        case DType::float32:
            return GpuNumber::float32;
        case DType::float64:
            return GpuNumber::float64;
        case DType::bfloat16:
            return GpuNumber::bfloat16;
        case DType::float16:
            return GpuNumber::float16;
    }
    fail("dtype number " + std::to_string(static_cast<int>(dtype)) + " is unknown");
}

GpuProblem gpu_problem(const Polynomial& polynomial, const std::vector<DType>& dtypes, DType compute, const GpuTarget& target) {
    GpuProblem problem{.polynomial = polynomial, .storage = {}, .compute = number_of(compute), .target = target};
    for (const DType dtype : dtypes) problem.storage.push_back(number_of(dtype));
    return problem;
}

Work gpu_work(const Polynomial& polynomial, const std::vector<DType>& dtypes, std::span<const std::int64_t> rows) {
    const std::vector<std::string> spaces = row_spaces(polynomial);
    const auto rows_of = [&](const std::string& space) {
        const int found = position(spaces, space);
        return found < static_cast<int>(spaces.size()) ? static_cast<double>(rows[at(found)]) : 1.0;
    };
    Work work;
    for (const Path& path : polynomial.paths) {
        double terms = static_cast<double>(reduced_entries(path).size());
        for (const auto& [letter, extent] : path.extents) terms *= static_cast<double>(extent);
        work.multiply_adds += terms * static_cast<double>(std::max<std::size_t>(1, path.factors.size() - 1)) * static_cast<double>(rows[0]);
    }
    for (std::size_t o = 0; o < polynomial.operands.size(); ++o) {
        const Operand& operand = polynomial.operands[o];
        work.bytes += rows_of(polynomial.space_of(operand)) * static_cast<double>(operand.size()) * static_cast<double>(size_of(dtypes[o]));
    }
    for (const Index& index : polynomial.indices) work.bytes += 4.0 * rows_of(index.from);
    return work;
}

struct PolynomialPlan::Data {
    GpuProblem problem;
    std::vector<DType> dtypes;
    DType compute = DType::float32;
    const Device* device = nullptr;
    std::vector<std::string> spaces;
    std::vector<int> operand_space;  ///< -1: one row
    std::vector<int> index_from, index_to;
    int stationary_space = -1;
    GpuKernels kernels;
    std::vector<std::shared_ptr<const Module>> modules;  ///< of the stages
    std::int64_t stream_blocks = 0;                      ///< the machine takes at once
    std::unique_ptr<Memory> error;

    const Polynomial& polynomial() const { return problem.polynomial; }
    std::int64_t rows_of(std::size_t o, std::span<const std::int64_t> rows) const {
        return operand_space[o] < 0 ? 1 : rows[at(operand_space[o])];
    }
    /// Where the sums of an output begin in the workspace; the end for o = number of operands.
    std::size_t sums_offset(std::size_t o, std::span<const std::int64_t> rows) const {
        std::size_t bytes = 0;
        for (std::size_t other = 0; other < o; ++other) {
            if (!kernels.needs_sums[other]) continue;
            std::size_t size = 0;
            if (__builtin_mul_overflow(static_cast<std::size_t>(rows_of(other, rows)),
                                       static_cast<std::size_t>(polynomial().operands[other].size()) * size_of(compute), &size) ||
                size > (std::size_t{1} << 62))
                fail("the workspace would exceed 2^62 bytes");
            bytes += up(size);
        }
        return bytes;
    }
    void check(const Call& call) const;
    std::uint64_t argument(const KernelArgument& argument, const Call& call, const Workspace& workspace, std::int64_t chunk) const;
};

void PolynomialPlan::Data::check(const Call& call) const {
    const auto count = [](const char* what, std::size_t expected, std::size_t got) {
        if (expected != got) fail(std::string(what) + ": expected " + std::to_string(expected) + ", got " + std::to_string(got));
    };
    count("rows of row spaces", spaces.size(), call.rows.size());
    count("buffers, one per operand", polynomial().operands.size(), call.buffers.size());
    count("index arrays", polynomial().indices.size(), call.indices.size());
    for (std::size_t s = 0; s < spaces.size(); ++s)
        if (call.rows[s] < 0 || (spaces[s].empty() && call.rows[s] != 1))
            fail("row space '" + spaces[s] + "': " + std::to_string(call.rows[s]) + " rows make no sense");
    for (std::size_t o = 0; o < polynomial().operands.size(); ++o)
        check_buffer(polynomial().operands[o], call.buffers[o], dtypes[o], rows_of(o, call.rows));
    for (std::size_t o = 0; o < polynomial().operands.size(); ++o) {
        if (polynomial().operands[o].role != Role::output) continue;
        for (std::size_t other = 0; other < polynomial().operands.size(); ++other)
            if (other != o && (polynomial().operands[other].role != Role::output || other > o) &&
                share_memory(polynomial().operands[o], call.buffers[o], polynomial().operands[other], call.buffers[other]))
                fail("operand '" + polynomial().operands[o].name + "': an output may share no memory with other operands, it overlaps '" +
                     polynomial().operands[other].name + "'");
    }
    for (std::size_t i = 0; i < polynomial().indices.size(); ++i)
        check_index(polynomial().indices[i], call.indices[i], call.rows[at(index_from[i])], call.rows[at(index_to[i])], false);
}

std::uint64_t PolynomialPlan::Data::argument(const KernelArgument& argument, const Call& call, const Workspace& workspace,
                                             std::int64_t chunk) const {
    using Kind = KernelArgument::Kind;
    const auto which = static_cast<std::size_t>(argument.which);
    const auto address = [](const void* pointer) { return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(pointer)); };
    const auto stride = [&](std::size_t o) {
        const std::int64_t given = call.buffers[o].row_stride;
        return static_cast<std::uint64_t>(given != 0 ? given : polynomial().operands[o].size());
    };
    switch (argument.kind) {
        case Kind::data:
            return address(call.buffers[which].data);
        case Kind::stride:
            return stride(which);
        case Kind::sums:
            if (!kernels.needs_sums[which]) return address(call.buffers[which].data);
            return address(workspace.data) + sums_offset(which, call.rows);
        case Kind::sums_stride:
            return kernels.needs_sums[which] ? static_cast<std::uint64_t>(polynomial().operands[which].size()) : stride(which);
        case Kind::output_rows:
            return static_cast<std::uint64_t>(rows_of(which, call.rows));
        case Kind::index:
            return address(call.indices[which].data);
        case Kind::index_rows:
            return static_cast<std::uint64_t>(call.rows[at(index_to[which])]);
        case Kind::index_wide:
            return call.indices[which].type == IndexType::int64 ? 1 : 0;
        case Kind::rows:
            return static_cast<std::uint64_t>(call.rows[0]);
        case Kind::chunk:
            return static_cast<std::uint64_t>(chunk);
        case Kind::aligned: {
            std::uint64_t bits = 0;
            for (std::size_t o = 0; o < call.buffers.size() && o < 64; ++o)
                if (address(call.buffers[o].data) % 16 == 0 && stride(o) * size_of(dtypes[o]) % 16 == 0) bits |= std::uint64_t{1} << o;
            return bits;
        }
        case Kind::error:
            return address(error->data());
    }
    return 0;
}

PolynomialPlan::PolynomialPlan(Polynomial polynomial, const PlanOptions& options) {
    validate(polynomial);
    auto data = std::make_unique<Data>();
    data->device = &Device::get(options.device);
    data->dtypes = options.dtypes.empty() ? std::vector<DType>(polynomial.operands.size(), DType::float32) : options.dtypes;
    if (data->dtypes.size() != polynomial.operands.size())
        fail("expected one dtype per operand (" + std::to_string(polynomial.operands.size()) + "), got " +
             std::to_string(data->dtypes.size()));
    const bool all_double = !data->dtypes.empty() && std::ranges::all_of(data->dtypes, [](DType dtype) { return dtype == DType::float64; });
    data->compute = options.compute.value_or(all_double ? DType::float64 : DType::float32);
    if (data->compute != DType::float32 && data->compute != DType::float64)
        fail(std::string("expected float32 or float64 as the compute type, got ") + to_text(data->compute));
    data->spaces = row_spaces(polynomial);
    for (const Operand& operand : polynomial.operands) {
        const std::string space = polynomial.space_of(operand);
        const int found = position(data->spaces, space);
        data->operand_space.push_back(operand.rows.kind == Addressing::Kind::shared ? -1 : found);
    }
    for (const Index& index : polynomial.indices) {
        data->index_from.push_back(position(data->spaces, index.from));
        data->index_to.push_back(position(data->spaces, index.to));
    }
    data->problem = gpu_problem(polynomial, data->dtypes, data->compute, data->device->target());
    data->problem.blocks = options.blocks;
    data->problem.team_warps = options.team_warps;
    data->problem.consumers = options.consumers;
    std::vector<KernelSource> sources;
    data->kernels = gpu_kernels_for(data->problem, options.schedule, [&](const GpuKernels& kernels) {
        sources.clear();
        for (const GpuStage& stage : kernels.stages) sources.push_back({stage.kernel.name, full_text(stage)});
        data->modules = load_kernels(*data->device, sources);
    });
    if (data->kernels.stream) {
        const StreamSchedule& stream = *data->kernels.stream;
        if (!stream.stationary.empty()) data->stationary_space = data->index_to[at(polynomial.find_index(stream.stationary.back()))];
        for (std::size_t s = 0; s < sources.size(); ++s) {
            if (data->kernels.stages[s].kind != GpuStageKind::stream) continue;
            data->modules[s]->allow_shared(stream.shared_bytes());
            const int blocks = data->modules[s]->blocks_per_multiprocessor(stream.threads(), stream.shared_bytes());
            if (blocks == 0) throw Error(ErrorKind::unsupported, "the stream kernel does not fit onto " + data->device->name());
            // Claiming more registers than the block was launched with would wait for ever.
            const int claimed = 32 * (stream.producer_warps * stream.producer_registers +
                                      stream.teams * stream.consumer_warps() * stream.consumer_registers);
            if (stream.consumer_registers > 0 && data->modules[s]->registers() * stream.threads() < claimed)
                throw Error(ErrorKind::unsupported, "the stream kernel was compiled with too few registers to move");
            data->stream_blocks = std::int64_t{blocks} * data->device->multiprocessors();
        }
    }
    data->error = std::make_unique<Memory>(*data->device, alignment);
    const std::uint64_t clear = 0;
    data->device->to_device(data->error->data(), &clear, sizeof clear);
    data_ = std::move(data);
}

PolynomialPlan::~PolynomialPlan() = default;
PolynomialPlan::PolynomialPlan(PolynomialPlan&&) noexcept = default;
PolynomialPlan& PolynomialPlan::operator=(PolynomialPlan&&) noexcept = default;

const Polynomial& PolynomialPlan::polynomial() const { return data_->problem.polynomial; }
const std::vector<std::string>& PolynomialPlan::spaces() const { return data_->spaces; }
const std::vector<DType>& PolynomialPlan::dtypes() const { return data_->dtypes; }
DType PolynomialPlan::compute() const { return data_->compute; }
const Device& PolynomialPlan::device() const { return *data_->device; }
const char* PolynomialPlan::schedule() const { return data_->kernels.stream ? "stream" : "general"; }

std::size_t PolynomialPlan::workspace_bytes(std::span<const std::int64_t> rows) const {
    if (rows.size() != data_->spaces.size())
        fail("expected the number of rows of each of " + std::to_string(data_->spaces.size()) + " spaces, got " +
             std::to_string(rows.size()));
    return data_->sums_offset(data_->problem.polynomial.operands.size(), rows);
}

void PolynomialPlan::launch(const Call& call, Workspace workspace, Stream stream) const {
    const Data& data = *data_;
    data.check(call);
    const std::size_t needed = workspace_bytes(call.rows);
    if (needed > 0 && (workspace.data == nullptr || workspace.bytes < needed))
        fail("workspace: expected at least " + std::to_string(needed) + " bytes of device memory, got " +
             (workspace.data == nullptr ? "a null pointer" : std::to_string(workspace.bytes)));
    const std::int64_t rows = call.rows[0];
    const Polynomial& polynomial = data.problem.polynomial;
    for (std::size_t o = 0; o < polynomial.operands.size(); ++o) {
        const Operand& operand = polynomial.operands[o];
        const bool empty = rows == 0 && operand.role == Role::output;  // no row adds anything
        if (!data.kernels.summed[o] && !empty) continue;
        const auto count = static_cast<std::size_t>(data.rows_of(o, call.rows)), size = static_cast<std::size_t>(operand.size());
        const std::size_t element = size_of(data.dtypes[o]);
        if (data.kernels.needs_sums[o] && !empty) {
            const std::size_t bytes = size * size_of(data.compute);
            data.device->zero(static_cast<std::byte*>(workspace.data) + data.sums_offset(o, call.rows), bytes, bytes, count, stream);
        } else {
            const auto stride = static_cast<std::size_t>(call.buffers[o].row_stride);
            data.device->zero(call.buffers[o].data, (stride != 0 ? stride : size) * element, size * element, count, stream);
        }
    }
    if (rows == 0) return;
    for (std::size_t s = 0; s < data.kernels.stages.size(); ++s) {
        const GpuStage& stage = data.kernels.stages[s];
        LaunchShape shape;
        std::int64_t chunk = 1;
        switch (stage.kind) {
            case GpuStageKind::general:
                chunk = general_chunk(rows);
                shape = general_shape(*data.kernels.general, rows);
                break;
            case GpuStageKind::stream_cuts:
            case GpuStageKind::stream: {
                chunk = stream_chunk(*data.kernels.stream, rows, data.stationary_space < 0 ? 0 : call.rows[at(data.stationary_space)]);
                const std::int64_t chunks = (rows + chunk - 1) / chunk;
                constexpr std::int64_t few_rows = 4096;  // these are not divided (emit/stream.cpp)
                if (stage.kind == GpuStageKind::stream_cuts) {
                    if (rows <= few_rows) continue;
                    shape = {.grid = {(chunks + 3) / 4, 1}, .threads = 128};
                } else {
                    const std::int64_t teams = data.kernels.stream->teams;
                    shape = {.grid = {std::min((chunks + teams - 1) / teams, data.stream_blocks), 1},
                             .threads = data.kernels.stream->threads(),
                             .shared_bytes = data.kernels.stream->shared_bytes()};
                }
                break;
            }
            case GpuStageKind::rounding: {
                const auto o = static_cast<std::size_t>(stage.operand);
                const std::int64_t numbers = data.rows_of(o, call.rows) * polynomial.operands[o].size();
                shape = {.grid = {std::min<std::int64_t>((numbers + 255) / 256, 65536), 1}, .threads = 256};
                break;
            }
        }
        constexpr std::size_t most_arguments = 512;
        std::uint64_t words[most_arguments];
        const std::vector<KernelArgument>& arguments = stage.kernel.arguments;
        for (std::size_t i = 0; i < arguments.size(); ++i) words[i] = data.argument(arguments[i], call, workspace, chunk);
        data.modules[s]->launch(shape.grid, shape.threads, shape.shared_bytes, stream, {words, arguments.size()});
    }
}

bool PolynomialPlan::index_error() const {
    std::uint64_t flag = 0;
    data_->device->from_device(&flag, data_->error->data(), sizeof flag);
    if (flag == 0) return false;
    const std::uint64_t clear = 0;
    data_->device->to_device(data_->error->data(), &clear, sizeof clear);
    return true;
}

Work PolynomialPlan::work(std::span<const std::int64_t> rows) const { return gpu_work(data_->problem.polynomial, data_->dtypes, rows); }

std::string PolynomialPlan::explain() const {
    std::string text = "computes in " + std::string(to_text(data_->compute)) + " on " + data_->device->name() + " (" +
                       data_->device->target().name() + ")\n" + data_->kernels.explain;
    for (const Resources& kernel : resources())
        text += "kernel " + kernel.kernel + ": " + std::to_string(kernel.registers) + " registers, " + std::to_string(kernel.spill_bytes) +
                " bytes spilled\n";
    return text;
}

std::vector<PolynomialPlan::Resources> PolynomialPlan::resources() const {
    std::vector<Resources> list;
    for (std::size_t s = 0; s < data_->modules.size(); ++s)
        list.push_back({data_->kernels.stages[s].kernel.name, data_->modules[s]->registers(), data_->modules[s]->spill_bytes()});
    return list;
}

}  // namespace clebsch::gpu
