// Claim: the same seed makes the same graph; every seed's recipe builds; over some thousand seeds
// everything that the generator promises occurs.
#include "tools/check/generator.h"

#include <gtest/gtest.h>

#include <set>

#include "graph/ir/print.h"
#include "tools/check/mixing_ops.h"
#include "tools/check/oracle.h"

namespace eddy::check {
namespace {

class GeneratorTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(add_mixing_ops(library_).is_ok()); }
  Library library_;
};

// What occurs in the blocks of a recipe.
struct Census {
  int max_depth = 0;
  int loops_in_one_block = 0;
  int empty_blocks = 0;
  int scans = 0;
  int early_exits = 0;
  int limits = 0;
  int swaps = 0;  // a body whose results are its parameters in another order
  int invariants = 0;
  int captures_from_afar = 0;  // read three blocks further in than made
  std::set<Form> forms;

  void count(const Block& block, int depth, std::vector<int>& made_at) {
    max_depth = std::max(max_depth, depth);
    int loops = 0;
    for (Var var : block.parameters) made_at[var] = depth;
    for (const Step& step : block.steps) {
      forms.insert(step.form);
      loops += step.form == Form::kWhile;
      scans += step.num_scans > 0;
      early_exits += step.early > 0;
      limits += !step.limit.empty();
      for (Var var : step.reads) captures_from_afar += depth >= made_at[var] + 3;
      for (const Block& inner : step.blocks) {
        empty_blocks += inner.steps.empty();
        count(inner, depth + 1, made_at);
      }
      if (step.form == Form::kWhile) count_carried(step.blocks[1]);
      for (Var var : step.makes) made_at[var] = depth;
    }
    loops_in_one_block = std::max(loops_in_one_block, loops);
  }

  void count_carried(const Block& after) {
    int moved = 0;
    for (size_t i = 0; i < after.results.size() && i + 1 < after.parameters.size(); ++i) {
      const auto at =
          std::find(after.parameters.begin() + 1, after.parameters.end(), after.results[i]);
      if (at == after.parameters.end()) continue;
      const bool stays = at - after.parameters.begin() == static_cast<ptrdiff_t>(i) + 1;
      moved += !stays;
      invariants += stays;
    }
    swaps += moved >= 2;
  }
};

TEST_F(GeneratorTest, TheSameSeedMakesTheSameGraph) {
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const auto a = generate(seed, library_);
    const auto b = generate(seed, library_);
    ASSERT_TRUE(a.is_ok()) << a.status().to_string();
    EXPECT_EQ(print_text(a->graph), print_text(b->graph)) << "seed " << seed;
    EXPECT_EQ(difference(a->inputs, b->inputs), "") << "seed " << seed;
  }
}

TEST_F(GeneratorTest, WhatItPromisesOccurs) {
  Census census;
  for (uint64_t seed = 0; seed < 4000; ++seed) {
    const Recipe recipe = make_recipe(seed, {.has_floats = true});
    std::vector<int> made_at(recipe.kinds.size(), 0);
    census.count(recipe.root, 0, made_at);
  }
  EXPECT_EQ(census.max_depth, 6);
  EXPECT_GE(census.loops_in_one_block, 4);
  EXPECT_GT(census.empty_blocks, 100);
  EXPECT_GT(census.scans, 100);
  EXPECT_GT(census.early_exits, 100);
  EXPECT_GT(census.limits, 100);
  EXPECT_GT(census.swaps, 100);
  EXPECT_GT(census.invariants, 100);
  EXPECT_GT(census.captures_from_afar, 10);
  EXPECT_EQ(census.forms.size(), static_cast<size_t>(Form::kCase) + 1) << "a form never occurs";
}

TEST_F(GeneratorTest, TripsShapesAndDepthOfExecutionVary) {
  std::set<int64_t> trips;
  std::set<int64_t> lengths;
  for (uint64_t seed = 0; seed < 500; ++seed) {
    const auto random = generate(seed, library_);
    ASSERT_TRUE(random.is_ok()) << "seed " << seed << ": " << random.status().to_string();
    const auto result = interpret(random->graph, library_, random->inputs);
    ASSERT_TRUE(result.is_ok()) << "seed " << seed << ": " << result.status().to_string();
    for (const TripCount& count : result->trips) trips.insert(count.trips);
    for (const auto& [name, value] : result->outputs) {
      if (value.is_tensor() && value.dims().rank() == 1) lengths.insert(value.dims()[0]);
    }
  }
  for (int64_t expected : {0, 1, 2, 17}) EXPECT_TRUE(trips.contains(expected)) << expected;
  EXPECT_TRUE(lengths.contains(0));
  EXPECT_GE(lengths.size(), 8u);
}

TEST_F(GeneratorTest, InputsHaveVariants) {
  const auto random = generate(3, library_);
  ASSERT_TRUE(random.is_ok());
  EXPECT_EQ(difference(make_inputs(random->recipe, 0), random->inputs), "");
  EXPECT_NE(difference(make_inputs(random->recipe, 1), random->inputs), "");
}

}  // namespace
}  // namespace eddy::check
