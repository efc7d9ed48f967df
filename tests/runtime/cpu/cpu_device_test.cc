// Claim: the CPU device keeps every device's promises, its command buffers decide loops and
// branches by themselves, and its streams run what they hold before they go, on one worker too.
#include "runtime/cpu/cpu_device.h"

#include "graph/base/random.h"
#include "tests/runtime/device/conformance.h"
#include "tests/runtime/device/strand_conformance.h"

namespace eddy::testing {
namespace {

std::unique_ptr<TestedDevice> make_two_workers() {
  return std::make_unique<TestedDevice>(
      std::make_unique<CpuDevice>(CpuDeviceOptions{.num_threads = 2, .memory_limit_bytes = 0}));
}

std::unique_ptr<TestedDevice> make_one_worker() {
  return std::make_unique<TestedDevice>(
      std::make_unique<CpuDevice>(CpuDeviceOptions{.num_threads = 1, .memory_limit_bytes = 0}));
}

INSTANTIATE_TEST_SUITE_P(Cpu, DeviceConformance,
                         ::testing::Values(make_two_workers, make_one_worker));
INSTANTIATE_TEST_SUITE_P(Cpu, StrandConformance,
                         ::testing::Values(make_two_workers, make_one_worker));

bool count_up(void* count) {
  ++*static_cast<std::atomic<int>*>(count);
  return true;
}

TEST(CpuStreamTest, AStreamRunsWhatItHoldsBeforeItGoes) {
  for (const int num_threads : {1, 2}) {
    CpuDevice device({.num_threads = num_threads, .memory_limit_bytes = 0});
    Random random(20261122);
    for (int round = 0; round < 300; ++round) {
      std::atomic<int> count{0};
      const Work work{count_up, &count, false};
      auto first = std::move(*device.create_stream());
      auto second = std::move(*device.create_stream());
      auto event = std::move(*device.create_event());
      const auto num_works = static_cast<int>(random.below(100));
      for (int i = 0; i < num_works; ++i) first->launch(work);
      first->record(*event);
      second->wait(*event);
      second->launch(work);
      first.reset();  // the wait of the second is over then, its work is not
      EXPECT_GE(count, num_works) << "workers: " << num_threads << ", round " << round;
      second.reset();
      EXPECT_EQ(count, num_works + 1) << "workers: " << num_threads << ", round " << round;
    }
  }
}

TEST(CpuStreamTest, AStreamGivesWayToOthersThatWaitForItsWorker) {
  struct Works {
    std::atomic<bool> may_begin{false};
    std::atomic<int> num_run{0};
    std::atomic<int> seen{-1};
  } works;
  const Work slow{[](void* context) {
                    auto& self = *static_cast<Works*>(context);
                    while (!self.may_begin) std::this_thread::yield();
                    std::this_thread::sleep_for(std::chrono::milliseconds(1));
                    ++self.num_run;
                    return true;
                  },
                  &works, false};
  const Work look{[](void* context) {
                    auto& self = *static_cast<Works*>(context);
                    self.seen = self.num_run.load();
                    return true;
                  },
                  &works, false};
  CpuDevice device({.num_threads = 1, .memory_limit_bytes = 0});
  auto first = std::move(*device.create_stream());
  auto second = std::move(*device.create_stream());
  for (int i = 0; i < 30; ++i) first->launch(slow);
  second->launch(look);
  works.may_begin = true;
  first.reset();
  second.reset();
  EXPECT_EQ(works.num_run, 30);
  EXPECT_LE(works.seen, 2);
}

}  // namespace
}  // namespace eddy::testing
