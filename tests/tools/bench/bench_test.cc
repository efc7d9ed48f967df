// eddy bench loops measures without a rival too, names what is missing, and refuses what is no
// rival.
#include <gtest/gtest.h>

#include "tests/tools/command/command_runner.h"

namespace eddy::test {
namespace {

using nlohmann::json;

TEST(Bench, ARowHasBestMedianAndSpreadAndSaysWhyThereIsNoRival) {
  const Finished bench = run_eddy(
      {"bench", "loops", "--filter", "m_identity", "--rounds", "3", "--budget", "0.1", "--json"});
  ASSERT_EQ(bench.exit_code, 0) << bench.err;
  const json rows = bench.json()["rows"];
  ASSERT_EQ(rows.size(), 1u);
  EXPECT_EQ(rows[0]["case"], "m_identity");
  EXPECT_LE(rows[0]["eddy"]["best_ns"], rows[0]["eddy"]["median_ns"]);
  EXPECT_LE(rows[0]["eddy"]["p10_ns"], rows[0]["eddy"]["p90_ns"]);
  EXPECT_EQ(rows[0]["eddy"]["samples"], 3);
  const json& rival = rows[0]["onnxruntime"];
  EXPECT_TRUE(rival.contains("missing") || rival.contains("best_ns")) << rival;
}

TEST(Bench, LoopsOverAnOwnOperatorCountRightHoweverDriven) {
  const Finished bench =
      run_eddy({"bench", "loops", "--filter", "own operator", "--rounds", "3", "--budget", "0.1"});
  EXPECT_EQ(bench.exit_code, 0) << bench.err;
  EXPECT_NE(bench.out.find("host-driven"), std::string::npos) << bench.out;
}

TEST(Bench, WhatIsNoRivalOrNoCaseIsBadInput) {
  EXPECT_EQ(run_eddy({"bench", "loops", "--ort", "/nonexistent.so"}).exit_code, 3);
  EXPECT_EQ(run_eddy({"bench", "loops", "--ort", "libm.so.6"}).exit_code, 3);
  EXPECT_EQ(run_eddy({"bench", "loops", "--filter", "no such case"}).exit_code, 3);
  EXPECT_EQ(run_eddy({"bench", "loops", "--models", "/nonexistent"}).exit_code, 3);
}

}  // namespace
}  // namespace eddy::test
