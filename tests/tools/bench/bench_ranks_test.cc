// Claim: eddy bench ranks starts ranks by itself and measures each operation between them at each
// size beside MPI's own call; rank 0 says the rows, once.
#include <gtest/gtest.h>

#include <set>

#include "tests/runtime/mpi/job.h"
#include "tests/tools/command/command_runner.h"

namespace eddy::test {
namespace {

using nlohmann::json;

json rows_of(const std::string& filter) {
  const Finished run = run_eddy({"bench", "ranks", "--filter", filter, "--rounds", "1", "--json"});
  EXPECT_EQ(run.exit_code, 0) << run.err;
  return run.exit_code == 0 ? run.json()["rows"] : json::array();
}

class BenchRanks : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_jobs(); !why.empty()) GTEST_SKIP() << why;
  }
};

TEST_F(BenchRanks, ARowForEachSizeBesideMpi) {
  std::set<int64_t> sizes;
  for (const json& row : rows_of("AllGather")) {
    sizes.insert(row["bytes"].get<int64_t>());
    EXPECT_EQ(row["rival"], "MPI_Iallgather") << row;
    EXPECT_GT(row["ns"]["median_ns"], 0) << row;
    EXPECT_GT(row["rival_ns"]["median_ns"], 0) << row;
    EXPECT_DOUBLE_EQ(row["limit_ns"].get<double>(),
                     1.1 * row["rival_ns"]["median_ns"].get<double>() + 1500);
  }
  EXPECT_EQ(sizes, (std::set<int64_t>{4, 1024, 16384, 262144, 4194304}));
}

TEST_F(BenchRanks, WhatWaitsForALatePeerTakesAsLongAsItDoes) {
  const json rows = rows_of("late");
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_GE(rows[0]["ns"]["best_ns"], 5e6) << rows;
  EXPECT_GE(rows[0]["rival_ns"]["best_ns"], 10e6) << rows;
}

TEST_F(BenchRanks, JobsAreStartedBesideThoseOfBareMpirun) {
  const json rows = rows_of("empty");
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0]["rival"], "mpirun") << rows;
}

TEST_F(BenchRanks, UnknownCasesAreRefusedOnce) {
  const Finished run = run_eddy({"bench", "ranks", "--filter", "nothing"});
  EXPECT_EQ(run.exit_code, 3) << run.err;
  EXPECT_TRUE(is_one_line(run.err)) << run.err;
}

}  // namespace
}  // namespace eddy::test
