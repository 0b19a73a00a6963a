#include "emit/tape.hpp"

#include <algorithm>
#include <set>

#include "base/error.hpp"
#include "emit/chain.hpp"
#include "emit/functions.hpp"
#include "emit/text.hpp"

namespace clebsch {
namespace {

using Kind = KernelArgument::Kind;

std::size_t at(int position) { return static_cast<std::size_t>(position); }

std::string value_name(const Program& program, int value) {
    return "v" + std::to_string(value) + "_" + identifier(program.values[at(value)].name);
}

/// struct Arguments: addresses and strides of values, the number of rows.
std::vector<KernelArgument> write_values(SourceText& source, const Program& program, const std::vector<int>& values,
                                         const std::vector<int>& written, std::span<const GpuNumber> storage) {
    std::vector<KernelArgument> arguments;
    source.line("struct Arguments {");
    for (const int value : values) {
        const bool output = std::ranges::find(written, value) != written.end();
        source.line(std::string(output ? "" : "const ") + type_name(storage[at(value)]) + "* " + value_name(program, value) + ";");
        source.line("i64 " + value_name(program, value) + "_stride;");
        arguments.push_back({Kind::data, value});
        arguments.push_back({Kind::stride, value});
    }
    source.line("i64 rows;");
    source.line("};");
    arguments.push_back({Kind::rows, -1});
    constexpr std::size_t most = 4096 / 8;
    if (arguments.size() > most)
        throw Error(ErrorKind::unsupported, std::to_string(values.size()) + " values in one step are more than one GPU kernel takes");
    return arguments;
}

/// Writes the instructions of a tape; a slot is the variable it was given last.
class TapeEmitter {
 public:
    TapeEmitter(const Program& program, const LanesCode& code, std::int64_t width, std::span<const GpuNumber> storage, GpuNumber compute)
        : program_(program), code_(code), width_(width), storage_(storage), compute_(compute), slots_(at(code.slots()), "0") {}

    KernelText emit() {
        KernelText kernel{.name = "clebsch_tape", .text = {}, .arguments = {}};
        write_place(kernel);
        begin_kernel(source_, kernel.name, std::to_string(tape_threads));
        source_.line("const i64 own = static_cast<i64>(blockIdx.x) * " + std::to_string(tape_threads) + " + threadIdx.x;");
        source_.line("if (own < a.rows * " + literal(width_) + ") run_place(a, own);");
        source_.line("}");
        kernel.text = source_.text();
        return kernel;
    }

    KernelText emit_link() {
        KernelText link{.name = "run", .text = {}, .arguments = {}};
        write_place(link);
        source_.line("static __device__ __forceinline__ void run(const Arguments& a, i64 begin, i64 end) {");
        source_.line("for (i64 own = begin * " + literal(width_) + " + threadIdx.x; own < end * " + literal(width_) +
                     "; own += " + std::to_string(chain_threads) + ") run_place(a, own);");
        source_.line("}");
        link.text = source_.text();
        return link;
    }

 private:
    const Program& program_;
    const LanesCode& code_;
    std::int64_t width_;
    std::span<const GpuNumber> storage_;
    GpuNumber compute_;
    SourceText source_;
    std::vector<std::string> slots_;
    std::vector<Function> functions_;
    std::vector<int> function_of_;
    std::size_t constants_ = 0;
    int variables_ = 0;

    /// The arguments, and a function of one place of a row.
    void write_place(KernelText& kernel) {
        const LanesTape tape = code_.tape();
        for (int f = 0; f < code_.functions(); ++f) {
            const Function function{static_cast<FunctionKind>(tape.functions[f].kind), tape.functions[f].parameter};
            const auto known = std::ranges::find(functions_, function);
            function_of_.push_back(static_cast<int>(known - functions_.begin()));
            if (known != functions_.end()) continue;
            write_function(source_, "function_" + std::to_string(functions_.size()), function, compute_);
            functions_.push_back(function);
        }
        kernel.arguments = write_values(source_, program_, code_.arrays(), code_.stored(), storage_);
        source_.line("static __device__ __forceinline__ void run_place(const Arguments& a, i64 own) {");
        source_.line("const i64 row = own / " + literal(width_) + ", place = own % " + literal(width_) + ";");
        for (const int value : code_.arrays()) {
            const std::string name = value_name(program_, value);
            const bool shared = program_.values[at(value)].space.empty();
            std::vector<std::string> places = {"a." + name, "place"};
            if (!shared) places.insert(places.begin() + 1, "row * a." + name + "_stride");
            source_.line("auto* const " + name + " = " + joined(places, " + ") + ";");
        }
        walk(tape.prologue);
        walk(tape.body);
        source_.line("}");
    }

    std::string type() const { return type_name(compute_); }
    const std::string& slot(std::int32_t number) const { return slots_[at(number)]; }
    void set(std::int32_t number, const std::string& expression) {
        const std::string name = "x" + std::to_string(variables_++);
        source_.line("const " + type() + " " + name + " = " + expression + ";");
        slots_[at(number)] = name;
    }
    std::string array(std::int32_t number) const { return value_name(program_, code_.arrays()[at(number)]); }
    std::string constant() { return literal(code_.tape().constants_double[constants_++], compute_); }

    void walk(const std::int32_t* word) {
        while (true) {
            switch (static_cast<LanesOp>(*word++)) {
                case LanesOp::end:
                    return;
                case LanesOp::load:
                case LanesOp::broadcast:
                    for (std::int32_t k = 0; k < word[2]; ++k)
                        set(word[3 + k], "number<" + type() + ">(" + array(word[0]) + "[" + std::to_string(word[1] + k) + "])");
                    word += 3 + word[2];
                    break;
                case LanesOp::store:
                    for (std::int32_t k = 0; k < word[2]; ++k)
                        source_.line("store(" + array(word[0]) + " + " + std::to_string(word[1] + k) + ", " + slot(word[3 + k]) + ");");
                    word += 3 + word[2];
                    break;
                case LanesOp::products: {
                    const std::int32_t count = *word++;
                    for (std::int32_t k = 0; k < count; ++k, word += 3) set(word[0], slot(word[1]) + " * " + slot(word[2]));
                    break;
                }
                case LanesOp::combine:
                    word = combine(word);
                    break;
                case LanesOp::function:
                    set(word[1], "function_" + std::to_string(function_of_[at(word[0])]) + "(" + slot(word[2]) + ")");
                    word += 3;
                    break;
            }
        }
    }

    /// d = c + sum c a + sum c a b + sum a b
    const std::int32_t* combine(const std::int32_t* word) {
        const std::int32_t target = *word++, has_constant = *word++, linear = *word++, scaled = *word++, plain = *word++;
        std::vector<std::string> parts;
        if (has_constant != 0) parts.push_back(constant());
        for (std::int32_t k = 0; k < linear; ++k) parts.push_back(constant() + " * " + slot(*word++));
        for (std::int32_t k = 0; k < scaled; ++k, word += 2)
            parts.push_back(constant() + " * (" + slot(word[0]) + " * " + slot(word[1]) + ")");
        for (std::int32_t k = 0; k < plain; ++k, word += 2) parts.push_back(slot(word[0]) + " * " + slot(word[1]));
        set(target, parts.empty() ? "0" : joined(parts, " + "));
        return word;
    }
};

}  // namespace

KernelText emit_tape(const Program& program, const LanesCode& code, std::int64_t width, std::span<const GpuNumber> storage,
                     GpuNumber compute) {
    return TapeEmitter(program, code, width, storage, compute).emit();
}

KernelText emit_tape_link(const Program& program, const LanesCode& code, std::int64_t width, std::span<const GpuNumber> storage,
                          GpuNumber compute) {
    return TapeEmitter(program, code, width, storage, compute).emit_link();
}

KernelText emit_conversion(const Program& program, int from, int to, GpuNumber from_storage, GpuNumber to_storage) {
    KernelText kernel{.name = "clebsch_convert", .text = {}, .arguments = {}};
    std::vector<GpuNumber> storage(program.values.size(), GpuNumber::float32);
    storage[at(from)] = from_storage;
    storage[at(to)] = to_storage;
    const GpuNumber between =
        from_storage == GpuNumber::float64 && to_storage == GpuNumber::float64 ? GpuNumber::float64 : GpuNumber::float32;
    const std::string size = literal(std::max<std::int64_t>(1, program.values[at(from)].size()));
    SourceText source;
    kernel.arguments = write_values(source, program, {from, to}, {to}, storage);
    begin_kernel(source, kernel.name, std::to_string(tape_threads));
    source.line("const i64 own = static_cast<i64>(blockIdx.x) * " + std::to_string(tape_threads) + " + threadIdx.x;");
    source.line("if (own >= a.rows * " + size + ") return;");
    source.line("const i64 row = own / " + size + ", place = own % " + size + ";");
    const std::string in = value_name(program, from), out = value_name(program, to);
    source.line("store(a." + out + " + row * a." + out + "_stride + place, number<" + std::string(type_name(between)) + ">(a." + in +
                "[row * a." + in + "_stride + place]));");
    source.line("}");
    kernel.text = source.text();
    return kernel;
}

KernelText emit_copy() {
    KernelText kernel{.name = "clebsch_copy", .text = {}, .arguments = {}};
    SourceText source;
    source.line("struct Arguments {");
    source.line("const uint4* from;");
    source.line("uint4* to;");
    source.line("i64 count;");
    source.line("};");
    begin_kernel(source, kernel.name, std::to_string(tape_threads));
    source.line("const i64 own = static_cast<i64>(blockIdx.x) * " + std::to_string(tape_threads) + " + threadIdx.x;");
    source.line("if (own < a.count) a.to[own] = __ldcv(a.from + own);");
    source.line("}");
    kernel.text = source.text();
    return kernel;
}

LaunchShape tape_shape(std::int64_t places) {
    LaunchShape shape{.grid = {(places + tape_threads - 1) / tape_threads, 1}, .threads = tape_threads};
    if (shape.grid[0] > 0x7fffffff)
        throw Error(ErrorKind::unsupported,
                    "a launch of " + std::to_string(places) + " threads is beyond what a GPU takes; divide the rows");
    return shape;
}

}  // namespace clebsch
