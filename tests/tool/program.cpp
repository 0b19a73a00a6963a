#include "tool/program.hpp"

#include <doctest/doctest.h>

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <stdexcept>

namespace clebsch::testing {

TemporaryFile::TemporaryFile(const std::string& content) {
    char name[] = "/tmp/clebsch-test-XXXXXX";
    const int file = mkstemp(name);
    if (file < 0) throw std::runtime_error("no temporary file");
    close(file);
    path_ = name;
    std::ofstream(path_) << content;
}
TemporaryFile::~TemporaryFile() { unlink(path_.c_str()); }
std::string TemporaryFile::content() const {
    std::ifstream file(path_);
    return {std::istreambuf_iterator<char>(file), {}};
}

struct RunningProgram::Streams {
    TemporaryFile out, err;
};

RunningProgram::RunningProgram(const std::vector<std::string>& arguments, const std::vector<std::string>& environment)
    : streams_(std::make_unique<Streams>()), process_(fork()) {
    if (process_ < 0) throw std::runtime_error("fork failed");
    if (process_ != 0) return;
    const int streams[2] = {open(streams_->out.path().c_str(), O_WRONLY | O_TRUNC), open(streams_->err.path().c_str(), O_WRONLY | O_TRUNC)};
    if (streams[0] < 0 || streams[1] < 0 || dup2(streams[0], STDOUT_FILENO) < 0 || dup2(streams[1], STDERR_FILENO) < 0) _exit(126);
    for (const std::string& variable : environment) putenv(const_cast<char*>(variable.c_str()));
    std::vector<char*> argv = {const_cast<char*>("clebsch")};
    for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
    argv.push_back(nullptr);
    execv(CLEBSCH_PROGRAM, argv.data());
    _exit(127);
}
RunningProgram::~RunningProgram() {
    if (!running()) return;
    send(SIGKILL);
    wait();
}
void RunningProgram::send(int signal) const {
    // Process -1 would be every process there is.
    if (process_ <= 0) throw std::logic_error("the program has ended: there is nothing to send a signal to");
    kill(process_, signal);
}
bool RunningProgram::running() {
    if (process_ > 0 && waitpid(process_, &status_, WNOHANG) == process_) process_ = -1;
    return process_ > 0;
}
ProgramResult RunningProgram::wait() {
    if (process_ > 0) waitpid(process_, &status_, 0);
    process_ = -1;
    return {WIFEXITED(status_) ? WEXITSTATUS(status_) : 128 + WTERMSIG(status_), streams_->out.content(), streams_->err.content()};
}

ProgramResult run_program(const std::vector<std::string>& arguments, const std::vector<std::string>& environment) {
    return RunningProgram(arguments, environment).wait();
}

nlohmann::json json_of(std::vector<std::string> arguments, int exit_code) {
    arguments.emplace_back("--json");
    const ProgramResult result = run_program(arguments);
    INFO(result.err);
    REQUIRE(result.exit_code == exit_code);
    return nlohmann::json::parse(result.out);
}

void check_error(const std::vector<std::string>& arguments, const std::vector<std::string>& words) {
    const ProgramResult result = run_program(arguments);
    INFO(result.err);
    CHECK(result.exit_code == 2);
    CHECK(result.out.empty());
    for (const std::string& word : words) {
        CAPTURE(word);
        CHECK(result.err.find(word) != std::string::npos);
    }
    CHECK(result.err.find("defect") == std::string::npos);
}

}  // namespace clebsch::testing
