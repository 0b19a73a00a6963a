#include "emit/emitted.hpp"

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "base/error.hpp"
#include "base/file.hpp"
#include "describe/harmonics_chain.hpp"
#include "emit/chain.hpp"
#include "emit/halves.hpp"
#include "emit/matrix.hpp"
#include "emit/order.hpp"
#include "emit/tape.hpp"
#include "emit/text.hpp"
#include "run/call.hpp"
#include "run/gpu/program_step.hpp"
#include "schedule/gpu_halves.hpp"
#include "schedule/gpu_matrix.hpp"
#include "schedule/gpu_order.hpp"
#include "schedule/gpu_program.hpp"
#include "schedule/program_groups.hpp"
#include "support/run_plan.hpp"

namespace clebsch::testing {
namespace {

namespace fs = std::filesystem;

std::string portable(std::string_view skeleton) {
    const std::size_t at = skeleton.find("// ---- portable from here");
    REQUIRE(at != std::string_view::npos);
    return std::string(skeleton.substr(at));
}

std::string without(std::string text, const std::string& words) {
    for (std::size_t at = text.find(words); at != std::string::npos; at = text.find(words)) text.erase(at, words.size());
    return text;
}

/// A folder of this process alone, gone at the end.
struct Folder {
    fs::path path;
    Folder() : path((fs::temp_directory_path() / "clebsch-emitted-XXXXXX").string()) {
        std::string name = path.string();
        if (::mkdtemp(name.data()) == nullptr) fail("no temporary folder");
        path = name;
    }
    ~Folder() {
        std::error_code error;
        fs::remove_all(path, error);
    }
};

DType dtype_of(GpuNumber type) {
    return type == GpuNumber::float32    ? DType::float32
           : type == GpuNumber::bfloat16 ? DType::bfloat16
           : type == GpuNumber::float16  ? DType::float16
                                         : DType::float64;
}
/// Number `i` of an array that is stored so.
void put_number(void* array, GpuNumber type, std::int64_t i, long double number) {
    store_number(static_cast<std::byte*>(array) + i * static_cast<std::int64_t>(size_of(dtype_of(type))), dtype_of(type), number);
}
long double number_at(const void* array, GpuNumber type, std::int64_t i) {
    return load_number(static_cast<const std::byte*>(array) + i * static_cast<std::int64_t>(size_of(dtype_of(type))), dtype_of(type));
}

struct Prepared {
    GpuProblem problem;
    GpuKernels kernels;
};

Prepared prepare(const Polynomial& polynomial, const std::string& schedule, bool ordered = false, std::vector<bool> messages = {},
                 std::vector<GpuNumber> storage = {}) {
    if (storage.empty()) storage.assign(polynomial.operands.size(), GpuNumber::float64);
    GpuProblem problem{.polynomial = polynomial,
                       .storage = std::move(storage),
                       .compute = GpuNumber::float64,
                       .target = gpu_target("sm_90"),
                       .ordered = ordered,
                       .messages = std::move(messages)};
    GpuKernels kernels = gpu_kernels(problem, schedule);
    return {std::move(problem), std::move(kernels)};
}

/// Kernels as functions of this process, compiled together.
class HostKernels {
 public:
    /// Returns the kernel's number.
    int add(const KernelText& kernel) {
        const std::string n = std::to_string(names_.size());
        text_ += "\nnamespace kernel_" + n + " {\n" + without(kernel.text, "extern \"C\" ") + "}\n" + "extern \"C\" int run_" + n +
                 "(const unsigned long long* words, unsigned x, unsigned y, int threads) {\n" + "    static kernel_" + n +
                 "::Arguments arguments;\n" + "    std::memcpy(&arguments, words, sizeof arguments);\n" + "    host::body = [] { kernel_" +
                 n + "::" + kernel.name + "(arguments); };\n" + "    gridDim.x = x;\n    gridDim.y = y;\n" +
                 "    for (blockIdx.y = 0; blockIdx.y < y; ++blockIdx.y)\n" +
                 "        for (blockIdx.x = 0; blockIdx.x < x; ++blockIdx.x)\n" +
                 "            if (!host::run_block(threads, blockIdx.x * 7 + blockIdx.y)) return 0;\n" + "    return 1;\n}\n";
        names_.push_back(kernel.name);
        return static_cast<int>(names_.size()) - 1;
    }

    void compile() {
        const std::string text = (folder_.path / "kernels.cpp").string(), library = (folder_.path / "kernels.so").string(),
                          log = (folder_.path / "log").string();
        write_file(text, read_file(fs::path(CLEBSCH_SOURCE_DIR) / "tests/emit/host_device.hpp") + portable(device_preamble()) +
                             portable(stream_preamble()) + portable(matrix_preamble()) + portable(halves_preamble()) +
                             portable(rows_preamble()) + portable(order_preamble()) + portable(ascending_preamble()) + text_);
        if (std::system(("c++ -std=c++17 -O1 -w -shared -fPIC -o " + library + " " + text + " > " + log + " 2>&1").c_str()) != 0)
            fail("the host compiler refused emitted kernels:\n" + read_file(log).substr(0, 4000));
        handle_ = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
        if (handle_ == nullptr) fail(std::string("cannot load emitted kernels: ") + ::dlerror());
    }
    ~HostKernels() {
        if (handle_ != nullptr) ::dlclose(handle_);
    }

    void run(int kernel, const std::vector<std::uint64_t>& words, const LaunchShape& shape) const {
        const auto call = reinterpret_cast<int (*)(const std::uint64_t*, unsigned, unsigned, int)>(
            ::dlsym(handle_, ("run_" + std::to_string(kernel)).c_str()));
        if (call(words.data(), static_cast<unsigned>(shape.grid[0]), static_cast<unsigned>(shape.grid[1]), shape.threads) == 0)
            fail("kernel " + names_[static_cast<std::size_t>(kernel)] + ": its threads wait for one another");
    }

 private:
    Folder folder_;
    std::string text_;
    std::vector<std::string> names_;
    void* handle_ = nullptr;
};

using Indices = std::map<std::string, std::vector<std::int64_t>>;
using Rows = std::map<std::string, std::int64_t>;

std::int64_t rows_of(const Rows& rows, const std::string& space) { return space.empty() ? 1 : rows.at(space); }

/// Runs the kernels of a polynomial on arrays, one per operand. `first`: the number of the first stage's kernel.
class Runner {
 public:
    Runner(const Prepared& prepared, std::vector<double*> arrays, const Indices& indices, const Rows& rows, bool aligned = false)
        : prepared_(prepared), arrays_(std::move(arrays)), indices_(indices), rows_(rows), aligned_(aligned) {}

    void run(const HostKernels& host, int first) {
        const auto known = rows_.find(polynomial().rows);
        const std::int64_t rows = known != rows_.end() ? known->second : 1;
        sums_.resize(arrays_.size());
        for (std::size_t o = 0; o < arrays_.size(); ++o) {
            const Operand& operand = polynomial().operands[o];
            if (operand.role != Role::output) continue;
            // Every number has to be written that is not summed.
            const std::int64_t count = prepared_.problem.is_message(o) ? rows : rows_of(rows_, polynomial().space_of(operand));
            const GpuKernels& kernels = prepared_.kernels;
            const double start = kernels.summed[o] || kernels.cleared[o] || rows == 0 ? 0.0 : NAN;
            for (std::int64_t i = 0; i < count * operand.size(); ++i) put_number(arrays_[o], prepared_.problem.storage[o], i, start);
            if (kernels.needs_sums[o]) sums_[o].assign(static_cast<std::size_t>(count * operand.size()), 0.0);
        }
        chunks_ = gpu_chunks(prepared_.kernels, rows, 1);
        if (!prepared_.kernels.streams.empty()) {  // many borders between chunks
            const bool divided = rows > 4096 || aligned_;
            chunks_ = {.rows = 32, .count = (rows + 31) / 32, .reach = divided ? 32 : rows, .divided = divided};
        }
        part_targets_.assign(static_cast<std::size_t>(chunks_.parts()), 1 << 20);
        for (std::size_t o = 0; o < arrays_.size(); ++o)
            parts_.emplace_back(
                prepared_.kernels.has_parts[o] ? static_cast<std::size_t>(chunks_.parts() * polynomial().operands[o].size()) : 0,
                prepared_.kernels.cleared[o] ? 0.0 : NAN);
        for (const GpuStage& stage : prepared_.kernels.stages) run(host, first++, stage, rows);
    }

 private:
    const Prepared& prepared_;
    std::vector<double*> arrays_;
    const Indices& indices_;
    const Rows& rows_;
    bool aligned_;
    unsigned error_ = 0;
    GpuChunks chunks_;
    std::vector<std::vector<double>> parts_;  // of every operand
    std::vector<std::vector<double>> sums_;   // of outputs that are stored otherwise than they are summed
    std::vector<std::int64_t> part_targets_;

    const Polynomial& polynomial() const { return prepared_.problem.polynomial; }

    void run(const HostKernels& host, int kernel, const GpuStage& stage, std::int64_t rows) {
        if (rows == 0) return;
        const std::int64_t numbers = stage.operand < 0 ? 0 : polynomial().operands[static_cast<std::size_t>(stage.operand)].size();
        constexpr std::int64_t blocks = 2;
        const LaunchShape shape = gpu_shape(prepared_.kernels, stage, rows, chunks_, blocks, numbers, numbers);
        if (shape.grid[0] == 0) return;
        std::vector<std::uint64_t> words;
        for (const KernelArgument& argument : stage.kernel.arguments) words.push_back(word(argument, rows));
        host.run(kernel, words, shape);
    }

    std::uint64_t word(const KernelArgument& argument, std::int64_t rows) {
        using Kind = KernelArgument::Kind;
        const auto which = static_cast<std::size_t>(argument.which);
        const auto index = [&]() -> const std::vector<std::int64_t>& { return indices_.at(polynomial().indices[which].name); };
        switch (argument.kind) {
            case Kind::sums:
                if (prepared_.kernels.needs_sums[which]) return reinterpret_cast<std::uintptr_t>(sums_[which].data());
                [[fallthrough]];
            case Kind::data:
                return reinterpret_cast<std::uintptr_t>(arrays_[which]);
            case Kind::stride:
            case Kind::sums_stride:
                return static_cast<std::uint64_t>(polynomial().operands[which].size());
            case Kind::output_rows:
                return static_cast<std::uint64_t>(rows_of(rows_, polynomial().space_of(polynomial().operands[which])));
            case Kind::index:
                return reinterpret_cast<std::uintptr_t>(index().data());
            case Kind::index_rows:
                return static_cast<std::uint64_t>(rows_.at(polynomial().indices[which].to));
            case Kind::index_wide:
                return 1;
            case Kind::rows:
                return static_cast<std::uint64_t>(rows);
            case Kind::parts:
                return reinterpret_cast<std::uintptr_t>(parts_[which].data());
            case Kind::part_targets:
                return reinterpret_cast<std::uintptr_t>(part_targets_.data());
            case Kind::part_count:
                return static_cast<std::uint64_t>(chunks_.parts());
            case Kind::reach:
                return static_cast<std::uint64_t>(chunks_.reach);
            case Kind::chunk:
                return static_cast<std::uint64_t>(chunks_.rows);
            case Kind::aligned:
                return aligned_ ? ~std::uint64_t{0} : 0;
            case Kind::error:
                return reinterpret_cast<std::uintptr_t>(&error_);
            case Kind::table:
                return reinterpret_cast<std::uintptr_t>(prepared_.kernels.table->words.data());
            case Kind::constant:
                return static_cast<std::uint64_t>(argument.which);
        }
        return 0;
    }
};

/// A polynomial's passes with sums in a fixed order, or the one pass without.
class PassRunner {
 public:
    PassRunner(const EmittedCase& one, HostKernels& host) : one_(one) {
        passes_ = gpu_passes(one.polynomial, one.ordered);
        for (const OrderedPass& pass : passes_) {
            std::vector<bool> messages;
            for (std::size_t o = 0; o < pass.operands.size(); ++o)
                messages.push_back(pass.messages[o] && pass.polynomial.operands[o].role == Role::output);
            std::vector<GpuNumber> storage;
            for (std::size_t o = 0; o < pass.operands.size() && !one.storage.empty(); ++o)
                storage.push_back(pass.messages[o] ? GpuNumber::float64 : one.storage[static_cast<std::size_t>(pass.operands[o])]);
            prepared_.push_back(prepare(pass.polynomial, one.schedule, one.ordered, std::move(messages), std::move(storage)));
            first_stage_.push_back(-1);
            for (const GpuStage& stage : prepared_.back().kernels.stages) {
                const int number = host.add(stage.kernel);
                if (first_stage_.back() < 0) first_stage_.back() = number;
            }
            first_order_.push_back(-1);
            if (pass.order.empty()) continue;
            first_order_.back() = host.add(emit_order_targets(static_cast<int>(pass.order.size())));
            for (const char* step : {"count", "scan", "place"}) host.add(emit_order_step(step));
        }
    }

    /// `arrays`: of the polynomial's operands.
    void run(const HostKernels& host, const std::vector<double*>& arrays) {
        std::map<int, std::vector<double>> messages;  // of operands
        for (std::size_t p = 0; p < passes_.size(); ++p) {
            Indices indices = one_.inputs.indices;
            if (!passes_[p].order.empty()) order(host, p, indices);
            std::vector<double*> own;
            for (std::size_t o = 0; o < passes_[p].operands.size(); ++o) {
                const int given = passes_[p].operands[o];
                if (!passes_[p].messages[o]) {
                    own.push_back(arrays[static_cast<std::size_t>(given)]);
                    continue;
                }
                std::vector<double>& message = messages[given];
                message.resize(static_cast<std::size_t>(rows_of(one_.inputs.rows, passes_[p].polynomial.rows) *
                                                        passes_[p].polynomial.operands[o].size()) +
                               8);
                own.push_back(message.data());
            }
            Runner(prepared_[p], own, indices, one_.inputs.rows, one_.aligned).run(host, first_stage_[p]);
        }
    }

 private:
    const EmittedCase& one_;
    std::vector<OrderedPass> passes_;
    std::vector<Prepared> prepared_;
    std::vector<int> first_stage_, first_order_;

    void order(const HostKernels& host, std::size_t p, Indices& indices) {
        const OrderedPass& pass = passes_[p];
        const std::int64_t rows = one_.inputs.rows.at(pass.polynomial.rows);
        const auto count = static_cast<std::size_t>(rows);
        std::array<std::vector<std::int64_t>, 4> arrays;  // targets and rows, twice
        for (auto& array : arrays) array.resize(count + 1);
        const std::int64_t blocks = (rows + order_tile - 1) / order_tile;
        std::vector<std::int64_t> counts(static_cast<std::size_t>(256 * (blocks + 1)));
        unsigned error = 0;
        std::vector<std::uint64_t> words;
        std::int64_t masked = 0;
        for (const std::string& name : pass.order) {
            masked = one_.inputs.rows.at(one_.polynomial.indices[static_cast<std::size_t>(one_.polynomial.find_index(name))].to);
            words.insert(words.end(),
                         {reinterpret_cast<std::uintptr_t>(one_.inputs.indices.at(name).data()), static_cast<std::uint64_t>(masked), 1});
        }
        const auto pointer = [](std::vector<std::int64_t>& array) { return reinterpret_cast<std::uintptr_t>(array.data()); };
        words.insert(words.end(),
                     {static_cast<std::uint64_t>(rows), reinterpret_cast<std::uintptr_t>(&error), pointer(arrays[0]), pointer(arrays[1])});
        if (rows > 0) {
            host.run(first_order_[p], words, {.grid = {2, 1}, .threads = order_threads});
            for (int digit = 0; digit < 2; ++digit) {  // more than needed for few targets
                const std::size_t from = digit == 0 ? 0 : 2;
                words = {pointer(arrays[from]),
                         pointer(arrays[from + 1]),
                         pointer(arrays[2 - from]),
                         pointer(arrays[3 - from]),
                         pointer(counts),
                         static_cast<std::uint64_t>(rows),
                         static_cast<std::uint64_t>(blocks),
                         static_cast<std::uint64_t>(8 * digit),
                         static_cast<std::uint64_t>(masked),
                         digit == 1 ? std::uint64_t{1} : std::uint64_t{0}};
                for (int step = 1; step <= 3; ++step)
                    host.run(first_order_[p] + step, words, {.grid = {step == 2 ? 256 : blocks, 1}, .threads = order_threads});
            }
        }
        for (std::size_t a = 0; a < 2; ++a) arrays[a].resize(count);
        const std::size_t made = pass.polynomial.indices.size() - 2;
        indices[pass.polynomial.indices[made].name] = arrays[1];
        indices[pass.polynomial.indices[made + 1].name] = arrays[0];
    }
};

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
        std::vector<int> matrix_kernels;
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
            Runner(*step.polynomial, arrays_of(values), given_.inputs.indices, given_.inputs.rows).run(host, step.first_stage);
        }
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

bool has_host_compiler() {
    if (std::system("c++ --version > /dev/null 2>&1") == 0) return true;
    MESSAGE("skipped: there is no host compiler called c++");
    return false;
}

std::vector<std::map<std::string, ReferenceArray>> run_emitted(const std::vector<EmittedCase>& cases) {
    HostKernels host;
    std::vector<PassRunner> runners;
    for (const EmittedCase& one : cases) runners.emplace_back(one, host);
    host.compile();
    std::vector<std::map<std::string, ReferenceArray>> results;
    for (std::size_t i = 0; i < cases.size(); ++i) {
        const Polynomial& polynomial = cases[i].polynomial;
        std::vector<std::vector<double>> arrays;
        std::vector<double*> pointers;
        const auto storage_of = [&](std::size_t o) { return cases[i].storage.empty() ? GpuNumber::float64 : cases[i].storage[o]; };
        for (const Operand& operand : polynomial.operands) {
            const auto count = static_cast<std::size_t>(rows_of(cases[i].inputs.rows, polynomial.space_of(operand)) * operand.size());
            arrays.emplace_back(count + 8, 0.0);
            if (operand.role != Role::input) continue;
            const ReferenceArray& numbers = cases[i].inputs.arrays.at(operand.name);
            for (std::size_t n = 0; n < numbers.size(); ++n)
                put_number(arrays.back().data(), storage_of(arrays.size() - 1), static_cast<std::int64_t>(n), numbers[n]);
        }
        pointers.reserve(arrays.size());
        for (std::vector<double>& array : arrays) pointers.push_back(array.data());
        runners[i].run(host, pointers);
        std::map<std::string, ReferenceArray>& outputs = results.emplace_back();
        for (std::size_t o = 0; o < arrays.size(); ++o) {
            if (polynomial.operands[o].role != Role::output) continue;
            ReferenceArray& numbers = outputs[polynomial.operands[o].name];
            for (std::size_t n = 0; n + 8 < arrays[o].size(); ++n)
                numbers.push_back(number_at(arrays[o].data(), storage_of(o), static_cast<std::int64_t>(n)));
        }
    }
    return results;
}

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

std::vector<bool> shown_as_nan(const std::vector<AscendingCase>& cases) {
    HostKernels host;
    const int kernel = host.add(emit_ascending());
    host.compile();
    std::vector<bool> shown;
    for (const AscendingCase& one : cases) {
        const std::vector<std::int32_t> narrow(one.index.begin(), one.index.end());
        std::vector<double> packed(3 * 5, 1.0);
        std::vector<std::uint16_t> strided(4 * 9, 1);  // rows of 7 numbers, 9 apart
        std::vector<std::uint64_t> words = {
            one.wide ? reinterpret_cast<std::uintptr_t>(one.index.data()) : reinterpret_cast<std::uintptr_t>(narrow.data()),
            one.wide ? std::uint64_t{1} : std::uint64_t{0},
            one.index.size(),
            static_cast<std::uint64_t>(one.rows),
            2,
            reinterpret_cast<std::uintptr_t>(packed.data()),
            20,
            20,
            3,
            reinterpret_cast<std::uintptr_t>(strided.data()),
            9,
            7,
            4};
        words.resize(5 + 4 * ascending_outputs);
        host.run(kernel, words, {.grid = {2, 1}, .threads = ascending_threads});
        bool between = false;
        std::int64_t filled = 0;
        for (const double number : packed) filled += std::isnan(number) ? 1 : 0;
        for (std::size_t i = 0; i < strided.size(); ++i) {
            if (i % 9 < 7) filled += strided[i] == 0xffff ? 1 : 0;
            else between = between || strided[i] != 1;
        }
        if (between || (filled != 0 && filled != 3 * 5 + 4 * 7)) fail("outputs were not filled row by row");
        shown.push_back(filled != 0);
    }
    return shown;
}

}  // namespace clebsch::testing
