// What the compiler makes of the kernels of named problems, without a GPU: registers, spills and shared memory against a committed table.
// CLEBSCH_TEST_ALL=1 (./dev test --all) compiles every kernel, otherwise a sample; CLEBSCH_WRITE_GPU_TABLE=FILE writes a new table.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <sstream>

#include "describe/derivative.hpp"
#include "describe/operations/named_problems.hpp"
#include "run/gpu/compiler.hpp"
#include "run/gpu/kernel_choice.hpp"
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
    DType dtype = DType::float32;
    Line line = {};
    double seconds = 0;
    std::size_t bytes = 0;
};

void compile(Case& one) {
    GpuProblem problem = gpu::gpu_problem(one.polynomial, std::vector<DType>(one.polynomial.operands.size(), one.dtype),
                                          one.dtype == DType::float64 ? DType::float64 : DType::float32, gpu_target(one.target));
    gpu::gpu_kernels_for(problem, "", [&](const GpuKernels& tried) {
        one.line = {.schedule = tried.rows ? "rows" : tried.streams.empty() ? "general" : "stream"};
        if (tried.streams.size() > 1) one.line.schedule += ":" + std::to_string(tried.streams.size());
        for (const StreamKernel& kernel : tried.streams) one.line.shared = std::max(one.line.shared, kernel.schedule.shared_bytes());
        if (tried.rows) one.line.shared = tried.rows->shared_bytes;
        one.bytes = 0;
        one.line.registers = 0;
        std::vector<int> spilled;
        const auto begin = std::chrono::steady_clock::now();
        for (const GpuStage& stage : tried.stages) {
            const gpu::Compiled result = gpu::compile(full_text(stage), stage.kernel.name, problem.target);
            one.bytes += result.cubin.size();
            const gpu::KernelResources resources = gpu::resources_of(result.log);
            one.line.registers = std::max(one.line.registers, resources.registers);
            one.line.spilled = std::max(one.line.spilled, resources.spill_bytes);
            spilled.push_back(resources.spill_bytes);
        }
        one.seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
        return spilled;
    });
}

/// In threads side by side.
void compile(std::vector<Case>& cases) {
    gpu::side_by_side(cases.size(), [&](std::size_t i) { compile(cases[i]); });
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
    compile(cases);
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

TEST_CASE("no kernel of a named problem spills") {
    if (gpu::compiler_status().text.find("NVRTC 13.0") == std::string::npos) {  // each release allocates registers in its own way
        MESSAGE("skipped: " << gpu::compiler_status().text);
        return;
    }
    const bool all = std::getenv("CLEBSCH_TEST_ALL") != nullptr;
    std::vector<Case> cases;
    int number = 0;
    for (const NamedProblem& named : named_problems()) {
        const Description description = named_problem(named.label);
        const auto* const polynomial = std::get_if<Polynomial>(&description);
        if (polynomial == nullptr) continue;
        for (const DType dtype : {DType::float32, DType::bfloat16, DType::float64})
            for (int order = 0; order < 3; ++order)
                for (const char* target : {"sm_80", "sm_90", "sm_100", "sm_120"}) {
                    const int sample = 139 * one_in(5);
                    if (number++ % sample == 0 || (all && dtype == DType::float32))
                        cases.push_back({named.label + " " + std::to_string(order) + " " + target + " " + to_text(dtype),
                                         random::gradients(*polynomial, order), target, dtype});
                }
    }
    compile(cases);
    MESSAGE(cases.size() << " of " << number << " compiled");
    for (const Case& one : cases) CHECK_MESSAGE(one.line.spilled == 0, one.key << " " << one.line.schedule);
}

TEST_CASE("kernels of sums in a fixed order do not spill, and run on the stream schedule") {
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
            std::vector<int> spilled;
            gpu::gpu_kernels_for(problem, "stream", [&](const GpuKernels& kernels) {
                spilled.clear();
                for (const GpuStage& stage : kernels.stages)
                    spilled.push_back(gpu::resources_of(gpu::compile(full_text(stage), stage.kernel.name, problem.target).log).spill_bytes);
                return spilled;
            });
            const std::string name = explain(pass, sizeof(float));
            CAPTURE(std::string(one.label));
            CAPTURE(name);
            CHECK(std::ranges::max(spilled) == 0);
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
            return std::vector<int>{};
        };
        const GpuKernels kernels = gpu::gpu_kernels_for(problem, "", use);
        CHECK(asked == 2);
        return kernels.explain;
    };
    CHECK(kernels_after(gpu::RegistersRefused(ErrorKind::unsupported, "")).find("the same number of registers") != std::string::npos);
    CHECK(kernels_after(gpu::KernelMissing(ErrorKind::not_found, "")).find("not among the prebuilt") != std::string::npos);
    CHECK_THROWS_WITH_AS(kernels_after(Error(ErrorKind::unsupported, "no memory")), "no memory", Error);
}

TEST_CASE("kernels that spill are made again with registers to spare, and the best of a few tries is taken") {
    const Polynomial polynomial = random::gradients(std::get<Polynomial>(named_problem("nequix-main")), 2);
    const std::vector<DType> dtypes(polynomial.operands.size(), DType::float32);
    // Bytes that the second of its kernels is said to spill, try by try.
    const auto kernels_after = [&](const std::vector<int>& spilled_bytes, int expected_calls) {
        GpuProblem problem = gpu::gpu_problem(polynomial, dtypes, DType::float32, gpu_target("sm_90"));
        std::vector<SpareRegisters> asked;
        std::vector<std::string> texts;
        const GpuKernels kernels = gpu::gpu_kernels_for(problem, "", [&](const GpuKernels& tried) {
            REQUIRE(tried.streams.size() >= 2);
            CHECK(tried.streams[0].problem.spare == SpareRegisters{});
            asked.push_back(tried.streams[1].problem.spare);
            std::vector<int> spilled;
            for (const GpuStage& stage : tried.stages) {
                const bool second = stage.kind == GpuStageKind::stream && stage.stream == 1;
                if (second) texts.push_back(stage.kernel.text);
                spilled.push_back(second && asked.size() <= spilled_bytes.size() ? spilled_bytes[asked.size() - 1] : 0);
            }
            return spilled;
        });
        CHECK(static_cast<int>(asked.size()) == expected_calls);
        CHECK(asked.front() == SpareRegisters{});
        for (std::size_t i = 1; i < std::min<std::size_t>(asked.size(), 6); ++i) {  // then the best one again
            CHECK(asked[i].frugal);
            if (i == 1 && spilled_bytes[0] < 72) CHECK(asked[i].least == 0);
            else CHECK(asked[i].least > asked[i - 1].least);
            if (i > 1) CHECK(asked[i].wanted >= asked[i].least + spilled_bytes[i - 1] / 8);
            CHECK(texts[i] != texts[i - 1]);
        }
        return kernels;
    };
    CHECK(kernels_after({}, 1).explain.find("the compiler spilled") == std::string::npos);
    const GpuKernels once = kernels_after({24}, 2);
    CHECK(once.explain.find("stream kernel 1: the compiler spilled") != std::string::npos);
    CHECK(once.streams[1].schedule.warps == kernels_after({}, 1).streams[1].schedule.warps);
    CHECK(once.streams[1].schedule.frugal);
    CHECK_FALSE(once.streams[0].schedule.frugal);
    // Where all tries spill, the one that spills least is used, as it was.
    const GpuKernels best = kernels_after({160, 8, 16, 24, 32, 40}, 7);
    CHECK(best.streams[1].problem.spare.least > 0);
    CHECK(kernels_after({4, 8, 16, 24, 32, 40}, 7).streams[1].problem.spare == SpareRegisters{});
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
