// The C++ interface as a user has it: the installed header and libclebsch.so, nothing of src/.
#include <doctest/doctest.h>
#include <clebsch/clebsch.hpp>

#include <algorithm>
#include <cmath>
#include <fstream>
#include <limits>
#include <numeric>
#include <sstream>
#include <thread>

namespace {

const char* const convolution_options = "in=5x0e+3x1o\nedge=0e+1o+2e\nout=0e+1o";

/// Numbers of both signs, different for every seed, that float32 holds exactly.
std::vector<double> numbers(std::int64_t count, int seed) {
    std::vector<double> result(static_cast<std::size_t>(count));
    for (std::size_t i = 0; i < result.size(); ++i) result[i] = static_cast<float>(std::sin(1.7 * static_cast<double>(i) + seed));
    return result;
}

/// Inputs of an operation on rows, by name.
std::map<std::string, std::vector<double>> inputs_of(const clebsch::Operation& operation, const clebsch::Rows& rows) {
    std::map<std::string, std::vector<double>> result;
    int seed = 0;
    for (const clebsch::Operand& operand : operation.operands())
        if (!operand.is_output)
            result[operand.name] = numbers(operand.row_size * (operand.space.empty() ? 1 : rows.at(operand.space)), ++seed);
    return result;
}

double difference(const std::vector<double>& a, const std::vector<double>& b) {
    REQUIRE(a.size() == b.size());
    double largest = 0;
    for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::fabs(a[i] - b[i]));
    return largest;
}

clebsch::Arrays views(const std::map<std::string, std::vector<double>>& arrays) {
    clebsch::Arrays result;
    for (const auto& [name, values] : arrays) result.emplace(name, values);
    return result;
}

std::string file_text(const std::string& path) {
    const std::ifstream file(path);
    REQUIRE_MESSAGE(file.good(), path);
    std::ostringstream text;
    text << file.rdbuf();
    return text.str();
}

const std::string checkpoint = CLEBSCH_SOURCE_DIR "/examples/data/nequix-mp-1.nqx";

/// Eight silicon atoms in a cubic cell, moved a little from where they would rest.
struct Silicon {
    std::vector<double> positions, cell{5.43, 0, 0, 0, 5.43, 0, 0, 0, 5.43};
    std::vector<int> atomic_numbers = std::vector<int>(8, 14);

    Silicon() {
        for (const double base : {0.0, 0.25})
            for (const auto& corner : {std::array{0.0, 0.0, 0.0}, {0.0, 0.5, 0.5}, {0.5, 0.0, 0.5}, {0.5, 0.5, 0.0}})
                for (const double part : corner) positions.push_back(5.43 * (part + base));
        for (std::size_t i = 0; i < positions.size(); ++i) positions[i] += 0.05 * std::sin(3.0 * static_cast<double>(i));
    }
    clebsch::Structures structures() const { return {.positions = positions, .cells = cell}; }
};

}  // namespace

TEST_CASE("irreps: dimension, blocks, order and merging; copies share") {
    const clebsch::Irreps irreps("2x1o+3x0e+1x0e");
    CHECK(irreps.dim() == 10);
    CHECK(irreps.blocks() == std::vector<clebsch::Irreps::Block>{{2, 1, -1}, {3, 0, 1}, {1, 0, 1}});
    const clebsch::Irreps::Sorted sorted = irreps.sorted();
    CHECK(sorted.irreps.text() == "3x0e+1x0e+2x1o");
    CHECK(sorted.permutation == std::vector<int>{2, 0, 1});
    CHECK(sorted.irreps.simplified() == clebsch::Irreps("4x0e+2x1o"));
    CHECK(irreps.regrouped() == clebsch::Irreps("4x0e+2x1o"));
    CHECK(irreps.filtered(clebsch::Irreps("0e")) == clebsch::Irreps("3x0e+1x0e"));
    CHECK(irreps.filtered(clebsch::Irreps("0e+1o"), 0) == clebsch::Irreps("3x0e+1x0e"));
    CHECK(clebsch::Irreps("2x1o").repeated(2) == clebsch::Irreps("2x1o+2x1o"));
    CHECK(clebsch::Irreps("2x1o").product(clebsch::Irreps("3x1o")) == clebsch::Irreps("6x0e+6x1e+6x2e"));
    const clebsch::Irreps copy = irreps;
    CHECK(copy == irreps);
    CHECK_FALSE(copy == sorted.irreps);
    CHECK(clebsch::Irreps("2x1").blocks().front().parity == 0);
}

TEST_CASE("algebra: couplings are invariant under rotations, and rotations compose") {
    const clebsch::Matrix3 rotation = clebsch::rotation_from_angles(0.3, 1.1, -0.7);
    CHECK(clebsch::rotation_from_quaternion({1, 0, 0, 0}) == clebsch::Matrix3{1, 0, 0, 0, 1, 0, 0, 0, 1});
    const std::vector<double> coupling = clebsch::wigner_3j(1, 2, 3), d1 = clebsch::wigner_d(1, -1, rotation),
                              d2 = clebsch::wigner_d(2, 1, rotation), d3 = clebsch::wigner_d(3, -1, rotation);
    double largest = 0;
    for (std::size_t i = 0; i < 3; ++i)
        for (std::size_t j = 0; j < 5; ++j)
            for (std::size_t k = 0; k < 7; ++k) {
                double sum = 0;
                for (std::size_t a = 0; a < 3; ++a)
                    for (std::size_t b = 0; b < 5; ++b)
                        for (std::size_t c = 0; c < 7; ++c)
                            sum += coupling[(a * 5 + b) * 7 + c] * d1[a * 3 + i] * d2[b * 5 + j] * d3[c * 7 + k];
                largest = std::max(largest, std::fabs(sum - coupling[(i * 5 + j) * 7 + k]));
            }
    CHECK(largest < 1e-14);
    CHECK(std::inner_product(coupling.begin(), coupling.end(), coupling.begin(), 0.0) == doctest::Approx(1).epsilon(1e-14));
    for (const int degree : {-1, 13, 1'000'000, std::numeric_limits<int>::max()}) {
        CHECK_THROWS_AS(clebsch::wigner_3j(degree, 1, 1), clebsch::Failure);
        CHECK_THROWS_AS(clebsch::wigner_d(degree, 1, rotation), clebsch::Failure);
    }
}

TEST_CASE("the library tells what it is") {
    CHECK(clebsch::version() == clebsch_version());
    CHECK(clebsch::info().find("instruction_set") != std::string::npos);
    CHECK(clebsch::builders().find("convolution") != std::string::npos);
    CHECK_THROWS_AS(clebsch::force_instruction_set("sse9"), clebsch::Failure);
    clebsch::force_instruction_set("");
}

TEST_CASE("operations: text, hash, operands, spaces and indices") {
    const auto conv = clebsch::Operation::build("convolution", convolution_options);
    CHECK(clebsch::Operation(conv.text()).hash() == conv.hash());
    CHECK_FALSE(conv.is_program());
    CHECK(conv.vjp({"x"}).hash() != conv.hash());
    CHECK(conv.spaces() == std::vector<std::string>{"edge", "node"});
    const std::vector<clebsch::Operand> operands = conv.operands();
    REQUIRE(operands.size() == 4);
    CHECK(operands[0].name == "x");
    CHECK(operands[0].space == "node");
    CHECK(operands[0].row_size == 14);
    CHECK(operands[1].space == "edge");
    CHECK(operands[3].is_output);
    CHECK(operands[3].layout == CLEBSCH_MUL_IR);
    const std::vector<clebsch::Index> indices = conv.indices();
    REQUIRE(indices.size() == 2);
    CHECK(indices[1].name == "receiver");
    CHECK(indices[1].from == "edge");
    CHECK(indices[1].to == "node");
    CHECK(indices[1].sorted);
}

TEST_CASE("a plan gives what the reference says: strides, 32-bit indices, a workspace of the caller's, derivatives") {
    const auto conv = clebsch::Operation::build("convolution", convolution_options);
    const std::vector<std::int32_t> sender{3, 0, 1, 2, 0}, receiver{0, 0, 1, 3, 3};
    const clebsch::Indices indices{{"sender", sender}, {"receiver", receiver}};
    const clebsch::Rows rows{{"edge", 5}, {"node", 4}};
    for (const clebsch::Operation& operation : {conv, conv.vjp({"x", "y", "weights"}), conv.jvp({"x", "weights"})}) {
        const auto inputs = inputs_of(operation, rows);
        std::map<std::string, std::vector<double>> expected, found, strided;
        clebsch::Arrays expected_arrays, found_arrays, strided_inputs, strided_outputs;
        for (const auto& [name, values] : inputs) strided[name] = {};
        for (const clebsch::Operand& operand : operation.operands()) {
            const std::int64_t count = rows.at(operand.space), stride = operand.row_size + 3;
            std::vector<double>& apart = strided[operand.name];
            apart.assign(static_cast<std::size_t>((count - 1) * stride + operand.row_size), -7);
            if (operand.is_output) {
                expected[operand.name].resize(static_cast<std::size_t>(count * operand.row_size));
                found[operand.name].assign(expected[operand.name].size(), -1);
                expected_arrays.emplace(operand.name, expected[operand.name]);
                found_arrays.emplace(operand.name, found[operand.name]);
            } else {
                for (std::int64_t r = 0; r < count; ++r)
                    std::copy_n(inputs.at(operand.name).begin() + r * operand.row_size, operand.row_size, apart.begin() + r * stride);
            }
            (operand.is_output ? strided_outputs : strided_inputs).emplace(operand.name, clebsch::Array(std::span(apart), stride));
        }
        clebsch::evaluate_reference(operation, rows, views(inputs), indices, expected_arrays);
        const clebsch::Plan plan(operation, CLEBSCH_FLOAT64);
        plan.run(rows, views(inputs), indices, found_arrays);
        for (const auto& [name, values] : expected) CHECK(difference(values, found.at(name)) < 1e-14);

        std::vector<std::byte> workspace(plan.workspace_bytes(rows) + 1);
        plan.run(rows, strided_inputs, indices, strided_outputs, {.workspace = std::span(workspace).subspan(1)});
        for (const clebsch::Operand& operand : operation.operands()) {
            if (!operand.is_output) continue;
            const std::vector<double>& apart = strided.at(operand.name);
            for (std::int64_t i = 0; i < static_cast<std::int64_t>(apart.size()); ++i) {
                const std::int64_t row = i / (operand.row_size + 3), column = i % (operand.row_size + 3);
                CHECK(apart[static_cast<std::size_t>(i)] ==
                      (column < operand.row_size ? found.at(operand.name)[static_cast<std::size_t>(row * operand.row_size + column)] : -7));
            }
        }
    }
}

TEST_CASE("unsorted receivers: refused where they are promised sorted, the same numbers where they are not and in their order") {
    const std::string options = "in=4x0e+3x1o\nedge=0e+1o\nout=0e+1o\n";
    const clebsch::Operation promised = clebsch::Operation::build("convolution", options),
                             any = clebsch::Operation::build("convolution", options + "sorted=false"),
                             ordered = any.in_order_of("receiver");
    const std::int64_t edges = 37, nodes = 6;
    const clebsch::Rows rows = {{"edge", edges}, {"node", nodes}};
    std::map<std::string, std::vector<double>> numbers;
    clebsch::Arrays inputs;
    for (const clebsch::Operand& operand : any.operands()) {
        if (operand.is_output) continue;
        std::vector<double>& array = numbers[operand.name];
        for (std::int64_t i = 0; i < (operand.space == "edge" ? edges : nodes) * operand.row_size; ++i)
            array.push_back(std::sin(static_cast<double>(7 * i + 1)));
        inputs.emplace(operand.name, array);
    }
    std::vector<std::int32_t> sender, receiver;
    for (std::int32_t e = 0; e < edges; ++e) {
        sender.push_back(e * 5 % 6);
        receiver.push_back(e % 9 == 4 ? -1 : e * 7 % 6);
    }
    const auto run = [&](const clebsch::Operation& operation, const clebsch::Indices& indices) {
        std::vector<double> out(static_cast<std::size_t>(nodes * operation.operands().back().row_size));
        clebsch::Plan(operation, CLEBSCH_FLOAT64).run(rows, inputs, indices, {{"out", out}});
        return out;
    };
    const std::vector<double> expected = run(any, {{"sender", sender}, {"receiver", receiver}});
    CHECK_THROWS_WITH(run(promised, {{"sender", sender}, {"receiver", receiver}}), doctest::Contains("declared as sorted"));
    const clebsch::RowOrder order(receiver, nodes);
    const std::vector<double> result =
        run(ordered, {{"sender", sender}, {"receiver_order", order.rows()}, {"receiver_sorted", order.sorted()}});
    for (std::size_t i = 0; i < expected.size(); ++i) CHECK(result[i] == doctest::Approx(expected[i]).epsilon(1e-12));
    CHECK_THROWS_WITH(clebsch::RowOrder(receiver, 3), doctest::Contains("expected -1 or a row"));
    CHECK_THROWS_WITH(any.in_order_of("nobody"), doctest::Contains("nobody"));
}

TEST_CASE("a caller's own way to run tasks in parallel gives the same bits") {
    const auto conv = clebsch::Operation::build("convolution", convolution_options);
    const clebsch::Plan plan(conv);
    const clebsch::Rows rows{{"edge", 20'000}, {"node", 4}};
    std::map<std::string, std::vector<float>> arrays;
    for (const clebsch::Operand& operand : conv.operands()) {
        const std::vector<double> values = numbers(operand.row_size * rows.at(operand.space), 1);
        arrays[operand.name].assign(values.begin(), values.end());
    }
    std::vector<std::int32_t> sender(20'000), receiver(20'000);
    for (std::size_t e = 0; e < sender.size(); ++e) {
        sender[e] = static_cast<std::int32_t>(e % 4);
        receiver[e] = static_cast<std::int32_t>(e / 5'000);
    }
    const clebsch::Indices indices{{"sender", sender}, {"receiver", receiver}};
    const clebsch::Arrays inputs{{"x", arrays["x"]}, {"y", arrays["y"]}, {"weights", arrays["weights"]}};
    std::vector<float> out(arrays["out"].size()), again(out.size());
    plan.run(rows, inputs, indices, {{"out", out}});
    std::int64_t tasks = 0;
    const clebsch_parallel backwards{&tasks, 3, [](void* context, std::int64_t count, void (*task)(void*, std::int64_t), void* argument) {
                                         for (std::int64_t i = count - 1; i >= 0; --i) task(argument, i);
                                         *static_cast<std::int64_t*>(context) += count;
                                     }};
    plan.run(rows, inputs, indices, {{"out", again}}, {.parallel = &backwards});
    CHECK(tasks > 1);
    CHECK(out == again);
    CHECK(*std::ranges::max_element(out) > 1);
}

TEST_CASE("a program runs like any operation, and its derivative agrees with differences") {
    const auto network = clebsch::Operation::build("radial_network", "cutoff=4\nbasis_size=4\nhidden=8\noutputs=6");
    CHECK(network.is_program());
    std::string space;
    for (const clebsch::Operand& operand : network.operands())
        if (operand.is_output) space = operand.space;
    const clebsch::Rows rows{{space, 3}};
    auto inputs = inputs_of(network, rows);
    std::string lengths;
    for (const clebsch::Operand& operand : network.operands())
        if (!operand.is_output && operand.space == space) lengths = operand.name;
    inputs.at(lengths) = {0.9, 1.7, 2.6};
    const std::string out = network.operands().back().name;
    const auto value = [&](double step) {
        auto moved = inputs;
        moved.at(lengths)[1] += step;
        std::vector<double> result(18);
        clebsch::Plan(network, CLEBSCH_FLOAT64).run(rows, views(moved), {}, {{out, result}});
        return result;
    };
    const clebsch::Operation tangent = network.jvp({lengths});
    auto given = inputs;
    given[lengths + "_tangent"] = {0, 1, 0};
    std::vector<double> derivative(18), differences = value(1e-6);
    clebsch::Plan(tangent, CLEBSCH_FLOAT64).run(rows, views(given), {}, {{out + "_tangent", derivative}});
    const std::vector<double> before = value(-1e-6);
    for (std::size_t i = 0; i < 18; ++i) differences[i] = (differences[i] - before[i]) / 2e-6;
    CHECK(difference(derivative, differences) < 1e-8);
    CHECK(*std::ranges::max_element(derivative) > 1e-3);
}

TEST_CASE("dtypes by operand, 16-bit arrays, a forced family and instruction set") {
    const auto conv = clebsch::Operation::build("convolution", convolution_options);
    const clebsch::Rows rows{{"edge", 2}, {"node", 2}};
    const std::vector<std::int64_t> sender{1, 0}, receiver{0, 1};
    const clebsch::Indices indices{{"sender", sender}, {"receiver", receiver}};
    const std::vector<float> x(28, 1), y(18, 0.5F);
    const auto weights = static_cast<std::size_t>(2 * conv.operands()[2].row_size),
               outputs = static_cast<std::size_t>(2 * conv.operands()[3].row_size);
    const std::vector<std::uint16_t> halves(weights, 0x4000), brains(weights, 0x4000);  // 2 in both formats
    std::vector<float> half_out(outputs), brain_out(outputs), general_out(outputs);
    clebsch::Plan(conv, {.dtypes = {{"weights", CLEBSCH_FLOAT16}}})
        .run(rows, {{"x", x}, {"y", y}, {"weights", clebsch::Array::float16(halves)}}, indices, {{"out", half_out}});
    const clebsch::Plan brain(conv, {.dtypes = {{"weights", CLEBSCH_BFLOAT16}}});
    brain.run(rows, {{"x", x}, {"y", y}, {"weights", clebsch::Array::bfloat16(brains)}}, indices, {{"out", brain_out}});
    CHECK(half_out == brain_out);
    CHECK(half_out[0] == 1);
    const clebsch::Plan general(conv, {.instruction_set = "", .kernel = "general"});
    general.run(rows, {{"x", x}, {"y", y}, {"weights", std::vector<float>(weights, 2)}}, indices, {{"out", general_out}});
    CHECK(general_out[0] == 1);
    CHECK(general.explain(10, 50).find("general") != std::string::npos);
    CHECK_THROWS_WITH_AS(brain.run(rows, {{"x", x}, {"y", y}, {"weights", clebsch::Array::float16(halves)}}, indices, {{"out", brain_out}}),
                         doctest::Contains("weights"), clebsch::Failure);
    CHECK_THROWS_WITH_AS(clebsch::Plan(conv, {.dtypes = {{"wieghts", CLEBSCH_FLOAT16}}}), "clebsch: dtypes: there is no operand 'wieghts'",
                         std::invalid_argument);
    CHECK_THROWS_AS(clebsch::Plan(conv, {.instruction_set = "sse9"}), clebsch::Failure);
}

TEST_CASE("what does not fit a call is refused by name") {
    const clebsch::Operation square(
        "clebsch polynomial 0\nbasis e3nn-0.5\nrows row\ninput x: 2x(1) mul_ir @ each\n"
        "output z: 2x(1) mul_ir @ each\npath u=2: z.0[u] += x.0[u] * x.0[u]\n");
    const clebsch::Plan plan(square, CLEBSCH_FLOAT64);
    std::vector<double> x(6, 3), z(6);
    const std::vector<double> constant(6);
    const auto message = [&](const clebsch::Rows& rows, const clebsch::Arrays& inputs, const clebsch::Arrays& outputs) -> std::string {
        try {
            plan.run(rows, inputs, {}, outputs);
        } catch (const std::exception& error) { return error.what(); }
        return "";
    };
    const auto stride = [&](std::int64_t row_stride) { return clebsch::Array(std::span(x), row_stride); };
    CHECK(message({{"row", 3}}, {{"x", x}}, {{"z", z}}) == "");
    CHECK(z == std::vector<double>(6, 9));
    CHECK(message({{"row", 2}}, {{"x", stride(4)}}, {{"z", std::span(z).first(4)}}) == "");
    CHECK(message({}, {{"x", x}}, {{"z", z}}) == "clebsch: rows of space 'row' is missing");
    CHECK(message({{"row", 3}}, {}, {{"z", z}}) == "clebsch: input 'x' is missing");
    CHECK(message({{"row", 3}}, {{"x", x}}, {}) == "clebsch: output 'z' is missing");
    CHECK(message({{"row", 3}}, {{"x", x}, {"q", x}}, {{"z", z}}) == "clebsch: there is no input 'q'; there are x");
    CHECK(message({{"row", 2}}, {{"x", x}}, {{"z", z}}) == "clebsch: x: expected 2 x 2 numbers, got 6");
    CHECK(message({{"row", 4}}, {{"x", x}}, {{"z", z}}) == "clebsch: x: expected 4 x 2 numbers, got 6");
    CHECK(message({{"row", 3}}, {{"x", stride(3)}}, {{"z", z}}) == "clebsch: x: expected 3 x 2 numbers, rows 3 apart, got 6");
    CHECK(message({{"row", std::numeric_limits<std::int64_t>::max()}}, {{"x", stride(1LL << 62)}}, {{"z", z}}).find("x: expected") == 9);
    CHECK(message({{"row", 3}}, {{"x", stride(-2)}}, {{"z", z}}).find("stride") != std::string::npos);
    CHECK(message({{"row", -1}}, {{"x", x}}, {{"z", z}}).find("-1") != std::string::npos);
    CHECK(message({{"row", 3}}, {{"x", x}}, {{"z", constant}}) == "clebsch: z: an output needs numbers that are not const");
    CHECK(message({{"row", 3}}, {{"x", std::vector<float>(6)}}, {{"z", z}}).find("'x'") != std::string::npos);
    CHECK_THROWS_AS(clebsch::Operation(std::string("clebsch\0polynomial", 18)), std::invalid_argument);
    try {
        clebsch::Operation("clebsch polynomial 0\nrows");
        FAIL("half a text was taken");
    } catch (const clebsch::Failure& failure) { CHECK(failure.status() == CLEBSCH_PARSE_ERROR); }
}

TEST_CASE("graphs: edges of a crystal, and structures that do not fit") {
    const Silicon silicon;
    const clebsch::Graph graph(silicon.structures(), 3.0);
    CHECK(graph.nodes() == 8);
    CHECK(graph.edges() == 32);  // four neighbours of each atom
    CHECK(graph.offsets().back() == 32);
    CHECK(std::ranges::is_sorted(graph.receiver()));
    CHECK(graph.structure()[7] == 0);
    for (std::size_t e = 0; e < 32; ++e) {
        const auto from = static_cast<std::size_t>(graph.sender()[e]), to = static_cast<std::size_t>(graph.receiver()[e]);
        for (std::size_t axis = 0; axis < 3; ++axis)
            CHECK(graph.vectors()[3 * e + axis] == doctest::Approx(silicon.positions[3 * from + axis] - silicon.positions[3 * to + axis] +
                                                                   5.43 * graph.shifts()[3 * e + axis]));
        CHECK((e == 0 || graph.sender()[static_cast<std::size_t>(graph.transposed()[e - 1])] <=
                             graph.sender()[static_cast<std::size_t>(graph.transposed()[e])]));
    }
    const std::vector<double> part(5), cell(8);
    CHECK_THROWS_WITH_AS(clebsch::Graph({.positions = part}, 3.0), "clebsch: positions: expected 1 x 3 numbers, got 5",
                         std::invalid_argument);
    CHECK_THROWS_WITH_AS(clebsch::Graph({.positions = silicon.positions, .cells = cell}, 3.0),
                         "clebsch: cells: expected 1 x 9 numbers, got 8", std::invalid_argument);
    CHECK_THROWS_AS(clebsch::Graph({.positions = silicon.positions, .count = -1}, 3.0), std::invalid_argument);
    CHECK_THROWS_AS(clebsch::Graph(silicon.structures(), -1.0), clebsch::Failure);
}

TEST_CASE("a potential: forces are minus the energy's differences; one handle serves several threads with the same bits") {
    const Silicon silicon;
    const clebsch::Potential potential(checkpoint, {.dtype = CLEBSCH_FLOAT64});
    CHECK(potential.cutoff() == 6);
    CHECK(std::ranges::find(potential.elements(), 14) != potential.elements().end());
    CHECK_FALSE(potential.explain().empty());
    const clebsch::Energies energies = potential.evaluate(silicon.structures(), silicon.atomic_numbers);
    CHECK(std::accumulate(energies.atom_energy.begin(), energies.atom_energy.end(), 0.0) == doctest::Approx(energies.energy[0]));
    const auto moved = [&](double step) {
        Silicon other;
        other.positions[4] += step;
        return potential.evaluate(other.structures(), other.atomic_numbers).energy[0];
    };
    CHECK(clebsch::Potential(checkpoint, {.dtype = CLEBSCH_FLOAT64, .skin = 1})
              .evaluate(silicon.structures(), silicon.atomic_numbers)
              .forces == energies.forces);
    CHECK(std::fabs(energies.forces[4]) > 0.01);
    CHECK((moved(-1e-4) - moved(1e-4)) / 2e-4 == doctest::Approx(energies.forces[4]).epsilon(1e-5));

    std::vector<clebsch::Energies> found(3);
    std::vector<std::thread> threads;
    for (clebsch::Energies& energy : found)
        threads.emplace_back([&, copy = potential] { energy = copy.evaluate(silicon.structures(), silicon.atomic_numbers); });
    for (std::thread& thread : threads) thread.join();
    for (const clebsch::Energies& energy : found) {
        CHECK(energy.energy == energies.energy);
        CHECK(energy.forces == energies.forces);
        CHECK(energy.virial == energies.virial);
    }
    CHECK_THROWS_AS(potential.evaluate(silicon.structures(), std::vector<int>(7, 14)), std::invalid_argument);
    CHECK_THROWS_WITH_AS(potential.evaluate(silicon.structures(), std::vector<int>(8, 2000)), doctest::Contains("2000"), clebsch::Failure);
    CHECK_THROWS_AS(clebsch::Potential("/nonexistent.nqx"), clebsch::Failure);
}

TEST_CASE("a batch of structures: edges stay within each, energies are those of each alone") {
    const Silicon silicon;
    std::vector<double> positions = silicon.positions, cells = silicon.cell;
    positions.insert(positions.end(), silicon.positions.begin(), silicon.positions.end());
    for (std::size_t i = 24; i < 48; ++i) positions[i] += 0.03 * std::cos(static_cast<double>(i));
    cells.insert(cells.end(), silicon.cell.begin(), silicon.cell.end());
    std::vector<std::int64_t> structure(16, 0);
    std::fill(structure.begin() + 8, structure.end(), 1);
    const std::vector<int> periodic(6, 1), atomic_numbers(16, 14);
    const clebsch::Structures batch{.positions = positions, .cells = cells, .periodic = periodic, .structure = structure, .count = 2};
    const clebsch::Graph graph(batch, 3.0);
    CHECK(graph.nodes() == 16);
    for (std::int64_t e = 0; e < graph.edges(); ++e)
        CHECK((graph.sender()[static_cast<std::size_t>(e)] < 8) == (graph.receiver()[static_cast<std::size_t>(e)] < 8));
    const clebsch::Potential potential(checkpoint, {.dtype = CLEBSCH_FLOAT64});
    const clebsch::Energies both = potential.evaluate(batch, atomic_numbers);
    CHECK(both.energy[0] == doctest::Approx(potential.evaluate(silicon.structures(), silicon.atomic_numbers).energy[0]).epsilon(1e-12));
    CHECK(both.energy[1] != doctest::Approx(both.energy[0]).epsilon(1e-9));
    CHECK_THROWS_WITH_AS(clebsch::Graph({.positions = positions, .cells = cells, .structure = structure, .count = 3}, 3.0),
                         "clebsch: cells: expected 3 x 9 numbers, got 18", std::invalid_argument);
}

TEST_CASE("several threads launch one plan and build operations at once") {
    const auto conv = clebsch::Operation::build("convolution", convolution_options);
    const clebsch::Plan plan(conv, CLEBSCH_FLOAT64);
    const clebsch::Rows rows{{"edge", 5}, {"node", 4}};
    const std::vector<std::int64_t> sender{3, 0, 1, 2, 0}, receiver{0, 0, 1, 3, 3};
    const auto inputs = inputs_of(conv, rows);
    std::vector<std::vector<double>> outputs(4, std::vector<double>(static_cast<std::size_t>(4 * conv.operands()[3].row_size)));
    std::vector<std::string> hashes(outputs.size());
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < outputs.size(); ++t)
        threads.emplace_back([&, t] {
            // Couplings and harmonics of degrees that nothing has asked for before: the threads make them together.
            hashes[t] = clebsch::Operation::build("convolution", "in=2x5o+3x6e\nedge=4e+5o\nout=5o+6e").vjp({"x"}).hash() +
                        clebsch::Operation::build("symmetric_contraction", "in=2x0e+2x2e\nout=2x0e+2x2e\ncorrelation=4").jvp({"x"}).hash() +
                        clebsch::Operation::build("spherical_harmonics", "irreps=0e+5o+6e+7o").hash();
            for (int i = 0; i < 5; ++i) plan.run(rows, views(inputs), {{"sender", sender}, {"receiver", receiver}}, {{"out", outputs[t]}});
        });
    for (std::thread& thread : threads) thread.join();
    for (std::size_t t = 1; t < outputs.size(); ++t) {
        CHECK(outputs[t] == outputs[0]);
        CHECK(hashes[t] == hashes[0]);
    }
}

TEST_CASE("devices: unknown names, GPUs that are not there, and streams for the processor are refused") {
    const clebsch::Operation operation = clebsch::Operation::build("convolution", convolution_options);
    const auto message_of = [&](const clebsch::PlanOptions& options) {
        try {
            const clebsch::Plan plan(operation, options);
        } catch (const std::exception& error) { return std::string(error.what()); }
        return std::string("accepted");
    };
    for (const std::string device : {"gpu", "cuda:", "cuda:-1", "cuda:1x", "CUDA"}) {
        const std::string message = message_of({.device = device});
        CHECK(message.find("device: expected cpu, cuda or cuda:NUMBER, got '" + device + "'") != std::string::npos);
    }
    const std::string missing = message_of({.device = "cuda:1000"});  // with a GPU and without
    CHECK((missing.find("CUDA driver") != std::string::npos || missing.find("GPU number 1000") != std::string::npos));
    CHECK(message_of({.instruction_set = "baseline", .device = "cuda"}).find("instruction_set") != std::string::npos);
    CHECK(message_of({.device = "cpu"}) == "accepted");

    const clebsch::Plan plan(operation);
    const clebsch_call call = CLEBSCH_CALL_DEFAULTS;
    CHECK(clebsch_launch_on_stream(plan.handle(), &call, nullptr) == CLEBSCH_INVALID_ARGUMENT);
    CHECK_FALSE(plan.index_error());
    CHECK(clebsch_plan_index_error(plan.handle(), nullptr) == CLEBSCH_INVALID_ARGUMENT);
    CHECK(clebsch_plan_index_error(nullptr, nullptr) == CLEBSCH_INVALID_ARGUMENT);
    CHECK(clebsch_launch_on_stream(nullptr, &call, nullptr) == CLEBSCH_INVALID_ARGUMENT);

    const std::string model = std::string(CLEBSCH_SOURCE_DIR) + "/examples/data/nequix-mp-1.nqx";
    try {
        const clebsch::Potential potential(model, {.device = "tpu"});
        FAIL("accepted");
    } catch (const std::exception& error) { CHECK(std::string(error.what()).find("device") != std::string::npos); }
}

TEST_CASE("README's C++ page is the example that is compiled") {
    const std::string readme = file_text(CLEBSCH_SOURCE_DIR "/README.md"), example = file_text(CLEBSCH_SOURCE_DIR "/examples/readme.cpp");
    CHECK_MESSAGE(readme.find("```cpp\n" + example + "```\n") != std::string::npos,
                  "README.md does not quote examples/readme.cpp as it is");
}
