// Claim: the virtual device keeps every device's promises under every policy, repeats itself, names
// what waits for what, and fails where a plan of faults wants it.
#include "runtime/virtual/virtual_device.h"

#include <atomic>
#include <set>
#include <thread>

#include "tests/runtime/device/strand_conformance.h"
#include "tests/runtime/device/conformance.h"

namespace eddy::testing {
namespace {

class TestedVirtualDevice : public TestedDevice {
 public:
  using TestedDevice::TestedDevice;
  void progress() override { device().poll(); }
};

template <SchedulePolicy policy>
std::unique_ptr<TestedDevice> make_virtual() {
  VirtualDeviceOptions options;
  options.engine.order = {.policy = policy, .seed = 11};
  return std::make_unique<TestedVirtualDevice>(std::make_unique<VirtualDevice>(options));
}

const auto kDevices =
    ::testing::Values(make_virtual<SchedulePolicy::kUniform>, make_virtual<SchedulePolicy::kPct>,
                      make_virtual<SchedulePolicy::kStarve>, make_virtual<SchedulePolicy::kLate>,
                      make_virtual<SchedulePolicy::kEarly>);
INSTANTIATE_TEST_SUITE_P(Virtual, DeviceConformance, kDevices);
INSTANTIATE_TEST_SUITE_P(Virtual, StrandConformance, kDevices);

// Appends its letter to a text.
struct Letter {
  std::string* text;
  char letter;
  static bool write(void* self) {
    auto& letter = *static_cast<Letter*>(self);
    *letter.text += letter.letter;
    return true;
  }
};

class VirtualDeviceTest : public ::testing::Test {
 protected:
  void make(VirtualEngineOptions engine) {
    engine.faults_or_null = &faults_;
    device_ = std::make_unique<VirtualDevice>(VirtualDeviceOptions{.engine = std::move(engine)});
  }
  void run_all() {
    while (device_->poll()) {
    }
  }
  // Two streams of four letters each.
  std::string order_of(VirtualEngineOptions engine) {
    make(std::move(engine));
    std::string text;
    Letter a{&text, 'a'}, b{&text, 'b'};
    {
      auto first = std::move(*device_->create_stream());
      auto second = std::move(*device_->create_stream());
      for (int i = 0; i < 4; ++i) {
        first->launch({Letter::write, &a});
        second->launch({Letter::write, &b});
      }
      run_all();
    }
    return text;
  }

  FaultPlan faults_;
  std::unique_ptr<VirtualDevice> device_;
};

TEST_F(VirtualDeviceTest, TheSeedIsTheOrder) {
  std::set<std::string> orders;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    const VirtualEngineOptions engine{.order = {.seed = seed}};
    const std::string order = order_of(engine);
    EXPECT_EQ(order, order_of(engine));
    orders.insert(order);
  }
  EXPECT_GT(orders.size(), 20u);
  EXPECT_EQ(order_of({.order = {.policy = SchedulePolicy::kLate}}), "aaaabbbb");
  EXPECT_EQ(order_of({.order = {.policy = SchedulePolicy::kEarly}}), "bbbbaaaa");
}

TEST_F(VirtualDeviceTest, NothingRunsUntilItIsPolledAndTimeCountsSteps) {
  make({});
  std::string text;
  Letter a{&text, 'a'};
  auto stream = std::move(*device_->create_stream());
  stream->launch({Letter::write, &a});
  EXPECT_EQ(text, "");
  EXPECT_EQ(device_->now(), 0u);
  EXPECT_TRUE(device_->poll());
  EXPECT_FALSE(device_->poll());
  EXPECT_EQ(text, "a");
  EXPECT_EQ(device_->now(), 1u);
}

TEST_F(VirtualDeviceTest, TheWaitGraphSaysWhoWaitsForWhat) {
  make({});
  auto first = std::move(*device_->create_stream());
  auto second = std::move(*device_->create_stream());
  auto event = std::move(*device_->create_event());
  auto gate = std::move(*device_->create_gate());
  first->hold(gate);
  first->record(*event);
  second->wait(*event);
  run_all();
  EXPECT_EQ(device_->wait_graph(),
            "  stream 1 waits for a gate, with 1 commands behind it\n"
            "  stream 2 waits for record 1 of event 1, with 0 commands behind it\n");
  gate->open();
  run_all();
  EXPECT_EQ(device_->wait_graph(), "");
}

class DeadlockTest : public VirtualDeviceTest {
 protected:
  RunControl control_;
};

TEST_F(DeadlockTest, StrandsThatWaitForEachOtherFailTheirRunWithTheWaitGraph) {
  make({});
  testing::StrandBuilder commands;
  const uint32_t left = commands.add_event();
  const uint32_t right = commands.add_event();
  commands.begin_fork(testing::StrandBuilder::kNewStream);
  commands.wait(left);
  commands.record(right);
  commands.end_fork();
  commands.wait(right);
  commands.record(left);
  commands.finish();
  const auto runner =
      device_->create_runner_or_null(commands.code(), commands.bindings());
  runner->start(control_);
  run_all();
  EXPECT_EQ(control_.stop, StopReason::kFailed);
  EXPECT_EQ(control_.error.code(), StatusCode::kInternal);
  EXPECT_EQ(control_.error.message(),
            "the run can never end: strand 0 waits for event 1, which strand 1 records; strand 1 "
            "waits for event 0, which strand 0 records");
  EXPECT_EQ(device_->violations().size(), 1u);
}

TEST_F(DeadlockTest, AWaitThatNobodyRecordsIsOneToo) {
  make({});
  testing::StrandBuilder commands;
  commands.wait(commands.add_event());
  commands.finish();
  const auto runner =
      device_->create_runner_or_null(commands.code(), commands.bindings());
  runner->start(control_);
  run_all();
  EXPECT_EQ(control_.error.message(),
            "the run can never end: strand 0 waits for event 0, which nobody records");
}

TEST_F(VirtualDeviceTest, BrokenRulesOfTheSeamAreKept) {
  make({.order = {.policy = SchedulePolicy::kLate}});
  RunControl control;
  testing::StrandBuilder commands;
  const uint32_t event = commands.add_event();
  commands.record(event);
  commands.record(event);
  commands.finish();
  const auto runner =
      device_->create_runner_or_null(commands.code(), commands.bindings());
  runner->start(control);
  run_all();
  ASSERT_EQ(device_->violations().size(), 1u);
  EXPECT_EQ(device_->violations()[0], "event 0 is recorded twice in one round");
  EXPECT_FALSE(control.is_stopped());
}

TEST_F(VirtualDeviceTest, ARefusedCommandLosesTheDeviceAndHealthSaysWhy) {
  make({});
  faults_.arm({{FaultKind::kEnqueue, 2}});
  std::string text;
  Letter a{&text, 'a'};
  auto stream = std::move(*device_->create_stream());
  EXPECT_TRUE(stream->launch({Letter::write, &a}));
  EXPECT_FALSE(stream->launch({Letter::write, &a}));
  EXPECT_EQ(device_->health().code(), StatusCode::kDeviceLost);
  run_all();
  EXPECT_EQ(text, "") << "a lost device drops what is queued";
  EXPECT_TRUE(stream->is_idle());
  EXPECT_FALSE(device_->create_event().is_ok());
}

// A polling thread may still be inside a poll when the next faults are armed.
TEST_F(VirtualDeviceTest, FaultsMayBeArmedWhileTheDeviceAsks) {
  constexpr uint64_t kQuestions = 20'000;
  std::atomic<bool> has_begun{false};
  std::thread asker([&] {
    for (uint64_t i = 0; i < kQuestions; ++i) {
      faults_.should_fail(FaultKind::kLoseDevice);
      has_begun = true;
    }
  });
  while (!has_begun) std::this_thread::yield();
  for (int i = 0; i < 1000; ++i) faults_.arm({{FaultKind::kLoseDevice, 1}, {FaultKind::kWait, 1}});
  asker.join();
  EXPECT_LT(faults_.count(FaultKind::kLoseDevice), kQuestions) << "arming counts anew";
  EXPECT_LE(faults_.num_fired(), 1u);
  EXPECT_TRUE(faults_.should_fail(FaultKind::kWait));
}

TEST_F(VirtualDeviceTest, LosingTheDeviceReleasesEverybodyWhoWaits) {
  make({});
  faults_.arm({{FaultKind::kLoseDevice, 2}});
  auto first = std::move(*device_->create_stream());
  auto second = std::move(*device_->create_stream());
  auto event = std::move(*device_->create_event());
  auto gate = std::move(*device_->create_gate());
  first->hold(gate);
  first->record(*event);
  second->wait(*event);
  std::string text;
  Letter a{&text, 'a'};
  second->launch({Letter::write, &a});
  run_all();
  EXPECT_TRUE(first->is_idle());
  EXPECT_TRUE(second->is_idle());
  EXPECT_EQ(text, "");
  EXPECT_EQ(device_->health().code(), StatusCode::kDeviceLost);
}

TEST_F(VirtualDeviceTest, MemoryHoldsAPatternUntilItIsWritten) {
  make({});
  faults_.arm({{FaultKind::kAllocation, 2}});
  auto buffer = device_->allocator().allocate(64);
  ASSERT_TRUE(buffer.is_ok());
  for (size_t i = 0; i < 64; ++i) {
    EXPECT_EQ(static_cast<const unsigned char*>(buffer->data())[i], 0xa5);
  }
  const auto none = device_->allocator().allocate(64);
  ASSERT_FALSE(none.is_ok());
  EXPECT_EQ(none.status().code(), StatusCode::kResourceExhausted);
  EXPECT_TRUE(device_->allocator().allocate(64).is_ok());
}

}  // namespace
}  // namespace eddy::testing
