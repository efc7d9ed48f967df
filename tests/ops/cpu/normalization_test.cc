// The normalizations compute what two plain passes in double compute, and refuse inputs that do
// not belong to the channels.
#include <optional>

#include <gtest/gtest.h>

#include "tests/ops/testing/op_runner.h"

namespace eddy::testing {
namespace {

constexpr double kRelative = 1e-4, kAbsolute = 1e-5;

TestTensor floats(const Dims& dims, Random& random, double low = -1) {
  return TestTensor::random(ElementType::kFloat, dims, random, low, 1);
}

const std::vector<Dims> kShapes = {{2, 3},    {2, 3, 17}, {1, 4, 5, 6}, {3, 1, 2, 2, 40},
                                   {0, 3, 4}, {2, 3, 0},  {2, 5, 129},  {1, 70, 1}};

OpCall batch_normalization(const Dims& x, Random& random) {
  OpCall call;
  call.op = "BatchNormalization";
  call.inputs = {floats(x, random), floats({x[1]}, random), floats({x[1]}, random),
                 floats({x[1]}, random), floats({x[1]}, random, 0.1)};
  return call;
}

TEST(BatchNormalizationTest, AgreesWithThePlainLoop) {
  for (const Dims& x : kShapes) {
    SCOPED_TRACE(to_string(x));
    Random random(1);
    compare_with_reference(batch_normalization(x, random), kRelative, kAbsolute);
  }
}

TEST(BatchNormalizationTest, TrainingUpdatesTheRunningStatistics) {
  OpCall call;
  call.op = "BatchNormalization";
  call.attributes = {{"training_mode", int64_t{1}}, {"momentum", 0.75f}, {"epsilon", 0.0f}};
  const auto one = [](float value) { return TestTensor::of<float>({1}, {value}); };
  call.inputs = {TestTensor::of<float>({2, 1, 2}, {1, 3, 5, 7}), one(1), one(0), one(8), one(1)};
  call.num_outputs = 3;
  const auto result = run_op(call, KernelSet::kCpu);
  ASSERT_TRUE(result.is_ok()) << result.status().to_string();
  EXPECT_TRUE(is_close((*result)[1].tensor(), one(7), 0, 1e-6));  // 8 * 0.75 + 4 * 0.25
  EXPECT_TRUE(is_close((*result)[2].tensor(), one(2), 0, 1e-6));  // 1 * 0.75 + 5 * 0.25
  const float d = 1.3416408f;                                     // 3 / sqrt(5)
  EXPECT_TRUE(is_close((*result)[0].tensor(),
                       TestTensor::of<float>({2, 1, 2}, {-d, -d / 3, d / 3, d}), 1e-6, 0));
}

TEST(InstanceNormalizationTest, AgreesWithThePlainLoop) {
  for (const Dims& x : kShapes) {
    SCOPED_TRACE(to_string(x));
    Random random(2);
    OpCall call;
    call.op = "InstanceNormalization";
    call.inputs = {floats(x, random), floats({x[1]}, random), floats({x[1]}, random)};
    // A plane of one value has variance 0: the factor is large, and so is its rounding.
    compare_with_reference(call, kRelative, 1e-4);
  }
}

void compare_layer(const Dims& x, int64_t axis, const Dims& scale, std::optional<Dims> shift) {
  SCOPED_TRACE(to_string(x) + " axis " + std::to_string(axis) + " scale " + to_string(scale));
  Random random(3);
  OpCall call;
  call.op = "LayerNormalization";
  call.attributes = {{"axis", axis}};
  call.inputs = {floats(x, random), floats(scale, random)};
  if (shift) call.inputs.push_back(floats(*shift, random));
  compare_with_reference(call, kRelative, kAbsolute);
  call.num_outputs = 3;
  const auto expected = run_op(call, KernelSet::kReference);
  const auto actual = run_op(call, KernelSet::kCpu);
  ASSERT_TRUE(actual.is_ok()) << actual.status().to_string();
  for (size_t o = 0; o < 3; ++o) {
    EXPECT_TRUE(is_close((*actual)[o].tensor(), (*expected)[o].tensor(), kRelative, kAbsolute));
  }
}

TEST(LayerNormalizationTest, AgreesWithThePlainLoopOnEveryAxis) {
  const Dims x{2, 3, 4, 35};
  for (int axis = 0; axis < 4; ++axis) {
    Dims row;
    for (int i = axis; i < 4; ++i) row.push_back(x[i]);
    compare_layer(x, axis, row, row);
    compare_layer(x, axis - 4, row, std::nullopt);
  }
}

TEST(LayerNormalizationTest, ScalesBroadcastToX) {
  compare_layer({4, 4}, -1, {4, 1}, Dims{4});
  compare_layer({4, 4}, -1, {1, 4}, Dims{1});
  compare_layer({3, 4, 4}, 1, {4}, Dims{});
  compare_layer({3, 4}, -1, {3, 4}, Dims{3, 1});
}

TEST(RmsNormalizationTest, DividesByTheRootOfTheMeanSquare) {
  OpCall call;
  call.op = "RMSNormalization";
  call.opset = 23;
  call.attributes = {{"epsilon", 0.0f}};
  call.inputs = {TestTensor::of<float>({1, 4}, {1, 7, 5, 5}),
                 TestTensor::of<float>({4}, {5, 5, 10, 0})};
  for (const KernelSet kernels : {KernelSet::kReference, KernelSet::kCpu}) {
    EXPECT_TRUE(
        is_close(run_one(call, kernels), TestTensor::of<float>({1, 4}, {1, 7, 10, 0}), 1e-6, 0));
  }
}

TEST(RmsNormalizationTest, AgreesWithThePlainLoopAndGivesTheScalesType) {
  Random random(8);
  const std::pair<Dims, Dims> kCases[] = {{{2, 3, 17}, {17}}, {{2, 3, 17}, {1, 17}},
                                          {{4, 4}, {4, 1}},   {{3, 300}, {300}},
                                          {{0, 5}, {5}},      {{70, 1030}, {1030}}};
  for (const auto& [x, scale] : kCases) {
    OpCall call;
    call.op = "RMSNormalization";
    call.opset = 23;
    call.inputs = {floats(x, random), floats(scale, random)};
    compare_with_reference(call, kRelative, kAbsolute);
  }
  OpCall halves;
  halves.op = "RMSNormalization";
  halves.opset = 23;
  halves.inputs = {floats({2, 4}, random),
                   TestTensor::random(ElementType::kFloat16, {4}, random, -1, 1)};
  EXPECT_EQ(to_string((*infer_op(halves))[0]), "float16[2,4]");
  compare_with_reference(halves);
}

OpCall lrn(const Dims& x, int64_t size, float beta, Random& random) {
  OpCall call;
  call.op = "LRN";
  call.attributes = {{"size", size}, {"alpha", 0.7f}, {"beta", beta}, {"bias", 1.5f}};
  call.inputs = {floats(x, random)};
  return call;
}

TEST(LrnTest, AgreesWithThePlainLoopForWindowsOfAnySize) {
  std::vector<Dims> shapes = kShapes;
  shapes.push_back({2, 6, 600});  // several chunks
  for (const Dims& x : shapes) {
    for (const int64_t size : {int64_t{1}, int64_t{2}, int64_t{3}, int64_t{4}, int64_t{5},
                               2 * x[1] - 1, 2 * x[1] + 7, INT64_MAX}) {
      for (const float beta : {0.75f, 0.5f, 1.3f}) {
        SCOPED_TRACE(to_string(x) + " size " + std::to_string(size) + " beta " +
                     std::to_string(beta));
        Random random(5);
        compare_with_reference(lrn(x, size, beta, random), kRelative, kAbsolute);
      }
    }
  }
}

TEST(LrnTest, TheGreaterHalfOfAnEvenWindowIsBehind) {
  OpCall call;
  call.op = "LRN";
  call.attributes = {{"size", int64_t{2}}, {"alpha", 2.0f}, {"beta", 1.0f}, {"bias", 0.0f}};
  call.inputs = {TestTensor::of<float>({1, 3, 1}, {1, 2, 4})};
  // x / (its square + the next channel's)
  const TestTensor expected = TestTensor::of<float>({1, 3, 1}, {1 / 5.0f, 2 / 20.0f, 4 / 16.0f});
  for (const KernelSet kernels : {KernelSet::kReference, KernelSet::kCpu}) {
    EXPECT_TRUE(is_close(run_one(call, kernels), expected, 1e-6, 0));
  }
}

TEST(LrnTest, HasDefaultsAndHalvesByThePlainLoop) {
  Random random(6);
  OpCall call;
  call.op = "LRN";
  call.attributes = {{"size", int64_t{5}}};
  call.inputs = {TestTensor::random(ElementType::kFloat, {2, 7, 9}, random, -100, 100)};
  for (const int opset : {1, 12, 13, 22}) {
    call.opset = opset;
    compare_with_reference(call, kRelative, kAbsolute);
  }
  for (const ElementType element : {ElementType::kFloat16, ElementType::kDouble}) {
    call.inputs = {TestTensor::random(element, {2, 7, 9}, random, -1, 1)};
    compare_with_reference(call);
  }
}

TEST(LrnTest, RefusesWindowsOfNothingAndInputsWithoutChannels) {
  Random random(7);
  EXPECT_EQ(infer_op(lrn({2, 3, 4}, 0, 1, random)).status().message(),
            "size of LRN must be at least 1, not 0");
  EXPECT_EQ(infer_op(lrn({3}, 1, 1, random)).status().message(),
            "X of LRN must have at least 2 dimensions, not [3]");
}

TEST(NormalizationTest, SaysWhichInputDoesNotFit) {
  Random random(4);
  OpCall call = batch_normalization({2, 3, 4}, random);
  call.inputs[2] = floats({4}, random);
  EXPECT_EQ(infer_op(call).status().message(),
            "B must hold one value for each channel (3), not [4]");
  call = batch_normalization({2, 3, 4}, random);
  call.num_outputs = 3;
  EXPECT_EQ(infer_op(call).status().message(),
            "BatchNormalization has one output unless training_mode is 1");
  call = OpCall();
  call.op = "LayerNormalization";
  call.inputs = {floats({2, 3}, random), floats({2}, random)};
  EXPECT_EQ(infer_op(call).status().message(), "Scale does not broadcast to X: [2] to [2,3]");
  call.attributes = {{"axis", int64_t{2}}};
  EXPECT_EQ(infer_op(call).status().message(), "axis 2 is out of range for rank 2: -2..1");
}

}  // namespace
}  // namespace eddy::testing
