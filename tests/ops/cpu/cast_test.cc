// Claim: Cast is defined for every value: clamped from floats, cut from integers, rounded once to
// float16 and bfloat16, and text reads and writes as NumPy does.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>

#include "tests/ops/testing/op_runner.h"

namespace eddy::testing {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

OpCall cast(const TestTensor& input, ElementType to) {
  OpCall call;
  call.op = "Cast";
  call.opset = 13;
  call.inputs = {input};
  call.attributes.set("to", static_cast<int64_t>(to));
  return call;
}

TEST(CastTest, EveryPairOfNumberTypesEqualsTheReference) {
  const uint64_t seed = 60;
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  const ElementType kTypes[] = {ElementType::kFloat,   ElementType::kDouble, ElementType::kInt32,
                                ElementType::kInt64,   ElementType::kBool,   ElementType::kInt8,
                                ElementType::kUint8,   ElementType::kInt16,  ElementType::kUint16,
                                ElementType::kUint32,  ElementType::kUint64, ElementType::kFloat16,
                                ElementType::kBfloat16};
  for (ElementType from : kTypes) {
    for (ElementType to : kTypes) {
      for (const Dims& dims : {Dims{}, Dims{3, 13}, Dims{0}}) {
        compare_with_reference(cast(TestTensor::random(from, dims, random, 0, 1000), to));
        compare_with_reference(cast(TestTensor::random(from, dims, random, -1000, 1000), to));
      }
    }
  }
}

TEST(CastTest, FloatsOutsideTheRangeBecomeItsEndsAndNanBecomesZero) {
  const std::vector<float> values = {kNan,  kInfinity, -kInfinity, 3e9f,
                                     -3e9f, 1e30f,     127.9f,     -1.5f};
  const auto run = [&](ElementType to, KernelSet kernels) {
    return run_one(cast(TestTensor::of<float>({8}, values), to), kernels);
  };
  for (KernelSet kernels : {KernelSet::kReference, KernelSet::kCpu}) {
    EXPECT_EQ(
        run(ElementType::kInt32, kernels).values<int32_t>(),
        (std::vector<int32_t>{0, INT32_MAX, INT32_MIN, INT32_MAX, INT32_MIN, INT32_MAX, 127, -1}));
    EXPECT_EQ(run(ElementType::kInt64, kernels).values<int64_t>(),
              (std::vector<int64_t>{0, INT64_MAX, INT64_MIN, 3000000000, -3000000000, INT64_MAX,
                                    127, -1}));
    EXPECT_EQ(run(ElementType::kUint8, kernels).values<uint8_t>(),
              (std::vector<uint8_t>{0, 255, 0, 255, 0, 255, 127, 0}));
    EXPECT_EQ(run(ElementType::kInt8, kernels).values<int8_t>(),
              (std::vector<int8_t>{0, 127, -128, 127, -128, 127, 127, -1}));
    EXPECT_EQ(run(ElementType::kBool, kernels).values<bool>(), std::vector<bool>(8, true));
  }
  for (float value : values) {
    compare_with_reference(cast(TestTensor::scalar(value), ElementType::kInt32));
    compare_with_reference(cast(TestTensor::scalar(value), ElementType::kInt64));
  }
}

TEST(CastTest, HalfPrecisionRoundsOnceToNearestEven) {
  // 1 + 2^-11 is half way between two float16 numbers; a little more must round up.
  const double tie = 1 + 0x1p-11;
  const auto half = [](double value) {
    const TestTensor y =
        run_one(cast(TestTensor::scalar(value), ElementType::kFloat16), KernelSet::kCpu);
    return number_at(y.view(), 0);
  };
  EXPECT_EQ(half(tie), 1.0);
  EXPECT_EQ(half(tie + 0x1p-40), 1 + 0x1p-10);
  EXPECT_EQ(half(-tie - 0x1p-40), -1 - 0x1p-10);
  EXPECT_EQ(half(65519.99), 65504.0);
  EXPECT_EQ(half(65520), HUGE_VAL);
  EXPECT_EQ(half(0x1p-24), 0x1p-24);
  EXPECT_EQ(half(0x1p-25), 0.0);
  EXPECT_EQ(half(0x1.8p-25), 0x1p-24);
  EXPECT_TRUE(std::isnan(half(kNan)));
}

TEST(CastTest, WideIntegersRoundOnceToHalfPrecision) {
  // A little more than half way between two bfloat16 numbers; a double cannot hold the little.
  const int64_t more_than_tie = (int64_t{1} << 62) + (int64_t{1} << 54) + 1;
  const auto rounded = [](const TestTensor& whole) {
    const TestTensor y = run_one(cast(whole, ElementType::kBfloat16), KernelSet::kCpu);
    return number_at(y.view(), 0);
  };
  EXPECT_EQ(rounded(TestTensor::scalar(more_than_tie)), 0x1p62 + 0x1p55);
  EXPECT_EQ(rounded(TestTensor::scalar(more_than_tie - 1)), 0x1p62);
  EXPECT_EQ(rounded(TestTensor::scalar(-more_than_tie)), -0x1p62 - 0x1p55);
  EXPECT_EQ(rounded(TestTensor::scalar(1 - more_than_tie)), -0x1p62);
  EXPECT_EQ(rounded(TestTensor::scalar(static_cast<uint64_t>(more_than_tie) << 1)),
            0x1p63 + 0x1p56);
  EXPECT_EQ(rounded(TestTensor::scalar(UINT64_MAX)), 0x1p64);
  EXPECT_EQ(rounded(TestTensor::scalar(INT64_MIN)), -0x1p63);
}

TEST(CastTest, EveryFloat16SurvivesTheWayThroughFloat) {
  for (uint32_t bits = 0; bits < 0x10000; ++bits) {
    const uint16_t half = static_cast<uint16_t>(bits);
    const float value = float16_to_float(half);
    if (std::isnan(value))
      EXPECT_TRUE(std::isnan(float16_to_float(float_to_float16(value))));
    else
      EXPECT_EQ(float_to_float16(value), half);
  }
}

TEST(CastTest, TextReadsAndWritesAsNumpyDoes) {
  const TestTensor texts =
      TestTensor::of_strings({7}, {"0.47892547", "1e-05", " -3 ", "inf", "-INF", "nan", "+2.5"});
  const TestTensor numbers = run_one(cast(texts, ElementType::kFloat), KernelSet::kCpu);
  EXPECT_TRUE(is_close(
      numbers,
      TestTensor::of<float>({7}, {0.47892547f, 1e-5f, -3, kInfinity, -kInfinity, kNan, 2.5f}), 0,
      0));
  const TestTensor back =
      run_one(cast(TestTensor::of<float>({6}, {0.47892547f, 1e-5f, -3, kInfinity, kNan, 1e20f}),
                   ElementType::kString),
              KernelSet::kCpu);
  EXPECT_EQ(back.strings(),
            (std::vector<std::string>{"0.47892547", "1e-05", "-3.0", "inf", "nan", "1e+20"}));
  EXPECT_EQ(
      run_one(cast(TestTensor::of_strings({2}, {"9223372036854775807", "-7"}), ElementType::kInt64),
              KernelSet::kCpu)
          .values<int64_t>(),
      (std::vector<int64_t>{INT64_MAX, -7}));
}

TEST(CastTest, TextThatIsNoNumberIsQuotedInTheError) {
  const auto result =
      run_op(cast(TestTensor::of_strings({2}, {"1", "one"}), ElementType::kFloat), KernelSet::kCpu);
  ASSERT_FALSE(result.is_ok());
  EXPECT_EQ(result.status().message(), "element 1 is \"one\", which can't be read as float");
}

TEST(CastTest, AnUnknownTargetTypeIsRefused) {
  EXPECT_FALSE(infer_op(cast(TestTensor::scalar(1.0f), static_cast<ElementType>(77))).is_ok());
}

}  // namespace
}  // namespace eddy::testing
