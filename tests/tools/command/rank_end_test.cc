// Claim: a job ends with one line and one code, whatever ends it: a rank that is killed, stopped or
// crashes, at any time, mpirun or the command itself, a deadline, or standard output that takes no
// more. With --json there is one document, with that code; and no process is left.
#include <csignal>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/base/sanitizers.h"
#include "tests/runtime/mpi/job.h"
#include "tests/tools/command/command_runner.h"
#include "tests/tools/command/rank_jobs.h"
#include "tests/tools/command/rank_models.h"

namespace eddy::test {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

using To = JobRequest::To;
using RankEnd = RankRun;

struct Ending {
  uint32_t num_ranks = 2;
  int signal = 0;
  To to = To::kRank;
  std::chrono::milliseconds after{1500};
  uint32_t rank = 1;
  int then = 0;  // a signal to the first process
  bool starts_itself = true;
};

// Never ends by itself; one process gets a signal in the midst of it, or while it starts.
Job endless(const Ending& ending, std::vector<std::string> options = {}) {
  const std::string path = write_test_file("endless.onnx", halving_model(false, 2));
  std::vector<std::string> arguments = {"run",   path,  "--ranks", std::to_string(ending.num_ranks),
                                        "--set", "x=64"};
  arguments.insert(arguments.end(), options.begin(), options.end());
  const Job job = run_job({.num_ranks = ending.num_ranks,
                           .program = kCommand,
                           .arguments = std::move(arguments),
                           .starts_itself = ending.starts_itself,
                           .signal = ending.signal,
                           .signal_to = ending.to,
                           .signal_rank = ending.rank,
                           .signal_after = ending.after,
                           .then_signal = ending.then,
                           .limit = std::chrono::seconds(25)});
  EXPECT_FALSE(job.is_late) << job.err;
  EXPECT_EQ(job.num_left, 0) << job.err;
  return job;
}

TEST_F(RankEnd, ARankThatIsKilledIsNamedAndEndsAllOfThem) {
  const Job job = endless({.signal = SIGKILL});
  expect_one_line(job, 128 + SIGKILL, {"rank 1 was ended by signal 9 (Killed)"});
  EXPECT_LT(job.seconds, 1.5 + 3) << "it ends within three seconds";
}

TEST_F(RankEnd, ARankThatIsStoppedIsLostAndEndsTheJob) {
  const Job job = endless({.signal = SIGSTOP}, {"--stall", "2"});
  EXPECT_EQ(job.exit_code, 4) << job.err;
  EXPECT_THAT(job.err, HasSubstr("rank 0: "));
  EXPECT_THAT(job.err, HasSubstr("rank 1"));
}

// As the system has just made it, as MPI starts, as the session is made.
TEST_F(RankEnd, ARankThatIsStoppedWhileRanksStartEndsTheJob) {
  for (const int ms : {20, 200, 400, 600}) {
    const Job job =
        endless({.signal = SIGSTOP, .after = std::chrono::milliseconds(ms)}, {"--stall", "3"});
    EXPECT_EQ(job.exit_code, 4) << ms << " ms: " << job.err;
    EXPECT_THAT(job.err, HasSubstr("rank 1 has")) << ms << " ms";
  }
}

// Nobody watches but the ranks themselves.
TEST_F(RankEnd, UnderAnotherMpirunTheOthersMissARankThatIsStoppedWhileRanksStart) {
  for (const int ms : {20, 200, 400, 600}) {
    const Job job =
        endless({.signal = SIGSTOP, .after = std::chrono::milliseconds(ms), .starts_itself = false},
                {"--stall", "3"});
    EXPECT_EQ(job.exit_code, 4) << ms << " ms: " << job.err;
    EXPECT_THAT(job.err, HasSubstr("rank 0: ")) << ms << " ms";
    EXPECT_THAT(job.err, HasSubstr("rank 1 has")) << ms << " ms";
    EXPECT_LT(job.seconds, 15) << ms << " ms";
  }
}

TEST_F(RankEnd, ARankThatIsKilledWhileRanksStartEndsTheJob) {
  for (const int ms : {20, 200, 400, 600}) {
    const Job job = endless({.signal = SIGKILL, .after = std::chrono::milliseconds(ms)});
    EXPECT_EQ(job.exit_code, 128 + SIGKILL) << ms << " ms: " << job.err;
    EXPECT_THAT(job.err, HasSubstr("signal 9 (Killed)")) << ms << " ms";
    EXPECT_TRUE(is_one_line(job.err)) << ms << " ms: " << job.err;
  }
}

TEST_F(RankEnd, AnMpirunThatIsKilledLeavesNothing) {
  const Job job = endless({.signal = SIGKILL, .to = To::kMpirun});
  EXPECT_EQ(job.exit_code, 4) << job.err;
  EXPECT_THAT(job.err, HasSubstr("mpirun was ended by signal 9 (Killed)"));
  EXPECT_EQ(job.files_left, std::vector<std::string>());
}

TEST_F(RankEnd, ARankThatIsInterruptedStopsAllOfThem) {
  const Job job = endless({.signal = SIGTERM});
  EXPECT_EQ(job.exit_code, 5) << job.err;
  EXPECT_TRUE(is_one_line(job.err)) << job.err;
}

TEST_F(RankEnd, AnInterruptedCommandEndsWithTheCodeOfACancel) {
  for (const int ms : {150, 1500}) {
    const Job job =
        endless({.signal = SIGINT, .to = To::kFirst, .after = std::chrono::milliseconds(ms)});
    EXPECT_EQ(job.exit_code, 5) << ms << " ms: " << job.err;
    EXPECT_TRUE(is_one_line(job.err)) << ms << " ms: " << job.err;
  }
}

// The code of a document is the command's.
void expect_document(const Job& job, int exit_code, const std::string& message) {
  const json document = json::parse(job.out, nullptr, false);
  ASSERT_FALSE(document.is_discarded()) << job.out;
  EXPECT_EQ(job.exit_code, exit_code) << job.err;
  EXPECT_EQ(document["error"]["exit"], exit_code) << document;
  EXPECT_THAT(document["error"]["message"], HasSubstr(message));
  EXPECT_TRUE(is_one_line(job.err)) << job.err;
}

TEST_F(RankEnd, ADocumentHasTheCommandsCode) {
  expect_document(endless({.signal = SIGKILL}, {"--json"}), 128 + SIGKILL,
                  "rank 1 was ended by signal 9");
  expect_document(endless({.signal = SIGTERM}, {"--json"}), 5, "cancelled");
  for (const int signal : {SIGTERM, SIGINT}) {
    expect_document(endless({.signal = signal, .to = To::kMpirun}, {"--json"}), 5, "cancelled");
  }
  expect_document(endless({.signal = SIGKILL, .to = To::kMpirun}, {"--json"}), 4,
                  "mpirun was ended by signal 9");
}

TEST_F(RankEnd, ARankThatCrashesSaysSoItselfAndEndsTheJobAtOnce) {
  if (EDDY_HAS_ASAN || EDDY_HAS_TSAN) GTEST_SKIP() << "sanitizers report signals themselves";
  const Job job = endless({.signal = SIGSEGV}, {"--json"});
  expect_document(job, 128 + SIGSEGV, "standard error has its reason");
  EXPECT_EQ(job.err, "eddy: rank 1: ended by SIGSEGV\n");
  const Job of_root = endless({.signal = SIGABRT, .rank = 0}, {"--json"});
  expect_document(of_root, 128 + SIGABRT, "ended by SIGABRT");
  EXPECT_EQ(of_root.err, "eddy: rank 0: ended by SIGABRT\n");
}

TEST_F(RankEnd, AnInterruptDoesNotWaitForARankThatIsStopped) {
  const Job job = endless({.signal = SIGSTOP, .then = SIGINT});
  EXPECT_LT(job.seconds, 15) << "not the 30 s after which ranks miss it";
  expect_one_line(job, 5, {"interrupted; rank 1 has given no sign of life for "});
}

TEST_F(RankEnd, WhereMpirunPassesOnNothingTheCommandSaysSo) {
  const Job job = endless({.signal = SIGSTOP, .to = To::kMpirun, .then = SIGINT}, {"--json"});
  expect_document(job, 5, "a rank has ended with exit code 5, and mpirun has passed on no reason");
}

TEST_F(RankEnd, UnderAnotherMpirunOneRankNamesTheOneThatWasKilled) {
  for (const uint32_t num_ranks : {2, 3}) {
    const Job job = endless({.num_ranks = num_ranks, .signal = SIGKILL, .starts_itself = false});
    EXPECT_EQ(job.exit_code, 128 + SIGKILL);
    EXPECT_TRUE(is_one_line(job.err)) << job.err;
    EXPECT_THAT(job.err, HasSubstr("rank 0: rank 1 has ended without a word"));
  }
}

TEST_F(RankEnd, HelpThatIsLostIsAFailure) {
  const Job job = run_job(
      {.program = kCommand, .arguments = {"--help"}, .starts_itself = true, .out = "/dev/full"});
  expect_one_line(job, 4, {"cannot write to standard output"});
}

TEST_F(RankEnd, StandardOutputThatTakesNoMoreIsAFailureAsOfOneProcess) {
  const std::string path = write_test_file("sum.onnx", summing_model());
  for (const char* const out : {"/dev/full", JobRequest::kClosed}) {
    const Job job = run_job({.program = kCommand,
                             .arguments = {"run", path, "--ranks", "2", "--set", "x=1"},
                             .starts_itself = true,
                             .out = out});
    expect_one_line(job, 4, {"cannot write to standard output"});
    EXPECT_EQ(job.num_left, 0);
  }
}

TEST_F(RankEnd, ADeadlineStopsAllOfThem) {
  const Job job = endless({}, {"--timeout", "2"});
  EXPECT_EQ(job.exit_code, 5) << job.err;
  EXPECT_TRUE(is_one_line(job.err)) << job.err;
  EXPECT_THAT(job.err, HasSubstr("deadline"));
}

}  // namespace
}  // namespace eddy::test
