// Claim: every node stands on a device that can run it, every value that is read in another memory
// than its own has a copy there, captured values are copied once, what decides shapes is awaited,
// and no constant is copied; the plan of a placed graph is proved, and one that puts a node on
// another device's stream is not.
#include "graph/compile/place.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "graph/ir/builder.h"
#include "graph/schedule/plan_graph.h"
#include "ops/schema/standard.h"

namespace eddy {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const ValueType kRow = tensor_type(ElementType::kFloat, {64});

class PlaceTest : public ::testing::Test {
 protected:
  PlaceTest() { EXPECT_TRUE(add_standard_schemas(ops_).is_ok()); }

  PlacedGraph place_it(GraphBuilder& builder) {
    Result<Graph> graph = builder.finish();
    EXPECT_TRUE(graph.is_ok()) << graph.status().to_string();
    PlaceOptions options;
    options.choice.can_run = [this](const Graph& g, NodeId node) {
      return on_cpu_.contains(g.node(node).op->name) ? unsupported("the test has no kernel of it")
                                                     : Status::ok();
    };
    Result<PlacedGraph> placed = place(std::move(*graph), ops_, options);
    EXPECT_TRUE(placed.is_ok()) << placed.status().to_string();
    return std::move(*placed);
  }

  // "region: operator device" of every exec node, in order.
  static std::vector<std::string> nodes(const Graph& graph) {
    std::vector<std::string> lines;
    for (uint32_t r = 0; r < graph.num_regions(); ++r) {
      for (const NodeId id : graph.region(RegionId(r)).nodes) {
        const Node& node = graph.node(id);
        if (node.kind != NodeKind::kExec) continue;
        const std::string& region = graph.region(RegionId(r)).name;
        lines.push_back((region.empty() ? "" : region + ": ") + node.op->name + " " + node.device);
      }
    }
    return lines;
  }

  static Plan plan_of(const PlacedGraph& placed, AssignPolicy policy = AssignPolicy::kRank) {
    PlanOptions options;
    options.policy = policy;
    options.is_auto = false;
    options.devices = {"cpu", "cuda"};
    options.value_devices = placed.value_devices;
    return plan_graph(placed.graph, options);
  }

  OpTable ops_;
  std::set<std::string> on_cpu_;
};

TEST_F(PlaceTest, AChainOfDeviceNodesHasOneCopyInAndOneOut) {
  GraphBuilder b(ops_);
  const Value x = b.input("x", kRow);
  b.output("y", b.op("Exp", {b.op("Mul", {x, b.tensor<float>({1}, {2.0f})})}));
  const PlacedGraph placed = place_it(b);
  EXPECT_THAT(nodes(placed.graph),
              ElementsAre("ToDevice cuda", "Mul cuda", "Exp cuda", "ToHost cuda"));
  EXPECT_THAT(placed.report.text(), HasSubstr("2 nodes on cuda, 0 on the CPU, 2 copies"));
}

TEST_F(PlaceTest, ANodeWithoutKernelRunsOnTheCpuBetweenTwoCopies) {
  on_cpu_ = {"Exp"};
  GraphBuilder b(ops_);
  const Value x = b.input("x", kRow);
  const Value e = b.op("Exp", {b.op("Neg", {x})}, {}, {.name = "growth"});
  b.output("y", b.op("Neg", {e}));
  const PlacedGraph placed = place_it(b);
  EXPECT_THAT(nodes(placed.graph),
              ElementsAre("ToDevice cuda", "Neg cuda", "ToHost cuda", "Exp cpu", "ToDevice cuda",
                          "Neg cuda", "ToHost cuda"));
  EXPECT_THAT(placed.report.text(), HasSubstr("on the CPU: growth: the test has no kernel of it"));
}

TEST_F(PlaceTest, ShapesAndCountersStayOnTheHost) {
  GraphBuilder b(ops_);
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {b.symbol("n"), 4}));
  const Value n = b.op("Gather", {b.op("Shape", {x}), b.scalar(int64_t{0})});
  const Value rows = b.op("Mul", {n, b.scalar(int64_t{2})});
  b.output("y", b.op("Neg", {x}));
  b.output("rows", rows);
  EXPECT_THAT(nodes(place_it(b).graph), ElementsAre("ToDevice cuda", "Shape cpu", "Gather cpu",
                                                    "Mul cpu", "Neg cuda", "ToHost cuda"));
}

TEST_F(PlaceTest, ADeviceMadeShapeIsCopiedAndAwaited) {
  GraphBuilder b(ops_);
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {1}));
  const Value shape = b.cast(b.op("Mul", {x, x}), ElementType::kInt64);
  b.output("y", b.op("Reshape", {b.op("Neg", {x}), shape}));
  EXPECT_THAT(nodes(place_it(b).graph),
              ElementsAre("ToDevice cuda", "Mul cuda", "Cast cuda", "ToHost cuda", "Await cpu",
                          "Neg cuda", "Reshape cuda", "ToHost cuda"));
}

// x := x * f while sum(x) < limit; f is captured.
void build_loop(GraphBuilder& b) {
  const Value x = b.input("x", kRow);
  const Value factor = b.input("f", kRow);
  const Value limit = b.input("limit", tensor_type(ElementType::kFloat, {1}));
  const auto results = b.while_loop(
      {.name = "grow", .initial = {x}},
      [&](Value, ValueSpan carried) {
        return WhileTest{b.op("Less", {b.op("ReduceSum", {carried[0]}), limit}), {carried[0]}};
      },
      [&](Value, ValueSpan carried) {
        return std::vector<Value>{b.op("Mul", {carried[0], factor})};
      });
  b.output("y", results[0]);
}

TEST_F(PlaceTest, ALoopCopiesItsPredicateAndNothingElse) {
  GraphBuilder b(ops_);
  build_loop(b);
  const PlacedGraph placed = place_it(b);
  EXPECT_THAT(nodes(placed.graph),
              ElementsAre("ToDevice cuda", "ToDevice cuda", "ToDevice cuda", "ToHost cuda",
                          "before: ReduceSum cuda", "before: Less cuda", "before: ToHost cuda",
                          "after: Mul cuda"));
}

TEST_F(PlaceTest, AHostNodeInALoopGetsItsCopiesInsideIt) {
  on_cpu_ = {"Mul"};
  GraphBuilder b(ops_);
  build_loop(b);
  const PlacedGraph placed = place_it(b);
  // The factor is the host's and stays there; the carried value crosses.
  EXPECT_THAT(nodes(placed.graph),
              ElementsAre("ToDevice cuda", "ToDevice cuda", "before: ToHost cuda",
                          "before: ReduceSum cuda", "before: Less cuda", "before: ToHost cuda",
                          "after: Mul cpu", "after: ToDevice cuda"));
}

// y := selector ? -x : exp(x), which the caller reads.
void build_branch(GraphBuilder& b) {
  const Value x = b.input("x", kRow);
  const std::vector<CaseBody> bodies = {[&] { return std::vector<Value>{b.op("Exp", {x})}; },
                                        [&] { return std::vector<Value>{b.op("Neg", {x})}; }};
  const Value total = b.op("ReduceSum", {x}, {{"keepdims", int64_t{0}}});
  b.output("y", b.case_of({.name = "pick", .selector = b.op("Less", {total, b.scalar(1.0f)})},
                          bodies)[0]);
}

TEST_F(PlaceTest, WhatAllBranchesMakeOnTheDeviceIsCopiedBehindThem) {
  GraphBuilder b(ops_);
  build_branch(b);
  EXPECT_THAT(nodes(place_it(b).graph),
              ElementsAre("ToDevice cuda", "ReduceSum cuda", "Less cuda", "ToHost cuda",
                          "ToHost cuda", "else: Exp cuda", "then: Neg cuda"));
}

TEST_F(PlaceTest, WhereABranchMakesItOnTheHostTheOthersCopyItThere) {
  on_cpu_ = {"Exp"};
  GraphBuilder b(ops_);
  build_branch(b);
  EXPECT_THAT(nodes(place_it(b).graph),
              ElementsAre("ToDevice cuda", "ReduceSum cuda", "Less cuda", "ToHost cuda",
                          "else: Exp cpu", "then: Neg cuda", "then: ToHost cuda"));
}

TEST_F(PlaceTest, PlansOfPlacedGraphsAreProvedAndNameEachStreamsDevice) {
  for (const AssignPolicy policy :
       {AssignPolicy::kRank, AssignPolicy::kMatching, AssignPolicy::kSerial}) {
    on_cpu_ = {"Mul"};
    GraphBuilder b(ops_);
    build_loop(b);
    const PlacedGraph placed = place_it(b);
    Plan plan = plan_of(placed, policy);
    const Status status = prove_plan(placed.graph, plan);
    EXPECT_TRUE(status.is_ok()) << status.to_string();
    ASSERT_EQ(plan.stream_devices.size(), plan.num_streams);
    EXPECT_EQ(plan.stream_devices[0], 1u) << "the root's own stream is the GPU's";
    EXPECT_EQ(std::count(plan.stream_devices.begin(), plan.stream_devices.end(), 0u), 1);
    if (policy == AssignPolicy::kSerial) {
      EXPECT_EQ(plan.num_streams, 2u);
    }
  }
}

TEST_F(PlaceTest, AnArenaHoldsTheValuesOfOneDevice) {
  on_cpu_ = {"Exp", "Sqrt"};
  GraphBuilder b(ops_);
  const Value x = b.input("x", kRow);
  const Value host = b.op("Sqrt", {b.op("Exp", {x})});
  b.output("y", b.op("Neg", {b.op("Neg", {host})}));
  const PlacedGraph placed = place_it(b);
  const Plan plan = plan_of(placed);
  ASSERT_EQ(plan.memory.arenas.size(), 2u);
  for (uint32_t v = 0; v < plan.memory.values.size(); ++v) {
    const ValueMemory* block = plan.memory.block_or_null(ValueId(v));
    if (block == nullptr) continue;
    EXPECT_EQ(plan.memory.arenas[block->arena].device, plan.devices[plan.value_devices[v]]);
  }
}

TEST_F(PlaceTest, ANodeOnAnotherDevicesStreamIsNoProof) {
  on_cpu_ = {"Exp"};
  GraphBuilder b(ops_);
  const Value x = b.input("x", kRow);
  b.output("y", b.op("Exp", {b.op("Neg", {x})}));
  const PlacedGraph placed = place_it(b);
  Plan plan = plan_of(placed);
  ASSERT_TRUE(prove_plan(placed.graph, plan).is_ok());
  for (Program::Step& step : plan.program.blocks[0].steps) {
    if (step.op == Program::Op::kLaunch) step.stream = 0;
  }
  const Status status = prove_plan(placed.graph, plan);
  ASSERT_FALSE(status.is_ok());
  EXPECT_THAT(status.message(), HasSubstr("is for cpu but stands on stream 0"));
  EXPECT_FALSE(plan.is_proved);
}

TEST_F(PlaceTest, ALostWaitBetweenDevicesIsNoProof) {
  on_cpu_ = {"Exp"};
  GraphBuilder b(ops_);
  const Value x = b.input("x", kRow);
  b.output("y", b.op("Neg", {b.op("Exp", {b.op("Neg", {x})})}));
  const PlacedGraph placed = place_it(b);
  size_t num_caught = 0;
  size_t num_waits = 0;
  for (size_t lost = 0;; ++lost) {
    Plan plan = plan_of(placed);
    auto& commands = plan.program.blocks[0].steps;
    size_t seen = 0;
    const auto wait = std::find_if(commands.begin(), commands.end(), [&](const auto& command) {
      return command.op == Program::Op::kWait && seen++ == lost;
    });
    if (wait == commands.end()) break;
    commands.erase(wait);
    ++num_waits;
    num_caught += prove_plan(placed.graph, plan).is_ok() ? 0 : 1;
  }
  EXPECT_GE(num_waits, 2u);
  EXPECT_EQ(num_caught, num_waits);
}

}  // namespace
}  // namespace eddy
