#pragma once
// Compiled kernels on disk: a second process does not compile again. A damaged, foreign, racing or unwritable store costs time, never a
// wrong kernel.
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "describe/polynomial.hpp"

namespace clebsch::gpu {

/// What the compiler makes of a kernel's text.
struct MachineCode {
    std::string cubin;
    int spilled_bytes = 0;  ///< that it stores and loads because registers are short; 0: none
    friend bool operator==(const MachineCode&, const MachineCode&) = default;
};

class KernelStore {
 public:
    /// `folder` empty: nothing is kept.
    explicit KernelStore(std::filesystem::path folder) : folder_(std::move(folder)) {}

    /// The kernel kept under a key, if its hash still fits.
    std::optional<MachineCode> read(const Hash& key) const;
    /// Written to a temporary name and renamed. A folder that cannot be written is not an error.
    void write(const Hash& key, const MachineCode& kernel) const;
    const std::filesystem::path& folder() const { return folder_; }

 private:
    std::filesystem::path folder_;
};

/// Folders of kernels that were compiled beforehand (clebsch prebuild), which are only read: those added, then those of CLEBSCH_PREBUILT
/// (separated by ':').
std::vector<std::filesystem::path> prebuilt_folders();
void add_prebuilt_folder(const std::filesystem::path& folder);
/// For messages: the folders, or that there are none.
std::string prebuilt_text();

/// CLEBSCH_CACHE if it is set ("": nothing is kept), else XDG_CACHE_HOME/clebsch, else ~/.cache/clebsch.
KernelStore default_store();

}  // namespace clebsch::gpu
