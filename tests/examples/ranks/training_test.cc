// Claim: the losses of each step are the same on 1, 2 and 4 ranks, and fall; a trace of a step has
// the averages of all gradients.
#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/mpi/job.h"

namespace eddy::test {
namespace {

Job train(uint32_t num_ranks, std::vector<std::string> arguments = {}) {
  const Job job = run_job({.num_ranks = num_ranks,
                           .program = "examples/ranks/training",
                           .arguments = std::move(arguments),
                           .limit = std::chrono::seconds(90)});
  EXPECT_FALSE(job.is_late);
  EXPECT_EQ(job.num_left, 0);
  return job;
}

double loss_at(const std::string& text, const std::string& step) {
  const size_t at = text.find("step " + step + ": loss ");
  return at == std::string::npos ? -1 : std::atof(text.c_str() + at + step.size() + 12);
}

TEST(TrainingOnRanks, LossesDoNotDependOnTheNumberOfRanks) {
  if (const std::string why = why_no_jobs(); !why.empty()) GTEST_SKIP() << why;
  const Job alone = train(1);
  ASSERT_EQ(alone.exit_code, 0) << alone.err;
  EXPECT_GT(loss_at(alone.out, "0"), 0);
  EXPECT_LT(loss_at(alone.out, "19"), loss_at(alone.out, "0") / 2) << alone.out;
  for (const uint32_t num_ranks : {2u, 4u}) {
    const Job job = train(num_ranks);
    EXPECT_EQ(job.exit_code, 0) << job.err;
    EXPECT_EQ(job.out, alone.out) << num_ranks << " ranks";
  }
}

TEST(TrainingOnRanks, SamplesThatCannotBeSharedEvenlyAreRefused) {
  if (const std::string why = why_no_jobs(); !why.empty()) GTEST_SKIP() << why;
  const Job job = train(3);
  EXPECT_NE(job.exit_code, 0);
  EXPECT_THAT(job.err, ::testing::HasSubstr("can't be shared evenly by 3 ranks"));
}

TEST(TrainingOnRanks, ATraceHasTheAveragesOfAllGradients) {
  if (const std::string why = why_no_jobs(); !why.empty()) GTEST_SKIP() << why;
  const std::string path = testing::TempDir() + "/training_trace.json";
  ASSERT_EQ(train(2, {path}).exit_code, 0);
  std::ifstream file(path);
  const std::string trace{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  for (const char* const name : {"w1_average", "b1_average", "w2_average", "b2_average"}) {
    EXPECT_THAT(trace, ::testing::HasSubstr(name));
  }
}

}  // namespace
}  // namespace eddy::test
