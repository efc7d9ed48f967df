// Claim: what rules build can be differentiated again: second derivatives of a sample of every
// family agree with central differences of the first ones to 1e-5 relative, with shapes known and
// unknown; and every operator that the sample's gradients are made of has a rule or is flat.
#include <gtest/gtest.h>

#include "tests/ops/gradient/gradient_check.h"

namespace eddy::testing {
namespace {

using Ints = std::vector<int64_t>;

constexpr uint64_t kSeed = 7;

TestTensor doubles(const Dims& dims, double low = 0.4, double high = 1.6) {
  Random random(kSeed + static_cast<uint64_t>(dims.rank()));
  return TestTensor::random(ElementType::kDouble, dims, random, low, high);
}
TestTensor ints(const Ints& values) {
  return TestTensor::of<int64_t>({static_cast<int64_t>(values.size())}, values);
}

OpCall make(const char* op, std::vector<TestValue> inputs, Attributes attributes = {},
            int opset = 22) {
  OpCall call;
  call.op = op;
  call.opset = opset;
  call.inputs = std::move(inputs);
  call.attributes = std::move(attributes);
  return call;
}

class SecondOrderTest : public ::testing::Test {
 protected:
  void SetUp() override { printf("seed %llu\n", static_cast<unsigned long long>(kSeed)); }
};

TEST_F(SecondOrderTest, Elementwise) {
  for (const char* op : {"Exp", "Log", "Sqrt", "Sigmoid", "Tanh", "Sin", "Cos", "Atan", "Erf",
                         "Softplus", "Gelu", "Mish", "Elu", "Reciprocal", "Relu", "Asinh"}) {
    expect_second_order(make(op, {doubles({3})}));
  }
  for (const char* op : {"Mul", "Div", "Pow", "Max"}) {
    expect_second_order(make(op, {doubles({2, 3}), doubles({3}, 0.5, 1.7)}));
  }
  const TestTensor truths = TestTensor::of<bool>({3}, {true, false, true});
  expect_second_order(make("Where", {truths, doubles({3}), doubles({2, 3})}));
}

TEST_F(SecondOrderTest, ReductionsAndProducts) {
  for (const char* op : {"ReduceProd", "ReduceL2", "ReduceLogSumExp", "ReduceSumSquare",
                         "ReduceMean", "ReduceMax", "ReduceLogSum"}) {
    expect_second_order(make(op, {doubles({2, 3}), ints({1})}, {{"keepdims", int64_t{0}}}));
  }
  expect_second_order(make("MatMul", {doubles({2, 3}), doubles({3, 2})}));
  expect_second_order(make("MatMul", {doubles({2, 2, 3}), doubles({2, 3, 2})}));
  expect_second_order(make("Gemm", {doubles({3, 2}), doubles({2, 3}), doubles({2})},
                           {{"transA", int64_t{1}}, {"transB", int64_t{1}}, {"alpha", 0.5f}}));
}

TEST_F(SecondOrderTest, Moving) {
  expect_second_order(make("Gather", {doubles({3, 2}), ints({0, 2, 2})}));
  expect_second_order(make("Slice", {doubles({3, 2}), ints({0}), ints({3}), ints({0}), ints({2})}));
  expect_second_order(make("Concat", {doubles({2, 1}), doubles({2, 2})}, {{"axis", int64_t{1}}}));
  expect_second_order(make("Tile", {doubles({2, 2}), ints({1, 2})}));
}

TEST_F(SecondOrderTest, Networks) {
  expect_second_order(make("Softmax", {doubles({2, 3})}));
  expect_second_order(make("LogSoftmax", {doubles({2, 3})}));
  expect_second_order(make("LayerNormalization", {doubles({2, 3}), doubles({3}), doubles({3})}));
  expect_second_order(make("Conv", {doubles({1, 2, 4}), doubles({2, 2, 2})},
                           {{"strides", Ints{2}}, {"pads", Ints{1, 0}}}));
  expect_second_order(make("AveragePool", {doubles({1, 1, 4})}, {{"kernel_shape", Ints{2}}}));
  expect_second_order(make("MaxPool", {doubles({1, 1, 4})}, {{"kernel_shape", Ints{2}}}));
  expect_second_order(make("SoftmaxCrossEntropyLoss", {doubles({2, 3}), ints({0, 2})}));
}

TEST_F(SecondOrderTest, TheTableSaysWhyOperatorsAreFlat) {
  size_t num_flat = 0;
  for (const GradientRule& rule : gradient_rules().all()) {
    EXPECT_EQ(rule.is_flat(), !rule.reason.empty()) << rule.op;
    EXPECT_EQ(rule.is_flat(), rule.reads.empty()) << rule.op;
    EXPECT_TRUE(gradient_ops().knows(rule.domain, rule.op)) << rule.op;
    num_flat += rule.is_flat();
  }
  EXPECT_GE(num_flat, 20u);
  EXPECT_GE(gradient_rules().all().size() - num_flat, 90u);
}

}  // namespace
}  // namespace eddy::testing
