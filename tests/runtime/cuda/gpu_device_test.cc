// Claim: on a GPU, where there is one, the CUDA device keeps every device's promises, with memory
// words and with events alone. A function of a test is a host function of the driver's, in its
// stream's order. Goes to other machines with `tools/gpu_bundle`.
#include <dlfcn.h>
#include <gtest/gtest.h>

#include <deque>

#include "runtime/cuda/cuda_device.h"
#include "tests/runtime/device/capture_conformance.h"

namespace eddy::testing {
namespace {

using HostFunction = void (*)(void*);
using LaunchHostFunction = CuResult (*)(CuStream stream, HostFunction function, void* data);

// This machine's GPU for the tests; `why_not` holds what is missing.
struct Gpu {
  std::shared_ptr<const CudaApi> api;
  LaunchHostFunction launch = nullptr;
  std::string why_not;
};

Gpu find_gpu() {
  Gpu gpu;
  Result<std::shared_ptr<const CudaApi>> api = load_cuda_api();
  if (!api.is_ok()) return {nullptr, nullptr, api.status().message()};
  gpu.api = *api;
  void* const driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NODELETE);
  void* const found = driver == nullptr ? nullptr : dlsym(driver, "cuLaunchHostFunc");
  gpu.launch = reinterpret_cast<LaunchHostFunction>(found);
  const auto device = CudaDevice::create(gpu.api, {});
  if (!device.is_ok()) gpu.why_not = device.status().message();
  if (found == nullptr) gpu.why_not = "the driver lacks cuLaunchHostFunc";
  return gpu;
}

const Gpu& this_gpu() {
  static const Gpu gpu = find_gpu();
  return gpu;
}

class RealCudaDevice : public TestedDevice {
 public:
  explicit RealCudaDevice(std::unique_ptr<CudaDevice> device) : TestedDevice(std::move(device)) {}

  void launch(Stream& stream, std::function<bool()>& function, bool) override {
    launches_.push_back({&stream, &function});
    stream.launch({&enqueue, &launches_.back(), false});
  }
  void progress() override { device_->poll(); }

 private:
  struct Launch {
    Stream* stream;
    std::function<bool()>* function;
  };
  static bool enqueue(void* context) {
    const Launch& launch = *static_cast<Launch*>(context);
    const HostFunction run = [](void* function) {
      (*static_cast<std::function<bool()>*>(function))();
    };
    return this_gpu().launch(static_cast<CuStream>(launch.stream->native()), run,
                             launch.function) == CuResult::kSuccess;
  }

  std::deque<Launch> launches_;
};

// Null where there is no GPU: the fixture's tests do not run then.
std::unique_ptr<TestedDevice> make_gpu(bool has_words) {
  auto api = std::make_shared<CudaApi>(*this_gpu().api);
  if (!has_words) api->stream_write_value32 = nullptr;
  return std::make_unique<RealCudaDevice>(std::move(*CudaDevice::create(api, {})));
}

std::vector<DeviceFactory> gpus() {
  if (!this_gpu().why_not.empty()) return {};
  return {[] { return make_gpu(true); }, [] { return make_gpu(false); }};
}

GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(DeviceConformance);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(StagingConformance);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(CaptureConformance);
INSTANTIATE_TEST_SUITE_P(Gpu, DeviceConformance, ::testing::ValuesIn(gpus()));
INSTANTIATE_TEST_SUITE_P(Gpu, StagingConformance, ::testing::ValuesIn(gpus()));
INSTANTIATE_TEST_SUITE_P(Gpu, CaptureConformance, ::testing::ValuesIn(gpus()));

TEST(GpuDevice, IsThere) {
  if (!this_gpu().why_not.empty()) GTEST_SKIP() << "no GPU to test on: " << this_gpu().why_not;
}

}  // namespace
}  // namespace eddy::testing
