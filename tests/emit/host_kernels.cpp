#include "emit/host_kernels.hpp"

#include <dlfcn.h>
#include <doctest/doctest.h>
#include <unistd.h>

#include <cmath>
#include <cstdlib>

#include "base/error.hpp"
#include "base/file.hpp"
#include "emit/text.hpp"
#include "run/call.hpp"
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

DType dtype_of(GpuNumber type) {
    return type == GpuNumber::float32    ? DType::float32
           : type == GpuNumber::bfloat16 ? DType::bfloat16
           : type == GpuNumber::float16  ? DType::float16
                                         : DType::float64;
}

class Runner {
 public:
    Runner(const Prepared& prepared, std::vector<double*> arrays, const Indices& indices, const Rows& rows, bool aligned, std::int64_t gap)
        : prepared_(prepared), arrays_(std::move(arrays)), indices_(indices), rows_(rows), aligned_(aligned), gap_(gap) {}

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
        chunks_ = gpu_chunks(prepared_.kernels, rows, 1, 128);
        if (!prepared_.kernels.streams.empty()) {  // many borders between chunks
            const bool divided = rows > 4096 || aligned_;
            chunks_ = {.rows = 32, .count = (rows + 31) / 32, .reach = divided ? 8 : rows, .divided = divided};
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
    std::int64_t gap_;
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
                return static_cast<std::uint64_t>(polynomial().operands[which].size() +
                                                  (polynomial().operands[which].role == Role::input ? gap_ : 0));
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

}  // namespace

void put_number(void* array, GpuNumber type, std::int64_t i, long double number) {
    store_number(static_cast<std::byte*>(array) + i * static_cast<std::int64_t>(size_of(dtype_of(type))), dtype_of(type), number);
}
long double number_at(const void* array, GpuNumber type, std::int64_t i) {
    return load_number(static_cast<const std::byte*>(array) + i * static_cast<std::int64_t>(size_of(dtype_of(type))), dtype_of(type));
}

HostKernels::HostKernels() {
    std::string name = (fs::temp_directory_path() / "clebsch-emitted-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr) fail("no temporary folder");
    folder_ = name;
}

HostKernels::~HostKernels() {
    if (handle_ != nullptr) ::dlclose(handle_);
    std::error_code error;
    fs::remove_all(folder_, error);
}

int HostKernels::add(const KernelText& kernel) {
    const std::string n = std::to_string(names_.size());
    text_ += "\nnamespace kernel_" + n + " {\n" + without(kernel.text, "extern \"C\" ") + "}\n" + "extern \"C\" int run_" + n +
             "(const unsigned long long* words, unsigned x, unsigned y, int threads) {\n" + "    static kernel_" + n +
             "::Arguments arguments;\n" + "    std::memcpy(&arguments, words, sizeof arguments);\n" + "    host::body = [] { kernel_" + n +
             "::" + kernel.name + "(arguments); };\n" + "    gridDim.x = x;\n    gridDim.y = y;\n    blockDim.x = threads;\n" +
             "    for (blockIdx.y = 0; blockIdx.y < y; ++blockIdx.y)\n" + "        for (blockIdx.x = 0; blockIdx.x < x; ++blockIdx.x)\n" +
             "            if (!host::run_block(threads, blockIdx.x * 7 + blockIdx.y)) return 0;\n" + "    return 1;\n}\n";
    names_.push_back(kernel.name);
    return static_cast<int>(names_.size()) - 1;
}

void HostKernels::compile() {
    const std::string text = (folder_ / "kernels.cpp").string(), library = (folder_ / "kernels.so").string(),
                      log = (folder_ / "log").string();
    write_file(text, read_file(fs::path(CLEBSCH_SOURCE_DIR) / "tests/emit/host_device.hpp") + portable(device_preamble()) +
                         portable(stream_preamble()) + portable(matrix_preamble()) + std::string(gradient_preamble()) +
                         portable(halves_preamble()) + portable(rows_preamble()) + portable(order_preamble()) + text_);
    if (std::system(("c++ -std=c++17 -O1 -w -shared -fPIC -o " + library + " " + text + " > " + log + " 2>&1").c_str()) != 0)
        fail("the host compiler refused emitted kernels:\n" + read_file(log).substr(0, 4000));
    handle_ = ::dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle_ == nullptr) fail(std::string("cannot load emitted kernels: ") + ::dlerror());
}

void HostKernels::run(int kernel, const std::vector<std::uint64_t>& words, const LaunchShape& shape) const {
    const auto call = reinterpret_cast<int (*)(const std::uint64_t*, unsigned, unsigned, int)>(
        ::dlsym(handle_, ("run_" + std::to_string(kernel)).c_str()));
    if (call(words.data(), static_cast<unsigned>(shape.grid[0]), static_cast<unsigned>(shape.grid[1]), shape.threads) == 0)
        fail("kernel " + names_[static_cast<std::size_t>(kernel)] + ": its threads wait for one another");
}

Prepared prepare(const Polynomial& polynomial, const std::string& schedule, bool ordered, std::vector<bool> messages,
                 std::vector<GpuNumber> storage, SpareRegisters spare) {
    if (storage.empty()) storage.assign(polynomial.operands.size(), GpuNumber::float64);
    GpuProblem problem{.polynomial = polynomial,
                       .storage = std::move(storage),
                       .compute = GpuNumber::float64,
                       .target = gpu_target("sm_90"),
                       .ordered = ordered,
                       .messages = std::move(messages)};
    constexpr std::size_t most_kernels = 32;
    GpuKernels kernels = gpu_kernels(problem, schedule, std::vector<SpareRegisters>(most_kernels, spare));
    return {std::move(problem), std::move(kernels)};
}

std::int64_t rows_of(const Rows& rows, const std::string& space) { return space.empty() ? 1 : rows.at(space); }

void run_stages(const HostKernels& host, int first, const Prepared& prepared, const std::vector<double*>& arrays, const Indices& indices,
                const Rows& rows, bool aligned, std::int64_t gap) {
    Runner(prepared, arrays, indices, rows, aligned, gap).run(host, first);
}

}  // namespace clebsch::testing
