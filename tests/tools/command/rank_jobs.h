// The command as the ranks of a job.
#pragma once

#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/mpi/job.h"
#include "tests/tools/command/command_runner.h"

namespace eddy::test {

inline constexpr const char* kCommand = "tools/command/eddy";

class RankRun : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_jobs(); !why.empty()) GTEST_SKIP() << why;
  }
};

inline Job run(std::vector<std::string> arguments, bool starts_itself = true,
               uint32_t num_ranks = 2) {
  arguments.insert(arguments.begin(), "run");
  const Job job = run_job({.num_ranks = num_ranks,
                           .program = kCommand,
                           .arguments = std::move(arguments),
                           .starts_itself = starts_itself});
  EXPECT_FALSE(job.is_late) << job.err;
  EXPECT_EQ(job.num_left, 0) << job.err;
  return job;
}

inline void expect_one_line(const Job& job, int exit_code, const std::vector<std::string>& words) {
  EXPECT_EQ(job.exit_code, exit_code) << job.err;
  EXPECT_TRUE(is_one_line(job.err)) << job.err;
  for (const std::string& word : words) EXPECT_THAT(job.err, testing::HasSubstr(word));
}

}  // namespace eddy::test
