// Claim: the operators of ai.onnx.ml on features give what a hand computes, for each type that they
// take, on rows and on a single row, and check what they read.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/ops/testing/calls.h"

namespace eddy::testing {
namespace {

using Words = std::vector<std::string>;
using Ints = std::vector<int64_t>;
using Floats = std::vector<float>;

OpCall make(const char* op, std::vector<TestValue> inputs, Attributes attributes = {}) {
  return make_of("ai.onnx.ml", op, 1, std::move(inputs), std::move(attributes));
}

TestTensor run(const char* op, std::vector<TestValue> inputs, Attributes attributes = {}) {
  return run_one(make(op, std::move(inputs), std::move(attributes)), KernelSet::kCpu);
}

TEST(ArrayFeatureExtractorTest, PicksAlongTheLastAxis) {
  const TestTensor x = TestTensor::of<float>({3, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  const TestTensor z = run("ArrayFeatureExtractor", {x, TestTensor::of<int64_t>({2}, {0, 1})});
  EXPECT_EQ(z.dims(), (Dims{3, 2}));
  EXPECT_EQ(z.values<float>(), (Floats{0, 1, 4, 5, 8, 9}));
  // A single row becomes [1, picked]; indices may repeat and have any shape.
  const TestTensor row = TestTensor::of_strings({3}, {"a", "b", "c"});
  const TestTensor picked =
      run("ArrayFeatureExtractor", {row, TestTensor::of<int64_t>({2, 2}, {2, 2, 0, 1})});
  EXPECT_EQ(picked.dims(), (Dims{1, 4}));
  EXPECT_EQ(picked.strings(), (Words{"c", "c", "a", "b"}));
}

TEST(ArrayFeatureExtractorTest, AnIndexOutOfRangeFailsTheRun) {
  const TestTensor x = TestTensor::of<int32_t>({2, 2}, {1, 2, 3, 4});
  for (const int64_t index : {int64_t{2}, int64_t{-1}, INT64_MIN}) {
    const auto z = run_op(make("ArrayFeatureExtractor", {x, TestTensor::of<int64_t>({1}, {index})}),
                          KernelSet::kCpu);
    ASSERT_FALSE(z.is_ok()) << index;
    EXPECT_EQ(z.status().message(),
              "index " + std::to_string(index) + " is out of range for axis 1 of size 2");
  }
}

TEST(BinarizerTest, GreaterThanTheThresholdIsOne) {
  const Attributes half = {{"threshold", 0.5f}};
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(
      run("Binarizer", {TestTensor::of<float>({4}, {0.5f, 0.6f, -1, nan})}, half).values<float>(),
      (Floats{0, 1, 0, 0}));
  EXPECT_EQ(run("Binarizer", {TestTensor::of<int64_t>({3}, {0, 1, -7})}).values<int64_t>(),
            (Ints{0, 1, 0}));
  OpCall call = make("Binarizer", {TestTensor::of<double>({2}, {3, -3})});
  call.in_place_input = 0;
  EXPECT_EQ(run_one(call, KernelSet::kCpu).values<double>(), (std::vector<double>{1, 0}));
}

TEST(FeatureVectorizerTest, ColumnsStandBesideEachOtherAsFloats) {
  const TestTensor a = TestTensor::of<int32_t>({2, 2}, {1, 2, 3, 4}),
                   b = TestTensor::of<int32_t>({2, 1}, {5, 6});
  const Attributes sizes = {{"inputdimensions", Ints{2, 1}}};
  const TestTensor y = run("FeatureVectorizer", {a, b}, sizes);
  EXPECT_EQ(y.dims(), (Dims{2, 3}));
  EXPECT_EQ(y.values<float>(), (Floats{1, 2, 5, 3, 4, 6}));
  EXPECT_EQ(run("FeatureVectorizer", {a, b}).values<float>(), (Floats{1, 2, 5, 3, 4, 6}));
  const TestTensor row = TestTensor::of<double>({2}, {0.1, 7});
  const TestTensor one = run("FeatureVectorizer", {row, row});
  EXPECT_EQ(one.dims(), (Dims{1, 4}));
  EXPECT_EQ(one.values<float>(), (Floats{0.1f, 7, 0.1f, 7}));
}

TEST(ImputerTest, OneValueOrOneForEachFeature) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const TestTensor x = TestTensor::of<float>({2, 2}, {nan, 1, 2, nan});
  const Attributes each = {{"imputed_value_floats", Floats{10, 20}}, {"replaced_value_float", nan}};
  EXPECT_EQ(run("Imputer", {x}, each).values<float>(), (Floats{10, 1, 2, 20}));
  const Attributes one = {{"imputed_value_floats", Floats{-1}}, {"replaced_value_float", 2.0f}};
  const Floats y = run("Imputer", {x}, one).values<float>();
  EXPECT_TRUE(std::isnan(y[0]) && std::isnan(y[3]));
  EXPECT_EQ(y[1], 1);
  EXPECT_EQ(y[2], -1);
  const Attributes ints = {{"imputed_value_int64s", Ints{7, 8}},
                           {"replaced_value_int64", int64_t{-1}}};
  EXPECT_EQ(run("Imputer", {TestTensor::of<int64_t>({2}, {-1, -1})}, ints).values<int64_t>(),
            (Ints{7, 8}));
  EXPECT_EQ(run("Imputer", {TestTensor::of<int32_t>({1, 2}, {3, -1})}, ints).values<int32_t>(),
            (std::vector<int32_t>{3, 8}));
  EXPECT_EQ(
      run("Imputer", {TestTensor::of<double>({2}, {0, 5})}, {{"imputed_value_floats", Floats{1}}})
          .values<double>(),
      (std::vector<double>{1, 5}));
}

TEST(ImputerTest, AValueThatTheTypeOfXCannotHoldIsRefused) {
  const Attributes wide = {{"imputed_value_int64s", Ints{int64_t{1} << 40}}};
  const auto y =
      run_op(make("Imputer", {TestTensor::of<int32_t>({1}, {0})}, wide), KernelSet::kCpu);
  ASSERT_FALSE(y.is_ok());
  EXPECT_EQ(y.status().message(),
            "imputed_value_int64s holds 1099511627776, which is no int32, as X is");
}

TEST(NormalizerTest, EachRowIsDividedByItsNorm) {
  const TestTensor x = TestTensor::of<float>({3, 2}, {1, 4, -3, 1, 0, 0});
  EXPECT_EQ(run("Normalizer", {x}, {{"norm", "MAX"}}).values<float>(),
            (Floats{0.25f, 1, -3, 1, 0, 0}));
  EXPECT_EQ(run("Normalizer", {x}, {{"norm", "L1"}}).values<float>(),
            (Floats{0.2f, 0.8f, -0.75f, 0.25f, 0, 0}));
  const TestTensor row = TestTensor::of<int64_t>({2}, {3, -4});
  EXPECT_EQ(run("Normalizer", {row}, {{"norm", "L2"}}).values<float>(), (Floats{0.6f, -0.8f}));
  EXPECT_EQ(run("Normalizer", {TestTensor::of<double>({1, 2}, {1, 2})}).values<float>(),
            (Floats{0.5f, 1}));
}

TEST(ScalerTest, FirstTheOffsetThenTheScale) {
  const TestTensor x = TestTensor::of<float>({2, 2}, {1, 2, 3, 4});
  const Attributes each = {{"offset", Floats{1, 2}}, {"scale", Floats{10, 0.5f}}};
  EXPECT_EQ(run("Scaler", {x}, each).values<float>(), (Floats{0, 0, 20, 1}));
  const Attributes one = {{"offset", Floats{1}}, {"scale", Floats{2}}};
  EXPECT_EQ(run("Scaler", {TestTensor::of<int32_t>({3}, {1, 2, 5})}, one).values<float>(),
            (Floats{0, 2, 8}));
  EXPECT_EQ(run("Scaler", {x}, {{"scale", Floats{3}}}).values<float>(), (Floats{3, 6, 9, 12}));
  EXPECT_EQ(run("Scaler", {x}, {{"offset", Floats{-1}}}).values<float>(), (Floats{2, 3, 4, 5}));
}

}  // namespace
}  // namespace eddy::testing
