// Claim: measured costs take the place of estimates, node by node, and decide the order of issue
// where ranks count costs, and whether streams pay where that is left to the planner.
#include <gtest/gtest.h>

#include <algorithm>

#include <functional>

#include "graph/ir/builder.h"
#include "graph/schedule/costs/cost_model.h"
#include "graph/schedule/plan_graph.h"
#include "ops/schema/standard.h"

namespace eddy {
namespace {

class PlanCostsTest : public testing::Test {
 protected:
  PlanCostsTest() { EXPECT_TRUE(add_standard_schemas(ops_).is_ok()); }

  // Neg, Neg, Neg beside Abs, Exp.
  Graph make_graph() {
    GraphBuilder b(ops_);
    const Value x = b.input("x", tensor_type(ElementType::kFloat, {8}));
    Value chain = x;
    for (int i = 0; i < 3; ++i) chain = b.op("Neg", {chain});
    b.output("chain", chain);
    b.output("short", b.op("Exp", {b.op("Abs", {x})}));
    auto graph = b.finish();
    EXPECT_TRUE(graph.is_ok()) << graph.status().to_string();
    return std::move(*graph);
  }
  static CostTable exp_costs(double ns) {
    CostTable table;
    EXPECT_TRUE(table.add({"Exp", "float[8]->float[8]", "cpu", ns, ns, ns, 1}).is_ok());
    EXPECT_TRUE(table.add({"Neg", "float[8]->float[8]", "cuda", 9e9, 9e9, 9e9, 1}).is_ok());
    return table;
  }
  static const std::string& first_op(const Graph& graph, const Plan& plan) {
    const std::vector<Program::Step>& steps = plan.program.blocks[0].steps;
    const auto first =
        std::ranges::find_if(steps, [](const auto& step) { return is_node(step.op); });
    return graph.node(node_of(plan.program, *first)).op->name;
  }

  OpTable ops_;
};

TEST_F(PlanCostsTest, ATableCountsWhereItHasTheNodeAndEstimatesElsewhere) {
  const Graph graph = make_graph();
  const CostTable table = exp_costs(12'345);
  const std::vector<double> estimated = estimate_costs_ns(graph);
  const std::vector<double> measured = estimate_costs_ns(graph, &table);
  ASSERT_EQ(measured.size(), 5u);
  for (uint32_t n = 0; n < 5; ++n) {
    const bool is_exp = graph.node(NodeId(n)).op->name == "Exp";
    EXPECT_EQ(measured[n], is_exp ? 12'345 : estimated[n]) << n;
  }
}

TEST_F(PlanCostsTest, CoverageNamesEachMissingOperatorOnce) {
  const Graph graph = make_graph();
  const CostCoverage coverage = cost_coverage(graph, exp_costs(1));
  EXPECT_EQ(coverage.num_measured, 1u);
  EXPECT_EQ(coverage.num_estimated, 4u);
  EXPECT_EQ(coverage.text(graph),
            "4 of 5 nodes are not in the table, so estimates stand for them: "
            "Neg float[8]->float[8]; Abs float[8]->float[8]");
  CostTable all = exp_costs(1);
  ASSERT_TRUE(all.add({"Neg", "float[8]->float[8]", "cpu", 2, 2, 2, 1}).is_ok());
  ASSERT_TRUE(all.add({"Abs", "float[8]->float[8]", "cpu", 2, 2, 2, 1}).is_ok());
  EXPECT_EQ(cost_coverage(graph, all).text(graph), "");
}

TEST_F(PlanCostsTest, NodesOfChangingShapeAreEstimatedWhateverTheTableSays) {
  GraphBuilder b(ops_);
  b.output("y", b.op("Exp", {b.input("x", tensor_type(ElementType::kFloat, {kUnknownDim}))}));
  const auto graph = b.finish();
  ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
  CostTable table;
  ASSERT_TRUE(table.add({"Exp", "", "cpu", 1e9, 1e9, 1e9, 1}).is_ok());
  EXPECT_LT(estimate_costs_ns(*graph, &table)[0], 1e6);
  EXPECT_NE(cost_coverage(*graph, table).text(*graph).find("Exp of changing shape"),
            std::string::npos);
}

TEST_F(PlanCostsTest, TheDearChainIsIssuedFirstWhereRanksCountCosts) {
  const Graph graph = make_graph();
  const CostTable dear = exp_costs(1e6);
  const CostTable cheap = exp_costs(1e-3);
  PlanOptions options;
  options.is_auto = false;
  EXPECT_EQ(first_op(graph, plan_graph(graph, options)), "Neg");
  options.costs_or_null = &dear;
  EXPECT_EQ(first_op(graph, plan_graph(graph, options)), "Neg") << "ranks still count nodes";
  options.rank_by_costs = true;
  Plan plan = plan_graph(graph, options);
  EXPECT_EQ(first_op(graph, plan), "Abs");
  EXPECT_EQ(plan.regions[0].cost_ranks.size(), 5u);
  EXPECT_TRUE(prove_plan(graph, plan).is_ok());
  options.costs_or_null = &cheap;
  EXPECT_EQ(first_op(graph, plan_graph(graph, options)), "Neg");
}

TEST_F(PlanCostsTest, StreamsPayWhereWhatOverlapsIsMeasuredDear) {
  const Graph graph = make_graph();
  CostTable table = exp_costs(1e6);
  ASSERT_TRUE(table.add({"Neg", "float[8]->float[8]", "cpu", 1e6, 1e6, 1e6, 1}).is_ok());
  EXPECT_EQ(plan_graph(graph, {}).program.blocks[0].streams.size(), 1u);
  EXPECT_EQ(plan_graph(graph, {.costs_or_null = &table}).program.blocks[0].streams.size(), 2u);
}

// What a core's cache holds is moved in a µs or two: to hand it to another core takes longer.
TEST_F(PlanCostsTest, WorkThatStaysInACacheIsNotWorthAStream) {
  const auto num_streams = [&](int64_t rows) {
    GraphBuilder b(ops_);
    const Value x = b.input("x", tensor_type(ElementType::kFloat, {rows, 256}));
    for (const char* name : {"left", "right"}) {
      Value chain = x;
      for (int i = 0; i < 6; ++i) chain = b.op("Mul", {chain, x});
      b.output(name, chain);
    }
    const auto graph = b.finish();
    EXPECT_TRUE(graph.is_ok()) << graph.status().to_string();
    return plan_graph(*graph, {}).program.blocks[0].streams.size();
  };
  EXPECT_EQ(num_streams(64), 1u);
  EXPECT_EQ(num_streams(64 << 10), 2u);
}

// Two that answer later wait side by side.
TEST_F(PlanCostsTest, WhatAnswersLaterIsWorthAStream) {
  for (const bool waits : {false, true}) {
    OpTable ops;
    ASSERT_TRUE(add_standard_schemas(ops).is_ok());
    OpDef def;
    def.name = "Fetch";
    def.domain = "test";
    def.inputs = {{"x"}};
    def.min_outputs = def.max_outputs = 1;
    def.infer = [](InferContext& context) {
      context.set_output(0, context.input(0));
      return Status::ok();
    };
    def.may_wait = waits;
    ASSERT_TRUE(ops.add(std::move(def)).is_ok());
    GraphBuilder b(ops);
    const Value x = b.input("x", tensor_type(ElementType::kFloat, {4}));
    b.output("left", b.op("Fetch", {x}, {}, {.domain = "test"}));
    b.output("right", b.op("Fetch", {x}, {}, {.domain = "test"}));
    const auto graph = b.finish();
    ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
    EXPECT_EQ(plan_graph(*graph, {}).program.blocks[0].streams.size(), waits ? 2u : 1u);
  }
}

TEST_F(PlanCostsTest, LoopsInLoopsCostMuchAndNeverInfinity) {
  GraphBuilder b(ops_);
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {}));
  std::function<Value(Value, int)> nest = [&](Value value, int depth) -> Value {
    if (depth == 0) return b.op("Exp", {value});
    return b.while_loop(
        {.initial = {value}, .trip_limit = b.scalar(int64_t{2})},
        [&](Value, ValueSpan c) {
          return WhileTest{b.scalar(true), {c[0]}};
        },
        [&](Value, ValueSpan f) { return std::vector<Value>{nest(f[0], depth - 1)}; })[0];
  };
  b.output("y", nest(x, 120));
  const auto graph = b.finish();
  ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
  for (const double cost : estimate_costs_ns(*graph)) EXPECT_LT(cost, 1e19);
}

}  // namespace
}  // namespace eddy
