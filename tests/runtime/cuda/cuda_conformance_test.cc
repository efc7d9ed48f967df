// Claim: a whole GPU, with its loop kernels and a compiler, on a driver that does everything it
// may, keeps what its device and each of the device's optional interfaces promise.
#include <gmock/gmock.h>

#include <optional>

#include "tests/runtime/cuda/fake_calls.h"
#include "tests/runtime/cuda/fake_fusing_gpu.h"
#include "tests/runtime/device/compile_conformance.h"

namespace eddy::testing {
namespace {

class WholeGpu : public TestedDevice {
 public:
  explicit WholeGpu(std::unique_ptr<FusingGpu> gpu)
      : TestedDevice(gpu->options(true).make_devices[0]()->device),
        gpu_(std::move(gpu)),
        calls_(std::in_place, gpu_->cuda(), static_cast<CudaDevice&>(*device_)) {}
  ~WholeGpu() override {
    calls_.reset();
    device_.reset();
    EXPECT_THAT(gpu_->cuda().violations(), ::testing::IsEmpty());
    EXPECT_EQ(gpu_->cuda().leaks(), "");
  }

  void launch(Stream& stream, std::function<bool()>& function, bool) override {
    stream.launch(calls_->work(stream, function));
  }
  void progress() override {
    device_->poll();
    std::this_thread::yield();
  }

 private:
  std::unique_ptr<FusingGpu> gpu_;
  std::optional<FakeCalls> calls_;
};

template <uint64_t kSeed>
std::unique_ptr<TestedDevice> make_gpu() {
  return std::make_unique<WholeGpu>(std::make_unique<FusingGpu>(kSeed));
}

const auto kGpus = ::testing::Values(make_gpu<1>, make_gpu<2>, make_gpu<3>);

INSTANTIATE_TEST_SUITE_P(Cuda, DeviceConformance, kGpus);
INSTANTIATE_TEST_SUITE_P(Cuda, StagingConformance, kGpus);
INSTANTIATE_TEST_SUITE_P(Cuda, CaptureConformance, kGpus);
INSTANTIATE_TEST_SUITE_P(Cuda, CompileConformance, kGpus);

}  // namespace
}  // namespace eddy::testing
