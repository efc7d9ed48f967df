// Claim: on real ranks, more than processors too, each call of the table moves and combines what it
// says, for every type, odd and empty sizes, whole and in pieces, over all ranks or some in another
// order; a job ends with the code of the rank that failed, and leaves no process.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/mpi/mpi_library.h"
#include "tests/runtime/mpi/job.h"

namespace eddy::test {
namespace {

constexpr const char* kProgram = "tests/runtime/mpi/table_job";

class MpiTableOverRanks : public testing::TestWithParam<uint32_t> {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_jobs(); !why.empty()) GTEST_SKIP() << why;
  }
};

TEST_P(MpiTableOverRanks, EachCallDoesWhatItSays) {
  const Job job = run_job({.num_ranks = GetParam(), .program = kProgram});
  EXPECT_EQ(job.exit_code, 0) << job.err;
  EXPECT_EQ(job.out, "all calls agree\n");
  EXPECT_EQ(job.err, "");
  EXPECT_FALSE(job.is_late);
  EXPECT_EQ(job.num_left, 0);
}

TEST_P(MpiTableOverRanks, AnAbortEndsAllRanksWithItsCode) {
  if (GetParam() == 1) GTEST_SKIP() << "needs a rank 1";
  const Job job = run_job({.num_ranks = GetParam(), .program = kProgram, .arguments = {"fail"}});
  EXPECT_EQ(job.exit_code, 7) << job.err;
  EXPECT_FALSE(job.is_late);
  EXPECT_EQ(job.num_left, 0);
}

TEST_P(MpiTableOverRanks, ARankThatLeavesEndsAllRanksWithItsCode) {
  if (GetParam() == 1) GTEST_SKIP() << "needs a rank 1";
  const Job job = run_job({.num_ranks = GetParam(), .program = kProgram, .arguments = {"leave"}});
  EXPECT_EQ(job.exit_code, 3) << job.err;
  EXPECT_FALSE(job.is_late);
  EXPECT_EQ(job.num_left, 0);
}

INSTANTIATE_TEST_SUITE_P(Ranks, MpiTableOverRanks, testing::Values(1u, 2u, 3u, 4u));

TEST(MpiLibrary, WithoutALauncherThereIsNoRank) {
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "PMI_RANK"}) {
    unsetenv(name);
  }
  EXPECT_EQ(find_launched_rank(), std::nullopt);
}

TEST(MpiLibrary, RanksThatMakeNoSenseAreNone) {
  setenv("OMPI_COMM_WORLD_RANK", "2", 1);
  setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
  EXPECT_EQ(find_launched_rank(), std::nullopt);
  setenv("OMPI_COMM_WORLD_RANK", "1x", 1);
  EXPECT_EQ(find_launched_rank(), std::nullopt);
  setenv("OMPI_COMM_WORLD_RANK", "1", 1);
  setenv("OMPI_COMM_WORLD_LOCAL_SIZE", "7", 1);
  EXPECT_EQ(find_launched_rank(), (LaunchedRank{1, 2, 2}));
  setenv("OMPI_COMM_WORLD_LOCAL_RANK", "1", 1);
  EXPECT_EQ(find_launched_rank(), (LaunchedRank{1, 2, 2, true, 1}));
  setenv("OMPI_COMM_WORLD_LOCAL_RANK", "2", 1);
  EXPECT_EQ(find_launched_rank(), (LaunchedRank{1, 2, 2})) << "there are two here";
  for (const char* name : {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
                           "OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"}) {
    unsetenv(name);
  }
}

}  // namespace
}  // namespace eddy::test
