// Claim: eddy check prints what a campaign finds in text and JSON, with the shrunk graph and the
// one command that shows it again; the exit code is 1. A defect that ends the command in the middle
// is printed with the seed and the point, and progress is printed on the way.
#include <csignal>

#include <gtest/gtest.h>

#include "graph/base/sanitizers.h"
#include "tools/command/check_campaigns.h"
#include "tools/command/crash_report.h"

namespace eddy {
namespace {

struct Said {
  std::string out;
  Outcome outcome;
};

Said check(const CheckArguments& arguments, bool is_json = false) {
  Interrupts interrupts([] { std::abort(); });
  Console console(is_json);
  ::testing::internal::CaptureStdout();
  Outcome outcome = run_check(arguments, console, interrupts);
  return {::testing::internal::GetCapturedStdout(), std::move(outcome)};
}

// A planner that omits the last wait of each region.
CheckArguments with_lost_waits() {
  CheckArguments arguments;
  arguments.seeds = 40;
  arguments.first_seed = 7;
  arguments.plants.plan = [](const Graph&, Plan& plan) {
    for (Program::Block& block : plan.program.blocks) {
      const auto is_wait = [](const Program::Step& step) { return step.op == Program::Op::kWait; };
      auto& commands = block.steps;
      const auto last = std::ranges::find_if(commands.rbegin(), commands.rend(), is_wait);
      if (last != commands.rend()) commands.erase(std::prev(last.base()));
    }
  };
  return arguments;
}

CheckArguments with_forgotten_failures() {
  CheckArguments arguments;
  arguments.seeds = 3;
  arguments.first_seed = 20;
  arguments.faults = true;
  arguments.plants.faults.retell = [](Status) { return Status::ok(); };
  return arguments;
}

TEST(CheckViolation, IsReportedWithItsSmallestGraphAndTheCommandThatShowsItAgain) {
  const Said said = check(with_lost_waits());
  EXPECT_EQ(said.outcome.exit_code(), ExitCode::kDiffers);
  const std::string& message = said.outcome.status().message();
  EXPECT_EQ(message.find("3 violation(s); the first: "), 0u) << message;
  const size_t at = message.find("; see it again with: eddy check --seeds 1 --first-seed ");
  ASSERT_NE(at, std::string::npos) << message;
  const std::string command = message.substr(message.find("eddy check", at));
  EXPECT_NE(said.out.find("proof violation: "), std::string::npos) << said.out;
  EXPECT_NE(said.out.find("  again: " + command + "\n  shrunk to "), std::string::npos) << said.out;
}

TEST(CheckViolation, ShowsAgainBySeedAlone) {
  CheckArguments arguments = with_lost_waits();
  const Said first = check(arguments, /*is_json=*/true);
  const Json violation = Json::parse(first.out)["violations"][0];
  const std::string command = violation["command"];
  arguments.seeds = 1;
  arguments.first_seed = std::stoull(command.substr(command.rfind(' ')));
  const Json again = Json::parse(check(arguments, /*is_json=*/true).out)["violations"];
  ASSERT_EQ(again.size(), 1u);
  EXPECT_EQ(again[0], violation);
}

TEST(CheckViolation, OfFaultsNamesTheFaultAndItsPlace) {
  const Said text = check(with_forgotten_failures());
  EXPECT_NE(text.out.find("faults violation: kernel 1: the failure of '"), std::string::npos)
      << text.out;
  EXPECT_NE(text.out.find(" --faults\n  shrunk to "), std::string::npos) << text.out;
  const Said said = check(with_forgotten_failures(), /*is_json=*/true);
  EXPECT_EQ(said.outcome.exit_code(), ExitCode::kDiffers);
  const Json document = Json::parse(said.out);
  ASSERT_EQ(document["violations"].size(), 3u) << said.out;
  EXPECT_EQ(document["campaigns"]["faults"]["violations"], 3);
  for (const Json& violation : document["violations"]) {
    EXPECT_EQ(violation["campaign"], "faults");
    EXPECT_LE(violation["nodes"], 15);
    EXPECT_NE(violation["graph"], "");
  }
}

TEST(CheckViolation, ThatEndsTheProcessIsReportedWithSeedAndPoint) {
  if (EDDY_HAS_ASAN || EDDY_HAS_TSAN) GTEST_SKIP() << "sanitizers report signals themselves";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  CheckArguments arguments = with_forgotten_failures();
  arguments.plants.faults.retell = [](Status status) {
    EDDY_CHECK(status.is_ok()) << "planted";
    return status;
  };
  const auto die = [&] {
    report_signals_of_defects();
    (void)check(arguments);
  };
  EXPECT_EXIT(die(), testing::KilledBySignal(SIGABRT),
              "CHECK failed: status.is_ok.. planted\neddy: ended by SIGABRT while at: kernel 1 of "
              "eddy check --seeds 1 --first-seed 20 --faults\n");
  arguments.faults = false;
  arguments.plants.plan = [](const Graph&, Plan&) { std::abort(); };
  EXPECT_EXIT(die(), testing::KilledBySignal(SIGABRT),
              "while at: proof of eddy check --seeds 1 --first-seed 20\n");
}

TEST(CheckViolation, ProgressIsPrintedSparselyWhereThereIsNoTerminal) {
  const auto said = [](std::chrono::nanoseconds sparse) {
    Interrupts interrupts([] { std::abort(); });
    Console console(/*is_json=*/true, sparse);
    CheckArguments arguments;
    arguments.seeds = 2;
    arguments.first_seed = 20;
    arguments.faults = true;
    ::testing::internal::CaptureStdout();
    ::testing::internal::CaptureStderr();
    EXPECT_EQ(run_check(arguments, console, interrupts).exit_code(), ExitCode::kSuccess);
    EXPECT_EQ(Json::parse(::testing::internal::GetCapturedStdout())["graphs"], 2);
    return ::testing::internal::GetCapturedStderr();
  };
  EXPECT_EQ(said(std::chrono::nanoseconds(0)),
            "1 of 2 graphs, the last of seed 20\n2 of 2 graphs, the last of seed 21\n");
  EXPECT_EQ(said(std::chrono::hours(1)), "");
}

}  // namespace
}  // namespace eddy
