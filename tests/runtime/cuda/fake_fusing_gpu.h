// FusingGpu: a fake GPU with the kernels of ops/cuda on the host and a fake NVRTC, for sessions
// that fuse elementwise nodes.
//
// Ownership: outlives its sessions. Threads: one session at a time.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>

#include "runtime/api/session.h"
#include "runtime/cuda/make_cuda_device.h"
#include "tests/ops/cuda/fakes/fake_nvrtc.h"
#include "tests/runtime/cuda/fake_kernels.h"
#include "tests/runtime/cuda/fake_loop_kernels.h"

namespace eddy::testing {

class FusingGpu {
 public:
  explicit FusingGpu(uint64_t seed, std::string cache_folder = "")
      : cuda_({.seed = seed}),
        random_(seed),
        nvrtc_(FakeCuda::kImage,
               [this](const std::string& name, const HostKernel& kernel) {
                 if (kernel.is_loop_copy) return define_loop_copy(cuda_, name);
                 cuda_.define_kernel(name, kernel.params_bytes,
                                     [this, kernel](const FakeKernelCall& call) {
                                       ++(kernel.loop_or_null ? num_loops_ : num_fused_);
                                       run_host_kernel(kernel, call.grid[0], call.params, random_,
                                                       call.let_others_in);
                                     });
                 if (kernel.loop_or_null == nullptr) cuda_.give_guard(name);
               }),
        cache_folder_(std::move(cache_folder)) {
    define_host_kernels(cuda_, random_);
    define_loop_kernels(cuda_);
    engine_ = std::make_unique<FakeEngine>(cuda_);
  }

  // `only_way`: in which loops that the GPU drives are driven.
  SessionOptions options(bool fuses, std::optional<LoopChoice::Way> only_way = {}) {
    SessionOptions options;
    options.num_threads = 2;
    options.only_loop_way = only_way;
    options.make_devices = {[this, fuses] {
      return make_cuda_device({.api = cuda_.api(),
                               .images = FakeCuda::kImages,
                               .loop_image_or_null = FakeCuda::kImage,
                               .nvrtc_or_null = fuses ? nvrtc_.api() : nullptr},
                              {.kernel_cache_folder = cache_folder_});
    }};
    return options;
  }
  FakeCuda& cuda() { return cuda_; }
  FakeNvrtc& nvrtc() { return nvrtc_; }
  uint64_t num_fused() const { return num_fused_; }  // fused kernels that have run
  uint64_t num_loops() const { return num_loops_; }  // and whole loops as one kernel

 private:
  FakeCuda cuda_;
  Random random_;
  std::atomic<uint64_t> num_fused_{0};
  std::atomic<uint64_t> num_loops_{0};
  FakeNvrtc nvrtc_;
  const std::string cache_folder_;
  std::unique_ptr<FakeEngine> engine_;
};

}  // namespace eddy::testing
