// Claim: a value's memory is released once no node can read it any more, in any order that the plan
// allows, and on one stream at the earliest such moment.
#include "graph/loops/release_plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "graph/base/random.h"
#include "graph/ir/builder.h"
#include "graph/schedule/plan_graph.h"
#include "runtime/api/session.h"

namespace eddy {
namespace {

ReleasePlan releases_of(const Graph& graph, AssignPolicy policy, Plan& plan) {
  plan = plan_graph(graph, {.policy = policy, .is_auto = false});
  EXPECT_TRUE(prove_plan(graph, plan).is_ok());
  return plan_releases(graph, plan);
}

// The node after which the value that `producer` makes is released; "" when it is kept.
std::string released_after(const Graph& graph, const ReleasePlan& releases,
                           const std::string& producer) {
  for (uint32_t n = 0; n < releases.size(); ++n) {
    for (ValueId value : releases[n]) {
      const NodeId made_by = graph.value(value).producer;
      if (!made_by.is_none() && graph.node(made_by).name == producer) {
        return graph.node(NodeId(n)).name;
      }
    }
  }
  return "";
}

class ReleasePlanTest : public testing::Test {
 protected:
  Value changing(GraphBuilder& b) {
    return b.input("x", tensor_type(ElementType::kFloat, {b.symbol("n"), 4}));
  }
  static Value neg(GraphBuilder& b, Value x, std::string name) {
    return b.op("Neg", {x}, {}, {.name = std::move(name)});
  }
  Library library_;
};

TEST_F(ReleasePlanTest, OnOneStreamTheLastReaderReleases) {
  GraphBuilder b(library_.ops());
  const Value a = neg(b, changing(b), "a");
  const Value c = neg(b, a, "c");
  const Value d = b.op("Add", {a, c}, {}, {.name = "d"});
  neg(b, d, "unread");
  b.output("y", neg(b, d, "e"));
  auto graph = b.finish();
  ASSERT_TRUE(graph.is_ok());
  Plan plan;
  const ReleasePlan releases = releases_of(*graph, AssignPolicy::kSerial, plan);
  EXPECT_EQ(released_after(*graph, releases, "a"), "d");
  EXPECT_EQ(released_after(*graph, releases, "c"), "d");
  EXPECT_EQ(released_after(*graph, releases, "unread"), "unread");
  EXPECT_EQ(released_after(*graph, releases, "e"), "") << "results are kept";
}

TEST_F(ReleasePlanTest, FixedValuesStayInTheirPlace) {
  GraphBuilder b(library_.ops());
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {3, 4}));
  b.output("y", neg(b, neg(b, x, "a"), "c"));
  auto graph = b.finish();
  ASSERT_TRUE(graph.is_ok());
  Plan plan;
  for (const auto& values : releases_of(*graph, AssignPolicy::kSerial, plan)) {
    EXPECT_TRUE(values.empty());
  }
}

TEST_F(ReleasePlanTest, AReaderInANestedRegionCountsAsItsControlNode) {
  GraphBuilder b(library_.ops());
  const Value x = changing(b);
  const Value captured = neg(b, x, "captured"), selected = neg(b, x, "selected");
  const auto out = b.if_else(
      b.input("which", tensor_type(ElementType::kBool, {})),
      [&] {
        const Value inner = neg(b, captured, "inner");
        return std::vector<Value>{b.op("Add", {inner, captured}, {}, {.name = "sum"})};
      },
      [&] { return std::vector<Value>{selected}; }, "choice");
  b.output("y", neg(b, out[0], "last"));
  auto graph = b.finish();
  ASSERT_TRUE(graph.is_ok());
  Plan plan;
  const ReleasePlan releases = releases_of(*graph, AssignPolicy::kSerial, plan);
  EXPECT_EQ(released_after(*graph, releases, "captured"), "choice");
  EXPECT_EQ(released_after(*graph, releases, "selected"), "choice") << "shared as a result";
  EXPECT_EQ(released_after(*graph, releases, "inner"), "sum");
  EXPECT_EQ(released_after(*graph, releases, "sum"), "") << "moved into the result";
  EXPECT_EQ(released_after(*graph, releases, "choice"), "last");
}

TEST_F(ReleasePlanTest, WhatALoopForwardsMayGoInTheNextHalfOfTheRound) {
  GraphBuilder b(library_.ops());
  const Value x = changing(b);
  const auto out = b.while_loop(
      {.name = "loop", .initial = {x, x}},
      [&](Value i, std::span<const Value> c) {
        const Value made = neg(b, c[0], "made");
        return WhileTest{b.op("Less", {i, b.scalar<int64_t>(3)}), {made, c[1]}};
      },
      [&](Value, std::span<const Value> f) {
        const Value next = neg(b, f[0], "next");
        return std::vector<Value>{b.op("Add", {next, next}, {}, {.name = "sum"}), f[1]};
      });
  b.output("y", b.op("Add", {out[0], out[1]}, {}, {.name = "last"}));
  auto graph = b.finish();
  ASSERT_TRUE(graph.is_ok());
  Plan plan;
  const ReleasePlan releases = releases_of(*graph, AssignPolicy::kSerial, plan);
  EXPECT_EQ(released_after(*graph, releases, "made"), "next");
  EXPECT_EQ(released_after(*graph, releases, "next"), "sum");
  EXPECT_EQ(released_after(*graph, releases, "sum"), "") << "carried on";
}

// Slow and obvious: which launches surely run before which, by closing the relation over all
// commands.
std::vector<std::vector<bool>> order_of(const Program& program, size_t num_nodes) {
  const std::vector<Program::Step>& steps = program.blocks[0].steps;
  const size_t count = steps.size();
  std::vector<std::vector<bool>> before(count, std::vector<bool>(count, false));
  for (size_t b = 0; b < count; ++b) {
    const Program::Step& later = steps[b];
    for (size_t a = 0; a < b; ++a) {
      const Program::Step& earlier = steps[a];
      const bool is_signal = earlier.op == Program::Op::kRecord && later.op == Program::Op::kWait &&
                             earlier.operand == later.operand;
      if (earlier.stream != later.stream && !is_signal) continue;
      before[a][b] = true;
      for (size_t c = 0; c < a; ++c) {
        if (before[c][a]) before[c][b] = true;
      }
    }
  }
  std::vector<std::vector<bool>> nodes(num_nodes, std::vector<bool>(num_nodes, false));
  for (size_t a = 0; a < count; ++a) {
    for (size_t b = 0; b < count; ++b) {
      if (!is_node(steps[a].op) || !is_node(steps[b].op)) continue;
      nodes[node_of(program, steps[a]).index()][node_of(program, steps[b]).index()] = before[a][b];
    }
  }
  return nodes;
}

TEST_F(ReleasePlanTest, OnSeveralStreamsNoNodeReadsAReleasedValue) {
  size_t num_released = 0, num_values = 0;
  for (uint64_t seed = 0; seed < 60; ++seed) {
    Random random(seed);
    GraphBuilder b(library_.ops());
    std::vector<Value> values = {changing(b)};
    for (uint64_t n = 4 + random.below(40); n > 0; --n) {
      const Value left = values[random.below(values.size())];
      const Value right =
          values[values.size() - 1 - random.below(std::min<size_t>(6, values.size()))];
      values.push_back(b.op("Add", {left, right}));
    }
    b.output("y", values.back());
    auto graph = b.finish();
    ASSERT_TRUE(graph.is_ok());
    for (AssignPolicy policy : {AssignPolicy::kRank, AssignPolicy::kMatching}) {
      Plan plan;
      const ReleasePlan releases = releases_of(*graph, policy, plan);
      const auto before = order_of(plan.program, graph->num_nodes());
      std::vector<int> times(graph->num_values(), 0);
      for (uint32_t at = 0; at < releases.size(); ++at) {
        for (ValueId value : releases[at]) {
          ++times[value.index()];
          for (uint32_t n = 0; n < graph->num_nodes(); ++n) {
            const Node& node = graph->node(NodeId(n));
            const bool reads = std::ranges::find(node.inputs, value) != node.inputs.end();
            EXPECT_TRUE(!reads || n == at || before[n][at])
                << "seed " << seed << ": " << node.name << " may read what "
                << graph->node(NodeId(at)).name << " has released";
          }
        }
      }
      for (int count : times) EXPECT_LE(count, 1) << "seed " << seed;
      num_released += static_cast<size_t>(std::ranges::count(times, 1));
      num_values += graph->num_nodes();
    }
  }
  EXPECT_GT(num_released, num_values / 2) << "most values find a node that releases them";
}

TEST_F(ReleasePlanTest, AChainHoldsNoMoreThanItNeedsAtOnce) {
  constexpr int64_t kRows = 1 << 16;  // 1 MiB a value
  GraphBuilder b(library_.ops());
  Value y = changing(b);
  for (int i = 0; i < 40; ++i) y = neg(b, y, "n" + std::to_string(i));
  b.output("y", y);
  auto graph = b.finish();
  ASSERT_TRUE(graph.is_ok());
  auto session = Session::create(library_, std::move(*graph), {.num_threads = 1});
  ASSERT_TRUE(session.is_ok());
  const std::vector<float> x(kRows * 4, 2.0f);
  for (int i = 0; i < 3; ++i) {
    auto outputs = (*session)->run({{"x", Tensor::of<float>({kRows, 4}, x)}});
    ASSERT_TRUE(outputs.is_ok());
    EXPECT_EQ((*outputs)[0].second.values<float>()[kRows], 2.0f);
    EXPECT_LE((*session)->memory().peak_bytes, size_t{4} << 20);
    EXPECT_LE((*session)->memory().num_system_allocations, 4u);
  }
}

}  // namespace
}  // namespace eddy
