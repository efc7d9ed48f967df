// A run that would never end is ended by its deadline or by Ctrl-C, with exit code 5; Ctrl-\ prints
// the state of the run, which continues. A second Ctrl-C ends the command whatever it waits for.
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>
#include <chrono>
#include <csignal>
#include <thread>

#include <gtest/gtest.h>

#include "tests/tools/command/command_runner.h"

namespace eddy::test {
namespace {

std::vector<std::string> endless(const std::vector<std::string>& more) {
  const std::string path = write_test_file("count.onnx", counting_model());
  std::vector<std::string> arguments = {"run",   path,  "--set", "trip=9223372036854775807",
                                        "--set", "x=0", "--set", "limit=inf"};
  arguments.insert(arguments.end(), more.begin(), more.end());
  return arguments;
}

class Endless : public testing::TestWithParam<const char*> {};

TEST_P(Endless, PastItsDeadlineExits5) {
  const Finished run = run_eddy(endless({"--timeout", "0.2", "--loops", GetParam()}));
  EXPECT_EQ(run.exit_code, 5);
  EXPECT_TRUE(is_one_line(run.err)) << run.err;
  EXPECT_NE(run.err.find("deadline; give a larger --timeout"), std::string::npos) << run.err;
}

TEST_P(Endless, InterruptedDrainsAndExits5) {
  const Finished run = run_eddy(endless({"--json", "--loops", GetParam()}), {{SIGINT, 1000}});
  EXPECT_EQ(run.exit_code, 5);
  EXPECT_TRUE(is_one_line(run.err)) << run.err;
  EXPECT_EQ(run.json()["error"]["exit"], 5);
}

TEST_P(Endless, AskedWhereItStandsSaysSoAndGoesOn) {
  const Finished run = run_eddy(endless({"--loops", GetParam()}), {{SIGQUIT, 1000}, {SIGINT, 300}});
  EXPECT_EQ(run.exit_code, 5);
  EXPECT_NE(run.err.find("count["), std::string::npos) << run.err;
}

TEST_P(Endless, TerminatedIsTheSameAsInterrupted) {
  EXPECT_EQ(run_eddy(endless({"--loops", GetParam()}), {{SIGTERM, 1000}}).exit_code, 5);
}

// mpirun sends one to ranks that are ending already.
TEST_P(Endless, TerminatedRightBehindAnInterruptionStillDrains) {
  for (const int first : {SIGINT, SIGTERM}) {
    const Finished run = run_eddy(endless({"--loops", GetParam()}), {{first, 1000}, {SIGTERM, 1}});
    EXPECT_EQ(run.exit_code, 5);
    EXPECT_EQ(run.err.find("interrupted twice"), std::string::npos) << run.err;
    EXPECT_TRUE(is_one_line(run.err)) << run.err;
  }
}

// Its standard output is a pipe that is full and that nobody reads.
TEST(Interrupt, TwiceEndsACommandThatNobodyReads) {
  const std::string path = write_test_file("add.onnx", adding_model());
  int out[2], err[2];
  ASSERT_EQ(pipe(out), 0);
  ASSERT_EQ(pipe(err), 0);
  const pid_t child = fork();
  if (child == 0) {
    dup2(out[1], STDOUT_FILENO);
    dup2(err[1], STDERR_FILENO);
    alarm(60);
    execl("tools/command/eddy", "eddy", "run", path.c_str(), "--dim", "s7=200000",
          "--random-inputs", "1", "--json", nullptr);
    _exit(127);
  }
  close(err[1]);
  // Something is there to be read, and then more than the pipe holds.
  pollfd written = {out[0], POLLIN, 0};
  EXPECT_EQ(poll(&written, 1, 30'000), 1);
  std::this_thread::sleep_for(std::chrono::seconds(1));
  int status = 0;
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(waitpid(child, &status, WNOHANG), 0) << "it waits for its reader";
    kill(child, SIGINT);
    std::this_thread::sleep_for(std::chrono::milliseconds(500));
  }
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status));
  EXPECT_EQ(WEXITSTATUS(status), 5);
  for (const int file : {out[0], out[1], err[0]}) close(file);
}

INSTANTIATE_TEST_SUITE_P(Loops, Endless, testing::Values("device", "host"));

}  // namespace
}  // namespace eddy::test
