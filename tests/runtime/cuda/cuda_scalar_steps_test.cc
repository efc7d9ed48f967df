// Claim: nodes of one element are steps of the launch that moves a loop's values, counts and tests,
// so a round of a loop over single elements is one kernel, unrolled or not; they come in the order
// in which they were asked for, also where they fill more than one launch, and what other threads
// copy is not theirs. Of many elements likewise: what one thread would read that others write comes
// in the next launch.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <string_view>

#include "runtime/cuda/cuda_device.h"
#include "runtime/cuda/cuda_graph_capture.h"
#include "tests/runtime/cuda/fake_cuda.h"
#include "tests/runtime/cuda/fake_loop_kernels.h"

namespace eddy::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr const char* kCopy = "eddy_loop_copy";
constexpr const char* kFill = "eddy_loop_step";  // does nothing: a round has three kernels

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
  EXPECT_THAT(fake_.last_round(), ElementsAre(kFill, kFill, kCopy));
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
  EXPECT_THAT(fake_.last_round(), ElementsAre(kFill, kFill, kCopy));
}

// Forty steps, each on the last one's result: two launches.
TEST_P(CudaScalarStepsTest, MoreStepsThanALaunchTakesKeepTheirOrder) {
  const int64_t numbers[] = {0, 0, 0, 0, 1, 0, 0, 1};
  ASSERT_TRUE(device_->write(words_.data(), numbers, sizeof(numbers)).is_ok());
  ASSERT_TRUE(capture_->begin().is_ok());
  for (int i = 0; i < 20; ++i) {
    ASSERT_TRUE(compute("Add_i64", word(4), word(4), word(5)).is_ok());
    ASSERT_TRUE(compute("Add_i64", word(5), word(7), word(4)).is_ok());
  }
  auto graph = capture_->finish();
  ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
  graph_ = std::move(*graph);
  const FakeCudaCounts before = fake_.counts();
  EXPECT_EQ(play(), (int64_t{1} << 21) - 1);
  EXPECT_EQ((fake_.counts() - before).kernels, 2u);
}

// Of 300 numbers: words 100 and up to words 500 and up; each asked for as `functions` has it.
struct Asked {
  const char* function;
  int x, y, made;
  bool is_single_y = true;
  int count = 300;
};
struct Moved {
  int to, from, count;
};
class CudaMapsTest : public CudaScalarStepsTest {
 protected:
  static constexpr int kWords = 1200;
  // The numbers of kernels, and what all words are behind it; checked against one element at a
  // time.
  uint64_t run(const std::vector<Asked>& all, const std::vector<Moved>& moves = {}) {
    const CudaContext::Use use(device_->context());
    words_ = std::move(*device_->allocator().allocate(kWords * sizeof(int64_t)));
    host_ = std::move(*device_->staging().allocate(kWords * sizeof(int64_t)));
    std::vector<int64_t> expected(kWords);
    for (int i = 0; i < kWords; ++i) expected[static_cast<size_t>(i)] = i % 97 - 40;
    EXPECT_TRUE(device_->write(words_.data(), expected.data(), kWords * 8).is_ok());
    EXPECT_TRUE(capture_->begin().is_ok());
    for (const Asked& one : all) {
      for (int i = 0; i < one.count; ++i) {
        const int64_t x = expected.at(static_cast<size_t>(one.x + i));
        const int64_t y = expected.at(static_cast<size_t>(one.y + (one.is_single_y ? 0 : i)));
        expected.at(static_cast<size_t>(one.made + i)) =
            std::string_view(one.function) == "Add_i64" ? x + y : std::max(x, y);
      }
      const Expression expression{2, {{{one.function}, {0, 1}}}};
      const void* const inputs[] = {word(one.x), word(one.y)};
      void* const made = word(one.made);
      const Status asked =
          one.count == 1
              ? capture_->compute(expression, inputs, {&made, 1})
              : capture_->compute_all(expression, inputs,
                                      {static_cast<uint64_t>(one.count), {false, one.is_single_y}},
                                      {&made, 1});
      EXPECT_TRUE(asked.is_ok()) << asked.to_string();
    }
    std::vector<MemoryCopy> copies;
    for (const Moved& move : moves) {
      copies.push_back({word(move.to), word(move.from), static_cast<size_t>(move.count) * 8});
      std::copy_n(expected.begin() + move.from, move.count, expected.begin() + move.to);
    }
    EXPECT_TRUE(capture_->copy_all(copies).is_ok());
    auto graph = capture_->finish();
    EXPECT_TRUE(graph.is_ok()) << graph.status().to_string();
    graph_ = std::move(*graph);
    const FakeCudaCounts before = fake_.counts();
    EXPECT_TRUE(graph_->launch(stream_->native()).is_ok());
    const auto native = static_cast<CuStream>(stream_->native());
    const auto address = [](const void* at) { return reinterpret_cast<CuDevicePointer>(at); };
    EXPECT_EQ(fake_.api()->copy(address(host_.data()), address(words_.data()), kWords * 8, native),
              CuResult::kSuccess);
    EXPECT_EQ(fake_.api()->stream_synchronize(native), CuResult::kSuccess);
    EXPECT_EQ(std::memcmp(host_.data(), expected.data(), kWords * 8), 0);
    return (fake_.counts() - before).kernels;
  }
};

TEST_P(CudaMapsTest, AreOneLaunchWhereTheyShareNothingOrTheSameElements) {
  EXPECT_EQ(run({{"Add_i64", 100, 0, 500}}), 1u);
  EXPECT_EQ(run({{"Add_i64", 100, 0, 500}, {"Max_i64", 500, 1, 100}}), 1u) << "in turns";
  EXPECT_EQ(run({{"Add_i64", 100, 0, 100}, {"Max_i64", 100, 500, 800, false}}), 1u) << "in place";
  EXPECT_EQ(run({{"Add_i64", 0, 1, 2, true, 1}, {"Add_i64", 100, 0, 500}}), 1u)
      << "and one element";
}

TEST_P(CudaMapsTest, ThatReadElementsOfOtherThreadsComeBehindThem) {
  EXPECT_EQ(run({{"Add_i64", 100, 0, 500}, {"Add_i64", 501, 1, 900, true, 299}}), 2u);
  EXPECT_EQ(run({{"Add_i64", 100, 0, 500}, {"Add_i64", 800, 503, 100}}), 2u) << "one for all";
  EXPECT_EQ(run({{"Add_i64", 100, 0, 500}, {"Add_i64", 507, 1, 2, true, 1}}), 2u) << "by a step";
  EXPECT_EQ(run({{"Add_i64", 0, 1, 2, true, 1}, {"Add_i64", 100, 2, 500}}), 2u) << "of a step";
  EXPECT_EQ(run({{"Add_i64", 100, 0, 500}, {"Add_i64", 3, 1, 0, true, 1}}), 2u) << "overwritten";
}

TEST_P(CudaMapsTest, CopiesAreInTheSameLaunchUnlessTheyMeetThem) {
  const Asked one = {"Add_i64", 100, 0, 500};
  EXPECT_EQ(run({one}, {{810, 850, 30}}), 1u);
  EXPECT_EQ(run({one}, {{810, 120, 30}}), 1u) << "both read it";
  EXPECT_EQ(run({one}, {{810, 510, 30}}), 2u) << "what is made";
  EXPECT_EQ(run({one}, {{110, 850, 1}}), 2u) << "what is read is overwritten";
  EXPECT_EQ(run({one}, {{510, 850, 1}}), 2u) << "what is made is overwritten";
}

TEST_P(CudaMapsTest, MoreThanALaunchTakesAreMore) {
  std::vector<Asked> all = {
      {"Add_i64", 100, 0, 500}, {"Add_i64", 100, 1, 800}, {"Max_i64", 500, 4, 100}};
  while (all.size() < size_t{cuda::kMaxMaps}) all.push_back({"Max_i64", 800, 3, 800});
  EXPECT_EQ(run(all), 1u);
  all.push_back({"Add_i64", 500, 2, 500});
  EXPECT_EQ(run(all), 2u);
}

INSTANTIATE_TEST_SUITE_P(Seeds, CudaMapsTest, ::testing::Range(uint64_t{1}, uint64_t{4}));
INSTANTIATE_TEST_SUITE_P(Seeds, CudaScalarStepsTest, ::testing::Range(uint64_t{1}, uint64_t{4}));

}  // namespace
}  // namespace eddy::testing
