// Claim: whatever fails, wherever, first or later, alone or with another fault: every run ends once
// with a status that says why, nothing hangs, and nothing is left behind.
//
// EDDY_CHECK_SEEDS=N sweeps N graphs, EDDY_CHECK_FIRST=N starts there.
#include <gtest/gtest.h>

#include <cstdlib>

#include "tools/check/fault_campaign.h"

namespace eddy::check {
namespace {

uint64_t number(const char* variable, uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// Its sweep makes a session anew before a host function is told to throw.
TEST(FaultTest, TheOracleIsNotToldToFail) {
  FaultOptions options;
  options.first_seed = 29;
  options.num_seeds = 1;
  const FaultReport report = run_faults(options);
  EXPECT_TRUE(report.violations.empty()) << report.violations[0].what;
  EXPECT_GT(report.fired[static_cast<size_t>(FaultKind::kHostFunction)], 0u);
}

TEST(FaultTest, AGraphIsSweptAlikeEachTime) {
  FaultOptions options;
  options.first_seed = 20;
  options.num_seeds = 8;  // every fourth with loops on the host
  const FaultReport once = run_faults(options);
  const FaultReport again = run_faults(options);
  EXPECT_EQ(once.num_points, again.num_points);
  for (size_t kind = 0; kind < kNumFaultKinds; ++kind) {
    EXPECT_EQ(once.fired[kind], again.fired[kind]) << fault_kind_name(static_cast<FaultKind>(kind));
  }
}

TEST(FaultTest, EveryFaultEndsItsRunAsItShould) {
  FaultOptions options;
  options.first_seed = number("EDDY_CHECK_FIRST", 20);
  options.num_seeds = number("EDDY_CHECK_SEEDS", 16);
  const FaultReport report = run_faults(options);
  for (const FaultViolation& violation : report.violations) {
    ADD_FAILURE() << "EDDY_CHECK_FIRST=" << violation.seed
                  << " EDDY_CHECK_SEEDS=1: " << violation.faults << ": " << violation.what << "\n"
                  << violation.smallest.text;
  }
  EXPECT_GT(report.num_points, 20 * report.num_graphs);
  for (size_t kind = 0; kind < kNumFaultKinds && options.num_seeds >= 16; ++kind) {
    EXPECT_GT(report.fired[kind], 0u) << fault_kind_name(static_cast<FaultKind>(kind));
  }
  RecordProperty("points", static_cast<int>(report.num_points));
}

}  // namespace
}  // namespace eddy::check
