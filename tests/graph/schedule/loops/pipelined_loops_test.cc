// Claim: where iterations overlap, each wait that orders them is needed: without any one of them
// the proof finds a counter-example. Loops that hold pipelined loops are open, too. A slow machine
// with iterations that overlap as the plan allows finds every value where and as it was made.
#include "graph/schedule/loops/pipelined_loops.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>

#include "graph/program/step_nodes.h"
#include "graph/proof/program_proof.h"
#include "graph/proof/reaching_writes.h"
#include "graph/schedule/plan_graph.h"
#include "tests/graph/schedule/nested_graphs.h"
#include "tests/graph/schedule/nested_simulation.h"

namespace eddy {
namespace {

NestedGraphOptions graphs_on(uint32_t num_devices) {
  return {.max_depth = 3, .max_nodes = 60, .num_devices = num_devices};
}

PlanOptions options_of(uint64_t seed) {
  PlanOptions options;
  options.is_auto = false;
  options.policy = seed % 2 == 0 ? AssignPolicy::kRank : AssignPolicy::kMatching;
  options.max_streams = seed % 5 == 0 ? 2 + seed % 4 : 0;
  return options;
}

uint32_t count_pipelined(const Plan& plan) {
  uint32_t count = 0;
  for (const Program::Loop& loop : plan.program.loops) count += loop.is_pipelined ? 1 : 0;
  return count;
}

// How many pipelined loops stand in one another, at most.
uint32_t open_depth(const Graph& graph, const Plan& plan) {
  uint32_t deepest = 0;
  for (uint32_t r = 0; r < graph.num_regions(); ++r) {
    uint32_t depth = 0;
    RegionId at(r);
    for (;;) {
      depth += is_pipelined(plan.program, plan.program.blocks[at.index()]) ? 1 : 0;
      const NodeId owner = graph.region(at).owner;
      if (owner.is_none()) break;
      at = graph.node(owner).region;
    }
    deepest = std::max(deepest, depth);
  }
  return deepest;
}

struct Sweep {
  uint32_t num_plans = 0, num_pipelined = 0, num_nested = 0;
  uint32_t num_in = 0, num_at_end = 0, num_previous = 0;  // waits taken away
};

// Takes each record and wait of the regions of pipelined loops away in turn.
void expect_all_needed(const Plan& plan, Sweep& sweep) {
  Program nested = plan.program;
  const ReachingWrites contents = find_reaching_writes(nested);
  ASSERT_TRUE(prove_program(nested, contents).is_safe());
  for (size_t r = 0; r < nested.blocks.size(); ++r) {
    if (!is_pipelined(nested, nested.blocks[r])) continue;
    ++sweep.num_pipelined;
    const std::vector<uint32_t> beside = find_step_nodes(nested.blocks[r]);
    std::vector<Program::Step>& commands = nested.blocks[r].steps;
    for (size_t c = 0; c < commands.size(); ++c) {
      const Program::Step dropped = commands[c];
      const bool is_previous = dropped.op == Program::Op::kWaitPrevious;
      if (!is_sync(dropped.op)) continue;
      commands.erase(commands.begin() + static_cast<std::ptrdiff_t>(c));
      EXPECT_FALSE(prove_program(nested, contents, 1).is_safe())
          << "region " << r << " without command " << c << ", event " << dropped.operand;
      commands.insert(commands.begin() + static_cast<std::ptrdiff_t>(c), dropped);
      const bool is_at_end = dropped.op == Program::Op::kWait && beside[c] == Program::kNone;
      ++(is_previous ? sweep.num_previous : is_at_end ? sweep.num_at_end : sweep.num_in);
    }
  }
}

void sweep_plans(uint32_t num_devices, uint32_t num_plans, Sweep& sweep) {
  uint64_t seed = 0;
  for (; sweep.num_plans < num_plans && !testing::Test::HasFailure(); ++seed) {
    const Graph graph = nested_graph(seed, graphs_on(num_devices));
    PlanOptions options = options_of(seed);
    if (num_devices > 1) {
      options.devices = nested_devices(num_devices);
      options.value_devices = nested_value_devices(graph, options.devices);
    }
    Plan plan = plan_graph(graph, options);
    if (count_pipelined(plan) == 0) continue;
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    ++sweep.num_plans;
    sweep.num_nested += open_depth(graph, plan) > 1;
    ASSERT_TRUE(prove_plan(graph, plan).is_ok());
    expect_all_needed(plan, sweep);
  }
  std::cout << "seeds 0 to " << seed - 1 << ", devices: " << num_devices << ": " << sweep.num_plans
            << " plans with " << sweep.num_pipelined << " pipelined loops, " << sweep.num_nested
            << " of them in one another; taken away: " << sweep.num_in
            << " records and waits inside, " << sweep.num_at_end << " waits at ends, "
            << sweep.num_previous << " in the next iteration\n";
}

TEST(PipelinedLoopsTest, EachRecordAndWaitOfAnOpenLoopIsNeeded) {
  Sweep sweep;
  sweep_plans(1, 700, sweep);
  EXPECT_GT(sweep.num_in, 2000u);
  EXPECT_GT(sweep.num_at_end, 250u);
  EXPECT_GT(sweep.num_previous, 100u);
  EXPECT_GT(sweep.num_nested, 10u);
}

TEST(PipelinedLoopsTest, EachIsNeededWhereALoopIsOnTwoDevicesToo) {
  Sweep sweep;
  sweep_plans(2, 300, sweep);
  EXPECT_GT(sweep.num_in, 1000u);
  EXPECT_GT(sweep.num_at_end, 100u);
  EXPECT_GT(sweep.num_previous, 40u);
}

// A loop with a tail of `num_tail` nodes in place beside as many carried ones.
Graph long_tail(uint32_t num_tail) {
  GraphBuilder b(nested_ops(), "long");
  b.set_opset("nested", 1);
  const auto node = [&](const char* op, std::vector<Value> inputs, Attributes attributes = {}) {
    return b.op(op, inputs, std::move(attributes), {.domain = "nested"});
  };
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {8}));
  const Value start = node("Make", {x}, {{"size", int64_t{8}}});
  const auto outputs = b.while_loop(
      {.initial = {start}, .num_scan_outputs = 1},
      [&](Value, ValueSpan v) {
        return WhileTest{node("Test", {v[0]}), {v[0]}};
      },
      [&](Value, ValueSpan v) {
        Value next = node("Make", {v[0]}, {{"size", int64_t{8}}});
        Value row = node("Make", {x}, {{"size", int64_t{8}}});
        for (uint32_t i = 0; i < num_tail; ++i) {
          next = node("Step", {next, next});
          row = node("Step", {row, row});
        }
        return std::vector<Value>{next, row};
      });
  b.output("rows", outputs[1]);
  return std::move(b.finish().value());
}

// Where looking at all pairs would take too long, the loop stays closed.
TEST(PipelinedLoopsTest, ALoopWithTooManyPairsStaysClosed) {
  for (const auto& [num_tail, num_pipelined] : {std::pair{100u, 1u}, {1'100u, 0u}}) {
    const Graph graph = long_tail(num_tail);
    Plan plan = plan_graph(graph, {.is_auto = false});
    EXPECT_EQ(count_pipelined(plan), num_pipelined) << num_tail;
    EXPECT_TRUE(prove_plan(graph, plan).is_ok());
  }
}

TEST(PipelinedLoopsTest, PipelinedLoopsStandInOneAnotherAtMostThreeDeep) {
  uint32_t deepest = 0;
  for (uint64_t seed = 0; seed < 1'000; ++seed) {
    const Graph graph = nested_graph(seed, {.max_depth = 5, .max_nodes = 150});
    deepest = std::max(deepest, open_depth(graph, plan_graph(graph, options_of(seed))));
  }
  EXPECT_EQ(deepest, 3u);
}

// Also removes a wait of a pipelined loop where there is one, to check that the machine detects it.
TEST(PipelinedLoopsTest, MemoryHoldsInRandomOrdersInWhichIterationsOverlap) {
  uint32_t num_plans = 0, num_spoilt = 0, num_noticed = 0;
  uint64_t num_early = 0, seed = 0;
  for (; num_plans < 1000 && !HasFailure(); ++seed) {
    const Graph graph = nested_graph(seed, {.max_depth = 5, .max_nodes = 60});
    const Plan plan = plan_graph(graph, options_of(seed));
    if (count_pipelined(plan) == 0) continue;
    ++num_plans;
    Program commands = plan.program;
    EXPECT_EQ(simulate_often(commands, 8, &num_early), "") << "seed " << seed;
    for (size_t r = 0; r < plan.regions.size() && seed % 4 == 0; ++r) {
      if (!is_pipelined(commands, commands.blocks[r])) continue;
      std::vector<Program::Step>& list = commands.blocks[r].steps;
      const auto waits = std::ranges::find_if(list, [&](const Program::Step& command) {
        return command.op == Program::Op::kWaitPrevious ||
               (command.op == Program::Op::kWait && command.stream == list[0].stream);
      });
      if (waits == list.end()) continue;
      list.erase(waits);
      ++num_spoilt;
      num_noticed += simulate_often(commands, 60).empty() ? 0 : 1;
      break;
    }
  }
  std::cout << "seeds 0 to " << seed - 1 << ": " << num_plans << " plans in 8 orders each, "
            << num_early << " commands began beside an earlier iteration's tail; of " << num_spoilt
            << " plans without one wait " << num_noticed << " went wrong\n";
  EXPECT_GT(num_early, 500u);
  EXPECT_GT(num_noticed, num_spoilt / 4);
}

}  // namespace
}  // namespace eddy
