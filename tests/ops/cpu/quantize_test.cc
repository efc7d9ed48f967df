// Claim: quantization to bytes and back equals the reference for one scale, a scale for each index
// of an axis and a scale for each block, and rounds halves to even.
#include <gtest/gtest.h>

#include <limits>
#include <string>

#include "tests/ops/testing/op_runner.h"

namespace eddy::testing {
namespace {

OpCall make_call(const std::string& op, int opset, std::vector<TestValue> inputs,
                 Attributes attributes = {}) {
  OpCall call;
  call.op = op;
  call.opset = opset;
  call.inputs = std::move(inputs);
  call.attributes = std::move(attributes);
  return call;
}

// Shapes of x and scale with axis and block size; 0 for none.
struct Layout {
  Dims x, scale;
  int64_t axis, block_size;
};
const Layout kLayouts[] = {
    {{5, 41}, {}, 1, 0},     {{5, 41}, {1}, 1, 0},     {{3, 4, 7}, {3}, 0, 0},
    {{3, 4, 7}, {4}, 1, 0},  {{3, 4, 7}, {7}, -1, 0},  {{1, 7}, {7}, 1, 0},
    {{6, 10}, {6, 3}, 1, 4}, {{6, 10}, {3, 10}, 0, 2}, {{2, 6, 3}, {2, 2, 3}, 1, 3},
    {{}, {}, 0, 0},          {{0, 3}, {3}, 1, 0},      {{4, 5}, {4, 5}, 0, 1},
};

TEST(QuantizeTest, EveryLayoutOfScalesEqualsTheReference) {
  const uint64_t seed = 90;
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  for (const Layout& layout : kLayouts) {
    for (ElementType byte : {ElementType::kUint8, ElementType::kInt8, ElementType::kInt16}) {
      const TestTensor scale =
          TestTensor::random(ElementType::kFloat, layout.scale, random, 0.01, 0.1);
      const TestTensor zero = TestTensor::random(byte, layout.scale, random, 0, 9);
      const Attributes attributes = {{"axis", layout.axis}, {"block_size", layout.block_size}};
      const TestTensor x = TestTensor::random(ElementType::kFloat, layout.x, random, -9, 9);
      compare_with_reference(make_call("QuantizeLinear", 21, {x, scale, zero}, attributes));
      const TestTensor q = TestTensor::random(byte, layout.x, random, 0, 100);
      compare_with_reference(make_call("DequantizeLinear", 21, {q, scale, zero}, attributes));
      compare_with_reference(make_call("DequantizeLinear", 21, {q, scale}, attributes));
    }
  }
}

TEST(QuantizeTest, HalvesGoToTheEvenNeighbourAndTheRangeIsKept) {
  const float infinity = std::numeric_limits<float>::infinity();
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const TestTensor x = TestTensor::of<float>({8}, {1, 3, 5, -1, 1e9f, infinity, -infinity, nan});
  const OpCall call = make_call("QuantizeLinear", 13,
                                {x, TestTensor::scalar(2.0f), TestTensor::scalar<uint8_t>(10)});
  for (KernelSet kernels : {KernelSet::kReference, KernelSet::kCpu}) {
    EXPECT_EQ(run_one(call, kernels).values<uint8_t>(),
              (std::vector<uint8_t>{10, 12, 12, 10, 255, 255, 0, 10}));
  }
}

TEST(QuantizeTest, TheDynamicScaleSpreadsTheRangeOverAByte) {
  Random random(91);
  for (const Dims& dims : {Dims{3, 77}, Dims{1}, Dims{}, Dims{0}}) {
    for (double low : {-4.0, 0.5}) {
      OpCall call = make_call("DynamicQuantizeLinear", 11,
                              {TestTensor::random(ElementType::kFloat, dims, random, low, 5)});
      call.num_outputs = 3;
      compare_with_reference(call);
    }
  }
  OpCall zeros = make_call("DynamicQuantizeLinear", 11, {TestTensor::of<float>({2}, {0, 0})});
  zeros.num_outputs = 3;
  const auto result = run_op(zeros, KernelSet::kCpu);
  ASSERT_TRUE(result.is_ok());
  EXPECT_EQ((*result)[0].tensor().values<uint8_t>(), (std::vector<uint8_t>{0, 0}));
  EXPECT_EQ((*result)[1].tensor().values<float>(), std::vector<float>{1});
}

TEST(QuantizeTest, AScaleThatDoesNotFitIsNamed) {
  const TestTensor x(ElementType::kFloat, {2, 3});
  const auto result =
      infer_op(make_call("QuantizeLinear", 13, {x, TestTensor::of<float>({2}, {1, 1})}));
  ASSERT_FALSE(result.is_ok());
  EXPECT_EQ(result.status().message(),
            "a scale of shape [2] does not fit x of shape [2,3] on axis 1");
}

}  // namespace
}  // namespace eddy::testing
