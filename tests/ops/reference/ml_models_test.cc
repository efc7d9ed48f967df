// Claim: linear models and support vector machines of ai.onnx.ml give the scores and labels that a
// hand computes from their attributes, through every transform and kernel function.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/ops/testing/calls.h"

namespace eddy::testing {
namespace {

using Words = std::vector<std::string>;
using Ints = std::vector<int64_t>;
using Floats = std::vector<float>;

OpCall make(const char* op, const TestTensor& x, Attributes attributes, size_t num_outputs) {
  return make_of("ai.onnx.ml", op, 1, {x}, std::move(attributes), num_outputs);
}

TestTensor regress(const char* op, const TestTensor& x, Attributes attributes) {
  return run_one(make(op, x, std::move(attributes), 1), KernelSet::kCpu);
}

struct Classes {
  TestTensor labels, scores;
};
Classes classify(const char* op, const TestTensor& x, Attributes attributes) {
  auto outputs = run_op(make(op, x, std::move(attributes), 2), KernelSet::kCpu);
  EXPECT_TRUE(outputs.is_ok()) << outputs.status().to_string();
  if (!outputs.is_ok()) return {};
  return {(*outputs)[0].tensor(), (*outputs)[1].tensor()};
}

void expect_near(const TestTensor& y, const Dims& dims, const std::vector<double>& expected) {
  ASSERT_EQ(y.dims(), dims);
  const Floats values = y.values<float>();
  for (size_t i = 0; i < expected.size(); ++i) EXPECT_NEAR(values[i], expected[i], 1e-6) << i;
}

double logistic(double x) { return 1 / (1 + std::exp(-x)); }

TEST(LinearRegressorTest, CoefficientsOfATargetStandTogether) {
  const TestTensor x = TestTensor::of<float>({2, 2}, {1, 2, 3, 4});
  Attributes model = {{"coefficients", Floats{1, 10, -1, 0.5f}},
                      {"intercepts", Floats{100, 0}},
                      {"targets", int64_t{2}}};
  expect_near(regress("LinearRegressor", x, model), {2, 2}, {121, 0, 143, -1});
  model.set("post_transform", "LOGISTIC");
  expect_near(regress("LinearRegressor", x, model), {2, 2}, {1, 0.5, 1, logistic(-1)});
  const TestTensor row = TestTensor::of<int64_t>({3}, {1, 2, 3});
  expect_near(regress("LinearRegressor", row, {{"coefficients", Floats{1, 2, 3}}}), {1, 1}, {14});
}

TEST(LinearClassifierTest, EachClassHasAScore) {
  const TestTensor x = TestTensor::of<double>({2, 2}, {1, 0, 0, 3});
  Attributes model = {{"coefficients", Floats{1, 0, 0, 1, -1, -1}},
                      {"intercepts", Floats{0, -1, 0.5f}},
                      {"classlabels_strings", Words{"x", "y", "none"}}};
  Classes y = classify("LinearClassifier", x, model);
  EXPECT_EQ(y.labels.strings(), (Words{"x", "y"}));
  expect_near(y.scores, {2, 3}, {1, -1, -0.5, 0, 2, -2.5});
  model.set("post_transform", "SOFTMAX");
  y = classify("LinearClassifier", x, model);
  const double sum = std::exp(1) + std::exp(-1) + std::exp(-0.5);
  expect_near(
      y.scores, {2, 3},
      {std::exp(1) / sum, std::exp(-1) / sum, std::exp(-0.5) / sum,
       1 / (1 + std::exp(2) + std::exp(-2.5)), std::exp(2) / (1 + std::exp(2) + std::exp(-2.5)),
       std::exp(-2.5) / (1 + std::exp(2) + std::exp(-2.5))});
  // The zero of the second row stays near zero, and takes little of the rest.
  model.set("post_transform", "SOFTMAX_ZERO");
  y = classify("LinearClassifier", x, model);
  const Floats scores = y.scores.values<float>();
  EXPECT_EQ(scores[3], 0);
  EXPECT_NEAR(scores[4], 1 / (1 + std::exp(-4.5)), 1e-6);
}

TEST(LinearClassifierTest, TwoClassesMayShareAScore) {
  const TestTensor x = TestTensor::of<float>({3, 1}, {2, -1, 0});
  Attributes model = {{"coefficients", Floats{1}}, {"classlabels_ints", Ints{7, 9}}};
  Classes y = classify("LinearClassifier", x, model);
  EXPECT_EQ(y.labels.values<int64_t>(), (Ints{9, 7, 7}));
  expect_near(y.scores, {3, 2}, {-1, 2, 2, -1, 1, 0});
  model.set("post_transform", "LOGISTIC");
  y = classify("LinearClassifier", x, model);
  EXPECT_EQ(y.labels.values<int64_t>(), (Ints{9, 7, 7}));
  expect_near(y.scores, {3, 2}, {logistic(-2), logistic(2), logistic(1), logistic(-1), 0.5, 0.5});
  model.set("classlabels_ints", Ints{5});
  y = classify("LinearClassifier", x, model);
  EXPECT_EQ(y.labels.values<int64_t>(), (Ints{5, 0, 5}));
  expect_near(y.scores, {3, 1}, {logistic(2), logistic(-1), 0.5});
}

TEST(LinearClassifierTest, ProbitInvertsTheNormalDistribution) {
  const TestTensor x = TestTensor::of<float>({1, 1}, {1});
  const std::vector<double> expected = {-1.2816, 0, 1.6449};
  const Attributes model = {{"coefficients", Floats{0.1f, 0.5f, 0.95f}},
                            {"classlabels_ints", Ints{0, 1, 2}},
                            {"post_transform", "PROBIT"}};
  const Classes y = classify("LinearClassifier", x, model);
  EXPECT_EQ(y.labels.values<int64_t>(), (Ints{2}));
  // The formula is good to three digits.
  for (size_t i = 0; i < 3; ++i) {
    EXPECT_NEAR(y.scores.values<float>()[i], expected[i], 4e-3) << i;
  }
}

TEST(SvmRegressorTest, KernelFunctionsOfTheVectors) {
  const TestTensor x = TestTensor::of<float>({1, 2}, {1, 2});
  // Products of x and the vectors: 3 and -1; squared distances: 1 and 8.
  Attributes model = {{"support_vectors", Floats{1, 1, -1, 0}},
                      {"coefficients", Floats{2, -1}},
                      {"n_supports", int64_t{2}},
                      {"rho", Floats{0.25f}},
                      {"kernel_params", Floats{0.5f, 1, 3}}};
  expect_near(regress("SVMRegressor", x, model), {1, 1}, {2 * 3 + 1 + 0.25});
  model.set("kernel_type", "POLY");
  expect_near(regress("SVMRegressor", x, model), {1, 1},
              {2 * std::pow(2.5, 3) - std::pow(0.5, 3) + 0.25});
  model.set("kernel_type", "RBF");
  expect_near(regress("SVMRegressor", x, model), {1, 1},
              {2 * std::exp(-0.5) - std::exp(-0.5 * 8) + 0.25});
  model.set("kernel_type", "SIGMOID");
  expect_near(regress("SVMRegressor", x, model), {1, 1},
              {2 * std::tanh(2.5) - std::tanh(0.5) + 0.25});
  model.set("one_class", int64_t{1});
  expect_near(regress("SVMRegressor", x, model), {1, 1}, {1});
  model.set("rho", Floats{-9});
  expect_near(regress("SVMRegressor", x, model), {1, 1}, {-1});
}

TEST(SvmRegressorTest, WithoutVectorsItIsLinear) {
  const TestTensor x = TestTensor::of<int32_t>({2, 2}, {1, 2, 3, 4});
  expect_near(regress("SVMRegressor", x, {{"coefficients", Floats{1, -1}}, {"rho", Floats{0.5f}}}),
              {2, 1}, {-0.5, -0.5});
}

// Three classes with one vector each, at 1, 2 and 4 on a line. Products with x: x, 2x, 4x.
Attributes three_classes() {
  return {{"support_vectors", Floats{1, 2, 4}},
          {"vectors_per_class", Ints{1, 1, 1}},
          // Row 0: a against b, b against a, c against a; row 1: a and b against c, c against b.
          {"coefficients", Floats{1, -1, -0.5f, 0.25f, 1, -1}},
          {"rho", Floats{1, 0, 3}},
          {"classlabels_strings", Words{"a", "b", "c"}}};
}

TEST(SvmClassifierTest, ThreeClassesVoteInPairs) {
  const TestTensor x = TestTensor::of<float>({2, 1}, {2, -3});
  // Pair (a, b): 1 * x - 1 * 2x + 1; (a, c): 0.25 * x - 0.5 * 4x; (b, c): 1 * 2x - 1 * 4x + 3.
  const Classes y = classify("SVMClassifier", x, three_classes());
  expect_near(y.scores, {2, 3}, {-1, -3.5, -1, 4, 5.25, 9});
  EXPECT_EQ(y.labels.strings(), (Words{"c", "a"}));
}

TEST(SvmClassifierTest, ProbabilitiesAreCoupled) {
  Attributes model = three_classes();
  model.set("prob_a", Floats{-1, -2, -0.5f});
  model.set("prob_b", Floats{0, 0.5f, 0});
  const TestTensor x = TestTensor::of<float>({2, 1}, {2, -3});
  const Classes y = classify("SVMClassifier", x, model);
  ASSERT_EQ(y.scores.dims(), (Dims{2, 3}));
  const Floats p = y.scores.values<float>();
  for (size_t row = 0; row < 2; ++row) {
    EXPECT_NEAR(p[3 * row] + p[3 * row + 1] + p[3 * row + 2], 1, 1e-6);
  }
  // Of the first row c wins both of its pairs, and a loses both.
  EXPECT_GT(p[2], p[1]);
  EXPECT_GT(p[1], p[0]);
  EXPECT_GT(p[3], p[4]);
  EXPECT_GT(p[4], p[5]);
  EXPECT_EQ(y.labels.strings(), (Words{"c", "a"}));
}

TEST(SvmClassifierTest, OfTwoClassesThePairHasBothProbabilities) {
  Attributes model = {{"support_vectors", Floats{1, -1}},
                      {"vectors_per_class", Ints{1, 1}},
                      {"coefficients", Floats{0.5f, -0.5f}},
                      {"rho", Floats{0.25f}},
                      {"classlabels_ints", Ints{0, 1}}};
  const TestTensor x = TestTensor::of<float>({2, 1}, {2, -1});
  Classes y = classify("SVMClassifier", x, model);
  EXPECT_EQ(y.labels.values<int64_t>(), (Ints{0, 1}));
  expect_near(y.scores, {2, 2}, {-2.25, 2.25, 0.75, -0.75});
  model.set("prob_a", Floats{-2});
  model.set("prob_b", Floats{0.5f});
  y = classify("SVMClassifier", x, model);
  EXPECT_EQ(y.labels.values<int64_t>(), (Ints{0, 1}));
  // Two classes need no coupling: the pair's probability is the first's, as near as the fixed
  // point is sought.
  const Floats p = y.scores.values<float>();
  EXPECT_NEAR(p[0], logistic(4), 5e-3);
  EXPECT_NEAR(p[3], logistic(2), 5e-3);
  EXPECT_NEAR(p[0] + p[1], 1, 1e-6);
}

TEST(SvmClassifierTest, WithoutVectorsEachClassHasARowOfCoefficients) {
  const TestTensor x = TestTensor::of<float>({2, 2}, {1, 0, 0, 1});
  const Attributes model = {{"coefficients", Floats{1, 2, 3, -1, 0, 0}},
                            {"rho", Floats{0.5f}},
                            {"classlabels_ints", Ints{3, 4, 5}}};
  const Classes y = classify("SVMClassifier", x, model);
  expect_near(y.scores, {2, 3}, {1.5, 3.5, 0.5, 2.5, -0.5, 0.5});
  EXPECT_EQ(y.labels.values<int64_t>(), (Ints{4, 3}));
}

}  // namespace
}  // namespace eddy::testing
