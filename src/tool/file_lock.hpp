#pragma once
// What keeps two runs from writing the same files: locks that the system takes back when their process ends, however it does.
#include <string>
#include <vector>

#include "tool/output_files.hpp"

namespace clebsch::tool {

/// Locks an open file for as long as it stays open. `file`: its name for messages, such as "trajectory file 'md.xyz'". Throws Error if
/// another process holds the lock. Where the file system has no locks, says so on standard error and goes on.
void lock_open_file(int descriptor, const std::string& file);

/// Locks files that are to be written. Some are written beside themselves and then renamed, so that each is a new one every time: what is
/// locked is an empty file beside it, NAME.lock, which is removed at the end. That of a run that was killed stays, unlocked, and is used by
/// the next one.
class FileLocks {
 public:
    /// Devices and empty paths need none. Throws Error naming argument and file: another run holds it, or NAME.lock cannot be made.
    explicit FileLocks(const NamedFiles& files);
    FileLocks(const FileLocks&) = delete;
    FileLocks& operator=(const FileLocks&) = delete;
    ~FileLocks();

 private:
    struct Lock {
        std::string path;  ///< of the empty file
        int descriptor;
    };
    void add(const std::string& name, const std::string& given);
    void release();

    std::vector<Lock> locks_;
};

}  // namespace clebsch::tool
