// eddy bench: measures, beside peers where they are installed.
#include "tools/command/bench_dynamic.h"
#include "tools/command/bench_loops.h"
#include "tools/command/subcommand.h"

namespace eddy {

Action add_bench(CLI::App& app) {
  auto suite = std::make_shared<std::string>("loops");
  auto arguments = std::make_shared<BenchLoopsArguments>();
  app.add_option("SUITE", *suite, "what to measure")
      ->check(CLI::IsMember({"loops", "dynamic"}))
      ->capture_default_str();
  app.add_option("--models", arguments->models, "the folder of the loop models");
  app.add_option("--ort", arguments->common.ort, "libonnxruntime.so.1, the rival");
  app.add_option("--silero", arguments->silero, "the voice activity model");
  app.add_option("--filter", arguments->common.filter, "only cases with this in their names");
  app.add_option("--rounds", arguments->common.rounds, "samples of each contender")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app.add_option("--budget", arguments->common.budget_s, "seconds for one case, about")
      ->check(CLI::Range(0.0, 1e6))
      ->capture_default_str();
  return [suite, arguments](Console& console, Interrupts& interrupts) {
    if (*suite == "dynamic") {
      return bench_dynamic(arguments->common, console, interrupts);
    }
    return bench_loops(*arguments, console, interrupts);
  };
}

}  // namespace eddy
