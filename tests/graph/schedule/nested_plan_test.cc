// Claim: plans of nested graphs are proved, in streams, waits and memory; a slow machine that runs
// them in random orders finds nothing; caps hold; and the same graph gives the same plan.
#include <gtest/gtest.h>

#include "graph/proof/nested_proof.h"
#include "graph/schedule/nested_commands.h"
#include "graph/schedule/plan_graph.h"
#include "tests/graph/schedule/nested_graphs.h"
#include "tests/graph/schedule/nested_simulation.h"

namespace eddy {
namespace {

constexpr uint64_t kSeeds = 120;

std::string text(const NestedProof& proof) {
  const auto number = [](uint32_t id) { return std::to_string(id); };
  return proof.is_safe() ? "safe" : proof.violations[0].to_string(number, number);
}

TEST(NestedPlanTest, EveryPlanIsProvedAndHoldsInRandomOrders) {
  uint64_t num_blocks = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Graph graph = nested_graph(seed);
    Plan plan = plan_graph(graph, nested_options(seed));
    const NestedCommands commands = nested_commands(graph, plan);
    ASSERT_EQ(text(prove_nested(commands)), "safe");
    ASSERT_TRUE(prove_plan(graph, plan).is_ok());
    EXPECT_TRUE(plan.is_proved);
    ASSERT_EQ(simulate_often(commands, 12), "");
    for (const MemoryArena& arena : plan.memory.arenas) {
      EXPECT_GE(arena.size_bytes, arena.lower_bound_bytes);
      num_blocks += arena.num_blocks;
    }
  }
  EXPECT_GT(num_blocks, kSeeds) << "the graphs must be worth planning";
}

TEST(NestedPlanTest, TheCapHoldsOverAllRegionsAndStopsNone) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Graph graph = nested_graph(seed);
    PlanOptions options = nested_options(seed);
    options.max_streams = 1 + static_cast<uint32_t>(seed % 4);
    const Plan plan = plan_graph(graph, options);
    EXPECT_LE(plan.num_streams, options.max_streams);
    const NestedCommands commands = nested_commands(graph, plan);
    for (const NestedRegion& region : commands.regions) {
      for (const NestedCommand& command : region.commands) {
        EXPECT_LT(command.stream, options.max_streams);
      }
    }
    ASSERT_EQ(text(prove_nested(commands)), "safe");
    ASSERT_EQ(simulate_often(commands, 4), "") << "nor does the cap stop it";
  }
}

TEST(NestedPlanTest, TheSameGraphGivesTheSamePlan) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Graph graph = nested_graph(seed);
    const Graph again = nested_graph(seed);
    const NestedCommands a = nested_commands(graph, plan_graph(graph, nested_options(seed)));
    const NestedCommands b = nested_commands(again, plan_graph(again, nested_options(seed)));
    ASSERT_EQ(a.regions.size(), b.regions.size());
    for (size_t r = 0; r < a.regions.size(); ++r) {
      EXPECT_EQ(a.regions[r].commands, b.regions[r].commands);
    }
    EXPECT_EQ(a.arena_sizes_bytes, b.arena_sizes_bytes);
    for (size_t name = 0; name < a.memory.size(); ++name) {
      EXPECT_EQ(a.memory[name].offsets_bytes, b.memory[name].offsets_bytes);
    }
  }
}

}  // namespace
}  // namespace eddy
