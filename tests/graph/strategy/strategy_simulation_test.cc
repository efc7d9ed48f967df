// Changing configurations by delta gives the timeline of building the new strategy anew and
// simulating it in full, bit for bit, after every change, rejection and rollback.
//
// EDDY_STRATEGY_GRAPHS sets how many random operator graphs are tried, of kSteps changes each.
#include "graph/strategy/tasks/strategy_simulation.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <tuple>

#include "graph/base/random.h"
#include "graph/simulate/full_simulation.h"
#include "graph/strategy/operators/regions.h"
#include "graph/strategy/tasks/build_task_graph.h"

namespace eddy {
namespace {

constexpr int kSteps = 20;

Topology random_topology(Random& random) {
  TopologySpec spec;
  for (int d = 0; d < 4; ++d) {
    spec.devices.push_back({.name = "d" + std::to_string(d),
                            .flops = 100 + static_cast<double>(random.below(3)) * 50,
                            .memory_rate = 100,
                            .launch = random.below(2) == 0 ? 0.0 : 1.0});
  }
  if (random.below(2) == 0) {
    // Now and then so fast that transfers take no time, even where they begin late.
    spec.default_bandwidth = random.below(4) == 0 ? 1e300 : 64;
  } else {  // a ring both ways: routes of up to two links
    for (int d = 0; d < 4; ++d) {
      for (const int to : {(d + 1) % 4, (d + 3) % 4}) {
        spec.links.push_back({.from = "d" + std::to_string(d),
                              .to = "d" + std::to_string(to),
                              .bandwidth = 32 + static_cast<double>(random.below(4)) * 16,
                              .latency = static_cast<double>(random.below(2))});
      }
    }
  }
  return std::move(Topology::create(std::move(spec))).value();
}

OperatorGraph random_operators(Random& random) {
  OperatorGraph graph;
  graph.is_training = random.below(2) == 0;
  const uint32_t count = 3 + static_cast<uint32_t>(random.below(8));
  for (uint32_t i = 0; i < count; ++i) {
    Operator op{.name = "op" + std::to_string(i), .type = "", .shape = {8, 8}};
    op.type = random.below(2) == 0 ? "matmul" : "elementwise";
    std::vector<Dims> shapes;
    const uint64_t inputs = i == 0 ? 0 : 1 + random.below(op.type == "matmul" ? 1 : 2);
    for (uint64_t k = 0; k < inputs; ++k) {
      op.inputs.push_back({.producer = static_cast<uint32_t>(random.below(i))});
      shapes.push_back({8, 8});
    }
    const Status status = set_regions(op, {.in_features = 8}, shapes, nullptr);
    EXPECT_TRUE(status.is_ok()) << status.to_string();
    op.weight_group = op.type == "matmul" && random.below(3) == 0 ? 0 : i;
    graph.operators.push_back(std::move(op));
  }
  graph.num_weight_groups = count;
  return graph;
}

OperatorConfig random_config(const Operator& op, Random& random) {
  OperatorConfig config;
  for (int d = 0; d < op.shape.rank(); ++d) config.degree.push_back(int64_t{1} << random.below(3));
  if (op.reduction > 1 && random.below(3) == 0) config.reduce = 2;
  for (int64_t p = 0; p < config.num_parts(); ++p) {
    config.devices.push_back(static_cast<uint32_t>(random.below(4)));
  }
  return config;
}

// (kind, op, part, ...) -> times, whatever the slots.
using Times = std::map<std::string, std::tuple<double, double, double>>;

Times times_of(const OperatorGraph& graph, const Topology& topology, const Strategy& strategy) {
  TaskGraph<double> tasks;
  std::vector<TaskLabel> labels;
  const Status status = TaskGraphBuilder(graph, topology).build(strategy, tasks, labels);
  EXPECT_TRUE(status.is_ok()) << status.to_string();
  Timeline<double> timeline;
  EXPECT_TRUE(simulate_full(tasks, timeline).is_done());
  Times times;
  for (uint32_t slot = 0; slot < tasks.num_slots(); ++slot) {
    const TaskTimes<double>& at = timeline.tasks[slot];
    const bool is_new = times
                            .emplace(task_name(labels[slot], graph, topology),
                                     std::tuple(at.ready, at.start, at.end))
                            .second;
    EXPECT_TRUE(is_new) << "two tasks are called " << task_name(labels[slot], graph, topology);
  }
  return times;
}

Times times_of(const StrategySimulation& simulation, const OperatorGraph& graph,
               const Topology& topology) {
  const StrategySnapshot snapshot = simulation.snapshot();
  Timeline<double> full;
  EXPECT_TRUE(simulate_full(snapshot.graph, full).is_done());
  EXPECT_EQ(snapshot.timeline.order, full.order);
  Times times;
  for (uint32_t slot = 0; slot < snapshot.graph.num_slots(); ++slot) {
    const TaskTimes<double>& at = snapshot.timeline.tasks[slot];
    times.emplace(task_name(snapshot.labels[slot], graph, topology),
                  std::tuple(at.ready, at.start, at.end));
  }
  return times;
}

double makespan_of(const Times& times) {
  double makespan = 0;
  for (const auto& [_, at] : times) makespan = std::max(makespan, std::get<2>(at));
  return makespan;
}

// One transaction: one or two changes to `changed`. Whether they were simulated to the end.
bool try_changes(StrategySimulation& simulation, const std::vector<uint32_t>& ops,
                 const Strategy& changed, double threshold, double makespan, bool is_limited) {
  for (size_t i = 0; i < ops.size(); ++i) {
    const bool is_last = i + 1 == ops.size();
    const double limit = is_last && is_limited ? threshold : std::numeric_limits<double>::max();
    if (simulation.change(std::span(&ops[i], 1), changed[ops[i]], limit)) continue;
    EXPECT_GT(makespan, threshold) << "rejected before it was simulated";
    return false;
  }
  auto end =
      threshold < makespan || is_limited ? simulation.simulate(threshold) : simulation.simulate();
  EXPECT_TRUE(end.is_ok()) << end.status().to_string();
  EXPECT_EQ(*end == SimulationEnd::kExceeds, makespan > threshold);
  return *end == SimulationEnd::kDone;
}

void change_at_random(uint64_t seed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  const Topology topology = random_topology(random);
  const OperatorGraph graph = random_operators(random);
  Strategy strategy;
  for (const Operator& op : graph.operators) strategy.push_back(random_config(op, random));
  StrategySimulation simulation(graph, topology);
  simulation.keep_labels();
  const Status status = simulation.reset(strategy);
  ASSERT_TRUE(status.is_ok()) << status.to_string();
  for (int step = 0; step < kSteps; ++step) {
    Strategy changed = strategy;
    std::vector<uint32_t> ops;
    for (uint64_t n = 1 + random.below(2); n > 0; --n) {
      const auto op = static_cast<uint32_t>(random.below(graph.operators.size()));
      if (!ops.empty() && ops[0] == op) continue;
      changed[op] = random_config(graph.operators[op], random);
      ops.push_back(op);
    }
    const Times expected = times_of(graph, topology, changed);
    const double makespan = makespan_of(expected);
    const bool is_limited = random.below(3) == 0;
    const double threshold = is_limited ? makespan * (0.8 + 0.4 * random.uniform()) : makespan;
    const bool is_done =
        try_changes(simulation, ops, changed, threshold, makespan, random.below(2) == 0);
    if (is_done) {
      ASSERT_EQ(simulation.makespan(), makespan);
      ASSERT_EQ(times_of(simulation, graph, topology), expected);
    }
    if (is_done && random.below(2) == 0) {
      simulation.commit();
      strategy = changed;
    } else {
      simulation.rollback();
    }
    ASSERT_EQ(simulation.strategy(), strategy);
    if (step % 4 == 0) {
      ASSERT_EQ(times_of(simulation, graph, topology), times_of(graph, topology, strategy));
    }
  }
}

TEST(StrategySimulation, TimesThatAddUpToTooMuchAreRefusedAndUndone) {
  TopologySpec spec;
  spec.devices = {{.name = "a"}, {.name = "b"}};
  spec.default_bandwidth = 1;
  const Topology topology = std::move(Topology::create(std::move(spec))).value();
  OperatorGraph graph;
  for (int i = 0; i < 2; ++i) {
    graph.operators.push_back(
        {.name = "op" + std::to_string(i), .type = "elementwise", .shape = {4}});
    Operator& op = graph.operators.back();
    op.weight_group = graph.num_weight_groups++;
    op.measured = 1.2e308;
  }
  // Side by side they fit, one after the other they do not.
  const Strategy apart = {single_config(graph.operators[0], 0),
                          single_config(graph.operators[1], 1)};
  StrategySimulation simulation(graph, topology);
  ASSERT_TRUE(simulation.reset(apart).is_ok());
  EXPECT_EQ(simulation.makespan(), 1.2e308);
  for (int i = 0; i < 2; ++i) {
    simulation.change(1, apart[0]);
    const auto end = simulation.simulate();
    ASSERT_FALSE(end.is_ok());
    EXPECT_NE(end.status().message().find("add up to more"), std::string::npos);
    simulation.rollback();
    EXPECT_EQ(simulation.makespan(), 1.2e308);
  }
  EXPECT_FALSE(simulation.reset({apart[0], apart[0]}).is_ok());
}

TEST(StrategySimulation, ChangesByDeltaGiveTheTimelineOfBuildingAnew) {
  constexpr uint64_t kFirstSeed = 4242;
  const char* wanted = std::getenv("EDDY_STRATEGY_GRAPHS");
  const uint64_t num_graphs = wanted == nullptr ? 500 : std::strtoull(wanted, nullptr, 10);
  std::printf("%llu graphs, seeds from %llu\n", static_cast<unsigned long long>(num_graphs),
              static_cast<unsigned long long>(kFirstSeed));
  for (uint64_t seed = kFirstSeed; seed < kFirstSeed + num_graphs && !HasFatalFailure(); ++seed) {
    change_at_random(seed);
  }
}

}  // namespace
}  // namespace eddy
