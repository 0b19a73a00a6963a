#include "emit/emitted.hpp"

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>

#include "base/error.hpp"
#include "base/file.hpp"
#include "emit/text.hpp"
#include "run/call.hpp"

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

struct Prepared {
    GpuProblem problem;
    GpuKernels kernels;
};

std::string library_text(const std::vector<Prepared>& problems) {
    std::string text =
        read_file(fs::path(CLEBSCH_SOURCE_DIR) / "tests/emit/host_device.hpp") + portable(device_preamble()) + portable(stream_preamble());
    int number = 0;
    for (const Prepared& prepared : problems)
        for (const GpuStage& stage : prepared.kernels.stages) {
            const std::string n = std::to_string(number++);
            text += "\nnamespace kernel_" + n + " {\n" + without(stage.kernel.text, "extern \"C\" ") + "}\n" + "extern \"C\" int run_" + n +
                    "(const unsigned long long* words, unsigned x, unsigned y, int threads) {\n" + "    static kernel_" + n +
                    "::Arguments arguments;\n" + "    std::memcpy(&arguments, words, sizeof arguments);\n" +
                    "    host::body = [] { kernel_" + n + "::" + stage.kernel.name + "(arguments); };\n" +
                    "    gridDim.x = x;\n    gridDim.y = y;\n" + "    for (blockIdx.y = 0; blockIdx.y < y; ++blockIdx.y)\n" +
                    "        for (blockIdx.x = 0; blockIdx.x < x; ++blockIdx.x)\n" +
                    "            if (!host::run_block(threads, blockIdx.x * 7 + blockIdx.y)) return 0;\n" + "    return 1;\n}\n";
        }
    return text;
}

class Runner {
 public:
    Runner(const Prepared& prepared, const ReferenceInputs& inputs) : prepared_(prepared), inputs_(inputs) {
        for (const Operand& operand : polynomial().operands) {
            std::vector<double>& array = arrays_.emplace_back(static_cast<std::size_t>(rows_of(operand) * operand.size()) + 8, 0.0);
            if (operand.role == Role::input) {
                const ReferenceArray& numbers = inputs.arrays.at(operand.name);
                std::copy(numbers.begin(), numbers.end(), array.begin());
            } else if (!prepared.kernels.summed[arrays_.size() - 1]) {
                std::fill(array.begin(), array.end(), NAN);  // every number has to be written
            }
        }
    }

    void run(const GpuStage& stage, void* function) {
        const std::int64_t rows = inputs_.rows.count(polynomial().rows) != 0 ? inputs_.rows.at(polynomial().rows) : 1;
        if (rows == 0) return;
        LaunchShape shape;
        std::int64_t chunk = general_chunk(rows);
        if (stage.kind == GpuStageKind::general) {
            shape = general_shape(*prepared_.kernels.general, rows);
        } else {
            chunk = 32;  // many borders between chunks
            const std::int64_t chunks = (rows + chunk - 1) / chunk;
            shape = {.grid = {stage.kind == GpuStageKind::stream ? std::min<std::int64_t>(chunks, 2) : (chunks + 3) / 4, 1},
                     .threads = stage.kind == GpuStageKind::stream ? prepared_.kernels.stream->threads() : 128};
            if (stage.kind == GpuStageKind::stream_cuts && rows <= 4096) return;
        }
        std::vector<std::uint64_t> words;
        for (const KernelArgument& argument : stage.kernel.arguments) words.push_back(word(argument, rows, chunk));
        const auto call = reinterpret_cast<int (*)(const std::uint64_t*, unsigned, unsigned, int)>(function);
        if (call(words.data(), static_cast<unsigned>(shape.grid[0]), static_cast<unsigned>(shape.grid[1]), shape.threads) == 0)
            fail("kernel " + stage.kernel.name + ": its threads wait for one another");
    }

    std::map<std::string, ReferenceArray> outputs() const {
        std::map<std::string, ReferenceArray> result;
        for (std::size_t o = 0; o < arrays_.size(); ++o)
            if (polynomial().operands[o].role == Role::output)
                result[polynomial().operands[o].name] = ReferenceArray(arrays_[o].begin(), arrays_[o].end() - 8);
        return result;
    }

 private:
    const Prepared& prepared_;
    const ReferenceInputs& inputs_;
    std::vector<std::vector<double>> arrays_;
    unsigned error_ = 0;

    const Polynomial& polynomial() const { return prepared_.problem.polynomial; }
    std::int64_t rows_of(const Operand& operand) const {
        const std::string space = polynomial().space_of(operand);
        return space.empty() ? 1 : inputs_.rows.at(space);
    }
    std::uint64_t word(const KernelArgument& argument, std::int64_t rows, std::int64_t chunk) {
        using Kind = KernelArgument::Kind;
        const auto which = static_cast<std::size_t>(argument.which);
        const auto index = [&]() -> const std::vector<std::int64_t>& { return inputs_.indices.at(polynomial().indices[which].name); };
        switch (argument.kind) {
            case Kind::data:
            case Kind::sums:
                return reinterpret_cast<std::uintptr_t>(arrays_[which].data());
            case Kind::stride:
            case Kind::sums_stride:
                return static_cast<std::uint64_t>(polynomial().operands[which].size());
            case Kind::output_rows:
                return static_cast<std::uint64_t>(rows_of(polynomial().operands[which]));
            case Kind::index:
                return reinterpret_cast<std::uintptr_t>(index().data());
            case Kind::index_rows:
                return static_cast<std::uint64_t>(inputs_.rows.at(polynomial().indices[which].to));
            case Kind::index_wide:
                return 1;
            case Kind::rows:
                return static_cast<std::uint64_t>(rows);
            case Kind::chunk:
                return static_cast<std::uint64_t>(chunk);
            case Kind::aligned:
                return 0;
            case Kind::error:
                return reinterpret_cast<std::uintptr_t>(&error_);
        }
        return 0;
    }
};

}  // namespace

bool has_host_compiler() {
    if (std::system("c++ --version > /dev/null 2>&1") == 0) return true;
    MESSAGE("skipped: there is no host compiler called c++");
    return false;
}

std::vector<std::map<std::string, ReferenceArray>> run_emitted(const std::vector<EmittedCase>& cases) {
    std::vector<Prepared> prepared;
    for (const EmittedCase& one : cases) {
        GpuProblem problem{.polynomial = one.polynomial,
                           .storage = std::vector<GpuNumber>(one.polynomial.operands.size(), GpuNumber::float64),
                           .compute = GpuNumber::float64,
                           .target = gpu_target("sm_90")};
        GpuKernels kernels = gpu_kernels(problem, one.schedule);
        prepared.push_back({std::move(problem), std::move(kernels)});
    }
    const Folder folder;
    const std::string text = (folder.path / "kernels.cpp").string(), library = (folder.path / "kernels.so").string(),
                      log = (folder.path / "log").string();
    write_file(text, library_text(prepared));
    if (std::system(("c++ -std=c++17 -O0 -w -shared -fPIC -o " + library + " " + text + " > " + log + " 2>&1").c_str()) != 0)
        fail("the host compiler refused emitted kernels:\n" + read_file(log).substr(0, 4000));
    void* handle = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) fail(std::string("cannot load emitted kernels: ") + ::dlerror());
    std::vector<std::map<std::string, ReferenceArray>> results;
    int number = 0;
    for (std::size_t i = 0; i < cases.size(); ++i) {
        Runner runner(prepared[i], cases[i].inputs);
        for (const GpuStage& stage : prepared[i].kernels.stages)
            runner.run(stage, ::dlsym(handle, ("run_" + std::to_string(number++)).c_str()));
        results.push_back(runner.outputs());
    }
    ::dlclose(handle);
    return results;
}

}  // namespace clebsch::testing
