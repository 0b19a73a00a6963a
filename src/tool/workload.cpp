#include "tool/workload.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "base/error.hpp"
#include "run/machine.hpp"
#include "tool/report.hpp"

namespace clebsch::tool {
namespace {

constexpr std::int64_t block_size = 1'000'003;  // a prime: rows do not repeat with it

const std::vector<float>& normal_block() {
    static const std::vector<float> block = [] {
        std::vector<float> numbers(static_cast<std::size_t>(block_size));
        std::mt19937_64 engine(20240229);
        std::normal_distribution<float> normal;
        for (float& number : numbers)
            while (number == 0) number = normal(engine);
        return numbers;
    }();
    return block;
}

std::uint64_t mixed(std::uint64_t x) {
    x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9U;
    x = (x ^ (x >> 27U)) * 0x94d049bb133111ebU;
    return x ^ (x >> 31U);
}
std::uint64_t seed_of(const std::string& name, std::uint64_t seed) {
    std::uint64_t hash = seed;
    for (const char c : name) hash = mixed(hash * 31 + static_cast<unsigned char>(c));
    return hash;
}

/// What a call would take: the system gives addresses for it and ends the program when it is written.
class Demand {
 public:
    void add(const std::string& name, std::int64_t rows, std::int64_t row_size, std::size_t number) {
        const double size = static_cast<double>(rows) * static_cast<double>(row_size) * static_cast<double>(number);
        total_ += size;
        if (size <= largest_) return;
        largest_ = size;
        text_ = "'" + name + "' with " + std::to_string(rows) + " rows of " + std::to_string(row_size) + " numbers of " +
                std::to_string(number) + " bytes";
    }
    /// Throws Error naming the largest array unless there is memory for all.
    void require_memory() const {
        const auto free = static_cast<double>(machine_info().free_memory_bytes);
        if (free > 0 && total_ > free)
            throw Error(ErrorKind::unsupported, "no memory for arrays of " + bytes(total_).text + ", of which " + bytes(free).text +
                                                    " is free; the largest is " + text_ + ": choose fewer nodes, neighbours or rows");
    }

 private:
    double total_ = 0, largest_ = 0;
    std::string text_;
};

std::variant<PolynomialPlan, ProgramPlan, GpuWorkload> make_plan(const Description& description, DType dtype,
                                                                 const WorkloadOptions& options) {
    if (options.gpu) return GpuWorkload(description, dtype, *options.gpu, options.deterministic);
    const std::size_t arguments = arguments_of(description).size();
    if (const auto* polynomial = std::get_if<Polynomial>(&description)) {
        PlanOptions plan;
        plan.dtypes.assign(arguments, dtype);
        plan.instruction_set = options.isa;
        plan.family = options.family;
        return PolynomialPlan(*polynomial, plan);
    }
    ProgramOptions plan;
    plan.dtypes.assign(arguments, dtype);
    plan.instruction_set = options.isa;
    plan.family = options.family;
    return ProgramPlan(std::get<Program>(description), plan);
}

}  // namespace

std::vector<Argument> arguments_of(const Description& description) {
    std::vector<Argument> arguments;
    if (const auto* polynomial = std::get_if<Polynomial>(&description)) {
        for (const Operand& operand : polynomial->operands)
            arguments.push_back(
                {operand.name, operand.segments, operand.layout, operand.role, polynomial->space_of(operand), operand.size()});
        return arguments;
    }
    const Program& program = std::get<Program>(description);
    const auto add = [&](int number, Role role) {
        const Value& value = program.values[static_cast<std::size_t>(number)];
        arguments.push_back({value.name, value.segments, value.layout, role, value.space, value.size()});
    };
    for (const int input : program.inputs) add(input, Role::input);
    for (const int output : program.outputs) add(output, Role::output);
    return arguments;
}

std::vector<std::string> input_names(const Description& description) {
    std::vector<std::string> names;
    for (const Argument& argument : arguments_of(description))
        if (argument.role == Role::input) names.push_back(argument.name);
    return names;
}

const std::vector<Index>& indices_of(const Description& description) {
    return std::visit([](const auto& value) -> const std::vector<Index>& { return value.indices; }, description);
}

std::vector<std::string> spaces_of(const Description& description) {
    return std::visit([](const auto& value) { return row_spaces(value); }, description);
}

bool computes(const Description& description) {
    if (const auto* polynomial = std::get_if<Polynomial>(&description)) return !polynomial->paths.empty();
    return std::ranges::any_of(std::get<Program>(description).nodes, [](const Node& node) {
        const auto* applied = std::get_if<PolynomialNode>(&node);
        return applied == nullptr || !applied->polynomial.paths.empty();
    });
}

std::string iteration_space(const Description& description) {
    if (const auto* polynomial = std::get_if<Polynomial>(&description)) return polynomial->rows;
    const Program& program = std::get<Program>(description);
    for (const Node& node : program.nodes)
        if (const auto* polynomial = std::get_if<PolynomialNode>(&node))
            if (!polynomial->polynomial.rows.empty()) return polynomial->polynomial.rows;
    for (const int input : program.inputs)
        if (const std::string& space = program.values[static_cast<std::size_t>(input)].space; !space.empty()) return space;
    return "";
}

Topology make_topology(const Description& description, const TopologyOptions& options) {
    Topology topology;
    const std::vector<Index>& indices = indices_of(description);
    constexpr std::int64_t few = 10;  // elements, graphs
    for (const std::string& space : spaces_of(description)) {
        const bool target = std::ranges::any_of(indices, [&](const Index& index) { return index.to == space; });
        std::int64_t rows = options.rows;
        if (space == "edge") rows = options.nodes * options.neighbours;
        else if (space == "node") rows = options.nodes;
        else if (space.empty()) rows = 1;
        else if (target) rows = few;
        topology.rows[space] = rows;
    }
    Demand demand;
    for (const Index& index : indices) demand.add(index.name, topology.rows.at(index.from), 1, sizeof(std::int64_t));
    demand.require_memory();
    std::mt19937_64 engine(options.seed);
    for (const Index& index : indices) {
        const std::int64_t from = topology.rows.at(index.from), to = topology.rows.at(index.to);
        std::vector<std::int64_t> values(static_cast<std::size_t>(from), -1);
        if (to > 0) {
            std::uniform_int_distribution<std::int64_t> any(0, to - 1);
            for (std::int64_t i = 0; i < from; ++i)
                values[static_cast<std::size_t>(i)] =
                    index.sorted && !options.ragged
                        ? static_cast<std::int64_t>(static_cast<double>(i) / static_cast<double>(from) * static_cast<double>(to))
                        : any(engine);
            if (index.sorted) std::ranges::sort(values);
            else if (options.ragged && from > 3) values[static_cast<std::size_t>(from / 2)] = -1;
        }
        topology.indices[index.name] = std::move(values);
    }
    return topology;
}

Topology topology_of(const Graph& graph) {
    Topology topology;
    topology.rows = {{"edge", graph.edges()}, {"node", graph.nodes}};
    topology.indices = {{"sender", graph.sender}, {"receiver", graph.receiver}};
    return topology;
}

Array::Array(DType dtype, std::int64_t rows, std::int64_t size) : dtype_(dtype), rows_(rows), size_(size) {
    std::int64_t numbers = 0;
    constexpr std::int64_t most = std::int64_t{1} << 40;
    if (__builtin_mul_overflow(rows, size, &numbers) || numbers > most)
        fail("an array of " + std::to_string(rows) + " rows of " + std::to_string(size) + " numbers is too large");
    memory_ = Memory(byte_count());
}

void Array::fill_normal(std::uint64_t seed) {
    const std::vector<float>& block = normal_block();
    std::int64_t position = static_cast<std::int64_t>(mixed(seed) % static_cast<std::uint64_t>(block_size));
    for (std::int64_t i = 0; i < count();) {
        const std::int64_t piece = std::min(count() - i, block_size - position);
        const float* from = block.data() + position;
        if (dtype_ == DType::float64) std::copy(from, from + piece, at<double>() + i);
        else std::memcpy(at<float>() + i, from, static_cast<std::size_t>(piece) * sizeof(float));
        i += piece;
        position = 0;
    }
}

void Array::fill(const ReferenceArray& numbers) {
    if (static_cast<std::int64_t>(numbers.size()) != count())
        fail("an array of " + std::to_string(count()) + " numbers cannot hold " + std::to_string(numbers.size()));
    for (std::int64_t i = 0; i < count(); ++i) set(i, static_cast<double>(numbers[static_cast<std::size_t>(i)]));
}

ReferenceArray Array::numbers(std::int64_t first_row, std::int64_t rows) const {
    const std::int64_t begin = first_row * size_, end = rows < 0 ? count() : (first_row + rows) * size_;
    ReferenceArray result;
    result.reserve(static_cast<std::size_t>(end - begin));
    for (std::int64_t i = begin; i < end; ++i) result.push_back(get(i));
    return result;
}

Array& Arrays::get(const Argument& argument, std::int64_t rows) {
    const auto key = std::pair(argument.name, argument.role);
    const auto found = arrays_.find(key);
    if (found != arrays_.end()) {
        if (found->second.rows() == rows && found->second.size() == argument.size) return found->second;
        if (argument.role == Role::input)
            fail("array '" + argument.name + "': expected " + std::to_string(rows) + " rows of " + std::to_string(argument.size) +
                 " numbers, there are " + std::to_string(found->second.rows()) + " of " + std::to_string(found->second.size()));
        arrays_.erase(found);
    }
    Array& array = arrays_.emplace(key, Array(dtype_, rows, argument.size)).first->second;
    if (argument.role == Role::input) array.fill_normal(seed_of(argument.name, seed_));
    return array;
}

void Arrays::put(const std::string& name, Array array) { arrays_.insert_or_assign({name, Role::input}, std::move(array)); }

void Arrays::drop(const std::string& name) {
    arrays_.erase({name, Role::input});
    arrays_.erase({name, Role::output});
}

Array Arrays::take(const std::string& name, Role role) {
    auto node = arrays_.extract({name, role});
    if (node.empty()) fail("there is no array '" + name + "'");
    return std::move(node.mapped());
}

Array* Arrays::find(const std::string& name, Role role) {
    const auto found = arrays_.find({name, role});
    return found == arrays_.end() ? nullptr : &found->second;
}

Workload::Workload(Description description, const Topology& topology, Arrays& arrays, const WorkloadOptions& options)
    : description_(std::move(description)),
      topology_(topology),
      arrays_(arrays),
      plan_(make_plan(description_, arrays.dtype(), options)),
      arguments_(arguments_of(description_)) {
    const auto rows_in = [&](const std::string& space) {
        if (space.empty()) return std::int64_t{1};
        const auto found = topology.rows.find(space);
        if (found == topology.rows.end()) fail("row space '" + space + "': its number of rows is not known");
        return found->second;
    };
    Demand demand;
    for (const Argument& argument : arguments_)
        if (arrays_.find(argument.name, argument.role) == nullptr)
            demand.add(argument.name, rows_in(argument.space), argument.size, size_of(arrays_.dtype()));
    demand.require_memory();
    for (const Argument& argument : arguments_) {
        arrays_.get(argument, rows_in(argument.space));
        roles_.push_back(argument.role);
    }
    for (const std::string& space : spaces_of(description_)) row_counts_.push_back(rows_in(space));
    for (const Index& index : indices_of(description_)) {
        const auto found = topology.indices.find(index.name);
        if (found == topology.indices.end()) fail("index '" + index.name + "': its values are not known");
        index_buffers_.push_back({found->second.data(), IndexType::int64, static_cast<std::int64_t>(found->second.size())});
    }
}

std::int64_t Workload::rows() const {
    const std::string space = iteration_space(description_);
    return space.empty() ? 1 : topology_.rows.at(space);
}

void Workload::run(const ParallelFor& parallel_for) {
    std::vector<Buffer> buffers;
    for (const Argument& argument : arguments_) buffers.push_back(arrays_.find(argument.name, argument.role)->buffer());
    const Call call{.buffers = buffers, .indices = index_buffers_, .rows = row_counts_, .indices_checked = false};
    if (const auto* gpu = std::get_if<GpuWorkload>(&plan_)) return gpu->run(call, roles_);
    const int threads = parallel_for.run == nullptr ? 1 : std::max(1, parallel_for.threads);
    if (workspace_threads_ != threads) {
        workspace_ = Memory();
        const std::size_t bytes = on_processor([&](const auto& plan) { return plan.workspace_bytes(row_counts_, threads); });
        workspace_ = Memory(bytes, "the workspace");
        workspace_threads_ = threads;
    }
    on_processor([&](const auto& plan) { plan.launch(call, {workspace_.data(), workspace_.size()}, parallel_for); });
}

Work Workload::work() const {
    return std::visit([&](const auto& plan) { return plan.work(row_counts_); }, plan_);
}
std::string Workload::explain() const {
    return std::visit([](const auto& plan) { return plan.explain(); }, plan_);
}

std::string Workload::schedule() const {
    if (const auto* gpu = std::get_if<GpuWorkload>(&plan_)) return gpu->schedule();
    // A kernel's line begins with "fold: 23 paths (".
    std::map<std::string, int> paths;
    int nodes = 0;  // of programs, run as one tape: "3 nodes fused"
    const std::string text = explain();
    for (std::size_t begin = 0; begin < text.size();) {
        const std::size_t end = std::min(text.find('\n', begin), text.size());
        const std::size_t first = std::min(text.find_first_not_of(' ', begin), end);
        const std::string line = text.substr(first, end - first);
        const std::size_t colon = line.find(": ");
        if (colon != std::string::npos && line.find(' ') > colon) {
            std::size_t digits = 0;
            const std::string count = line.substr(colon + 2);
            while (digits < count.size() && count[digits] >= '0' && count[digits] <= '9') ++digits;
            if (digits > 0 && digits < 8 && count.compare(digits, 5, " path") == 0)
                paths[line.substr(0, colon)] += std::stoi(count.substr(0, digits));
        }
        if (const std::size_t fused = line.find(" nodes fused"); fused != std::string::npos) {
            const std::size_t number = line.rfind(' ', fused - 1) + 1;
            nodes += std::atoi(line.c_str() + number);
        }
        begin = end + 1;
    }
    std::string summary = nodes > 0 ? "lanes " + std::to_string(nodes) + " nodes" : "";
    for (const auto& [family, count] : paths) summary += (summary.empty() ? "" : ", ") + family + " " + std::to_string(count);
    return summary;
}

ReferenceInputs Workload::reference_inputs() const {
    ReferenceInputs inputs;
    inputs.rows = topology_.rows;
    for (const Index& index : indices_of(description_)) inputs.indices[index.name] = topology_.indices.at(index.name);
    for (const Argument& argument : arguments_)
        if (argument.role == Role::input) inputs.arrays[argument.name] = arrays_.find(argument.name, Role::input)->numbers();
    return inputs;
}

double relative_error(const ReferenceArray& result, const ReferenceArray& reference) {
    if (result.size() != reference.size()) return INFINITY;
    long double difference = 0, norm = 0;
    for (std::size_t i = 0; i < result.size(); ++i) {
        if (!std::isfinite(result[i])) return INFINITY;
        difference += (result[i] - reference[i]) * (result[i] - reference[i]);
        norm += reference[i] * reference[i];
    }
    return difference == 0 ? 0 : static_cast<double>(std::sqrt(difference / norm));
}

}  // namespace clebsch::tool
