#pragma once
// The subcommands. Each `add_*` declares options and help and stores what to run in the outcome's exit code when it is chosen.
namespace CLI {
class App;
}

namespace clebsch::tool {

/// 0: done, every check passed. 1: a check failed, or a relaxation did not converge. 2: usage, bad input, or something that cannot run
/// here. 3: stopped by a signal before the end, in order.
inline constexpr int exit_done = 0, exit_check_failed = 1, exit_bad_input = 2, exit_stopped = 3;

/// `status` becomes what the program returns; it outlives the app.
void add_irreps(CLI::App& app, int& status);
void add_info(CLI::App& app, int& status);
void add_graph(CLI::App& app, int& status);
void add_run(CLI::App& app, int& status);
void add_explain(CLI::App& app, int& status);
void add_check(CLI::App& app, int& status);
void add_bench(CLI::App& app, int& status);
void add_demo(CLI::App& app, int& status);
void add_md(CLI::App& app, int& status);
void add_relax(CLI::App& app, int& status);
void add_prebuild(CLI::App& app, int& status);

}  // namespace clebsch::tool
