// eddy bench dynamic measures a model without a rival too, counts its trips, and refuses what is
// no rival and no model.
#include <gtest/gtest.h>

#include "tests/tools/command/command_runner.h"

namespace eddy::test {
namespace {

using nlohmann::json;

TEST(BenchDynamic, ARowHasTripsTimesAndARivalOrWhyThereIsNone) {
  const Finished bench = run_eddy(
      {"bench", "dynamic", "--filter", "tree", "--rounds", "3", "--budget", "0.1", "--json"});
  ASSERT_EQ(bench.exit_code, 0) << bench.err;
  EXPECT_TRUE(bench.json()["differences"].empty());
  const json rows = bench.json()["rows"];
  ASSERT_EQ(rows.size(), 2u);  // batches of 1 and 64
  EXPECT_EQ(rows[0]["model"], "tree");
  EXPECT_EQ(rows[0]["trips"], 65);
  EXPECT_LE(rows[0]["eddy"]["best_ns"], rows[0]["eddy"]["median_ns"]);
  EXPECT_EQ(rows[0]["eddy"]["samples"], 3);
  const json& rival = rows[0]["onnxruntime"];
  EXPECT_TRUE(rival.contains("missing") || rival.contains("best_ns")) << rival;
}

TEST(BenchDynamic, TheTableNamesEverySizeOfAModel) {
  const Finished bench =
      run_eddy({"bench", "dynamic", "--filter", "fixed_point", "--rounds", "3", "--budget", "0.1"});
  EXPECT_EQ(bench.exit_code, 0) << bench.err;
  EXPECT_NE(bench.out.find("fixed_point       1"), std::string::npos) << bench.out;
  EXPECT_NE(bench.out.find("fixed_point      64"), std::string::npos) << bench.out;
}

TEST(BenchDynamic, WhatIsNoRivalOrNoModelIsBadInput) {
  EXPECT_EQ(run_eddy({"bench", "dynamic", "--ort", "/nonexistent.so"}).exit_code, 3);
  EXPECT_EQ(run_eddy({"bench", "dynamic", "--filter", "no such model"}).exit_code, 3);
}

}  // namespace
}  // namespace eddy::test
