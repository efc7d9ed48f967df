// Claim: a launcher that watches over its job says which rank ended it and how, whenever that was:
// killed, ended without a report, stopped, as ranks start or work; what ends the launcher, or
// mpirun, ends all of them. Nothing is left of a job, no process and no file.
#include <csignal>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/runtime/mpi/job.h"

namespace eddy::test {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using To = JobRequest::To;

constexpr int kAtWork = -1;

struct Watched {
  std::string seconds = "60";
  std::string stall = "20";
  std::string mpirun = "-";
  std::vector<std::string> early = {};  // a rank, and what it ends with
  int signal = 0;
  To to = To::kRank;
  int after_ms = kAtWork;
};

Job watch(const Watched& of) {
  std::vector<std::string> arguments = {"2", of.stall, of.mpirun, of.seconds};
  arguments.insert(arguments.end(), of.early.begin(), of.early.end());
  const bool is_launcher_killed = of.signal == SIGKILL && of.to == To::kFirst;
  const Job job = run_job({.program = "tests/runtime/mpi/watch_job",
                           .arguments = std::move(arguments),
                           .starts_itself = true,
                           .signal = of.signal,
                           .signal_to = of.to,
                           .signal_after = std::chrono::milliseconds(of.after_ms),
                           .signal_when = of.after_ms == kAtWork ? "rank 1 works" : "",
                           .limit = std::chrono::seconds(45),
                           // mpirun ends its ranks by itself then, which takes it two seconds.
                           .grace = std::chrono::seconds(is_launcher_killed ? 4 : 2)});
  EXPECT_FALSE(job.is_late) << job.err;
  EXPECT_EQ(job.num_left, 0) << job.err;
  // What a launcher leaves that is killed is removed by the next (job_folder_test.cc).
  if (!is_launcher_killed) {
    EXPECT_THAT(job.files_left, IsEmpty());
  }
  return job;
}

class Watch : public testing::Test {
 protected:
  void SetUp() override {
    if (const std::string why = why_no_jobs(); !why.empty()) GTEST_SKIP() << why;
  }
};

TEST_F(Watch, SaysNothingOfAJobThatEndsWell) {
  const Job job = watch({.seconds = "0"});
  EXPECT_THAT(job.out, HasSubstr("code 0: ok\n"));
  EXPECT_EQ(job.err, "");
}

TEST_F(Watch, NamesARankThatWasKilled) {
  const Job job = watch({.signal = SIGKILL});
  EXPECT_THAT(job.out, HasSubstr("code 137: "));
  EXPECT_THAT(job.out, HasSubstr("rank 1 was ended by signal 9 (Killed)"));
}

TEST_F(Watch, NamesARankThatEndedWithoutAReport) {
  const Job job = watch({.early = {"1", "3"}});
  EXPECT_THAT(job.out, HasSubstr("code 3: "));
  EXPECT_THAT(job.out, HasSubstr("rank 1 has ended with exit code 3"));
}

TEST_F(Watch, NamesARankThatIsKilledAsRanksStart) {
  for (const int ms : {0, 250, 500}) {
    const Job job = watch({.signal = SIGKILL, .after_ms = ms});
    EXPECT_THAT(job.out, HasSubstr("code 137: ")) << ms << " ms";
    EXPECT_THAT(job.out, HasSubstr("signal 9 (Killed)")) << ms << " ms";
  }
}

TEST_F(Watch, EndsAJobWhoseRankIsStoppedAsItStarts) {
  for (const int ms : {0, 250}) {
    const Job job = watch({.stall = "6", .signal = SIGSTOP, .after_ms = ms});
    EXPECT_THAT(job.out, HasSubstr("rank 1 has")) << ms << " ms";
    EXPECT_THAT(job.out, HasSubstr("all ranks were ended")) << ms << " ms";
  }
}

TEST_F(Watch, EndsAJobWhoseRankIsStoppedAtWork) {
  const Job job = watch({.stall = "4", .signal = SIGSTOP});
  EXPECT_THAT(job.out, HasSubstr("rank 1 has given no sign of life"));
}

TEST_F(Watch, EndsWhatAKilledMpirunLeaves) {
  const Job job = watch({.signal = SIGKILL, .to = To::kMpirun});
  EXPECT_THAT(job.out, HasSubstr("mpirun was ended by signal 9 (Killed)"));
}

TEST_F(Watch, EndsWithTheLauncherThatIsKilled) {
  const Job job = watch({.signal = SIGKILL, .to = To::kFirst});
  EXPECT_EQ(job.exit_code, 128 + SIGKILL);
}

TEST_F(Watch, TellsRanksAtWorkOfAStop) {
  const Job job = watch({.signal = SIGINT, .to = To::kFirst});
  EXPECT_THAT(job.out, HasSubstr("code 5: ok\n"));
}

TEST_F(Watch, EndsRanksThatStartAtAStop) {
  const Job job = watch({.signal = SIGINT, .to = To::kFirst, .after_ms = 0});
  EXPECT_THAT(job.out, HasSubstr("code 0: cancelled: interrupted while ranks start"));
}

TEST_F(Watch, AProgramThatStartsNoRanksIsNoLauncher) {
  for (const char* const program : {"/bin/true", "/bin/false"}) {
    const Job job = watch({.mpirun = program});
    EXPECT_THAT(job.out, HasSubstr(std::string("'") + program + "' has ended with exit code"));
    EXPECT_THAT(job.out, HasSubstr("0 of 2 ranks have begun; name Open MPI's mpirun"));
  }
}

}  // namespace
}  // namespace eddy::test
