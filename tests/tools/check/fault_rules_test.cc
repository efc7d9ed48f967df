// Claim: a run may end with the first error that is known to have met it, and with no other.
#include "tools/check/fault_rules.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace eddy::check {
namespace {

class FaultRulesTest : public ::testing::Test {
 protected:
  void fire(std::vector<Fault> faults) {
    plan_.arm(faults);
    rules_.arm(faults);
    for (const Fault& fault : faults) ASSERT_TRUE(plan_.should_fail(fault.kind));
  }
  static Status at(std::string path, Status status) {
    status.prepend_path(path);
    return status;
  }

  FaultPlan plan_;
  FaultRules rules_{plan_};
};

TEST_F(FaultRulesTest, AFaultThatIsArmedAndHasNotFiredExplainsNothing) {
  const std::vector<Fault> faults = {{FaultKind::kAllocation, 1}, {FaultKind::kCancel, 1}};
  plan_.arm(faults);
  rules_.arm(faults);
  EXPECT_NE(rules_.check_error(cancelled("by its owner")), "");
  ASSERT_TRUE(plan_.should_fail(FaultKind::kCancel));
  EXPECT_EQ(rules_.check_error(cancelled("by its owner")), "");
  EXPECT_NE(rules_.check_error(resource_exhausted("no memory")), "");
}

TEST_F(FaultRulesTest, OneRunEndsWithAnInjectedFailureAndNamesItsNode) {
  fire({{FaultKind::kKernel, 1}});
  const Status told = at("loop[3]/add", run_failed("told to fail " + rules_.inject("loop[3]/add")));
  const Status elsewhere = at("loop[2]/add", Status(told.code(), told.message()));
  EXPECT_EQ(rules_.check_runs(std::vector<Status>{Status::ok(), told}), "");
  EXPECT_NE(rules_.check_runs(std::vector<Status>{Status::ok(), Status::ok()}), "");
  EXPECT_NE(rules_.check_runs(std::vector<Status>{told, told}), "");
  EXPECT_NE(rules_.check_runs(std::vector<Status>{elsewhere, Status::ok()}), "");
}

TEST_F(FaultRulesTest, TheRunThatIsStoppedFirstEndsAsStopped) {
  fire({{FaultKind::kCancel, 1}});
  rules_.stop_run(0, FaultKind::kCancel);
  const Status late = deadline_exceeded("too late");
  EXPECT_EQ(rules_.check_runs(std::vector<Status>{cancelled("told"), late}), "");
  EXPECT_EQ(rules_.check_runs(std::vector<Status>{Status::ok(), late}), "");
  EXPECT_NE(rules_.check_runs(std::vector<Status>{late, cancelled("told")}), "");
}

TEST_F(FaultRulesTest, ARunThatIsStoppedLaterMayHaveEndedOtherwise) {
  fire({{FaultKind::kKillLane, 1}, {FaultKind::kCancel, 1}});
  rules_.stop_run(0, FaultKind::kCancel);
  EXPECT_EQ(rules_.check_runs(std::vector<Status>{device_lost("dead"), Status::ok()}), "");
}

TEST_F(FaultRulesTest, WhatFailsInsideANodeNamesANode) {
  for (const FaultKind kind :
       {FaultKind::kKernel, FaultKind::kPredicate, FaultKind::kHostFunction}) {
    fire({{kind, 1}});
    EXPECT_EQ(rules_.check_error(at("add", run_failed("told to"))), "") << fault_kind_name(kind);
    EXPECT_NE(rules_.check_error(run_failed("told to")), "") << fault_kind_name(kind);
  }
  fire({{FaultKind::kKernel, 1}, {FaultKind::kAllocation, 1}});  // which is outside of nodes, too
  EXPECT_EQ(rules_.check_error(resource_exhausted("no memory")), "");
}

TEST_F(FaultRulesTest, AnErrorSaysSomething) {
  fire({{FaultKind::kCancel, 1}});
  EXPECT_NE(rules_.check_error(cancelled("")), "");
}

TEST_F(FaultRulesTest, OnlyWhatMeetsADeviceAllRunsOrTheSchedulerMayEndOthers) {
  const std::vector<FaultKind> kMay = {
      FaultKind::kEnqueue,    FaultKind::kRecord, FaultKind::kWait, FaultKind::kKillLane,
      FaultKind::kLoseDevice, FaultKind::kCancel, FaultKind::kStack};
  for (size_t i = 0; i < kNumFaultKinds; ++i) {
    const auto kind = static_cast<FaultKind>(i);
    rules_.arm({{kind, 1}});
    EXPECT_EQ(rules_.may_end_others(), std::ranges::count(kMay, kind) == 1)
        << fault_kind_name(kind);
  }
  rules_.arm({});
  EXPECT_FALSE(rules_.may_end_others());
}

TEST_F(FaultRulesTest, TooFewStacksExplainARunThatFindsNone) {
  rules_.arm({{FaultKind::kStack, 3}});
  EXPECT_EQ(rules_.check_error(resource_exhausted("no stack")), "");
  EXPECT_NE(rules_.check_error(cancelled("why")), "");
}

}  // namespace
}  // namespace eddy::check
