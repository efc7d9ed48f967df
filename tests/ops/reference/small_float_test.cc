// Claim: numbers of 8, 4 and 2 bits mean what the standard's tables say, are written as the nearest
// number that a search through all of them finds, and Cast, QuantizeLinear and DequantizeLinear
// read and write them.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "graph/base/random.h"
#include "ops/reference/parts/small_float.h"
#include "tests/ops/testing/op_runner.h"

namespace eddy::testing {
namespace {

using Floats = std::vector<float>;
using Bytes = std::vector<uint8_t>;
constexpr float kInfinity = std::numeric_limits<float>::infinity();
const float kNaN = std::nanf("");

constexpr ElementType kSigned[] = {ElementType::kFloat8E4M3FN, ElementType::kFloat8E4M3FNUZ,
                                   ElementType::kFloat8E5M2, ElementType::kFloat8E5M2FNUZ,
                                   ElementType::kFloat4E2M1};

int num_codes(ElementType type) { return type == ElementType::kFloat4E2M1 ? 16 : 256; }

// The finite number with the least distance; of two, the one with the even byte.
float nearest(ElementType type, float value) {
  const auto numbers = small_float_values(type);
  int best = -1;
  for (int code = 0; code < num_codes(type); ++code) {
    if (!std::isfinite(numbers[code])) continue;
    if (best < 0) best = code;
    const double distance = std::fabs(static_cast<double>(numbers[code]) - value);
    const double least = std::fabs(static_cast<double>(numbers[best]) - value);
    if (distance < least || (distance == least && code % 2 == 0 && best % 2 != 0)) best = code;
  }
  return numbers[best];
}

TestTensor cast(const TestTensor& x, ElementType to, Attributes attributes = {}) {
  OpCall call;
  call.op = "Cast";
  call.opset = 25;
  call.inputs = {x};
  call.attributes = std::move(attributes);
  call.attributes.set("to", static_cast<int64_t>(to));
  return run_one(call, KernelSet::kCpu);
}
TestTensor cast(const Floats& x, ElementType to, Attributes attributes = {}) {
  return cast(TestTensor::of<float>({static_cast<int64_t>(x.size())}, x), to,
              std::move(attributes));
}
Bytes bytes_of(const TestTensor& tensor) {
  const auto* data = tensor.view().as<uint8_t>();
  return Bytes(data, data + tensor.count());
}
Floats through(const Floats& x, ElementType type, Attributes attributes = {}) {
  return cast(cast(x, type, std::move(attributes)), ElementType::kFloat).values<float>();
}

void expect_equal(const Floats& actual, const Floats& expected) {
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < actual.size(); ++i) {
    if (std::isnan(expected[i])) {
      EXPECT_TRUE(std::isnan(actual[i])) << i << ": " << actual[i];
    } else {
      EXPECT_EQ(actual[i], expected[i]) << i;
      EXPECT_EQ(std::signbit(actual[i]), std::signbit(expected[i])) << i;
    }
  }
}

TEST(SmallFloat, LandmarksAreThoseOfThePapers) {
  const auto e4m3fn = small_float_values(ElementType::kFloat8E4M3FN);
  EXPECT_EQ(e4m3fn[0x7e], 448.0f);
  EXPECT_EQ(e4m3fn[0x01], 0x1p-9f);
  EXPECT_EQ(e4m3fn[0x08], 0x1p-6f);
  EXPECT_TRUE(std::isnan(e4m3fn[0x7f]) && std::isnan(e4m3fn[0xff]));
  const auto e4m3fnuz = small_float_values(ElementType::kFloat8E4M3FNUZ);
  EXPECT_EQ(e4m3fnuz[0x7f], 240.0f);
  EXPECT_EQ(e4m3fnuz[0x01], 0x1p-10f);
  EXPECT_TRUE(std::isnan(e4m3fnuz[0x80]));
  const auto e5m2 = small_float_values(ElementType::kFloat8E5M2);
  EXPECT_EQ(e5m2[0x7b], 57344.0f);
  EXPECT_EQ(e5m2[0x01], 0x1p-16f);
  EXPECT_EQ(e5m2[0xfc], -kInfinity);
  EXPECT_TRUE(std::isnan(e5m2[0x7d]));
  const auto e5m2fnuz = small_float_values(ElementType::kFloat8E5M2FNUZ);
  EXPECT_EQ(e5m2fnuz[0x7f], 57344.0f);
  EXPECT_EQ(e5m2fnuz[0x01], 0x1p-17f);
  EXPECT_TRUE(std::isnan(e5m2fnuz[0x80]));
  const auto e2m1 = small_float_values(ElementType::kFloat4E2M1);
  EXPECT_EQ(Floats(e2m1.begin(), e2m1.begin() + 8), (Floats{0, 0.5, 1, 1.5, 2, 3, 4, 6}));
  EXPECT_EQ(e2m1[0xf], -6.0f);
  const auto e8m0 = small_float_values(ElementType::kFloat8E8M0);
  EXPECT_EQ(e8m0[0], 0x1p-127f);
  EXPECT_EQ(e8m0[127], 1.0f);
  EXPECT_EQ(e8m0[254], 0x1p127f);
  EXPECT_TRUE(std::isnan(e8m0[255]));
}

TEST(SmallFloat, EachNumberIsWrittenAsItself) {
  for (const ElementType type : kSigned) {
    for (int code = 0; code < num_codes(type); ++code) {
      const float value = small_float_values(type)[code];
      if (!std::isfinite(value)) continue;
      EXPECT_EQ(to_small_float(type, value), code) << element_type_name(type);
    }
  }
  for (int code = 0; code < 255; ++code) {
    const float value = small_float_values(ElementType::kFloat8E8M0)[code];
    EXPECT_EQ(to_small_float(ElementType::kFloat8E8M0, value), code);
  }
}

TEST(SmallFloat, TheNearestNumberIsWritten) {
  constexpr uint64_t kSeed = 11;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  Random random(kSeed);
  for (const ElementType type : kSigned) {
    const auto numbers = small_float_values(type);
    for (int round = 0; round < 3000; ++round) {
      // Of any magnitude, or half way between two numbers: there the even one is due.
      const int code = static_cast<int>(random.below(static_cast<uint64_t>(num_codes(type) - 1)));
      const float middle = numbers[code] / 2 + numbers[code + 1] / 2;
      const bool is_tie = random.below(2) == 0 && std::isfinite(middle);
      const float value =
          is_tie ? middle
                 : std::ldexp(random.uniform(-1, 1), static_cast<int>(random.below(40)) - 20);
      const float written = numbers[to_small_float(type, value)];
      EXPECT_EQ(written, nearest(type, value)) << element_type_name(type) << " of " << value;
    }
  }
}

TEST(SmallFloat, WhatIsTooLargeSaturatesOrNot) {
  const Floats x = {1e30f, -1e30f, kInfinity, -kInfinity, kNaN, -0.0f};
  const Attributes open = {{"saturate", 0}};
  expect_equal(through(x, ElementType::kFloat8E4M3FN), {448, -448, 448, -448, kNaN, -0.0f});
  expect_equal(through(x, ElementType::kFloat8E4M3FN, open), {kNaN, kNaN, kNaN, kNaN, kNaN, -0.0f});
  expect_equal(through(x, ElementType::kFloat8E4M3FNUZ), {240, -240, 240, -240, kNaN, 0});
  expect_equal(through(x, ElementType::kFloat8E4M3FNUZ, open), {kNaN, kNaN, kNaN, kNaN, kNaN, 0});
  expect_equal(through(x, ElementType::kFloat8E5M2), {57344, -57344, 57344, -57344, kNaN, -0.0f});
  expect_equal(through(x, ElementType::kFloat8E5M2, open),
               {kInfinity, -kInfinity, kInfinity, -kInfinity, kNaN, -0.0f});
  expect_equal(through(x, ElementType::kFloat8E5M2FNUZ), {57344, -57344, 57344, -57344, kNaN, 0});
  expect_equal(through(x, ElementType::kFloat4E2M1), {6, -6, 6, -6, 6, -0.0f});
  expect_equal(through(x, ElementType::kFloat4E2M1, open), {6, -6, 6, -6, 6, -0.0f});
  // Rounding comes first: 464 is half way to what would be 480.
  expect_equal(through({464, 465}, ElementType::kFloat8E4M3FN, open), {448, kNaN});
}

TEST(SmallFloat, PowersOfTwoRoundAsTheyAreAsked) {
  const Floats x = {1, 1.25f, -1.5f, 1.75f, 5, 0, kInfinity, 3e38f};
  const ElementType to = ElementType::kFloat8E8M0;
  const float most = 0x1p127f, least = 0x1p-127f;
  expect_equal(through(x, to), {1, 2, 2, 2, 8, least, kNaN, most});
  expect_equal(through(x, to, {{"round_mode", "down"}}), {1, 1, 1, 1, 4, least, kNaN, most});
  expect_equal(through(x, to, {{"round_mode", "nearest"}}), {1, 1, 2, 2, 4, least, kNaN, most});
  expect_equal(through({3e38f}, to, {{"saturate", 0}}), {kNaN});
  // Floats without a leading one.
  const Floats tiny = {0x1p-149f, 0x1p-127f, 0x1.4p-127f, 0x1.8p-127f};
  expect_equal(through(tiny, to), {least, least, 2 * least, 2 * least});
  expect_equal(through(tiny, to, {{"round_mode", "nearest"}}), {least, least, least, 2 * least});
  expect_equal(through(tiny, to, {{"round_mode", "down"}}), {least, least, least, least});
  OpCall call;
  call.op = "Cast";
  call.opset = 25;
  call.inputs = {TestTensor::of<float>({1}, {1})};
  call.attributes = {{"to", 24}, {"round_mode", "sideways"}};
  EXPECT_NE(run_op(call, KernelSet::kCpu).status().to_string().find("up, down or nearest"),
            std::string::npos);
}

TEST(SmallFloat, DoublesRoundOnce) {
  // Just above half way between 1 and 1.125: as a float it is half way, and would go down to 1.
  const double x = 1.0625 + 0x1p-40;
  const TestTensor one = cast(TestTensor::of<double>({1}, {x}), ElementType::kFloat8E4M3FN);
  EXPECT_EQ(small_float_values(ElementType::kFloat8E4M3FN)[bytes_of(one)[0]], 1.125f);
}

TEST(SmallInteger, FloatsRoundToEvenAndKeepTheirLowBits) {
  const Floats x = {-8, -2.5f, -1.5f, 0.5f, 1.5f, 7.4f, kNaN};
  EXPECT_EQ(through(x, ElementType::kInt4), (Floats{-8, -2, -2, 0, 2, 7, 0}));
  EXPECT_EQ(through({0.5f, 2.5f, 15, 16}, ElementType::kUint4), (Floats{0, 2, 15, 0}));
  EXPECT_EQ(through({-2, -1, 0, 1, 2}, ElementType::kInt2), (Floats{-2, -1, 0, 1, -2}));
  EXPECT_EQ(through({0, 1, 2, 3, 4}, ElementType::kUint2), (Floats{0, 1, 2, 3, 0}));
  const TestTensor wide = TestTensor::of<int32_t>({3}, {200, -1, 7});
  EXPECT_EQ(cast(cast(wide, ElementType::kInt4), ElementType::kInt32).values<int32_t>(),
            (std::vector<int32_t>{-8, -1, 7}));
}

// NaN is all ones, or what would be negative zero; of infinities only float8e5m2 has bits.
TEST(SmallFloat, IsNaNAndIsInfLookAtEachByte) {
  Bytes all(256);
  for (size_t i = 0; i < all.size(); ++i) all[i] = static_cast<uint8_t>(i);
  const auto expect = [&](const char* op, ElementType type, Attributes attributes,
                          const auto& is_true) {
    OpCall call;
    call.op = op;
    call.opset = 20;
    TestTensor x(type, {256});
    std::copy(all.begin(), all.end(), x.view().mutable_as<uint8_t>());
    call.inputs = {x};
    call.attributes = std::move(attributes);
    for (const KernelSet kernels : {KernelSet::kReference, KernelSet::kCpu}) {
      const TestTensor y = run_one(call, kernels);
      ASSERT_EQ(y.element(), ElementType::kBool);
      for (size_t i = 0; i < all.size(); ++i) {
        EXPECT_EQ(y.view().as<bool>()[i], is_true(all[i]))
            << op << " " << element_type_name(type) << " " << i;
      }
    }
    call.opset = 19;
    EXPECT_FALSE(infer_op(call).is_ok()) << op << " " << element_type_name(type);
  };
  const auto is_fnuz_nan = [](uint8_t byte) { return byte == 0x80; };
  expect("IsNaN", ElementType::kFloat8E4M3FN, {},
         [](uint8_t byte) { return (byte & 0x7f) == 0x7f; });
  expect("IsNaN", ElementType::kFloat8E5M2, {}, [](uint8_t byte) { return (byte & 0x7f) > 0x7c; });
  expect("IsNaN", ElementType::kFloat8E4M3FNUZ, {}, is_fnuz_nan);
  expect("IsNaN", ElementType::kFloat8E5M2FNUZ, {}, is_fnuz_nan);
  const auto never = [](uint8_t) { return false; };
  for (const ElementType type :
       {ElementType::kFloat8E4M3FN, ElementType::kFloat8E4M3FNUZ, ElementType::kFloat8E5M2FNUZ}) {
    expect("IsInf", type, {}, never);
  }
  const ElementType e5m2 = ElementType::kFloat8E5M2;
  expect("IsInf", e5m2, {}, [](uint8_t byte) { return (byte & 0x7f) == 0x7c; });
  expect("IsInf", e5m2, {{"detect_negative", 0}}, [](uint8_t byte) { return byte == 0x7c; });
  expect("IsInf", e5m2, {{"detect_positive", 0}}, [](uint8_t byte) { return byte == 0xfc; });
}

TEST(SmallInteger, TextIsReadAndWritten) {
  const TestTensor text = TestTensor::of_strings({2}, {"-3", "6"});
  const TestTensor small = cast(text, ElementType::kInt4);
  EXPECT_EQ(bytes_of(small), (Bytes{0xfd, 6}));
  EXPECT_EQ(cast(small, ElementType::kString).strings(), (std::vector<std::string>{"-3", "6"}));
  const TestTensor eighth = cast(Floats{0.4375f}, ElementType::kFloat8E4M3FN);
  EXPECT_EQ(cast(eighth, ElementType::kString).strings(), std::vector<std::string>{"0.4375"});
}

OpCall quantization(const char* op, std::vector<TestValue> inputs, Attributes attributes) {
  OpCall call;
  call.op = op;
  call.opset = 25;
  call.inputs = std::move(inputs);
  call.attributes = std::move(attributes);
  return call;
}

TEST(SmallQuantization, ValuesComeBackInStepsOfTheScale) {
  const TestTensor x = TestTensor::of<float>({5}, {-100, -1, 0, 1.3f, 100});
  const TestTensor scale = TestTensor::scalar<float>(0.5f);
  struct Case {
    ElementType to;
    Floats expected;
  };
  const Case cases[] = {{ElementType::kInt4, {-4, -1, 0, 1.5f, 3.5f}},
                        {ElementType::kUint4, {0, 0, 0, 1.5f, 7.5f}},
                        {ElementType::kInt2, {-1, -1, 0, 0.5f, 0.5f}},
                        {ElementType::kUint2, {0, 0, 0, 1.5f, 1.5f}},
                        {ElementType::kFloat4E2M1, {-3, -1, 0, 1.5f, 3}},
                        {ElementType::kFloat8E4M3FN, {-96, -1, 0, 1.25f, 96}},
                        {ElementType::kFloat8E5M2FNUZ, {-96, -1, 0, 1.25f, 96}}};
  for (const Case& each : cases) {
    SCOPED_TRACE(element_type_name(each.to));
    const TestTensor small =
        run_one(quantization("QuantizeLinear", {x, scale},
                             {{"output_dtype", static_cast<int64_t>(each.to)}}),
                KernelSet::kCpu);
    ASSERT_EQ(small.element(), each.to);
    const TestTensor back =
        run_one(quantization("DequantizeLinear", {small, scale}, {}), KernelSet::kCpu);
    EXPECT_EQ(back.values<float>(), each.expected);
  }
}

TEST(SmallQuantization, ScalesMayBePowersOfTwoByBlocks) {
  // Blocks of two along the axis: scales 1 and 4.
  const TestTensor small = cast(Floats{1, 2, 3, -6}, ElementType::kFloat4E2M1);
  const TestTensor scales = cast(Floats{1, 4}, ElementType::kFloat8E8M0);
  const TestTensor y =
      run_one(quantization("DequantizeLinear", {small, scales}, {{"axis", 0}, {"block_size", 2}}),
              KernelSet::kCpu);
  EXPECT_EQ(y.values<float>(), (Floats{1, 2, 12, -24}));
}

}  // namespace
}  // namespace eddy::testing
