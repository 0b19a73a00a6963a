#include "tool/gpu_bench.hpp"

#include <algorithm>
#include <chrono>
#include <map>
#include <random>

#include "base/error.hpp"
#include "run/gpu/compiler.hpp"
#include "run/gpu/kernels.hpp"
#include "run/gpu/plan.hpp"
#include "tool/command.hpp"
#include "tool/passes.hpp"
#include "tool/progress.hpp"
#include "tool/report.hpp"

namespace clebsch::tool {
namespace {

double seconds_since(std::chrono::steady_clock::time_point begin) {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Fills device memory with standard normal numbers: a hash of the position, then Box and Muller.
class Normals {
 public:
    explicit Normals(const gpu::Device& device) : modules_(gpu::load_kernels(device, gpu_bench_sources())) {}
    void fill(const gpu::Memory& memory, DType dtype, std::uint64_t seed) const {
        const std::uint64_t words[] = {reinterpret_cast<std::uintptr_t>(memory.data()), memory.bytes() / size_of(dtype), seed << 40U};
        modules_[static_cast<std::size_t>(dtype)]->launch({4096, 1}, 256, 0, nullptr, words);
    }

 private:
    std::vector<std::shared_ptr<const gpu::Module>> modules_;
};

class GpuBench {
 public:
    explicit GpuBench(const GpuBenchOptions& options)
        : options_(options),
          device_(gpu::Device::get(options.device)),
          normals_(device_),
          timer_(device_),
          stream_(device_.make_stream()) {}
    ~GpuBench() { device_.destroy_stream(stream_); }
    GpuBench(const GpuBench&) = delete;
    GpuBench& operator=(const GpuBench&) = delete;

    int run(const std::vector<GpuProblemToTime>& problems) {
        copy_ = copy_bandwidth();
        report_.fact("gpu", "GPU", gpu::driver_status().text);
        report_.fact("compiler", "compiler", gpu::compiler_status().text);
        report_.fact("copy_bytes_per_second", "copy bandwidth, measured",
                     {copy_, number(copy_ * 1e-9, 4).text + " GB/s (read and written)"});
        report_.fact("dtype", "dtype", to_text(options_.dtype));
        Table& table = report_.table("results", "",
                                     {{"problem", "problem", false},
                                      {"pass", "pass", false},
                                      {"graph", "graph", false},
                                      {"rows", "rows"},
                                      {"milliseconds", "ms"},
                                      {"spread", "spread"},
                                      {"gigabytes_per_second", "GB/s"},
                                      {"copy_share", "of copy"},
                                      {"gigaflops", "GFLOP/s"},
                                      {"schedule", "schedule", false},
                                      {"registers", "registers"},
                                      {"spilled", "spilled"},
                                      {"prepare_seconds", "prepare s"}});
        for (const GpuProblemToTime& problem : problems) {
            if (!std::holds_alternative<Polynomial>(problem.description)) {
                report_.note(problem.label + " is a program and was left out");
                continue;
            }
            measure(problem, table);
        }
        report_.note(
            "GB/s: every array once. Times are medians of single launches between two events, zeroing of outputs included; senders of "
            "a local graph are within 100 nodes of the receiver. prepare: schedule, compile (unless cached) and load.");
        progress_.now("");
        report_.print(options_.json);
        return exit_done;
    }

 private:
    const GpuBenchOptions& options_;
    const gpu::Device& device_;
    Normals normals_;
    gpu::Device::Timer timer_;
    gpu::Stream stream_;
    Report report_;
    Progress progress_;
    double copy_ = 0;

    double copy_bandwidth() {
        constexpr std::size_t size = std::size_t{1} << 32U;
        const gpu::Memory from(device_, size), to(device_, size);
        normals_.fill(from, DType::float32, 1);
        device_.synchronize();
        std::vector<double> times;
        for (int i = 0; i < 12; ++i) {
            timer_.start(stream_);
            device_.copy(to.data(), from.data(), size, stream_);
            times.push_back(timer_.stop(stream_));
        }
        std::ranges::sort(times);
        return 2.0 * static_cast<double>(size) / (times[times.size() / 2] * 1e-3);
    }

    gpu::Memory index_memory(const std::vector<std::int64_t>& values) {
        const std::vector<std::int32_t> narrow(values.begin(), values.end());
        gpu::Memory memory(device_, std::max<std::size_t>(narrow.size() * 4, 16));
        device_.to_device(memory.data(), narrow.data(), narrow.size() * 4);
        return memory;
    }

    void measure(const GpuProblemToTime& problem, Table& table) {
        const auto wanted = [&](const std::string& name) { return std::ranges::find(options_.passes, name) != options_.passes.end(); };
        std::vector<Pass> passes = passes_of(problem.description, options_.gradients, wanted("double") ? 2 : wanted("backward") ? 1 : 0);
        std::erase_if(passes, [&](const Pass& pass) { return !wanted(pass.key == "double_backward" ? "double" : pass.key); });
        TopologyOptions sizes = topology_options(options_.sizes, problem.kind, false);
        sizes.nodes = options_.sizes.nodes > 0 ? options_.sizes.nodes : 16384;
        sizes.rows = options_.sizes.rows > 0 ? options_.sizes.rows : 200'000;
        for (const Pass& pass : passes) {
            progress_.now("measuring " + problem.label + ", " + pass.title);
            const auto begin = std::chrono::steady_clock::now();
            const auto& polynomial = std::get<Polynomial>(pass.description);
            const gpu::PolynomialPlan plan(polynomial, {.dtypes = std::vector<DType>(polynomial.operands.size(), options_.dtype),
                                                        .schedule = options_.schedule,
                                                        .device = options_.device,
                                                        .deterministic = options_.deterministic,
                                                        .blocks = options_.blocks,
                                                        .team_warps = options_.team_warps,
                                                        .consumers = options_.consumers});
            const double prepared = seconds_since(begin);
            Topology topology = make_topology(pass.description, sizes);
            const bool graph = topology.indices.contains("sender") && topology.indices.contains("receiver");
            time_pass(problem, pass, plan, topology, graph ? "random" : "-", prepared, table);
            if (!graph) continue;
            std::mt19937_64 engine(7);
            const std::int64_t nodes = topology.rows.at("node"), window = std::min<std::int64_t>(200, nodes);
            std::vector<std::int64_t>& sender = topology.indices.at("sender");
            for (std::size_t e = 0; e < sender.size(); ++e) {
                const std::int64_t near = topology.indices.at("receiver")[e] - window / 2 +
                                          static_cast<std::int64_t>(engine() % static_cast<std::uint64_t>(window));
                sender[e] = (near + nodes) % nodes;
            }
            time_pass(problem, pass, plan, topology, "local", prepared, table);
        }
    }

    void time_pass(const GpuProblemToTime& problem, const Pass& pass, const gpu::PolynomialPlan& plan, const Topology& topology,
                   const char* graph, double prepared, Table& table) {
        const Polynomial& polynomial = plan.polynomial();
        std::vector<gpu::Memory> memory;
        std::vector<Buffer> buffers;
        for (std::size_t o = 0; o < polynomial.operands.size(); ++o) {
            const Operand& operand = polynomial.operands[o];
            const std::string space = polynomial.space_of(operand);
            const std::int64_t count = space.empty() ? 1 : topology.rows.at(space);
            memory.emplace_back(device_, static_cast<std::size_t>(count * operand.size()) * size_of(options_.dtype) + 64);
            if (operand.role == Role::input) normals_.fill(memory.back(), options_.dtype, o + 1);
            buffers.push_back({memory.back().data(), options_.dtype, count, 0});
        }
        std::vector<gpu::Memory> index_arrays;
        std::vector<IndexBuffer> indices;
        for (const Index& index : polynomial.indices) {
            const std::vector<std::int64_t>& values = topology.indices.at(index.name);
            index_arrays.push_back(index_memory(values));
            indices.push_back({index_arrays.back().data(), IndexType::int32, static_cast<std::int64_t>(values.size())});
        }
        std::vector<std::int64_t> rows;
        for (const std::string& space : plan.spaces()) rows.push_back(space.empty() ? 1 : topology.rows.at(space));
        const gpu::Memory workspace(device_, std::max<std::size_t>(plan.workspace_bytes(rows), 16));
        const Call call{.buffers = buffers, .indices = indices, .rows = rows};
        device_.synchronize();
        std::vector<double> times;
        const auto begin = std::chrono::steady_clock::now();
        constexpr std::size_t least = 7, most = 60;
        for (std::size_t i = 0; i < most + 2 && (i < least + 2 || seconds_since(begin) < options_.seconds); ++i) {
            timer_.start(stream_);
            plan.launch(call, {workspace.data(), workspace.bytes()}, stream_);
            const double time = timer_.stop(stream_) * 1e-3;
            if (i >= 2) times.push_back(time);
        }
        std::ranges::sort(times);
        const double median = times[times.size() / 2], spread = (times[times.size() * 3 / 4] - times[times.size() / 4]) / median;
        const Work work = plan.work(rows);
        int registers = 0, spilled = 0;
        for (const auto& kernel : plan.resources()) {
            registers = std::max(registers, kernel.registers);
            spilled = std::max(spilled, kernel.spill_bytes);
        }
        table.row({problem.label, pass.title, graph, rows.front(), number(median * 1e3), percent(spread),
                   number(work.bytes / median * 1e-9, 4), percent(work.bytes / median / copy_),
                   number(2 * work.multiply_adds / median * 1e-9), plan.schedule(), registers, spilled, number(prepared)});
    }
};

}  // namespace

DType storage_type(const MachineOptions& options) {
    for (const DType type : {DType::float32, DType::float64, DType::bfloat16, DType::float16})
        if (options.dtype == to_text(type)) return type;
    fail("--dtype: expected float32, float64, bfloat16 or float16, got '" + options.dtype + "'");
}

int gpu_bench(const std::vector<GpuProblemToTime>& problems, const GpuBenchOptions& options) { return GpuBench(options).run(problems); }

std::vector<gpu::KernelSource> gpu_bench_sources() {
    const auto text = [](const char* type, const char* put) {  // which writes the number called value
        return std::string("struct Arguments { ") + type + "* out; unsigned long long count, seed; };\n" +
               "extern \"C\" __global__ void fill(Arguments a) {\n"
               "    for (unsigned long long i = blockIdx.x * 256ull + threadIdx.x; i < a.count; i += gridDim.x * 256ull) {\n"
               "        unsigned long long h = (i + a.seed) * 0x9e3779b97f4a7c15ull;\n"
               "        h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9ull;\n"
               "        h = (h ^ (h >> 27)) * 0x94d049bb133111ebull;\n"
               "        h ^= h >> 31;\n"
               "        const float u = ((h >> 40) + 0.5f) * 0x1p-24f, v = (h & 0xffffffull) * 0x1p-24f;\n"
               "        const float value = sqrtf(-2.0f * logf(u)) * cosf(6.2831853f * v);\n        " +
               put +
               ";\n"
               "    }\n"
               "}\n";
    };
    return {{"fill", text("float", "a.out[i] = value")},
            {"fill", text("double", "a.out[i] = value")},
            {"fill", text("unsigned short", "asm(\"cvt.rn.bf16.f32 %0, %1;\" : \"=h\"(a.out[i]) : \"f\"(value))")},
            {"fill", text("unsigned short", "asm(\"cvt.rn.f16.f32 %0, %1;\" : \"=h\"(a.out[i]) : \"f\"(value))")}};
}

}  // namespace clebsch::tool
