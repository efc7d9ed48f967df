// Claim: eddy bench serve measures each model with each number of clients and, idle, beside the
// wake of a thread, also without a rival; what it prints is in order; and it refuses no clients.
#include <gtest/gtest.h>

#include <set>

#include "tests/tools/command/command_runner.h"

namespace eddy::test {
namespace {

using nlohmann::json;

Finished bench(std::vector<std::string> more) {
  std::vector<std::string> arguments = {"bench", "serve", "--rounds", "2", "--budget", "0.2"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return run_eddy(arguments);
}

TEST(BenchServe, RowsForEachNumberOfClientsAndForAnIdleSession) {
  const Finished run = bench({"--clients", "1,3", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(run.json()["differences"].empty());
  std::set<std::pair<std::string, int>> busy;
  std::set<std::string> idle;
  const json rows = run.json()["rows"];
  for (const json& row : rows) {
    EXPECT_GT(row["requests"], 0) << row;
    EXPECT_GT(row["requests_per_s"], 0) << row;
    EXPECT_LE(row["p50_ns"], row["p99_ns"]) << row;
    EXPECT_LE(row["lowest_requests_per_s"], row["best_requests_per_s"]) << row;
    EXPECT_EQ(row.contains("by_wake"), row.contains("idle")) << row;
    if (row.contains("idle")) {
      idle.insert(row["driven_by"].get<std::string>());
    } else if (row["driven_by"] == "Eddy, run_async, wait") {
      busy.emplace(row["model"].get<std::string>(), row["clients"].get<int>());
    }
  }
  std::set<std::pair<std::string, int>> expected;
  for (const char* model : {"fixed_point", "negate", "perceptron"}) {
    for (const int clients : {1, 3}) expected.insert({model, clients});
  }
  EXPECT_EQ(busy, expected);
  EXPECT_TRUE(idle.contains("a sleeping thread's wake"));
  EXPECT_TRUE(idle.contains("Eddy, run_async, promise"));
}

TEST(BenchServe, TheTableHasALineForEachRow) {
  const Finished run = bench({"--clients", "2", "--filter", "perceptron"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_NE(run.out.find("requests/s"), std::string::npos) << run.out;
  EXPECT_NE(run.out.find("perceptron          2  Eddy, run "), std::string::npos) << run.out;
  EXPECT_EQ(run.out.find("fixed_point"), std::string::npos) << run.out;
}

TEST(BenchServe, BatchesAreRowsOfTheModelsThatMayShareRuns) {
  const Finished run = bench({"--clients", "2", "--batch", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  std::set<std::string> models;
  const json rows = run.json()["rows"];
  for (const json& row : rows) {
    if (row["driven_by"] == "Eddy, batches") models.insert(row["model"].get<std::string>());
  }
  EXPECT_EQ(models, (std::set<std::string>{"negate", "perceptron"}));
}

TEST(BenchServe, NoClientsAreRefused) {
  const Finished run = bench({"--clients", "0"});
  EXPECT_NE(run.exit_code, 0);
  EXPECT_NE(run.err.find("--clients"), std::string::npos) << run.err;
}

}  // namespace
}  // namespace eddy::test
