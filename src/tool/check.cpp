// clebsch check: an operation and its derivatives against the reference, rotations, finite differences, and itself on other numbers of
// threads.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <set>

#include "algebra/rotation.hpp"
#include "base/error.hpp"
#include "tool/command.hpp"
#include "tool/machine_options.hpp"
#include "tool/passes.hpp"
#include "tool/progress.hpp"
#include "tool/report.hpp"
#include "tool/request.hpp"
#include "tool/verdicts.hpp"
#include "tool/workload.hpp"

namespace clebsch::tool {
namespace {

struct Arguments {
    OperationArguments operation;
    MachineOptions machine;
    std::vector<std::string> positive;
    std::int64_t nodes = 5, neighbours = 4, rows = 7;
    std::uint64_t seed = 1;
    int order = 2;
    bool json = false;
};

using Numbers = std::map<std::string, ReferenceArray>;

/// Irreps of every segment, or why rotating the argument makes no sense.
std::optional<std::string> not_rotatable(const std::vector<Argument>& arguments) {
    for (const Argument& argument : arguments)
        for (const Segment& segment : argument.segments)
            if (!segment.irrep && segment.components > 1) return "'" + argument.name + "' has segments that are no irreps";
    return std::nullopt;
}

bool has_parity(const std::vector<Argument>& arguments) {
    for (const Argument& argument : arguments)
        for (const Segment& segment : argument.segments)
            if (segment.irrep && segment.irrep->parity == Parity::none) return false;
    return true;
}

/// Every row of an argument, its irreps turned by `rotation`; numbers without irrep stay.
ReferenceArray rotated(const Argument& argument, const ReferenceArray& numbers, const Matrix3& rotation) {
    ReferenceArray result = numbers;
    const auto rows = static_cast<std::int64_t>(numbers.size()) / std::max<std::int64_t>(1, argument.size);
    std::int64_t offset = 0;
    for (const Segment& segment : argument.segments) {
        if (segment.irrep) {
            const std::vector<double> d = wigner_d(*segment.irrep, rotation);
            const int n = segment.components;
            const std::int64_t channel_step = argument.layout == Layout::mul_ir ? n : 1,
                               component_step = argument.layout == Layout::mul_ir ? 1 : segment.multiplicity;
            for (std::int64_t r = 0; r < rows; ++r)
                for (std::int64_t c = 0; c < segment.multiplicity; ++c) {
                    const std::int64_t first = r * argument.size + offset + c * channel_step;
                    for (int i = 0; i < n; ++i) {
                        long double sum = 0;
                        for (int j = 0; j < n; ++j)
                            sum += static_cast<long double>(
                                       d[static_cast<std::size_t>(i) * static_cast<std::size_t>(n) + static_cast<std::size_t>(j)]) *
                                   numbers[static_cast<std::size_t>(first + j * component_step)];
                        result[static_cast<std::size_t>(first + i * component_step)] = sum;
                    }
                }
        }
        offset += segment.size();
    }
    return result;
}

long double dot(const ReferenceArray& a, const ReferenceArray& b) {
    long double sum = 0;
    for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
    return sum;
}

class Check {
 public:
    explicit Check(const Arguments& arguments)
        : arguments_(arguments),
          gpu_(arguments.machine.gpu()),
          request_(read_request(arguments.operation)),
          passes_(passes_of(request_.description, {}, arguments.order)) {
        TopologyOptions sizes{arguments.nodes, arguments.neighbours, arguments.rows, true, arguments.seed};
        // The last derivative knows every space and index that matters to the others, and the operation itself the rest.
        for (const Pass& pass : passes_) {
            const Topology more = make_topology(pass.description, sizes);
            topology_.rows.insert(more.rows.begin(), more.rows.end());
            topology_.indices.insert(more.indices.begin(), more.indices.end());
        }
    }

    int run() {
        if (!computes(request_.description))
            fail(request_.title + ": there is nothing to check, the operation has no paths: its outputs are zero whatever its inputs are");
        for (const std::string& name : arguments_.positive) require_input(name);
        report_.fact("operation", "operation", request_.title);
        report_.fact("seed", "seed", std::int64_t(arguments_.seed));
        std::vector<std::string> sizes;
        for (const auto& [space, rows] : topology_.rows)
            if (!space.empty()) sizes.push_back(std::to_string(rows) + " " + space);
        report_.fact("rows", "rows", sizes.empty() ? Cell() : Cell(joined(sizes, ", ")));
        table_ = &report_.table("checks", "",
                                {{"what", "what", false},
                                 {"pass", "pass", false},
                                 {"setting", "setting", false},
                                 {"error", "error"},
                                 {"bound", "bound"},
                                 {"verdict", "verdict", false}});
        for (const Pass& pass : passes_) against_reference(pass);
        for (std::size_t p = 0; p + 1 < passes_.size(); ++p) differences(passes_[p], passes_[p + 1]);
        for (const Pass& pass : passes_) equivariance(pass);
        if (!gpu_)
            for (const Pass& pass : passes_) repeatability(pass);
        for (const std::string& note : notes_) report_.note(note);
        report_.fact("passed", "result", {verdicts_.failed() == 0, verdicts_.text()});
        progress_.now("");
        report_.print(arguments_.json);
        return verdicts_.failed() == 0 ? exit_done : exit_check_failed;
    }

 private:
    void require_input(const std::string& name) const {
        std::string names;
        for (const Pass& pass : passes_)
            for (const std::string& input : input_names(pass.description)) {
                if (input == name) return;
                if (&pass == &passes_.back()) names += (names.empty() ? "" : ", ") + input;
            }
        fail("--positive: there is no input '" + name + "'; there are " + names);
    }

    void add(const std::string& what, const Pass& pass, const std::string& setting, double error, double bound) {
        const bool passed = verdicts_.add(error, bound);
        table_->row({what, pass.title, setting, scientific(error), scientific(bound), {passed, Verdicts::word(passed)}});
    }

    Arrays arrays_of(DType dtype, const Description& description, const Topology& topology) const {
        Arrays arrays(dtype, arguments_.seed);
        for (const Argument& argument : arguments_of(description)) {
            if (argument.role == Role::output) continue;
            Array& array = arrays.get(argument, argument.space.empty() ? 1 : topology.rows.at(argument.space));
            if (argument.name == "lengths" || std::ranges::find(arguments_.positive, argument.name) != arguments_.positive.end())
                for (std::int64_t i = 0; i < array.count(); ++i) array.set(i, std::abs(array.get(i)));
        }
        return arrays;
    }

    static Numbers outputs_of(Workload& workload) {
        Numbers numbers;
        for (const Argument& argument : workload.arguments())
            if (argument.role == Role::output) numbers[argument.name] = workload.output(argument.name).numbers();
        return numbers;
    }

    void against_reference(const Pass& pass) {
        progress_.now("reference, " + pass.title);
        Numbers expected;
        {
            Arrays arrays = arrays_of(DType::float64, pass.description, topology_);
            const Workload inputs(pass.description, topology_, arrays);
            expected = std::visit([&](const auto& value) { return evaluate(value, inputs.reference_inputs()); }, pass.description);
        }
        std::vector<InstructionSet> sets = available_instruction_sets();
        if (gpu_) sets.resize(1);
        if (const auto forced = arguments_.machine.isa()) sets = {*forced};
        for (const InstructionSet isa : sets)
            for (const DType dtype : {DType::float32, DType::float64}) {
                const std::string where = gpu_ ? arguments_.machine.device : to_text(isa);
                progress_.now(pass.title + " on " + where);
                Arrays arrays = arrays_of(dtype, pass.description, topology_);
                Workload workload(pass.description, topology_, arrays,
                                  {.isa = isa, .gpu = gpu_, .deterministic = arguments_.machine.deterministic});
                workload.run({});
                double error = 0;
                for (const auto& [name, numbers] : outputs_of(workload)) {
                    const double own = relative_error(numbers, expected.at(name));
                    if (!(own <= error)) error = own;
                }
                add("reference", pass, std::string(to_text(dtype)) + ", " + where + " (" + workload.schedule() + ")", error,
                    dtype == DType::float64 ? float64_bound : float32_bound);
            }
    }

    /// The gradients that `gradient` gives of `function`, along random directions.
    void differences(const Pass& function, const Pass& gradient) {
        progress_.now("finite differences of " + function.title);
        const std::vector<std::string> inputs = input_names(function.description);
        Arrays arrays = arrays_of(DType::float64, gradient.description, topology_);
        Workload exact(gradient.description, topology_, arrays, options());
        exact.run({});
        std::vector<ReferenceArray> gradients;
        for (const Argument& argument : exact.arguments())
            if (argument.role == Role::output) gradients.push_back(exact.output(argument.name).numbers());
        if (gradients.size() != inputs.size()) fail("internal: a gradient for each input was expected");

        Arrays moved = arrays_of(DType::float64, function.description, topology_);
        Workload workload(function.description, topology_, moved, options());
        std::map<std::string, ReferenceArray> cotangents;
        for (const Argument& argument : workload.arguments())
            if (argument.role == Role::output)
                if (const Array* cotangent = arrays.find(argument.name + "_cotangent", Role::input))
                    cotangents[argument.name] = cotangent->numbers();
        long double size = 0;  // of the values that differences are made of
        const auto value = [&] {
            workload.run({});
            long double sum = 0;
            for (const auto& [name, cotangent] : cotangents) {
                const ReferenceArray numbers = workload.output(name).numbers();
                sum += dot(cotangent, numbers);
                size = std::max(size, std::sqrt(dot(numbers, numbers)));
            }
            return sum;
        };
        double worst = 0;
        for (std::size_t i = 0; i < inputs.size(); ++i) {
            Array& array = *moved.find(inputs[i], Role::input);
            const ReferenceArray start = array.numbers();
            Array direction(DType::float64, array.rows(), array.size());
            direction.fill_normal(arguments_.seed * 1000 + i);
            const ReferenceArray along = direction.numbers();
            const auto difference = [&](long double step) {
                long double values[2];
                for (const int side : {0, 1}) {
                    ReferenceArray at = start;
                    for (std::size_t k = 0; k < at.size(); ++k) at[k] += (side == 0 ? step : -step) * along[k];
                    array.fill(at);
                    values[side] = value();
                }
                return (values[0] - values[1]) / (2 * step);
            };
            // Extrapolated twice: directions of short vectors and powers bend within a thousandth.
            constexpr long double step = 1e-3L;
            const long double halved = difference(step / 2);
            const long double coarse = (4 * halved - difference(step)) / 3, fine = (4 * difference(step / 4) - halved) / 3;
            const long double extrapolated = (16 * fine - coarse) / 15;
            array.fill(start);
            const long double expected = dot(gradients[i], along);
            const long double scale = std::sqrt(dot(gradients[i], gradients[i])) + 1e-4L * size;
            const auto error =
                static_cast<double>(scale == 0 ? std::abs(extrapolated - expected) : std::abs(extrapolated - expected) / scale);
            if (!(error <= worst)) worst = error;
        }
        add("finite differences", gradient, "float64, " + std::to_string(inputs.size()) + " inputs", worst, difference_bound);
    }

    void equivariance(const Pass& pass) {
        const std::vector<Argument> arguments = arguments_of(pass.description);
        if (const auto why = not_rotatable(arguments)) {
            if (pass.key == "forward") notes_.push_back("no check of equivariance: " + *why);
            return;
        }
        progress_.now("rotations, " + pass.title);
        std::mt19937_64 engine(arguments_.seed);
        std::normal_distribution<double> normal;
        Matrix3 rotation = rotation_matrix(Quaternion{normal(engine), normal(engine), normal(engine), normal(engine)});
        Arrays arrays = arrays_of(DType::float64, pass.description, topology_);
        Workload workload(pass.description, topology_, arrays, options());
        workload.run({});
        const Numbers values = outputs_of(workload);
        std::map<std::string, ReferenceArray> inputs;
        for (const Argument& argument : arguments)
            if (argument.role == Role::input) inputs[argument.name] = arrays.find(argument.name, Role::input)->numbers();
        for (const bool inverted : {false, true}) {
            if (inverted && !has_parity(arguments)) continue;
            if (inverted)
                for (double& number : rotation) number = -number;
            for (const Argument& argument : arguments)
                if (argument.role == Role::input)
                    arrays.find(argument.name, Role::input)->fill(rotated(argument, inputs.at(argument.name), rotation));
            workload.run({});
            const Numbers results = outputs_of(workload);
            double error = 0;
            for (const Argument& argument : arguments) {
                if (argument.role == Role::input) continue;
                const double own = relative_error(results.at(argument.name), rotated(argument, values.at(argument.name), rotation));
                if (!(own <= error)) error = own;
            }
            add("equivariance", pass, inverted ? "float64, rotation and inversion" : "float64, rotation", error, equivariance_bound);
        }
    }

    /// Bits on one thread and on several, on more rows.
    void repeatability(const Pass& pass) {
        progress_.now("repeatability, " + pass.title);
        constexpr double work = 1e8;
        double per_row = 1;
        {
            Arrays arrays = arrays_of(DType::float32, pass.description, topology_);
            const Workload small(pass.description, topology_, arrays);
            per_row = std::max(1.0, small.work().multiply_adds / static_cast<double>(std::max<std::int64_t>(1, small.rows())));
        }
        const auto rows = static_cast<std::int64_t>(std::clamp(work / per_row, 64.0, 20'000.0));
        const Topology topology = make_topology(pass.description, {std::max<std::int64_t>(4, rows / 20), 20, rows, true, arguments_.seed});
        Arrays arrays = arrays_of(DType::float32, pass.description, topology);
        Workload workload(pass.description, topology, arrays, {.isa = arguments_.machine.isa()});
        std::map<std::string, std::vector<std::byte>> expected;
        bool equal = true;
        const std::vector<int> counts = {1, 1, 2, 3, 5};
        for (std::size_t i = 0; i < counts.size(); ++i) {
            const Threads threads(counts[i]);
            workload.run(threads.parallel_for());
            for (const Argument& argument : workload.arguments()) {
                if (argument.role == Role::input) continue;
                const Array& array = workload.output(argument.name);
                const auto* begin = array.at<std::byte>();
                if (i == 0) expected[argument.name].assign(begin, begin + array.byte_count());
                else equal = equal && std::memcmp(expected[argument.name].data(), begin, array.byte_count()) == 0;
            }
        }
        add("same bits", pass, "float32, 1, 2, 3, 5 threads, " + std::to_string(workload.rows()) + " rows", equal ? 0 : 1, 0);
    }

    WorkloadOptions options() const {
        return {.isa = arguments_.machine.isa(), .family = {}, .gpu = gpu_, .deterministic = arguments_.machine.deterministic};
    }

    const Arguments& arguments_;
    std::optional<int> gpu_;
    Request request_;
    std::vector<Pass> passes_;
    Topology topology_;
    Report report_;
    Table* table_ = nullptr;
    Verdicts verdicts_;
    Progress progress_;
    std::vector<std::string> notes_;
};

}  // namespace

void add_check(CLI::App& app, int& status) {
    auto arguments = std::make_shared<Arguments>();
    CLI::App* command = app.add_subcommand(
        "check", "An operation and its derivatives against the reference, rotations, finite differences, and itself on other threads");
    add_operation_arguments(*command, arguments->operation, false);
    command->add_option("--order", arguments->order, "Highest derivative: 0, 1 or 2")->check(CLI::Range(0, 2))->capture_default_str();
    command->add_option("--positive", arguments->positive, "Inputs whose numbers are made positive; those called lengths always are")
        ->allow_extra_args(false);
    command->add_option("--nodes", arguments->nodes, "Nodes of the graph")->check(CLI::Range(1, 1'000'000))->capture_default_str();
    command->add_option("--neighbors,--neighbours", arguments->neighbours, "Edges per node, on average")
        ->check(CLI::Range(1, 1'000'000))
        ->capture_default_str();
    command->add_option("--rows", arguments->rows, "Rows of what has no graph")->check(CLI::Range(1, 100'000'000))->capture_default_str();
    command->add_option("--seed", arguments->seed, "Of the random inputs")->check(not_natural)->capture_default_str();
    command->add_option("--instruction-set", arguments->machine.instruction_set, "Only this one (default: every one that can run here)");
    add_device_option(*command, arguments->machine);
    command->add_flag("--json", arguments->json, "For machines");
    command->footer(
        "Exit code 1 if an error exceeds its bound. Errors are norms of differences over norms.\n"
        "Examples:\n"
        "  clebsch check nequip-water\n"
        "  clebsch check convolution in=16x0e+8x1o edge=0e+1o out=0e+1o\n"
        "  clebsch check --text my_operation.txt --order 1\n"
        "  clebsch check nequip-water --device cuda");
    command->callback([arguments, &status] {
        if (arguments->operation.name.empty() && arguments->operation.text_file.empty())
            fail("check: expected an operation or --text FILE; `clebsch explain` lists what there is");
        status = Check(*arguments).run();
    });
}

}  // namespace clebsch::tool
