// Claim: memory that a stream may still use is neither handed out nor given back to the driver;
// where there is no other, it is waited for, as long as it can become free.
#include "runtime/cuda/cuda_allocator.h"

#include <gmock/gmock.h>

#include <chrono>
#include <thread>

#include "tests/runtime/cuda/fake_calls.h"

namespace eddy::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr size_t kMost = 600'000;  // two of them are more than the device has

class CudaAllocatorTest : public ::testing::TestWithParam<bool> {
 protected:
  ~CudaAllocatorTest() override {
    fake_.hold(false);
    drain();
    stream_.reset();
    calls_.reset();
    device_.reset();
    EXPECT_THAT(fake_.violations(), IsEmpty());
    EXPECT_EQ(fake_.leaks(), "");
  }
  CudaAllocator& memory() { return static_cast<CudaAllocator&>(device_->allocator()); }
  // Enqueues a kernel that uses the block, and releases it.
  void use(BufferRef block) {
    const size_t size_bytes = block.get()->capacity_bytes;
    ASSERT_TRUE(stream_->launch(calls_->work(*stream_, [this, data = block.data(), size_bytes] {
      fake_.check_visible(data, size_bytes);
      ++num_used_;
      return true;
    })));
  }
  void drain() {
    for (int i = 0; !stream_->is_idle(); ++i) {
      ASSERT_LT(i, 100'000) << "the stream hangs";
      fake_.step();
      device_->poll();
    }
  }

  FakeCuda fake_{{.seed = 6, .has_memory_words = GetParam(), .memory_bytes = 1 << 20}};
  std::unique_ptr<CudaDevice> device_ = std::move(*CudaDevice::create(fake_.api(), {}));
  std::unique_ptr<FakeCalls> calls_ = std::make_unique<FakeCalls>(fake_, *device_);
  std::unique_ptr<Stream> stream_ = std::move(*device_->create_stream());
  int num_used_ = 0;
};

TEST_P(CudaAllocatorTest, WhatIsInUseIsWaitedForWhereThereIsNoOtherMemory) {
  use(std::move(*memory().allocate(kMost)));
  for (int i = 1; i < 10; ++i) {
    fake_.hold(true);
    std::thread later([this] {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      fake_.hold(false);
      fake_.run_all();
    });
    // An allocation of the same size gets the block itself; for another size the block goes back to
    // the driver first.
    Result<BufferRef> next = memory().allocate(i % 2 == 0 ? kMost : kMost + 200'000);
    later.join();
    ASSERT_TRUE(next.is_ok()) << next.status().to_string();
    EXPECT_EQ(num_used_, i);
    use(std::move(*next));
  }
}

// As while a Work is issued: it may launch what it launches only when it has its memory.
TEST_P(CudaAllocatorTest, AWorkThatAllocatesWaitsForThoseBeforeIt) {
  use(std::move(*memory().allocate(kMost)));
  std::thread runs([this] {
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    fake_.run_all();
  });
  Status status = internal_error("not called");
  std::function<void()> allocates = [&] { status = memory().allocate(kMost).status(); };
  ASSERT_TRUE(stream_->launch({[](void* context) {
                                 (*static_cast<std::function<void()>*>(context))();
                                 return true;
                               },
                               &allocates, false}));
  runs.join();
  EXPECT_TRUE(status.is_ok()) << status.to_string();
}

TEST_P(CudaAllocatorTest, WhatNobodyCanEndIsNotWaitedForForEver) {
  auto gate = std::move(*device_->create_gate());
  ASSERT_TRUE(stream_->hold(gate));
  use(std::move(*memory().allocate(kMost)));
  const Status refused = memory().allocate(kMost).status();
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(refused.message(), HasSubstr("no memory for a tensor of 600000 bytes"));
  gate->open();
  drain();
  EXPECT_TRUE(memory().allocate(kMost).is_ok());
}

TEST_P(CudaAllocatorTest, WhoWaitsForMemoryCountsAgainstTheLimit) {
  constexpr size_t kHalf = 450'000;  // two of them are all that the device has
  stream_.reset();
  calls_.reset();
  device_.reset();
  device_ = std::move(*CudaDevice::create(fake_.api(), {.memory_limit_bytes = kMost}));
  calls_ = std::make_unique<FakeCalls>(fake_, *device_);
  stream_ = std::move(*device_->create_stream());
  fake_.hold(true);
  for (int i = 0; i < 2; ++i) use(std::move(*memory().allocate(kHalf)));
  Result<BufferRef> waited = internal_error("not called");
  std::thread waits([&] { waited = memory().allocate(kHalf); });
  for (int i = 0; i < 200 && memory().statistics().used_bytes == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const Status refused = memory().allocate(kHalf).status();
  fake_.hold(false);
  fake_.run_all();
  waits.join();
  EXPECT_EQ(refused.code(), StatusCode::kResourceExhausted) << refused.to_string();
  EXPECT_THAT(refused.message(), HasSubstr("of a limit of 600000"));
  EXPECT_TRUE(waited.is_ok()) << waited.status().to_string();
  EXPECT_LE(memory().statistics().used_bytes, kMost);
}

TEST_P(CudaAllocatorTest, TrimLeavesWhatIsInUse) {
  for (int i = 0; i < 20; ++i) {
    use(std::move(*memory().allocate(kMost)));
    memory().trim();
    EXPECT_GT(memory().statistics().cached_bytes, 0u);
    drain();
    memory().trim();
    EXPECT_EQ(memory().statistics().cached_bytes, 0u);
  }
  EXPECT_EQ(num_used_, 20);
}

INSTANTIATE_TEST_SUITE_P(, CudaAllocatorTest, ::testing::Bool(),
                         [](const auto& words) { return words.param ? "Words" : "Events"; });

}  // namespace
}  // namespace eddy::testing
