// Programs whose edges' values exist for a few rows at a time: what they compute, on any graph, and what they keep.
#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <thread>

#include "base/error.hpp"
#include "describe/derivative.hpp"
#include "describe/pairs.hpp"
#include "describe/text.hpp"
#include "support/network_layers.hpp"
#include "support/paired_network.hpp"
#include "support/random_descriptions.hpp"
#include "support/run_program.hpp"

using namespace clebsch;
using namespace clebsch::testing;

namespace {

std::vector<std::string> inputs_of(const Program& program) {
    std::vector<std::string> names;
    for (const int input : program.inputs) names.push_back(program.values[static_cast<std::size_t>(input)].name);
    return names;
}
std::vector<DType> all(const Program& program, DType dtype) {
    return std::vector<DType>(program.inputs.size() + program.outputs.size(), dtype);
}

double largest_error(const RunResult& result, const std::map<std::string, ReferenceArray>& reference) {
    CHECK(result.surroundings_intact);
    double largest = 0;
    for (const auto& [name, numbers] : reference) largest = std::max(largest, relative_error(result.outputs.at(name), numbers));
    return largest;
}

/// Standard normals for the given graph.
ReferenceInputs on_graph(const Program& program, std::int64_t nodes, std::vector<std::int64_t> sender, std::vector<std::int64_t> receiver,
                         unsigned seed) {
    ReferenceInputs inputs;
    inputs.rows = {{"node", nodes}, {"edge", static_cast<std::int64_t>(sender.size())}};
    inputs.indices = {{"sender", std::move(sender)}, {"receiver", std::move(receiver)}};
    std::mt19937_64 engine(seed);
    std::normal_distribution<double> normal;
    for (const int input : program.inputs) {
        const Value& value = program.values[static_cast<std::size_t>(input)];
        ReferenceArray& array = inputs.arrays[value.name];
        array.resize(static_cast<std::size_t>((value.space.empty() ? 1 : inputs.rows.at(value.space)) * value.size()));
        for (long double& number : array) number = normal(engine);
    }
    return inputs;
}

/// Every node has about `degree` edges, some of them none and one a third of all; every 7th sender is missing.
ReferenceInputs on_random_graph(const Program& program, std::int64_t nodes, std::int64_t edges, bool sorted, unsigned seed) {
    std::mt19937_64 engine(seed);
    std::vector<std::int64_t> sender, receiver;
    for (std::int64_t e = 0; e < edges; ++e) {
        sender.push_back(e % 7 == 3 ? -1 : static_cast<std::int64_t>(engine() % static_cast<unsigned>(nodes)));
        receiver.push_back(e % 3 == 0 ? nodes / 2 : static_cast<std::int64_t>(engine() % static_cast<unsigned>(nodes)));
    }
    if (sorted) std::ranges::sort(receiver);
    return on_graph(program, nodes, std::move(sender), std::move(receiver), seed);
}

Program gradient_of(const Program& program) { return vjp(program, inputs_of(program)); }

}  // namespace

TEST_CASE("random programs and their gradients agree with the reference in chunks of any number of rows") {
    random::Limits limits;
    limits.smooth_only = true;
    limits.rows = 24;
    limits.work = 100'000;
    limits.nodes = 12;
    for (unsigned seed = 1000; seed < 1060; ++seed) {
        random::Engine engine(seed);
        Program program = random::program(engine, limits);
        if (seed % 2 == 0 && !program.inputs.empty()) program = gradient_of(program);
        const ReferenceInputs inputs = rounded_inputs(program, random::inputs(engine, program, limits), all(program, DType::float64));
        const auto reference = evaluate(program, inputs);
        CAPTURE(seed);
        CAPTURE(to_text(program));
        for (const std::int64_t chunk_rows : {1, 3, 16}) {
            CAPTURE(chunk_rows);
            ProgramOptions options{.dtypes = all(program, DType::float64)};
            options.chunk_rows = chunk_rows;
            CHECK(largest_error(run_program(ProgramPlan(program, options), inputs, {.padding = seed % 3}), reference) < 1e-10);
        }
    }
}

TEST_CASE("layers of a network, their gradient and the gradient of that agree with the reference, with sorted and unsorted receivers") {
    for (const bool sorted : {true, false}) {
        for (const Layout layout : {Layout::ir_mul, Layout::mul_ir}) {
            NetworkLayers network;
            network.features = Irreps("3x0e+2x1o");
            network.harmonics = Irreps("0e+1o");
            network.hidden = 33;
            network.receivers_sorted = sorted;
            network.layout = layout;
            const Program forward = network_layers(network);
            const std::string wanted[] = {"vectors", "x"};
            const Program gradient = vjp(forward, wanted);
            const std::string again[] = {"vectors", "x", "layer0.weights_matrix"};
            for (const Program& program : {forward, gradient, gradient_of(forward), vjp(gradient, again)}) {
                const ReferenceInputs inputs = on_random_graph(program, 6, 50, sorted, 5);
                const auto reference = evaluate(program, inputs);
                CAPTURE(sorted);
                for (const std::int64_t chunk_rows : {0, 1, 5, 16}) {
                    CAPTURE(chunk_rows);
                    ProgramOptions options{.dtypes = all(program, DType::float64)};
                    options.chunk_rows = chunk_rows;
                    const ProgramPlan plan(program, options);
                    CAPTURE(plan.explain());
                    CHECK(largest_error(run_program(plan, inputs, {.padding = chunk_rows % 3}), reference) < 1e-11);
                }
            }
        }
    }
}

TEST_CASE("a node with 20,000 edges, nodes without edges, no edges, no nodes: results of chunks are those of whole arrays") {
    const Program forward = network_layers({});
    const std::string wanted[] = {"vectors", "x"};
    ThreadPool pool(3);
    for (const Program& program : {forward, vjp(forward, wanted)}) {
        const ProgramPlan chunks(program), whole(program, {.fuse = false});
        std::vector<ReferenceInputs> cases;
        std::vector<std::int64_t> sender(20'100), receiver(20'100, 3);
        for (std::size_t e = 0; e < sender.size(); ++e) sender[e] = static_cast<std::int64_t>(e % 9);
        std::fill_n(receiver.begin(), 50, 1);
        std::fill_n(receiver.end() - 50, 50, 7);
        cases.push_back(on_graph(program, 9, sender, receiver, 1));
        cases.push_back(on_graph(program, 4, {}, {}, 2));
        cases.push_back(on_graph(program, 0, {}, {}, 3));
        cases.push_back(on_graph(program, 1, {0}, {0}, 4));
        cases.push_back(on_graph(program, 3, {-1, -1, -1}, {-1, 1, 2}, 5));
        for (const ReferenceInputs& inputs : cases) {
            const RunResult expected = run_program(whole, inputs);
            const RunResult result = run_program(chunks, inputs);
            for (const auto& [given_name, numbers] : expected.outputs) {
                const auto& name = given_name;
                CAPTURE(name);
                CHECK(relative_error(result.outputs.at(name), numbers) < 5e-6);
            }
            CHECK(result.outputs == run_program(chunks, inputs, {.parallel_for = pool.parallel_for()}).outputs);
        }
    }
}

TEST_CASE("results of layers and their gradients are bitwise the same for 1, 2 and 3 threads") {
    ThreadPool two(2), three(3);
    for (const bool sorted : {true, false}) {
        NetworkLayers network;
        network.receivers_sorted = sorted;
        const Program program = gradient_of(network_layers(network));
        const ReferenceInputs inputs = on_random_graph(program, 150, 4000, sorted, 8);
        for (const std::int64_t chunk_rows : {0, 7}) {
            ProgramOptions options;
            options.chunk_rows = chunk_rows;
            const ProgramPlan plan(program, options);
            const RunResult one = run_program(plan, inputs);
            CHECK(one.outputs == run_program(plan, inputs, {.parallel_for = two.parallel_for()}).outputs);
            CHECK(one.outputs == run_program(plan, inputs, {.parallel_for = three.parallel_for()}).outputs);
        }
    }
}

TEST_CASE("weights prepared once give the same bits in every launch, and what does not fit is refused") {
    const Program program = gradient_of(network_layers({}));
    const ReferenceInputs inputs = on_random_graph(program, 20, 300, true, 2);
    const ProgramPlan plan(program);
    const RunResult expected = run_program(plan, inputs);
    CHECK(run_program(plan, inputs, {.prepare = true}).outputs == expected.outputs);
    const std::vector<std::int64_t> rows(plan.spaces().size(), 300);
    const std::size_t bytes = plan.prepared_bytes(rows);
    CHECK(bytes > 64);

    std::vector<Buffer> buffers(program.inputs.size() + program.outputs.size());
    std::vector<std::byte> memory(bytes + 64);
    std::byte* const aligned = memory.data() + 64 - reinterpret_cast<std::uintptr_t>(memory.data()) % 64;
    CHECK_THROWS_WITH_AS(plan.prepare(rows, {}, aligned, bytes), doctest::Contains("buffers, got 0"), Error);
    CHECK_THROWS_WITH_AS(plan.prepare(rows, buffers, nullptr, bytes), doctest::Contains("got a null pointer"), Error);
    CHECK_THROWS_WITH_AS(plan.prepare(rows, buffers, aligned, 1), doctest::Contains("bytes at an address"), Error);
    CHECK_THROWS_AS(plan.prepare(rows, buffers, aligned, bytes), Error);  // no arrays
}

TEST_CASE("edge weights never all exist: four layers of 58,000 edges and their gradient take a small part of them") {
    NetworkLayers network;
    network.features = Irreps("128x0e+64x1o+32x2e+32x3o");
    network.harmonics = Irreps("0e+1o+2e+3o");
    network.hidden = 64;
    network.layers = 4;
    const Program forward = network_layers(network);
    const std::string wanted[] = {"vectors", "x"};
    const std::int64_t edges = 58'000, nodes = 648, weights_of_a_layer = edges * 1312 * 4;
    for (const Program& program : {forward, vjp(forward, wanted)}) {
        const ProgramPlan plan(program);
        std::vector<std::int64_t> rows;
        for (const std::string& space : plan.spaces()) rows.push_back(space == "edge" ? edges : nodes);
        CAPTURE(plan.explain());
        CHECK(static_cast<std::int64_t>(plan.workspace_bytes(rows, 2)) < weights_of_a_layer / 2);
        CHECK(static_cast<std::int64_t>(ProgramPlan(program, {.fuse = false}).workspace_bytes(rows, 2)) > weights_of_a_layer);
        CHECK(plan.explain().find("computed here and not kept: ") != std::string::npos);
    }
}

TEST_CASE("the gradient of what all layers read is added up as it comes, not from every layer's values at the end") {
    NetworkLayers network;
    network.hidden = 64;
    network.layers = 3;
    const Program forward = network_layers(network);
    const std::string wanted[] = {"vectors", "x"};
    const Program gradient = vjp(forward, wanted);
    const std::string text = ProgramPlan(gradient, {.keep_bytes = 0}).explain();
    CAPTURE(text);
    const std::string kept = text.substr(text.find("per row of 'edge': ", text.find("kept for other groups, numbers per row of 'edge'")));
    const std::string of_edges = kept.substr(0, kept.find('\n'));
    CAPTURE(of_edges);
    CHECK(of_edges.find("_part (9)") != std::string::npos);
    CHECK(of_edges.find("(64)") == std::string::npos);
    const ReferenceInputs inputs = on_random_graph(gradient, 5, 40, true, 3);
    CHECK(largest_error(run_program(ProgramPlan(gradient, {.dtypes = all(gradient, DType::float64)}), inputs), evaluate(gradient, inputs)) <
          1e-11);
}

TEST_CASE("few rows keep what many compute again: the same numbers to rounding, and the choice depends on the rows alone") {
    NetworkLayers network;
    network.hidden = 64;
    network.layers = 3;
    const Program forward = network_layers(network);
    const std::string wanted[] = {"vectors", "x"};
    const Program gradient = vjp(forward, wanted);
    const std::vector<DType> dtypes = all(gradient, DType::float64);
    constexpr std::int64_t limit = 100'000;
    const ProgramPlan both(gradient, {.dtypes = dtypes, .keep_bytes = limit}), little(gradient, {.dtypes = dtypes, .keep_bytes = 0}),
        much(gradient, {.dtypes = dtypes, .keep_bytes = std::int64_t{1} << 40});
    CAPTURE(both.explain());
    CHECK(both.explain().find("up to 100000 bytes of intermediates more is kept: ") != std::string::npos);
    CHECK(both.explain().find("beyond 100000 bytes of intermediates more is computed again: ") != std::string::npos);
    CHECK(little.explain().find("two ways") == std::string::npos);
    CHECK_THROWS_WITH_AS(ProgramPlan(gradient, {.keep_bytes = -1}), "keep_bytes: expected at least 0, got -1", Error);

    ThreadPool pool(3);
    bool kept = false, again = false;
    for (const std::int64_t edges : {0, 1, 40, 100, 400, 1000}) {
        CAPTURE(edges);
        const ReferenceInputs inputs = on_random_graph(gradient, 7, edges, true, 3);
        std::vector<std::int64_t> rows;
        for (const std::string& space : both.spaces()) rows.push_back(space == "edge" ? edges : 7);
        const std::size_t bytes = both.workspace_bytes(rows, 3);
        const bool keeps = bytes != little.workspace_bytes(rows, 3);
        if (keeps) CHECK(bytes == much.workspace_bytes(rows, 3));
        (keeps ? kept : again) = true;
        CHECK(both.way(rows) == (keeps ? 0U : 1U));
        CHECK((both.work(rows).multiply_adds < little.work(rows).multiply_adds) == (keeps && edges > 0));
        const RunResult result = run_program(both, inputs);
        CHECK(result.outputs == run_program(keeps ? much : little, inputs).outputs);
        CHECK(result.outputs == run_program(both, inputs, {.parallel_for = pool.parallel_for()}).outputs);
        CHECK(result.outputs == run_program(both, inputs, {.prepare = true}).outputs);
        const auto reference = evaluate(gradient, inputs);
        for (const ProgramPlan* plan : {&both, &little, &much}) CHECK(largest_error(run_program(*plan, inputs), reference) < 1e-11);
    }
    CHECK(kept);
    CHECK(again);

    // What was prepared for few rows is refused for many.
    const ReferenceInputs few = on_random_graph(gradient, 7, 1, true, 3), many = on_random_graph(gradient, 7, 1000, true, 3);
    CHECK_THROWS_WITH_AS(run_program(both, many, {.prepare = true, .prepared_rows = &few.rows}),
                         doctest::Contains("prepared: expected what"), Error);
    CHECK(run_program(both, many, {.prepare = true, .prepared_rows = &many.rows}).outputs == run_program(both, many).outputs);
}

TEST_CASE("another program for more rows: each runs where it should, and both give the numbers of the gradient by edges") {
    const Program forward = paired_network();
    const PairedGradient gradient = *gradient_in_pairs(forward);
    const Program &few = gradient.of_pairs, &many = gradient.made_again;
    const std::vector<DType> dtypes = all(few, DType::float64);
    constexpr std::int64_t limit = 50'000;
    const ProgramPlan both(few, {.dtypes = dtypes, .keep_bytes = limit, .for_more_rows = many});
    const ProgramPlan kept(few, {.dtypes = dtypes, .keep_bytes = std::int64_t{1} << 40}), again(many, {.dtypes = dtypes, .keep_bytes = 0});
    CHECK(ProgramPlan(few, {.dtypes = dtypes, .keep_bytes = 0, .for_more_rows = many}).explain() == again.explain());
    ThreadPool pool(3);
    for (const std::int64_t pairs : {0, 10, 1000}) {
        CAPTURE(pairs);
        const ReferenceInputs inputs = on_paired_graph(few, 9, pairs, 5);
        const RunResult result = run_program(both, inputs);
        CHECK(result.outputs == run_program(pairs == 1000 ? again : kept, inputs).outputs);
        CHECK(result.outputs == run_program(both, inputs, {.parallel_for = pool.parallel_for()}).outputs);
        CHECK(result.outputs == run_program(both, inputs, {.prepare = true}).outputs);
        if (pairs == 10) CHECK(largest_error(result, evaluate(few, inputs)) < 1e-11);
    }
    CHECK_THROWS_WITH_AS(ProgramPlan(few, {.for_more_rows = forward}), doctest::Contains("the program for more rows: expected inputs"),
                         Error);
}

TEST_CASE("threads that are the first to need both ways of a plan, after it was moved, get what each way gives alone") {
    const PairedGradient gradient = *gradient_in_pairs(paired_network());
    const std::vector<DType> dtypes = all(gradient.of_pairs, DType::float64);
    ProgramPlan made(gradient.of_pairs, {.dtypes = dtypes, .keep_bytes = 50'000, .for_more_rows = gradient.made_again});
    const ProgramPlan fresh = std::move(made), kept(gradient.of_pairs, {.dtypes = dtypes, .keep_bytes = std::int64_t{1} << 40}),
                      again(gradient.made_again, {.dtypes = dtypes, .keep_bytes = 0});
    const ReferenceInputs few = on_paired_graph(gradient.of_pairs, 9, 10, 5), many = on_paired_graph(gradient.of_pairs, 9, 1000, 5);
    std::vector<RunResult> results(6);
    std::vector<std::thread> threads;
    for (std::size_t t = 0; t < results.size(); ++t)
        threads.emplace_back([&, t] { results[t] = run_program(fresh, t % 2 == 0 ? few : many, {.prepare = t % 3 == 0}); });
    for (std::thread& thread : threads) thread.join();
    const RunResult of_few = run_program(kept, few), of_many = run_program(again, many);
    for (std::size_t t = 0; t < results.size(); ++t) {
        CAPTURE(t);
        CHECK(results[t].surroundings_intact);
        CHECK(results[t].outputs == (t % 2 == 0 ? of_few : of_many).outputs);
    }
}
