// A prediction of a plan of one stream is the sum of its steps, however loops and branches nest;
// two streams never beat the longest chain; and --assign auto takes the plan that is predicted to
// be the fastest, reports which and why, and falls back where it cannot simulate.
#include "graph/compile/choose_plan.h"

#include <cmath>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "graph/compile/plan_timeline.h"
#include "graph/compile/predict_plan.h"
#include "graph/ir/builder.h"
#include "graph/schedule/costs/cost_model.h"
#include "ops/schema/standard.h"
#include "tests/graph/schedule/nested_graphs.h"

namespace eddy {
namespace {

// Outlives the graphs made with it.
const OpTable& standard_ops() {
  static const OpTable* const kOps = [] {
    auto* table = new OpTable;
    EXPECT_TRUE(add_standard_schemas(*table).is_ok());
    return table;
  }();
  return *kOps;
}

// Steps, and what a loop's or branch's regions take, by its decision.
double sum_of(const Graph& graph, RegionId region, const NodeWork& work) {
  double sum = 0;
  for (const NodeId id : graph.region(region).nodes) {
    const Node& node = graph.node(id);
    const ControlWork& control = work.controls[id.index()];
    if (node.kind == NodeKind::kExec) {
      sum += work.nodes[id.index()].solo_ns;
    } else if (node.kind == NodeKind::kWhile) {
      const auto trips = static_cast<double>(control.decision.trace[0]);
      sum += control.enter.solo_ns + control.leave.solo_ns +
             (trips + 1) * (sum_of(graph, node.regions[0], work) + control.test.solo_ns) +
             trips * (sum_of(graph, node.regions[1], work) + control.advance.solo_ns);
    } else {
      sum += control.select.solo_ns + control.finish.solo_ns;
      const auto taken = static_cast<size_t>(control.decision.trace[0]);
      if (taken < node.regions.size()) sum += sum_of(graph, node.regions[taken], work);
    }
  }
  return sum;
}

// Every decision the same each time, so that sums are simple.
NodeWork steady_work(const Graph& graph) {
  NodeWork work = measured_work(graph, nullptr);
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    Decision& decision = work.controls[n].decision;
    if (!decision.trace.empty()) decision.trace = {static_cast<int64_t>(n % 3)};
  }
  return work;
}

FluidMachine free_machine(double units) {
  FluidMachine machine;
  machine.num_units = units;
  return machine;
}

TEST(PredictPlan, OneStreamTakesTheSumOfItsSteps) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const Graph graph = nested_graph(seed, {.max_depth = 4});
    PlanOptions serial;
    serial.policy = AssignPolicy::kSerial;
    const Plan plan = plan_graph(graph, serial);
    const NodeWork work = steady_work(graph);
    auto timeline = predict_plan(graph, plan, work, free_machine(1));
    ASSERT_TRUE(timeline.is_ok()) << "seed " << seed << ": " << timeline.status().to_string();
    const double sum = sum_of(graph, Graph::kRoot, work);
    EXPECT_NEAR(timeline->makespan_ns, sum, 1e-9 * sum) << "seed " << seed;
  }
}

TEST(PredictPlan, StreamsWithoutOverheadAreNoSlowerThanOneAndDoTheSameWork) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    const Graph graph = nested_graph(seed, {.max_depth = 4});
    const NodeWork work = steady_work(graph);
    PlanOptions serial;
    serial.policy = AssignPolicy::kSerial;
    const auto one = predict_plan(graph, plan_graph(graph, serial), work, free_machine(1));
    ASSERT_TRUE(one.is_ok());
    for (const AssignPolicy policy : {AssignPolicy::kRank, AssignPolicy::kMatching}) {
      PlanOptions options;
      options.policy = policy;
      options.is_auto = false;
      const auto many = predict_plan(graph, plan_graph(graph, options), work, free_machine(1e6));
      ASSERT_TRUE(many.is_ok()) << "seed " << seed << ": " << many.status().to_string();
      EXPECT_LE(many->makespan_ns, one->makespan_ns * (1 + 1e-9)) << "seed " << seed;
      EXPECT_NEAR(many->unit_ns, one->unit_ns, 1e-9 * one->unit_ns) << "seed " << seed;
    }
  }
}

// `width` chains of three products side by side, joined by a sum.
Graph chains(const OpTable& ops, int width) {
  GraphBuilder b(ops);
  std::vector<Value> ends;
  const ValueType type = tensor_type(ElementType::kFloat, {64, 64});
  for (int i = 0; i < width; ++i) {
    Value x = b.input(fmt::format("x{}", i), type);
    for (int k = 0; k < 3; ++k) x = b.op("MatMul", {x, x});
    ends.push_back(x);
  }
  Value sum = ends[0];
  for (int i = 1; i < width; ++i) sum = b.op("Add", {sum, ends[static_cast<size_t>(i)]});
  b.output("y", sum);
  auto graph = b.finish();
  EXPECT_TRUE(graph.is_ok()) << graph.status().to_string();
  return std::move(*graph);
}

// `speed_up`: of products with four threads.
CostTable table_of(const Graph& graph, double product_ns, double speed_up = 1) {
  CostTable table;
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    const Node& node = graph.node(NodeId(n));
    const std::string key = cost_key(graph, node);
    if (table.find_or_null(node.op->name, key, "cpu") != nullptr) continue;
    const double ns = node.op->name == "MatMul" ? product_ns : 100;
    MeasuredCost cost{node.op->name, key, "cpu", ns, ns, ns, 1};
    if (speed_up > 1 && node.op->name == "MatMul") {
      cost.threads = 4;
      cost.all_ns = ns / speed_up;
    }
    EXPECT_TRUE(table.add(std::move(cost)).is_ok());
  }
  return table;
}

Plan choose(const Graph& graph, const CostTable& table, uint32_t max_streams = 0,
            ChooseOptions options = {}) {
  options.planning.costs_or_null = &table;
  options.planning.max_streams = max_streams;
  return choose_plan(graph, cpu_machine(4), options);
}

bool mentions(const Plan& plan, const std::string& words) {
  return plan.notices.size() == 1 && plan.notices[0].find(words) != std::string::npos;
}

TEST(ChoosePlan, MuchWorkSideBySideGoesToAsManyStreamsAsPay) {
  const Graph graph = chains(standard_ops(), 4);
  const CostTable table = table_of(graph, 1e6);
  const Plan plan = choose(graph, table);
  EXPECT_EQ(plan.num_streams, 4u);
  EXPECT_TRUE(mentions(plan, "assign auto: ")) << plan.notices[0];
  EXPECT_TRUE(mentions(plan, "on 4 streams")) << plan.notices[0];
  EXPECT_TRUE(mentions(plan, "against serial 12 ms")) << plan.notices[0];
  EXPECT_FALSE(plan.memory.values.empty());
  EXPECT_EQ(choose(graph, table, 2).num_streams, 2u);
}

// Four chains of three products on four workers: side by side 3 ms; one after the other with tiles
// 12 ms by the speed-up.
TEST(ChoosePlan, OperatorsThatTakeAllWorkersBySplittingStayOnOneStream) {
  const Graph graph = chains(standard_ops(), 4);
  const CostTable all = table_of(graph, 1e6, 4);
  const Plan tiles = choose(graph, all);
  EXPECT_EQ(tiles.num_streams, 1u) << tiles.notices[0];
  EXPECT_TRUE(mentions(tiles, "assign auto: serial 3")) << tiles.notices[0];
  const CostTable half = table_of(graph, 1e6, 2);
  const Plan streams = choose(graph, half);
  EXPECT_GT(streams.num_streams, 1u) << streams.notices[0];
  EXPECT_TRUE(mentions(streams, "serial 6")) << streams.notices[0];
}

// One chain has no other way to a second worker.
TEST(ChoosePlan, AChainOfOperatorsThatSplitIsPredictedToBeFaster) {
  const Graph graph = chains(standard_ops(), 1);
  const NodeWork work = work_on(graph, cpu_machine(4), nullptr);
  const CostTable table = table_of(graph, 1e6, 3);
  const NodeWork split = work_on(graph, cpu_machine(2), &table);
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    if (graph.node(NodeId(n)).op->name != "MatMul") continue;
    EXPECT_EQ(work.nodes[n].units, 1);
    EXPECT_EQ(split.nodes[n].units, 2) << "of two workers";
    EXPECT_EQ(split.nodes[n].solo_ns, 5e5);
  }
}

TEST(ChoosePlan, LittleWorkStaysOnOneStream) {
  const Graph graph = chains(standard_ops(), 4);
  const CostTable table = table_of(graph, 500);
  const Plan plan = choose(graph, table);
  EXPECT_EQ(plan.num_streams, 1u);
  EXPECT_EQ(plan.assignment, "serial");
  EXPECT_TRUE(mentions(plan, "assign auto: serial ")) << plan.notices[0];
  EXPECT_TRUE(mentions(plan, "rank on 4 streams")) << plan.notices[0];
}

TEST(ChoosePlan, ACapOfOneLeavesNothingToCompare) {
  const Graph graph = chains(standard_ops(), 4);
  const CostTable table = table_of(graph, 1e6);
  const Plan plan = choose(graph, table, 1);
  EXPECT_EQ(plan.num_streams, 1u);
  EXPECT_TRUE(mentions(plan, "nothing that would use a second stream")) << plan.notices[0];
}

TEST(ChoosePlan, WhatIsTooLargeToSimulateIsPlannedByTheRuleAndSaysSo) {
  const Graph graph = chains(standard_ops(), 4);
  const CostTable table = table_of(graph, 1e6);
  EXPECT_TRUE(mentions(choose(graph, table, 0, {.planning = {}, .max_nodes = 3}),
                       "not simulated, because 15 nodes are more than the 3"));
  EXPECT_TRUE(mentions(choose(graph, table, 0, {.planning = {}, .max_steps = 3}),
                       "not simulated, because the simulation takes more than 3 steps"));
}

TEST(ChoosePlan, TheSameInputGivesTheSamePlan) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    const Graph graph = nested_graph(seed, {.max_depth = 3});
    const Plan a = choose(graph, {});
    const Plan b = choose(graph, {});
    EXPECT_EQ(a.notices, b.notices);
    EXPECT_EQ(a.num_streams, b.num_streams);
    Plan proved = choose(graph, {});
    EXPECT_TRUE(prove_plan(graph, proved).is_ok()) << "seed " << seed;
  }
}

TEST(NodeWork, DecisionsComeFromTheTableThenFromConstantLimits) {
  const OpTable& ops = standard_ops();
  GraphBuilder b(ops);
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {}));
  const Value yes = b.scalar(true);
  const auto results = b.while_loop(
      {.name = "loop", .initial = {x}, .trip_limit = b.scalar(int64_t{7})},
      [&](Value, std::span<const Value> v) {
        return WhileTest{yes, {v[0]}};
      },
      [&](Value, std::span<const Value> v) -> std::vector<Value> { return {b.op("Neg", {v[0]})}; });
  b.output("y", results[0]);
  auto graph = b.finish();
  ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
  const auto trips_of = [&](const CostTable* table) {
    const NodeWork work = measured_work(*graph, table);
    for (const ControlWork& control : work.controls) {
      if (!control.decision.trace.empty()) return control.decision.trace;
    }
    return std::vector<int64_t>();
  };
  EXPECT_EQ(trips_of(nullptr), std::vector<int64_t>({7}));
  CostTable table;
  table.decisions["loop"] = {3, 5};
  EXPECT_EQ(trips_of(&table), std::vector<int64_t>({3, 5}));
  auto again = parse_cost_table(to_json(table));
  ASSERT_TRUE(again.is_ok()) << again.status().to_string();
  EXPECT_EQ(again->decisions, table.decisions);
  EXPECT_EQ(parse_cost_table(R"({"costs":[],"decisions":{"a/b":[1,"x"]}})").status().message(),
            R"("decisions": "a/b" must be a list of integers)");
}

TEST(PlanTimeline, DrawsEachStreamAndNamesItsNodes) {
  const Graph graph = chains(standard_ops(), 2);
  const CostTable table = table_of(graph, 1e6);
  const Plan plan = choose(graph, table, 2);
  FluidOptions options;
  options.wants_spans = true;
  const auto timeline =
      predict_plan(graph, plan, measured_work(graph, &table), cpu_machine(2), options);
  ASSERT_TRUE(timeline.is_ok());
  const std::string svg = plan_timeline_svg(graph, plan, *timeline, "two chains");
  EXPECT_NE(svg.find("stream 0"), std::string::npos);
  EXPECT_NE(svg.find("stream 1"), std::string::npos);
  EXPECT_NE(svg.find(graph.node(NodeId(0)).name), std::string::npos);
  EXPECT_EQ(svg, plan_timeline_svg(graph, plan, *timeline, "two chains"));
  size_t num_waits = 0;
  const Program::Block& root = plan.program.blocks[0];
  for (const Program::Step& step : root.steps) {
    const bool is_frame = step.operand >= first_frame_event(root);
    num_waits += step.op == Program::Op::kWait && !is_frame ? 1 : 0;
  }
  size_t num_arrows = 0;
  for (size_t at = 0; (at = svg.find("<title>e", at)) != std::string::npos; ++at) ++num_arrows;
  EXPECT_GT(num_waits, 0u);
  EXPECT_EQ(num_arrows, num_waits) << "each node runs once, so each wait is drawn once";
}

}  // namespace
}  // namespace eddy
