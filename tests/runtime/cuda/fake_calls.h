// FakeCalls: kernels that call a function of the test, on a device made on a fake driver.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>

#include "runtime/cuda/cuda_device.h"
#include "tests/runtime/cuda/fake_cuda.h"

namespace eddy::testing {

class FakeCalls {
 public:
  FakeCalls(FakeCuda& fake, CudaDevice& device) : api_(fake.api()), context_(device.context()) {
    fake.define_kernel("call", sizeof(void*), [](const FakeKernelCall& kernel) {
      (*kernel.params_as<std::function<bool()>*>())();
    });
    const CudaContext::Use use(context_);
    EXPECT_EQ(api_->module_load(&module_, FakeCuda::kImage), CuResult::kSuccess);
    EXPECT_EQ(api_->module_function(&kernel_, module_, "call"), CuResult::kSuccess);
  }
  ~FakeCalls() {
    const CudaContext::Use use(context_);
    api_->module_unload(module_);
  }

  // Work that enqueues a kernel on the stream; the kernel calls the function, which outlives it.
  Work work(Stream& stream, std::function<bool()>& function) {
    launches_.push_back({this, &stream, &function});
    return {&enqueue, &launches_.back(), false};
  }
  // As above, and keeps the function.
  Work work(Stream& stream, std::function<bool()>&& function) {
    functions_.push_back(std::move(function));
    return work(stream, functions_.back());
  }
  int num_enqueued() const { return num_enqueued_; }

 private:
  struct Launch {
    FakeCalls* owner;
    Stream* stream;
    std::function<bool()>* function;
  };
  static bool enqueue(void* context) {
    const Launch& launch = *static_cast<Launch*>(context);
    ++launch.owner->num_enqueued_;
    void* params[] = {const_cast<std::function<bool()>**>(&launch.function)};
    return launch.owner->api_->launch_kernel(launch.owner->kernel_, 1, 1, 1, 1, 1, 1, 0,
                                             static_cast<CuStream>(launch.stream->native()), params,
                                             nullptr) == CuResult::kSuccess;
  }

  const std::shared_ptr<const CudaApi> api_;
  CudaContext& context_;
  CuModule module_ = nullptr;
  CuFunction kernel_ = nullptr;
  std::deque<Launch> launches_;
  std::deque<std::function<bool()>> functions_;
  int num_enqueued_ = 0;
};

}  // namespace eddy::testing
