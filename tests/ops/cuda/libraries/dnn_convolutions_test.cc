// Claim: where cuDNN is there, convolutions go through it with the reference's values, its
// algorithm is chosen once for each shape and is deterministic, by measuring where that is kept,
// and what it does not do is done by our own kernels.
#include "ops/cuda/libraries/dnn_library.h"

#include <map>
#include <optional>

#include "tests/ops/cuda/libraries/dnn_fixture.h"

namespace eddy::testing {
namespace {

using ::testing::HasSubstr;

class DnnConvolutionsTest : public DnnFixture {};

TEST_F(DnnConvolutionsTest, LinesPlanesAndVolumesAreTheReferences) {
  for (const ElementType element : kCudaFloats) {
    const double tolerance = is_half(element) ? 2e-2 : 1e-6;
    compare_ranked(make_conv(element, {2, 4, 9}, {6, 4, 3}, {1, 1}), tolerance, tolerance);
    compare_ranked(make_conv(element, {2, 4, 9, 8}, {6, 2, 3, 2}, {1, 0, 1, 0}), tolerance,
                   tolerance);
    compare_ranked(make_conv(element, {1, 2, 4, 5, 3}, {3, 2, 2, 1, 3}, {0, 0, 1, 0, 0, 1}),
                   tolerance, tolerance);
    OpCall call = make_conv(element, {1, 3, 10, 10}, {4, 3, 3, 3}, {2, 2, 2, 2});
    call.attributes.set("strides", std::vector<int64_t>{2, 3});
    call.attributes.set("dilations", std::vector<int64_t>{2, 1});
    call.inputs.pop_back();
    compare_ranked(call, tolerance, tolerance);
  }
  EXPECT_EQ(fake_.num_convolutions(), 4 * 4 * 2);
}

TEST_F(DnnConvolutionsTest, BiasAddendAndReluArePartOfTheCall) {
  const Dims y = {2, 6, 8, 8};
  for (const ElementType element : kCudaFloats) {
    const double tolerance = is_half(element) ? 2e-2 : 1e-6;
    for (const Dims* addend : {static_cast<const Dims*>(nullptr), &y}) {
      const int before = fake_.num_one_calls();
      compare_ranked(
          make_conv_relu(element, {2, 4, 8, 8}, {6, 4, 3, 3}, {1, 1, 1, 1}, true, addend),
          tolerance, tolerance);
      EXPECT_EQ(fake_.num_one_calls(), before + 2);
      compare_ranked(
          make_conv_relu(element, {2, 4, 8, 8}, {6, 4, 3, 3}, {1, 1, 1, 1}, false, addend),
          tolerance, tolerance);
      EXPECT_EQ(fake_.num_one_calls(), before + 2) << "the library's call needs a bias";
    }
  }
}

TEST_F(DnnConvolutionsTest, ABiasWithoutReluIsPartOfTheCallTooWhereTheAlgorithmHasThat) {
  const Dims y = {2, 7, 8, 6};
  for (const ElementType element : kCudaFloats) {
    const double tolerance = is_half(element) ? 2e-2 : 1e-6;
    for (const Dims* addend : {static_cast<const Dims*>(nullptr), &y}) {
      const int before = fake_.num_one_calls();
      compare_ranked(
          make_channels_last_conv(element, {2, 7, 8, 4}, {6, 3, 3, 4}, {1, 1, 1, 1}, false, addend),
          tolerance, tolerance);
      EXPECT_EQ(fake_.num_one_calls(), before + 2);
    }
  }
}

TEST_F(DnnConvolutionsTest, WhereTheLibraryRefusesOneCallSeveralDoTheSame) {
  constexpr int kNotSupported = 3000;
  const Dims y = {2, 6, 8, 8};
  const OpCall call =
      make_conv_relu(ElementType::kFloat, {2, 4, 8, 8}, {6, 4, 3, 3}, {1, 1, 1, 1}, true, &y);
  fake_.fail_next("one_call", kNotSupported);
  compare_ranked(call, 1e-6, 1e-6);
  EXPECT_EQ(fake_.num_one_calls(), 0) << "it is not asked again";
  EXPECT_EQ(fake_.num_convolutions(), 2);
  fake_.fail_next("activate", 4000);
  const auto failed = run_op(call, registry_);
  ASSERT_FALSE(failed.is_ok());
  EXPECT_THAT(failed.status().message(), HasSubstr("cudnnActivationForward"));
}

TEST_F(DnnConvolutionsTest, AFailureOfTheOneCallIsTheRunsError) {
  fake_.fail_next("one_call", 5000);
  const auto failed = run_op(
      make_conv_relu(ElementType::kFloat, {2, 4, 8, 8}, {6, 4, 3, 3}, {1, 1, 1, 1}, true, nullptr),
      registry_);
  ASSERT_FALSE(failed.is_ok());
  EXPECT_THAT(failed.status().message(), HasSubstr("cudnnConvolutionBiasActivationForward"));
}

TEST_F(DnnConvolutionsTest, OurOwnKernelsAddAndBoundToo) {
  const Dims y = {2, 20, 8, 8}, few = {2, 3, 8, 8};
  for (const ElementType element : kCudaFloats) {
    const double tolerance = is_half(element) ? 2e-2 : 1e-5;
    for (const bool has_bias : {false, true}) {
      fake_.offer_nothing(1000);
      compare_ranked(
          make_conv_relu(element, {2, 4, 8, 8}, {20, 4, 3, 3}, {1, 1, 1, 1}, has_bias, &y),
          tolerance, tolerance);
      compare_ranked(
          make_conv_relu(element, {2, 1, 8, 8}, {3, 1, 3, 3}, {1, 1, 1, 1}, has_bias, &few),
          tolerance, tolerance);
    }
  }
  EXPECT_EQ(fake_.num_convolutions(), 0);
}

TEST_F(DnnConvolutionsTest, ChannelsMayComeLast) {
  const Dims y = {2, 7, 8, 6};
  for (const ElementType element : kCudaFloats) {
    const double tolerance = is_half(element) ? 2e-2 : 1e-6;
    for (const bool relu : {false, true}) {
      for (const Dims* addend : {static_cast<const Dims*>(nullptr), &y}) {
        const int before = fake_.num_channels_last();
        compare_ranked(make_channels_last_conv(element, {2, 7, 8, 4}, {6, 3, 3, 4}, {1, 1, 1, 1},
                                               relu, addend),
                       tolerance, tolerance);
        EXPECT_EQ(fake_.num_channels_last(), before + 2);
      }
    }
    // In groups, by channel, and with a window of one element.
    compare_ranked(
        make_channels_last_conv(element, {2, 5, 4, 6}, {4, 3, 2, 3}, {1, 0, 1, 0}, false, nullptr),
        tolerance, tolerance);
    compare_ranked(
        make_channels_last_conv(element, {1, 5, 4, 6}, {6, 3, 3, 1}, {1, 1, 1, 1}, true, nullptr),
        tolerance, tolerance);
    compare_ranked(
        make_channels_last_conv(element, {1, 5, 4, 6}, {3, 1, 1, 6}, {0, 0, 0, 0}, true, nullptr),
        tolerance, tolerance);
  }
  EXPECT_EQ(fake_.num_convolutions(), fake_.num_channels_last());
}

TEST_F(DnnConvolutionsTest, BothOrdersOfAShapeHavePlansOfTheirOwn) {
  const OpCall last = make_channels_last_conv(ElementType::kFloat, {1, 6, 6, 6}, {6, 3, 3, 6},
                                              {1, 1, 1, 1}, false, nullptr);
  const OpCall first = make_conv(ElementType::kFloat, {1, 6, 6, 6}, {6, 6, 3, 3}, {1, 1, 1, 1});
  for (const OpCall* call : {&last, &first, &last}) compare_ranked(*call, 1e-6, 1e-6);
  EXPECT_EQ(fake_.num_choices(), 2);
  EXPECT_EQ(fake_.num_channels_last(), 4);
}

// Filters one by one and by tiles, in groups, and with paddings that the library has not.
TEST_F(DnnConvolutionsTest, OurOwnKernelsTakeChannelsThatComeLastToo) {
  for (const ElementType element : kCudaFloats) {
    const double tolerance = is_half(element) ? 2e-2 : 1e-5;
    for (const int64_t filters : {6, 40, 140}) {
      for (const int64_t group : {1, 2}) {
        const Dims y = {2, 6, 9, filters};
        for (const bool relu : {false, true}) {
          compare_ranked(make_channels_last_conv(element, {2, 7, 9, 8}, {filters, 3, 3, 8 / group},
                                                 {0, 1, 1, 1}, relu, relu ? &y : nullptr),
                         tolerance, tolerance);
        }
      }
    }
    compare_ranked(
        make_channels_last_conv(element, {2, 7, 9, 8}, {8, 3, 3, 1}, {1, 1, 0, 1}, true, nullptr),
        tolerance, tolerance);
  }
  EXPECT_EQ(fake_.num_convolutions(), 0);
}

// A volume of one plane, of which the only window lies in the padding before it.
TEST_F(DnnConvolutionsTest, AVolumeOfOnePlaneIsNoPlaneWhereItIsPadded) {
  OpCall call =
      make_conv(ElementType::kFloat, {1, 2, 1, 5, 6}, {3, 2, 1, 3, 3}, {5, 1, 1, 5, 1, 1});
  call.attributes.set("strides", std::vector<int64_t>{11, 1, 1});
  compare_ranked(call, 1e-6, 1e-6);
  EXPECT_EQ(fake_.num_convolutions(), 2);
}

// What a process or several have kept; or that keeps nothing.
class Notes : public KeptChoices {
 public:
  std::optional<std::string> find(std::string_view key) override {
    const auto found = kept_.find(std::string(key));
    return found == kept_.end() ? std::nullopt : std::optional(found->second);
  }
  std::optional<std::string> keep(std::string_view key, std::string_view choice) override {
    if (!can_keep_) return std::nullopt;
    if (before_) kept_.emplace(key, *before_);  // another process was faster
    return kept_.emplace(key, choice).first->second;
  }
  std::map<std::string, std::string> kept_;
  std::optional<std::string> before_;
  bool can_keep_ = true;
};

// How a convolution of one shape runs on a library that has just been opened.
class MeasuredConvolutionsTest : public DnnConvolutionsTest {
 protected:
  FakeCudnn::Ran ran(int64_t width = 8, bool allows_tf32 = true) {
    use({.allows_tf32 = allows_tf32, .choices_or_null = &notes_});
    const OpCall call =
        make_conv(ElementType::kFloat, {1, 2, 8, width}, {3, 2, 3, 3}, {1, 1, 1, 1});
    compare_ranked(call, 1e-6, 1e-6);
    return fake_.last_run();
  }
  Notes notes_;
};
constexpr FakeCudnn::Ran kTensor{FakeCudnn::kGoodAlgorithm, kDnnTensorMath},
    kFma{FakeCudnn::kGoodAlgorithm, kDnnFmaMath}, kLast{FakeCudnn::kLastAlgorithm, kDnnFmaMath};

TEST_F(MeasuredConvolutionsTest, TheFastestOfTheFirstThreeIsTakenAndTheFirstOfEquals) {
  fake_.plant_times({.tensor_ms = 3, .fma_ms = 2, .last_ms = 1});
  EXPECT_EQ(ran(8), kLast);
  fake_.plant_times({.tensor_ms = 3, .fma_ms = 1, .last_ms = 2});
  EXPECT_EQ(ran(9), kFma);
  fake_.plant_times({.tensor_ms = 1, .fma_ms = 2, .last_ms = 2});
  EXPECT_EQ(ran(10), kTensor);
  fake_.plant_times({.tensor_ms = 0.06f, .fma_ms = 0.05f, .last_ms = 0.01f});
  EXPECT_EQ(ran(12), kTensor) << "what single calls differ by, launches included, is no reason";
  fake_.plant_times({.tensor_ms = 1, .fma_ms = 0.97f, .last_ms = 0.96f});
  EXPECT_EQ(ran(11), kTensor) << "none is clearly faster";
}

TEST_F(MeasuredConvolutionsTest, WhatIsExactIsNotMeasuredAgainstWhatIsNot) {
  fake_.plant_times({.tensor_ms = 1, .fma_ms = 3, .last_ms = 2});
  EXPECT_EQ(ran(8, false), kLast);
  fake_.plant_times({.tensor_ms = 1, .fma_ms = 2, .last_ms = 3});
  EXPECT_EQ(ran(9, false), kFma);
}

TEST_F(MeasuredConvolutionsTest, AShapeIsMeasuredOnceAndTheChoiceHolds) {
  fake_.plant_times({.tensor_ms = 3, .fma_ms = 2, .last_ms = 1});
  EXPECT_EQ(ran(), kLast);
  const int num_measured = fake_.num_measured();
  fake_.plant_times({.tensor_ms = 1, .fma_ms = 2, .last_ms = 3});
  for (int process = 0; process < 3; ++process) EXPECT_EQ(ran(), kLast);
  EXPECT_EQ(fake_.num_measured(), num_measured);
  notes_.kept_.clear();
  EXPECT_EQ(ran(), kTensor);
}

TEST_F(MeasuredConvolutionsTest, WhatAnotherProcessHasKeptFirstIsTaken) {
  notes_.before_ = "algorithm 1, math 3";
  fake_.plant_times({.tensor_ms = 3, .fma_ms = 2, .last_ms = 1});
  EXPECT_EQ(ran(), kFma);
  EXPECT_EQ(ran(), kFma);
}

// Their bits would change from run to run.
TEST_F(MeasuredConvolutionsTest, WhatCannotBeKeptOrIsUnknownIsTheLibrarysFirst) {
  fake_.plant_times({.tensor_ms = 3, .fma_ms = 2, .last_ms = 1});
  notes_.can_keep_ = false;
  EXPECT_EQ(ran(8), kTensor);
  notes_.can_keep_ = true;
  notes_.before_ = "algorithm 99, math 0";
  EXPECT_EQ(ran(9), kTensor) << "a library that offers it no more";
  notes_.before_.reset();
  fake_.fail_next("measure", 5000);
  EXPECT_EQ(ran(10), kTensor) << "the library has refused";
  EXPECT_EQ(ran(10), kLast) << "it is asked again";
}

TEST_F(MeasuredConvolutionsTest, AShapeThatIsMetInARunIsNotMeasured) {
  fake_.plant_times({.tensor_ms = 3, .fma_ms = 2, .last_ms = 1});
  use({.allows_tf32 = true, .choices_or_null = &notes_});
  OpCall call = make_conv(ElementType::kFloat, {1, 2, 8, 8}, {3, 2, 3, 3}, {1, 1, 1, 1});
  call.known = Known::kRanks;
  ASSERT_TRUE(run_op(call, registry_).is_ok());
  EXPECT_EQ(fake_.last_run(), kTensor);
  EXPECT_EQ(fake_.num_measured(), 0);
  EXPECT_TRUE(notes_.kept_.empty());
}

TEST_F(DnnConvolutionsTest, AHandleThatGotNoStreamIsLeftForTheNext) {
  const int num_created = fake_.num_created();
  auto api = std::make_shared<CudnnApi>(*fake_.api());
  int num_refusals = 1;
  api->set_stream = [&, set = api->set_stream](DnnHandle handle, void* stream) {
    return num_refusals-- > 0 ? 1 : set(handle, stream);
  };
  EXPECT_THAT(DnnLibrary::create(api, launcher_, {}).status().message(),
              HasSubstr("cudnnSetStream"));
  EXPECT_TRUE(DnnLibrary::create(api, launcher_, {}).is_ok());
  EXPECT_EQ(fake_.num_created(), num_created);
}

TEST_F(DnnConvolutionsTest, AHandleIsGivenToAnotherStreamWhenItsOwnEnds) {
  const OpCall call = make_conv(ElementType::kFloat, {1, 3, 8, 8}, {4, 3, 3, 3}, {1, 1, 1, 1});
  EXPECT_EQ(dnn_->num_handles(), 1u);
  for (int i = 0; i < 3; ++i) {
    ASSERT_TRUE(run_op(call, registry_).is_ok());
    EXPECT_EQ(dnn_->num_handles(), 1u);
    launcher_.end_stream(nullptr);  // what run_op runs on
    launcher_.end_stream(this);     // of a stream without a handle
    EXPECT_EQ(dnn_->num_handles(), 1u);
  }
}

TEST_F(DnnConvolutionsTest, AHandleThatKeepsTheStreamThatEndsIsLeftAlone) {
  int num_refusals = 0;
  auto api = std::make_shared<CudnnApi>(*fake_.api());
  api->set_stream = [&, set = api->set_stream](DnnHandle handle, void* stream) {
    return num_refusals-- > 0 ? 1 : set(handle, stream);
  };
  use({}, api);
  const OpCall call = make_conv(ElementType::kFloat, {1, 3, 8, 8}, {4, 3, 3, 3}, {1, 1, 1, 1});
  ASSERT_TRUE(run_op(call, registry_).is_ok());
  num_refusals = 1;
  launcher_.end_stream(nullptr);
  EXPECT_EQ(dnn_->num_handles(), 0u);
  EXPECT_TRUE(run_op(call, registry_).is_ok());
  EXPECT_EQ(dnn_->num_handles(), 1u);
}

TEST_F(DnnConvolutionsTest, AnAlgorithmIsChosenOnceForEachShape) {
  const OpCall call = make_conv(ElementType::kFloat, {1, 3, 8, 8}, {4, 3, 3, 3}, {1, 1, 1, 1});
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(run_op(call, registry_).is_ok());
  EXPECT_EQ(fake_.num_convolutions(), 5);
  EXPECT_EQ(fake_.num_choices(), 1);
}

TEST_F(DnnConvolutionsTest, WhatTheLibraryDoesNotDoIsDoneByOurOwnKernels) {
  fake_.offer_nothing(1);
  compare_ranked(make_conv(ElementType::kFloat, {1, 3, 8, 8}, {4, 3, 3, 3}, {1, 1, 1, 1}), 1e-5,
                 1e-5);
  // Padding at one end only.
  compare_ranked(make_conv(ElementType::kFloat, {1, 3, 8, 8}, {4, 3, 3, 3}, {0, 1, 1, 1}), 1e-5,
                 1e-5);
  EXPECT_EQ(fake_.num_convolutions(), 0);
}

TEST_F(DnnConvolutionsTest, WhatTheLibraryRefusesWhenAskedIsDoneByOurOwnKernelInEveryRun) {
  constexpr int kBadParam = 3, kNotSupported = 9, kNewBadParam = 2003, kNewNotSupported = 3000;
  int64_t width = 8;  // a shape of its own for each
  for (const int refusal : {kBadParam, kNotSupported, kNewBadParam, kNewNotSupported}) {
    for (const char* call : {"choose", "convolution_set", "convolve"}) {
      SCOPED_TRACE(std::string(call) + " answers " + std::to_string(refusal));
      OpCall conv = make_conv(ElementType::kFloat, {1, 3, 8, ++width}, {4, 3, 3, 3}, {1, 1, 1, 1});
      conv.inputs.pop_back();  // the bias, with which it would be another call
      const int num_convolutions = fake_.num_convolutions();
      fake_.fail_next(call, refusal);
      compare_ranked(conv, 1e-5, 1e-5);  // twice
      EXPECT_EQ(fake_.num_convolutions(), num_convolutions);
    }
  }
}

TEST_F(DnnConvolutionsTest, WhatTheLibraryRefusesIsNotedOnceForAShape) {
  constexpr int kNotSupported = 3000;
  for (const char* call : {"choose", "convolve"}) {
    use({});
    fake_.fail_next(call, kNotSupported);
    OpCall conv = make_conv(ElementType::kFloat, {1, 4, 8, 9}, {6, 2, 3, 2}, {1, 0, 1, 0});
    conv.inputs.pop_back();  // the bias, with which it would be another call
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(run_op(conv, registry_).is_ok());
    ASSERT_EQ(dnn_->refusals().size(), 1u) << call;
    EXPECT_THAT(dnn_->refusals()[0],
                HasSubstr("4 channels of 8x9 by 6 filters of 3x2 in 2 groups"));
    EXPECT_THAT(dnn_->refusals()[0], HasSubstr("answered"));
  }
  use({});
  fake_.offer_nothing(1000);
  for (int64_t width = 3; width < 40; ++width) {
    ASSERT_TRUE(run_op(make_conv(ElementType::kFloat, {1, 2, 4, width}, {2, 2, 1, 1}, {0, 0, 0, 0}),
                       registry_)
                    .is_ok());
  }
  EXPECT_EQ(dnn_->refusals().size(), DnnHandles::kMostRefusals);
}

TEST_F(DnnConvolutionsTest, WhereShapesAreKnownTheAlgorithmIsChosenBeforeAnyRun) {
  OpCall conv = make_conv(ElementType::kFloat, {1, 3, 8, 8}, {4, 3, 3, 3}, {1, 1, 1, 1});
  ASSERT_TRUE(run_op(conv, registry_).is_ok());
  WatchedCalls& calls = watched();
  use({}, watch_calls(*fake_.api(), calls));
  ASSERT_TRUE(run_op(conv, registry_).is_ok());
  const auto at = [&](const char* name) {
    return std::find(calls.names.rbegin(), calls.names.rend(), name).base() - calls.names.begin();
  };
  EXPECT_LT(at("cudnnGetConvolutionForwardAlgorithm_v7"), at("cudnnSetStream"));
  conv.known = Known::kRanks;
  use({}, watch_calls(*fake_.api(), calls));
  ASSERT_TRUE(run_op(conv, registry_).is_ok());
  EXPECT_GT(at("cudnnGetConvolutionForwardAlgorithm_v7"), at("cudnnSetStream"));
}

TEST_F(DnnConvolutionsTest, AFailureBeforeTheRunIsTriedAgainByTheRun) {
  const OpCall conv = make_conv(ElementType::kFloat, {1, 3, 8, 8}, {4, 3, 3, 3}, {1, 1, 1, 1});
  for (const char* call : {"choose", "convolution_set"}) {
    use({});
    const int num_convolutions = fake_.num_convolutions();
    fake_.fail_next(call, 8);
    EXPECT_TRUE(run_op(conv, registry_).is_ok());
    EXPECT_EQ(fake_.num_convolutions(), num_convolutions + 1);
  }
}

TEST_F(DnnConvolutionsTest, AFailureNamesItsCallAndTheNextRunAsksAgain) {
  OpCall conv = make_conv(ElementType::kFloat, {1, 3, 8, 8}, {4, 3, 3, 3}, {1, 1, 1, 1});
  conv.known = Known::kRanks;
  constexpr int kExecutionFailed = 8;
  const auto expect_failure = [&](const char* call, const char* name) {
    fake_.fail_next(call, kExecutionFailed);
    const auto result = run_op(conv, registry_);
    ASSERT_FALSE(result.is_ok()) << call;
    EXPECT_THAT(result.status().message(), HasSubstr(std::string(name) + " answered"));
    EXPECT_TRUE(run_op(conv, registry_).is_ok());
  };
  expect_failure("choose", "cudnnGetConvolutionForwardAlgorithm_v7");
  expect_failure("one_call", "cudnnConvolutionBiasActivationForward");
  use({});
  constexpr int kNotSupported = 3000;
  fake_.fail_next("one_call", kNotSupported);  // from here on in several
  ASSERT_TRUE(run_op(conv, registry_).is_ok());
  expect_failure("convolve", "cudnnConvolutionForward");
  expect_failure("add", "cudnnAddTensor");
}

TEST_F(DnnConvolutionsTest, PlansOfTheShapesMetLastAreKept) {
  use({.max_plans = 3});
  for (int64_t width = 3; width <= 20; ++width) {
    compare_ranked(make_conv(ElementType::kFloat, {1, 3, 8, width}, {4, 3, 3, 3}, {1, 1, 1, 1}),
                   1e-6, 1e-6);
    EXPECT_LE(fake_.num_alive(), 3 * 6) << "six descriptors a plan";
  }
}

TEST_F(DnnConvolutionsTest, Tf32IsUsedOnlyWhereItIsAllowed) {
  const OpCall call = make_conv(ElementType::kFloat, {1, 3, 8, 8}, {4, 3, 3, 3}, {1, 1, 1, 1});
  ASSERT_TRUE(run_op(call, registry_).is_ok());
  EXPECT_EQ(fake_.num_exact(), 1);
  use({.allows_tf32 = true});
  ASSERT_TRUE(run_op(call, registry_).is_ok());
  EXPECT_EQ(fake_.num_exact(), 1);
  EXPECT_EQ(fake_.num_convolutions(), 2);
}

TEST(Cudnn, AMissingLibraryIsReportedAndAnotherOneNamesWhatItLacks) {
  const auto missing = load_cudnn_from("libno_such_library.so");
  EXPECT_THAT(missing.status().message(), HasSubstr("no cuDNN, so Eddy's own kernels do"));
  EXPECT_THAT(load_cudnn_from("libc.so.6").status().message(),
              HasSubstr("libc.so.6 lacks cudnnCreate"));
}

}  // namespace
}  // namespace eddy::testing
