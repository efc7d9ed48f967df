// Claim: a scheduler that polls a GPU sleeps when the GPU has nothing to do, wakes at once when it
// is given something, and naps while it waits for a long kernel. What it takes is counted in looks
// at the GPU, which a slow machine can only make fewer.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "runtime/coroutine/scheduler.h"
#include "runtime/cuda/cuda_device.h"
#include "runtime/execute/host/await.h"
#include "tests/runtime/cuda/fake_calls.h"

namespace eddy::testing {
namespace {

using namespace std::chrono_literals;

class CudaIdleTest : public ::testing::TestWithParam<bool> {
 protected:
  CudaIdleTest() {
    const auto slack = [this] {
      return device_->wants_polling() ? PollSet::kNow : PollSet::Slack();
    };
    poller_ = scheduler_.add_poller([this] { return look(); }, slack);
    device_->add_waker(this, [this] { scheduler_.poke(); });
  }
  ~CudaIdleTest() override {
    scheduler_.remove_poller(poller_);
    device_->remove_waker(this);
  }

  bool look() {
    ++num_looks_;
    return device_->poll();
  }

  std::atomic<int> num_looks_{0};
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
  std::this_thread::sleep_for(20ms);  // until every end has been observed
  fake_.run_all();
  std::this_thread::sleep_for(20ms);
  const int before = num_looks_;
  std::this_thread::sleep_for(300ms);
  EXPECT_LE(num_looks_ - before, 1) << "nobody looks at a GPU that has nothing to do";
  EXPECT_TRUE(has_run);
  EXPECT_TRUE(stream->is_idle());
}

TEST_P(CudaIdleTest, WaitingForALongKernelTakesASmallPartOfACore) {
  auto stream = std::move(*device_->create_stream());
  FakeCalls calls(fake_, *device_);
  std::atomic<bool> is_reported{false};
  ASSERT_TRUE(stream->launch(calls.work(*stream, [] { return true; })));
  ASSERT_TRUE(scheduler_
                  .spawn([&] {
                    await_idle(*stream);
                    is_reported = true;
                  })
                  .is_ok());
  std::this_thread::sleep_for(20ms);
  const int before = num_looks_;
  std::this_thread::sleep_for(200ms);
  // One in 100 µs; a look takes about one.
  EXPECT_LE(num_looks_ - before, 2'000) << "it naps between its looks";
  EXPECT_GE(num_looks_ - before, 1);
  EXPECT_FALSE(is_reported);
  for (int i = 0; !is_reported && i < 5'000; ++i) {
    fake_.run_all();
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_TRUE(is_reported);
}

TEST_P(CudaIdleTest, WorkWakesASchedulerThatSleeps) {
  FakeCalls calls(fake_, *device_);
  for (int i = 0; i < 20; ++i) {
    auto stream = std::move(*device_->create_stream());
    std::this_thread::sleep_for(std::chrono::milliseconds(i % 4));
    ASSERT_TRUE(stream->launch(calls.work(*stream, [] { return true; })));
    // Only the scheduler polls.
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
