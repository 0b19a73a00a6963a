#include "tool/force_field_file.hpp"

#include "model/potential.hpp"

namespace clebsch::tool {

std::unique_ptr<ForceField> load_force_field(const std::string& file, const MachineOptions& machine) {
    return std::make_unique<Potential>(
        Potential::load(file, {.dtype = machine.type(), .threads = machine.threads, .instruction_set = machine.isa()}));
}

}  // namespace clebsch::tool
