// Claim: a world on MPI gives, for every kind, type, reduction, axis, odd and empty size, the
// reference's bits over what all ranks put in, whole and in pieces; and messages of any length come
// whole and in order.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/mpi/job.h"

namespace eddy::test {
namespace {

class MpiWorld : public testing::TestWithParam<uint32_t> {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_jobs(); !why.empty()) GTEST_SKIP() << why;
  }
  static void expect_agreement(std::vector<std::string> arguments) {
    const Job job = run_job({.num_ranks = GetParam(),
                             .program = "tests/runtime/mpi/transport_job",
                             .arguments = std::move(arguments),
                             .limit = std::chrono::seconds(40)});
    EXPECT_EQ(job.exit_code, 0) << job.err;
    EXPECT_THAT(job.out, testing::HasSubstr("cases agree"));
    EXPECT_EQ(job.err, "");
    EXPECT_FALSE(job.is_late);
    EXPECT_EQ(job.num_left, 0);
  }
};

TEST_P(MpiWorld, GivesTheReferencesBits) { expect_agreement({}); }

TEST_P(MpiWorld, GivesThemInPiecesToo) { expect_agreement({"pieces"}); }

INSTANTIATE_TEST_SUITE_P(Ranks, MpiWorld, testing::Values(2u, 3u, 4u));

}  // namespace
}  // namespace eddy::test
