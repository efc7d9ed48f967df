// Claim: Softmax and LogSoftmax equal the reference along every axis, before and since opset 13,
// for values large enough to overflow an exponential, and in place.
#include <gtest/gtest.h>

#include <string>

#include "tests/ops/testing/op_runner.h"

namespace eddy::testing {
namespace {

OpCall softmax(const std::string& op, int opset, const TestTensor& x) {
  OpCall call;
  call.op = op;
  call.opset = opset;
  call.inputs = {x};
  return call;
}

TEST(SoftmaxTest, EveryAxisEqualsTheReference) {
  const uint64_t seed = 80;
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  for (const char* op : {"Softmax", "LogSoftmax", "Hardmax"}) {
    for (int opset : {7, 13}) {
      for (const Dims& dims : {Dims{3, 4, 5}, Dims{2, 67}, Dims{1}, Dims{4, 1, 33}, Dims{0, 3}}) {
        for (ElementType element : {ElementType::kFloat, ElementType::kDouble}) {
          OpCall call = softmax(op, opset, TestTensor::random(element, dims, random, -9, 9));
          compare_with_reference(call, 2e-6, 1e-6);
          for (int64_t axis = -dims.rank(); axis < dims.rank(); ++axis) {
            call.attributes.set("axis", axis);
            compare_with_reference(call, 2e-6, 1e-6);
          }
        }
      }
    }
  }
}

TEST(SoftmaxTest, OldVersionsFlattenAndNewOnesWorkAlongTheLastAxis) {
  const TestTensor zeros = TestTensor::of<float>({1, 2, 2}, {0, 0, 0, 0});
  EXPECT_EQ(run_one(softmax("Softmax", 11, zeros), KernelSet::kCpu).values<float>(),
            (std::vector<float>{0.25f, 0.25f, 0.25f, 0.25f}));
  EXPECT_EQ(run_one(softmax("Softmax", 13, zeros), KernelSet::kCpu).values<float>(),
            (std::vector<float>{0.5f, 0.5f, 0.5f, 0.5f}));
}

TEST(SoftmaxTest, LargeValuesDoNotOverflow) {
  const TestTensor x = TestTensor::of<float>({2, 4}, {0, 1, 2, 3, 10000, 10001, 10002, 10003});
  for (const char* op : {"Softmax", "LogSoftmax"}) {
    const std::vector<float> y = run_one(softmax(op, 13, x), KernelSet::kCpu).values<float>();
    for (size_t i = 0; i < 4; ++i) EXPECT_EQ(y[i], y[i + 4]) << op;
  }
}

TEST(SoftmaxTest, InPlaceGivesTheSameBits) {
  Random random(81);
  for (const char* op : {"Softmax", "LogSoftmax", "Hardmax"}) {
    for (int64_t axis : {0, 1}) {
      OpCall call = softmax(op, 13, TestTensor::random(ElementType::kFloat, {7, 21}, random));
      call.attributes.set("axis", axis);
      const TestTensor apart = run_one(call, KernelSet::kCpu);
      call.in_place_input = 0;
      EXPECT_TRUE(is_same_bits(run_one(call, KernelSet::kCpu), apart)) << op << axis;
    }
  }
}

TEST(SoftmaxTest, AnAxisOutOfRangeIsNamed) {
  OpCall call = softmax("Softmax", 13, TestTensor(ElementType::kFloat, {2, 2}));
  call.attributes.set("axis", int64_t{2});
  const auto result = infer_op(call);
  ASSERT_FALSE(result.is_ok());
  EXPECT_EQ(result.status().message(), "axis 2 is out of range for rank 2: -2..1");
}

}  // namespace
}  // namespace eddy::testing
