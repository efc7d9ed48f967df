// FakeLibraryGpu: a GPU with libraries for tests of sessions: a fake driver with the kernels of
// ops/cuda, and fakes of the libraries that run their work in its streams' order. Threads: of one
// session's driver at a time.
#pragma once

#include <memory>

#include "runtime/api/session.h"
#include "runtime/cuda/make_cuda_device.h"
#include "tests/ops/cuda/fakes/fake_cub.h"
#include "tests/ops/cuda/fakes/fake_cublas_lt.h"
#include "tests/ops/cuda/fakes/fake_cudnn.h"
#include "tests/ops/cuda/fakes/fake_nvrtc.h"
#include "tests/runtime/cuda/fake_kernels.h"
#include "tests/runtime/cuda/fake_library_work.h"
#include "tests/runtime/cuda/fake_loop_kernels.h"

namespace eddy::testing {

struct FakeLibraryGpuOptions {
  bool fuses = false;        // it has a compiler
  bool runs_kernels = true;  // else they are counted, and do nothing
  size_t memory_bytes = size_t{1} << 30;
  bool channels_last = false;       // for convolutions
  std::string choices_folder = {};  // where measured convolutions are kept; "": none is measured
};

class FakeLibraryGpu {
 public:
  FakeLibraryGpu(uint64_t seed, bool has_libraries, const FakeLibraryGpuOptions& options = {})
      : cuda_({.seed = seed,
               .memory_bytes = options.memory_bytes,
               .runs_kernels = options.runs_kernels}),
        random_(seed),
        cublas_lt_(work_.enqueue()),
        cudnn_(work_.enqueue()),
        cub_(seed, work_.enqueue()),
        nvrtc_(FakeCuda::kImage,
               [this](const std::string& name, const HostKernel& kernel) {
                 if (kernel.is_loop_copy) return define_loop_copy(cuda_, name);
                 cuda_.define_kernel(name, kernel.params_bytes,
                                     [this, kernel](const FakeKernelCall& call) {
                                       run_host_kernel(kernel, call.grid[0], call.params, random_,
                                                       call.let_others_in);
                                     });
                 if (kernel.loop_or_null == nullptr) cuda_.give_guard(name);
               }),
        has_libraries_(has_libraries),
        fuses_(options.fuses),
        channels_last_(options.channels_last),
        choices_folder_(options.choices_folder) {
    define_host_kernels(cuda_, random_);
    define_loop_kernels(cuda_);
    cublas_lt_.when_handles_change([this] { cuda_.spoil_captures(); });
    cudnn_.when_handles_change([this] { cuda_.spoil_captures(); });
    cudnn_.when_choosing([this] { cuda_.spoil_captures(); });
    engine_ = std::make_unique<FakeEngine>(cuda_);
  }

  SessionOptions options() {
    SessionOptions options;
    options.num_threads = 2;
    options.make_devices = {[this] {
      return make_cuda_device({.api = cuda_.api(),
                               .images = FakeCuda::kImages,
                               .loop_image_or_null = FakeCuda::kImage,
                               .cublas_lt_or_null = has_libraries_ ? cublas_lt_.api() : nullptr,
                               .cudnn_or_null = has_libraries_ ? cudnn_.api() : nullptr,
                               .cub_or_null = has_libraries_ ? cub_.api() : nullptr,
                               .nvrtc_or_null = fuses_ ? nvrtc_.api() : nullptr},
                              {.kernel_cache_folder = choices_folder_,
                               .measures_convolutions = !choices_folder_.empty(),
                               .channels_last = channels_last_});
    }};
    return options;
  }
  FakeCuda& cuda() { return cuda_; }
  const FakeCublasLt& cublas_lt() const { return cublas_lt_; }
  const FakeCudnn& cudnn() const { return cudnn_; }
  FakeCudnn& cudnn() { return cudnn_; }
  FakeCub& cub() { return cub_; }
  // What sessions have left behind; not the contexts that the libraries' handles keep, one each.
  std::string leaks() const {
    const std::string left = cuda_.leaks();
    return left == (has_libraries_ ? "2 retained contexts" : "") ? "" : left;
  }

 private:
  FakeCuda cuda_;
  FakeLibraryWork work_{cuda_};
  Random random_;
  FakeCublasLt cublas_lt_;
  FakeCudnn cudnn_;
  FakeCub cub_;
  FakeNvrtc nvrtc_;
  const bool has_libraries_;
  const bool fuses_;
  const bool channels_last_;
  const std::string choices_folder_;
  std::unique_ptr<FakeEngine> engine_;
};

}  // namespace eddy::testing
