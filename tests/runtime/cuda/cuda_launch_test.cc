// Claim: kernels that are captured behind kernels are launched programmatically and see all that
// these have written, because they wait by themselves (one that did not would be seen to run too
// early); everywhere else, and where the device or the driver refuses, launches are plain.
#include "runtime/cuda/cuda_launch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "runtime/cuda/cuda_device.h"
#include "runtime/cuda/cuda_graph_capture.h"
#include "runtime/cuda/programmatic_launch.h"
#include "tests/runtime/cuda/fake_cuda.h"
#include "tests/runtime/cuda/fake_loop_kernels.h"

namespace eddy::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

struct AddParams {
  int64_t* to;
  int64_t factor;
  int64_t term;
};

// A device with the kernels of loops and one that counts.
class Gpu {
 public:
  // `judge`: called before each programmatic launch; a result other than success is the call's
  // result.
  using Judge = std::function<CuResult(const CudaApi& api, const CuLaunchConfig& config)>;
  explicit Gpu(uint64_t seed, bool has_programmatic = true, Judge judge = nullptr)
      : fake_({.seed = seed}) {
    define_loop_kernels(fake_);
    fake_.define_kernel("add", sizeof(AddParams), [](const FakeKernelCall& call) {
      const auto& p = call.params_as<AddParams>();
      *p.to = *p.to * p.factor + p.term;
    });
    auto api = std::make_shared<CudaApi>(*fake_.api());
    if (!has_programmatic) api->launch_kernel_ex = nullptr;
    if (judge) {
      api->launch_kernel_ex = [fakes = fake_.api(), judge](const CuLaunchConfig* config,
                                                           CuFunction function, void** params,
                                                           void** extra) {
        const CuResult judged = judge(*fakes, *config);
        if (judged != CuResult::kSuccess) return judged;
        return fakes->launch_kernel_ex(config, function, params, extra);
      };
    }
    refuse_copies_within_host(*api);
    device_ = std::move(*CudaDevice::create(std::move(api), {}));
    const CudaContext::Use use(context());
    EXPECT_EQ(context().api().module_load(&module_, FakeCuda::kImage), CuResult::kSuccess);
    number_ = std::move(*device_->staging().allocate(sizeof(int64_t)));
    *number() = 1;
  }
  ~Gpu() {
    number_ = BufferRef();
    {
      const CudaContext::Use use(context());
      context().api().module_unload(module_);
    }
    device_.reset();
    EXPECT_THAT(fake_.violations(), IsEmpty());
    EXPECT_EQ(fake_.leaks(), "");
  }

  CudaContext& context() { return device_->context(); }
  FakeCuda& fake() { return fake_; }
  CudaDevice& device() { return *device_; }
  // Copies that the device was asked for and that had an end in its memory; all others are refused.
  int num_copies() const { return num_copies_; }
  int64_t* number() const { return static_cast<int64_t*>(number_.data()); }
  CudaLoopKernels loop_kernels() {
    return {function("eddy_loop_step"), function("eddy_case_choice")};
  }
  Status add(int64_t factor, int64_t term, void* stream) {
    const AddParams params{number(), factor, term};
    const CudaContext::Use use(context());
    return launch_grid(context(), function("add"), 1, 1, &params, static_cast<CuStream>(stream));
  }
  void wait_for(Stream& stream) {
    const CudaContext::Use use(context());
    ASSERT_EQ(context().api().stream_synchronize(static_cast<CuStream>(stream.native())),
              CuResult::kSuccess);
  }

 private:
  void refuse_copies_within_host(CudaApi& api) {
    api.memory_allocate = [this, fakes = fake_.api()](CuDevicePointer* memory, size_t bytes,
                                                      CuMemoryPool pool, CuStream stream) {
      const CuResult result = fakes->memory_allocate(memory, bytes, pool, stream);
      if (result == CuResult::kSuccess) blocks_.emplace_back(*memory, bytes);
      return result;
    };
    api.copy = [this, fakes = fake_.api()](CuDevicePointer to, CuDevicePointer from, size_t bytes,
                                           CuStream stream) {
      if (!is_of_device(to) && !is_of_device(from)) return CuResult::kNotSupported;
      ++num_copies_;
      return fakes->copy(to, from, bytes, stream);
    };
  }
  // The fake hands no address out twice.
  bool is_of_device(CuDevicePointer address) const {
    return std::any_of(blocks_.begin(), blocks_.end(), [&](const auto& block) {
      return address >= block.first && address - block.first < block.second;
    });
  }
  CuFunction function(const char* name) {
    const CudaContext::Use use(context());
    CuFunction function = nullptr;
    EXPECT_EQ(context().api().module_function(&function, module_, name), CuResult::kSuccess);
    return function;
  }

  FakeCuda fake_;
  std::vector<std::pair<CuDevicePointer, size_t>> blocks_;
  int num_copies_ = 0;
  std::unique_ptr<CudaDevice> device_;
  CuModule module_ = nullptr;
  BufferRef number_;
};

constexpr int kChain = 6;
// 1 · 3 + 0, · 3 + 1, …
int64_t expected() {
  int64_t number = 1;
  for (int i = 0; i < kChain; ++i) number = number * 3 + i;
  return number;
}

// A captured chain, launched; what it leaves.
int64_t play_chain(Gpu& gpu) {
  auto capture = CudaGraphCapture::create_or_null(gpu.context(), gpu.loop_kernels());
  auto stream = std::move(*gpu.device().create_stream());
  EXPECT_TRUE(capture->begin().is_ok());
  for (int i = 0; i < kChain; ++i) {
    EXPECT_TRUE(gpu.add(3, i, *capture->stream(0)).is_ok());
  }
  auto recording = capture->finish();
  EXPECT_TRUE(recording.is_ok()) << recording.status().to_string();
  EXPECT_TRUE((*recording)->launch(stream->native()).is_ok());
  gpu.wait_for(*stream);
  return *gpu.number();
}

TEST(CudaLaunch, CapturedBehindKernelsAKernelSeesAllThatTheyHaveWritten) {
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Gpu gpu(seed);
    ASSERT_TRUE(
        allow_programmatic_launch(gpu.context(), gpu.device().allocator(), gpu.loop_kernels())
            .is_ok());
    ASSERT_TRUE(gpu.context().is_programmatic());
    const uint64_t before = gpu.fake().num_programmatic();
    EXPECT_EQ(play_chain(gpu), expected()) << "seed " << seed;
    EXPECT_EQ(gpu.fake().num_programmatic() - before, uint64_t{kChain - 1});
  }
}

TEST(CudaLaunch, AKernelThatDidNotWaitWouldRunTooEarly) {
  int num_wrong = 0;
  for (uint64_t seed = 1; seed <= 50; ++seed) {
    Gpu gpu(seed);
    gpu.fake().begin_early("add");
    EXPECT_EQ(play_chain(gpu), expected()) << "in plain order";
    *gpu.number() = 1;
    gpu.context().set_programmatic(true);
    num_wrong += play_chain(gpu) == expected() ? 0 : 1;
  }
  EXPECT_GT(num_wrong, 10);
}

TEST(CudaLaunch, OutsideCapturesLaunchesArePlain) {
  Gpu gpu(3);
  gpu.context().set_programmatic(true);
  gpu.fake().fail_next("launch_kernel_ex", CuResult::kUnknown);
  auto stream = std::move(*gpu.device().create_stream());
  for (int i = 0; i < kChain; ++i) EXPECT_TRUE(gpu.add(3, i, stream->native()).is_ok());
  gpu.wait_for(*stream);
  EXPECT_EQ(*gpu.number(), expected());
  EXPECT_EQ(gpu.fake().failed_call(), "");
}

TEST(CudaLaunch, WhatTheDriverRefusesIsNotAskedForAgain) {
  for (const char* call : {"launch_kernel_ex", "graph_instantiate", "stream_begin_capture"}) {
    Gpu gpu(4);
    gpu.fake().fail_next(call, CuResult::kNotSupported);
    const Status status =
        allow_programmatic_launch(gpu.context(), gpu.device().allocator(), gpu.loop_kernels());
    EXPECT_THAT(status.message(), HasSubstr("answered CUDA_ERROR")) << call;
    EXPECT_EQ(gpu.fake().failed_call(), call);
    EXPECT_FALSE(gpu.context().is_programmatic());
    const uint64_t before = gpu.fake().num_programmatic();
    EXPECT_EQ(play_chain(gpu), expected());
    EXPECT_EQ(gpu.fake().num_programmatic(), before);
  }
}

// No program's graph has such a copy, so neither has the one that asks the driver.
TEST(CudaLaunch, ADriverWithoutCopiesWithinHostMemoryIsAskedForNone) {
  Gpu gpu(7);
  const Status status =
      allow_programmatic_launch(gpu.context(), gpu.device().allocator(), gpu.loop_kernels());
  EXPECT_TRUE(status.is_ok()) << status.to_string();
  EXPECT_TRUE(gpu.context().is_programmatic());
  EXPECT_GE(gpu.num_copies(), 3) << "before a loop, in its body and behind a case";
}

TEST(CudaLaunch, WithoutMemoryItIsNotTried) {
  Gpu gpu(8);
  gpu.fake().fail_next("memory_allocate", CuResult::kNotSupported);
  EXPECT_FALSE(
      allow_programmatic_launch(gpu.context(), gpu.device().allocator(), gpu.loop_kernels())
          .is_ok());
  EXPECT_FALSE(gpu.context().is_programmatic());
  EXPECT_EQ(play_chain(gpu), expected());
}

TEST(CudaLaunch, WithoutTheDriversCallItIsNotTried) {
  Gpu gpu(5, false);
  EXPECT_FALSE(gpu.context().facts().has_programmatic);
  const Status status =
      allow_programmatic_launch(gpu.context(), gpu.device().allocator(), gpu.loop_kernels());
  EXPECT_EQ(status.code(), StatusCode::kUnsupported);
  EXPECT_FALSE(gpu.context().is_programmatic());
  EXPECT_EQ(play_chain(gpu), expected());
}

// A driver that takes chains, and refuses a kernel behind two others, or behind nothing.
TEST(CudaLaunch, WhatOnlySomePlacesOfAProgramAreRefusedIsNotAskedForAgain) {
  for (const size_t refused : {size_t{2}, size_t{0}}) {
    bool is_refused = false;
    Gpu gpu(6, true, [&](const CudaApi& api, const CuLaunchConfig& config) {
      CuCaptureStatus status = CuCaptureStatus::kNone;
      uint64_t id = 0;
      CuGraph graph = nullptr;
      const CuGraphNode* last = nullptr;
      size_t num_last = 0;
      api.stream_capture_info(config.stream, &status, &id, &graph, &last, &num_last);
      is_refused |= num_last == refused;
      return num_last == refused ? CuResult::kNotSupported : CuResult::kSuccess;
    });
    const Status status =
        allow_programmatic_launch(gpu.context(), gpu.device().allocator(), gpu.loop_kernels());
    EXPECT_TRUE(is_refused) << "there is no such place";
    EXPECT_THAT(status.message(), HasSubstr("cuLaunchKernelEx answered")) << refused;
    EXPECT_FALSE(gpu.context().is_programmatic());
    EXPECT_EQ(play_chain(gpu), expected());
  }
}

}  // namespace
}  // namespace eddy::testing
