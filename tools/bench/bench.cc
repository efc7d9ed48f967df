// eddy bench: measures, beside peers where they are installed.
#include "tools/bench/bench_dynamic.h"
#include "tools/bench/bench_embedding.h"
#include "tools/bench/bench_loops.h"
#include "tools/bench/bench_nets.h"
#include "tools/bench/bench_operators.h"
#include "tools/bench/bench_ranks.h"
#include "tools/bench/bench_serve.h"
#include "tools/bench/bench_speech.h"
#include "tools/bench/bench_tasks.h"
#include "tools/bench/bench_training.h"
#include "tools/bench/peak_memory.h"
#include "tools/command/number_check.h"
#include "tools/command/subcommand.h"

namespace eddy {

namespace {

// Of all suites.
struct BenchArguments {
  std::string suite = "loops";
  BenchOptions common;
  BenchLoopsArguments loops;
  BenchNetsArguments nets;
  BenchOperatorsArguments operators;
  BenchServeArguments serve;
  BenchTasksArguments tasks;
  RankArguments ranks;
  std::string split;
  PeakArguments peak;
  std::string fresh;
};

void add_common_options(CLI::App& app, BenchArguments& arguments) {
  BenchOptions& common = arguments.common;
  app.add_option("SUITE", arguments.suite, "what to measure")
      ->check(CLI::IsMember({"loops", "dynamic", "speech", "nets", "operators", "serve", "tasks",
                             "embedding", "peak", "training", "ranks"}))
      ->capture_default_str();
  app.add_option("--ort", common.ort, "libonnxruntime.so.1, the rival");
  app.add_option("--filter", common.filter, "only cases with this in their names");
  app.add_option("--rounds", common.rounds, "samples of each contender")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app.add_option("--budget", common.budget_s, "seconds for one case, about")
      ->check(check_number("seconds from 0 to 1e6", 0, 1e6))
      ->capture_default_str();
  app.add_option("--threads", common.threads,
                 "nets, operators, tasks, dynamic, speech: numbers of threads, as 1,4; 0: one for "
                 "each processor "
                 "(default: 1,0; dynamic and speech: 1)")
      ->delimiter(',')
      ->check(CLI::Range(0, 4096))
      ->take_all()
      ->allow_extra_args(false);
}

void add_suites_options(CLI::App& app, BenchArguments& arguments) {
  app.add_option(
      "--models", arguments.loops.models,
      "loops: the folder of its models; nets: a folder, each *.onnx file in it a case, before "
      "the networks that Eddy builds itself");
  app.add_option("--silero", arguments.loops.silero, "the voice activity model");
  app.add_option(
         "--seed", arguments.nets.seed,
         "nets, operators: what random inputs, and weights of built networks, are made from")
      ->check(check_seed())
      ->capture_default_str();
  app.add_option("--clients", arguments.serve.clients, "serve: numbers of clients")
      ->delimiter(',')
      ->check(CLI::Range(1, 1024))
      ->take_all()
      ->allow_extra_args(false)
      ->capture_default_str();
  app.add_flag("--batch", arguments.serve.batches, "serve: rows for requests that share runs, too");
  app.add_option("--tasks", arguments.tasks.num_tasks, "tasks: of each graph, about")
      ->check(CLI::Range(10, 10'000'000))
      ->capture_default_str();
  PeakArguments& peak = arguments.peak;
  const std::string of_peak = "peak: ";
  app.add_option("--model", peak.model, of_peak + "the model whose memory is measured");
  app.add_option("--contender", peak.contender, of_peak + "who runs it")
      ->check(CLI::IsMember({"eddy", "onnxruntime"}))
      ->capture_default_str();
  app.add_option("--input", peak.inputs, of_peak + "NAME=FILE, an input");
  app.add_option("--output", peak.outputs, of_peak + "an output that is asked for");
  app.add_option("--fresh", arguments.fresh,
                 "speech, ranks: what this process loads and runs, no more")
      ->check(CLI::IsMember({"moonshine", "decoder", "silero", "mpi"}));
  app.add_option("--ranks", arguments.ranks.num_ranks, "ranks: how many (default: 2)")
      ->check(CLI::Range(1U, 64U));
  app.add_option("--mpirun", arguments.ranks.mpirun,
                 "ranks: Open MPI's mpirun, else found in PATH");
  app.add_option("--split", arguments.split, "ranks: batches that ranks share, and nothing else")
      ->check(CLI::IsMember({"batch"}));
}

Outcome run_suite(BenchArguments& a, Console& console, Interrupts& interrupts) {
  a.loops.common = a.nets.common = a.operators.common = a.serve.common = a.tasks.common = a.common;
  a.nets.models = a.loops.models;
  a.operators.seed = a.nets.seed;
  if (a.suite == "peak") return bench_peak(a.peak, a.common.ort, console);
  if (a.suite == "speech") {
    return bench_speech({a.common, a.loops.silero, a.fresh, a.peak.contender}, console, interrupts);
  }
  if (a.suite == "dynamic") return bench_dynamic(a.common, console, interrupts);
  if (a.suite == "nets") return bench_nets(a.nets, console, interrupts);
  if (a.suite == "operators") return bench_operators(a.operators, console, interrupts);
  if (a.suite == "serve") return bench_serve(a.serve, console, interrupts);
  if (a.suite == "embedding") return bench_embedding(a.common, console, interrupts);
  if (a.suite == "training") return bench_training(a.common, console, interrupts);
  if (a.suite == "ranks") {
    return bench_ranks({a.common, a.ranks, a.fresh, !a.split.empty()}, console, interrupts);
  }
  if (a.suite == "tasks") return bench_tasks(a.tasks, console, interrupts);
  return bench_loops(a.loops, console, interrupts);
}

}  // namespace

Action add_bench(CLI::App& app) {
  const auto arguments = std::make_shared<BenchArguments>();
  add_common_options(app, *arguments);
  add_suites_options(app, *arguments);
  return [arguments](Console& console, Interrupts& interrupts) {
    return run_suite(*arguments, console, interrupts);
  };
}

}  // namespace eddy
