// Claim: plans of random graphs prove safe, and none of their records and waits can go unnoticed.
//
// EDDY_CHECK_SEEDS=N takes N graphs, EDDY_CHECK_FIRST=N starts there.
#include "tools/check/proof_campaign.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "tools/check/hash_ops.h"

namespace eddy::check {
namespace {

uint64_t number(const char* variable, uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

TEST(ProofTest, EveryDeletedRecordOrWaitIsFlagged) {
  Library library;
  ASSERT_TRUE(add_hash_ops(library).is_ok());
  ProofOptions options;
  options.first_seed = number("EDDY_CHECK_FIRST", 0);
  options.num_seeds = number("EDDY_CHECK_SEEDS", 1000);
  const ProofReport report = run_proofs(library, options);
  for (const ProofViolation& violation : report.violations) {
    ADD_FAILURE() << "EDDY_CHECK_FIRST=" << violation.seed
                  << " EDDY_CHECK_SEEDS=1: " << violation.what;
  }
  EXPECT_GT(report.num_deletions, report.num_plans);
}

// Graphs with loops that take or give values without readers: waits for those are needless.
TEST(ProofTest, NothingIsWaitedForThatIsOnlyHandedOn) {
  Library library;
  ASSERT_TRUE(add_hash_ops(library).is_ok());
  for (const uint64_t seed : {50048353, 50104241, 50114799}) {
    const ProofReport report = run_proofs(library, {.first_seed = seed, .num_seeds = 1});
    EXPECT_TRUE(report.violations.empty()) << "seed " << seed << ": " << report.violations[0].what;
    EXPECT_GT(report.num_deletions, 0u);
  }
}

// A planner that never waits: found out, and the report has a graph that a person can read.
TEST(ProofTest, AViolationIsShrunkToAGraphOfAFewNodes) {
  Library library;
  ASSERT_TRUE(add_hash_ops(library).is_ok());
  ProofOptions options;
  options.num_seeds = 200;
  options.spoil = [](const Graph&, Plan& plan) {
    for (Program::Block& block : plan.program.blocks) {
      std::erase_if(block.steps,
                    [](const Program::Step& step) { return step.op == Program::Op::kWait; });
    }
  };
  const ProofReport report = run_proofs(library, options);
  ASSERT_EQ(report.violations.size(), options.max_violations);
  for (const ProofViolation& violation : report.violations) {
    EXPECT_FALSE(violation.what.empty());
    EXPECT_GE(violation.smallest.num_nodes, 2u) << "one node waits for none";
    EXPECT_LE(violation.smallest.num_nodes, 15u) << violation.smallest.text;
    EXPECT_NE(violation.smallest.text.find("graph "), std::string::npos);
  }
}

}  // namespace
}  // namespace eddy::check
