// Claim: a CUDA stream never fills the driver's queue, keeps its order while it holds back, names
// exactly the records that were meant, and is watched without driver calls.
#include "runtime/cuda/cuda_stream.h"

#include <gmock/gmock.h>

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "tests/runtime/cuda/fake_calls.h"

namespace eddy::testing {
namespace {

using ::testing::IsEmpty;

class CudaStreamTest : public ::testing::TestWithParam<bool> {
 protected:
  ~CudaStreamTest() override {
    a_.reset();
    b_.reset();
    calls_.reset();
    device_.reset();
    EXPECT_THAT(fake_.violations(), IsEmpty());
    EXPECT_EQ(fake_.leaks(), "");
  }
  void drain(Stream& stream) {
    for (int i = 0; !stream.is_idle(); ++i) {
      ASSERT_LT(i, 100'000) << "the stream hangs";
      fake_.step();
      device_->poll();
    }
  }
  void log(Stream& stream, int value) {
    ASSERT_TRUE(stream.launch(calls_->work(stream, [this, value] {
      log_.push_back(value);
      return true;
    })));
  }

  FakeCuda fake_{{.seed = 5, .has_memory_words = GetParam()}};
  std::unique_ptr<CudaDevice> device_ = std::move(*CudaDevice::create(fake_.api(), {}));
  std::unique_ptr<FakeCalls> calls_ = std::make_unique<FakeCalls>(fake_, *device_);
  std::unique_ptr<Stream> a_ = std::move(*device_->create_stream());
  std::unique_ptr<Stream> b_ = std::move(*device_->create_stream());
  std::vector<int> log_;
};

TEST_P(CudaStreamTest, OutOfCreditItKeepsWhatComesNextAndItsOrder) {
  constexpr int kNumWorks = 2000;
  for (int i = 0; i < kNumWorks; ++i) log(*a_, i);
  EXPECT_EQ(calls_->num_enqueued(), static_cast<int>(CudaStream::kCredit));
  for (int i = 0; i < 100; ++i) device_->poll();
  EXPECT_EQ(calls_->num_enqueued(), static_cast<int>(CudaStream::kCredit));
  drain(*a_);
  ASSERT_EQ(log_.size(), static_cast<size_t>(kNumWorks));
  EXPECT_TRUE(std::is_sorted(log_.begin(), log_.end()));
}

// A Work that launches several kernels, as libraries and stretches of nodes do.
struct LaunchesSeveral {
  Work one;
  CudaContext& context;
  int count;
  static bool run(void* several) {
    auto& self = *static_cast<LaunchesSeveral*>(several);
    for (int i = 0; i < self.count; ++i) {
      self.context.count_launches(1);
      self.one.run(self.one.context);
    }
    return true;
  }
};

TEST_P(CudaStreamTest, CreditIsForLaunchesNotForWorks) {
  constexpr int kCredit = CudaStream::kCredit;
  for (const int count : {3, 20, 100, kCredit}) {
    SCOPED_TRACE(std::to_string(count) + " launches a work");
    int num_run = 0;
    LaunchesSeveral several{calls_->work(*a_,
                                         [&] {
                                           ++num_run;
                                           return true;
                                         }),
                            device_->context(), count};
    const int before = calls_->num_enqueued();
    const int num_works = 4 * kCredit / count + 3;
    for (int i = 0; i < num_works; ++i) {
      ASSERT_TRUE(a_->launch({LaunchesSeveral::run, &several, false}));
      device_->poll();
      EXPECT_LT(calls_->num_enqueued() - before, kCredit + count);
    }
    drain(*a_);
    EXPECT_EQ(num_run, num_works * count);
  }
}

// A Work that makes a stream, issues to it and ends it.
struct MakesAStream {
  CudaDevice& device;
  FakeCalls& calls;
  std::atomic<int>* count;
  static bool run(void* context) {
    auto& self = *static_cast<MakesAStream*>(context);
    auto made = self.device.create_stream();
    EXPECT_TRUE(made.is_ok());
    EXPECT_TRUE((*made)->launch(self.calls.work(**made, [count = self.count] {
      ++*count;
      return true;
    })));
    return true;  // it waits until its stream is idle
  }
};

TEST_P(CudaStreamTest, AKeptWorkMayMakeStreamsAndEndThem) {
  std::atomic<int> count{0};
  MakesAStream makes{*device_, *calls_, &count};
  for (uint64_t i = 0; i < CudaStream::kCredit; ++i) log(*a_, 0);
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(a_->launch({&MakesAStream::run, &makes, false}));
  EXPECT_EQ(count.load(), 0) << "a is out of credit";
  std::jthread steps([this](const std::stop_token& stop) {
    while (!stop.stop_requested()) fake_.step();
  });
  drain(*a_);
  EXPECT_EQ(count.load(), 3);
}

TEST_P(CudaStreamTest, StreamsComeAndGoWhileOthersPoll) {
  constexpr int kNumWorks = CudaStream::kCredit + 60;
  std::atomic<int> count{0};
  std::vector<std::jthread> threads;
  threads.emplace_back([this](const std::stop_token& stop) {
    while (!stop.stop_requested()) fake_.step();
  });
  for (int i = 0; i < 2; ++i) {
    threads.emplace_back([this](const std::stop_token& stop) {
      while (!stop.stop_requested()) device_->poll();
    });
  }
  for (int round = 0; round < 5; ++round) {
    auto stream = std::move(*device_->create_stream());
    for (int i = 0; i < kNumWorks; ++i) {
      ASSERT_TRUE(stream->launch(calls_->work(*stream, [&count] {
        ++count;
        return true;
      })));
    }
    stream.reset();  // it waits
    EXPECT_EQ(count.load(), (round + 1) * kNumWorks);
  }
}

TEST_P(CudaStreamTest, AWaitForAKeptRecordWaitsForThatVeryRecord) {
  auto event = std::move(*device_->create_event());
  auto gate = std::move(*device_->create_gate());
  for (uint64_t i = 0; i < CudaStream::kCredit; ++i) log(*a_, 0);
  log(*a_, 1);
  ASSERT_TRUE(a_->record(*event));  // kept: a is out of credit
  ASSERT_TRUE(b_->wait(*event));
  log(*b_, 2);
  ASSERT_TRUE(a_->hold(gate));
  ASSERT_TRUE(a_->record(*event));  // behind the gate: b does not wait for it
  EXPECT_FALSE(event->is_complete());
  drain(*b_);
  EXPECT_EQ(log_[log_.size() - 2], 1);
  EXPECT_EQ(log_.back(), 2);
  EXPECT_FALSE(event->is_complete());
  gate->open();
  drain(*a_);
  EXPECT_TRUE(event->is_complete());
}

TEST_P(CudaStreamTest, APollLooksOnlyAtStreamsWithWork) {
  std::vector<std::unique_ptr<Stream>> idle;
  for (int i = 0; i < 100; ++i) idle.push_back(std::move(*device_->create_stream()));
  EXPECT_EQ(device_->num_watched_streams(), 0u);
  for (int round = 0; round < 3; ++round) {
    log(*a_, 1);
    log(*b_, 2);
    log(*a_, 3);
    EXPECT_EQ(device_->num_watched_streams(), 2u);
    drain(*a_);
    drain(*b_);
    device_->poll();
    EXPECT_EQ(device_->num_watched_streams(), 0u);
    EXPECT_FALSE(device_->wants_polling());
  }
}

TEST_P(CudaStreamTest, AGateMayBeDroppedOnceItIsOpen) {
  auto gate = std::move(*device_->create_gate());
  ASSERT_TRUE(a_->hold(gate));
  log(*a_, 1);
  gate->open();
  gate.reset();
  drain(*a_);
  EXPECT_EQ(log_.size(), 1u);
}

TEST_P(CudaStreamTest, AStreamThatGoesWaitsForWhatIsQueued) {
  auto gate = std::move(*device_->create_gate());
  auto event = std::move(*device_->create_event());
  ASSERT_TRUE(b_->hold(gate));
  for (int i = 0; i < 3; ++i) log(*b_, -1);
  ASSERT_TRUE(b_->record(*event));
  ASSERT_TRUE(a_->wait(*event));
  constexpr int kNumWorks = CudaStream::kCredit + 100;
  for (int i = 0; i < kNumWorks; ++i) log(*a_, i);
  gate->open();
  std::jthread steps([this](const std::stop_token& stop) {
    while (!stop.stop_requested()) fake_.step();
  });
  a_.reset();
  EXPECT_EQ(log_.size(), 3u + kNumWorks);
  b_.reset();
}

TEST_P(CudaStreamTest, AStreamThatGoesBeforeAClosedGateSaysWhatToWaitFor) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto gate = std::move(*device_->create_gate());
  ASSERT_TRUE(a_->hold(gate));
  log(*a_, 1);
  EXPECT_DEATH(a_.reset(), "wait for the run's handle first");
  gate->open();
  drain(*a_);
}

TEST_P(CudaStreamTest, AStreamThatWaitsIsWatchedWithFewDriverCalls) {
  auto gate = std::move(*device_->create_gate());
  ASSERT_TRUE(a_->hold(gate));
  log(*a_, 1);
  for (int i = 0; i < 10; ++i) (void)(a_->is_idle(), device_->poll());
  const uint64_t before = fake_.num_calls();
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < 20'000; ++i) (void)(a_->is_idle(), device_->poll());
  const int64_t ns = std::chrono::nanoseconds(std::chrono::steady_clock::now() - start).count();
  if (GetParam()) {
    EXPECT_LE(fake_.num_calls() - before,
              3u * static_cast<uint64_t>(ns / CudaContext::kAskEveryNs + 2))
        << "a push, a query and a pop in each millisecond";
  }
  gate->open();
  drain(*a_);
}

TEST_P(CudaStreamTest, MemoryIsHandedOutAgainOnlyWhenNoStreamCanStillUseIt) {
  auto gate = std::move(*device_->create_gate());
  Allocator& allocator = device_->allocator();
  BufferRef first = std::move(*allocator.allocate(1000));
  const void* const address = first.data();
  ASSERT_TRUE(b_->hold(gate));
  log(*b_, 1);
  first.reset();
  BufferRef second = std::move(*allocator.allocate(1000));
  EXPECT_NE(second.data(), address) << "stream b may still use the first block";
  log(*a_, 2);
  drain(*a_);
  BufferRef third = std::move(*allocator.allocate(1000));
  EXPECT_NE(third.data(), address);
  gate->open();
  drain(*b_);
  const uint64_t allocations = allocator.statistics().num_system_allocations;
  BufferRef fourth = std::move(*allocator.allocate(1000));
  EXPECT_EQ(fourth.data(), address);
  EXPECT_EQ(allocator.statistics().num_system_allocations, allocations);
}

TEST_P(CudaStreamTest, AStreamBeforeAGateHoldsUpNoMemoryThatItsWorksDoNotUse) {
  Allocator& allocator = device_->allocator();
  const auto is_reused_on_release = [&] {
    BufferRef block = std::move(*allocator.allocate(1000));
    const void* const address = block.data();
    block.reset();
    return std::move(*allocator.allocate(1000)).data() == address;
  };
  auto event = std::move(*device_->create_event());
  auto gate = std::move(*device_->create_gate());
  ASSERT_TRUE(a_->record(*event));
  ASSERT_TRUE(a_->hold(gate));
  EXPECT_TRUE(is_reused_on_release()) << "a record and a gate use nothing";
  log(*b_, 1);
  ASSERT_TRUE(b_->hold(gate));
  ASSERT_TRUE(b_->record(*event));
  for (int i = 0; i < 1000; ++i) (void)(fake_.step(), device_->poll());
  EXPECT_EQ(log_.size(), 1u);
  EXPECT_TRUE(is_reused_on_release()) << "what stood in front of the gate has run";
  gate->open();
  drain(*a_);
  drain(*b_);
}

struct Noted : EventListener {
  bool was_called = false;
  void on_complete() override { was_called = true; }
};

// It is a position of its stream: nothing is asked of the driver but to write its word.
TEST_P(CudaStreamTest, APointForTheHostAloneCostsOneMark) {
  auto point = std::move(*device_->create_host_event());
  EXPECT_TRUE(point->is_complete()) << "never recorded";
  log(*b_, 1);
  drain(*b_);
  const FakeCudaCounts before = fake_.counts();
  log(*a_, 2);
  ASSERT_TRUE(a_->record(*point));
  Noted noted;
  ASSERT_FALSE(point->listen_or_complete(noted));
  const uint64_t num_calls = fake_.num_calls();
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(point->is_complete());
  EXPECT_EQ(fake_.num_calls(), num_calls);
  log(*a_, 3);
  for (int i = 0; !noted.was_called; ++i) {
    ASSERT_LT(i, 10'000) << "nobody is told";
    fake_.step();
    device_->poll();
  }
  EXPECT_TRUE(point->is_complete());
  EXPECT_GE(log_.size(), 2u);
  EXPECT_EQ(log_[1], 2);
  drain(*a_);
  // Two kernels, the point's mark and one behind the second kernel.
  EXPECT_EQ((fake_.counts() - before).calls, 4u);
}

TEST_P(CudaStreamTest, APointForTheHostIsBehindWhatItsStreamKeeps) {
  auto point = std::move(*device_->create_host_event());
  constexpr int kNumWorks = 2 * CudaStream::kCredit;
  for (int i = 0; i < kNumWorks; ++i) log(*a_, i);
  ASSERT_TRUE(a_->record(*point));
  for (int i = 0; !point->is_complete(); ++i) {
    ASSERT_LT(i, 1'000'000) << "it is never reached";
    fake_.step();
    device_->poll();
  }
  EXPECT_EQ(log_.size(), static_cast<size_t>(kNumWorks));
  log(*a_, kNumWorks);
  ASSERT_TRUE(a_->record(*point)) << "the latest record counts";
  EXPECT_FALSE(point->is_complete());
  fake_.lose_device(0, CuResult::kLaunchFailed);
  for (int i = 0; !a_->is_idle() && i < 10'000'000; ++i) device_->poll();  // it asks by the clock
  EXPECT_TRUE(point->is_complete());
  EXPECT_FALSE(a_->record(*point));
}

TEST_P(CudaStreamTest, ALostDeviceRefusesWorkAndItsStreamsAreIdle) {
  CudaStreamTest::log(*a_, 1);
  fake_.lose_device(0, CuResult::kLaunchFailed);
  for (int i = 0; !a_->is_idle() && i < 1000; ++i) device_->poll();
  EXPECT_TRUE(a_->is_idle());
  EXPECT_TRUE(b_->is_idle());
  EXPECT_EQ(device_->health().code(), StatusCode::kDeviceLost);
  EXPECT_THAT(device_->health().message(), ::testing::HasSubstr("CUDA_ERROR_LAUNCH_FAILED"));
  EXPECT_FALSE(a_->launch({[](void*) { return true; }, nullptr, true}));
  EXPECT_FALSE(device_->allocator().allocate(10).is_ok());
  EXPECT_FALSE(device_->create_stream().is_ok());
}

INSTANTIATE_TEST_SUITE_P(Words, CudaStreamTest, ::testing::Bool(), [](const auto& info) {
  return info.param ? "WithMemoryWords" : "WithEvents";
});

}  // namespace
}  // namespace eddy::testing
