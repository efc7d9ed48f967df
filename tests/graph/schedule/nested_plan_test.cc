// Claim: plans of nested graphs are proved, in streams, waits and memory; a slow machine that runs
// them in random orders finds nothing; caps hold; and the same graph gives the same plan.
#include <gtest/gtest.h>

#include "graph/proof/program_proof.h"
#include "graph/schedule/plan_graph.h"
#include "tests/graph/schedule/nested_graphs.h"
#include "tests/graph/schedule/nested_simulation.h"

namespace eddy {
namespace {

constexpr uint64_t kSeeds = 120;

std::string text(const ProgramProof& proof) {
  const auto number = [](uint32_t id) { return std::to_string(id); };
  return proof.is_safe() ? "safe" : proof.violations[0].to_string(number, number);
}

TEST(NestedPlanTest, EveryPlanIsProvedAndHoldsInRandomOrders) {
  uint64_t num_blocks = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Graph graph = nested_graph(seed);
    Plan plan = plan_graph(graph, nested_options(seed));
    const Program& commands = plan.program;
    ASSERT_EQ(text(prove_program(commands)), "safe");
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

// As the smallest values of large graphs are.
TEST(NestedPlanTest, BlocksThatArePlacedOneByOneAreProvedToo) {
  uint64_t num_blocks = 0, arena_bytes = 0, block_bytes = 0;
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Graph graph = nested_graph(seed);
    PlanOptions options = nested_options(seed);
    options.memory.max_compared = seed % 4;
    Plan plan = plan_graph(graph, options);
    ASSERT_TRUE(prove_plan(graph, plan).is_ok());
    ASSERT_EQ(simulate_often(plan.program, 12), "");
    for (const MemoryArena& arena : plan.memory.arenas) {
      EXPECT_GE(arena.size_bytes, arena.lower_bound_bytes);
      num_blocks += arena.num_blocks;
      arena_bytes += arena.size_bytes;
    }
    for (const ValueMemory& value : plan.memory.values) {
      if (value.place == MemoryPlace::kBlock) {
        block_bytes += value.offsets_bytes.size() * value.size_bytes;
      }
    }
  }
  EXPECT_GT(num_blocks, kSeeds * 4) << "the graphs must be worth planning";
  EXPECT_LT(arena_bytes, block_bytes) << "blocks must share bytes";
}

TEST(NestedPlanTest, TheCapHoldsOverAllRegionsAndStopsNone) {
  for (uint64_t seed = 0; seed < kSeeds; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Graph graph = nested_graph(seed);
    PlanOptions options = nested_options(seed);
    options.max_streams = 1 + static_cast<uint32_t>(seed % 4);
    const Plan plan = plan_graph(graph, options);
    EXPECT_LE(plan.num_streams, options.max_streams);
    const Program& commands = plan.program;
    for (const Program::Block& region : commands.blocks) {
      for (const Program::Step& command : region.steps) {
        EXPECT_LT(command.stream, options.max_streams);
      }
    }
    ASSERT_EQ(text(prove_program(commands)), "safe");
    ASSERT_EQ(simulate_often(commands, 4), "") << "nor does the cap stop it";
  }
}

TEST(NestedPlanTest, TheSameGraphGivesTheSamePlan) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(testing::Message() << "seed " << seed);
    const Graph graph = nested_graph(seed);
    const Graph again = nested_graph(seed);
    const Program a = plan_graph(graph, nested_options(seed)).program;
    const Program b = plan_graph(again, nested_options(seed)).program;
    ASSERT_EQ(a.blocks.size(), b.blocks.size());
    for (size_t r = 0; r < a.blocks.size(); ++r) {
      EXPECT_EQ(a.blocks[r].steps, b.blocks[r].steps);
    }
    EXPECT_EQ(a.arena_sizes_bytes, b.arena_sizes_bytes);
    for (size_t name = 0; name < a.memory.size(); ++name) {
      EXPECT_EQ(a.memory[name].offsets_bytes, b.memory[name].offsets_bytes);
    }
  }
}

}  // namespace
}  // namespace eddy
