// Claim: the CUDA device keeps every device's promises on a driver that does everything it may,
// with and without memory words.
#include "runtime/cuda/cuda_device.h"

#include <gmock/gmock.h>

#include <optional>

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

}  // namespace
}  // namespace eddy::testing
