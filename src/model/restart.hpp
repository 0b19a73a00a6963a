#pragma once
// Restart files: all that a run of molecular dynamics needs to go on with the same bits, as a safetensors file with a checksum.
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>

#include "model/dynamics.hpp"
#include "model/run_record.hpp"

namespace clebsch {

struct Restart {
    MovingAtoms atoms;
    DynamicsOptions options;
    RunRecord record;
    std::int64_t trajectory_bytes = 0;          ///< length of the trajectory file at this step
    std::map<std::string, std::string> origin;  ///< what the run was started from; the caller compares it
    friend bool operator==(const Restart&, const Restart&) = default;
};

/// The file holds the old content or the new one whatever happens meanwhile, and is on the disk when this returns. Throws Error(io).
void write_restart(const std::filesystem::path& path, const Restart& restart);

/// Throws Error naming the file: not_found, io, or parse for anything that write_restart does not write: damage anywhere is noticed by the
/// checksum, and values are checked besides.
Restart read_restart(const std::filesystem::path& path);

}  // namespace clebsch
