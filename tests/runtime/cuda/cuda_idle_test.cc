// Claim: a scheduler that polls a GPU sleeps when the GPU has nothing to do, wakes at once when it is
// given something, and naps while it waits for a long kernel.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <time.h>

#include <chrono>
#include <thread>

#include "runtime/coroutine/scheduler.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/execute/await.h"
#include "tests/runtime/cuda/fake_calls.h"

namespace eddy::testing {
namespace {

using namespace std::chrono_literals;

// Processor time of all threads; the caller's own sleeps cost none.
std::chrono::nanoseconds used() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return std::chrono::seconds(time.tv_sec) + std::chrono::nanoseconds(time.tv_nsec);
}

class CudaIdleTest : public ::testing::TestWithParam<bool> {
 protected:
  CudaIdleTest() {
    poller_ = scheduler_.add_poller([this] { return device_->poll(); },
                                    [this] { return device_->wants_polling(); });
    device_->add_waker(this, [this] { scheduler_.poke(); });
  }
  ~CudaIdleTest() override {
    scheduler_.remove_poller(poller_);
    device_->remove_waker(this);
  }

  FakeCuda fake_{{.has_memory_words = GetParam()}};
  std::unique_ptr<CudaDevice> device_ = std::move(*CudaDevice::create(fake_.api(), {}));
  Scheduler scheduler_;
  PollerId poller_{};
};

TEST_P(CudaIdleTest, AnIdleGpuCostsNothing) {
  auto stream = std::move(*device_->create_stream());
  FakeCalls calls(fake_, *device_);
  bool has_run = false;
  ASSERT_TRUE(stream->launch(calls.work(*stream, [&] { return has_run = true; })));
  fake_.run_all();
  std::this_thread::sleep_for(20ms);  // until all of it has been heard of
  fake_.run_all();
  std::this_thread::sleep_for(20ms);
  const auto before = used();
  std::this_thread::sleep_for(300ms);
  EXPECT_LT(used() - before, 1ms) << "a third of a percent of a core";
  EXPECT_TRUE(has_run);
  EXPECT_TRUE(stream->is_idle());
}

TEST_P(CudaIdleTest, WaitingForALongKernelTakesASmallPartOfACore) {
  auto stream = std::move(*device_->create_stream());
  FakeCalls calls(fake_, *device_);
  std::atomic<bool> is_heard{false};
  ASSERT_TRUE(stream->launch(calls.work(*stream, [] { return true; })));
  ASSERT_TRUE(scheduler_
                  .spawn([&] {
                    await_idle(*stream);
                    is_heard = true;
                  })
                  .is_ok());
  std::this_thread::sleep_for(20ms);
  const auto before = used();
  std::this_thread::sleep_for(200ms);
  EXPECT_LT(used() - before, 10ms) << "a twentieth of a core: it naps between its looks";
  EXPECT_FALSE(is_heard);
  for (int i = 0; !is_heard && i < 5'000; ++i) {
    fake_.run_all();
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_TRUE(is_heard);
}

TEST_P(CudaIdleTest, WorkWakesASchedulerThatSleeps) {
  FakeCalls calls(fake_, *device_);
  for (int i = 0; i < 20; ++i) {
    auto stream = std::move(*device_->create_stream());
    std::this_thread::sleep_for(std::chrono::milliseconds(i % 4));
    ASSERT_TRUE(stream->launch(calls.work(*stream, [] { return true; })));
    // Nobody but the scheduler polls.
    for (int spin = 0; !stream->is_idle(); ++spin) {
      ASSERT_LT(spin, 5'000) << "nobody polls";
      fake_.run_all();
      std::this_thread::sleep_for(1ms);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Words, CudaIdleTest, ::testing::Bool(), [](const auto& info) {
  return info.param ? "WithMemoryWords" : "WithEvents";
});

}  // namespace
}  // namespace eddy::testing
