// `clebsch md` and `clebsch relax` as a user meets them, on the published model.
#include <doctest/doctest.h>
#include <signal.h>
#include <unistd.h>

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/file.hpp"
#include "io/xyz.hpp"
#include "model/restart.hpp"
#include "tool/program.hpp"

using clebsch::read_file;
using clebsch::testing::check_error;
using clebsch::testing::ProgramResult;
using clebsch::testing::run_program;
using clebsch::testing::RunningProgram;
using nlohmann::json;
using Words = std::vector<std::string>;

namespace {

const std::string data = std::string(CLEBSCH_SOURCE_DIR) + "/examples/data/", model = data + "nequix-mp-1.nqx",
                  aspirin = data + "aspirin.xyz";

/// A folder of this test.
struct Folder {
    std::filesystem::path path;
    Folder() {
        char name[] = "/tmp/clebsch-test-XXXXXX";
        path = mkdtemp(name);
    }
    ~Folder() { std::filesystem::remove_all(path); }
    std::string file(const char* name) const { return path / name; }
};

Words operator+(Words all, const Words& more) {
    all.insert(all.end(), more.begin(), more.end());
    return all;
}

ProgramResult succeeding(const Words& arguments, int exit_code = 0) {
    ProgramResult result = run_program(arguments);
    INFO(result.err);
    REQUIRE(result.exit_code == exit_code);
    return result;
}

/// A run is nothing without neighbours: what cannot be tested here must not look tested.
void require_neighbour_lists() {
    const json library = json::parse(run_program({"info", "--json"}).out)["libraries"].front();
    REQUIRE_MESSAGE(library["found"].get<bool>(), library["where"].get<std::string>());
}

/// Waits until the run's restart file has come to a step; the run must not have ended.
void wait_for_step(RunningProgram& program, const std::string& restart, std::int64_t step) {
    while (program.running()) {
        usleep(2000);
        if (std::filesystem::exists(restart) && clebsch::read_restart(restart).atoms.step >= step) return;
    }
    const ProgramResult result = program.wait();
    FAIL("ended early: " << result.err);
}

}  // namespace

TEST_CASE("md: energies, frames and picture of a short run of aspirin") {
    require_neighbour_lists();
    const Folder folder;
    const std::string trajectory = folder.file("md.xyz"), plot = folder.file("md.svg");
    const json result = json::parse(succeeding({"md", model, aspirin, "--steps", "6", "--dtype", "float64", "--trajectory", trajectory,
                                                "--every", "2", "--plot", plot, "--json"})
                                        .out);
    CHECK(result["atoms"] == 21);
    CHECK(result["last_step"] == 6);
    CHECK(result["finished"] == true);
    REQUIRE(result["moments"].size() == 7);
    CHECK(result["moments"][0]["potential"].get<double>() == doctest::Approx(-136.035004).epsilon(1e-7));  // golden, float32
    const double total = result["moments"][0]["total"].get<double>();
    for (const json& moment : result["moments"]) CHECK(std::abs(moment["total"].get<double>() - total) < 0.005);
    // The drift is the slope of the line through the total energies: seven of them, 0.5 fs apart.
    double covariance = 0;
    for (int i = 0; i < 7; ++i) covariance += (i - 3) * result["moments"][static_cast<std::size_t>(i)]["total"].get<double>();
    constexpr double variance = 28, picoseconds = 0.5e-3, atoms = 21;
    CHECK(result["drift"].get<double>() == doctest::Approx(1e3 * covariance / variance / picoseconds / atoms));
    CHECK(result["nanoseconds_per_day"].get<double>() > 0);
    const auto frames = clebsch::read_xyz(trajectory);
    REQUIRE(frames.size() == 4);
    CHECK(*frames[3].info_text("step") == "6");
    CHECK(frames[3].info_numbers("energy")[0] == result["moments"][6]["potential"].get<double>());
    CHECK(frames[0].structure == clebsch::read_xyz(aspirin).back().structure);
    CHECK(frames[0].column("forces")->width == 3);
    const std::string picture = read_file(plot);
    for (const char* words : {"<svg", "Temperature (K)", "</svg>"}) CHECK(picture.find(words) != std::string::npos);
    CHECK(picture.find("Volume") == std::string::npos);
    CHECK(picture.find("nan") == std::string::npos);
}

TEST_CASE("md: a run that is killed goes on from its restart file to the same trajectory, bit for bit") {
    require_neighbour_lists();
    for (const Words& ensemble : {Words{"--ensemble", "nve"}, Words{"--ensemble", "svr", "--time-constant", "5"},
                                  Words{"--ensemble", "langevin", "--threads", "2"}}) {
        CAPTURE(ensemble[1]);
        const Folder folder;
        const auto command = [&](const char* name, const std::string& steps) {
            const std::string file = folder.file(name);
            return Words{"md",
                         model,
                         aspirin,
                         "--steps",
                         steps,
                         "--timestep",
                         "1",
                         "--seed",
                         "12",
                         "--restart-every",
                         "4",
                         "--every",
                         "3",
                         "--skin",
                         "0.2",
                         "--restart",
                         file + ".restart",
                         "--trajectory",
                         file + ".xyz",
                         "--json"} +
                   ensemble;
        };
        std::int64_t killed = 0;
        for (const std::int64_t step : {4, 12}) {
            RunningProgram program(command("killed", "100000"));
            wait_for_step(program, folder.file("killed.restart"), step);
            program.send(SIGKILL);
            CHECK(program.wait().exit_code == 128 + SIGKILL);
            killed = clebsch::read_restart(folder.file("killed.restart")).atoms.step;
            CHECK(killed >= step);
        }
        const std::string last = std::to_string(killed + 3);
        const json rest = json::parse(succeeding(command("killed", last)).out);
        CHECK(rest["first_step"] == killed);
        const json whole = json::parse(succeeding(command("whole", last)).out);
        CHECK(whole["first_step"] == 0);
        CHECK(rest["moments"] == whole["moments"]);
        CHECK(rest["drift"] == whole["drift"]);
        CHECK(read_file(folder.file("killed.xyz")) == read_file(folder.file("whole.xyz")));
        CHECK(read_file(folder.file("killed.restart")) == read_file(folder.file("whole.restart")));
        CHECK(clebsch::read_xyz(folder.file("whole.xyz")).size() == static_cast<std::size_t>((killed + 3) / 3 + 1));
    }
}

TEST_CASE("md: SIGTERM and Ctrl-C write the restart file and the report, and end with code 3") {
    require_neighbour_lists();
    for (const int signal : {SIGTERM, SIGINT}) {
        const Folder folder;
        const std::string restart = folder.file("md.restart");
        const Words command = {"md", model, aspirin, "--restart", restart, "--restart-every", "2", "--json", "--steps"};
        RunningProgram program(command + Words{"100000"});
        wait_for_step(program, restart, 2);
        program.send(signal);
        const ProgramResult result = program.wait();
        INFO(result.err);
        REQUIRE(result.exit_code == 3);
        const json report = json::parse(result.out);
        CHECK(report["finished"] == false);
        const std::int64_t step = clebsch::read_restart(restart).atoms.step;
        CHECK(report["last_step"] == step);
        const json rest = json::parse(succeeding(command + Words{std::to_string(step + 1)}).out);
        CHECK(rest["first_step"] == step);
        CHECK(rest["last_step"] == step + 1);
    }
}

TEST_CASE("md: bad options, files and restarts of other runs are named") {
    const Words start = {"md", model, aspirin};
    check_error({"md", model}, {"structure"});
    check_error({"md", "/nonexistent.nqx", aspirin}, {"/nonexistent.nqx"});
    check_error({"md", model, "/nonexistent.xyz"}, {"/nonexistent.xyz"});
    check_error(start + Words{"--timestep", "-1"}, {"--timestep", "-1"});
    for (const std::string number : {"1e+300", "1e-300", "0"})
        check_error(start + Words{"--timestep", number}, {"--timestep: expected 1e-06 to 1000 fs, got " + number});
    check_error(start + Words{"--temperature", "1e300"}, {"--temperature: expected 0 to 1e+06 K, got 1e+300"});
    check_error(start + Words{"--ensemble", "langevin", "--friction", "1e-300"},
                {"--friction: expected 1e-09 to 1e+06 per fs, got 1e-300"});
    check_error(start + Words{"--ensemble", "langevin", "--friction", "300"}, {"--friction: expected at most 100 per time step"});
    check_error(start + Words{"--ensemble", "svr", "--time-constant", "1e300"},
                {"--time-constant: expected 1e-06 to 1e+12 fs, got 1e+300"});
    check_error(start + Words{"--skin", "1e300"}, {"--skin: expected 0 to 20 Angstrom, got 1e+300"});
    check_error(start + Words{"--every", "2"}, {"--every requires --trajectory"});
    check_error(start + Words{"--restart-every", "2"}, {"--restart-every requires --restart"});
    const Words written = start + Words{"--restart", "never.restart", "--trajectory", "never.xyz"};
    for (const char* option : {"--steps", "--every", "--restart-every"})
        check_error(written + Words{option, "9223372036854775807"}, {option, "to 9007199254740992 steps, got 9223372036854775807"});
    check_error(start + Words{"--copy-megabytes", "8"}, {"--copy-megabytes"});
    check_error(start + Words{"--timestep", "nan"}, {"--timestep", "nan"});
    check_error(start + Words{"--temperature", "-3"}, {"--temperature", "-3"});
    check_error(start + Words{"--ensemble", "langevin", "--friction", "0"}, {"--friction", "0"});
    check_error(start + Words{"--ensemble", "svr", "--time-constant", "0"}, {"--time-constant", "0"});
    check_error(start + Words{"--friction", "0.01"}, {"--friction: expected with --ensemble langevin only, got --ensemble nve"});
    check_error(start + Words{"--ensemble", "langevin", "--time-constant", "10"},
                {"--time-constant: expected with --ensemble svr only, got --ensemble langevin"});
    check_error(start + Words{"--skin", "-1"}, {"--skin", "-1"});
    check_error(start + Words{"--steps", "-1"}, {"--steps", "-1"});
    check_error(start + Words{"--steps", "few"}, {"--steps", "few"});
    check_error(written + Words{"--every", "0"}, {"--every", "0"});
    check_error(written + Words{"--restart-every", "0"}, {"--restart-every", "0"});
    check_error(start + Words{"--ensemble", "npt"}, {"ensemble", "npt"});
    check_error(start + Words{"--dtype", "float16"}, {"--dtype", "float16"});
    for (const std::string frame : {"3", "0", "-1"})
        check_error(start + Words{"--frame", frame}, {"--frame: expected 1 to ", ", got " + frame});
    require_neighbour_lists();
    const Folder folder;
    const std::string restart = folder.file("md.restart"), trajectory = folder.file("md.xyz");
    const Words run = start + Words{"--steps", "2", "--restart", restart};
    const Words traced = run + Words{"--trajectory", trajectory, "--every", "1"};
    succeeding(traced);
    check_error(traced + Words{"--timestep", "0.25"}, {"--timestep", "0.25", "0.5", restart});
    check_error(traced + Words{"--seed", "5"}, {"--seed", "5"});
    check_error(traced + Words{"--temperature", "310"}, {"--temperature", "310", "300"});
    check_error(traced + Words{"--ensemble", "svr"}, {"--ensemble", "svr", "nve"});
    check_error(traced + Words{"--dtype", "float64"}, {"--dtype", "float64", "float32"});
    check_error(traced + Words{"--keep-megabytes", "0"}, {"--keep-megabytes is 0", restart, "has none"});
    check_error(traced + Words{"--keep-megabytes", "-1"}, {"--keep-megabytes", "-1"});
    check_error(traced + Words{"--tables"}, {"--tables is default", restart, "has none"});
    check_error({"md", model, data + "water-216.xyz", "--restart", restart, "--trajectory", trajectory}, {"STRUCTURE", restart});
    check_error(run, {"--trajectory", restart});
    check_error(start + Words{"--steps", "2", "--trajectory", trajectory}, {"--trajectory", trajectory, "--overwrite"});
    const std::string before = read_file(trajectory);
    succeeding(traced + Words{"--overwrite"});
    CHECK(read_file(trajectory) == before);
    succeeding(traced + Words{"--skin", "0"});  // nothing to do, and the skin may change
    CHECK(read_file(trajectory) == before);
    const std::string untraced = folder.file("untraced.restart");
    succeeding(start + Words{"--steps", "2", "--restart", untraced});
    check_error(start + Words{"--steps", "4", "--restart", untraced, "--trajectory", trajectory},
                {trajectory, untraced, "wrote none so far"});
    CHECK(read_file(trajectory) == before);
    std::string another = before;
    another[another.size() - 3] ^= 1;
    clebsch::write_file(trajectory, another + "more");
    check_error(traced, {trajectory, "is not the one that the run wrote"});
    CHECK(read_file(trajectory) == another + "more");  // and is left alone
    clebsch::write_file(trajectory, before);
    std::filesystem::resize_file(trajectory, before.size() - 1);
    check_error(traced, {trajectory, "bytes"});
    std::filesystem::remove(trajectory);
    check_error(traced, {trajectory, "is missing", "was it removed"});
    CHECK_FALSE(std::filesystem::exists(trajectory));  // what is refused leaves nothing behind
    std::filesystem::resize_file(restart, 1000);
    check_error(traced, {restart});
}

TEST_CASE("md: a second run that names a file of one that is running is refused, and nothing of it is touched") {
    require_neighbour_lists();
    for (const int signal : {SIGKILL, SIGTERM}) {
        const Folder folder;  // a restart file of before would not tell that the run has begun
        const std::string restart = folder.file("md.restart"), trajectory = folder.file("md.xyz"), plot = folder.file("md.svg");
        std::filesystem::create_symlink(restart, folder.file("link"));
        const Words start = {"md", model, aspirin, "--steps"},
                    outputs = {"--restart", restart, "--restart-every", "2", "--trajectory", trajectory, "--plot", plot};
        const auto check_refused = [&](const Words& more, const Words& words) {
            check_error(start + Words{"4", "--overwrite"} + more, words + Words{"another run holds it"});
        };
        RunningProgram first(start + Words{"100000"} + outputs);
        wait_for_step(first, restart, 2);
        check_refused({"--restart", restart}, {"--restart: file '" + restart + "'"});
        check_refused({"--restart", folder.file("link")}, {"--restart: file '" + folder.file("link") + "'"});
        check_refused({"--plot", plot}, {"--plot: file '" + plot + "'"});
        check_refused({"--trajectory", trajectory}, {"--trajectory: file '" + trajectory + "'"});
        // Nor does another command, or another option, write them.
        check_refused({"--trajectory", restart}, {"--trajectory: file '" + restart + "'"});
        check_error({"relax", model, aspirin, "--out", restart}, {"--out: file '" + restart + "'", "another run holds it"});
        check_error({"relax", model, aspirin, "--plot", trajectory}, {"--plot: file '" + trajectory + "'", "another run holds it"});
        check_error({"run", model, aspirin, "--out", trajectory}, {"--out: file '" + trajectory + "'", "another run holds it"});
        REQUIRE(first.running());
        first.send(signal);
        first.wait();
        const std::int64_t step = clebsch::read_restart(restart).atoms.step;
        const json rest = json::parse(succeeding(start + Words{std::to_string(step + 1), "--json"} + outputs).out);
        CHECK(rest["first_step"] == step);
        for (const auto& entry : std::filesystem::directory_iterator(folder.path)) CHECK(entry.path().extension() != ".lock");
    }
    const Folder folder;
    const std::string restart = folder.file("md.restart");
    clebsch::write_file(restart + ".lock", "somebody's");
    check_error({"md", model, aspirin, "--restart", restart}, {"--restart: file '" + restart + "'", ".lock'", "to be empty or missing"});
    CHECK(read_file(restart + ".lock") == "somebody's");
}

TEST_CASE("md and relax: hard links and links of an input are the input") {
    const Folder folder;
    const std::string input = folder.file("model.nqx"), hard = folder.file("hard"), soft = folder.file("soft");
    clebsch::write_file(input, "a model");
    std::filesystem::create_hard_link(input, hard);
    std::filesystem::create_symlink(input, soft);
    for (const std::string& link : {hard, soft}) {
        for (const char* option : {"--trajectory", "--restart", "--plot"})
            check_error({"md", input, aspirin, option, link},
                        {std::string(option) + ": expected another file than that of MODEL", link, "which is the file '" + input + "'"});
        check_error({"relax", input, aspirin, "--out", link}, {"--out: expected another file than that of MODEL"});
        check_error({"run", input, aspirin, "--out", link}, {"--out: expected another file than that of MODEL"});
    }
    CHECK(read_file(input) == "a model");
}

TEST_CASE("relax: aspirin goes downhill; not enough steps is exit code 1; what is written is what was found") {
    require_neighbour_lists();
    const Folder folder;
    const std::string out = folder.file("out.xyz");
    const Words command = {"relax", model, aspirin, "--json", "--out", out, "--steps"};
    const json short_run = json::parse(succeeding(command + Words{"8", "--fmax", "1e-3"}, 1).out);
    CHECK(short_run["converged"] == false);
    CHECK(short_run["steps"] == 8);
    CHECK(short_run["moments"].back()["energy"].get<double>() < short_run["moments"][0]["energy"].get<double>() - 0.1);
    const json converged = json::parse(succeeding(command + Words{"200", "--fmax", "0.5"}).out);
    CHECK(converged["converged"] == true);
    const auto frame = clebsch::read_xyz(out).at(0);
    CHECK(frame.info_numbers("energy")[0] == converged["energy"].get<double>());
    double longest = 0;
    const auto& forces = std::get<std::vector<double>>(frame.column("forces")->values);
    for (std::size_t i = 0; i < forces.size(); i += 3) longest = std::max(longest, std::hypot(forces[i], forces[i + 1], forces[i + 2]));
    CHECK(longest == doctest::Approx(converged["largest_force"].get<double>()));
    CHECK(longest < 0.5);
    check_error({"relax", model, aspirin, "--cell", "free"}, {"--cell", "periodic", aspirin});
    check_error({"relax", model, aspirin, "--cell", "soft"}, {"--cell", "soft"});
    check_error({"relax", model, aspirin, "--fmax", "0"}, {"--fmax", "0"});
    check_error({"relax", model, aspirin, "--cell", "free", "--smax", "-1"}, {"--smax", "-1"});
    check_error({"relax", model, aspirin, "--smax", "1e-3"}, {"--smax: expected with --cell free only, got --cell fixed"});
    for (const char* option : {"--fmax", "--smax"})
        check_error({"relax", model, aspirin, "--cell", "free", option, "1e-300"}, {option, "expected 1e-12 to 1e+06 eV/A", "got 1e-300"});
    check_error({"relax", model, aspirin, "--skin", "21"}, {"--skin: expected 0 to 20 Angstrom, got 21"});
    check_error({"relax", model, aspirin, "--steps", "-1"}, {"--steps: expected 0 to 9007199254740992 steps, got -1"});
    check_error({"relax", model, aspirin, "--copy-megabytes", "8"}, {"--copy-megabytes"});
}

TEST_CASE("relax: a strained silicon crystal finds its cell") {
    require_neighbour_lists();
    const Folder folder;
    const clebsch::testing::TemporaryFile silicon(
        "2\nLattice=\"0.1 2.8 2.7 2.6 0 2.75 2.8 2.7 0.05\" Properties=species:S:1:pos:R:3 pbc=\"T T T\"\nSi 0 0 0\nSi 1.3 1.5 1.35\n");
    const std::string plot = folder.file("relax.svg");
    const json result = json::parse(succeeding({"relax", model, silicon.path(), "--cell", "free", "--fmax", "1e-3", "--smax", "1e-5",
                                                "--dtype", "float64", "--json", "--plot", plot})
                                        .out);
    CHECK(result["converged"] == true);
    CHECK(result["largest_stress"].get<double>() < 1e-5);
    // Bulk silicon with this functional: a = 5.47 A, 40.9 A^3 for two atoms.
    CHECK(result["moments"].back()["volume"].get<double>() == doctest::Approx(40.9).epsilon(0.03));
    CHECK(read_file(plot).find("Volume") != std::string::npos);
}
