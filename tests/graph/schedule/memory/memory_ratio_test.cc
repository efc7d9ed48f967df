// Claim: arenas of real networks stay within 1.10 of the least memory that any layout needs, under
// every policy, and are a fraction of what the values take side by side.
#include <gtest/gtest.h>

#include "examples/dynamic_models/model.h"
#include "graph/schedule/memory/plan_memory.h"
#include "graph/schedule/plan_graph.h"
#include "ops/schema/standard.h"
#include "tests/graph/convnets/convnets.h"

namespace eddy {
namespace {

constexpr AssignPolicy kPolicies[] = {AssignPolicy::kSerial, AssignPolicy::kRank,
                                      AssignPolicy::kMatching};

class MemoryRatioTest : public testing::Test {
 protected:
  MemoryRatioTest() { EXPECT_TRUE(add_standard_schemas(ops_).is_ok()); }

  Plan proved_plan(const Graph& graph, AssignPolicy policy) {
    Plan plan = plan_graph(graph, {.policy = policy, .is_auto = false});
    const Status status = prove_plan(graph, plan);
    EXPECT_TRUE(status.is_ok()) << status.to_string();
    return plan;
  }
  static void expect_tight(const Plan& plan) {
    for (const MemoryArena& arena : plan.memory.arenas) {
      EXPECT_LE(static_cast<double>(arena.size_bytes),
                1.10 * static_cast<double>(arena.lower_bound_bytes));
      EXPECT_GE(arena.size_bytes, arena.lower_bound_bytes);
    }
  }
  static uint64_t side_by_side_bytes(const Plan& plan) {
    uint64_t bytes = 0;
    for (const ValueMemory& value : plan.memory.values) {
      if (value.place == MemoryPlace::kBlock) bytes += value.size_bytes;
    }
    return bytes;
  }
  void expect_tight_network(const Graph& graph) {
    for (const AssignPolicy policy : kPolicies) {
      SCOPED_TRACE(static_cast<int>(policy));
      const Plan plan = proved_plan(graph, policy);
      ASSERT_EQ(plan.memory.arenas.size(), 1u);
      expect_tight(plan);
      EXPECT_GT(side_by_side_bytes(plan), 2 * plan.memory.arenas[0].size_bytes);
      std::printf("%s: %llu bytes, bound %llu, side by side %llu\n", graph.name().c_str(),
                  static_cast<unsigned long long>(plan.memory.arenas[0].size_bytes),
                  static_cast<unsigned long long>(plan.memory.arenas[0].lower_bound_bytes),
                  static_cast<unsigned long long>(side_by_side_bytes(plan)));
    }
  }

  OpTable ops_;
};

TEST_F(MemoryRatioTest, InceptionV3) {
  const auto graph = build_inception_v3(ops_);
  ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
  expect_tight_network(*graph);
}

TEST_F(MemoryRatioTest, NasnetALarge) {
  const auto graph = build_nasnet_a_large(ops_);
  ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
  expect_tight_network(*graph);
}

// The models with values of fixed shapes, so that there is an arena at all.
TEST_F(MemoryRatioTest, DynamicModels) {
  uint32_t num_models = 0;
  uint32_t num_arenas = 0;
  for (const dynamic::Recipe& recipe : dynamic::all_models(dynamic::Scale::kSmall)) {
    SCOPED_TRACE(recipe.name);
    const auto graph = recipe.make().build(ops_);
    ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
    ++num_models;
    for (const AssignPolicy policy : kPolicies) {
      const Plan plan = proved_plan(*graph, policy);
      expect_tight(plan);
      num_arenas += plan.memory.arenas.empty() ? 0 : 1;
      if (plan.memory.arenas.empty()) std::printf("%s: no arena\n", recipe.name.c_str());
    }
  }
  EXPECT_EQ(num_arenas, num_models * std::size(kPolicies));
}

}  // namespace
}  // namespace eddy
