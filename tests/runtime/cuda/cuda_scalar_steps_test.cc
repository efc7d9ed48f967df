// Claim: nodes of one element are steps of the launch that moves a loop's values, counts and tests,
// so a round of a loop over single elements is one kernel, unrolled or not; they come in the order
// in which they were asked for, also where they fill more than one launch, and what other threads
// copy is not theirs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "runtime/cuda/cuda_device.h"
#include "runtime/cuda/cuda_graph_capture.h"
#include "tests/runtime/cuda/fake_cuda.h"
#include "tests/runtime/cuda/fake_loop_kernels.h"

namespace eddy::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr const char* kCopy = "eddy_loop_copy";

class CudaScalarStepsTest : public ::testing::TestWithParam<uint64_t> {
 protected:
  CudaScalarStepsTest() {
    define_loop_kernels(fake_);
    device_ = std::move(*CudaDevice::create(fake_.api(), {}));
    const CudaContext::Use use(device_->context());
    const CudaApi& api = *fake_.api();
    CudaLoopKernels kernels;
    EXPECT_EQ(api.module_load(&module_, FakeCuda::kImage), CuResult::kSuccess);
    for (const auto& [function, name] :
         {std::pair{&kernels.step, "eddy_loop_step"},
          std::pair{&kernels.choice, "eddy_case_choice"}, std::pair{&kernels.copy, kCopy}}) {
      EXPECT_EQ(api.module_function(function, module_, name), CuResult::kSuccess);
    }
    capture_ = CudaGraphCapture::create_or_null(device_->context(), kernels);
    stream_ = std::move(*device_->create_stream());
    words_ = std::move(*device_->allocator().allocate(32 * sizeof(int64_t)));
    host_ = std::move(*device_->staging().allocate(8 * sizeof(int64_t)));
    for (int i = 0; i < 8; ++i) host()[i] = 0;
  }
  ~CudaScalarStepsTest() override {
    graph_.reset();
    capture_.reset();
    stream_.reset();
    words_ = BufferRef();
    host_ = BufferRef();
    {
      const CudaContext::Use use(device_->context());
      fake_.api()->module_unload(module_);
    }
    device_.reset();
    EXPECT_THAT(fake_.violations(), IsEmpty());
    EXPECT_EQ(fake_.leaks(), "");
  }

  int64_t* word(int at) { return static_cast<int64_t*>(words_.data()) + at; }
  int64_t* host() { return static_cast<int64_t*>(host_.data()); }
  LoopWords loop_words() {
    return {word(0), word(1), reinterpret_cast<const uint32_t*>(host()), host() + 2};
  }
  Status compute(const char* function, const void* x, const void* y, void* made) {
    const Expression expression{2, {{{function}, {0, 1}}}};
    const void* const inputs[] = {x, y};
    return capture_->compute(expression, inputs, {&made, 1});
  }
  // x in word 4, from `first` on by 1 while it is below `limit`; the next in 5, the predicate in 6.
  Status record(int64_t first, int64_t limit, int num_iterations, size_t copied_bytes = 8) {
    const int64_t numbers[] = {0, 1000, 0, 0, first, 0, 0, 1, limit};
    EDDY_RETURN_IF_ERROR(device_->write(words_.data(), numbers, sizeof(numbers)));
    LoopTest test{loop_words(), word(6)};
    if (num_iterations > 1) test.go_on = reinterpret_cast<uint32_t*>(word(10));
    EDDY_RETURN_IF_ERROR(capture_->begin());
    EDDY_RETURN_IF_ERROR(capture_->start_counter(test.words));
    EDDY_RETURN_IF_ERROR(compute("Less_i64", word(4), word(8), word(6)));
    EDDY_RETURN_IF_ERROR(capture_->begin_while(test));
    for (int i = 0; i < num_iterations; ++i) {
      if (i > 0) EDDY_RETURN_IF_ERROR(capture_->begin_again());
      EDDY_RETURN_IF_ERROR(compute("Add_i64", word(4), word(7), word(5)));
      EDDY_RETURN_IF_ERROR(compute("Less_i64", word(5), word(8), word(6)));
      const MemoryCopy copies[] = {{word(4), word(5), 8}, {word(16), word(20), copied_bytes}};
      EDDY_RETURN_IF_ERROR(capture_->copy_all(copies));
      EDDY_RETURN_IF_ERROR(capture_->advance_counter(test.words));
    }
    EDDY_RETURN_IF_ERROR(capture_->end_while());
    EDDY_ASSIGN_OR_RETURN(graph_, capture_->finish());
    return Status::ok();
  }
  // What x is, once the graph has run.
  int64_t play() {
    EXPECT_TRUE(graph_->launch(stream_->native()).is_ok());
    const CudaContext::Use use(device_->context());
    const CudaApi& api = *fake_.api();
    const auto native = static_cast<CuStream>(stream_->native());
    const auto address = [](const void* at) { return reinterpret_cast<CuDevicePointer>(at); };
    EXPECT_EQ(api.copy(address(host() + 6), address(word(4)), 8, native), CuResult::kSuccess);
    EXPECT_EQ(api.stream_synchronize(native), CuResult::kSuccess);
    return host()[6];
  }

  FakeCuda fake_{{.seed = GetParam()}};
  std::unique_ptr<CudaDevice> device_;
  std::unique_ptr<CudaGraphCapture> capture_;
  std::unique_ptr<CapturedGraph> graph_;
  std::unique_ptr<Stream> stream_;
  CuModule module_ = nullptr;
  BufferRef words_, host_;
};

TEST_P(CudaScalarStepsTest, ARoundOfALoopOverSingleElementsIsOneKernel) {
  const Status status = record(0, 10, 1);
  ASSERT_TRUE(status.is_ok()) << status.to_string();
  EXPECT_EQ(play(), 10);
  EXPECT_EQ(host()[2], 10) << "iterations";
  EXPECT_EQ(host()[3], 1) << "over";
  EXPECT_THAT(fake_.last_round(), ElementsAre(kCopy));
}

TEST_P(CudaScalarStepsTest, UnrolledEachIterationIsOneAndThoseBehindTheEndAreCalledOff) {
  const Status status = record(0, 7, 3);
  ASSERT_TRUE(status.is_ok()) << status.to_string();
  EXPECT_EQ(play(), 7);
  EXPECT_EQ(host()[2], 7);
  EXPECT_THAT(fake_.last_round(), ElementsAre(kCopy, kCopy, kCopy));
}

TEST_P(CudaScalarStepsTest, ALoopThatDoesNotBeginLeavesItsValues) {
  const Status status = record(12, 10, 1);
  ASSERT_TRUE(status.is_ok()) << status.to_string();
  EXPECT_EQ(play(), 12);
  EXPECT_EQ(host()[2], 0);
}

TEST_P(CudaScalarStepsTest, LargeCopiesAreOtherThreads) {
  const Status status = record(0, 10, 1, 32);
  ASSERT_TRUE(status.is_ok()) << status.to_string();
  EXPECT_EQ(play(), 10);
  EXPECT_THAT(fake_.last_round(), ElementsAre(kCopy));
}

// Twenty steps, each on the last one's result: two launches.
TEST_P(CudaScalarStepsTest, MoreStepsThanALaunchTakesKeepTheirOrder) {
  const int64_t numbers[] = {0, 0, 0, 0, 1, 0, 0, 1};
  ASSERT_TRUE(device_->write(words_.data(), numbers, sizeof(numbers)).is_ok());
  ASSERT_TRUE(capture_->begin().is_ok());
  for (int i = 0; i < 10; ++i) {
    ASSERT_TRUE(compute("Add_i64", word(4), word(4), word(5)).is_ok());
    ASSERT_TRUE(compute("Add_i64", word(5), word(7), word(4)).is_ok());
  }
  auto graph = capture_->finish();
  ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
  graph_ = std::move(*graph);
  const FakeCudaCounts before = fake_.counts();
  EXPECT_EQ(play(), 2047);
  EXPECT_EQ((fake_.counts() - before).kernels, 2u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, CudaScalarStepsTest, ::testing::Range(uint64_t{1}, uint64_t{4}));

}  // namespace
}  // namespace eddy::testing
