// Claim: an imported loop's carried values come from the operators that make them, the first and
// the next, and cross links from iteration to iteration; the body reads what `before` forwards as
// the forwarded value.
#include "graph/strategy/model_operators.h"

#include <gtest/gtest.h>

#include "graph/ir/builder.h"
#include "graph/simulate/scenario.h"
#include "graph/strategy/make_scenarios.h"
#include "ops/schema/standard.h"

namespace eddy {
namespace {

constexpr int64_t kTrips = 3;

class ModelOperatorsTest : public testing::Test {
 protected:
  ModelOperatorsTest() { EXPECT_TRUE(add_standard_schemas(ops_).is_ok()); }

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

  OperatorList operators_of(const Graph& graph) {
    CostTable costs;
    costs.decisions["turn"] = {kTrips};
    auto made = model_operators(graph, ops_, &costs, "cpu");
    EXPECT_TRUE(made.is_ok()) << made.status().to_string();
    return std::move(made->root);
  }

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

// Everything on device 0 but what `far` names.
void place(OperatorList& list, const Topology& topology, const std::string& far) {
  list.strategy = single_device_strategy(list.graph, topology);
  for (size_t op = 0; op < list.strategy.size(); ++op) {
    if (list.graph.operators[op].name == far) list.strategy[op].devices = {1};
  }
  for (ControlOperator& control : list.controls) {
    for (OperatorList& inner : control.lists) place(inner, topology, far);
  }
}

// How often eight numbers cross a link.
size_t num_transfers(OperatorList root, const std::string& far) {
  const Topology topology = two_devices();
  place(root, topology, far);
  auto region = make_scenarios(root, topology);
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

TEST_F(ModelOperatorsTest, CarriedValuesNameTheirMakers) {
  const OperatorList root = operators_of(loop_graph(as_it_is, the_last));
  ASSERT_EQ(root.controls.size(), 1u);
  const ControlOperator& loop = root.controls[0];
  ASSERT_EQ(loop.carried.size(), 1u);
  EXPECT_EQ(loop.carried[0].initial, "start");
  EXPECT_EQ(loop.carried[0].next, "turn/b");
  ASSERT_EQ(loop.lists[1].outer_inputs.size(), 1u);
  EXPECT_EQ(loop.lists[1].outer_inputs[0].from, loop.carried[0].name);
}

TEST_F(ModelOperatorsTest, CarriedValuesCrossFromTurnToTurn) {
  const Graph graph = loop_graph(as_it_is, the_last);
  EXPECT_EQ(num_transfers(operators_of(graph), ""), 0u);
  EXPECT_EQ(num_transfers(operators_of(graph), "start"), 1u);
  EXPECT_EQ(num_transfers(operators_of(graph), "turn/a"), 1u + 2 * kTrips);
  EXPECT_EQ(num_transfers(operators_of(graph), "turn/b"), 2u * kTrips);
}

// The body reads the operator of `before`, which reads what is carried.
TEST_F(ModelOperatorsTest, WhatBeforeForwardsIsReadAsWhatItIs) {
  const auto twice = [](GraphBuilder& b, Value carried) {
    return b.op("Tanh", {carried}, {}, {.name = "test"});
  };
  const Graph graph = loop_graph(twice, the_last);
  const OperatorList root = operators_of(graph);
  ASSERT_EQ(root.controls[0].lists[1].outer_inputs.size(), 1u);
  EXPECT_EQ(root.controls[0].lists[1].outer_inputs[0].from, "turn/test");
  EXPECT_EQ(num_transfers(operators_of(graph), "turn/test"), 1u + 2 * kTrips);
}

TEST_F(ModelOperatorsTest, AValueOfOutsideThatIsCarriedCrossesOnce) {
  const auto outside = [](GraphBuilder&, Value, Value, Value start) { return start; };
  const Graph graph = loop_graph(as_it_is, outside);
  const OperatorList root = operators_of(graph);
  EXPECT_EQ(root.controls[0].carried[0].next, "start");
  EXPECT_EQ(num_transfers(operators_of(graph), "start"), 1u);
}

// A constant is there in each turn.
TEST_F(ModelOperatorsTest, AConstantThatIsCarriedCrossesNothing) {
  const auto constant = [](GraphBuilder& b, Value, Value, Value) {
    return b.vector<float>({1, 2, 3, 4, 5, 6, 7, 8});
  };
  const Graph graph = loop_graph(as_it_is, constant);
  const OperatorList root = operators_of(graph);
  EXPECT_EQ(root.controls[0].carried[0].next, "");
  EXPECT_EQ(num_transfers(operators_of(graph), "turn/b"), 1u * kTrips);
}

}  // namespace
}  // namespace eddy
