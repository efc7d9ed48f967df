// Claim: eddy check runs its campaigns, counts what it did, and ends as it should.
#include <csignal>

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

TEST(Check, TriesOrdersAloneUnderAllPolicies) {
  const Finished check = run_eddy({"check", "--policy", "all", "--seeds", "22", "--json"});
  EXPECT_EQ(check.exit_code, 0) << check.err;
  const auto campaigns = check.json()["campaigns"];
  EXPECT_EQ(campaigns.size(), 1u);
  EXPECT_EQ(campaigns["order"]["graphs"], 22);
  EXPECT_EQ(campaigns["order"]["orders"], 66);
}

TEST(Check, SweepsFaults) {
  const Finished check = run_eddy({"check", "--faults", "--seeds", "2", "--json"});
  EXPECT_EQ(check.exit_code, 0) << check.err;
  const auto faults = check.json()["campaigns"]["faults"];
  EXPECT_EQ(faults["graphs"], 2);
  EXPECT_GT(faults["points"], 50);
  EXPECT_GT(faults["fired"]["kernel"], 0);
}

TEST(Check, ComparesGradientsWithDualNumbers) {
  const Finished check =
      run_eddy({"check", "--gradients", "--seeds", "40", "--jobs", "2", "--json"});
  EXPECT_EQ(check.exit_code, 0) << check.err;
  const auto gradients = check.json()["campaigns"]["gradients"];
  EXPECT_EQ(gradients["programs"], 40);
  EXPECT_GT(gradients["derivatives"], 100);
  EXPECT_GT(gradients["second_derivatives"], 0);
  EXPECT_EQ(gradients["violations"], 0);
  EXPECT_EQ(run_eddy({"check", "--gradients", "--faults"}).exit_code, 2);
}

TEST(Check, RunsProgramsOfSeveralRanksAndStopsThemAnywhere) {
  const Finished check = run_eddy({"check", "--ranks", "2..4", "--seeds", "6", "--json"});
  EXPECT_EQ(check.exit_code, 0) << check.err;
  const auto ranks = check.json()["campaigns"]["ranks"];
  EXPECT_EQ(ranks["programs"], 6);
  EXPECT_GT(ranks["collectives"], 20);
  EXPECT_GT(ranks["stops"], 20);
  EXPECT_EQ(ranks["violations"], 0);
  for (const char* const wrong : {"1", "4..2", "2..65", "two", "2.."}) {
    const Finished refused = run_eddy({"check", "--ranks", wrong});
    EXPECT_EQ(refused.exit_code, 2) << wrong;
    EXPECT_TRUE(is_one_line(refused.err)) << refused.err;
  }
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

TEST(Check, ExitsWith5WhenTheTimeWasTooShortForTheSeeds) {
  const Finished check =
      run_eddy({"check", "--minutes", "0.005", "--seeds", "100000000", "--json"});
  EXPECT_EQ(check.exit_code, 5) << check.err;
  EXPECT_TRUE(is_one_line(check.err)) << check.err;
  EXPECT_NE(check.err.find(" of 100000000 graphs; give more"), std::string::npos) << check.err;
  EXPECT_EQ(check.json()["graphs"], check.json()["campaigns"]["order"]["graphs"]);
  EXPECT_EQ(check.json()["error"]["exit"], 5);
}

TEST(Check, InterruptedSaysWhatItHasCountedAndExitsWith5) {
  for (const int signal : {SIGINT, SIGTERM}) {
    const Finished check =
        run_eddy({"check", "--seeds", "100000000", "--jobs", "2", "--json"}, {{signal, 1000}});
    EXPECT_EQ(check.exit_code, 5) << check.err;
    EXPECT_NE(check.err.find("interrupted after "), std::string::npos) << check.err;
    EXPECT_GT(check.json()["graphs"], 0);
    EXPECT_EQ(check.json()["campaigns"]["order"]["graphs"], check.json()["graphs"]);
    EXPECT_EQ(check.json()["error"]["code"], "cancelled");
  }
  const Finished faults = run_eddy({"check", "--faults", "--seeds", "100000"}, {{SIGINT, 1000}});
  EXPECT_EQ(faults.exit_code, 5) << faults.err;
  EXPECT_EQ(faults.out.find("faults: "), 0u) << faults.out;
  EXPECT_NE(faults.out.find(" points, "), std::string::npos) << faults.out;
}

TEST(Check, JobsShareTheSeedsAndCountTheSame) {
  const auto counts = [](const char* jobs) {
    const Finished check = run_eddy({"check", "--seeds", "60", "--jobs", jobs, "--json"});
    EXPECT_EQ(check.exit_code, 0) << check.err;
    auto all = check.json()["campaigns"];
    for (auto& campaign : all) campaign.erase("took_ns");
    // The scheduler decides the order in which the host issues.
    all["order"].erase("steps");
    all["order"].erase("accesses");
    return all.dump();
  };
  EXPECT_EQ(counts("1"), counts("3"));
}

TEST(Check, RefusesWhatItDoesNotKnow) {
  for (const auto& arguments :
       std::vector<std::vector<std::string>>{{"check", "--policy", "sometimes"},
                                             {"check", "--seeds", "0"},
                                             {"check", "--jobs", "0"},
                                             {"check", "--policy", "pct", "--faults"}}) {
    const Finished check = run_eddy(arguments);
    EXPECT_EQ(check.exit_code, 2);
    EXPECT_TRUE(is_one_line(check.err)) << check.err;
  }
}

}  // namespace
}  // namespace eddy::test
