// eddy: the command. Parses the command line, runs one subcommand, and ends with its exit code.
#include <fcntl.h>
#include <unistd.h>
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "ops/cpu/isa/isa.h"
#include "runtime/mpi/mpi_library.h"
#include "tools/command/console.h"
#include "tools/command/crash_report.h"
#include "tools/command/interrupts.h"
#include "tools/command/outcome.h"
#include "tools/command/subcommand.h"

namespace eddy {
namespace {

struct Subcommand {
  const char* name;
  const char* description;
  Action (*add)(CLI::App&);
};

constexpr Subcommand kSubcommands[] = {
    {"run", "run an ONNX model", add_run},
    {"plan", "plan a model or a bare graph without running it", add_plan},
    {"simulate", "simulate a task graph, or an operator graph under a strategy", add_simulate},
    {"gradient", "write a model with its gradient", add_gradient},
    {"train", "train a model's initializers on data", add_train},
    {"measure", "measure what a model's operators cost", add_measure},
    {"conformance", "run ONNX's backend tests", add_conformance},
    {"check", "let this installation find its own defects", add_check},
    {"bench", "measure, beside peers where they are installed", add_bench},
    {"info", "versions, devices, libraries and limits; or what a model holds", add_info},
};

// Known before the command line is understood, for the words about what was not.
bool wants_json(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    if (std::string_view(argv[i]) == "--json") return true;
  }
  return false;
}

// The subcommand's own outcome; running out of memory anywhere is one, too.
Outcome perform(const Action& action, Console& console, Interrupts& interrupts) {
  try {
    return action(console, interrupts);
  } catch (const std::bad_alloc&) {
    return Outcome::of_run(resource_exhausted("out of memory; use smaller inputs"));
  } catch (const std::system_error& error) {
    return Outcome::of_run(resource_exhausted(
        std::string("the system refuses what the command needs, threads perhaps: ") + error.what() +
        "; raise its limits (ulimit -u, -v)"));
  } catch (const std::exception& error) {
    return Outcome::of_run(internal_error(std::string("unexpected failure: ") + error.what()));
  }
}

bool is_subcommand(std::string_view word) {
  return std::ranges::any_of(kSubcommands, [&](const auto& known) { return word == known.name; });
}

std::string subcommand_names() {
  std::string names;
  for (const Subcommand& known : kSubcommands) {
    names += (names.empty() ? "" : ", ") + std::string(known.name);
  }
  return names;
}

// What is wrong with the words up to the subcommand; empty where that is not it.
std::string wrong_start(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    if (word.starts_with('-')) continue;
    if (!is_subcommand(word)) {
      return fmt::format("'{}' is no subcommand; there are {}", word, subcommand_names());
    }
    if (i == 1) return "";
    return fmt::format("options stand behind the subcommand: eddy {} {}", word, argv[1]);
  }
  return "";
}

// Ranks with one command line have the same to say of it.
void join_usage(Console& console) {
  const std::optional<LaunchedRank> launched = find_launched_rank();
  if (!launched) return;
  console.set_rank(launched->rank);
  if (launched->is_alike) console.share_failures();
}

int parse_failure(const CLI::ParseError& error, const CLI::App& app,
                  const std::string& wrong_start_or_empty, Console& console) {
  if (error.get_exit_code() == 0) {  // --help and --version
    app.exit(error);
    std::cout.flush();
    return console.finish(Outcome::success());
  }
  join_usage(console);
  std::string help = "eddy --help";
  for (const CLI::App* chosen : app.get_subcommands()) {
    console.set_subcommand(chosen->get_name());
    help = "eddy " + chosen->get_name() + " --help";
  }
  const std::string what =
      wrong_start_or_empty.empty() ? std::string(error.what()) : wrong_start_or_empty;
  return console.finish(Outcome::usage(what + "; see " + help));
}

// Every subcommand but info, which says it among others, would run with other kernels than meant.
Outcome check_environment(std::string_view subcommand) {
  if (subcommand == "info" || cpu::instructions().is_known) return Outcome::success();
  const char* const given = std::getenv("EDDY_INSTRUCTIONS");
  return Outcome::usage(fmt::format(
      "EDDY_INSTRUCTIONS is '{}', which is none of baseline, avx2, avx512, vnni and amx; "
      "set it to one of them, or unset it",
      given == nullptr ? "" : given));
}

int run_command(int argc, char** argv) {
  const bool says_json = wants_json(argc, argv);
  crash_reports_are_json(says_json);
  std::set_new_handler(end_without_memory);
  std::set_terminate(end_by_exception);
  report_signals_of_defects();
  Console console(says_json);
  Interrupts interrupts([&console] {
    console.fail(Outcome(cancelled("interrupted")));
    std::fflush(stdout);
    std::_Exit(static_cast<int>(ExitCode::kCancelled));
  });

  CLI::App app("Eddy runs dataflow graphs that loop and branch.", "eddy");
  app.require_subcommand(1);
  app.set_version_flag("--version", std::string("eddy ") + kVersion);
  std::vector<std::pair<CLI::App*, Action>> actions;
  for (const Subcommand& subcommand : kSubcommands) {
    CLI::App* sub = app.add_subcommand(subcommand.name, subcommand.description);
    sub->add_flag("--json")->description(
        "one JSON document on standard output, everything else on standard error");
    actions.emplace_back(sub, subcommand.add(*sub));
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return parse_failure(error, app, wrong_start(argc, argv), console);
  }
  for (const auto& [sub, action] : actions) {
    if (!sub->parsed()) continue;
    console.set_subcommand(sub->get_name());
    const Outcome environment = check_environment(sub->get_name());
    if (environment.exit_code() != ExitCode::kSuccess) {
      join_usage(console);
      return console.finish(environment);
    }
    return console.finish(perform(action, console, interrupts));
  }
  return static_cast<int>(ExitCode::kUsage);
}

}  // namespace
}  // namespace eddy

// What subcommands throw is caught, and the rest ends the command in one line.
// NOLINTNEXTLINE(bugprone-exception-escape)
int main(int argc, char** argv) {
  // Streams that share one of a GPU's queues wait for each other; by default there are 8.
  setenv("CUDA_DEVICE_MAX_CONNECTIONS", "32", 0);
  // What opens the number of a closed one would get all that is written there. Writing fails here.
  for (int file = STDIN_FILENO; file <= STDERR_FILENO; ++file) {
    if (fcntl(file, F_GETFD) < 0) open("/dev/null", O_RDONLY);
  }
  return eddy::run_command(argc, argv);
}
