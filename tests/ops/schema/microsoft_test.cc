// Claim: operators of domain com.microsoft that stand for others, attention aside, give what plain
// loops over their definitions give, on seeded inputs, by both sets of kernels and however little
// is known of the shapes; quantized results lie within half a step of the exact ones; and a breach
// of their rules is refused by name.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <iostream>

#include "tests/ops/testing/calls.h"

namespace eddy::testing {
namespace {

using Ints = std::vector<int64_t>;
using Floats = std::vector<float>;

constexpr uint64_t kSeed = 23;
const TestValue kNone = TestValue::omitted();

OpCall make(const char* op, std::vector<TestValue> inputs, Attributes attributes = {},
            size_t num_outputs = 1) {
  return make_of("com.microsoft", op, 1, std::move(inputs), std::move(attributes), num_outputs);
}

class MicrosoftTest : public ::testing::Test {
 protected:
  MicrosoftTest() { std::cout << "seed " << kSeed << "\n"; }

  TestTensor floats(const Dims& dims, double low = -2, double high = 2) {
    return TestTensor::random(ElementType::kFloat, dims, random_, low, high);
  }
  TestTensor bytes(const Dims& dims, ElementType element = ElementType::kUint8) {
    const bool is_signed = element == ElementType::kInt8;
    return TestTensor::random(element, dims, random_, is_signed ? -128 : 0, is_signed ? 127 : 255);
  }

  // Each element is round(exact[i]) of the type, where no sum lies too near to the middle.
  static void expect_quantized(OpCall call, const std::vector<double>& exact) {
    for (const KernelSet kernels : {KernelSet::kReference, KernelSet::kCpu}) {
      const TestTensor found = run_one(call, kernels);
      ASSERT_EQ(found.count(), static_cast<int64_t>(exact.size())) << call.op;
      const bool is_signed = found.element() == ElementType::kInt8;
      for (int64_t i = 0; i < found.count(); ++i) {
        const double bounded = std::clamp(exact[static_cast<size_t>(i)], is_signed ? -128.0 : 0.0,
                                          is_signed ? 127.0 : 255.0);
        EXPECT_NEAR(number_at(found.view(), i), bounded, 0.501) << call.op << " " << i;
      }
    }
  }

  Random random_{kSeed};
};

double at(const TestTensor& tensor, int64_t i) { return number_at(tensor.view(), i); }

TestTensor map(const TestTensor& x, const std::function<double(double, int64_t)>& function) {
  Floats values;
  for (int64_t i = 0; i < x.count(); ++i) {
    values.push_back(static_cast<float>(function(at(x, i), i)));
  }
  return TestTensor::of<float>(x.dims(), values);
}

TEST_F(MicrosoftTest, ActivationsAreTheirFormulas) {
  const TestTensor x = floats({2, 3, 5}, -4, 4), bias = floats({5});
  const auto gelu = [](double v) { return v / 2 * (1 + std::erf(v / std::sqrt(2.0))); };
  const auto fast = [](double v) {
    return 0.5 * v * (1 + std::tanh(0.797885 * v + 0.035677 * v * v * v));
  };
  expect_all(make("Gelu", {x}), {map(x, [&](double v, int64_t) { return gelu(v); })});
  expect_all(make("BiasGelu", {x, bias}),
             {map(x, [&](double v, int64_t i) { return gelu(v + at(bias, i % 5)); })});
  expect_all(make("FastGelu", {x}), {map(x, [&](double v, int64_t) { return fast(v); })});
  expect_all(make("FastGelu", {x, bias}),
             {map(x, [&](double v, int64_t i) { return fast(v + at(bias, i % 5)); })});
  for (const float alpha : {1.702f, 0.5f}) {
    const Attributes given = {{"alpha", alpha}};
    expect_all(make("QuickGelu", {x}, alpha == 0.5f ? given : Attributes()),
               {map(x, [&](double v, int64_t) { return v / (1 + std::exp(-double{alpha} * v)); })});
  }
  EXPECT_EQ(refusal(make("BiasGelu", {x, floats({4})})),
            "the bias must hold one value for each place of the last axis of [2,3,5], not [4]");
}

// y[b][i][j] of matrices read through steps: a at b, i, k and b's at b, k, j.
TestTensor product(const TestTensor& a, const Ints& a_steps, const TestTensor& b,
                   const Ints& b_steps, const Ints& sizes, double alpha) {
  Floats values;
  for (int64_t batch = 0; batch < sizes[0]; ++batch) {
    for (int64_t i = 0; i < sizes[1]; ++i) {
      for (int64_t j = 0; j < sizes[2]; ++j) {
        double sum = 0;
        for (int64_t k = 0; k < sizes[3]; ++k) {
          sum += at(a, batch * a_steps[0] + i * a_steps[1] + k * a_steps[2]) *
                 at(b, batch * b_steps[0] + k * b_steps[1] + j * b_steps[2]);
        }
        values.push_back(static_cast<float>(alpha * sum));
      }
    }
  }
  return TestTensor::of<float>({sizes[0], sizes[1], sizes[2]}, values);
}

TEST_F(MicrosoftTest, FusedMatMulTransposesMatricesAndBatches) {
  const Ints sizes = {2, 3, 5, 4};
  const TestTensor a = floats({2, 3, 4}), a_t = floats({2, 4, 3}), b = floats({2, 4, 5}),
                   b_t = floats({2, 5, 4});
  expect_all(make("FusedMatMul", {a, b}), {product(a, {12, 4, 1}, b, {20, 5, 1}, sizes, 1)});
  expect_all(make("FusedMatMul", {a_t, b_t},
                  {{"transA", int64_t{1}}, {"transB", int64_t{1}}, {"alpha", -0.5f}}),
             {product(a_t, {12, 1, 3}, b_t, {20, 1, 4}, sizes, -0.5)});
  const TestTensor swapped = floats({3, 2, 4}), swapped_t = floats({4, 2, 3});
  expect_all(make("FusedMatMul", {swapped, b}, {{"transBatchA", int64_t{1}}}),
             {product(swapped, {4, 8, 1}, b, {20, 5, 1}, sizes, 1)});
  expect_all(
      make("FusedMatMul", {swapped_t, b}, {{"transBatchA", int64_t{1}}, {"transA", int64_t{1}}}),
      {product(swapped_t, {3, 1, 6}, b, {20, 5, 1}, sizes, 1)});
  EXPECT_EQ(
      refusal(make("FusedMatMul", {floats({3, 4}), floats({4, 5})}, {{"transBatchA", int64_t{1}}})),
      "transBatchA wants at least 3 dimensions of A, not [3,4]");
  EXPECT_EQ(refusal(make("FusedMatMul", {a, b}, {{"transA", int64_t{2}}})),
            "attribute 'transA' of FusedMatMul must be 0 or 1, not 2");
}

// One channel, one tap of weight 2: y = f(2 x + b + z).
TEST_F(MicrosoftTest, FusedConvAddsAndActivates) {
  const TestTensor x = floats({1, 1, 3, 4}), z = floats({1, 1, 3, 4});
  const TestTensor w = TestTensor::of<float>({1, 1, 1, 1}, {2}),
                   b = TestTensor::of<float>({1}, {0.25f});
  const auto expect = [&](const char* name, const Floats& parameters,
                          const std::function<double(double)>& function) {
    Attributes attributes = {{"activation", name}};
    if (!parameters.empty()) attributes.set("activation_params", parameters);
    expect_all(make("FusedConv", {x, w, b, z}, attributes),
               {map(x, [&](double v, int64_t i) { return function(2 * v + 0.25 + at(z, i)); })});
  };
  expect("Relu", {}, [](double v) { return std::max(v, 0.0); });
  expect("Tanh", {}, [](double v) { return std::tanh(v); });
  expect("Sigmoid", {}, [](double v) { return 1 / (1 + std::exp(-v)); });
  expect("LeakyRelu", {0.3f}, [](double v) { return v < 0 ? 0.3 * v : v; });
  expect("Clip", {-0.5f, 0.75f}, [](double v) { return std::clamp(v, -0.5, 0.75); });
  expect("HardSigmoid", {0.3f, 0.4f}, [](double v) { return std::clamp(0.3 * v + 0.4, 0.0, 1.0); });
  expect_all(make("FusedConv", {x, w}), {map(x, [](double v, int64_t) { return 2 * v; })});
  EXPECT_EQ(refusal(make("FusedConv", {x, w, b}, {{"activation", "Elu"}})),
            "activation of FusedConv must be Relu, Tanh, Sigmoid, LeakyRelu, Clip or HardSigmoid, "
            "not 'Elu'");
  EXPECT_EQ(refusal(make("FusedConv", {x, w, b}, {{"activation", "Clip"}})),
            "activation Clip takes 2 activation_params, not 0");
}

struct Normal {
  TestTensor y, mean, inverse;
};
// Rows of `sums`; the mean counts in the deviation unless the norm is simplified.
Normal normalize(const TestTensor& sums, const TestTensor& gamma, const TestTensor* beta_or_null,
                 double epsilon, bool is_simplified) {
  const int64_t width = gamma.count(), rows = sums.count() / width;
  Floats y, means, inverses;
  for (int64_t r = 0; r < rows; ++r) {
    double mean = 0, square = 0;
    for (int64_t i = 0; i < width; ++i) mean += at(sums, r * width + i) / double(width);
    const double shift = is_simplified ? 0 : mean;
    for (int64_t i = 0; i < width; ++i) {
      square += std::pow(at(sums, r * width + i) - shift, 2) / double(width);
    }
    const double inverse = 1 / std::sqrt(square + epsilon);
    for (int64_t i = 0; i < width; ++i) {
      const double beta = beta_or_null == nullptr ? 0 : at(*beta_or_null, i);
      y.push_back(
          static_cast<float>((at(sums, r * width + i) - shift) * inverse * at(gamma, i) + beta));
    }
    means.push_back(static_cast<float>(mean));
    inverses.push_back(static_cast<float>(inverse));
  }
  Dims one = sums.dims();
  one[one.rank() - 1] = 1;
  return {TestTensor::of<float>(sums.dims(), y), TestTensor::of<float>(one, means),
          TestTensor::of<float>(one, inverses)};
}

TEST_F(MicrosoftTest, SkippedNormalizationsGiveTheSumToo) {
  const TestTensor x = floats({2, 3, 4}), gamma = floats({4}), beta = floats({4}),
                   bias = floats({4});
  for (const Dims& dims : {Dims{2, 3, 4}, Dims{1, 3, 4}, Dims{3, 4}}) {
    const TestTensor skip = floats(dims);
    const TestTensor sum =
        map(x, [&](double v, int64_t i) { return v + at(skip, i % skip.count()); });
    const TestTensor biased = map(sum, [&](double v, int64_t i) { return v + at(bias, i % 4); });
    const Normal plain = normalize(sum, gamma, nullptr, 1e-12, false);
    expect_all(make("SkipLayerNormalization", {x, skip, gamma}),
               {plain.y, plain.mean, plain.inverse, sum});
    const Normal full = normalize(biased, gamma, &beta, 0.5, false);
    expect_all(make("SkipLayerNormalization", {x, skip, gamma, beta, bias}, {{"epsilon", 0.5f}}),
               {full.y, full.mean, full.inverse, biased});
    const Normal simple = normalize(biased, gamma, nullptr, 0.5, true);
    expect_all(
        make("SkipSimplifiedLayerNormalization", {x, skip, gamma, bias}, {{"epsilon", 0.5f}}),
        {simple.y, simple.mean, simple.inverse, biased});
  }
  OpCall alone = make("SimplifiedLayerNormalization", {x, gamma}, {{"epsilon", 0.5f}});
  alone.domain = "";
  alone.opset = 14;
  const Normal simple = normalize(x, gamma, nullptr, 0.5, true);
  expect_all(alone, {simple.y, simple.inverse});
  alone.attributes.set("axis", int64_t{1});
  EXPECT_EQ(refusal(alone), "axis of SimplifiedLayerNormalization must be the last, not 1 of 3");
  EXPECT_EQ(refusal(make("SkipLayerNormalization", {x, floats({2, 4}), gamma})),
            "skip of shape [2,4] must be [2,3,4], or that without a batch or with one of 1");
  EXPECT_EQ(refusal(make("SkipLayerNormalization", {x, x, floats({3})})),
            "gamma of shape [3] must be [4]");
  EXPECT_EQ(refusal(make("SkipSimplifiedLayerNormalization", {floats({4}), floats({4}), gamma})),
            "input of SkipSimplifiedLayerNormalization must have 2 or 3 dimensions, not [4]");
}

TEST_F(MicrosoftTest, EmbedLayerNormalizationAddsRowsAndCountsTheMask) {
  const std::vector<int32_t> words = {0, 4, 2, 1, 1, 3}, parts = {0, 1, 1, 0, 0, 1},
                             places = {5, 4, 3, 0, 1, 2};
  const auto list = [](const std::vector<int32_t>& values) {
    return TestTensor::of<int32_t>({2, 3}, values);
  };
  const TestTensor word = floats({5, 4}), position = floats({6, 4}), segment = floats({2, 4});
  const TestTensor gamma = floats({4}), beta = floats({4});
  const auto sum_of = [&](bool has_segments, bool has_places) {
    Floats values;
    for (size_t i = 0; i < 24; ++i) {
      const size_t token = i / 4;
      const int64_t lane = static_cast<int64_t>(i % 4);
      double sum = at(word, words[token] * 4 + lane);
      sum +=
          at(position, (has_places ? places[token] : static_cast<int64_t>(token % 3)) * 4 + lane);
      if (has_segments) sum += at(segment, parts[token] * 4 + lane);
      values.push_back(static_cast<float>(sum));
    }
    return TestTensor::of<float>({2, 3, 4}, values);
  };
  const TestTensor both = sum_of(true, false), placed = sum_of(false, true);
  expect_all(
      make("EmbedLayerNormalization", {list(words), list(parts), word, position, segment, gamma,
                                       beta, list({1, 1, 0, 1, 1, 1})}),
      {normalize(both, gamma, &beta, 1e-12, false).y, TestTensor::of<int32_t>({2}, {2, 3}), both});
  expect_all(make("EmbedLayerNormalization",
                  {list(words), kNone, word, position, kNone, gamma, beta, kNone, list(places)},
                  {{"epsilon", 0.5f}}),
             {normalize(placed, gamma, &beta, 0.5, false).y, TestTensor::of<int32_t>({2}, {0, 0}),
              placed});
  EXPECT_EQ(refusal(make("EmbedLayerNormalization",
                         {list(words), list(parts), word, position, kNone, gamma, beta})),
            "segment_ids and segment_embedding go together, but one is missing");
  EXPECT_EQ(refusal(make("EmbedLayerNormalization",
                         {list(words), kNone, word, floats({6, 5}), kNone, gamma, beta})),
            "the embeddings must be matrices of equally many columns, not [6,5]");
}

TEST_F(MicrosoftTest, IntegerProductsAreExactBeforeTheyAreScaled) {
  for (const ElementType element : {ElementType::kUint8, ElementType::kInt8}) {
    const TestTensor a = bytes({3, 7}), b = bytes({7, 5}, element), zeros = bytes({5}, element);
    const TestTensor scales = floats({5}, 0.01, 0.02), bias = floats({5});
    const TestTensor a_scale = TestTensor::scalar(0.03f), a_zero = TestTensor::scalar<uint8_t>(77);
    const auto expected = [&](double shift, bool has_zeros, bool has_bias) {
      Floats values;
      for (int64_t i = 0; i < 3; ++i) {
        for (int64_t j = 0; j < 5; ++j) {
          double sum = 0;
          for (int64_t k = 0; k < 7; ++k) {
            sum += (at(a, i * 7 + k) - shift) * (at(b, k * 5 + j) - (has_zeros ? at(zeros, j) : 0));
          }
          sum = sum * double{0.03f} * at(scales, j) + (has_bias ? at(bias, j) : 0);
          values.push_back(static_cast<float>(sum));
        }
      }
      return TestTensor::of<float>({3, 5}, values);
    };
    expect_all(make("MatMulIntegerToFloat", {a, b, a_scale, scales, a_zero, zeros, bias}),
               {expected(77, true, true)});
    expect_all(make("MatMulIntegerToFloat", {a, b, a_scale, scales}), {expected(0, false, false)});
  }
  EXPECT_EQ(refusal(make("MatMulIntegerToFloat",
                         {bytes({3, 7}), bytes({7, 5}), TestTensor::scalar(1.0f), floats({4})})),
            "b_scale must be one value or one for each column of [7,5], not [4]");
  EXPECT_EQ(refusal(make("MatMulIntegerToFloat",
                         {bytes({3, 7}), bytes({7, 5}), floats({2}), floats({5})})),
            "a_scale must have one element, not 2");
}

// Rows of A hold the numbers 0 to 255 times a scale: quantizing loses nothing.
TEST_F(MicrosoftTest, DynamicQuantizeMatMulQuantizesA) {
  Floats a;
  for (int i = 0; i < 6; ++i) a.push_back(0.5f * static_cast<float>(random_.below(256)));
  a[0] = 0, a[1] = 127.5f;
  const TestTensor b = bytes({3, 4}, ElementType::kInt8), bias = floats({4});
  Floats values;
  for (size_t i = 0; i < 2; ++i) {
    for (int64_t j = 0; j < 4; ++j) {
      double sum = at(bias, j);
      for (int64_t k = 0; k < 3; ++k)
        sum += double{a[i * 3 + static_cast<size_t>(k)]} * 0.25 * (at(b, k * 4 + j) - 3);
      values.push_back(static_cast<float>(sum));
    }
  }
  expect_all(
      make("DynamicQuantizeMatMul", {TestTensor::of<float>({2, 3}, a), b, TestTensor::scalar(0.25f),
                                     TestTensor::scalar<int8_t>(3), bias}),
      {TestTensor::of<float>({2, 4}, values)});
}

TEST_F(MicrosoftTest, QuantizedElementsAreWithinHalfAStep) {
  const auto scale = [](float value) { return TestTensor::scalar(value); };
  const auto zero = [](uint8_t value) { return TestTensor::scalar(value); };
  const TestTensor a = bytes({2, 3, 4}), b = bytes({3, 1}), more = bytes({2, 5, 4});
  std::vector<double> sums, products, joined, means(2 * 3), last_means(2 * 4);
  for (int64_t i = 0; i < 24; ++i) {
    const double x = 0.02 * (at(a, i) - 120), y = 0.03 * (at(b, i / 4 % 3) - 99);
    sums.push_back((x + y) / 0.04 + 130);
    products.push_back(x * y / 0.04 + 130);
    means[static_cast<size_t>(i / 4)] += x / 4 / 0.01;
    last_means[static_cast<size_t>(i / 12 * 4 + i % 4)] += x / 3 / 0.01;
  }
  for (double& mean : means) mean += 50;
  for (double& mean : last_means) mean += 50;
  const std::vector<TestValue> two = {a,        scale(0.02f), zero(120), b, scale(0.03f),
                                      zero(99), scale(0.04f), zero(130)};
  expect_quantized(make("QLinearAdd", two), sums);
  expect_quantized(make("QLinearMul", two), products);
  for (int64_t batch = 0; batch < 2; ++batch) {
    for (int64_t i = 0; i < 12; ++i)
      joined.push_back(0.02 * (at(a, batch * 12 + i) - 120) / 0.025 + 100);
    for (int64_t i = 0; i < 20; ++i)
      joined.push_back(0.03 * (at(more, batch * 20 + i) - 90) / 0.025 + 100);
  }
  const std::vector<TestValue> parts = {scale(0.025f), zero(100), a, scale(0.02f), zero(120), more,
                                        scale(0.03f),  zero(90)};
  expect_quantized(make("QLinearConcat", parts, {{"axis", int64_t{1}}}), joined);
  const std::vector<TestValue> pool = {a, scale(0.02f), zero(120), scale(0.01f), zero(50)};
  expect_quantized(make("QLinearGlobalAveragePool", pool), means);
  expect_quantized(make("QLinearGlobalAveragePool", pool, {{"channels_last", int64_t{1}}}),
                   last_means);
  EXPECT_EQ(refusal(make("QLinearAdd",
                         {a, floats({2}), zero(1), b, scale(1), zero(1), scale(1), zero(1)})),
            "A_scale must have one element, not 2");
  EXPECT_EQ(
      refusal(make("QLinearConcat", {scale(1), zero(1), a, scale(1)}, {{"axis", int64_t{1}}})),
      "QLinearConcat takes Y_scale, Y_zero_point and then a tensor, its scale and its zero "
      "point for each input, not 4 inputs");
}

TEST_F(MicrosoftTest, NhwcMaxPoolPoolsWithChannelsLast) {
  const TestTensor x = bytes({1, 4, 5, 3}, ElementType::kInt8);
  std::vector<int8_t> values;
  for (int64_t row = 0; row < 3; ++row) {
    for (int64_t column = 0; column < 2; ++column) {
      for (int64_t channel = 0; channel < 3; ++channel) {
        double most = -128;
        for (int64_t i = row; i < row + 2; ++i) {
          for (int64_t j = 2 * column; j < 2 * column + 3; ++j)
            most = std::max(most, at(x, (i * 5 + j) * 3 + channel));
        }
        values.push_back(static_cast<int8_t>(most));
      }
    }
  }
  expect_all(make("NhwcMaxPool", {x}, {{"kernel_shape", Ints{2, 3}}, {"strides", Ints{1, 2}}}),
             {TestTensor::of<int8_t>({1, 3, 2, 3}, values)});
  EXPECT_EQ(refusal(make("NhwcMaxPool", {bytes({4, 5, 3})}, {{"kernel_shape", Ints{2, 3}}})),
            "x must have the axes of kernel_shape between those of the batch and of the channels, "
            "not [4,5,3]");
}

}  // namespace
}  // namespace eddy::testing
