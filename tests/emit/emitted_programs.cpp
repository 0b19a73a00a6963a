// Programs, step by step as gpu::ProgramPlan runs them (emitted.hpp).
#include <cmath>
#include <memory>
#include <optional>

#include "describe/harmonics_chain.hpp"
#include "emit/chain.hpp"
#include "emit/emitted.hpp"
#include "emit/gradient.hpp"
#include "emit/halves.hpp"
#include "emit/host_kernels.hpp"
#include "emit/matrix.hpp"
#include "emit/tape.hpp"
#include "run/gpu/program_step.hpp"
#include "schedule/gpu_halves.hpp"
#include "schedule/gpu_matrix.hpp"
#include "schedule/gpu_program.hpp"
#include "schedule/program_groups.hpp"

namespace clebsch::testing {
namespace {

/// A program's steps as kernels of the host, its values as arrays.
class ProgramRunner {
 public:
    ProgramRunner(const EmittedProgram& given, HostKernels& host)
        : given_(given), program_(simplified(with_harmonic_chains(given.program))) {
        TiledProgram tiled = tile_program(program_, true);
        program_ = std::move(tiled.program);
        std::vector<GpuProgramStep> steps;
        for (const TileGroup& tile : tiled.groups)
            for (GpuProgramStep& step : gpu_steps(program_, tile.nodes)) steps.push_back(std::move(step));
        std::vector<bool> alone;
        for (const GpuProgramStep& step : steps) {
            const auto* node = std::get_if<PolynomialNode>(&program_.nodes[static_cast<std::size_t>(step.nodes[0])]);
            alone.push_back(step.width == 0 && schedule_matrix(node->polynomial));
        }
        for (const std::vector<std::size_t>& chain : step_chains(program_, steps, alone)) {
            if (chain.size() > 1) add_chain(steps, chain, host);
            else add_step(steps[chain[0]], host);
        }
    }

    void add_chain(const std::vector<GpuProgramStep>& steps, const std::vector<std::size_t>& chain, HostKernels& host) {
        Step& made = steps_.emplace_back();
        made.step = steps[chain[0]];
        std::vector<GpuProgramStep> links;
        std::vector<const GpuProgramStep*> pointers;
        for (const std::size_t s : chain) {
            links.push_back(steps[s]);
            pointers.push_back(&steps[s]);
        }
        made.rows_of_block = chain_rows(program_, pointers);
        made.places = gpu::chain_kernel(program_, links, std::vector<DType>(program_.values.size(), DType::float64), DType::float64,
                                        gpu_target("sm_90"));
        made.kernel = host.add(made.places);
        ++result_.chains;
    }

    void add_step(const GpuProgramStep& step, HostKernels& host) {
        Step& made = steps_.emplace_back();
        made.step = step;
        if (step.width != 0) {
            const std::vector<GpuNumber> storage(program_.values.size(), GpuNumber::float64);
            made.places = emit_tape(program_, tape_of(program_, step), step.width, storage, GpuNumber::float64);
            made.kernel = host.add(made.places);
            ++result_.tapes;
            return;
        }
        const auto& node = std::get<PolynomialNode>(program_.nodes[static_cast<std::size_t>(step.nodes[0])]);
        made.matrix = schedule_matrix(node.polynomial);
        if (made.matrix && given_.halves) made.halves = schedule_halves(*made.matrix, GpuNumber::float32);
        if (made.halves) {
            for (const HalvesLaunch& launch : made.halves->launches)
                for (const KernelText& kernel :
                     {emit_halves_weights(GpuNumber::float64, launch.columns), emit_halves(GpuNumber::float64, launch.columns)})
                    made.matrix_kernels.push_back(host.add(kernel));
            ++result_.halves;
        } else if (made.matrix) {
            for (const MatrixLaunch& launch : matrix_launches(*made.matrix, given_.tiles))
                made.matrix_kernels.push_back(host.add(emit_matrix(GpuNumber::float64, given_.tiles[launch.tile])));
            ++result_.matrices;
        }
        if (made.matrix && !made.matrix->gradient.jobs.empty()) {
            for (const GradientLaunch& launch : gradient_launches(made.matrix->gradient, given_.gradient_tiles))
                made.gradient_kernels.push_back(host.add(emit_gradient(GpuNumber::float64, given_.gradient_tiles[launch.tile])));
            made.gradient_kernels.push_back(host.add(emit_gradient_sum(GpuNumber::float64)));
            ++result_.gradients;
        }
        if (made.matrix && !made.matrix->rest) return;
        made.polynomial = prepare(made.matrix ? *made.matrix->rest : node.polynomial, "");
        for (const GpuStage& stage : made.polynomial->kernels.stages) {
            const int number = host.add(stage.kernel);
            if (made.first_stage < 0) made.first_stage = number;
        }
        ++result_.polynomials;
    }

    EmittedProgramResult run(const HostKernels& host) {
        for (const Value& value : program_.values)
            arrays_.emplace_back(static_cast<std::size_t>(rows_of(given_.inputs.rows, value.space) * value.size()) + 8, NAN);
        for (const int value : program_.inputs) {
            const ReferenceArray& numbers = given_.inputs.arrays.at(program_.values[static_cast<std::size_t>(value)].name);
            std::copy(numbers.begin(), numbers.end(), arrays_[static_cast<std::size_t>(value)].begin());
        }
        for (const Step& step : steps_) run(host, step);
        for (std::size_t i = 0; i < program_.outputs.size(); ++i) {
            const std::vector<double>& array = arrays_[static_cast<std::size_t>(program_.outputs[i])];
            result_.outputs[given_.program.values[static_cast<std::size_t>(given_.program.outputs[i])].name] =
                ReferenceArray(array.begin(), array.end() - 8);
        }
        return result_;
    }

 private:
    struct Step {
        GpuProgramStep step;
        KernelText places;               // of a tape or a chain
        std::int64_t rows_of_block = 0;  // of a chain
        std::optional<MatrixSchedule> matrix;
        std::optional<HalvesSchedule> halves;
        std::optional<Prepared> polynomial;
        int kernel = -1, first_stage = -1;
        std::vector<int> matrix_kernels, gradient_kernels;
    };

    std::vector<double*> arrays_of(const std::vector<int>& values) {
        std::vector<double*> result;
        result.reserve(values.size());
        for (const int value : values) result.push_back(arrays_[static_cast<std::size_t>(value)].data());
        return result;
    }

    void run(const HostKernels& host, const Step& step) {
        const Node& first = program_.nodes[static_cast<std::size_t>(step.step.nodes[0])];
        const std::int64_t rows = rows_of(given_.inputs.rows, space_of(program_, first));
        if (step.kernel >= 0) {
            std::vector<std::uint64_t> words;
            for (const KernelArgument& argument : step.places.arguments) {
                const auto which = static_cast<std::size_t>(argument.which);
                words.push_back(argument.kind == KernelArgument::Kind::data     ? reinterpret_cast<std::uintptr_t>(arrays_[which].data())
                                : argument.kind == KernelArgument::Kind::stride ? static_cast<std::uint64_t>(program_.values[which].size())
                                : argument.kind == KernelArgument::Kind::rows   ? static_cast<std::uint64_t>(rows)
                                                                                : 0);
            }
            if (rows > 0)
                host.run(step.kernel, words,
                         step.rows_of_block > 0 ? chain_shape(rows, step.rows_of_block) : tape_shape(rows * step.step.width));
            return;
        }
        const auto& node = std::get<PolynomialNode>(first);
        if (step.polynomial) {
            std::vector<int> values = node.arguments;
            if (step.matrix) {
                values.clear();
                for (const int operand : step.matrix->rest_operands) values.push_back(node.arguments[static_cast<std::size_t>(operand)]);
            }
            run_stages(host, step.first_stage, *step.polynomial, arrays_of(values), given_.inputs.indices, given_.inputs.rows);
        }
        if (!step.gradient_kernels.empty()) run_gradient(host, step, node, rows);
        if (step.halves && rows > 0) run_halves(host, step, node, rows);
        else if (step.matrix && rows > 0) run_matrix(host, step, node, rows);
    }

    /// Address and stride of every operand, from word `first` on.
    void add_operands(std::vector<std::uint64_t>& words, std::size_t first, const PolynomialNode& node) {
        for (std::size_t o = 0; o < node.arguments.size(); ++o) {
            words.push_back(reinterpret_cast<std::uintptr_t>(arrays_[static_cast<std::size_t>(node.arguments[o])].data()));
            words.push_back(static_cast<std::uint64_t>(node.polynomial.operands[o].size()));
        }
        words.resize(first + 2 * static_cast<std::size_t>(MatrixSchedule::most_operands), 0);
    }

    void run_halves(const HostKernels& host, const Step& step, const PolynomialNode& node, std::int64_t rows) {
        const HalvesSchedule& schedule = *step.halves;
        std::size_t kernel = 0;
        for (const HalvesLaunch& launch : schedule.launches) {
            constexpr std::int64_t longer = 4;  // a number in two parts, and what undoes a scale, than on a device
            std::vector<std::byte> weights(static_cast<std::size_t>(longer * launch.pieces * weight_tile_bytes(launch.columns)) + 64);
            const std::int64_t share = 1 + static_cast<std::int64_t>(kernel) % 3;
            std::vector<std::uint64_t> words = {reinterpret_cast<std::uintptr_t>(schedule.jobs.data() + launch.first_job),
                                                reinterpret_cast<std::uintptr_t>(schedule.pieces.data() + launch.first_piece),
                                                (reinterpret_cast<std::uintptr_t>(weights.data()) + 63) / 64 * 64,
                                                static_cast<std::uint64_t>(launch.jobs),
                                                static_cast<std::uint64_t>(rows),
                                                static_cast<std::uint64_t>(share)};
            add_operands(words, halves_first_operand, node);
            host.run(step.matrix_kernels[kernel++], words, {.grid = {launch.pieces, 1}, .threads = HalvesSchedule::weights_threads});
            host.run(step.matrix_kernels[kernel++], words, halves_shape(schedule, launch, rows, share));
        }
    }

    void run_gradient(const HostKernels& host, const Step& step, const PolynomialNode& node, std::int64_t rows) {
        const GradientSchedule& schedule = step.matrix->gradient;
        const std::vector<GradientTile>& tiles = given_.gradient_tiles;
        const GradientChunks chunks{given_.chunk, (rows + given_.chunk - 1) / given_.chunk};
        std::vector<double> parts(static_cast<std::size_t>(chunks.count * schedule.numbers) + 4, NAN);
        const std::uintptr_t place = (reinterpret_cast<std::uintptr_t>(parts.data()) + 31) / 32 * 32;
        std::vector<std::uint64_t> words = {0,
                                            reinterpret_cast<std::uintptr_t>(schedule.terms.data()),
                                            0,
                                            static_cast<std::uint64_t>(rows),
                                            static_cast<std::uint64_t>(chunks.rows),
                                            static_cast<std::uint64_t>(chunks.count),
                                            static_cast<std::uint64_t>(schedule.numbers),
                                            place};
        add_operands(words, gradient_first_operand, node);
        std::size_t kernel = 0;
        for (const GradientLaunch& launch : gradient_launches(schedule, tiles)) {
            words[0] = reinterpret_cast<std::uintptr_t>(schedule.jobs.data() + launch.first);
            words[2] = static_cast<std::uint64_t>(launch.count);
            host.run(step.gradient_kernels[kernel++], words, gradient_shape(schedule, launch, tiles[launch.tile], chunks.count));
        }
        words[0] = reinterpret_cast<std::uintptr_t>(schedule.jobs.data());
        host.run(step.gradient_kernels[kernel], words, gradient_sum_shape(schedule));
    }

    void run_matrix(const HostKernels& host, const Step& step, const PolynomialNode& node, std::int64_t rows) {
        const MatrixSchedule& schedule = *step.matrix;
        unsigned error = 0;
        std::vector<std::uint64_t> words = {reinterpret_cast<std::uintptr_t>(schedule.jobs.data()),
                                            reinterpret_cast<std::uintptr_t>(schedule.terms.data()), schedule.jobs.size(),
                                            static_cast<std::uint64_t>(rows)};
        if (schedule.index >= 0) {
            const Index& index = node.polynomial.indices[static_cast<std::size_t>(schedule.index)];
            words.insert(words.end(), {reinterpret_cast<std::uintptr_t>(given_.inputs.indices.at(index.name).data()), 1,
                                       static_cast<std::uint64_t>(given_.inputs.rows.at(index.to))});
        } else {
            words.insert(words.end(), {0, 0, 0});
        }
        words.push_back(reinterpret_cast<std::uintptr_t>(&error));
        add_operands(words, matrix_first_operand, node);
        const std::vector<MatrixTile>& tiles = given_.tiles;
        std::size_t kernel = 0;
        for (const MatrixLaunch& launch : matrix_launches(schedule, tiles)) {
            words[0] = reinterpret_cast<std::uintptr_t>(schedule.jobs.data() + launch.first);
            words[2] = static_cast<std::uint64_t>(launch.count);
            host.run(step.matrix_kernels[kernel++], words, matrix_shape(schedule, launch, tiles[launch.tile], rows));
        }
    }

    const EmittedProgram& given_;
    Program program_;
    std::vector<Step> steps_;
    std::vector<std::vector<double>> arrays_;
    EmittedProgramResult result_;
};

}  // namespace

std::vector<EmittedProgramResult> run_emitted(const std::vector<EmittedProgram>& cases) {
    HostKernels host;
    std::vector<std::unique_ptr<ProgramRunner>> runners;
    runners.reserve(cases.size());
    for (const EmittedProgram& one : cases) runners.push_back(std::make_unique<ProgramRunner>(one, host));
    host.compile();
    std::vector<EmittedProgramResult> results;
    results.reserve(runners.size());
    for (const auto& runner : runners) results.push_back(runner->run(host));
    return results;
}

}  // namespace clebsch::testing
