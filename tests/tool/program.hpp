#pragma once
// Runs the built `clebsch` program and keeps what it printed.
#include <string>
#include <vector>

namespace clebsch::testing {

struct ProgramResult {
    int exit_code = -1;
    std::string out, err;
};
/// Arguments reach the program as they are; no shell in between. `environment`: "NAME=value", added to the test's own.
ProgramResult run_program(const std::vector<std::string>& arguments, const std::vector<std::string>& environment = {});

/// A file of this test, removed at the end of its life.
class TemporaryFile {
 public:
    explicit TemporaryFile(const std::string& content = "");
    ~TemporaryFile();
    TemporaryFile(const TemporaryFile&) = delete;
    TemporaryFile& operator=(const TemporaryFile&) = delete;
    const std::string& path() const { return path_; }
    std::string content() const;

 private:
    std::string path_;
};

}  // namespace clebsch::testing
