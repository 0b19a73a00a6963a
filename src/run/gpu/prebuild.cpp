#include "run/gpu/prebuild.hpp"

#include <functional>
#include <system_error>

#include "base/error.hpp"
#include "emit/gradient.hpp"
#include "emit/halves.hpp"
#include "emit/matrix.hpp"
#include "emit/tape.hpp"
#include "emit/text.hpp"
#include "run/gpu/compiler.hpp"
#include "run/gpu/kernel_choice.hpp"
#include "run/gpu/program_schedule.hpp"
#include "run/gpu/program_step.hpp"
#include "run/gpu/row_order.hpp"
#include "run/gpu/store.hpp"
#include "run/program_arguments.hpp"
#include "schedule/gpu_order.hpp"

namespace clebsch::gpu {
namespace {

std::size_t at(int position) { return static_cast<std::size_t>(position); }

}  // namespace

PrebuiltFolder::PrebuiltFolder(std::filesystem::path folder, const GpuTarget& target) : folder_(std::move(folder)), target_(target) {
    std::error_code error;
    std::filesystem::create_directories(folder_, error);
    if (!std::filesystem::is_directory(folder_))
        fail(folder_.string() + ": cannot make this folder" + (error ? ": " + error.message() : ""));
}

std::vector<int> PrebuiltFolder::fill(const std::vector<KernelSource>& sources) {
    std::vector<int> spilled;
    const KernelStore store(folder_);
    for (const KernelSource& source : sources) {
        const Hash key = prebuilt_key(target_, source);
        const std::shared_ptr<Known> kernel = known(key);
        std::call_once(kernel->once, [&] {  // who asks again after an error is refused again
            std::optional<MachineCode> kept = store.read(key);
            if (!kept) {
                store.write(key, machine_code_of(compile(source.text, source.name, target_)));
                kept = store.read(key);
                if (!kept) fail(folder_.string() + ": cannot write kernels here");
                ++compiled_;
            }
            kernel->spilled_bytes = kept->spilled_bytes;
            ++kernels_;
        });
        spilled.push_back(kernel->spilled_bytes);
    }
    return spilled;
}

std::shared_ptr<PrebuiltFolder::Known> PrebuiltFolder::known(const Hash& key) {
    const std::lock_guard lock(mutex_);
    std::shared_ptr<Known>& kernel = known_[key];
    if (kernel == nullptr) kernel = std::make_shared<Known>();
    return kernel;
}

void PrebuiltFolder::add_polynomial(const Polynomial& polynomial, const PlanOptions& options, DType compute) {
    for (const OrderedPass& pass : gpu_passes(polynomial, options.deterministic)) {
        GpuProblem problem = gpu_problem(pass, options.dtypes, compute, target_, options.deterministic);
        gpu_kernels_for(problem, options.schedule, [&](const GpuKernels& kernels) {
            std::vector<KernelSource> sources;
            for (const GpuStage& stage : kernels.stages) sources.push_back({stage.kernel.name, full_text(stage)});
            return fill(sources);
        });
        if (!pass.order.empty()) add(RowOrder::sources(pass.order.size()));
    }
}

void PrebuiltFolder::add(const Polynomial& polynomial, const PlanOptions& options) {
    validate(polynomial);
    if (const std::optional<Program> program = matrix_program(polynomial, options))
        return add(*program, ProgramOptions{.dtypes = options.dtypes, .compute = options.compute, .deterministic = options.deterministic});
    const CallArguments arguments(polynomial, options.dtypes, options.compute);
    PlanOptions complete = options;
    complete.dtypes = arguments.dtypes;
    add_polynomial(polynomial, complete, arguments.compute);
}

void PrebuiltFolder::add(const Program& program, const ProgramOptions& options) {
    validate(program);
    const ProgramArguments arguments(program, options.dtypes, options.compute);
    const ScheduledProgram scheduled = schedule_program(program, arguments.dtypes, arguments.compute, options.compute_again);
    const GpuNumber compute = number_of(arguments.compute);
    const std::vector<GpuNumber> storage = numbers_of(scheduled.dtypes);
    const auto polynomial = [&](const Polynomial& node, const std::vector<int>& values) {
        PlanOptions own{.dtypes = {}, .compute = arguments.compute, .deterministic = options.deterministic};
        for (const int value : values) own.dtypes.push_back(scheduled.dtypes[at(value)]);
        add(node, own);
    };
    std::vector<std::function<void()>> work;
    for (const auto* conversions : {&scheduled.conversions_before, &scheduled.conversions_after})
        for (const auto& [from, to] : *conversions)
            work.push_back([&, from = from, to = to] {
                add({source_of(emit_conversion(scheduled.program, from, to, storage[at(from)], storage[at(to)]))});
            });
    for (const ScheduledStep& step : scheduled.steps)
        work.push_back([&] {
            if (step.links.size() > 1)
                return add({source_of(chain_kernel(scheduled.program, step.links, scheduled.dtypes, arguments.compute, target_))});
            const GpuProgramStep& link = step.links[0];
            if (link.width != 0)
                return add({source_of(emit_tape(scheduled.program, tape_of(scheduled.program, link), link.width, storage, compute))});
            const auto& node = std::get<PolynomialNode>(scheduled.program.nodes[at(link.nodes[0])]);
            if (!step.matrix) return polynomial(node.polynomial, node.arguments);
            const std::optional<HalvesSchedule> halves = schedule_halves(*step.matrix, compute);
            if (halves)
                for (const HalvesLaunch& launch : halves->launches)
                    for (const KernelText& kernel : {emit_halves_weights(compute, launch.columns), emit_halves(compute, launch.columns)})
                        add({source_of(kernel, halves_preambles())});
            for (const MatrixRows rows : all_matrix_rows) {
                if (rows == MatrixRows::many && halves) continue;
                const std::vector<MatrixTile> tiles = matrix_tiles(compute, rows);
                for (const MatrixLaunch& launch : matrix_launches(*step.matrix, tiles))
                    add({source_of(emit_matrix(compute, tiles[launch.tile]), matrix_preamble())});
            }
            const std::vector<GradientTile> tiles = gradient_tiles(compute);
            for (const GradientLaunch& launch : gradient_launches(step.matrix->gradient, tiles))
                for (const KernelText& kernel : {emit_gradient(compute, tiles[launch.tile]), emit_gradient_sum(compute)})
                    add({source_of(kernel, gradient_preambles())});
            if (!step.matrix->rest) return;
            std::vector<int> values;
            for (const int operand : step.matrix->rest_operands) values.push_back(node.arguments[at(operand)]);
            polynomial(*step.matrix->rest, values);
        });
    side_by_side(work.size(), [&](std::size_t i) { work[i](); });
}

}  // namespace clebsch::gpu
