// Claim: the example finds the same weights on any number of ranks, also such as share the pages
// unevenly or have none, in the same number of steps; and says so once.
#include <chrono>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/mpi/job.h"

namespace eddy::test {
namespace {

Job pagerank(uint32_t num_ranks, std::vector<std::string> arguments) {
  const Job job = run_job({.num_ranks = num_ranks,
                           .program = "examples/ranks/pagerank",
                           .arguments = std::move(arguments),
                           .limit = std::chrono::seconds(90)});
  EXPECT_EQ(job.err, "");
  EXPECT_FALSE(job.is_late);
  EXPECT_EQ(job.num_left, 0);
  return job;
}

// Behind the number of ranks.
std::string results(const Job& job) { return job.out.substr(job.out.find(',') + 1); }

TEST(PageRank, TheResultDoesNotDependOnTheNumberOfRanks) {
  if (const std::string why = why_no_jobs(); !why.empty()) GTEST_SKIP() << why;
  const auto compare = [](const std::string& pages, const std::vector<uint32_t>& ranks) {
    const Job alone = pagerank(1, {pages});
    ASSERT_EQ(alone.exit_code, 0);
    EXPECT_THAT(alone.out, testing::StartsWith(pages + " pages on 1 rank,"));
    for (const uint32_t num_ranks : ranks) {
      const Job job = pagerank(num_ranks, {pages});
      EXPECT_EQ(job.exit_code, 0);
      EXPECT_EQ(results(job), results(alone)) << num_ranks << " ranks";
    }
  };
  compare("500", {2, 4});
  compare("2", {3});  // one of them has none
}

}  // namespace
}  // namespace eddy::test
