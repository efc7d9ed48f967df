// What building task graphs costs, what a step of the strategy search costs in three ways, and how
// good the strategies found are, on the networks and clusters of FlexFlow's evaluation.
//
//   bazel run -c opt //tests/bench:search_bench -- build           task graph + full simulation
//   bazel run -c opt //tests/bench:search_bench -- steps [N [NETWORK]]
//                                                 searches of N steps, each way; then as many
//                                                 steps from the best strategy found
//   bazel run -c opt //tests/bench:search_bench -- quality [S]     S seconds of search a case
//
// Rates are of one thread; the best of several rounds. Steps are measured in processor time, the
// three ways in turn; their speedups are those of each round, least to most. Seeds are fixed and
// printed.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>

#include "graph/base/random.h"
#include "graph/io/file_bytes.h"
#include "graph/simulate/full_simulation.h"
#include "graph/strategy/search/baselines.h"
#include "graph/strategy/search/search.h"
#include "graph/strategy/tasks/build_task_graph.h"
#include "tests/bench/networks.h"

namespace eddy {
namespace {

constexpr uint64_t kSeed = 1;
constexpr int kStepRounds = 3;
constexpr double kNever = 1e300;

Topology make_cluster(const std::string& card, int num_devices) {
  const auto file = read_file("tests/bench/cards.json", 1 << 20);
  EDDY_CHECK(file.is_ok()) << file.status().to_string();
  const auto bytes = (*file)->bytes();
  auto topology =
      cluster({reinterpret_cast<const char*>(bytes.data()), bytes.size()}, card, num_devices);
  EDDY_CHECK(topology.is_ok()) << topology.status().to_string();
  return std::move(topology).value();
}

double best_seconds(int rounds, const std::function<void()>& work) {
  double best = kNever;
  for (int i = 0; i < rounds; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    work();
    best = std::min(
        best, std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count());
  }
  return best;
}

void measure_build(const NamedNetwork& network, int num_devices, const char* name,
                   const std::function<Strategy(const OperatorGraph&, const Topology&)>& make) {
  const Topology topology = make_cluster("p100", num_devices);
  const OperatorGraph graph = network.make();
  const Strategy strategy = make(graph, topology);
  TaskGraphBuilder builder(graph, topology);
  TaskGraph<double> tasks;
  FullSimulation<double> simulation;
  Timeline<double> timeline;
  const double build = best_seconds(
      20, [&] { EDDY_CHECK(builder.build(strategy, tasks).is_ok()) << "no task graph"; });
  const double simulate = best_seconds(20, [&] { simulation.run(tasks, timeline); });
  const double count = tasks.num_tasks();
  std::printf("%-13s %3d %-14s %8u %9lu  %7.1f %7.1f  %7.1f\n", network.name.c_str(), num_devices,
              name, tasks.num_tasks(), static_cast<unsigned long>(tasks.num_edges()),
              count / build / 1e6, count / simulate / 1e6, count / (build + simulate) / 1e6);
}

void bench_build() {
  std::printf(
      "network      GPUs strategy          tasks     edges  build  simulate  both, Mtasks/s\n");
  for (const NamedNetwork& network : networks()) {
    if (network.name != "Inception-v3" && network.name != "NMT") continue;
    for (const int num_devices : {4, 16, 64}) {
      measure_build(network, num_devices, "data parallel", data_parallel_strategy);
      measure_build(network, num_devices, "expert", expert_strategy);
      measure_build(network, num_devices, "random", [](const auto& graph, const auto& topology) {
        Random random(kSeed);
        return random_strategy(graph, topology, random);
      });
    }
  }
}

constexpr StepEvaluation kWays[] = {StepEvaluation::kRebuild, StepEvaluation::kDelta,
                                    StepEvaluation::kDeltaRejecting};

// One phase of a search, measured in each way.
struct StepTimes {
  double us[kStepRounds][3];  // a step
  uint64_t fingerprints[3];
  SearchResult result;

  bool is_same() const {
    return fingerprints[0] == fingerprints[1] && fingerprints[0] == fingerprints[2];
  }
  double best(int way) const {
    double least = kNever;
    for (const auto& round : us) least = std::min(least, round[way]);
    return least;
  }
  std::string speedups(int way) const {
    double least = kNever;
    double most = 0;
    for (const auto& round : us) {
      least = std::min(least, round[0] / round[way]);
      most = std::max(most, round[0] / round[way]);
    }
    char text[32];
    std::snprintf(text, sizeof(text), "%.1f..%.1f", least, most);
    return text;
  }
};

StepTimes time_steps(const OperatorGraph& graph, const Topology& topology, SearchOptions options) {
  StepTimes times;
  for (int i = 0; i < 3 * kStepRounds; ++i) {
    const int way = i % 3;
    options.evaluation = kWays[way];
    const std::clock_t begin = std::clock();
    auto result = search_strategy(graph, topology, options);
    const double seconds = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
    EDDY_CHECK(result.is_ok()) << result.status().to_string();
    times.us[i / 3][way] = seconds * 1e6 / static_cast<double>(result->steps);
    times.fingerprints[way] = 0;
    for (const SearchChain& chain : result->chains) {
      times.fingerprints[way] = times.fingerprints[way] * 31 + chain.fingerprint;
    }
    times.result = std::move(result).value();
  }
  return times;
}

void print_steps(const NamedNetwork& network, int num_devices, const char* phase,
                 const StepTimes& times) {
  uint64_t accepted = 0;
  for (const SearchChain& chain : times.result.chains) accepted += chain.accepted;
  std::printf("%-12s %4d %-8s %6lu %7.1f %% %8.1f %8.1f %10.1f  %9s x, %9s x%s\n",
              network.name.c_str(), num_devices, phase,
              static_cast<unsigned long>(times.result.steps),
              100.0 * static_cast<double>(accepted) / static_cast<double>(times.result.steps),
              times.best(0), times.best(1), times.best(2), times.speedups(1).c_str(),
              times.speedups(2).c_str(), times.is_same() ? "" : ", DIFFERENT STEPS ACCEPTED");
  std::fflush(stdout);
}

void bench_steps(uint64_t steps, const std::string& only) {
  std::printf("seed %lu, searches of up to %lu steps, the best of %d rounds\n",
              static_cast<unsigned long>(kSeed), static_cast<unsigned long>(steps), kStepRounds);
  std::printf(
      "                                           us a step\n"
      "network      GPUs phase     steps accepted  rebuild    delta  rejecting  speedups\n");
  for (const NamedNetwork& network : networks()) {
    if (!only.empty() && network.name != only) continue;
    for (const int num_devices : {16, 64}) {
      const Topology topology = make_cluster("p100", num_devices);
      const OperatorGraph graph = network.make();
      SearchOptions options;
      options.seed = kSeed;
      options.max_steps = steps;
      const StepTimes whole = time_steps(graph, topology, options);
      print_steps(network, num_devices, "whole", whole);
      options.has_baselines = false;
      options.num_random = 0;
      options.initial = {{"best", whole.result.best}};
      print_steps(network, num_devices, "settled", time_steps(graph, topology, options));
    }
  }
}

double makespan_of(const OperatorGraph& graph, const Topology& topology, const Strategy& strategy) {
  TaskGraphBuilder builder(graph, topology);
  TaskGraph<double> tasks;
  EDDY_CHECK(builder.build(strategy, tasks).is_ok()) << "no task graph";
  Timeline<double> timeline;
  simulate_full(tasks, timeline);
  return timeline.makespan;
}

void bench_quality(double seconds) {
  std::printf("seed %lu, %.0f s a case; milliseconds an iteration of training\n",
              static_cast<unsigned long>(kSeed), seconds);
  std::printf(
      "cards network      GPUs  data par.   expert   search  gain  found from      steps\n");
  for (const char* card : {"p100", "k80"}) {
    int num_better = 0;
    for (const NamedNetwork& network : networks()) {
      for (const int num_devices : {4, 16}) {
        const Topology topology = make_cluster(card, num_devices);
        const OperatorGraph graph = network.make();
        const double data = makespan_of(graph, topology, data_parallel_strategy(graph, topology));
        const double expert = makespan_of(graph, topology, expert_strategy(graph, topology));
        SearchOptions options;
        options.seed = kSeed;
        options.max_seconds = seconds;
        auto result = search_strategy(graph, topology, options);
        EDDY_CHECK(result.is_ok()) << result.status().to_string();
        const double best = std::min(data, expert);
        num_better += result->makespan < 0.99 * best;
        std::printf("%-5s %-13s %3d %10.2f %8.2f %8.2f %4.2fx  %-14s %6lu\n", card,
                    network.name.c_str(), num_devices, data * 1e3, expert * 1e3,
                    result->makespan * 1e3, best / result->makespan, result->found_from.c_str(),
                    static_cast<unsigned long>(result->steps));
        std::fflush(stdout);
      }
    }
    std::printf("%s: better than both by more than 1 %% on %d of 10\n", card, num_better);
  }
}

}  // namespace
}  // namespace eddy

int main(int argc, char** argv) {
  const std::string what = argc > 1 ? argv[1] : "";
  const double amount = argc > 2 ? std::atof(argv[2]) : 0;
  if (what == "build") {
    eddy::bench_build();
  } else if (what == "steps") {
    eddy::bench_steps(amount > 0 ? static_cast<uint64_t>(amount) : 1000, argc > 3 ? argv[3] : "");
  } else if (what == "quality") {
    eddy::bench_quality(amount > 0 ? amount : 10);
  } else {
    std::fprintf(stderr, "usage: search_bench build | steps [N [NETWORK]] | quality [SECONDS]\n");
    return 2;
  }
  return 0;
}
