// Claim: on a virtual device with ThreadSanitizer's fibers as lanes, ThreadSanitizer reports a
// missing record, wait or fork as a data race, and reports none where they order the accesses.
#include "tests/runtime/virtual/tsan_lanes.h"

#include <gtest/gtest.h>

#include <cstdlib>

#include "runtime/virtual/virtual_device.h"
#include "tests/runtime/device/strand_builder.h"

namespace eddy {
namespace {

bool add_one(void* counter) {
  volatile int& number = *static_cast<int*>(counter);
  number = number + 1;
  return true;
}

class TsanLanesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    lanes_ = TsanLanes::make_or_null();
    if (lanes_ == nullptr) GTEST_SKIP() << "needs the tsan config";
    device_ = std::make_unique<VirtualDevice>(VirtualDeviceOptions{
        .engine = {.watcher_or_null = lanes_.get(), .runner_or_null = lanes_.get()}});
  }

  // Two streams change one number; `waits`: the second behind the first.
  void use_streams(bool waits) {
    auto first = std::move(*device_->create_stream());
    auto second = std::move(*device_->create_stream());
    auto event = std::move(*device_->create_event());
    first->launch({add_one, &number_});
    first->record(*event);
    if (waits) second->wait(*event);
    second->launch({add_one, &number_});
    finish();
    while (!first->is_idle() || !second->is_idle()) device_->poll();
  }

  // A fork and its parent do. `waits`: the parent, for what the fork records.
  void use_strands(bool waits) {
    testing::StrandBuilder commands;
    const uint32_t event = commands.add_event();
    commands.launch(add_one, &number_);
    commands.begin_fork(testing::StrandBuilder::kNewStream);
    commands.launch(add_one, &number_);
    commands.record(event);
    commands.end_fork();
    if (waits) commands.wait(event);
    commands.launch(add_one, &number_);
    if (!waits) commands.wait(event);
    commands.finish();
    const auto runner = device_->create_runner_or_null(commands.code(), commands.bindings());
    RunControl control;
    control.context = this;
    control.on_complete = [](void* self) { static_cast<TsanLanesTest*>(self)->is_done_ = true; };
    runner->start(control);
    while (!is_done_) device_->poll();
    EXPECT_EQ(number_, 3);
  }

  void finish() {
    while (device_->poll()) {
    }
  }

  std::unique_ptr<TsanLanes> lanes_;
  std::unique_ptr<VirtualDevice> device_;
  int number_ = 0;
  bool is_done_ = false;
};

TEST_F(TsanLanesTest, AWaitOrdersTwoStreams) {
  use_streams(true);
  EXPECT_EQ(number_, 2);  // and the host behind both, once it has seen them idle
}

TEST_F(TsanLanesTest, AForkAndAWaitOrderTwoStrands) { use_strands(true); }

TEST_F(TsanLanesTest, AMissingWaitBetweenStreamsIsReported) {
  EXPECT_EXIT((use_streams(false), std::exit(0)), ::testing::ExitedWithCode(66), "data race");
}

TEST_F(TsanLanesTest, AWaitThatComesTooLateIsReported) {
  EXPECT_EXIT((use_strands(false), std::exit(0)), ::testing::ExitedWithCode(66), "data race");
}

TEST_F(TsanLanesTest, AHostThatHasNotSeenTheEndIsReported) {
  EXPECT_EXIT(
      {
        auto stream = std::move(*device_->create_stream());
        stream->launch({add_one, &number_});
        finish();
        add_one(&number_);
        while (!stream->is_idle()) device_->poll();
        std::exit(0);
      },
      ::testing::ExitedWithCode(66), "data race");
}

}  // namespace
}  // namespace eddy
