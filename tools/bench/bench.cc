// eddy bench: measures, beside peers where they are installed.
#include "tools/bench/bench_dynamic.h"
#include "tools/bench/bench_loops.h"
#include "tools/bench/bench_nets.h"
#include "tools/bench/bench_serve.h"
#include "tools/bench/bench_speech.h"
#include "tools/bench/bench_tasks.h"
#include "tools/bench/peak_memory.h"
#include "tools/command/number_check.h"
#include "tools/command/subcommand.h"

namespace eddy {

Action add_bench(CLI::App& app) {
  auto suite = std::make_shared<std::string>("loops");
  auto arguments = std::make_shared<BenchLoopsArguments>();
  app.add_option("SUITE", *suite, "what to measure")
      ->check(CLI::IsMember({"loops", "dynamic", "speech", "nets", "serve", "tasks", "peak"}))
      ->capture_default_str();
  app.add_option(
      "--models", arguments->models,
      "loops: the folder of its models; nets: a folder, each *.onnx file in it a case, before "
      "the networks that Eddy builds itself");
  app.add_option("--ort", arguments->common.ort, "libonnxruntime.so.1, the rival");
  app.add_option("--silero", arguments->silero, "the voice activity model");
  app.add_option("--filter", arguments->common.filter, "only cases with this in their names");
  app.add_option("--rounds", arguments->common.rounds, "samples of each contender")
      ->check(CLI::Range(1, 100000))
      ->capture_default_str();
  app.add_option("--budget", arguments->common.budget_s, "seconds for one case, about")
      ->check(check_number("seconds from 0 to 1e6", 0, 1e6))
      ->capture_default_str();
  auto nets = std::make_shared<BenchNetsArguments>();
  app.add_option(
         "--threads", arguments->common.threads,
         "nets, tasks, dynamic, speech: numbers of threads, as 1,4; 0: one for each processor "
         "(default: 1,0; dynamic and speech: 1)")
      ->delimiter(',')
      ->check(CLI::Range(0, 4096))
      ->take_all()
      ->allow_extra_args(false);
  app.add_option("--seed", nets->seed,
                 "nets: what the random inputs are made from, and weights of built networks")
      ->capture_default_str();
  auto serve = std::make_shared<BenchServeArguments>();
  app.add_option("--clients", serve->clients, "serve: numbers of clients")
      ->delimiter(',')
      ->check(CLI::Range(1, 1024))
      ->take_all()
      ->allow_extra_args(false)
      ->capture_default_str();
  auto tasks = std::make_shared<BenchTasksArguments>();
  app.add_option("--tasks", tasks->num_tasks, "tasks: of each graph, about")
      ->check(CLI::Range(10, 10'000'000))
      ->capture_default_str();
  app.add_flag("--batch", serve->batches, "serve: rows for requests that share runs, too");
  auto peak = std::make_shared<PeakArguments>();
  const std::string of_peak = "peak: ";
  app.add_option("--model", peak->model, of_peak + "the model whose memory is measured");
  app.add_option("--contender", peak->contender, of_peak + "who runs it")
      ->check(CLI::IsMember({"eddy", "onnxruntime"}))
      ->capture_default_str();
  app.add_option("--input", peak->inputs, of_peak + "NAME=FILE, an input");
  app.add_option("--output", peak->outputs, of_peak + "an output that is asked for");
  auto fresh = std::make_shared<std::string>();
  app.add_option("--fresh", *fresh, "speech: what this process loads and runs, no more")
      ->check(CLI::IsMember({"moonshine", "decoder", "silero"}));
  return [suite, arguments, nets, serve, tasks, peak, fresh](Console& console,
                                                             Interrupts& interrupts) {
    if (*suite == "peak") return bench_peak(*peak, arguments->common.ort, console);
    if (*suite == "speech") {
      return bench_speech({arguments->common, arguments->silero, *fresh, peak->contender}, console,
                          interrupts);
    }
    if (*suite == "dynamic") {
      return bench_dynamic(arguments->common, console, interrupts);
    }
    if (*suite == "nets") {
      nets->models = arguments->models;
      nets->common = arguments->common;
      return bench_nets(*nets, console, interrupts);
    }
    if (*suite == "serve") {
      serve->common = arguments->common;
      return bench_serve(*serve, console, interrupts);
    }
    if (*suite == "tasks") {
      tasks->common = arguments->common;
      return bench_tasks(*tasks, console, interrupts);
    }
    return bench_loops(*arguments, console, interrupts);
  };
}

}  // namespace eddy
