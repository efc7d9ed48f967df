// Claim: `eddy simulate MODEL --ranks N` says when each rank ends and which operation it hangs on,
// by what operations take; what ranks would mix up, and options that are not for them, are refused
// in one line; and none of it needs MPI.
#include <cstdlib>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/tools/command/command_runner.h"
#include "tests/tools/command/rank_models.h"

namespace eddy::test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

// Without a launcher in PATH.
Finished simulate(std::vector<std::string> arguments) {
  setenv("PATH", "/nonexistent", 1);
  arguments.insert(arguments.begin(), "simulate");
  return run_eddy(arguments);
}

void expect_refused(const std::vector<std::string>& arguments, int exit_code,
                    const std::vector<std::string>& words) {
  const Finished finished = simulate(arguments);
  EXPECT_EQ(finished.exit_code, exit_code) << finished.err;
  EXPECT_TRUE(is_one_line(finished.err)) << finished.err;
  for (const std::string& word : words) EXPECT_THAT(finished.err, HasSubstr(word));
}

json simulated(std::vector<std::string> arguments) {
  arguments.emplace_back("--json");
  const Finished finished = simulate(std::move(arguments));
  EXPECT_EQ(finished.exit_code, 0) << finished.err;
  return finished.exit_code == 0 ? finished.json() : json();
}

TEST(RankSimulate, SaysWhenEachRankEndsAndWhatItHangsOn) {
  const std::string path = write_test_file("sum.onnx", summing_model());
  const std::string links = write_test_file(
      "links.json", R"({"operations": {"AllReduce": [[4, 1e6], [8, 3e6], [16, 2e6]]}})");
  const json document = simulated({path, "--ranks", "3", "--links", links});
  ASSERT_EQ(document["ranks"].size(), 3u);
  // The sum of two floats takes 3 ms, that of an int64 as much, beside it: each has a stream of its
  // own, as in a session.
  EXPECT_GE(document["makespan_ns"], 3e6);
  EXPECT_LT(document["makespan_ns"], 3.5e6);
  for (const json& rank : document["ranks"]) EXPECT_GE(rank["operations_ns"], 6e6) << rank;
  ASSERT_EQ(document["operations"].size(), 2u);
  EXPECT_EQ(document["operations"][0]["name"], "numbers");
  EXPECT_EQ(document["operations"][1]["name"], "total");
  EXPECT_EQ(document["operations"][1]["kind"], "AllReduce");
  EXPECT_EQ(document["operations"][1]["count"], 1);
  EXPECT_TRUE(document["critical"] == "total" || document["critical"] == "numbers");
  const Finished text = simulate(
      {path, "--ranks", "2", "--links", links, "--svg", fresh_folder("pictures") + "/ranks.svg"});
  ASSERT_EQ(text.exit_code, 0) << text.err;
  EXPECT_THAT(text.out, HasSubstr(" on 2 ranks\n"));
  EXPECT_THAT(text.out, HasSubstr("rank 1: ends at "));
  EXPECT_THAT(text.out, HasSubstr("(AllReduce): 3.00 ms of the critical path, in 1 operation\n"));
}

TEST(RankSimulate, LoopsMeetInEachRound) {
  const std::string path = write_test_file("halve.onnx", halving_model(true));
  expect_refused({path, "--ranks", "2"}, 3, {"loop halve", "all, any or root"});
  const json document = simulated({path, "--ranks", "2", "--agree", "halve=any"});
  ASSERT_EQ(document["operations"].size(), 2u) << document;  // the sum, and the agreement
  const json& operations = document["operations"];
  EXPECT_GT(std::max(operations[0]["count"].get<int>(), operations[1]["count"].get<int>()), 1);
  EXPECT_EQ(document["ranks"][0]["end_ns"], document["ranks"][1]["end_ns"]);
}

TEST(RankSimulate, RanksMayDiffer) {
  write_test_file("rank0.onnx", renamed_summing_model("a"));
  const std::string path = write_test_file("rank1.onnx", renamed_summing_model("b"));
  const std::string both = path.substr(0, path.size() - 6) + "{rank}.onnx";
  EXPECT_EQ(simulated({both, "--ranks", "2"})["operations"].size(), 1u);
  write_test_file("mixed0.onnx", ordered_model(true));
  const std::string mixed = write_test_file("mixed1.onnx", ordered_model(false));
  expect_refused({mixed.substr(0, mixed.size() - 6) + "{rank}.onnx", "--ranks", "2"}, 3,
                 {"ranks would mix up or deadlock"});
}

TEST(RankSimulate, WhatIsNotForRanksIsRefused) {
  const std::string path = write_test_file("sum.onnx", summing_model());
  const std::string tasks = write_test_file("tasks.json", R"({"tasks": []})");
  const std::string wrong = write_test_file("wrong.json", R"({"bytes_per_ns": 0})");
  expect_refused({tasks, "--ranks", "2"}, 2, {"--ranks takes an ONNX model"});
  expect_refused({path, "--ranks", "2", "--full"}, 2, {"--full is not for several ranks"});
  expect_refused({path, "--links", wrong}, 2, {"give --ranks N"});
  expect_refused({path, "--ranks", "2", "--links", wrong}, 3, {"--links", "bytes_per_ns"});
  expect_refused({path, "--ranks", "2", "--links", "none.json"}, 3, {"none.json"});
  expect_refused({path + "x.onnx", "--ranks", "2"}, 3, {"x.onnx"});
}

}  // namespace
}  // namespace eddy::test
