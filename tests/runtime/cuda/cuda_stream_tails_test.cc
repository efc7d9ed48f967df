// Claim: a graph that tells of its end costs whoever waits for it one call of the driver, its
// launch; a stream never says that it is idle before all its work has run, in whatever order such
// graphs, other works and waits come; and such a graph is launched on no other stream.
#include <gmock/gmock.h>

#include "graph/base/random.h"
#include "runtime/cuda/cuda_device.h"
#include "tests/runtime/cuda/fake_calls.h"
#include "tests/runtime/cuda/fake_loop_kernels.h"

namespace eddy::testing {
namespace {

using ::testing::IsEmpty;

class CudaStreamTailsTest : public ::testing::TestWithParam<uint64_t> {
 protected:
  CudaStreamTailsTest() {
    define_loop_kernels(fake_);
    device_ = std::move(*CudaDevice::create(fake_.api(), {}));
    calls_ = std::make_unique<FakeCalls>(fake_, *device_);
    const CudaContext::Use use(device_->context());
    const CudaApi& api = *fake_.api();
    CudaDeviceKernels kernels;
    EXPECT_EQ(api.module_load(&module_, FakeCuda::kImage), CuResult::kSuccess);
    for (const auto& [function, name] : {std::pair{&kernels.loop.step, "eddy_loop_step"},
                                         std::pair{&kernels.loop.choice, "eddy_case_choice"},
                                         std::pair{&kernels.loop.copy, "eddy_loop_copy"}}) {
      EXPECT_EQ(api.module_function(function, module_, name), CuResult::kSuccess);
    }
    device_->set_kernels(kernels);
    capture_ = device_->create_capture_or_null();
    stream_ = std::move(*device_->create_stream());
    words_ = std::move(*device_->staging().allocate(2 * sizeof(int64_t)));
    *word(0) = 0;
    *word(1) = 1;
    graph_ = made();
  }
  ~CudaStreamTailsTest() override {
    graph_.reset();
    capture_.reset();
    stream_.reset();
    words_ = BufferRef();
    calls_.reset();
    {
      const CudaContext::Use use(device_->context());
      fake_.api()->module_unload(module_);
    }
    device_.reset();
    EXPECT_THAT(fake_.violations(), IsEmpty());
    EXPECT_EQ(fake_.leaks(), "");
  }

  int64_t* word(int at) { return static_cast<int64_t*>(words_.data()) + at; }
  // Adds one to word 0, which is how often it has run.
  std::unique_ptr<CapturedGraph> made() {
    EXPECT_TRUE(capture_->begin().is_ok());
    const Expression add{2, {{{"Add_i64"}, {0, 1}}}};
    const void* const inputs[] = {word(0), word(1)};
    void* const sum = word(0);
    EXPECT_TRUE(dynamic_cast<ScalarSteps&>(*capture_).compute(add, inputs, {&sum, 1}).is_ok());
    capture_->tell_end(stream_->native());
    auto graph = capture_->finish();
    EXPECT_TRUE(graph.is_ok()) << graph.status().to_string();
    return std::move(*graph);
  }
  struct Launch {
    CapturedGraph& graph;
    void* native;
    static bool run(void* launch) {
      auto& self = *static_cast<Launch*>(launch);
      EXPECT_TRUE(self.graph.launch(self.native).is_ok());
      return true;
    }
  };
  void launch() {
    Launch one{*graph_, stream_->native()};
    ASSERT_TRUE(stream_->launch({Launch::run, &one, true}));
    ++num_launched_;
  }
  void launch_other() {
    ASSERT_TRUE(stream_->launch(calls_->work(*stream_, [this] {
      ++num_others_run_;
      return true;
    })));
    ++num_others_;
  }
  // Idle, and then all has run.
  bool is_idle() {
    if (!stream_->is_idle()) return false;
    EXPECT_EQ(num_others_run_, num_others_);
    EXPECT_EQ(__atomic_load_n(word(0), __ATOMIC_ACQUIRE), num_launched_);
    return true;
  }
  void await() {
    for (int i = 0; !is_idle(); ++i) {
      ASSERT_LT(i, 100'000) << "the stream hangs";
      fake_.step();
      device_->poll();
    }
  }

  FakeCuda fake_{{.seed = GetParam()}};
  std::unique_ptr<CudaDevice> device_;
  std::unique_ptr<FakeCalls> calls_;
  std::unique_ptr<GraphCapture> capture_;
  std::unique_ptr<CapturedGraph> graph_;
  std::unique_ptr<Stream> stream_;
  CuModule module_ = nullptr;
  BufferRef words_;
  int64_t num_launched_ = 0, num_others_ = 0, num_others_run_ = 0;
};

struct Listener : EventListener {
  bool was_called = false;
  void on_complete() override { was_called = true; }
};

TEST_P(CudaStreamTailsTest, ALaunchThatIsWaitedForIsOneCall) {
  launch();
  await();
  const FakeCudaCounts before = fake_.counts();
  for (int i = 0; i < 20; ++i) {
    launch();
    Listener listener;
    if (!stream_->listen_or_idle(listener)) {
      while (!listener.was_called) {
        fake_.step();
        device_->poll();
      }
    }
    EXPECT_TRUE(is_idle());
  }
  const FakeCudaCounts all = fake_.counts() - before;
  EXPECT_EQ(all.word_writes, 0u);
  EXPECT_EQ(all.calls, 20u);
  EXPECT_EQ(all.kernels, 20u);
}

TEST_P(CudaStreamTailsTest, WhateverComesBetweenTheStreamIsIdleOnlyOnceAllHasRun) {
  Random random(GetParam());
  for (int i = 0; i < 400; ++i) {
    const uint64_t what = random.below(10);
    if (what < 4) launch();
    if (what >= 4 && what < 6) launch_other();
    if (what == 6) await();
    if (what > 6) {
      fake_.step();
      device_->poll();
      is_idle();
    }
  }
  await();
}

TEST_P(CudaStreamTailsTest, ItIsLaunchedOnNoOtherStream) {
  auto other = std::move(*device_->create_stream());
  EXPECT_EQ(graph_->launch(other->native()).code(), StatusCode::kInternal);
  launch();
  await();
}

INSTANTIATE_TEST_SUITE_P(Seeds, CudaStreamTailsTest, ::testing::Range(uint64_t{1}, uint64_t{9}));

}  // namespace
}  // namespace eddy::testing
