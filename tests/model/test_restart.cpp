#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>
#include <limits>
#include <random>

#include "base/error.hpp"
#include "base/file.hpp"
#include "io/safetensors.hpp"
#include "model/restart.hpp"
#include "support/analytic_force_fields.hpp"

using namespace clebsch;

namespace {

/// A path in a folder that disappears with the object.
struct Scratch {
    std::filesystem::path folder;
    Scratch() {
        std::random_device device;
        folder = std::filesystem::temp_directory_path() / ("clebsch-restart-" + std::to_string(device()));
        std::filesystem::create_directory(folder);
    }
    ~Scratch() { std::filesystem::remove_all(folder); }
    std::filesystem::path file() const { return folder / "run.restart"; }
};

Restart example() {
    testing::LennardJones field;
    MovingAtoms start = atoms_at_rest({{0, 0, 0, 4, 0, 0, 0, 4.1, 0.3}, {20, 0, 0, 1, 20, 0, 0, 0, 20}, {true, true, false}}, {18, 18, 36});
    start.velocities = thermal_velocities(start.masses, 80, 2);
    Restart out;
    out.options = {.ensemble = Ensemble::rescaling,
                   .timestep = 0.7,
                   .temperature = 81.3,
                   .friction = 1e-3,
                   .time_constant = 33,
                   .seed = 0xfedcba9876543210,
                   .skin = 0.25};
    MolecularDynamics dynamics(field, start, out.options);
    out.record.add(sample_of(dynamics), out.options.timestep);
    for (int i = 0; i < 20; ++i) {
        dynamics.advance();
        out.record.add(sample_of(dynamics), out.options.timestep);
    }
    out.atoms = dynamics.atoms();
    out.trajectory_bytes = 12345;
    out.origin = {{"model", "0123"}, {"structure", "a b c"}};
    return out;
}

}  // namespace

TEST_CASE("a restart file gives back every bit, and replaces an older one whole") {
    const Scratch scratch;
    Restart first = example();
    first.record.samples.clear();
    write_restart(scratch.file(), first);
    CHECK(read_restart(scratch.file()) == first);
    const Restart second = example();
    write_restart(scratch.file(), second);
    CHECK(read_restart(scratch.file()) == second);
    CHECK(std::distance(std::filesystem::directory_iterator(scratch.folder), {}) == 1);  // no temporary file stays
    CHECK_THROWS_AS(write_restart(scratch.folder / "none" / "x", second), Error);
}

TEST_CASE("damage anywhere in a restart file is an error that names the file: every byte changed, every length cut") {
    const Scratch scratch;
    write_restart(scratch.file(), example());
    const std::string good = read_file(scratch.file());
    const auto refused = [&](const std::string& content) {
        write_file(scratch.file(), content);
        try {
            read_restart(scratch.file());
        } catch (const Error& error) { return std::string(error.what()).find("run.restart") != std::string::npos; }
        return false;
    };
    int accepted = 0;
    for (std::size_t i = 0; i < good.size(); i += i < 1500 ? 1 : 7) {
        std::string bad = good;
        bad[i] = static_cast<char>(bad[i] ^ (1 << (i % 8)));
        // White space between the header's tokens means nothing.
        if (!refused(bad) && !(good[i] == ' ' && bad[i] != good[i])) ++accepted;
    }
    CHECK(accepted == 0);
    for (std::size_t length = 0; length < good.size(); length += 13) accepted += !refused(good.substr(0, length));
    CHECK(accepted == 0);
    CHECK(refused(good + "x"));
    CHECK(refused(""));
    write_file(scratch.file(), good);
    CHECK(read_restart(scratch.file()) == example());
    std::filesystem::remove(scratch.file());
    CHECK_THROWS_WITH_AS(read_restart(scratch.file()), doctest::Contains("run.restart"), Error);
}

TEST_CASE("a safetensors file of something else is no restart file, and values are checked behind the checksum") {
    const Scratch scratch;
    write_safetensors(scratch.file(), {{"positions", make_array(std::vector<double>{1, 2, 3}, {1, 3})}});
    CHECK_THROWS_WITH_AS(read_restart(scratch.file()), doctest::Contains("restart"), Error);
    const auto refused = [&](void (*spoil)(Restart&), const char* words) {
        Restart restart = example();
        spoil(restart);
        write_restart(scratch.file(), restart);
        CHECK_THROWS_WITH_AS(read_restart(scratch.file()), doctest::Contains(words), Error);
    };
    refused([](Restart& r) { r.atoms.structure.positions[1] = std::nan(""); }, "positions");
    refused([](Restart& r) { r.atoms.masses[1] = -1; }, "mass");
    refused([](Restart& r) { r.atoms.atomic_numbers[2] = 119; }, "119");
    refused([](Restart& r) { r.atoms.step = -4; }, "step");
    refused([](Restart& r) { r.atoms.heat = std::numeric_limits<double>::infinity(); }, "heat");
    refused([](Restart& r) { r.record.stride = 0; }, "stride");
    refused([](Restart& r) { r.record.samples[3].step = 1000; }, "sample");
    refused([](Restart& r) { r.trajectory_bytes = -1; }, "trajectory");
}

TEST_CASE("the drift is the slope of a straight line, exact for one, whatever the offset") {
    RunRecord record;
    for (std::int64_t step = 0; step < 5000; ++step) {
        const double noise = step % 2 == 0 ? 1e-3 : -1e-3;
        record.add({.step = step, .conserved = -17617.6 + 2e-6 * static_cast<double>(step) + noise}, 0.5);
    }
    // 2e-6 eV in 0.5 fs: 4e-3 eV/ps.
    CHECK(record.drift(21) == doctest::Approx(4.0 / 21).epsilon(1e-3));
    CHECK(record.samples.size() > 1000);
    CHECK(record.samples.size() <= RunRecord::sample_limit);
    CHECK(record.samples.front().step == 0);
    for (const RunSample& sample : record.samples) REQUIRE(sample.step % record.stride == 0);
    CHECK(record.stride == 4);
    CHECK(RunRecord{}.drift(1) == 0.0);
}
