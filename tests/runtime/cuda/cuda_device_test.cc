// Claim: the CUDA device keeps every device's promises on a driver that does everything it may,
// with and without memory words. What is written to it needs no stream of its own.
#include "runtime/cuda/cuda_device.h"

#include <gmock/gmock.h>

#include <optional>
#include <thread>
#include <vector>

#include "tests/runtime/cuda/fake_calls.h"
#include "tests/runtime/device/conformance.h"

namespace eddy::testing {
namespace {

// A device on a fake driver; a function becomes a kernel that calls it.
class FakeCudaDevice : public TestedDevice {
 public:
  static std::unique_ptr<TestedDevice> make(const FakeCudaOptions& options) {
    auto fake = std::make_unique<FakeCuda>(options);
    auto device = std::move(*CudaDevice::create(fake->api(), {}));
    return std::make_unique<FakeCudaDevice>(std::move(fake), std::move(device));
  }

  FakeCudaDevice(std::unique_ptr<FakeCuda> fake, std::unique_ptr<CudaDevice> device)
      : TestedDevice(std::move(device)),
        fake_(std::move(fake)),
        calls_(std::in_place, *fake_, static_cast<CudaDevice&>(*device_)) {}
  ~FakeCudaDevice() override {
    calls_.reset();
    device_.reset();
    EXPECT_THAT(fake_->violations(), ::testing::IsEmpty());
    EXPECT_EQ(fake_->leaks(), "");
  }

  void launch(Stream& stream, std::function<bool()>& function, bool) override {
    stream.launch(calls_->work(stream, function));
  }
  void progress() override {
    for (int i = 0; i < 3; ++i) fake_->step();
    device_->poll();
  }

 private:
  std::unique_ptr<FakeCuda> fake_;
  std::optional<FakeCalls> calls_;
};

template <uint64_t kSeed, bool kHasWords>
std::unique_ptr<TestedDevice> make_fake() {
  return FakeCudaDevice::make({.seed = kSeed, .has_memory_words = kHasWords});
}

INSTANTIATE_TEST_SUITE_P(CudaWords, DeviceConformance,
                         ::testing::Values(make_fake<1, true>, make_fake<2, true>,
                                           make_fake<3, true>, make_fake<4, true>));
INSTANTIATE_TEST_SUITE_P(CudaEvents, DeviceConformance,
                         ::testing::Values(make_fake<1, false>, make_fake<2, false>,
                                           make_fake<3, false>));

// The bytes that the device has there.
std::vector<char> read(FakeCuda& fake, CudaDevice& device, const BufferRef& buffer, size_t size) {
  BufferRef staged = std::move(*device.staging().allocate(size));
  auto stream = std::move(*device.create_stream());
  const CudaContext::Use use(device.context());
  EXPECT_EQ(fake.api()->copy(reinterpret_cast<CuDevicePointer>(staged.data()),
                             reinterpret_cast<CuDevicePointer>(buffer.data()), size,
                             static_cast<CuStream>(stream->native())),
            CuResult::kSuccess);
  fake.run_all();
  const char* const bytes = static_cast<const char*>(staged.data());
  return {bytes, bytes + size};
}

TEST(CudaDevice, WritesOneAfterTheOtherTakeTheSameStream) {
  for (const bool has_words : {false, true}) {
    FakeCuda fake({.seed = 3, .has_memory_words = has_words});
    {
      auto device = std::move(*CudaDevice::create(fake.api(), {}));
      const BufferRef buffer = std::move(*device->allocator().allocate(64));
      const std::vector<char> first(64, 'a'), second(64, 'b');
      ASSERT_TRUE(device->write(buffer.data(), first.data(), 64).is_ok());
      fake.fail_next("stream_create", CuResult::kOutOfMemory);
      ASSERT_TRUE(device->write(buffer.data(), second.data(), 64).is_ok());
      EXPECT_FALSE(device->create_stream().is_ok()) << "nobody has asked for a stream before";
      EXPECT_EQ(read(fake, *device, buffer, 64), second);
    }
    EXPECT_THAT(fake.violations(), ::testing::IsEmpty());
    EXPECT_EQ(fake.leaks(), "");
  }
}

// The block goes from hand to hand while writes end as they should.
TEST(CudaDevice, WhatTheGpuMayStillReadIsNotHandedOut) {
  FakeCuda fake({.seed = 4});
  {
    auto device = std::move(*CudaDevice::create(fake.api(), {}));
    const BufferRef buffer = std::move(*device->allocator().allocate(64));
    const std::vector<char> bytes(64, 'a');
    const auto next_block = [&] { return (*device->staging().allocate(64)).data(); };
    const void* const block = next_block();
    ASSERT_TRUE(device->write(buffer.data(), bytes.data(), 64).is_ok());
    ASSERT_EQ(next_block(), block);
    fake.fail_next("stream_synchronize", CuResult::kInvalidValue);
    ASSERT_FALSE(device->write(buffer.data(), bytes.data(), 64).is_ok());
    EXPECT_NE(next_block(), block) << "nobody has heard that the copy has ended";
    EXPECT_TRUE(device->write(buffer.data(), bytes.data(), 64).is_ok());
  }
  EXPECT_THAT(fake.violations(), ::testing::IsEmpty());
  EXPECT_EQ(fake.leaks(), "");
}

TEST(CudaDevice, AStreamThatIsNotOursToUseIsRefusedAndTheDeviceStays) {
  FakeCuda fake({.seed = 5, .num_devices = 2});
  {
    auto device = std::move(*CudaDevice::create(fake.api(), {}));
    auto other = std::move(*CudaDevice::create(fake.api(), {.ordinal = 1}));
    auto theirs = std::move(*other->create_stream());
    auto captures = std::move(*device->create_stream());
    const CudaContext::Use use(device->context());
    CuGraph graph = nullptr;
    const auto capturing = static_cast<CuStream>(captures->native());
    ASSERT_EQ(fake.api()->graph_create(&graph, 0), CuResult::kSuccess);
    ASSERT_EQ(fake.api()->stream_begin_capture(capturing, graph, nullptr, nullptr, 0,
                                               CuCaptureMode::kRelaxed),
              CuResult::kSuccess);
    const std::pair<void*, const char*> refused[] = {
        {nullptr, "null stream"},
        {reinterpret_cast<void*>(kCuStreamLegacy), "null stream"},
        {reinterpret_cast<void*>(kCuStreamPerThread), "another one on every thread"},
        {reinterpret_cast<void*>(0x12340), "cuStreamGetCtx"},
        {theirs->native(), "primary context of CUDA device 0"},
        {captures->native(), "while it captures"}};
    for (const auto& [stream, why] : refused) {
      const Status status = device->adopt_stream(stream).status();
      EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << why;
      EXPECT_THAT(status.message(), ::testing::HasSubstr(why));
      EXPECT_TRUE(device->health().is_ok());
    }
    EXPECT_EQ(fake.api()->stream_end_capture(capturing, &graph), CuResult::kSuccess);
    fake.api()->graph_destroy(graph);
    EXPECT_TRUE(device->adopt_stream(captures->native()).is_ok());
  }
  EXPECT_THAT(fake.violations(), ::testing::IsEmpty());
  EXPECT_EQ(fake.leaks(), "");
}

TEST(CudaDevice, AnswersThatStayLoseItAndOthersDoNot) {
  // cuda.h on these errors: "any further CUDA work will return the same error".
  for (const int code : {4, 46, 214, 220, 226, 700, 702, 709, 710, 714, 715, 716, 717, 718, 719,
                         721, 810, 911, 999}) {
    FakeCuda fake({.seed = 6});
    auto device = std::move(*CudaDevice::create(fake.api(), {}));
    const Status status = device->context().check(static_cast<CuResult>(code), "cuCall");
    EXPECT_EQ(status.code(), StatusCode::kDeviceLost) << code;
    EXPECT_EQ(device->health().code(), StatusCode::kDeviceLost) << code;
  }
  FakeCuda fake({.seed = 7});
  auto device = std::move(*CudaDevice::create(fake.api(), {}));
  for (const int code : {1, 2, 400, 600, 701, 720, 800, 900, 901, 912}) {
    EXPECT_FALSE(device->context().check(static_cast<CuResult>(code), "cuCall").is_ok()) << code;
    EXPECT_TRUE(device->health().is_ok()) << code;
  }
}

TEST(CudaDevice, WritesOfSeveralThreadsArriveEach) {
  constexpr size_t kThreads = 4, kBytes = 1000;
  FakeCuda fake({.seed = 8});
  {
    auto device = std::move(*CudaDevice::create(fake.api(), {}));
    std::vector<BufferRef> buffers;
    for (size_t t = 0; t < kThreads; ++t) {
      buffers.push_back(std::move(*device->allocator().allocate(kBytes)));
    }
    std::vector<std::jthread> threads;
    for (size_t t = 0; t < kThreads; ++t) {
      threads.emplace_back([&, t] {
        for (int round = 0; round < 20; ++round) {
          const std::vector<char> bytes(kBytes, static_cast<char>(20 * t + round));
          EXPECT_TRUE(device->write(buffers[t].data(), bytes.data(), kBytes).is_ok());
        }
      });
    }
    threads.clear();
    for (size_t t = 0; t < kThreads; ++t) {
      EXPECT_EQ(read(fake, *device, buffers[t], kBytes),
                std::vector<char>(kBytes, static_cast<char>(20 * t + 19)));
    }
  }
  EXPECT_THAT(fake.violations(), ::testing::IsEmpty());
  EXPECT_EQ(fake.leaks(), "");
}

}  // namespace
}  // namespace eddy::testing
