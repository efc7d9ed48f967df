// Claim: whatever fails, wherever, first or later, alone or with another fault: every run ends once
// with a status that holds the reason, nothing hangs, and nothing is left behind.
//
// EDDY_CHECK_SEEDS=N sweeps N graphs, EDDY_CHECK_FIRST=N starts there. Sanitized builds sweep 16 of
// the 200 by default.
#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "graph/base/sanitizers.h"
#include "tests/tools/check/mutants.h"
#include "tools/check/fault_campaign.h"

namespace eddy::check {
namespace {

uint64_t number(const char* variable, uint64_t otherwise) {
  const char* const text = std::getenv(variable);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

// Its sweep makes a session anew before a host function has to throw.
TEST(FaultTest, TheOracleIsNeverMadeToFail) {
  FaultOptions options;
  options.first_seed = 29;
  options.num_seeds = 1;
  const FaultReport report = run_faults(options);
  EXPECT_TRUE(report.violations.empty()) << report.violations[0].what;
  EXPECT_GT(report.fired[static_cast<size_t>(FaultKind::kHostFunction)], 0u);
}

TEST(FaultTest, AGraphIsSweptAlikeEachTime) {
  FaultOptions options;
  options.first_seed = 20;
  options.num_seeds = 8;  // every fourth with loops on the host
  const FaultReport once = run_faults(options);
  const FaultReport again = run_faults(options);
  EXPECT_EQ(once.num_points, again.num_points);
  for (size_t kind = 0; kind < kNumFaultKinds; ++kind) {
    EXPECT_EQ(once.fired[kind], again.fired[kind]) << fault_kind_name(static_cast<FaultKind>(kind));
  }
}

TEST(FaultTest, EveryFaultEndsItsRunAsItShould) {
  FaultOptions options;
  options.first_seed = number("EDDY_CHECK_FIRST", 20);
  options.num_seeds = number("EDDY_CHECK_SEEDS", EDDY_HAS_ASAN || EDDY_HAS_TSAN ? 16 : 200);
  const FaultReport report = run_faults(options);
  for (const FaultViolation& violation : report.violations) {
    ADD_FAILURE() << "EDDY_CHECK_FIRST=" << violation.seed
                  << " EDDY_CHECK_SEEDS=1: " << violation.faults << ": " << violation.what << "\n"
                  << violation.smallest.text;
  }
  EXPECT_GT(report.num_points, 20 * report.num_graphs);
  for (size_t kind = 0; kind < kNumFaultKinds && options.num_seeds >= 16; ++kind) {
    EXPECT_GT(report.fired[kind], 0u) << fault_kind_name(static_cast<FaultKind>(kind));
  }
  RecordProperty("points", static_cast<int>(report.num_points));
}

// Defects of a session, visible in its errors, or of its device.
struct Planted {
  const char* name;
  std::function<Status(Status)> retell = {};
  Mutation mutation = {};
  const char* what;  // the rule that it breaks
};

FaultReport sweep_planted(const Planted& planted) {
  std::vector<std::shared_ptr<VirtualDevice>> devices;  // outlive what leaks
  std::vector<BufferRef> leaked;
  std::vector<std::unique_ptr<Event>> leaked_events;
  Mutation mutation = planted.mutation;
  if (mutation.leak_to_or_null != nullptr) mutation.leak_to_or_null = &leaked;
  if (mutation.leak_events_to_or_null != nullptr) mutation.leak_events_to_or_null = &leaked_events;
  FaultOptions options;
  options.first_seed = 20;
  options.num_seeds = 8;
  options.max_violations = 1;
  options.patience = std::chrono::milliseconds(500);
  options.plants.retell = planted.retell;
  options.plants.wrap = [&](std::shared_ptr<VirtualDevice> device) -> std::shared_ptr<Device> {
    devices.push_back(device);
    return std::make_shared<MutantDevice>(std::move(device), mutation);
  };
  return run_faults(options);
}

TEST(FaultTest, EveryPlantedDefectBreaksARuleInASmallGraph) {
  std::vector<BufferRef> a_leak;
  std::vector<std::unique_ptr<Event>> an_event;
  const Planted kPlanted[] = {
      {.name = "a failure is forgotten",
       .retell = [](Status) { return Status::ok(); },
       .what = "is the end of 0 runs, not of one"},
      {.name = "a later error wins",
       .retell = [](Status) { return run_failed("of something else"); },
       .what = "is the end of 0 runs, not of one"},
      {.name = "an error has the code of another",
       .retell = [](Status error) { return cancelled(error.message()); },
       .what = "an unexpected status"},
      {.name = "an error names another node",
       .retell =
           [](Status error) {
             error.prepend_path("another");
             return error;
           },
       .what = "another' is named"},
      {.name = "the stop of a lost device is not looked at",
       .mutation = {.launch = LaunchBug::kStopIgnored},
       .what = "a run on a lost device ends with: ok"},
      {.name = "no run ends",
       .mutation = {.launch = LaunchBug::kNeverCompletes},
       .what = "the run hangs: "},
      {.name = "a run among others never ends",
       .mutation = {.launch = LaunchBug::kNeverCompletes, .n = 1},
       .what = "a run hangs:"},
      {.name = "memory stays",
       .mutation = {.leak_to_or_null = &a_leak},
       .what = "bytes are still in use"},
      {.name = "an event stays",
       .mutation = {.leak_events_to_or_null = &an_event},
       .what = "events or gates are left"},
      {.name = "a lost device says that it is well",
       .mutation = {.hides_loss = true},
       .what = "an unexpected status"},
  };
  for (const Planted& planted : kPlanted) {
    const FaultReport report = sweep_planted(planted);
    ASSERT_EQ(report.violations.size(), 1u) << planted.name;
    const FaultViolation& violation = report.violations[0];
    EXPECT_NE(violation.what.find(planted.what), std::string::npos)
        << planted.name << ": " << violation.what;
    EXPECT_FALSE(violation.smallest.text.empty()) << planted.name;
    EXPECT_LE(violation.smallest.num_nodes, 15u) << planted.name << violation.smallest.text;
    std::printf("%-42s noticed at %s in %zu nodes: %s\n", planted.name, violation.faults.c_str(),
                violation.smallest.num_nodes, violation.what.substr(0, 100).c_str());
  }
}

TEST(FaultTest, AStepBehindTheEndOfItsRunBreaksARule) {
  FaultPointOptions options;
  options.plants.wrap = [](std::shared_ptr<VirtualDevice> device) -> std::shared_ptr<Device> {
    return std::make_shared<MutantDevice>(std::move(device),
                                          Mutation{.launch = LaunchBug::kStopIgnored});
  };
  for (const FaultKind kind : {FaultKind::kCancel, FaultKind::kDeadline}) {
    FaultPoint point(make_recipe(20, FaultOptions::fault_graphs()), options);
    std::string text;
    for (uint64_t kth = 1; text.empty(); ++kth) {
      text = point.run({{kind, kth}});
      ASSERT_TRUE(!text.empty() || point.has_fired()) << fault_kind_name(kind);
    }
    EXPECT_NE(text.find("starts after its run was decided"), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace eddy::check
