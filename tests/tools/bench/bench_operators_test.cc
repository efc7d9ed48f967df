// Claim: eddy bench operators measures single operators at three sizes each, without a rival too,
// and names operators that it does not have.
#include <gtest/gtest.h>

#include "tests/tools/command/command_runner.h"

namespace eddy::test {
namespace {

using nlohmann::json;

TEST(BenchOperators, AnOperatorHasARowForEachSizeAndNumberOfThreads) {
  const Finished bench = run_eddy({"bench", "operators", "--filter", "Einsum", "--threads", "1,2",
                                   "--rounds", "3", "--budget", "0.1", "--json"});
  ASSERT_EQ(bench.exit_code, 0) << bench.err;
  const json report = bench.json();
  EXPECT_TRUE(report["differences"].empty());
  const json& rows = report["rows"];
  ASSERT_EQ(rows.size(), 6u);
  EXPECT_EQ(rows[0]["op"], "Einsum");
  EXPECT_EQ(rows[1]["threads"], 2);
  EXPECT_NE(rows[0]["size"], rows[2]["size"]);
  EXPECT_GT(rows[0]["eddy"]["best_ns"], 0);
  EXPECT_TRUE(rows[0]["onnxruntime"].contains("missing") || rows[0].contains("ratio")) << rows[0];
}

TEST(BenchOperators, TheTablePrintsItsSeed) {
  const Finished bench = run_eddy({"bench", "operators", "--filter", "NonMax", "--threads", "1",
                                   "--seed", "11", "--rounds", "1", "--budget", "0.1"});
  EXPECT_EQ(bench.exit_code, 0) << bench.err;
  EXPECT_NE(bench.out.find("inputs from seed 11"), std::string::npos) << bench.out;
  EXPECT_NE(bench.out.find("100 boxes, 1 classes"), std::string::npos) << bench.out;
}

TEST(BenchOperators, WhatIsNoOperatorIsBadInput) {
  EXPECT_EQ(run_eddy({"bench", "operators", "--filter", "no such operator"}).exit_code, 3);
}

}  // namespace
}  // namespace eddy::test
