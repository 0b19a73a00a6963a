#pragma once
// Runs the built `clebsch` program and keeps what it printed.
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace clebsch::testing {

struct ProgramResult {
    int exit_code = -1;
    std::string out, err;
};
/// Arguments reach the program as they are; no shell in between. `environment`: "NAME=value", added to the test's own.
ProgramResult run_program(const std::vector<std::string>& arguments, const std::vector<std::string>& environment = {});

/// What it prints for `--json`; fails the test when it ends otherwise.
nlohmann::json json_of(std::vector<std::string> arguments, int exit_code = 0);
/// That it refuses the arguments: says all these words, prints no result, and calls nothing a defect of its own.
void check_error(const std::vector<std::string>& arguments, const std::vector<std::string>& words);

/// One that is still running; ended, if need be, with the object.
class RunningProgram {
 public:
    explicit RunningProgram(const std::vector<std::string>& arguments, const std::vector<std::string>& environment = {});
    ~RunningProgram();
    RunningProgram(const RunningProgram&) = delete;
    RunningProgram& operator=(const RunningProgram&) = delete;

    void send(int signal) const;  ///< throws unless it is running or has not been waited for
    bool running();
    ProgramResult wait();  ///< an exit code of 128 + n: ended by signal n

 private:
    struct Streams;
    std::unique_ptr<Streams> streams_;
    int process_ = -1, status_ = 0;
};

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
