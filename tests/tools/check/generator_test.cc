// Claim: the same seed makes the same graph; every seed's recipe builds; over some thousand seeds
// everything that the generator promises occurs.
#include "tools/check/generator.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "graph/ir/print.h"
#include "tools/check/hash_ops.h"
#include "tools/check/oracle.h"

namespace eddy::check {
namespace {

class GeneratorTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(add_hash_ops(library_).is_ok()); }
  Library library_;
};

// Counts of the constructs in the blocks of a recipe.
struct Census {
  int max_depth = 0;
  int loops_in_one_block = 0;
  int empty_blocks = 0;
  int scans = 0;
  int early_exits = 0;
  int limits = 0;
  int swaps = 0;  // a body that returns its parameters in another order
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

// What happened in runs of the oracle, not only what the graphs have.
struct Events {
  int64_t empty_branches = 0;  // taken
  int64_t empty_bodies = 0;    // entered
  int64_t aliases = 0;
  int64_t zero_sizes = 0;
  int64_t new_shapes = 0;  // a node made another shape than the time before
  int64_t sequences = 0;
  int64_t some = 0;  // optionals made or passed on: full, and empty
  int64_t none = 0;
  int64_t has = 0;
  int64_t gets = 0;
  int64_t scans = 0;        // loops that stacked rows
  int64_t early_exits = 0;  // loops that ended before any number of trips they may choose
  int max_depth = 0;        // of regions entered
};

class Watch {
 public:
  Watch(const Graph& graph, Events& events) : graph_(graph), events_(events) {}

  OracleOptions options() {
    OracleOptions options;
    options.on_region = [this](RegionId region) { enter(region); };
    options.on_made = [this](NodeId node, std::span<const Tensor> made) { see(node, made); };
    return options;
  }

  void end(const OracleResult& result) {
    for (const TripCount& count : result.trips) {
      const Node& loop = graph_.node(count.node);
      events_.scans += loop.num_scan_outputs > 0 && count.trips > 0;
      const Region& before = graph_.region(loop.regions[0]);
      const Node& go = graph_.node(graph_.value(before.results[0]).producer);
      const auto choices = go.attributes.get_ints("choices");
      const bool is_chosen =
          std::find(choices.begin(), choices.end(), count.trips) != choices.end();
      const int64_t most = *std::max_element(choices.begin(), choices.end());
      events_.early_exits += !is_chosen && count.trips < most && loop.inputs[0].is_none();
    }
  }

 private:
  void enter(RegionId id) {
    const Region& region = graph_.region(id);
    int depth = 0;
    for (RegionId at = id; !graph_.region(at).owner.is_none(); ++depth) {
      at = graph_.node(graph_.region(at).owner).region;
    }
    events_.max_depth = std::max(events_.max_depth, depth);
    if (!region.nodes.empty() || region.owner.is_none()) return;
    const bool is_branch = graph_.node(region.owner).kind == NodeKind::kCaseOf;
    ++(is_branch ? events_.empty_branches : events_.empty_bodies);
  }

  void see(NodeId id, std::span<const Tensor> made) {
    const Node& node = graph_.node(id);
    const std::string& name = node.op->name;
    events_.aliases += name == "Identity" || name == "Reshape" || name == "Squeeze";
    events_.has += name == "OptionalHasElement";
    events_.gets += name == "OptionalGetElement";
    if (name == "Optional") ++(made[0].kind() == ValueKind::kNone ? events_.none : events_.some);
    for (const Tensor& value : made) {
      events_.sequences += value.kind() == ValueKind::kSequence;
      if (value.kind() != ValueKind::kTensor) continue;
      events_.zero_sizes += value.view().count() == 0;
    }
    if (made.size() != 1 || made[0].kind() != ValueKind::kTensor) return;
    const auto [last, is_new] = dims_.try_emplace(id, made[0].dims());
    events_.new_shapes += !is_new && !(last->second == made[0].dims());
    last->second = made[0].dims();
  }

  const Graph& graph_;
  Events& events_;
  std::map<NodeId, Dims> dims_;  // that each node made last
};

TEST_F(GeneratorTest, WhatItPromisesHappensWithinAThousandSeeds) {
  Events events;
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    const auto random = generate(seed, library_);
    ASSERT_TRUE(random.is_ok()) << "seed " << seed << ": " << random.status().to_string();
    Watch watch(random->graph, events);
    const auto result = interpret(random->graph, library_, random->inputs, watch.options());
    ASSERT_TRUE(result.is_ok()) << "seed " << seed << ": " << result.status().to_string();
    watch.end(*result);
  }
  EXPECT_GE(events.max_depth, 6);
  const std::pair<const char*, int64_t> counts[] = {{"empty branches taken", events.empty_branches},
                                                    {"empty bodies entered", events.empty_bodies},
                                                    {"aliases made", events.aliases},
                                                    {"values without elements", events.zero_sizes},
                                                    {"shapes that changed", events.new_shapes},
                                                    {"sequences made", events.sequences},
                                                    {"full optionals made", events.some},
                                                    {"empty optionals made", events.none},
                                                    {"optionals asked", events.has},
                                                    {"optionals opened", events.gets},
                                                    {"loops that stacked rows", events.scans},
                                                    {"early exits", events.early_exits}};
  for (const auto& [what, count] : counts) {
    std::printf("%-26s %lld\n", what, static_cast<long long>(count));
    EXPECT_GE(count, 100) << what;
  }
}

// Optionals travel like everything else: carried by loops, given by branches, passed through.
TEST_F(GeneratorTest, OptionalsAreCarriedAndChosen) {
  int carried = 0;
  int chosen = 0;
  const std::function<void(const Recipe&, const Block&)> count = [&](const Recipe& recipe,
                                                                     const Block& block) {
    for (const Step& step : block.steps) {
      const auto has_maybe = [&](const std::vector<Var>& vars) {
        return std::any_of(vars.begin(), vars.end(),
                           [&](Var var) { return recipe.kinds[var] == Kind::kMaybe; });
      };
      carried += step.form == Form::kWhile && has_maybe(step.reads);
      chosen += step.form == Form::kCase && has_maybe(step.makes);
      for (const Block& inner : step.blocks) count(recipe, inner);
    }
  };
  for (uint64_t seed = 0; seed < 1000; ++seed) {
    const Recipe recipe = make_recipe(seed);
    count(recipe, recipe.root);
  }
  EXPECT_GT(carried, 100);
  EXPECT_GT(chosen, 100);
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

TEST_F(GeneratorTest, OneRecipeInFourHasFloatsWhereItMay) {
  int num_with = 0;
  for (uint64_t seed = 0; seed < 2000; ++seed) {
    const Recipe may = make_recipe(seed, {.may_have_floats = true});
    const bool has =
        std::find(may.kinds.begin(), may.kinds.end(), Kind::kFloats) != may.kinds.end();
    num_with += has;
    const Recipe same = make_recipe(seed, {.has_floats = has});
    EXPECT_EQ(may.kinds, same.kinds) << "seed " << seed;
  }
  EXPECT_GT(num_with, 400);
  EXPECT_LT(num_with, 600);
}

}  // namespace
}  // namespace eddy::check
