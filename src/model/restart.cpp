#include "model/restart.hpp"

#include <charconv>
#include <cmath>
#include <limits>

#include "base/error.hpp"
#include "base/file.hpp"
#include "describe/polynomial.hpp"
#include "io/safetensors.hpp"

namespace clebsch {

namespace {

using Metadata = std::map<std::string, std::string>;

constexpr const char* format_name = "clebsch molecular dynamics restart";
constexpr const char* format_version = "0";
constexpr const char* origin_prefix = "origin ";
constexpr std::size_t sample_numbers = 7;

template <class Number>
std::string text_of(Number value) {
    char text[32];
    return {text, std::to_chars(text, text + sizeof text, value).ptr};
}

std::string checksum(const std::vector<NamedArray>& tensors, const Metadata& metadata) {
    return to_text(hash_text(format_safetensors(tensors, metadata)));
}

std::vector<double> flat(const std::vector<RunSample>& samples) {
    std::vector<double> out;
    for (const RunSample& s : samples)
        out.insert(out.end(), {static_cast<double>(s.step), s.potential, s.kinetic, s.conserved, s.temperature, s.pressure, s.volume});
    return out;
}

/// Typed look-ups in a file that is read; each failure names the file and what it was about.
class Reader {
 public:
    explicit Reader(const std::filesystem::path& path) : name_(path.native()), file_(path) {
        for (const TensorEntry& entry : file_.header().tensors) tensors_.push_back({entry.name, file_.load(entry)});
        Metadata metadata = file_.header().metadata;
        if (text("format") != format_name) reject("it is no restart file of molecular dynamics");
        if (text("version") != format_version)
            reject("expected version " + std::string(format_version) + ", got " + in_quotes(text("version")));
        const std::string stored = text("checksum");
        metadata.erase("checksum");
        if (stored != checksum(tensors_, metadata)) reject("it is damaged: its checksum does not fit its content");
    }

    [[noreturn]] void reject(const std::string& why) const { fail_in_file(name_, why); }

    const std::string& text(const std::string& key) const {
        const auto found = file_.header().metadata.find(key);
        if (found == file_.header().metadata.end()) reject("it has no value " + in_quotes(key) + "; is it a restart file?");
        return found->second;
    }
    template <class Number>
    Number number(const std::string& key, Number least, Number most) const {
        const std::string& words = text(key);
        Number value{};
        const auto [end, error] = std::from_chars(words.data(), words.data() + words.size(), value);
        if (error != std::errc{} || end != words.data() + words.size() || !(value >= least && value <= most))
            reject(key + " is " + in_quotes(words) + ": expected a number from " + text_of(least) + " to " + text_of(most));
        return value;
    }
    double real(const std::string& key) const {
        constexpr double most = std::numeric_limits<double>::max();
        return number<double>(key, -most, most);
    }
    std::int64_t count(const std::string& key) const { return number<std::int64_t>(key, 0, std::int64_t{1} << 53); }

    /// Numbers of a tensor with `columns` numbers a row (0: no second axis), all finite.
    std::vector<double> tensor(const std::string& name, ElementType type, std::int64_t columns) const {
        for (const NamedArray& each : tensors_) {
            if (each.name != name) continue;
            const auto& shape = each.array.shape;
            const bool fits = columns == 0 ? shape.size() == 1 : shape.size() == 2 && shape[1] == columns;
            if (!fits || each.array.type != type)
                reject("tensor " + in_quotes(name) + " is " + to_text(each.array.type) + " " + to_text(shape) + ": expected " +
                       to_text(type) + " with " + (columns == 0 ? "one axis" : std::to_string(columns) + " columns"));
            std::vector<double> values = to_float64(each.array);
            for (const double value : values)
                if (!std::isfinite(value)) reject("tensor " + in_quotes(name) + " holds a value that is not finite");
            return values;
        }
        reject("it has no tensor " + in_quotes(name));
    }
    const Metadata& metadata() const { return file_.header().metadata; }

 private:
    std::string name_;
    SafetensorsFile file_;
    std::vector<NamedArray> tensors_;
};

MovingAtoms read_atoms(const Reader& file) {
    MovingAtoms atoms;
    atoms.structure.positions = file.tensor("positions", ElementType::float64, 3);
    atoms.velocities = file.tensor("velocities", ElementType::float64, 3);
    atoms.masses = file.tensor("masses", ElementType::float64, 0);
    for (const double number : file.tensor("atomic_numbers", ElementType::int64, 0)) {
        if (!(number >= 1 && number <= 118)) file.reject("an atomic number is " + text_of(number));
        atoms.atomic_numbers.push_back(static_cast<int>(number));
    }
    const std::vector<double> cell = file.tensor("cell", ElementType::float64, 3);
    const auto count = static_cast<std::size_t>(atoms.atoms());
    if (cell.size() != 9 || atoms.velocities.size() != 3 * count || atoms.masses.size() != count || atoms.atomic_numbers.size() != count)
        file.reject("its tensors do not fit together: " + std::to_string(count) + " positions, " +
                    std::to_string(atoms.velocities.size() / 3) + " velocities, " + std::to_string(atoms.masses.size()) + " masses, " +
                    std::to_string(atoms.atomic_numbers.size()) + " atomic numbers");
    for (const double mass : atoms.masses)
        if (!(mass > 0.0)) file.reject("a mass is " + text_of(mass));
    std::ranges::copy(cell, atoms.structure.cell.begin());
    const std::string& periodic = file.text("periodic");
    if (periodic.size() != 3 || periodic.find_first_not_of("TF") != std::string::npos)
        file.reject("periodic is " + in_quotes(periodic) + ": expected three of T and F");
    for (std::size_t k = 0; k < 3; ++k) atoms.structure.periodic[k] = periodic[k] == 'T';
    atoms.step = file.count("step");
    atoms.heat = file.real("heat");
    return atoms;
}

RunRecord read_record(const Reader& file, std::int64_t step) {
    RunRecord record;
    record.energy = {file.count("line points"), file.real("line mean x"), file.real("line mean y"), file.real("line xx"),
                     file.real("line xy")};
    record.stride = file.number<std::int64_t>("sample stride", 1, std::int64_t{1} << 53);
    const std::vector<double> numbers = file.tensor("samples", ElementType::float64, sample_numbers);
    for (std::size_t i = 0; i < numbers.size(); i += sample_numbers) {
        const double* n = numbers.data() + i;
        if (!(n[0] >= 0 && n[0] <= static_cast<double>(step))) file.reject("a sample is of step " + text_of(n[0]));
        record.samples.push_back({static_cast<std::int64_t>(n[0]), n[1], n[2], n[3], n[4], n[5], n[6]});
    }
    return record;
}

}  // namespace

void write_restart(const std::filesystem::path& path, const Restart& restart) {
    const MovingAtoms& atoms = restart.atoms;
    const std::int64_t count = atoms.atoms();
    const std::vector<std::int64_t> numbers(atoms.atomic_numbers.begin(), atoms.atomic_numbers.end());
    const std::vector<double> cell(atoms.structure.cell.begin(), atoms.structure.cell.end());
    const std::vector<NamedArray> tensors = {
        {"positions", make_array(atoms.structure.positions, {count, 3})},
        {"velocities", make_array(atoms.velocities, {count, 3})},
        {"masses", make_array(atoms.masses, {count})},
        {"atomic_numbers", make_array(numbers, {count})},
        {"cell", make_array(cell, {3, 3})},
        {"samples", make_array(flat(restart.record.samples),
                               {static_cast<std::int64_t>(restart.record.samples.size()), std::int64_t{sample_numbers}})}};
    Metadata metadata = {{"format", format_name},
                         {"version", format_version},
                         {"step", text_of(atoms.step)},
                         {"heat", text_of(atoms.heat)},
                         {"ensemble", to_text(restart.options.ensemble)},
                         {"timestep", text_of(restart.options.timestep)},
                         {"temperature", text_of(restart.options.temperature)},
                         {"friction", text_of(restart.options.friction)},
                         {"time constant", text_of(restart.options.time_constant)},
                         {"seed", text_of(restart.options.seed)},
                         {"skin", text_of(restart.options.skin)},
                         {"line points", text_of(restart.record.energy.points)},
                         {"line mean x", text_of(restart.record.energy.mean_x)},
                         {"line mean y", text_of(restart.record.energy.mean_y)},
                         {"line xx", text_of(restart.record.energy.xx)},
                         {"line xy", text_of(restart.record.energy.xy)},
                         {"sample stride", text_of(restart.record.stride)},
                         {"trajectory bytes", text_of(restart.trajectory_bytes)}};
    for (const bool periodic : atoms.structure.periodic) metadata["periodic"] += periodic ? 'T' : 'F';
    for (const auto& [key, value] : restart.origin) metadata[origin_prefix + key] = value;
    metadata["checksum"] = checksum(tensors, metadata);
    write_file(path, format_safetensors(tensors, metadata), Durability::on_disk);
}

Restart read_restart(const std::filesystem::path& path) {
    const Reader file(path);
    Restart restart;
    restart.atoms = read_atoms(file);
    try {
        restart.options.ensemble = parse_ensemble(file.text("ensemble"));
    } catch (const Error& error) { file.reject(error.what()); }
    restart.options.timestep = file.real("timestep");
    restart.options.temperature = file.real("temperature");
    restart.options.friction = file.real("friction");
    restart.options.time_constant = file.real("time constant");
    restart.options.seed = file.number<std::uint64_t>("seed", 0, std::numeric_limits<std::uint64_t>::max());
    restart.options.skin = file.real("skin");
    restart.record = read_record(file, restart.atoms.step);
    restart.trajectory_bytes = file.count("trajectory bytes");
    const std::string prefix = origin_prefix;
    for (const auto& [key, value] : file.metadata())
        if (key.rfind(prefix, 0) == 0) restart.origin[key.substr(prefix.size())] = value;
    return restart;
}

}  // namespace clebsch
