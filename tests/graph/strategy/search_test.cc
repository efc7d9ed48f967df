// The search accepts the same steps however they are evaluated, is never worse than where it
// starts, keeps to memory limits, and says the same for the same seed.
#include "graph/strategy/search/search.h"
#include "graph/strategy/operators/memory_use.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "graph/simulate/full_simulation.h"
#include "graph/strategy/files/operator_file.h"
#include "graph/strategy/operators/memory_meter.h"
#include "graph/strategy/search/baselines.h"
#include "graph/strategy/tasks/build_task_graph.h"

namespace eddy {
namespace {

// A convolution, a pool and two dense layers on four devices in two nodes, in training.
nlohmann::json small_network() {
  return nlohmann::json::parse(R"({
    "training": true,
    "operators": [
      {"name": "conv", "type": "conv2d", "shape": [16, 8, 16, 16], "kernel": 3, "in_channels": 3},
      {"name": "pool", "type": "MaxPool", "shape": [16, 8, 8, 8], "kernel": 2, "stride": 2,
       "inputs": ["conv"]},
      {"name": "wide", "type": "matmul", "shape": [16, 2048], "in_features": 512,
       "inputs": ["pool"]},
      {"name": "narrow", "type": "matmul", "shape": [16, 64], "inputs": ["wide"]}],
    "topology": {"devices": ["a", "b", "c", "d"], "flops": 1e9, "memory_rate": 1e9,
                 "launch": 1e-5,
                 "links": [{"from": "a", "to": "b", "bandwidth": 1e9},
                           {"from": "b", "to": "a", "bandwidth": 1e9},
                           {"from": "c", "to": "d", "bandwidth": 1e9},
                           {"from": "d", "to": "c", "bandwidth": 1e9}],
                 "bandwidth": {"default": 1e8}}})");
}

OperatorFile parse(const nlohmann::json& document) {
  auto file = parse_operator_file(document, nullptr);
  EXPECT_TRUE(file.is_ok()) << file.status().to_string();
  return std::move(file).value();
}

double makespan_of(const OperatorFile& file, const Strategy& strategy) {
  TaskGraph<double> tasks;
  EXPECT_TRUE(TaskGraphBuilder(file.graph, file.topology).build(strategy, tasks).is_ok());
  Timeline<double> timeline;
  EXPECT_TRUE(simulate_full(tasks, timeline).is_done());
  return timeline.makespan;
}

SearchResult search(const OperatorFile& file, SearchOptions options) {
  auto result = search_strategy(file.graph, file.topology, options);
  EXPECT_TRUE(result.is_ok()) << result.status().to_string();
  return std::move(result).value();
}

TEST(Search, AcceptsTheSameStepsHoweverTheyAreEvaluated) {
  const OperatorFile file = parse(small_network());
  for (const uint64_t seed : {1, 2, 3}) {
    SearchOptions options;
    options.seed = seed;
    options.max_steps = 900;
    options.temperature = 0.02;
    options.evaluation = StepEvaluation::kRebuild;
    const SearchResult rebuilt = search(file, options);
    EXPECT_EQ(rebuilt.makespan, makespan_of(file, rebuilt.best));
    for (const StepEvaluation way : {StepEvaluation::kDelta, StepEvaluation::kDeltaRejecting}) {
      options.evaluation = way;
      const SearchResult by_delta = search(file, options);
      EXPECT_EQ(by_delta.makespan, rebuilt.makespan) << "seed " << seed;
      EXPECT_EQ(by_delta.best, rebuilt.best) << "seed " << seed;
      ASSERT_EQ(by_delta.chains.size(), rebuilt.chains.size());
      for (size_t i = 0; i < rebuilt.chains.size(); ++i) {
        EXPECT_EQ(by_delta.chains[i].fingerprint, rebuilt.chains[i].fingerprint);
        EXPECT_EQ(by_delta.chains[i].accepted, rebuilt.chains[i].accepted);
        EXPECT_GT(rebuilt.chains[i].accepted, 0u);
      }
    }
  }
}

TEST(Search, IsNeverWorseThanTheBaselinesAndHereBetter) {
  const OperatorFile file = parse(small_network());
  SearchOptions options;
  options.max_steps = 3000;
  uint64_t calls = 0;
  options.on_progress = [&](const SearchProgress&) { ++calls; };
  const SearchResult result = search(file, options);
  const double data = makespan_of(file, data_parallel_strategy(file.graph, file.topology));
  const double expert = makespan_of(file, expert_strategy(file.graph, file.topology));
  EXPECT_LT(result.makespan, std::min(data, expert));
  EXPECT_GE(calls, result.chains.size());
  EXPECT_LE(result.steps, 3000u);
}

// Sixteen times 2^60 bytes are none in 64 bits.
TEST(Search, SizesThatNoNumberHoldsDoNotFit) {
  constexpr int64_t kElements = int64_t{1} << 58;
  OperatorGraph graph;
  graph.bytes_per_element = 4;
  Strategy strategy;
  std::vector<uint32_t> all;
  for (uint32_t i = 0; i < 16; ++i) {
    Operator op;
    op.name = "op" + std::to_string(i);
    op.shape = Dims{kElements};
    op.weight_group = i;
    graph.operators.push_back(std::move(op));
    strategy.push_back({.degree = Dims{1}, .reduce = 1, .devices = {1}});
    all.push_back(i);
  }
  TopologySpec spec;
  spec.devices = {{.name = "limited", .memory_bytes = 1'000'000}, {.name = "open"}};
  spec.default_bandwidth = 1;
  const Topology topology = std::move(Topology::create(std::move(spec))).value();
  MemoryMeter meter(graph, topology);
  meter.reset(strategy);
  EXPECT_FALSE(meter.try_change(all, {.degree = Dims{1}, .reduce = 1, .devices = {0}}));
  EXPECT_FALSE(meter.try_change({3}, {.degree = Dims{1}, .reduce = 1, .devices = {0}}));
  EXPECT_TRUE(meter.try_change(all, strategy[0]));
}

TEST(Search, KeepsToTheMemoryOfEveryDevice) {
  nlohmann::json document = small_network();
  // A device alone cannot hold everything: weights and their companions are 14 MB.
  document["topology"]["memory_bytes"] = 8'000'000;
  const OperatorFile file = parse(document);
  EXPECT_FALSE(check_memory(file.graph, file.topology, file.strategy).is_ok());
  SearchOptions options;
  options.max_steps = 2000;
  const SearchResult result = search(file, options);
  EXPECT_TRUE(check_memory(file.graph, file.topology, result.best).is_ok());

  TopologySpec spec;
  spec.devices = {{.name = "a", .memory_bytes = 1000}, {.name = "b", .memory_bytes = 1000}};
  spec.default_bandwidth = 1;
  const Topology tiny = std::move(Topology::create(std::move(spec))).value();
  auto none = search_strategy(file.graph, tiny, options);
  ASSERT_FALSE(none.is_ok());
  EXPECT_NE(none.status().message().find("no initial strategy can be simulated: strategy '"),
            std::string::npos)
      << none.status().message();
}

// Times of tiles of 8 rows only: halves, as data parallelism has them, cannot be simulated.
TEST(Search, LeavesOutInitialStrategiesThatCannotBeSimulated) {
  const OperatorFile file = parse(nlohmann::json::parse(R"({
    "operators": [{"name": "A", "type": "elementwise", "shape": [8, 16],
                   "exe_by_tile": {"8x16": 5}}],
    "topology": {"devices": ["x", "y"], "bandwidth": {"default": 64}},
    "strategy": {"A": {"degree": [1, 1], "devices": ["x"]}}})"));
  SearchOptions options;
  options.max_steps = 100;
  options.num_random = 0;
  options.initial.emplace_back("own", file.strategy);
  const SearchResult result = search(file, options);
  EXPECT_EQ(result.found_from, "own");
  EXPECT_EQ(result.makespan, 5);
  ASSERT_FALSE(result.left_out.empty());
  EXPECT_EQ(result.left_out[0].name, "data parallel");
  EXPECT_NE(result.left_out[0].reason.find("exe_by_tile has no tile 4x16"), std::string::npos)
      << result.left_out[0].reason;
  for (const SearchChain& chain : result.chains) EXPECT_NE(chain.name, "data parallel");
}

TEST(Search, SaysTheSameForTheSameSeed) {
  const OperatorFile file = parse(small_network());
  SearchOptions options;
  options.seed = 77;
  options.max_steps = 600;
  EXPECT_EQ(search(file, options).best, search(file, options).best);
}

TEST(Baselines, AreDataParallelAndByModelForDenseLayers) {
  const OperatorFile file = parse(small_network());
  const Strategy data = data_parallel_strategy(file.graph, file.topology);
  const Strategy expert = expert_strategy(file.graph, file.topology);
  for (const OperatorConfig& config : data) EXPECT_EQ(config.degree[0], 4);
  const OperatorNumbers numbers = numbers_by_name(file.graph);
  EXPECT_EQ(expert[numbers.at("conv")].degree, (Dims{4, 1, 1, 1}));
  EXPECT_EQ(expert[numbers.at("wide")].degree, (Dims{1, 4}));
  const std::vector<std::vector<uint32_t>> nodes = {{0, 1}, {2, 3}};
  EXPECT_EQ(find_nodes(file.topology), nodes);
}

}  // namespace
}  // namespace eddy
