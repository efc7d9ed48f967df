// Claim: eddy check runs its campaigns, counts what it did, and ends as it should.
#include <gtest/gtest.h>

#include "tests/tools/command/command_runner.h"

namespace eddy::test {
namespace {

TEST(Check, RunsAllCampaignsAndCounts) {
  const Finished check = run_eddy({"check", "--seeds", "30", "--json"});
  EXPECT_EQ(check.exit_code, 0) << check.err;
  const auto campaigns = check.json()["campaigns"];
  EXPECT_EQ(campaigns["proof"]["plans"], 30);
  EXPECT_EQ(campaigns["differential"]["graphs"], 30);
  EXPECT_EQ(campaigns["order"]["graphs"], 30);
  EXPECT_EQ(campaigns["order"]["orders"], 90);
  EXPECT_TRUE(check.json()["violations"].empty());
}

TEST(Check, SaysTheSameAsText) {
  const Finished check = run_eddy({"check", "--seeds", "5", "--policy", "pct"});
  EXPECT_EQ(check.exit_code, 0) << check.err;
  EXPECT_EQ(check.out.find("order: 5 graphs, 15 orders, "), 0u) << check.out;
  EXPECT_NE(check.out.find(" 0 violations, "), std::string::npos) << check.out;
  EXPECT_NE(check.out.find(" a second\n"), std::string::npos) << check.out;
}

TEST(Check, SweepsFaults) {
  const Finished check = run_eddy({"check", "--faults", "--seeds", "2", "--json"});
  EXPECT_EQ(check.exit_code, 0) << check.err;
  const auto faults = check.json()["campaigns"]["faults"];
  EXPECT_EQ(faults["graphs"], 2);
  EXPECT_GT(faults["points"], 50);
  EXPECT_GT(faults["fired"]["kernel"], 0);
}

TEST(Check, ExploresEveryOrderOfSmallGraphs) {
  const Finished check = run_eddy({"check", "--policy", "exhaustive", "--seeds", "10", "--json"});
  EXPECT_EQ(check.exit_code, 0) << check.err;
  EXPECT_GT(check.json()["campaigns"]["order"]["graphs_explored_whole"], 0);
}

TEST(Check, TheVirtualDeviceRunsModelsInEveryOrderToTheSameEnd) {
  const std::string path = write_test_file("count.onnx", counting_model());
  std::string first;
  for (const char* policy : {"uniform", "pct", "starve", "late", "early"}) {
    for (const char* loops : {"device", "host"}) {
      const Finished run = run_eddy({"run", path, "--device", "virtual", "--seed", "3", "--policy",
                                     policy, "--loops", loops, "--assign", "rank", "--set",
                                     "trip=9", "--set", "x=0", "--set", "limit=5", "--json"});
      ASSERT_EQ(run.exit_code, 0) << run.err;
      const std::string outputs = run.json()["outputs"].dump();
      if (first.empty()) first = outputs;
      EXPECT_EQ(outputs, first) << policy << " " << loops;
    }
  }
}

TEST(Check, EndsWhenItsTimeIsUp) {
  const Finished check = run_eddy({"check", "--minutes", "0.01", "--json"});
  EXPECT_EQ(check.exit_code, 0) << check.err;
  EXPECT_GT(check.json()["campaigns"]["order"]["graphs"], 0);
}

TEST(Check, RefusesWhatItDoesNotKnow) {
  for (const auto& arguments :
       std::vector<std::vector<std::string>>{{"check", "--policy", "sometimes"},
                                             {"check", "--seeds", "0"},
                                             {"check", "--policy", "pct", "--faults"}}) {
    const Finished check = run_eddy(arguments);
    EXPECT_EQ(check.exit_code, 2);
    EXPECT_TRUE(is_one_line(check.err)) << check.err;
  }
}

}  // namespace
}  // namespace eddy::test
