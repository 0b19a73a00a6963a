// Kernels on disk: damaged, foreign, racing and unwritable caches, and folders of prebuilt kernels where there is no compiler. No GPU is
// needed; without the compiler its tests say so and pass.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include "base/error.hpp"
#include "base/file.hpp"
#include "emit/order.hpp"
#include "run/gpu/compiler.hpp"
#include "run/gpu/kernel_choice.hpp"
#include "run/gpu/kernels.hpp"
#include "run/gpu/prebuild.hpp"
#include "run/gpu/row_order.hpp"
#include "run/gpu/store.hpp"
#include "schedule/gpu_order.hpp"
#include "support/channelwise.hpp"
#include "support/network_layers.hpp"

using namespace clebsch;
using namespace clebsch::testing;
namespace fs = std::filesystem;

namespace {

/// A folder of this test, gone at the end.
struct Folder {
    fs::path path;
    Folder() {
        std::string name = (fs::temp_directory_path() / "clebsch-store-XXXXXX").string();
        REQUIRE(::mkdtemp(name.data()) != nullptr);
        path = name;
    }
    ~Folder() {
        std::error_code error;
        fs::remove_all(path, error);
    }
    fs::path only_file() const {
        REQUIRE(fs::directory_iterator(path) != fs::directory_iterator());
        return fs::directory_iterator(path)->path();
    }
};

struct Variable {
    std::string name;
    Variable(const char* given, const std::string& value) : name(given) { ::setenv(given, value.c_str(), 1); }
    ~Variable() { ::unsetenv(name.c_str()); }
};

const Hash key = hash_text("a kernel");

gpu::KernelSource some_kernel() { return gpu::source_of(emit_order_targets(1)); }

Polynomial some_polynomial() { return random::gradients(convolution(Irreps("8x0e+8x1o"), Irreps("1x0e+1x1o"), Irreps("0e+1o")), 1); }

bool has_compiler() {
    const gpu::CompilerStatus compiler = gpu::compiler_status();
    if (!compiler.found) MESSAGE("skipped: " << compiler.text);
    return compiler.found;
}

}  // namespace

TEST_CASE("a store gives back what was kept, and nothing of what is damaged or foreign") {
    const Folder folder;
    const gpu::KernelStore store(folder.path);
    CHECK_FALSE(store.read(key));
    const gpu::MachineCode payload{.cubin = std::string("machine\0code\n of a kernel", 24), .spilled_bytes = 24};
    store.write(key, payload);
    CHECK(store.read(key) == payload);
    CHECK_FALSE(store.read(hash_text("another kernel")));
    const fs::path file = folder.only_file();
    const std::string good = read_file(file);
    for (const std::size_t at : {std::size_t{0}, good.find('\n') - 1, good.find('\n') + 1, good.size() - 1}) {
        std::string damaged = good;
        damaged[at] = static_cast<char>(damaged[at] ^ 1);
        write_file(file, damaged);
        CHECK_FALSE(store.read(key));
    }
    for (const std::string& content : {std::string(), std::string("\n"), good.substr(0, good.size() / 2), good + "x",
                                       std::string("\x7f"
                                                   "ELF")}) {
        write_file(file, content);
        CHECK_FALSE(store.read(key));
    }
    fs::remove(file);
    fs::create_directory(file);  // a folder where the file should be
    CHECK_FALSE(store.read(key));
    CHECK_NOTHROW(store.write(key, payload));
    fs::remove(file);
    store.write(key, payload);  // and all is well again
    CHECK(store.read(key) == payload);
}

TEST_CASE("a store that cannot be written keeps nothing and fails nothing") {
    const Folder folder;
    write_file(folder.path / "file", "not a folder");
    for (const fs::path& path : {folder.path / "file", folder.path / "file" / "below", fs::path("/proc/no/such/folder")}) {
        const gpu::KernelStore store(path);
        CHECK_NOTHROW(store.write(key, {.cubin = "payload"}));
        CHECK_FALSE(store.read(key));
    }
    const gpu::KernelStore none(fs::path{});
    CHECK_NOTHROW(none.write(key, {.cubin = "payload"}));
    CHECK_FALSE(none.read(key));
}

TEST_CASE("processes that write one kernel at once leave readers with a whole one or none") {
    const Folder folder;
    const auto payload_of = [](int writer) { return std::string(200'000, static_cast<char>('a' + writer)); };
    constexpr int writers = 4, rounds = 60;
    std::vector<pid_t> children;
    for (int writer = 0; writer < writers; ++writer) {
        const pid_t child = ::fork();
        REQUIRE(child >= 0);
        if (child == 0) {
            const gpu::KernelStore store(folder.path);
            bool good = true;
            for (int round = 0; round < rounds; ++round) {
                store.write(key, {.cubin = payload_of(writer)});
                const auto read = store.read(key);
                good = good && read && read->cubin.size() == payload_of(0).size() && read->cubin == payload_of(read->cubin.front() - 'a');
            }
            ::_exit(good ? 0 : 1);
        }
        children.push_back(child);
    }
    for (const pid_t child : children) {
        int status = 0;
        REQUIRE(::waitpid(child, &status, 0) == child);
        CHECK(WIFEXITED(status));
        CHECK(WEXITSTATUS(status) == 0);
    }
    int files = 0;
    for (const auto& entry : fs::directory_iterator(folder.path)) files += entry.path().extension() == ".kernel" ? 1 : 100;
    CHECK(files == 1);  // and no temporary ones
}

TEST_CASE("a kernel is compiled once, again when its file is damaged, and every time where nothing can be kept") {
    if (!has_compiler()) return;
    const Folder folder;
    const GpuTarget target = gpu_target("sm_80");
    const gpu::KernelSource source = some_kernel();
    const auto compiled = [&] {
        const int before = gpu::compiled_kernels();
        CHECK(gpu::machine_code(target, source).cubin.size() > 100);
        return gpu::compiled_kernels() - before;
    };
    const Variable cache("CLEBSCH_CACHE", folder.path.string());
    CHECK(compiled() == 1);
    CHECK(compiled() == 0);
    write_file(folder.only_file(), "damaged");
    CHECK(compiled() == 1);
    CHECK(compiled() == 0);
    const Variable nowhere("CLEBSCH_CACHE", (folder.only_file() / "below").string());
    CHECK(compiled() == 1);
    CHECK(compiled() == 1);
}

TEST_CASE("without the compiler (run by the next test)" * doctest::skip(std::getenv("CLEBSCH_TEST_WITHOUT_COMPILER") == nullptr)) {
    REQUIRE_FALSE(gpu::compiler_status().found);
    const GpuTarget target = gpu_target("sm_90");
    // As a plan looks for them: what the compiler refused is not there, and the next choice is.
    const auto load = [&](const Polynomial& polynomial) {
        for (const OrderedPass& pass : gpu_passes(polynomial, false)) {
            GpuProblem problem =
                gpu::gpu_problem(pass, std::vector<DType>(polynomial.operands.size(), DType::float32), DType::float32, target, false);
            gpu::gpu_kernels_for(problem, "", [&](const GpuKernels& kernels) {
                std::vector<int> spilled;
                for (const GpuStage& stage : kernels.stages) {
                    const gpu::MachineCode code = gpu::machine_code(target, {stage.kernel.name, full_text(stage)});
                    CHECK(code.cubin.size() > 100);
                    spilled.push_back(code.spilled_bytes);
                }
                return spilled;
            });
        }
    };
    load(some_polynomial());
    CHECK_THROWS_WITH_AS(load(convolution(Irreps("9x0e"), Irreps("0e"), Irreps("0e"))), doctest::Contains("clebsch prebuild"), Error);
    CHECK(gpu::compiled_kernels() == 0);
}

TEST_CASE("a folder of prebuilt kernels is filled once, read only, and serves where there is no compiler") {
    if (!has_compiler()) return;
    const Folder folder;
    const Variable cache("CLEBSCH_CACHE", "");
    gpu::PrebuiltFolder prebuilt(folder.path / "kernels", gpu_target("sm_90"));
    prebuilt.add(some_polynomial(), gpu::PlanOptions{});
    CHECK(prebuilt.compiled() > 0);
    CHECK(prebuilt.compiled() == prebuilt.kernels());
    gpu::PrebuiltFolder again(folder.path / "kernels", gpu_target("sm_90"));
    again.add(some_polynomial(), gpu::PlanOptions{});
    CHECK(again.compiled() == 0);
    CHECK(again.kernels() == prebuilt.kernels());
    const fs::path own = fs::read_symlink("/proc/self/exe");
    const std::string command = "CLEBSCH_TEST_WITHOUT_COMPILER=1 CLEBSCH_NVRTC=/nowhere/libnvrtc.so CLEBSCH_PREBUILT=/nowhere:" +
                                (folder.path / "kernels").string() + " '" + own.string() + "' -tc='without the compiler*' > " +
                                (folder.path / "log").string() + " 2>&1";
    CHECK_MESSAGE(std::system(command.c_str()) == 0, read_file(folder.path / "log"));
    CHECK_THROWS_AS(gpu::PrebuiltFolder(folder.path / "log", gpu_target("sm_90")), Error);
}

TEST_CASE("kernels of programs and of sums in a fixed order are prebuilt, too") {
    if (!has_compiler()) return;
    const Folder folder;
    gpu::PrebuiltFolder prebuilt(folder.path, gpu_target("sm_90"));
    const Program program =
        value_and_vjp(network_layers({.features = Irreps("8x0e+8x1o"), .harmonics = Irreps("0e+1o"), .hidden = 16, .layers = 1}),
                      std::vector<std::string>{"vectors", "x"});
    prebuilt.add(program, gpu::ProgramOptions{.deterministic = true});
    CHECK(prebuilt.kernels() > 10);
    const Variable folders("CLEBSCH_PREBUILT", folder.path.string());
    const int before = gpu::compiled_kernels();
    for (const gpu::KernelSource& source : gpu::RowOrder::sources(1))
        CHECK(gpu::machine_code(gpu_target("sm_90"), source).cubin.size() > 100);
    CHECK(gpu::compiled_kernels() == before);
}
