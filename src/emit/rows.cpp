#include "emit/rows.hpp"

#include <algorithm>
#include <set>

#include "emit/text.hpp"
#include "schedule/letters.hpp"

namespace clebsch {
namespace {

using Kind = KernelArgument::Kind;

constexpr std::string_view once = "#pragma unroll 1";  // less code for all warps to fetch, and less to compile

std::string number(std::int64_t value) { return literal(value); }

class RowsEmitter {
 public:
    RowsEmitter(const GpuProblem& problem, const RowsSchedule& schedule) : problem_(problem), schedule_(schedule) {}

    KernelText emit() {
        KernelText kernel{.name = "clebsch_rows", .text = {}, .arguments = arguments()};
        source_.line("// A warp a row: what is no matrix lies in its part of shared memory, at n.");
        write_arguments(source_, problem_, kernel.arguments);
        begin_kernel(source_, kernel.name, number(32 * RowsSchedule::warps) + ", " + number(schedule_.blocks));
        source_.line("DYNAMIC_SHARED(memory);");
        source_.line("const int lane = threadIdx.x % 32;");
        source_.line(type() + "* const n = reinterpret_cast<" + type() + "*>(memory) + threadIdx.x / 32 * " + number(schedule_.numbers) +
                     ";");
        source_.line(type() + "* const right = n + " + number(schedule_.right_place) + ";");
        source_.line("const i64 row = static_cast<i64>(blockIdx.x) * " + number(RowsSchedule::warps) + " + threadIdx.x / 32;");
        source_.line("if (row >= a.rows) return;");
        for (const RowsAsked& asked : schedule_.asked)
            source_.line("ask_for(" + name(Kind::data, asked.operand) + ", row, " + name(Kind::stride, asked.operand) + ", " +
                         number(asked.numbers) + ");");
        write_rows();
        write_inputs();
        if (masked_) source_.line("if (!masked) {");
        for (const RowsProduct& product : schedule_.products)
            if (schedule_.ahead && product.kind != RowsProduct::Kind::into_left) write_left(product);
        if (schedule_.ahead) source_.line("__syncwarp();");
        for (const RowsProduct& product : schedule_.products) write_product(product);
        if (masked_) {
            source_.line("} else {");
            for (const RowsProduct& product : schedule_.products)
                if (product.kind == RowsProduct::Kind::written) write_zero(product.operand, product.segment);
            source_.line("}");
        }
        for (const auto& [operand, segment] : schedule_.zero) write_zero(operand, segment);
        write_outputs();
        source_.line("}");
        kernel.text = source_.text();
        return kernel;
    }

 private:
    const GpuProblem& problem_;
    const RowsSchedule& schedule_;
    std::vector<std::vector<std::string>> chains_;  // of indices, each once
    bool masked_ = false;
    SourceText source_;

    const Polynomial& polynomial() const { return problem_.polynomial; }
    const Operand& operand(int o) const { return polynomial().operands[static_cast<std::size_t>(o)]; }
    const Segment& segment(int o, int s) const { return operand(o).segments[static_cast<std::size_t>(s)]; }
    const Path& path(int p) const { return polynomial().paths[static_cast<std::size_t>(p)]; }
    std::string type() const { return type_name(problem_.compute); }
    std::string name(Kind kind, int which) const { return "a." + argument_name(problem_, {kind, which}); }
    bool summed(int o) const { return operand(o).role == Role::output && operand(o).rows.kind != Addressing::Kind::each; }
    bool has_numbers(int o) const { return !schedule_.matrix[static_cast<std::size_t>(o)] && operand(o).size() > 0; }
    std::string place(int o) const { return "n + " + number(schedule_.place[static_cast<std::size_t>(o)]); }

    std::int64_t channel_stride(int o, int s) const { return operand(o).layout == Layout::mul_ir ? segment(o, s).components : 1; }
    std::int64_t component_stride(int o, int s) const { return operand(o).layout == Layout::mul_ir ? 1 : segment(o, s).multiplicity; }

    std::vector<KernelArgument> arguments() const {
        std::vector<KernelArgument> list;
        for (int o = 0; o < static_cast<int>(polynomial().operands.size()); ++o) {
            list.push_back({summed(o) ? Kind::sums : Kind::data, o});
            list.push_back({summed(o) ? Kind::sums_stride : Kind::stride, o});
        }
        for (int i = 0; i < static_cast<int>(polynomial().indices.size()); ++i)
            for (const Kind kind : {Kind::index, Kind::index_rows, Kind::index_wide}) list.push_back({kind, i});
        for (const Kind kind : {Kind::rows, Kind::aligned, Kind::error}) list.push_back({kind, -1});
        return list;
    }

    std::string row_of(int o) const {
        const Operand& one = operand(o);
        if (one.rows.kind == Addressing::Kind::each) return "row";
        if (one.rows.kind == Addressing::Kind::shared) return "0";
        return "at_" + std::to_string(std::ranges::find(chains_, one.rows.via) - chains_.begin());
    }
    std::string address(int o) const {
        return name(summed(o) ? Kind::sums : Kind::data, o) + " + " + row_of(o) + " * " +
               name(summed(o) ? Kind::sums_stride : Kind::stride, o);
    }

    /// Rows that indices lead to; all paths use all of them, so that a row without one of them is zero.
    void write_rows() {
        for (const Operand& one : polynomial().operands) {
            if (one.rows.kind != Addressing::Kind::indexed || std::ranges::find(chains_, one.rows.via) != chains_.end()) continue;
            source_.line("const i64 at_" + std::to_string(chains_.size()) + " = " + look_up(problem_, one.rows.via, "row") + ";");
            chains_.push_back(one.rows.via);
        }
        masked_ = !chains_.empty();
        std::vector<std::string> none;
        for (std::size_t c = 0; c < chains_.size(); ++c) none.push_back("at_" + std::to_string(c) + " < 0");
        if (masked_) source_.line("const bool masked = " + joined(none, " || ") + ";");
    }

    void write_inputs() {
        for (int o = 0; o < static_cast<int>(polynomial().operands.size()); ++o) {
            if (!has_numbers(o)) continue;
            const bool output = operand(o).role == Role::output, used = output || is_used(o);
            if (!used) continue;
            source_.line(
                "for (int i = lane; i < " + number(operand(o).size()) + "; i += 32) (" + place(o) + ")[i] = " +
                (output ? "0;" : (masked_ ? "masked ? 0 : " : "") + std::string("number<") + type() + ">((" + address(o) + ")[i]);"));
        }
        source_.line("__syncwarp();");
    }
    bool is_used(int o) const {
        return std::ranges::any_of(polynomial().paths, [&](const Path& one) {
            return std::ranges::any_of(one.factors, [&](const Factor& factor) { return factor.operand == o; });
        });
    }

    void write_outputs() {
        source_.line("__syncwarp();");
        for (int o = 0; o < static_cast<int>(polynomial().operands.size()); ++o) {
            if (operand(o).role != Role::output || !has_numbers(o)) continue;
            source_.line((summed(o) && masked_ ? "if (!masked) " : "") + std::string("for (int i = lane; i < ") +
                         number(operand(o).size()) + "; i += 32) " + (summed(o) ? "add(" : "store(") + address(o) + " + i, (" + place(o) +
                         ")[i]);");
        }
    }

    void write_zero(int o, int s) {
        source_.line("for (int i = lane; i < " + number(segment(o, s).size()) + "; i += 32) store(" + address(o) + " + " +
                     number(operand(o).offset(s)) + " + i, static_cast<" + type() + ">(0));");
    }

    void write_product(const RowsProduct& product) {
        using ProductKind = RowsProduct::Kind;
        const Operand& matrix = operand(product.operand);
        source_.line("// " + matrix.name + "." + std::to_string(product.segment) + ", " + number(product.left) + " x " +
                     number(product.right));
        source_.line("{");
        const bool into_right = product.kind == ProductKind::into_right, several = product.uses.size() > 1;
        bool wrote = false;
        if (product.kind != ProductKind::into_left && !schedule_.ahead) {
            write_left(product);
            wrote = true;
        }
        // One factor along columns stays where it is.
        const RowsUse& only = product.uses.front();
        std::string right = "n + " + number(schedule_.right_place), strides = number(product.components) + ", 1";
        if (several) {
            if (into_right)
                source_.line("for (int i = lane; i < " + number(product.right * product.components) + "; i += 32) right[i] = 0;");
            else
                for (const RowsUse& use : product.uses) write_right(product, use, true);
            wrote = true;
        } else {
            right = place(only.operand) + " + " + number(operand(only.operand).offset(only.segment));
            strides = number(channel_stride(only.operand, only.segment)) + ", " + number(component_stride(only.operand, only.segment));
        }
        if (wrote) source_.line("__syncwarp();");
        const std::string call = into_right ? "into_right" : product.kind == ProductKind::into_left ? "into_left" : "write";
        source_.line("RowMatrix<" + type() + ", " + number(product.left) + ", " + number(product.right) + ", " +
                     number(product.components) + ", " + number(product.vector) + ", " + number(product.lanes) + ", " + strides +
                     ">::" + call + "(" + address(product.operand) + " + " + number(matrix.offset(product.segment)) + ", " +
                     (product.operand < 64 ? "(a.aligned >> " + number(product.operand) + " & 1) != 0" : "false") + ", n + " +
                     number(product.left_place) + ", " + right + ");");
        source_.line("__syncwarp();");
        if (into_right && several)
            for (const RowsUse& use : product.uses) write_right(product, use, false);
        if (product.kind == ProductKind::into_left)
            for (const RowsUse& use : product.uses)
                for (const int p : use.paths) write_path_into_left(product, use, p);
        if (into_right && several) source_.line("__syncwarp();");
        source_.line("}");
    }

    /// Numbers of the factor along columns, into `right` or from there.
    void write_right(const RowsProduct& product, const RowsUse& use, bool reads) {
        const std::string from = "(" + place(use.operand) + ")[" + number(operand(use.operand).offset(use.segment)) + " + i / " +
                                 number(use.components) + " * " + number(channel_stride(use.operand, use.segment)) + " + i % " +
                                 number(use.components) + " * " + number(component_stride(use.operand, use.segment)) + "]";
        const std::string to = "right[i / " + number(use.components) + " * " + number(product.components) + " + " + number(use.first) +
                               " + i % " + number(use.components) + "]";
        source_.line("for (int i = lane; i < " + number(product.right * use.components) + "; i += 32) " +
                     (reads ? to + " = " + from : from + " += " + to) + ";");
    }

    std::string letter(char name) const { return std::string("l_") + name; }
    /// Letters of a flat number, outermost first.
    void write_letters(const Path& one, const std::string& letters, const std::string& flat) {
        std::int64_t below = 1;
        for (auto l = letters.rbegin(); l != letters.rend(); ++l) {
            source_.line("const int " + letter(*l) + " = " + flat + " / " + number(below) + " % " + number(one.extent(*l)) + ";");
            below *= one.extent(*l);
        }
    }
    /// Flat number of letters that are known.
    std::string flat(const Path& one, const std::string& letters) const {
        std::vector<std::string> parts;
        std::int64_t below = 1;
        for (auto l = letters.rbegin(); l != letters.rend(); ++l) {
            parts.push_back(letter(*l) + " * " + number(below));
            below *= one.extent(*l);
        }
        return parts.empty() ? "0" : joined(parts, " + ");
    }
    /// The first component of a factor's channel in the warp's memory.
    std::string place_of_factor(const Path& one, const Factor& factor) const {
        return "n[" + number(schedule_.place[static_cast<std::size_t>(factor.operand)] + operand(factor.operand).offset(factor.segment)) +
               " + (" + flat(one, factor.channels) + ") * " + number(channel_stride(factor.operand, factor.segment));
    }

    /// Positions of a path's factors along rows that are inputs.
    std::vector<std::size_t> left_inputs(const RowsProduct& product, const RowsUse& use, const Path& one) const {
        std::vector<std::size_t> list;
        for (std::size_t f = 0; f + 1 < one.factors.size(); ++f)
            if (f != matrix_at(product, one) && f != right_at(product, use, one)) list.push_back(f);
        return list;
    }
    static std::size_t matrix_at(const RowsProduct& product, const Path& one) {
        return static_cast<std::size_t>(
            std::ranges::find_if(
                one.factors, [&](const Factor& factor) { return factor.operand == product.operand && factor.segment == product.segment; }) -
            one.factors.begin());
    }
    static std::size_t right_at(const RowsProduct& product, const RowsUse& use, const Path& one) {
        const std::string& channels = one.factors[matrix_at(product, one)].channels;
        return static_cast<std::size_t>(std::ranges::find_if(one.factors,
                                                             [&](const Factor& factor) {
                                                                 return factor.operand == use.operand && factor.segment == use.segment &&
                                                                        factor.channels == channels.substr(product.rows.size());
                                                             }) -
                                        one.factors.begin());
    }

    /// Loads what entries name; returns the product of an entry's coefficient and loaded numbers.
    void write_loads(int p, const std::vector<std::size_t>& inputs, const std::vector<CoefficientEntry>& entries) {
        std::set<std::pair<std::size_t, int>> loaded;
        for (const CoefficientEntry& entry : entries)
            for (const std::size_t f : inputs) loaded.emplace(f, entry.index[f]);
        for (const auto& [f, component] : loaded) {
            const Factor& factor = path(p).factors[f];
            source_.line("const " + type() + " v" + std::to_string(f) + "_" + std::to_string(component) + " = " +
                         place_of_factor(path(p), factor) + " + " + number(component * component_stride(factor.operand, factor.segment)) +
                         "];");
        }
    }
    std::string product_of(const CoefficientEntry& entry, const std::vector<std::size_t>& inputs) const {
        std::string text = literal(entry.value, problem_.compute);
        for (const std::size_t f : inputs) text += " * v" + std::to_string(f) + "_" + std::to_string(entry.index[f]);
        return text;
    }

    /// left[l][k] from the factors along rows.
    void write_left(const RowsProduct& product) {
        source_.line(once);
        source_.line("for (int l = lane; l < " + number(product.left) + "; l += 32) {");
        for (int k = 0; k < product.components; ++k) source_.line(type() + " sum_" + std::to_string(k) + " = 0;");
        for (const RowsUse& use : product.uses)
            for (const int p : use.paths) {
                const Path& one = path(p);
                const std::vector<std::size_t> inputs = left_inputs(product, use, one);
                const std::vector<CoefficientEntry> entries = reduced_entries(one);
                source_.line("{");
                const std::string& channels = one.factors[matrix_at(product, one)].channels;
                write_letters(one, channels.substr(0, product.rows.size()), "l");
                write_loads(p, inputs, entries);
                const std::size_t right = right_at(product, use, one);
                for (const CoefficientEntry& entry : entries)
                    if (entry.value != 0)
                        source_.line("sum_" + std::to_string(use.first + entry.index[right]) + " += " + product_of(entry, inputs) + ";");
                source_.line("}");
            }
        for (int k = 0; k < product.components; ++k)
            source_.line("n[" + number(product.left_place) + " + l * " + number(product.components) + " + " + number(k) + "] = sum_" +
                         std::to_string(k) + ";");
        source_.line("}");
    }

    /// An output along rows from left[l][k]: lanes have channels of it, or share the sum of one.
    void write_path_into_left(const RowsProduct& product, const RowsUse& use, int p) {
        const Path& one = path(p);
        const Factor& output = one.output();
        const std::string rows = one.factors[matrix_at(product, one)].channels.substr(0, product.rows.size());
        std::string contracted;
        std::int64_t channels = 1, sums = 1;
        for (const char l : rows) {
            if (output.channels.find(l) == std::string::npos) contracted += l, sums *= one.extent(l);
            else channels *= one.extent(l);
        }
        std::vector<CoefficientEntry> entries = reduced_entries(one);
        std::erase_if(entries, [](const CoefficientEntry& entry) { return entry.value == 0; });
        std::set<int> components;
        for (const CoefficientEntry& entry : entries) components.insert(entry.index.back());
        const bool shares = channels < 16 && sums > 8;
        source_.line(once);
        source_.line("for (int c = " + std::string(shares ? "0; c < " : "lane; c < ") + number(channels) +
                     (shares ? "; ++c) {" : "; c += 32) {"));
        for (const int c : components) source_.line(type() + " sum_" + std::to_string(c) + " = 0;");
        write_letters(one, output.channels, "c");
        source_.line(once);
        source_.line("for (int m = " + std::string(shares ? "lane; m < " : "0; m < ") + number(sums) +
                     (shares ? "; m += 32) {" : "; ++m) {"));
        write_letters(one, contracted, "m");
        const std::vector<std::size_t> inputs = left_inputs(product, use, one);
        write_loads(p, inputs, entries);
        source_.line("const " + type() + "* const s = n + " + number(product.left_place) + " + (" + flat(one, rows) + ") * " +
                     number(product.components) + " + " + number(use.first) + ";");
        const std::size_t right = right_at(product, use, one);
        for (const CoefficientEntry& entry : entries)
            source_.line("sum_" + std::to_string(entry.index.back()) + " += s[" + number(entry.index[right]) + "] * (" +
                         product_of(entry, inputs) + ");");
        source_.line("}");
        if (shares)
            for (const int c : components) source_.line("sum_" + std::to_string(c) + " = warp_sum(sum_" + std::to_string(c) + ");");
        for (const int c : components)
            source_.line((shares ? "if (lane == 0) " : "") + place_of_factor(one, output) + " + " +
                         number(c * component_stride(output.operand, output.segment)) + "] += sum_" + std::to_string(c) + ";");
        source_.line("}");
        source_.line("__syncwarp();");
    }
};

}  // namespace

KernelText emit_rows(const GpuProblem& problem, const RowsSchedule& schedule) { return RowsEmitter(problem, schedule).emit(); }

}  // namespace clebsch
