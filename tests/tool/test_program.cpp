// The `clebsch` program as a user meets it: what it prints, as JSON and for people, and with which code it ends.
#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "tool/program.hpp"

using clebsch::testing::check_error;
using clebsch::testing::json_of;
using clebsch::testing::ProgramResult;
using clebsch::testing::run_program;
using clebsch::testing::TemporaryFile;
using nlohmann::json;

namespace {

const std::string data = std::string(CLEBSCH_SOURCE_DIR) + "/examples/data/";

bool contains(const std::string& text, const std::string& words) { return text.find(words) != std::string::npos; }

}  // namespace

TEST_CASE("help exists for the program and every subcommand, with an example") {
    const ProgramResult all = run_program({"--help"});
    CHECK(all.exit_code == 0);
    for (const std::string command : {"irreps", "info", "graph", "run", "explain", "check", "bench", "md", "relax", "prebuild", "demo"}) {
        CAPTURE(command);
        CHECK(contains(all.out, command));
        const ProgramResult help = run_program({command, "--help"});
        CHECK(help.exit_code == 0);
        CHECK(contains(help.out, "clebsch " + command));
        CHECK(contains(help.out, "Example"));
    }
}

TEST_CASE("the version is one line, and the program starts quickly") {
    const auto start = std::chrono::steady_clock::now();
    const ProgramResult result = run_program({"--version"});
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    CHECK(result.exit_code == 0);
    CHECK(result.out == "0.1.0\n");
    CHECK(seconds < 2);  // 20 ms on an idle machine; tests run on busy ones and under sanitizers
}

TEST_CASE("usage errors and bad input end with code 2 and say what was expected") {
    check_error({}, {"subcommand"});
    check_error({"nonsense"}, {"nonsense"});
    check_error({"irreps"}, {"irreps is required"});
    check_error({"irreps", "3x1q"}, {"expected a parity"});
    check_error({"irreps", "1o", "--nonsense"}, {"--nonsense"});
    check_error({"graph", data + "water-216.xyz"}, {"--cutoff"});
    check_error({"graph", "/nonexistent.xyz", "--cutoff", "3"}, {"/nonexistent.xyz"});
    check_error({"explain", "nonsense"}, {"nonsense"});
    check_error({"explain", "nequix-main", "in=1o"}, {"takes no options"});
    check_error({"explain", "convolution", "in"}, {"key=value"});
    check_error({"explain", "convolution", "in=1o", "in=1o"}, {"twice"});
    check_error({"explain", "nequix-main", "--derivative", "z"}, {"'z'"});
    check_error({"explain", "nequix-main", "--text", "x"}, {"both"});
    check_error({"explain", "nequix-main", "--instruction-set", "mmx"}, {"mmx"});
    check_error({"bench", "nequix-main", "--dtype", "float8"}, {"float8"});
    check_error({"bench", "--passes", "sideways"}, {"sideways"});
    check_error({"bench", "--structure", data + "water-216.xyz"}, {"--cutoff"});
    for (const std::string option : {"--blocks", "--consumers", "--team-warps"})
        check_error({"bench", "--quick", option, "2"}, {option + ": expected with --device cuda only, got --device cpu"});
    check_error({"run", "model", "structure", "--profile"}, {"--profile: expected with --device cuda only, got --device cpu"});
    check_error({"explain", "model.nqx", "--target", "sm_90"}, {"--target: expected an operation, got the model 'model.nqx'"});
    for (const std::string option : {"--source", "--deterministic"})
        check_error({"explain", "nequix-main", option}, {option + ": expected together with --target"});
    check_error({"check"}, {"expected an operation"});
    check_error({"check", "nequix-main", "--seed", "-1"}, {"--seed: expected an integer of at least 0, got '-1'"});
    for (const std::string option : {"--copy", "--fma"}) {
        for (const std::string number : {"nan", "inf", "fast"})
            check_error({"explain", "nequix-main", option, number}, {option + ": expected a finite number, got '" + number + "'"});
        for (const std::string number : {"-1", "0"})
            check_error({"explain", "nequix-main", option, number}, {option + ": expected a finite number above 0, got '" + number + "'"});
    }
    for (const std::string number : {"", "fast", "1e400", "3x", "nan", "inf"})
        check_error({"graph", data + "water-216.xyz", "--cutoff", number}, {"--cutoff: expected a finite number, got '" + number + "'"});
    check_error({"bench", "nequix-main", "--seconds", "nan"}, {"--seconds: expected a finite number, got 'nan'"});
    for (const std::string number : {"0", "-1", "601"})
        check_error({"bench", "nequix-main", "--seconds", number}, {"--seconds: expected 0.01 to 600 seconds, got '" + number + "'"});
    for (const std::vector<std::string>& command : {std::vector<std::string>{"bench", "--in", ""},
                                                    {"explain", "--text", ""},
                                                    {"explain", "nequix-main", "--target", ""},
                                                    {"explain", "nequix-main", "--derivative", ""},
                                                    {"irreps", "1o", "1o", "--keep", ""},
                                                    {"run", "model", "structure", "--out", ""},
                                                    {"md", "model", "structure", "--trajectory", ""},
                                                    {"relax", "model", "structure", "--plot", ""}})
        check_error(command, {command[command.size() - 2] + ": expected a value, got ''"});
    check_error({"bench", "nequix-main", "--rows", "1e3"}, {"--rows: expected an integer, got '1e3'"});
    check_error({"bench", "nequix-main", "--cutoff", "3"}, {"--cutoff: expected together with --structure"});
    check_error({"bench", "nequix-main", "--filter", "0e"}, {"--filter: expected together with --in"});
    check_error({"bench", "--in", "4x0e", "--filter", "5e"}, {"--in 4x0e: no product with", "gives any of 5e"});
    check_error({"check", "linear-128", "--positive", "zz"}, {"--positive: there is no input 'zz'; there are x, weights"});
    check_error({"check", "linear", "in=2x0e", "out=1o"}, {"there is nothing to check, the operation has no paths"});
    check_error({"check", "mace-large", "--nodes", "1000000", "--neighbors", "1000000"},
                {"no memory for arrays of 16.0 TB", "the largest is 'sender' with 1000000000000 rows"});
    check_error({"bench", "linear-128", "--rows", "1000000000"},
                {"no memory for arrays", "the largest is 'x' with 1000000000 rows of 1152"});
    for (const std::string number : {"", "fast", "1.5", "9223372036854775808"})
        check_error({"md", "model", "structure", "--steps", number}, {"--steps: expected an integer, got '" + number + "'"});
    check_error({"md", "model", "structure", "--restart", "x", "--trajectory", "./x"}, {"--trajectory: expected another file than"});
    check_error({"relax", "model", "structure", "--trajectory", "structure"}, {"--trajectory: expected another file than"});
    check_error({"run", "model", "structure", "--out", "./model"}, {"--out: expected another file than that of MODEL"});
    check_error({"explain", "--text", "text", "--svg", "./text"}, {"--svg: expected another file than that of --text"});
    check_error({"bench", "--structure", "atoms", "--svg", "./atoms"}, {"--svg: expected another file than that of --structure"});
    check_error({"irreps", "4294967296x0e", "4294967296x0e"}, {"do not fit in 64 bits"});
    check_error({"graph", "/dev/null", "--cutoff", "3"}, {"'/dev/null': expected at least one frame"});
    check_error({"bench", "--structure", "/dev/null", "--cutoff", "3"}, {"'/dev/null': expected at least one frame"});
    check_error({"graph", "/dev/zero", "--cutoff", "3"}, {"cannot read file '/dev/zero': it is a device"});
    check_error({"demo", "--data", "/nonexistent"}, {"/nonexistent"});
    const TemporaryFile text("clebsch polynomial 0\nnonsense\n");
    check_error({"explain", "--text", text.path()}, {text.path()});
    const ProgramResult forced = run_program({"info"}, {"CLEBSCH_INSTRUCTION_SET=mmx"});
    CHECK(forced.exit_code == 2);
    CHECK(contains(forced.err, "CLEBSCH_INSTRUCTION_SET"));
    // Whether the command would have used the variable or not.
    for (const std::vector<std::string>& command : {std::vector<std::string>{"check", "linear", "in=1o", "out=1o"}, {"irreps", "1o"}})
        for (const std::string number : {"abc", "0", "-1", "1e3"}) {
            const ProgramResult threads = run_program(command, {"CLEBSCH_NUM_THREADS=" + number});
            CHECK(threads.exit_code == 2);
            CHECK(contains(threads.err, "CLEBSCH_NUM_THREADS: expected a number from 1 to 1024, got '" + number + "'"));
        }
    CHECK(run_program({"check", "--help"}, {"CLEBSCH_NUM_THREADS=abc"}).exit_code == 0);
}

TEST_CASE("program: where results cannot be written is said before the work") {
    for (const std::vector<std::string>& command : std::vector<std::vector<std::string>>{{"run", "model", "structure", "--out"},
                                                                                         {"md", "model", "structure", "--restart"},
                                                                                         {"md", "model", "structure", "--plot"},
                                                                                         {"relax", "model", "structure", "--out"},
                                                                                         {"relax", "model", "structure", "--plot"},
                                                                                         {"explain", "mace-large", "--svg"},
                                                                                         {"bench", "mace-large", "--svg"}}) {
        std::vector<std::string> arguments = command;
        arguments.emplace_back("no/such/folder/file");
        check_error(arguments, {command.back() + ": expected a file in a folder that can be written to, got 'no/such/folder/file'"});
        arguments.back() = "/tmp";
        check_error(arguments, {command.back() + ": expected a file to write, got the folder '/tmp'"});
    }
}

TEST_CASE("explain without a name, or with an operation that needs options, lists what there is; as JSON too") {
    CHECK(contains(run_program({"explain"}).out, "nequix-main"));
    const json all = json_of({"explain"});
    const auto has = [](const json& rows, const std::string& key, const std::string& value) {
        return std::ranges::any_of(rows, [&](const json& row) { return row[key] == value; });
    };
    CHECK(has(all["operations"], "name", "convolution"));
    CHECK(has(all["named_problems"], "label", "nequix-main"));
    const json convolution = json_of({"explain", "convolution"});
    CHECK(convolution["operation"] == "convolution");
    CHECK(has(convolution["options"], "name", "in"));
}

TEST_CASE("irreps: dimensions, slices, order, products") {
    const json one = json_of({"irreps", "2x1o+3x0e+0x2e+1o"});
    CHECK(one["dim"] == 12);
    CHECK(one["channels"] == 6);
    CHECK(one["simplified"] == "2x1o+3x0e+1x1o");
    CHECK(one["regrouped"] == "3x0e+3x1o");
    CHECK(one["blocks"][1]["begin"] == 6);
    CHECK(one["blocks"][1]["end"] == 9);
    const json two = json_of({"irreps", "4x1o+2x0e", "0e+1o"});
    CHECK(two["paths"] == 6);  // 1o x 0e; 1o x 1o -> 0e, 1e, 2e; 0e x 0e; 0e x 1o
    CHECK(two["product_dim"] == 4 * 3 + 4 * (1 + 3 + 5) + 2 * 1 + 2 * 3);
    const json kept = json_of({"irreps", "4x1o+2x0e", "0e+1o", "--keep", "0e"});
    CHECK(kept["paths"] == 2);
    CHECK(kept["product"] == "6x0e");
    CHECK(contains(run_program({"irreps", "32x0+16x1"}).out, "80"));
}

TEST_CASE("info: one chosen instruction set among the usable ones, libraries with a reason") {
    const json info = json_of({"info"});
    CHECK(info["version"] == "0.1.0");
    CHECK(info["threads"].get<int>() >= 1);
    int chosen = 0;
    for (const json& set : info["instruction_sets"]) {
        if (!set["chosen"].get<bool>()) continue;
        ++chosen;
        CHECK(set["usable"].get<bool>());
        CHECK_FALSE(set["why"].get<std::string>().empty());
    }
    CHECK(chosen == 1);
    REQUIRE(info["libraries"].size() >= 3);
    for (const json& library : info["libraries"]) CHECK_FALSE(library["where"].get<std::string>().empty());
    const std::string best = info["instruction_sets"].front()["name"];
    CHECK(contains(run_program({"info"}, {"CLEBSCH_INSTRUCTION_SET=" + best}).out, "asked for by CLEBSCH_INSTRUCTION_SET"));
    // As it is looked for when a kernel is compiled.
    CHECK(contains(run_program({"info"}, {"CLEBSCH_NVRTC=/nowhere/libnvrtc.so"}).out, "/nowhere/libnvrtc.so: "));
}

TEST_CASE("explain: counts of a convolution and of its derivatives, by hand") {
    const json forward = json_of({"explain", "nequix-main", "--nodes", "10", "--neighbors", "20", "--copy", "10", "--fma", "100"});
    CHECK(forward["paths"].size() == 23);
    CHECK(forward["operands"][2]["numbers"] == 1312);
    CHECK(forward["row_space"] == "edge");
    // Every array once, float32, and two 64-bit indices: x 704 and out 5472 per node, y 16 and weights 1312 per edge.
    const double bytes = 4.0 * (10 * (704 + 5472) + 200 * (16 + 1312)) + 200 * 16;
    CHECK(forward["bytes_per_row"].get<double>() == doctest::Approx(bytes / 200));
    const double seconds = std::max(bytes / 10e9, forward["multiply_adds_per_row"].get<double>() * 200 / 50e9);
    CHECK(forward["limit_seconds"].get<double>() == doctest::Approx(seconds));
    CHECK(forward["flops_per_row"].get<double>() == doctest::Approx(2 * forward["multiply_adds_per_row"].get<double>()));

    const json backward = json_of({"explain", "nequix-main", "--derivative", "x,y,weights"});
    CHECK(backward["operands"].size() == 7);
    const json second = json_of({"explain", "nequix-main", "--derivative", "x,y,weights", "--derivative", "x,out_cotangent"});
    CHECK(second["multiply_adds_per_row"].get<double>() > forward["multiply_adds_per_row"].get<double>());
    CHECK(contains(json_of({"explain", "nequip-water", "--target", "sm_90"})["schedule"].get<std::string>(), "paths"));
    const json along = json_of({"explain", "nequix-main", "--derivative", "forward:x"});
    CHECK(along["operands"].back()["name"] == "out_tangent");
}

TEST_CASE("explain: printed text can be explained again, from a file") {
    const ProgramResult text = run_program({"explain", "nequip-water", "--derivative", "x", "--print-text"});
    CHECK(text.exit_code == 0);
    const TemporaryFile file(text.out);
    CHECK(run_program({"explain", "--text", file.path(), "--print-text"}).out == text.out);
    CHECK(json_of({"explain", "--text", file.path()})["hash"] == json_of({"explain", "nequip-water", "--derivative", "x"})["hash"]);
}

TEST_CASE("explain: lists what there is, and what an operation needs") {
    const std::string list = run_program({"explain"}).out;
    CHECK(contains(list, "convolution"));
    CHECK(contains(list, "mace-large"));
    CHECK(contains(run_program({"explain", "convolution"}).out, "required"));
    CHECK(contains(run_program({"explain", "harmonics-3"}).out, "program"));
}

TEST_CASE("check: passes on operations of every kind, for all derivatives") {
    for (const std::vector<std::string>& what :
         std::vector<std::vector<std::string>>{{"convolution", "in=3x0e+2x1o", "edge=0e+1o", "out=0e+1o"},
                                               {"linear", "in=4x0e+2x1o", "out=3x0e+5x1o"},
                                               {"harmonics-3"},
                                               // A short vector bends the harmonics within the step of differences.
                                               {"harmonics-6", "--seed", "3"}}) {
        std::vector<std::string> arguments = {"check"};
        arguments.insert(arguments.end(), what.begin(), what.end());
        CAPTURE(what.front());
        const json result = json_of(arguments);
        CHECK(result["passed"].get<bool>());
        std::set<std::string> kinds;
        for (const json& check : result["checks"]) {
            INFO(check.dump());
            CHECK(check["verdict"].get<bool>());
            kinds.insert(check["what"].get<std::string>() + ", " + check["pass"].get<std::string>());
        }
        for (const char* kind :
             {"reference, forward", "reference, double backward", "finite differences, backward", "finite differences, double backward",
              "equivariance, forward", "equivariance, double backward", "same bits, forward"})
            CHECK(kinds.contains(kind));
    }
}

TEST_CASE("check: an operation that is not equivariant fails with code 1, in that check alone") {
    // Multiplies the components of a vector by 1, 2 and 3, but claims that the result is a vector.
    std::string text = run_program({"explain", "linear", "in=1x1o", "out=1x1o", "--print-text"}).out;
    const std::string honest = "identity(3)";
    const std::size_t place = text.find(honest);
    INFO(text);
    REQUIRE(place != std::string::npos);
    text.replace(place, honest.size(), "{3,3; 0,0: 1; 1,1: 2; 2,2: 3}");
    const TemporaryFile file(text);
    const json result = json_of({"check", "--text", file.path()}, 1);
    CHECK_FALSE(result["passed"].get<bool>());
    for (const json& check : result["checks"])
        CHECK(check["verdict"].get<bool>() == (check["what"] != "equivariance" || check["error"] <= check["bound"]));
    const auto failed = std::ranges::count_if(result["checks"], [](const json& check) { return !check["verdict"].get<bool>(); });
    CHECK(failed >= 1);
}

TEST_CASE("bench: measures the machine and every pass, and draws them") {
    const TemporaryFile picture;
    const json result = json_of({"bench", "nequip-water", "linear-128", "--quick", "--seconds", "0.01", "--nodes", "8", "--neighbors", "5",
                                 "--rows", "50", "--threads", "1", "--copy-megabytes", "8", "--svg", picture.path()});
    CHECK(result["copy_bytes_per_second"].get<double>() > 1e7);
    CHECK(result["multiply_adds_per_second"].get<double>() > 1e7);
    REQUIRE(result["results"].size() == 6);
    for (const json& row : result["results"]) {
        INFO(row.dump());
        CHECK(row["microseconds_per_row"].get<double>() > 0);
        CHECK(row["gigaflops"].get<double>() > 0);
        CHECK_FALSE(contains(row["schedule"].get<std::string>(), "general"));
    }
    CHECK(result["results"][0]["rows"] == 40);
    CHECK(picture.content().rfind("<svg", 0) == 0);
    CHECK(contains(picture.content(), "double backward"));
    CHECK(contains(picture.content(), "</svg>"));
}

TEST_CASE("bench: a convolution of one's own irreps") {
    const json result = json_of({"bench", "--in", "5x0e+3x1o", "--edge", "0e+1o", "--passes", "forward", "--quick", "--seconds", "0.01",
                                 "--nodes", "8", "--neighbors", "5", "--copy-megabytes", "8"});
    REQUIRE(result["results"].size() == 1);
    CHECK(result["results"][0]["problem"] == "your convolution");
}

TEST_CASE("bench: general loops that were asked for are no failure") {
    const ProgramResult forced = run_program({"bench", "--in", "4x0e", "--edge", "0e", "--passes", "forward", "--kernel", "general",
                                              "--quick", "--seconds", "0.01", "--nodes", "8", "--neighbors", "5", "--copy-megabytes", "8"});
    CHECK(forced.exit_code == 0);
    CHECK(contains(forced.out, "general"));
    CHECK_FALSE(contains(forced.out, "please report"));
}

TEST_CASE("demo: every pass of a small molecule is checked against the reference") {
    const auto libraries = json_of({"info"})["libraries"];
    if (!libraries.front()["found"].get<bool>()) {
        MESSAGE("not run: " << libraries.front()["where"].get<std::string>());
        return;
    }
    const TemporaryFile picture, plot;
    const json result = json_of({"demo", "--data", data, "--structure", "aspirin.xyz", "--copy-megabytes", "8", "--sample", "1", "--svg",
                                 picture.path(), "--steps", "4", "--plot", plot.path()});
    CHECK(result["passed"].get<bool>());
    CHECK(result["layers"].size() == 4);
    CHECK(result["layers"][1]["paths"] == 23);
    CHECK(result["results"].size() == 3 + 4 * 6);
    for (const json& row : result["results"]) {
        INFO(row.dump());
        CHECK(row["verdict"].get<bool>());
        CHECK_FALSE(contains(row["schedule"].get<std::string>(), "general"));
    }
    REQUIRE(result["whole_model"].size() == 7);  // an energy and two forces, beside golden values
    for (const json& row : result["whole_model"]) {
        INFO(row.dump());
        CHECK(row["verdict"].get<bool>());
        CHECK(row["error"].get<double>() > 0);
    }
    CHECK(result["moments"].back()["step"] == 4);
    CHECK(result["microseconds_per_atom_step"].get<double>() > 0);
    CHECK(contains(picture.content(), "</svg>"));
    CHECK(contains(plot.content(), "Temperature"));
}

TEST_CASE("prebuild fills a folder of kernels once, or names the compiler that is missing") {
    std::string folder = (std::filesystem::temp_directory_path() / "clebsch-prebuild-XXXXXX").string();
    REQUIRE(::mkdtemp(folder.data()) != nullptr);
    const std::vector<std::string> arguments = {"prebuild", "nequip-lips", "--arch", "sm_90", "--passes", "forward", "--output", folder};
    const ProgramResult first = run_program(arguments);
    if (first.exit_code == 0) {
        std::vector<std::string> again = arguments;
        const nlohmann::json report = json_of(again);
        const nlohmann::json& row = report.at("prebuilt").at(0);
        CHECK(row.at("what") == "nequip-lips");
        CHECK(row.at("kernels") > 0);
        CHECK(row.at("compiled") == 0);
    } else {
        CHECK(first.exit_code == 2);
        CHECK(first.err.find("NVRTC") != std::string::npos);
    }
    check_error({"prebuild", "nequip-lips", "--arch", "sm_20", "--output", folder}, {"sm_20"});
    check_error({"prebuild", "nequip-lips", "--arch", "sm_90", "--passes", "backwards", "--output", folder},
                {"backwards", "forward,backward,double"});
    check_error({"prebuild", "no-such-problem", "--arch", "sm_90", "--output", folder}, {"no-such-problem"});
    check_error({"bench", "nequip-lips", "--prebuilt", folder}, {"--prebuilt", "--device cuda only"});
    check_error({"bench", "nequip-lips", "--device", "cuda", "--prebuilt", folder + "/none"}, {"--prebuilt", "none is no folder"});
    std::filesystem::remove_all(folder);
}
