// What the compiler makes of the kernels of named problems, without a GPU: registers, spills and shared memory against a committed table.
// CLEBSCH_TEST_ALL=1 (./dev test --all) compiles every kernel, otherwise a sample; CLEBSCH_WRITE_GPU_TABLE=FILE writes a new table.
#include <doctest/doctest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <future>
#include <sstream>
#include <thread>

#include "describe/derivative.hpp"
#include "describe/operations/named_problems.hpp"
#include "run/gpu/compiler.hpp"
#include "run/gpu/kernels.hpp"
#include "run/gpu/plan.hpp"
#include "support/channelwise.hpp"
#include "support/repetitions.hpp"

using namespace clebsch;
using testing::one_in;

namespace {

struct Line {
    std::string schedule;
    int registers = 0, spilled = 0, shared = 0;
};

std::map<std::string, Line> read_table(const std::string& path) {
    std::map<std::string, Line> table;
    std::ifstream file(path);
    for (std::string text; std::getline(file, text);) {
        if (text.empty() || text.front() == '#') continue;
        std::istringstream words(text);
        std::string problem, order, target;
        Line line;
        words >> problem >> order >> target >> line.schedule >> line.registers >> line.spilled >> line.shared;
        REQUIRE_MESSAGE(static_cast<bool>(words), text);
        table[problem + " " + order + " " + target] = line;
    }
    return table;
}

/// The problems whose kernels the report measures.
const char* const problems[] = {"natural-l2-128", "natural-l3-128", "nequix-main", "nequix-last",
                                "mace-large",     "nequip-lips",    "diffdock-1"};

struct Case {
    std::string key;  // problem, order, target
    Polynomial polynomial;
    std::string target;
    Line line = {};
    double seconds = 0;
    std::size_t bytes = 0;
};

void compile(Case& one) {
    GpuProblem problem = gpu::gpu_problem(one.polynomial, std::vector<DType>(one.polynomial.operands.size(), DType::float32),
                                          DType::float32, gpu_target(one.target));
    gpu::gpu_kernels_for(problem, "", [&](const GpuKernels& tried) {
        one.line = {.schedule = tried.rows ? "rows" : tried.streams.empty() ? "general" : "stream"};
        if (tried.streams.size() > 1) one.line.schedule += ":" + std::to_string(tried.streams.size());
        for (const StreamKernel& kernel : tried.streams) one.line.shared = std::max(one.line.shared, kernel.schedule.shared_bytes());
        if (tried.rows) one.line.shared = tried.rows->shared_bytes;
        one.bytes = 0;
        const auto begin = std::chrono::steady_clock::now();
        for (const GpuStage& stage : tried.stages) {
            const gpu::Compiled result = gpu::compile(full_text(stage), stage.kernel.name, problem.target);
            one.bytes += result.cubin.size();
            const gpu::KernelResources resources = gpu::resources_of(result.log);
            one.line.registers = std::max(one.line.registers, resources.registers);
            one.line.spilled = std::max(one.line.spilled, resources.spill_bytes);
        }
        one.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    });
}

}  // namespace

TEST_CASE("kernels of named problems need the registers and shared memory of the table") {
    if (!gpu::compiler_status().found) {
        MESSAGE("skipped: " << gpu::compiler_status().text);
        return;
    }
    const char* const out = std::getenv("CLEBSCH_WRITE_GPU_TABLE");
    const bool all = out != nullptr || std::getenv("CLEBSCH_TEST_ALL") != nullptr;
    std::vector<Case> cases;
    int number = 0;
    for (const char* label : problems)
        for (int order = 0; order < 3; ++order)
            for (const char* target : {"sm_80", "sm_90", "sm_100", "sm_120"}) {
                const int sample = 7 * one_in(5);  // of 7, every problem, order and target occurs
                if (number++ % sample == 0 || all)
                    cases.push_back({std::string(label) + " " + std::to_string(order) + " " + target,
                                     random::gradients(std::get<Polynomial>(named_problem(label)), order), target});
            }
    std::atomic<std::size_t> next{0};
    std::vector<std::future<void>> workers;
    for (unsigned w = 0; w < std::max(1U, std::thread::hardware_concurrency()); ++w)
        workers.push_back(std::async(std::launch::async, [&] {
            for (std::size_t i = next++; i < cases.size(); i = next++) compile(cases[i]);
        }));
    for (std::future<void>& worker : workers) worker.get();
    std::ostringstream written;
    for (const Case& one : cases)
        written << one.key << " " << one.line.schedule << " " << one.line.registers << " " << one.line.spilled << " " << one.line.shared
                << " " << one.bytes / 1024 << " " << std::round(one.seconds * 10) / 10 << "\n";
    MESSAGE(cases.size() << " of " << number << " compiled\n" << written.str());
    if (out != nullptr) {
        std::ofstream(out)
            << "# Kernels of named problems in float32 (tests/gpu/test_gpu_registers.cpp writes and reads this), by NVRTC 13.0.\n"
            << "# problem, order of derivative, target, schedule (:3, three kernels; then the most of any), registers a block is launched "
               "with,\n"
            << "# bytes of spill stores and loads in the code, bytes of shared memory a block, kilobytes of machine code in all, seconds "
               "to\n"
            << "# compile (roughly)\n"
            << written.str();
        return;
    }
    const std::map<std::string, Line> table = read_table(CLEBSCH_TEST_DATA "/gpu_kernels.txt");
    const bool as_tabled = gpu::compiler_status().text.find("NVRTC 13.0") != std::string::npos;
    for (const Case& one : cases) {
        CAPTURE(one.key);
        const auto known = table.find(one.key);
        REQUIRE(known != table.end());
        CHECK(one.line.schedule == known->second.schedule);
        CHECK(one.line.shared == known->second.shared);
        // Another release of the compiler allocates a little differently.
        CHECK(one.line.registers <= known->second.registers + 8);
        CHECK(one.line.spilled <= known->second.spilled + (as_tabled ? 0 : 64));
    }
}

TEST_CASE("kernels of sums in a fixed order spill no more than those without, and run on the stream schedule") {
    if (!gpu::compiler_status().found) {
        MESSAGE("skipped: " << gpu::compiler_status().text);
        return;
    }
    struct Ordered {
        const char *label, *target;
    };
    const std::vector<Ordered> cases = {{"natural-l2-128", "sm_80"}, {"nequix-main", "sm_90"}, {"natural-l3-128", "sm_120"}};
    for (std::size_t i = 0; i < cases.size(); i += static_cast<std::size_t>(one_in(3))) {
        const Ordered& one = cases[i];
        const Polynomial polynomial = random::gradients(std::get<Polynomial>(named_problem(one.label)), 1);
        const std::vector<DType> dtypes(polynomial.operands.size(), DType::float32);
        for (const OrderedPass& pass : gpu_passes(polynomial, true)) {
            GpuProblem problem = gpu::gpu_problem(pass, dtypes, DType::float32, gpu_target(one.target), true);
            int spilled = 0;
            gpu::gpu_kernels_for(problem, "stream", [&](const GpuKernels& kernels) {
                spilled = 0;
                for (const GpuStage& stage : kernels.stages)
                    spilled = std::max(
                        spilled, gpu::resources_of(gpu::compile(full_text(stage), stage.kernel.name, problem.target).log).spill_bytes);
            });
            const std::string name = explain(pass, sizeof(float));
            CAPTURE(std::string(one.label));
            CAPTURE(name);
            CHECK(spilled <= 64);
        }
    }
}

TEST_CASE("registers stay where they are when the compiler refuses to move them, and other errors are let through") {
    const Polynomial polynomial = std::get<Polynomial>(named_problem("natural-l2-128"));
    const std::vector<DType> dtypes(polynomial.operands.size(), DType::float32);
    const auto kernels_after = [&](const auto& first_error) {
        GpuProblem problem = gpu::gpu_problem(polynomial, dtypes, DType::float32, gpu_target("sm_90"));
        int asked = 0;
        const auto use = [&](const GpuKernels& kernels) {
            const bool moves = kernels.streams.front().schedule.consumer_registers != 0;
            CHECK(moves == (asked == 0));
            if (asked++ == 0) throw first_error;
        };
        const GpuKernels kernels = gpu::gpu_kernels_for(problem, "", use);
        CHECK(asked == 2);
        return kernels.explain;
    };
    CHECK(kernels_after(gpu::RegistersRefused(ErrorKind::unsupported, "")).find("the same number of registers") != std::string::npos);
    CHECK(kernels_after(gpu::KernelMissing(ErrorKind::not_found, "")).find("not among the prebuilt") != std::string::npos);
    CHECK_THROWS_WITH_AS(kernels_after(Error(ErrorKind::unsupported, "no memory")), "no memory", Error);
}

TEST_CASE("the compiler's refusal to move registers is told from its other complaints") {
    if (!gpu::compiler_status().found) {
        MESSAGE("skipped: " << gpu::compiler_status().text);
        return;
    }
    const std::string kernel =
        "extern \"C\" __global__ void __launch_bounds__(384, 1) k(int* a) { *a = 1; asm volatile(\"setmaxnreg.dec.sync.aligned.u32 "
        "232;\"); }";
    CHECK_THROWS_AS(gpu::compile(kernel, "k", gpu_target("sm_90")), gpu::RegistersRefused);
    bool refused = false;
    try {
        gpu::compile("nonsense", "k", gpu_target("sm_90"));
    } catch (const gpu::RegistersRefused&) { refused = true; } catch (const Error&) {
    }
    CHECK_FALSE(refused);
}
