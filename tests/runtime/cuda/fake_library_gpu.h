// FakeLibraryGpu: what a session on a GPU with libraries is tested on: a fake driver whose kernels
// are those of ops/cuda, and fakes of the libraries whose work runs in its streams' order.
//
// A library launches by itself: what it enqueues has no guard (launch_guards.h).
// Threads: of one session's driver at a time.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/api/session.h"
#include "runtime/cuda/cuda_accelerator.h"
#include "tests/ops/cuda/fake_cub.h"
#include "tests/ops/cuda/fake_cublas_lt.h"
#include "tests/ops/cuda/fake_cudnn.h"
#include "tests/runtime/cuda/fake_kernels.h"
#include "tests/runtime/cuda/fake_loop_kernels.h"

namespace eddy::testing {

class FakeLibraryGpu {
 public:
  FakeLibraryGpu(uint64_t seed, bool has_libraries)
      : cuda_({.seed = seed}),
        random_(seed),
        cublas_lt_([this](void* stream, auto addresses, auto work) {
          enqueue(stream, addresses, std::move(work));
        }),
        cudnn_([this](void* stream, auto addresses, auto work) {
          enqueue(stream, addresses, std::move(work));
        }),
        cub_(seed, [this](void* stream, auto addresses,
                          auto work) { enqueue(stream, addresses, std::move(work)); }),
        has_libraries_(has_libraries) {
    define_host_kernels(cuda_, random_);
    define_loop_kernels(cuda_);
    cuda_.define_kernel(kWork, sizeof(Work), [this](const FakeKernelCall& call) {
      works_[call.params_as<Work>().index]();
    });
    engine_ = std::make_unique<FakeEngine>(cuda_);
  }

  SessionOptions options() {
    SessionOptions options;
    options.num_threads = 2;
    options.make_accelerator = [this] {
      return make_cuda_accelerator(
          {.api = cuda_.api(),
           .images = FakeCuda::kImages,
           .loop_image_or_null = FakeCuda::kImage,
           .cublas_lt_or_null = has_libraries_ ? cublas_lt_.api() : nullptr,
           .cudnn_or_null = has_libraries_ ? cudnn_.api() : nullptr,
           .cub_or_null = has_libraries_ ? cub_.api() : nullptr},
          {});
    };
    return options;
  }
  FakeCuda& cuda() { return cuda_; }
  const FakeCublasLt& cublas_lt() const { return cublas_lt_; }
  const FakeCudnn& cudnn() const { return cudnn_; }
  FakeCub& cub() { return cub_; }

 private:
  static constexpr const char* kWork = "library";
  struct Work {
    uint64_t index;
    uint64_t addresses[6];
  };

  // A library's kernel: one of the fake's own, in its stream's order.
  void enqueue(void* stream, const std::vector<const void*>& addresses,
               std::function<void()> work) {
    Work params{works_.size(), {}};
    for (size_t i = 0; i < addresses.size(); ++i) {
      params.addresses[i] = reinterpret_cast<uint64_t>(addresses[i]);
    }
    works_.push_back(std::move(work));
    const auto api = cuda_.api();
    CuModule module = nullptr;
    CuFunction function = nullptr;
    ASSERT_EQ(api->module_load(&module, FakeCuda::kImage), CuResult::kSuccess);
    ASSERT_EQ(api->module_function(&function, module, kWork), CuResult::kSuccess);
    void* values[] = {&params};
    ASSERT_EQ(api->launch_kernel(function, 1, 1, 1, 1, 1, 1, 0, static_cast<CuStream>(stream),
                                 values, nullptr),
              CuResult::kSuccess);
    ASSERT_EQ(api->module_unload(module), CuResult::kSuccess);
  }

  FakeCuda cuda_;
  Random random_;
  FakeCublasLt cublas_lt_;
  FakeCudnn cudnn_;
  FakeCub cub_;
  const bool has_libraries_;
  std::deque<std::function<void()>> works_;
  std::unique_ptr<FakeEngine> engine_;
};

}  // namespace eddy::testing
