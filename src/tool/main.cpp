// The `clebsch` program: subcommands, help, and what becomes of errors.
#include <malloc.h>

#include <CLI/CLI.hpp>
#include <charconv>
#include <cmath>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <iostream>
#include <new>
#include <string>
#include <type_traits>

#include "base/error.hpp"
#include "base/memory.hpp"
#include "base/version.hpp"
#include "tool/command.hpp"
#include "tool/machine_options.hpp"

namespace {

/// CLI11 would only say that a command is missing.
void check_command(const CLI::App& app, const std::string& name) {
    std::string names;
    for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
        if (command->get_name() == name) return;
        names += (names.empty() ? "" : ", ") + command->get_name();
    }
    clebsch::fail("there is no command '" + name + "'; there are " + names);
}

/// Whether all of `text` is a finite number that `Number` holds.
template <class Number>
bool is_number(const std::string& text) {
    const char* begin = text.data() + (text.size() > 1 && text[0] == '+' && text[1] != '-' ? 1 : 0);
    Number value{};
    const auto [end, error] = std::from_chars(begin, text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return false;
    if constexpr (std::is_floating_point_v<Number>) return std::isfinite(value);
    return true;
}

bool is_given(const std::string& text) { return !text.empty(); }

/// CLI11 reads "" as 0, -1 as 2^64 - 1 where it wants no sign, and what is too large as the largest number there is. A text that is empty,
/// as an unset variable of a script leaves it, would pass for an option that is not given: files would not be written.
void check_values(CLI::App& app) {
    const auto check = [](CLI::Option& option, bool (*good)(const std::string&), const std::string& expected) {
        // `transform` puts it before the checks there are: what is no number cannot be out of range.
        option.transform(
            CLI::Validator([=](std::string& text) { return good(text) ? "" : "expected " + expected + ", got '" + text + "'"; }, ""));
    };
    for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
        for (CLI::Option* option : command->get_options()) {
            const std::string type = option->get_type_name();
            if (type.starts_with("INT")) check(*option, is_number<std::int64_t>, "an integer");
            if (type.starts_with("UINT")) check(*option, is_number<std::uint64_t>, "an integer of at least 0");
            if (type.starts_with("FLOAT")) check(*option, is_number<double>, "a finite number");
            if (type.starts_with("TEXT") && !option->get_positional()) check(*option, is_given, "a value");
        }
}

/// Arrays that come and go while a model is loaded and neighbours are found take memory that was touched before, instead of new pages from
/// the system each time: a tenth of the time of both. The first of it is on large pages, which Memory asks for: another tenth.
void keep_freed_memory() {
#ifdef __GLIBC__
    mallopt(M_MMAP_THRESHOLD, 32 << 20);
    mallopt(M_TRIM_THRESHOLD, 256 << 20);
    mallopt(M_TOP_PAD, 16 << 20);
    try {
        const clebsch::Memory given_back(24 << 20, "the first arrays");
    } catch (const clebsch::Error&) {  // a limit that leaves no room for them may leave enough for what is to be done
    }
#endif
}

/// What did not reach standard output must not pass for a success.
int written(int status) {
    std::cout.flush();
    if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0 && std::cout.good()) return status;
    std::fprintf(stderr, "clebsch: cannot write to standard output\n");
    return status == clebsch::tool::exit_done ? clebsch::tool::exit_bad_input : status;
}

}  // namespace

int main(int argc, char** argv) {
    using namespace clebsch::tool;
    keep_freed_memory();
    CLI::App app("Clebsch: E(3)-equivariant operations, described once, derived symbolically, run fast.", "clebsch");
    app.set_version_flag("--version", clebsch::version());
    app.require_subcommand(1);
    app.failure_message([](const CLI::App* program, const CLI::Error& error) { return CLI::FailureMessage::simple(program, error); });
    app.footer(
        "Every subcommand explains itself: clebsch bench --help.\n"
        "Exit codes: 0 done, 1 a check failed, 2 usage or bad input, 3 stopped by a signal.\n"
        "Environment: CLEBSCH_NUM_THREADS, CLEBSCH_INSTRUCTION_SET, and where vesin and CUDA's compiler are: CLEBSCH_VESIN_LIBRARY, "
        "CLEBSCH_NVRTC (docs/environment.md has all).");
    int status = exit_done;
    std::signal(SIGXFSZ, SIG_IGN);  // a file size limit makes a write fail, which has a message, instead of ending the program
    try {
        add_irreps(app, status);
        add_info(app, status);
        add_graph(app, status);
        add_run(app, status);
        add_explain(app, status);
        add_check(app, status);
        add_bench(app, status);
        add_md(app, status);
        add_relax(app, status);
        add_prebuild(app, status);
        add_demo(app, status);
        for (CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
            command->parse_complete_callback(check_environment);
        check_values(app);
        if (argc > 1 && argv[1][0] != '-') check_command(app, argv[1]);
        app.parse(argc, argv);
    } catch (const CLI::ParseError& error) {
        return app.exit(error) == 0 ? written(exit_done) : exit_bad_input;
    } catch (const clebsch::Error& error) {
        std::fprintf(stderr, "clebsch: %s\n", error.what());
        return exit_bad_input;
    } catch (const std::bad_alloc&) {
        std::fprintf(stderr, "clebsch: out of memory\n");
        return exit_bad_input;
    } catch (const std::exception& error) {
        std::fprintf(stderr, "clebsch: %s (this is a defect; please report it with the command)\n", error.what());
        return exit_bad_input;
    }
    return written(status);
}
