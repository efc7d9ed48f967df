// Claim: sessions on the CPU give the oracle's results, in every way they can be made; a campaign
// notices a session that does not, and shrinks its graph to a few nodes.
//
// EDDY_CHECK_SEEDS=N runs N seeds, EDDY_CHECK_FIRST=N starts there.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tools/check/differential_campaign.h"
#include "tools/check/hash_ops.h"
#include "tools/check/session_way.h"
#include "tools/check/shrink.h"

namespace eddy::check {
namespace {

uint64_t number(const char* variable, uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

std::string describe(const DifferentialReport& report) {
  std::string text;
  for (const Mismatch& mismatch : report.mismatches) {
    text += "EDDY_CHECK_FIRST=" + std::to_string(mismatch.seed) + " EDDY_CHECK_SEEDS=1, " +
            mismatch.contestant + ": " + mismatch.what + "\n" + mismatch.smallest.text + "\n";
  }
  return text;
}

class DifferentialTest : public ::testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(add_hash_ops(library_).is_ok()); }

  void expect_no_mismatch(const GenerateOptions& generate, uint64_t num_seeds) {
    DifferentialOptions options;
    options.first_seed = number("EDDY_CHECK_FIRST", 0);
    options.num_seeds = number("EDDY_CHECK_SEEDS", num_seeds);
    options.generate = generate;
    const auto contestants = cpu_contestants();
    if (options.num_seeds == 1) options.contestants_per_seed = contestants.size();
    const DifferentialReport report = run_differential(library_, contestants, options);
    EXPECT_EQ(report.mismatches.size(), 0u) << describe(report);
    EXPECT_EQ(report.num_graphs, options.num_seeds);
    if (options.num_seeds >= 400) {
      EXPECT_GT(report.met.num_fed_back, 0u) << "feeding outputs back has shown nothing";
      EXPECT_GT(report.met.num_ended_early, 0u) << "no run was ended early";
    }
    RecordProperty("nodes", static_cast<int>(report.num_nodes));
  }

  Library library_;
};

TEST_F(DifferentialTest, EveryWayOnTheCpuAgreesOnHashOperators) { expect_no_mismatch({}, 900); }

TEST_F(DifferentialTest, EveryWayOnTheCpuAgreesOnFloats) {
  expect_no_mismatch({.has_floats = true}, 450);
}

TEST_F(DifferentialTest, EveryWayOnTheCpuAgreesOnLargeGraphs) {
  expect_no_mismatch({.min_steps = 40, .max_steps = 120, .has_floats = true}, 45);
}

bool has_form(const Block& block, Form form, bool is_in_loop) {
  for (const Step& step : block.steps) {
    if (is_in_loop && step.form == form) return true;
    for (const Block& inner : step.blocks) {
      if (has_form(inner, form, is_in_loop || step.form == Form::kWhile)) return true;
    }
  }
  return false;
}

TEST_F(DifferentialTest, AMismatchIsShrunkToAFewNodes) {
  // Wrong wherever a loop holds a Resize.
  const Contestant wrong = {"wrong", [](Subject& subject) -> std::string {
                              const Block& root = subject.recipe().root;
                              return has_form(root, Form::kResize, false) ? "resized" : "";
                            }};
  DifferentialOptions options;
  options.num_seeds = 2000;
  options.max_mismatches = 20;
  const DifferentialReport report = run_differential(library_, {wrong}, options);
  ASSERT_EQ(report.mismatches.size(), 20u);
  for (const Mismatch& mismatch : report.mismatches) {
    EXPECT_LE(mismatch.smallest.num_nodes, 4u) << mismatch.seed << "\n" << mismatch.smallest.text;
    EXPECT_EQ(mismatch.what, "resized");
  }
}

// Walks to a fixed point without ever making a recipe that does not build or does not run.
TEST_F(DifferentialTest, EveryEditOfShrinkingGivesAValidGraph) {
  for (uint64_t seed = 0; seed < 60; ++seed) {
    const auto is_valid = [&](const Recipe& recipe) {
      const auto graph = build(recipe, library_);
      EXPECT_TRUE(graph.is_ok()) << "seed " << seed << ": " << graph.status().to_string();
      if (!graph.is_ok()) return false;
      const auto result = interpret(*graph, library_, make_inputs(recipe, 0));
      EXPECT_TRUE(result.is_ok()) << "seed " << seed << ": " << result.status().to_string();
      return result.is_ok();
    };
    const Shrunk shrunk = shrink(make_recipe(seed, {.has_floats = true}), is_valid);
    EXPECT_TRUE(shrunk.recipe.root.steps.empty()) << "seed " << seed;
  }
}

TEST_F(DifferentialTest, AMismatchSaysHowTheSessionWasUsed) {
  bool is_broken = false;
  Library library;
  ASSERT_TRUE(add_hash_ops(library, [&](std::span<const TensorView> inputs) -> Result<int64_t> {
                if (is_broken) return run_failed("broken");
                return choose_by_hash(inputs);
              }).is_ok());
  const CheckThreads threads;
  int num_fed_back = 0;
  int num_others = 0;
  for (uint64_t seed = 0; seed < 300; ++seed) {
    is_broken = false;
    Subject subject(library, make_recipe(seed));
    const bool is_fed_back = are_all_tensors(subject.expected(0).inputs);
    ASSERT_TRUE(subject.expected(1).status.is_ok());
    is_broken = true;
    const SessionWay way = SessionWay::draw(seed, SessionUse::kFedBack);
    const std::string text = difference(subject, way, threads);
    if (text.empty()) continue;
    EXPECT_TRUE(text.starts_with(is_fed_back ? "fed back, " : "in turn, ")) << seed << ": " << text;
    ++(is_fed_back ? num_fed_back : num_others);
  }
  EXPECT_GT(num_fed_back, 0);
  EXPECT_GT(num_others, 0);
}

TEST_F(DifferentialTest, AContestantThatFailsIsAMismatch) {
  const auto no_device = session_contestant("none", [](const Recipe&) {
    SessionOptions options;
    options.make_device = []() -> Result<std::shared_ptr<Device>> {
      return device_lost("there is no device");
    };
    return options;
  });
  DifferentialOptions options;
  options.num_seeds = 1;
  const DifferentialReport report = run_differential(library_, {no_device}, options);
  ASSERT_EQ(report.mismatches.size(), 1u);
  EXPECT_EQ(report.mismatches[0].what, "no session: device lost: there is no device");
}

}  // namespace
}  // namespace eddy::check
