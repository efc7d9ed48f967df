// What simulating a task graph costs on one thread: in full, tasks already built (building apart),
// and by delta after one edit.
//
// Graphs have one task in a device's row for each device and layer, ids along time as a builder
// would give them; each depends on `deps` tasks of the layer before it, on near devices ("local")
// or on any ("any"). "wide" has no dependencies but one layer. Times are random integers or
// doubles, seed 7. Counters: tasks_per_second of the simulated graph.
// Results: results/simulate_*.md.
#include <benchmark/benchmark.h>

#include <algorithm>
#include <vector>

#include "graph/base/random.h"
#include "graph/simulate/delta_simulation.h"
#include "graph/simulate/full_simulation.h"

namespace eddy {
namespace {

enum Shape { kLocal, kAny, kWide };

template <TimeValue Time>
struct Input {
  std::vector<TaskSpec<Time>> specs;
  std::vector<Edge> edges;
};

template <TimeValue Time>
Input<Time> make_input(uint32_t num_tasks, uint32_t num_devices, Shape shape) {
  Random random(7);
  Input<Time> input;
  for (uint32_t i = 0; i < num_tasks; ++i) {
    const auto time = static_cast<Time>(100 + random.below(1000));
    input.specs.push_back({time, i % num_devices, i});
    const uint32_t layer = i / num_devices;
    if (layer == 0 || shape == kWide) continue;
    for (int k = 0; k < 2; ++k) {
      const uint32_t column =
          shape == kLocal
              ? (i % num_devices + num_devices + static_cast<uint32_t>(random.below(5)) - 2) %
                    num_devices
              : static_cast<uint32_t>(random.below(num_devices));
      input.edges.push_back({(layer - 1) * num_devices + column, i});
    }
  }
  return input;
}

template <TimeValue Time>
void simulate_built(benchmark::State& state, Shape shape) {
  const auto num_tasks = static_cast<uint32_t>(state.range(0));
  const Input<Time> input =
      make_input<Time>(num_tasks, static_cast<uint32_t>(state.range(1)), shape);
  TaskGraph<Time> graph;
  graph.assign(input.specs, input.edges);
  FullSimulation<Time> simulation;
  Timeline<Time> timeline;
  for (auto _ : state) {
    if (!simulation.run(graph, timeline).is_done()) state.SkipWithError("not done");
    benchmark::DoNotOptimize(timeline.makespan);
  }
  state.counters["tasks_per_second"] = benchmark::Counter(
      static_cast<double>(num_tasks), benchmark::Counter::kIsIterationInvariantRate);
}

template <TimeValue Time>
void build_and_simulate(benchmark::State& state) {
  const auto num_tasks = static_cast<uint32_t>(state.range(0));
  const Input<Time> input =
      make_input<Time>(num_tasks, static_cast<uint32_t>(state.range(1)), kAny);
  TaskGraph<Time> graph;
  FullSimulation<Time> simulation;
  Timeline<Time> timeline;
  for (auto _ : state) {
    graph.assign(input.specs, input.edges);
    if (!simulation.run(graph, timeline).is_done()) state.SkipWithError("not done");
    benchmark::DoNotOptimize(timeline.makespan);
  }
  state.counters["tasks_per_second"] = benchmark::Counter(
      static_cast<double>(num_tasks), benchmark::Counter::kIsIterationInvariantRate);
}

// One task's time changes by a tenth and back; where in the graph is drawn anew each time.
void edit_one_time(benchmark::State& state, DeltaMode mode) {
  const auto num_tasks = static_cast<uint32_t>(state.range(0));
  const Input<double> input =
      make_input<double>(num_tasks, static_cast<uint32_t>(state.range(1)), kAny);
  TaskGraph<double> graph;
  graph.assign(input.specs, input.edges);
  DeltaSimulation<double> delta;
  if (!delta.reset(std::move(graph)).is_done()) state.SkipWithError("not done");
  Random random(11);
  double processed = 0;
  double passed = 0;
  for (auto _ : state) {
    const auto slot = static_cast<uint32_t>(random.below(num_tasks));
    delta.set_exe_time(slot, delta.graph().task(slot).exe_time * 1.1);
    if (!delta.simulate({.mode = mode}).is_done()) state.SkipWithError("not done");
    processed += static_cast<double>(delta.statistics().num_processed);
    passed += static_cast<double>(delta.statistics().num_passed);
    delta.rollback();
  }
  state.counters["processed"] = benchmark::Counter(processed, benchmark::Counter::kAvgIterations);
  state.counters["passed"] = benchmark::Counter(passed, benchmark::Counter::kAvgIterations);
}

void full_integers(benchmark::State& state, Shape shape) { simulate_built<int64_t>(state, shape); }
void full_doubles(benchmark::State& state, Shape shape) { simulate_built<double>(state, shape); }

void sizes_of_full(benchmark::internal::Benchmark* bench) {
  bench->Unit(benchmark::kMillisecond)->ArgNames({"tasks", "devices"});
  bench->Args({100'000, 4})->Args({100'000, 64})->Args({100'000, 1024});
  bench->Args({10'000'000, 64});
}
void sizes_of_others(benchmark::internal::Benchmark* bench) {
  bench->Unit(benchmark::kMillisecond)->ArgNames({"tasks", "devices"});
  bench->Args({100'000, 4})->Args({100'000, 64});
}

BENCHMARK_CAPTURE(full_integers, local, kLocal)->Apply(sizes_of_full);
BENCHMARK_CAPTURE(full_integers, any, kAny)->Apply(sizes_of_full);
BENCHMARK_CAPTURE(full_integers, wide, kWide)->Apply(sizes_of_others);
BENCHMARK_CAPTURE(full_doubles, any, kAny)->Apply(sizes_of_full);
BENCHMARK(build_and_simulate<double>)->Apply(sizes_of_others);
BENCHMARK_CAPTURE(edit_one_time, repair, DeltaMode::kRepair)->Apply(sizes_of_others);
BENCHMARK_CAPTURE(edit_one_time, resimulate, DeltaMode::kResimulate)->Apply(sizes_of_others);
BENCHMARK_CAPTURE(edit_one_time, auto, DeltaMode::kAuto) -> Apply(sizes_of_others);

}  // namespace
}  // namespace eddy

BENCHMARK_MAIN();
