// A run that would never end is ended by its deadline or by Ctrl-C, with exit code 5; Ctrl-\ prints
// the state of the run, which continues.
#include <chrono>
#include <csignal>

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

INSTANTIATE_TEST_SUITE_P(Loops, Endless, testing::Values("device", "host"));

}  // namespace
}  // namespace eddy::test
