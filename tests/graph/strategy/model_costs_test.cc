// Claim: an imported loop's carried values come from who makes them, the first and the next, and
// cross links from turn to turn; what `before` forwards is read by the body as what it is.
#include "graph/strategy/scenarios/model_costs.h"

#include <gtest/gtest.h>

#include "graph/ir/builder.h"
#include "graph/ir/control_view.h"
#include "graph/simulate/scenario.h"
#include "graph/strategy/scenarios/expand_graph.h"
#include "graph/strategy/scenarios/graph_reads.h"
#include "ops/schema/standard.h"

namespace eddy {
namespace {

constexpr int64_t kTrips = 3;

class ModelCostsTest : public testing::Test {
 protected:
  ModelCostsTest() { EXPECT_TRUE(add_standard_schemas(ops_).is_ok()); }

  // x -> start -> loop "turn" of (a -> b), which carries `next(a, b)`; its `before` forwards
  // `forward(carried)`.
  template <typename Forward, typename Next>
  Graph loop_graph(const Forward& forward, const Next& next) {
    GraphBuilder b(ops_);
    const Value x = b.input("x", tensor_type(ElementType::kFloat, {8}));
    const Value start = b.op("Neg", {x}, {}, {.name = "start"});
    const auto out = b.while_loop(
        {.name = "turn", .initial = {start}, .trip_limit = b.scalar<int64_t>(kTrips)},
        [&](Value, std::span<const Value> carried) {
          return WhileTest{b.scalar(true), {forward(b, carried[0])}};
        },
        [&](Value, std::span<const Value> forwarded) {
          const Value first = b.op("Exp", {forwarded[0]}, {}, {.name = "a"});
          const Value second = b.op("Abs", {first}, {}, {.name = "b"});
          return std::vector<Value>{next(b, first, second, start)};
        });
    b.output("y", out[0]);
    auto graph = b.finish();
    EXPECT_TRUE(graph.is_ok()) << graph.status().to_string();
    return std::move(graph).value();
  }

  GraphCosts costs_of(const Graph& graph) {
    CostTable measured;
    measured.decisions["turn"] = {kTrips};
    auto made = model_costs(graph, ops_, &measured, "cpu");
    EXPECT_TRUE(made.is_ok()) << made.status().to_string();
    return std::move(made->costs);
  }

  // What the operators of the loop's `after` read of other regions.
  std::vector<std::string> read_by_after(const Graph& graph) {
    std::vector<std::string> names;
    const GraphCosts costs = costs_of(graph);
    for (const NodeId loop : costs.regions[0].controls) {
      const RegionId after = graph.node(loop).regions[1];
      for (const OuterInput& input : costs.regions[after.index()].outer_inputs) {
        const NodeId maker = graph.value(input.source).producer;
        names.push_back(maker.is_none() ? "carried" : costs.name(graph, maker));
      }
    }
    return names;
  }

  // How often eight numbers cross a link where everything is on one device but `far`.
  size_t num_transfers(const Graph& graph, const std::string& far);

  OpTable ops_;
};

Value as_it_is(GraphBuilder&, Value carried) { return carried; }
Value the_last(GraphBuilder&, Value, Value last, Value) { return last; }

Topology two_devices() {
  auto topology = Topology::create(
      {.devices = {{.name = "x"}, {.name = "y"}}, .links = {}, .default_bandwidth = 1});
  EXPECT_TRUE(topology.is_ok()) << topology.status().to_string();
  return std::move(topology).value();
}

size_t ModelCostsTest::num_transfers(const Graph& graph, const std::string& far) {
  const Topology topology = two_devices();
  GraphCosts costs = costs_of(graph);
  for (RegionCosts& region : costs.regions) {
    region.strategy = single_device_strategy(region.operators, topology);
    for (size_t op = 0; op < region.strategy.size(); ++op) {
      if (region.operators.operators[op].name == far) region.strategy[op].devices = {1};
    }
  }
  auto region = expand_graph(graph, costs, topology);
  EXPECT_TRUE(region.is_ok()) << region.status().to_string();
  if (!region.is_ok()) return 0;
  auto scenario = expand_scenario(*region);
  EXPECT_TRUE(scenario.is_ok()) << scenario.status().to_string();
  size_t count = 0;
  for (uint32_t slot = 0; scenario.is_ok() && slot < scenario->graph.num_slots(); ++slot) {
    const auto& task = scenario->graph.task(slot);
    if (task.device < topology.num_nodes()) continue;
    EXPECT_EQ(task.exe_time, 32) << scenario->names[slot];
    ++count;
  }
  return count;
}

TEST_F(ModelCostsTest, CarriedValuesAreReadAsSuch) {
  const Graph graph = loop_graph(as_it_is, the_last);
  EXPECT_EQ(read_by_after(graph), std::vector<std::string>{"carried"});
  const GraphCosts costs = costs_of(graph);
  const LoopView loop(graph, costs.regions[0].controls.at(0));
  const GraphReads reads(graph, costs);
  const std::vector<RegionSend>& before = reads.sends(Graph::kRoot);
  const std::vector<RegionSend>& in_turn = reads.sends(loop.after_id());
  ASSERT_EQ(before.size(), 1u);
  EXPECT_EQ(costs.name(graph, graph.value(before[0].source).producer), "start");
  ASSERT_EQ(in_turn.size(), 1u);
  EXPECT_EQ(costs.name(graph, graph.value(in_turn[0].source).producer), "turn/b");
  EXPECT_TRUE(in_turn[0].is_carried);
}

TEST_F(ModelCostsTest, CarriedValuesCrossFromTurnToTurn) {
  const Graph graph = loop_graph(as_it_is, the_last);
  EXPECT_EQ(num_transfers(graph, ""), 0u);
  EXPECT_EQ(num_transfers(graph, "start"), 1u);
  EXPECT_EQ(num_transfers(graph, "turn/a"), 1u + 2 * kTrips);
  EXPECT_EQ(num_transfers(graph, "turn/b"), 2u * kTrips);
}

// The body reads the operator of `before`, which reads what is carried.
TEST_F(ModelCostsTest, WhatBeforeForwardsIsReadAsWhatItIs) {
  const auto twice = [](GraphBuilder& b, Value carried) {
    return b.op("Tanh", {carried}, {}, {.name = "test"});
  };
  const Graph graph = loop_graph(twice, the_last);
  EXPECT_EQ(read_by_after(graph), std::vector<std::string>{"turn/test"});
  EXPECT_EQ(num_transfers(graph, "turn/test"), 1u + 2 * kTrips);
}

TEST_F(ModelCostsTest, AValueOfOutsideThatIsCarriedCrossesOnce) {
  const auto outside = [](GraphBuilder&, Value, Value, Value start) { return start; };
  EXPECT_EQ(num_transfers(loop_graph(as_it_is, outside), "start"), 1u);
}

// A constant is there in each turn: only the first value, and what `b` reads, cross.
TEST_F(ModelCostsTest, AConstantThatIsCarriedCrossesNothing) {
  const auto constant = [](GraphBuilder& b, Value, Value, Value) {
    return b.vector<float>({1, 2, 3, 4, 5, 6, 7, 8});
  };
  const Graph graph = loop_graph(as_it_is, constant);
  const GraphCosts costs = costs_of(graph);
  const LoopView loop(graph, costs.regions[0].controls.at(0));
  EXPECT_TRUE(GraphReads(graph, costs).sends(loop.after_id()).empty());
  EXPECT_EQ(num_transfers(graph, "turn/b"), 1u * kTrips);
}

}  // namespace
}  // namespace eddy
