// What main needs of each subcommand: its options, and what to do with them.
#pragma once

#include <functional>

#include <CLI/CLI.hpp>

#include "runtime/api/version.h"
#include "tools/command/console.h"
#include "tools/command/interrupts.h"
#include "tools/command/outcome.h"

namespace eddy {

using Action = std::function<Outcome(Console&, Interrupts&)>;

// Each adds its options to `app`; the action runs after they are parsed.
Action add_run(CLI::App& app);
Action add_plan(CLI::App& app);
Action add_simulate(CLI::App& app);
Action add_conformance(CLI::App& app);
Action add_check(CLI::App& app);
Action add_bench(CLI::App& app);  // of tools/bench
Action add_measure(CLI::App& app);
Action add_gradient(CLI::App& app);
Action add_train(CLI::App& app);
Action add_info(CLI::App& app);

}  // namespace eddy
