// Claim: eddy bench tasks measures each graph of tasks in all ways with each number of threads, and
// their results are a plain loop's; it refuses graphs of too few tasks.
#include <gtest/gtest.h>

#include <set>

#include "tests/tools/command/command_runner.h"

namespace eddy::test {
namespace {

using nlohmann::json;

TEST(BenchTasks, ARowForEachGraphNumberOfThreadsAndWay) {
  const Finished run = run_eddy({"bench", "tasks", "--tasks", "200", "--threads", "1,2", "--rounds",
                                 "2", "--budget", "0.1", "--json"});
  ASSERT_EQ(run.exit_code, 0) << run.err;
  EXPECT_TRUE(run.json()["differences"].empty());
  std::set<std::string> graphs;
  std::set<std::string> ways;
  const json rows = run.json()["rows"];
  for (const json& row : rows) {
    graphs.insert(row["graph"].get<std::string>());
    ways.insert(row["way"].get<std::string>());
    EXPECT_GT(row["by_best_of_onetbb"], 0) << row;
    EXPECT_GT(row["ns_per_task"]["median_ns"], 0) << row;
  }
  EXPECT_EQ(graphs, (std::set<std::string>{"fan-out", "diamonds", "chain", "chains", "fork-join"}));
  EXPECT_EQ(ways.size(), 4u);
  EXPECT_EQ(rows.size(), graphs.size() * ways.size() * 2);
}

TEST(BenchTasks, TooFewTasksAreRefused) {
  const Finished run = run_eddy({"bench", "tasks", "--tasks", "3"});
  EXPECT_EQ(run.exit_code, 2);
  EXPECT_NE(run.err.find("--tasks"), std::string::npos) << run.err;
}

}  // namespace
}  // namespace eddy::test
