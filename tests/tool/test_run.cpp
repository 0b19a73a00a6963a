// clebsch run and clebsch explain MODEL, as a user meets them.
#include <doctest/doctest.h>

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/file.hpp"
#include "io/xyz.hpp"
#include "tool/program.hpp"

using clebsch::testing::check_error;
using clebsch::testing::json_of;
using clebsch::testing::ProgramResult;
using clebsch::testing::run_program;
using clebsch::testing::TemporaryFile;
using nlohmann::json;

namespace {

const std::string data = std::string(CLEBSCH_SOURCE_DIR) + "/examples/data/", model = data + "nequix-mp-1.nqx";

const char* crystal =
    "2\nLattice=\"4.2 0 0 0 4.2 0 0 0.3 4.4\" Properties=species:S:1:pos:R:3 energy=7 note=kept\nNa 0 0 0\nCl 2.2 2.0 2.1\n";

}  // namespace

TEST_CASE("run: every frame's energy, forces and stress, as JSON, for people, and as extended XYZ") {
    const json report = json_of({"run", model, data + "aspirin.xyz", "--dtype", "float64"});
    REQUIRE(report.at("frames").size() == 2);
    CHECK(report.at("frames")[1].at("energy").get<double>() == doctest::Approx(-136.035007150782).epsilon(1e-12));
    CHECK(report.at("frames")[1].at("edges") == 346);
    CHECK(report.at("frames")[1].at("stress_xx").is_null());
    CHECK(report.at("forces").size() == 42);
    CHECK(report.at("forces")[21].at("x").get<double>() == doctest::Approx(-2.584551841712673).epsilon(1e-9));

    const TemporaryFile in(crystal), out("");
    const json periodic = json_of({"run", model, in.path(), "--out", out.path()});
    const auto frames = clebsch::read_xyz(out.path());
    REQUIRE(frames.size() == 1);
    CHECK(frames[0].info_numbers("energy")[0] == periodic.at("frames")[0].at("energy").get<double>());
    CHECK(frames[0].info_numbers("stress")[4] == periodic.at("frames")[0].at("stress_yy").get<double>());
    CHECK(*frames[0].info_text("note") == "kept");
    const auto* forces = frames[0].column("forces");
    REQUIRE(forces != nullptr);
    CHECK(std::get<std::vector<double>>(forces->values)[3] == periodic.at("forces")[1].at("x").get<double>());

    const ProgramResult people = run_program({"run", model, in.path()});
    CHECK(people.exit_code == 0);
    CHECK(people.out.find("Na1 Cl1") != std::string::npos);
}

TEST_CASE("run --check passes on a periodic and on an open structure") {
    for (const std::string& frame : {std::string(crystal), std::string("3\nwater\nO 0 0 0\nH 0.96 0 0\nH 0 0.96 0.1\n")}) {
        const TemporaryFile in(frame);
        const json report = json_of({"run", model, in.path(), "--check"});
        CHECK(report.at("passed") == true);
        CHECK(report.at("checks").size() >= 10);
        for (const json& row : report.at("checks")) {
            INFO(row.dump());
            CHECK(row.at("error").get<double>() <= row.at("bound").get<double>());
        }
    }
}

TEST_CASE("run --tables: the same numbers to what the tables keep, the size of the tables, checks pass") {
    const json computed = json_of({"run", model, data + "aspirin.xyz"});
    const json tables = json_of({"run", model, data + "aspirin.xyz", "--tables", "--check"});
    CHECK(!computed.contains("table_pieces"));
    CHECK(tables.at("table_pieces").get<int>() > 4);
    CHECK(tables.at("table_error").get<double>() < 1e-7);
    CHECK(tables.at("passed") == true);
    CHECK(tables.at("frames")[1].at("energy").get<double>() ==
          doctest::Approx(computed.at("frames")[1].at("energy").get<double>()).epsilon(1e-7));
    CHECK(json_of({"run", model, data + "aspirin.xyz", "--table-tolerance", "1e-4"}).at("table_pieces") < tables.at("table_pieces"));
    CHECK(json_of({"explain", model, "--tables"}).at("schedule").get<std::string>().find("grouped by the weights they gather") !=
          std::string::npos);
    check_error({"run", model, data + "aspirin.xyz", "--table-tolerance", "0"}, {"--table-tolerance", "'0'"});
    check_error({"run", model, data + "aspirin.xyz", "--table-tolerance", "1"}, {"tables: expected a tolerance between 0 and 1, got 1"});
}

TEST_CASE("run: bad input ends with code 2 and says what was wrong") {
    check_error({"run"}, {"required"});
    check_error({"run", "missing.nqx", data + "aspirin.xyz"}, {"missing.nqx"});
    check_error({"run", model, "missing.xyz"}, {"missing.xyz"});
    const TemporaryFile close("1\n\nO 0 0 0\n2\n\nH 0 0 0\nH 0 0 0.0001\n"), stranger("1\n\nO 0 0 0\n1\n\nQq 0 0 0\n");
    check_error({"run", model, close.path()}, {close.path(), "frame 2", "atom 0 (H) and atom 1 (H) are 1e-04 A apart"});
    check_error({"run", model, stranger.path()}, {stranger.path(), "frame 2", "'Qq' is no chemical element"});
    check_error({"run", model, data + "aspirin.xyz", "--dtype", "float16"}, {"float16"});
    for (const char* device : {"gpu", "cuda:", "cuda:-1", "cuda:x", "cuda1"})
        check_error({"run", model, data + "aspirin.xyz", "--device", device}, {"--device", "cpu, cuda or cuda:NUMBER", device});
    for (const auto& [option, value] : {std::pair{"--instruction-set", "baseline"}, {"--threads", "2"}, {"--keep-megabytes", "4"}})
        for (const char* command : {"run", "md", "relax"})
            check_error({command, model, data + "aspirin.xyz", "--device", "cuda", option, value},
                        {option, "expected with --device cpu only, got --device cuda"});
    const ProgramResult missing = run_program({"run", model, data + "aspirin.xyz", "--device", "cuda:1000"});  // with a GPU or without
    CHECK(missing.exit_code != 0);
    CHECK(missing.err.find(missing.err.find("GPU number 1000") == std::string::npos ? "CUDA driver" : "this machine has") !=
          std::string::npos);
    const TemporaryFile unknown("2\n\nO 0 0 0\nAt 1 0 0\n"), far("1\n\nO nan 0 0\n"), empty("");
    check_error({"run", model, unknown.path()}, {"atom 1 (At)"});
    check_error({"run", model, far.path()}, {"nan"});
    check_error({"run", model, empty.path()}, {"at least one frame"});
    check_error({"run", data + "aspirin.xyz", data + "aspirin.xyz"}, {"aspirin.xyz"});
    std::string large = clebsch::read_file(model);
    const std::string scale = "\"scale\": ";
    large.insert(large.find(scale) + scale.size(), "1e308, \"unused\": ");
    const TemporaryFile overflows(large);
    check_error({"run", overflows.path(), data + "aspirin.xyz"}, {"aspirin.xyz', frame 1: model: the energy of structure 0 is not finite"});
}

TEST_CASE("explain MODEL: hyperparameters, unused keys, layers, steps and memory") {
    const json report = json_of({"explain", model});
    CHECK(report.at("parameters") == 707658);
    CHECK(report.at("cutoff") == 6);
    CHECK(report.at("layers").size() == 4);
    CHECK(report.at("layers")[1].at("weights") == 1312);
    CHECK(report.at("unused_keys").get<std::string>().find("train_path") != std::string::npos);
    CHECK(report.at("workspace_bytes").get<double>() > 0);
    const std::string schedule = report.at("schedule").get<std::string>();
    CHECK(schedule.find("layer1.message") != std::string::npos);
    CHECK(schedule.find("bytes of intermediates more is kept") != std::string::npos);
    // Every thread has some memory of its own, so how many there are is part of the question.
    const json little = json_of({"explain", model, "--keep-megabytes", "0", "--nodes", "64", "--threads", "2"});
    CHECK(little.at("schedule").get<std::string>().find("more is kept") == std::string::npos);
    CHECK(little.at("workspace_bytes").get<double>() <
          json_of({"explain", model, "--nodes", "64", "--threads", "2"}).at("workspace_bytes").get<double>() / 3);
}

TEST_CASE("explain --svg draws a model, a program and a polynomial as they run") {
    const auto drawn = [](std::vector<std::string> arguments) {
        const TemporaryFile picture;
        arguments.insert(arguments.end(), {"--svg", picture.path()});
        const json report = json_of(arguments);
        CHECK(report.at("picture") == picture.path());
        const std::string svg = picture.content();
        CHECK(svg.starts_with("<svg"));
        CHECK(svg.ends_with("</svg>\n"));
        return svg;
    };
    const std::string whole = drawn({"explain", model});
    for (const char* words :
         {"kept: layer1.message (5472)", "nodes as one tape", "23 paths, gather, scatter", "matrix product", "two ways to run it",
          "up to 67108864 bytes of intermediates more is kept: ", "beyond 67108864 bytes of intermediates more is computed again: "}) {
        INFO(words);
        CHECK(whole.find(words) != std::string::npos);
    }
    // The way that keeps more has the edges' weights as kept values, the other one only computes them again.
    const std::string little = drawn({"explain", model, "--keep-megabytes", "0"});
    CHECK(little.find("two ways") == std::string::npos);
    CHECK(little.find("more is kept") == std::string::npos);
    const auto kept = [](const std::string& svg) {
        std::size_t lines = 0;
        for (std::size_t at = svg.find(" numbers per "); at != std::string::npos; at = svg.find(" numbers per ", at + 1)) ++lines;
        return lines;
    };
    CHECK(kept(whole) > 2 * kept(little));
    CHECK(drawn({"explain", "convolution", "in=4x0e+2x1o", "edge=0e+1o", "out=0e+1o", "--derivative", "x,y"}).find("gather") !=
          std::string::npos);
    CHECK(drawn({"explain", "linear", "in=4x0e", "out=2x0e"}).find("matrix product") != std::string::npos);
    check_error({"explain", model, "--svg", "/nonexistent/folder/x.svg"}, {"/nonexistent/folder/x.svg"});
}
