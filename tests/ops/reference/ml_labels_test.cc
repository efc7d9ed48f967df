// Claim: LabelEncoder in each of its versions, CategoryMapper and OneHotEncoder map elements as a
// hand does, with every form of keys and values, unknown keys, repeated ones, NaN and -0.
#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <string>
#include <vector>

#include "tests/ops/testing/calls.h"

namespace eddy::testing {
namespace {

using Words = std::vector<std::string>;
using Ints = std::vector<int64_t>;
using Floats = std::vector<float>;

OpCall make(const char* op, int opset, const TestTensor& x, Attributes attributes) {
  return make_of("ai.onnx.ml", op, opset, {x}, std::move(attributes));
}

TestTensor words(const Words& values) {
  return TestTensor::of_strings({static_cast<int64_t>(values.size())}, values);
}
template <typename T>
TestTensor list(const std::vector<T>& values) {
  return TestTensor::of<T>({static_cast<int64_t>(values.size())}, values);
}
// As long as `tensor` lives.
Constant constant(const TestTensor& tensor) {
  return {tensor.element(), tensor.dims(), tensor.view().data};
}
TestTensor encode(int opset, const TestTensor& x, const Attributes& attributes) {
  return run_one(make("LabelEncoder", opset, x, attributes), KernelSet::kCpu);
}

TEST(LabelEncoderTest, Version1CountsClasses) {
  const Attributes classes = {{"classes_strings", Words{"cat", "dog", "cat"}},
                              {"default_int64", int64_t{7}},
                              {"default_string", "none"}};
  const TestTensor pets = TestTensor::of_strings({2, 2}, {"dog", "cow", "cat", "dog"});
  const TestTensor numbers = encode(1, pets, classes);
  EXPECT_EQ(numbers.dims(), (Dims{2, 2}));
  EXPECT_EQ(numbers.values<int64_t>(), (Ints{1, 7, 2, 1})) << "the last of equal classes counts";
  EXPECT_EQ(encode(1, list<int64_t>({1, 3, -1, 2}), classes).strings(),
            (Words{"dog", "none", "none", "cat"}));
}

TEST(LabelEncoderTest, EveryPairOfListsMaps) {
  for (const int opset : {2, 3, 4, 5}) {
    SCOPED_TRACE("version " + std::to_string(opset));
    const Attributes to_int = {{"keys_strings", Words{"a", "b", "c"}},
                               {"values_int64s", Ints{0, 1, 2}},
                               {"default_int64", int64_t{42}}};
    EXPECT_EQ(encode(opset, words({"a", "b", "d", "c", "g"}), to_int).values<int64_t>(),
              (Ints{0, 1, 42, 2, 42}));
    const Attributes to_word = {{"keys_floats", Floats{0.5f, 2}},
                                {"values_strings", Words{"h", "t"}}};
    EXPECT_EQ(encode(opset, list<float>({2, 0.5f, 1}), to_word).strings(),
              (Words{"t", "h", "_Unused"}));
    const Attributes to_float = {{"keys_int64s", Ints{-5, 1}}, {"values_floats", Floats{1.5f, 3}}};
    const Floats floats = encode(opset, list<int64_t>({1, -5, 9}), to_float).values<float>();
    EXPECT_EQ(floats, (Floats{3, 1.5f, 0}));
    EXPECT_TRUE(std::signbit(floats[2]));
    const Attributes words_only = {{"keys_strings", Words{"x"}}, {"values_strings", Words{"y"}}};
    EXPECT_EQ(encode(opset, words({"x", "z"}), words_only).strings(), (Words{"y", "_Unused"}));
    const Attributes no_default = {{"keys_floats", Floats{1}}, {"values_int64s", Ints{6}}};
    EXPECT_EQ(encode(opset, list<float>({1, 2}), no_default).values<int64_t>(), (Ints{6, -1}));
  }
}

TEST(LabelEncoderTest, TensorsHoldKeysAndValuesSinceVersion4) {
  const TestTensor keys = words({"a", "b", "c"}), values = list<int16_t>({0, 1, 2}),
                   unknown = list<int16_t>({42});
  Attributes attributes = {{"keys_tensor", constant(keys)},
                           {"values_tensor", constant(values)},
                           {"default_tensor", constant(unknown)}};
  const TestTensor x = words({"a", "b", "d", "c", "g"});
  EXPECT_EQ(encode(4, x, attributes).values<int16_t>(), (std::vector<int16_t>{0, 1, 42, 2, 42}));
  attributes = {{"keys_strings", Words{"a", "b", "c"}}, {"values_tensor", constant(values)}};
  EXPECT_EQ(encode(4, x, attributes).values<int16_t>(), (std::vector<int16_t>{0, 1, -1, 2, -1}));
  const TestTensor numbers = list<int32_t>({1 << 30, -1}), doubles = list<double>({0.1, 1e300});
  attributes = {{"keys_tensor", constant(numbers)}, {"values_tensor", constant(doubles)}};
  EXPECT_EQ(encode(4, list<int32_t>({-1, 1 << 30, 0}), attributes).values<double>(),
            (std::vector<double>{1e300, 0.1, 0}));
  attributes = {{"keys_tensor", constant(doubles)}, {"values_tensor", constant(keys)}};
  EXPECT_FALSE(run_op(make("LabelEncoder", 4, doubles, attributes), KernelSet::kCpu).is_ok());
  attributes.set("values_tensor", constant(numbers));
  EXPECT_EQ(encode(4, list<double>({0.1, 0.1f}), attributes).values<int32_t>(),
            (std::vector<int32_t>{1 << 30, -1}));
  EXPECT_FALSE(run_op(make("LabelEncoder", 2, doubles, attributes), KernelSet::kCpu).is_ok());
}

TEST(LabelEncoderTest, NaNsAreOneKeySinceVersion4AndBitsBefore) {
  const float quiet = std::bit_cast<float>(0x7fc00000u), other = std::bit_cast<float>(0x7fc00001u);
  const Attributes attributes = {{"keys_floats", Floats{quiet, 0}}, {"values_int64s", Ints{1, 2}}};
  const TestTensor x = list<float>({quiet, other, 0.0f, -0.0f});
  EXPECT_EQ(encode(2, x, attributes).values<int64_t>(), (Ints{1, -1, 2, -1}));
  EXPECT_EQ(encode(4, x, attributes).values<int64_t>(), (Ints{1, 1, 2, 2}));
}

TEST(LabelEncoderTest, OfRepeatedKeysTheLastCountsSinceVersion4) {
  const Attributes attributes = {{"keys_strings", Words{"a", "a"}}, {"values_int64s", Ints{1, 2}}};
  EXPECT_EQ(encode(4, words({"a"}), attributes).values<int64_t>(), (Ints{2}));
}

TEST(CategoryMapperTest, BothDirections) {
  const Attributes cats = {{"cats_strings", Words{"low", "high"}},
                           {"cats_int64s", Ints{10, 20}},
                           {"default_int64", int64_t{-3}},
                           {"default_string", "?"}};
  EXPECT_EQ(run_one(make("CategoryMapper", 1, words({"high", "mid", "low"}), cats), KernelSet::kCpu)
                .values<int64_t>(),
            (Ints{20, -3, 10}));
  EXPECT_EQ(
      run_one(make("CategoryMapper", 1, list<int64_t>({10, 11}), cats), KernelSet::kCpu).strings(),
      (Words{"low", "?"}));
}

TEST(CategoryMapperTest, OfRepeatedCategoriesTheLastCounts) {
  const Attributes both = {{"cats_strings", Words{"a", "b", "a"}}, {"cats_int64s", Ints{1, 2, 3}}};
  EXPECT_EQ(run_one(make("CategoryMapper", 1, words({"a", "b"}), both), KernelSet::kCpu)
                .values<int64_t>(),
            (Ints{3, 2}));
}

TEST(OneHotEncoderTest, NumbersAreCutToIntegersAndTextIsLookedUp) {
  const Attributes numbers = {{"cats_int64s", Ints{0, 4, 2}}};
  const TestTensor y =
      run_one(make("OneHotEncoder", 1, TestTensor::of<float>({1, 3}, {4.9f, 1, -0.5f}), numbers),
              KernelSet::kCpu);
  EXPECT_EQ(y.dims(), (Dims{1, 3, 3}));
  EXPECT_EQ(y.values<float>(), (Floats{0, 1, 0, 0, 0, 0, 1, 0, 0}));
  const Attributes texts = {{"cats_strings", Words{"a", "b"}}};
  EXPECT_EQ(
      run_one(make("OneHotEncoder", 1, words({"b", "c"}), texts), KernelSet::kCpu).values<float>(),
      (Floats{0, 1, 0, 0}));
}

TEST(OneHotEncoderTest, OfACategoryThatIsListedTwiceTheLastPlaceCounts) {
  const Attributes numbers = {{"cats_int64s", Ints{2, 4, 2}}};
  EXPECT_EQ(run_one(make("OneHotEncoder", 1, list<int64_t>({2, 4}), numbers), KernelSet::kCpu)
                .values<float>(),
            (Floats{0, 0, 1, 0, 1, 0}));
}

TEST(OneHotEncoderTest, AnUnknownCategoryFailsTheRunWhereZerosAreOff) {
  const Attributes attributes = {{"cats_int64s", Ints{1, 2}}, {"zeros", int64_t{0}}};
  const auto y =
      run_op(make("OneHotEncoder", 1, list<int32_t>({1, 3}), attributes), KernelSet::kCpu);
  ASSERT_FALSE(y.is_ok());
  EXPECT_NE(y.status().message().find("element 1 of X is none of the categories"),
            std::string::npos)
      << y.status().message();
}

}  // namespace
}  // namespace eddy::testing
