// Claim: spectra and mel weights are the sums that define them; numbers are drawn by the seed
// alone, with the moments of their distribution.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "ops/reference/reference_kernels.h"
#include "tests/ops/testing/calls.h"

namespace eddy::testing {
namespace {

using Floats = std::vector<float>;

void expect_values(const OpCall& call, const TestTensor& expected) {
  EXPECT_TRUE(is_close(run_one(call, KernelSet::kReference), expected, 1e-5, 1e-6)) << call.op;
}

TEST(DftTest, SpectraByHand) {
  const TestTensor x = floats({1, 4, 1}, {1, 2, 3, 4});
  const Floats all = {10, 0, -2, 2, -2, 0, -2, -2};
  expect_values(make("DFT", 17, {x}), floats({1, 4, 2}, all));
  expect_values(make("DFT", 20, {x}), floats({1, 4, 2}, all));
  expect_values(make("DFT", 20, {x}, {{"onesided", int64_t{1}}}),
                floats({1, 3, 2}, {10, 0, -2, 2, -2, 0}));
  expect_values(make("DFT", 20, {floats({1, 4, 2}, all)}, {{"inverse", int64_t{1}}}),
                floats({1, 4, 2}, {1, 0, 2, 0, 3, 0, 4, 0}));
  expect_values(make("DFT", 20, {floats({1, 3, 2}, {10, 0, -2, 2, -2, 0})},
                     {{"inverse", int64_t{1}}, {"onesided", int64_t{1}}}),
                floats({1, 4, 1}, {1, 2, 3, 4}));
  // Cut to two, and along the first axis.
  const TestTensor two = TestTensor::scalar<int64_t>(2), first = TestTensor::scalar<int64_t>(0);
  expect_values(make("DFT", 20, {x, two}), floats({1, 2, 2}, {3, 0, -1, 0}));
  expect_values(make("DFT", 20, {floats({2, 2, 1}, {1, 2, 3, 4}), TestValue::omitted(), first}),
                floats({2, 2, 2}, {4, 0, 6, 0, -2, 0, -2, 0}));
  // Filled up with zeros.
  const TestTensor four = TestTensor::scalar<int64_t>(4);
  expect_values(make("DFT", 20, {floats({1, 2, 1}, {1, 2}), four}),
                floats({1, 4, 2}, {3, 0, 1, -2, -1, 0, 1, 2}));
}

TEST(DftTest, OneSideOfNoSamplesIsRefused) {
  const TestTensor x(ElementType::kFloat, {0, 1});
  EXPECT_EQ(refusal(make("DFT", 20, {x}, {{"onesided", int64_t{1}}})),
            "a onesided DFT takes at least one sample, but axis 0 of [0,1] has none");
  EXPECT_EQ(run_one(make("DFT", 20, {x}), KernelSet::kReference).dims(), (Dims{0, 2}));
}

TEST(StftTest, FramesAreWeighedAndTransformed) {
  const TestTensor x = floats({1, 6, 1}, {1, 2, 3, 4, 5, 6});
  const TestTensor step = TestTensor::scalar<int64_t>(2), frame = TestTensor::scalar<int64_t>(4);
  expect_values(make("STFT", 17, {x, step, TestValue::omitted(), frame}),
                floats({1, 2, 3, 2}, {10, 0, -2, 2, -2, 0, 18, 0, -2, 2, -2, 0}));
  expect_values(make("STFT", 17, {x, step, floats({2}, {1, 0})}, {{"onesided", int64_t{0}}}),
                floats({1, 3, 2, 2}, {1, 0, 1, 0, 3, 0, 3, 0, 5, 0, 5, 0}));
}

TEST(MelWeightMatrixTest, BandsAreTrianglesThatMeetAtTheirMiddles) {
  const auto whole = [](int64_t value) { return TestTensor::scalar(value); };
  const OpCall call = make(
      "MelWeightMatrix", 17,
      {whole(8), whole(16), whole(8192), TestTensor::scalar(0.0f), TestTensor::scalar(4096.0f)});
  const TestTensor y = run_one(call, KernelSet::kReference);
  ASSERT_EQ(y.dims(), (Dims{9, 8}));
  EXPECT_EQ(y.values<float>(),
            (Floats{1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0,
                    0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1,
                    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0}));
}

struct Moments {
  double mean = 0, variance = 0;
  explicit Moments(const TestTensor& values) {
    const double n = static_cast<double>(values.count());
    for (int64_t i = 0; i < values.count(); ++i) mean += number_at(values.view(), i) / n;
    for (int64_t i = 0; i < values.count(); ++i) {
      const double distance = number_at(values.view(), i) - mean;
      variance += distance * distance / n;
    }
  }
};

TEST(RandomTest, ASeedGivesTheSameNumbersAndAnotherGivesOthers) {
  const Attributes shape = {{"shape", std::vector<int64_t>{3, 5}}};
  for (const char* op : {"RandomNormal", "RandomUniform"}) {
    Attributes seeded = shape;
    seeded.set("seed", 2.5f);
    const TestTensor a = run_one(make(op, 22, {}, seeded), KernelSet::kReference);
    const TestTensor b = run_one(make(op, 22, {}, seeded), KernelSet::kReference);
    const TestTensor c = run_one(make(op, 22, {}, shape), KernelSet::kReference);
    Attributes other = shape;
    other.set("seed", 3.5f);
    const TestTensor d = run_one(make(op, 22, {}, other), KernelSet::kReference);
    EXPECT_TRUE(is_same_bits(a, b)) << op;
    EXPECT_FALSE(is_same_bits(a, c)) << op;
    EXPECT_FALSE(is_same_bits(a, d)) << op;
  }
}

// Without a seed, a node's name is one.
TEST(RandomTest, NodesWithoutSeedsDiffer) {
  const OpCall call = make("RandomUniform", 22, {}, {{"shape", std::vector<int64_t>{8}}});
  KernelRegistry kernels;
  add_reference_kernels(kernels);
  const auto draw = [&](std::string_view name) {
    const ValueType type = TensorType(ElementType::kFloat, {8});
    auto kernel =
        kernels.bind({*find_op(call), call.attributes, call.opset, name, {}, {&type, 1}, {}});
    EXPECT_TRUE(kernel.is_ok()) << kernel.status().to_string();
    const TestTensor drawn(ElementType::kFloat, {8});
    TensorView y = drawn.view();
    Status error;
    KernelArgs args{.outputs = &y, .state = kernel->state.get(), .error = &error, .num_outputs = 1};
    EXPECT_TRUE(kernel->run(args));
    return drawn.values<float>();
  };
  EXPECT_EQ(draw("noise"), draw("noise"));
  EXPECT_NE(draw("noise"), draw("mask"));
}

TEST(RandomTest, WeightsWithoutATotalAreRefused) {
  const float never = -HUGE_VALF;
  for (const std::vector<float>& row :
       {std::vector<float>{0, NAN, 1}, {HUGE_VALF, 0, 0}, {never, never, never}}) {
    std::vector<float> rows = {0, 0, 0};
    rows.insert(rows.end(), row.begin(), row.end());
    const Status status =
        run_op(make("Multinomial", 7, {floats({2, 3}, rows)}), KernelSet::kReference).status();
    EXPECT_NE(status.to_string().find("weights of row 1 have no total"), std::string::npos)
        << status.to_string();
  }
}

TEST(RandomTest, NumbersHaveTheMomentsOfTheirDistribution) {
  const std::vector<int64_t> many = {20001};
  const TestTensor drawn =
      run_one(make("RandomUniform", 1, {}, {{"shape", many}, {"low", -1.0f}, {"high", 5.0f}}),
              KernelSet::kReference);
  for (const float value : drawn.values<float>()) ASSERT_TRUE(value >= -1 && value < 5) << value;
  const Moments uniform(drawn);
  EXPECT_NEAR(uniform.mean, 2, 0.1);
  EXPECT_NEAR(uniform.variance, 3, 0.1);
  const TestTensor like(ElementType::kDouble, {20001});
  const Moments normal(
      run_one(make("RandomNormalLike", 22, {like}, {{"mean", 3.0f}, {"scale", 2.0f}}),
              KernelSet::kReference));
  EXPECT_NEAR(normal.mean, 3, 0.1);
  EXPECT_NEAR(normal.variance, 4, 0.2);
  TestTensor quarter(ElementType::kFloat, {20000});
  for (int64_t i = 0; i < quarter.count(); ++i) quarter.view().mutable_as<float>()[i] = 0.25f;
  const TestTensor hits = run_one(make("Bernoulli", 15, {quarter}), KernelSet::kReference);
  EXPECT_NEAR(Moments(hits).mean, 0.25, 0.02);
  EXPECT_NEAR(Moments(hits).variance, 0.1875, 0.02) << "zeros and ones";
  // Three times as likely, and never.
  const float never = -HUGE_VALF;
  const TestTensor classes =
      run_one(make("Multinomial", 7, {floats({1, 3}, {0, std::log(3.0f), never})},
                   {{"sample_size", int64_t{20000}}}),
              KernelSet::kReference);
  EXPECT_EQ(classes.dims(), (Dims{1, 20000}));
  EXPECT_NEAR(Moments(classes).mean, 0.75, 0.02);
  EXPECT_NEAR(Moments(classes).variance, 0.1875, 0.02);
}

}  // namespace
}  // namespace eddy::testing
