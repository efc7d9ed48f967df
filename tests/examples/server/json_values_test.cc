// Claim: requests are read as exactly the tensors that they state, and what states none is refused
// in one line that names the input and the fault. What is written is read again with the same bits,
// by a strict parser too, whatever the numbers.
#include "examples/server/json_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

#include <nlohmann/json.hpp>

#include "graph/base/random.h"
#include "ops/reference/parts/number.h"

namespace eddy::server {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;

ValueDescription describe(const std::string& name, ElementType element, const Dims& dims) {
  const ValueType type = tensor_type(element, dims);
  return {name, type, to_string(type)};
}

const std::vector<ValueDescription>& inputs() {
  static const std::vector<ValueDescription> kInputs = {
      describe("x", ElementType::kFloat, {2, 3}),
      describe("n", ElementType::kInt64, {}),
      describe("small", ElementType::kInt8, {kUnknownDim}),
      describe("big", ElementType::kUint64, {kUnknownDim}),
      describe("flag", ElementType::kBool, {kUnknownDim}),
      describe("words", ElementType::kString, {kUnknownDim}),
      describe("half", ElementType::kFloat16, {kUnknownDim}),
      describe("wide", ElementType::kDouble, {kUnknownDim}),
  };
  return kInputs;
}

Result<NamedTensors> read(const std::string& text) { return read_inputs(text, inputs()); }

// The one tensor of {"inputs": {NAME: VALUE}}.
Tensor tensor(const std::string& name, const std::string& value) {
  const auto values = read("{\"inputs\": {\"" + name + "\": " + value + "}}");
  EXPECT_TRUE(values.is_ok()) << value << ": " << values.status().to_string();
  if (!values.is_ok() || values->size() != 1) return Tensor();
  EXPECT_EQ((*values)[0].first, name);
  return (*values)[0].second;
}

std::string refusal(const std::string& text) {
  const auto values = read(text);
  EXPECT_FALSE(values.is_ok()) << text;
  if (values.is_ok()) return "";
  EXPECT_EQ(values.status().code(), StatusCode::kInvalidArgument) << text;
  return values.status().message();
}
std::string refusal_of(const std::string& name, const std::string& value) {
  return refusal("{\"inputs\": {\"" + name + "\": " + value + "}}");
}

template <typename T>
std::vector<T> values(const Tensor& tensor) {
  const auto span = tensor.values<T>();
  return {span.begin(), span.end()};
}

TEST(ReadInputs, TheFormsOfOneTensorAreTheSame) {
  const std::vector<float> wanted = {1, -2.5f, 3, 4e2f, 0, 6};
  for (const char* form : {
           R"({"type": "float", "shape": [2, 3], "data": [1, -2.5, 3, 4e2, 0, 6]})",
           R"({"data": [1, -2.5, 3, 4e2, 0, 6], "shape": [2, 3], "type": "float32"})",
           R"({"data": [[1, -2.5, 3], [4e2, 0, 6]], "shape": [2, 3]})",
           R"({"data": [[1, -2.5, 3], [4e2, 0, 6]]})",
           R"([[1, -2.5, 3], [4e2, 0, 6]])",
       }) {
    const Tensor x = tensor("x", form);
    ASSERT_EQ(x.dims(), Dims({2, 3})) << form;
    EXPECT_EQ(values<float>(x), wanted) << form;
  }
}

TEST(ReadInputs, ShapesFollowFromTheListsAndMayBeEmpty) {
  EXPECT_EQ(tensor("n", "5").dims(), Dims());
  EXPECT_EQ(tensor("n", R"({"shape": [], "data": [5]})").dims(), Dims());
  EXPECT_EQ(tensor("x", "[]").dims(), Dims({0}));
  EXPECT_EQ(tensor("x", "[[], []]").dims(), Dims({2, 0}));
  EXPECT_EQ(tensor("x", R"({"shape": [3, 0, 2], "data": []})").dims(), Dims({3, 0, 2}));
  EXPECT_EQ(tensor("x", "[[[[[[[[7]]]]]]]]").dims(), Dims({1, 1, 1, 1, 1, 1, 1, 1}));
}

TEST(ReadInputs, TypesAreTheModelsAndKeepTheirWholeRange) {
  EXPECT_EQ(values<int64_t>(tensor("n", "-9223372036854775808"))[0], INT64_MIN);
  EXPECT_EQ(values<int8_t>(tensor("small", "[-128, 127]")), (std::vector<int8_t>{-128, 127}));
  EXPECT_EQ(values<uint64_t>(tensor("big", "[18446744073709551615]"))[0], UINT64_MAX);
  EXPECT_EQ(values<bool>(tensor("flag", "[true, false]")), (std::vector<bool>{true, false}));
  EXPECT_EQ(values<double>(tensor("wide", "[1e308, 7]")), (std::vector<double>{1e308, 7}));
  const Tensor words = tensor("words", R"(["", "a\u0000b", "ü", "NaN"])");
  const auto* const text = words.view().as<std::string>();
  EXPECT_EQ(std::vector<std::string>(text, text + 4),
            (std::vector<std::string>{"", std::string("a\0b", 3), "ü", "NaN"}));
}

TEST(ReadInputs, WhatJsonLacksIsAString) {
  const auto x = values<float>(tensor("x", R"(["NaN", "Infinity", "-Infinity", -0.0])"));
  EXPECT_TRUE(std::isnan(x[0]));
  EXPECT_EQ(x[1], HUGE_VALF);
  EXPECT_EQ(x[2], -HUGE_VALF);
  EXPECT_TRUE(std::signbit(x[3]));
}

TEST(ReadInputs, SeveralInputsComeInTheOrderOfTheRequest) {
  const auto all = read(R"({"inputs": {"n": 1, "x": [2], "flag": {"data": true}}})");
  ASSERT_TRUE(all.is_ok()) << all.status().to_string();
  ASSERT_EQ(all->size(), 3u);
  EXPECT_EQ((*all)[0].first, "n");
  EXPECT_EQ((*all)[1].first, "x");
  EXPECT_EQ((*all)[2].first, "flag");
  EXPECT_TRUE(read(R"({"inputs": {}})").is_ok());
}

TEST(ReadInputs, AnotherFormIsRefused) {
  const char* const form = "a request is {\"inputs\": {\"NAME\": ...}}";
  for (const char* text : {"[]", "5", "null", "\"x\"", "true", R"({"inputs": [1]})", "{}",
                           R"({"inputs": 5})", R"({"input": {}})", R"({"inputs": null})"}) {
    EXPECT_THAT(refusal(text), HasSubstr(form)) << text;
  }
  EXPECT_THAT(refusal(R"({"inputs": {}, "inputs": {}})"), HasSubstr("\"inputs\" is given twice"));
  EXPECT_EQ(refusal_of("y", "1"),
            "there is no input 'y'; the model's inputs are: x, n, small, big, flag, words, half, "
            "wide");
  EXPECT_EQ(refusal(R"({"inputs": {"n": 1, "n": 2}})"), "input 'n' is given twice; leave one out");
}

TEST(ReadInputs, WhatIsNoJsonIsRefusedWithItsPlace) {
  for (const char* text :
       {"", "{", "{\"inputs\": {\"n\": 1}", "{\"inputs\": {\"n\": 1}}}",
        "{\"inputs\": {\"n\": NaN}}", "{'inputs': {}}", "{\"inputs\": {\"n\": 01}}", "\xff\xfe",
        "{\"inputs\": {\"words\": [\"\xc3\"]}}"}) {
    EXPECT_THAT(refusal(text), HasSubstr("the request is no JSON: parse error at line 1")) << text;
  }
  EXPECT_EQ(refusal_of("wide", "1e999"), "the number 1e999 does not fit a double");
}

TEST(ReadInputs, FieldsThatAreWrongAreNamed) {
  EXPECT_THAT(
      refusal_of("x", R"({"dat": 1})"),
      HasSubstr("input 'x' (float[2,3]): there is no field 'dat'; type, shape and data are"));
  EXPECT_THAT(refusal_of("x", "{}"), HasSubstr("has no \"data\""));
  EXPECT_THAT(refusal_of("x", R"({"data": 1, "data": 1})"), HasSubstr("\"data\" is given twice"));
  EXPECT_THAT(refusal_of("x", R"({"type": "float", "type": "float", "data": 1})"),
              HasSubstr("\"type\" is given twice"));
  EXPECT_THAT(refusal_of("x", R"({"shape": [1], "shape": [1], "data": 1})"),
              HasSubstr("\"shape\" is given twice"));
  EXPECT_THAT(refusal_of("x", R"({"type": "int64", "data": 1})"),
              HasSubstr("\"type\" is 'int64'; leave it out, or give float"));
  EXPECT_THAT(refusal_of("x", R"({"type": 1, "data": 1})"), HasSubstr("which is a name"));
  EXPECT_THAT(refusal_of("x", R"({"type": ["float"], "data": 1})"), HasSubstr("which is a name"));
  for (const char* shape : {"6", "\"6\"", "null", "{}", "[[6]]", "[2.5]", "[\"6\"]", "[true]"}) {
    const std::string value = std::string(R"({"shape": )") + shape + R"(, "data": [1]})";
    EXPECT_THAT(refusal_of("x", value), HasSubstr("which is a list of sizes")) << shape;
  }
  EXPECT_THAT(refusal_of("x", R"({"shape": [-1], "data": [1]})"), HasSubstr("\"shape\" has -1"));
  EXPECT_THAT(refusal_of("x", R"({"shape": [18446744073709551615], "data": [1]})"),
              HasSubstr("\"shape\" has 18446744073709551615"));
  EXPECT_THAT(refusal_of("x", R"({"shape": [1,1,1,1,1,1,1,1,1], "data": [1]})"),
              HasSubstr("more than 8 sizes"));
}

TEST(ReadInputs, ShapeAndDataHaveToAgree) {
  EXPECT_THAT(refusal_of("x", R"({"shape": [2, 2], "data": [1, 2, 3]})"),
              HasSubstr("has 4 elements, but \"data\" has 3"));
  EXPECT_THAT(refusal_of("x", R"({"shape": [3, 2], "data": [[1, 2, 3], [4, 5, 6]]})"),
              HasSubstr("nested as [2,3]"));
  EXPECT_THAT(refusal_of("x", R"({"shape": [4294967296, 4294967296], "data": []})"),
              HasSubstr("too large"));
  EXPECT_THAT(refusal_of("x", R"({"shape": [0, 9223372036854775807], "data": []})"),
              HasSubstr("too large"));
  for (const char* data : {"[[1, 2], [3]]", "[[1], 2]", "[1, [2]]", "[[], [1]]", "[[[]], []]",
                           "[[], 1]", "[[], [[]]]"}) {
    EXPECT_THAT(refusal_of("x", data), HasSubstr("differ in length or depth")) << data;
  }
  EXPECT_THAT(refusal_of("x", "[[[[[[[[[7]]]]]]]]]"), HasSubstr("nested more than 8 deep"));
  EXPECT_THAT(refusal_of("x", std::string(1'000'000, '[')), HasSubstr("nested more than 8 deep"));
  EXPECT_THAT(refusal(std::string(1'000'000, '[')), HasSubstr("a list stands in a wrong place"));
}

TEST(ReadInputs, ElementsOfAnotherTypeOrBeyondItsRangeAreNamed) {
  EXPECT_EQ(refusal_of("x", "[1, true]"),
            "input 'x' (float[2,3]): element 1 is true, which is no float");
  EXPECT_THAT(refusal_of("x", "[\"nan\"]"), HasSubstr("element 0 is \"nan\", which is no float"));
  EXPECT_THAT(refusal_of("x", "[null]"), HasSubstr("null stands in its data"));
  EXPECT_THAT(refusal_of("x", "[{}]"), HasSubstr("an object stands in its data"));
  EXPECT_THAT(refusal_of("n", "1.5"), HasSubstr("element 0 is 1.5, which is no int64"));
  EXPECT_THAT(refusal_of("n", "1.0"), HasSubstr("which is no int64"));
  EXPECT_THAT(refusal_of("n", "\"NaN\""), HasSubstr("which is no int64"));
  EXPECT_THAT(refusal_of("n", "9223372036854775808"), HasSubstr("beyond the range of int64"));
  EXPECT_THAT(refusal_of("n", "18446744073709551616"), HasSubstr("which is no int64"));
  EXPECT_THAT(refusal_of("small", "[128]"), HasSubstr("element 0 is 128, which is beyond"));
  EXPECT_THAT(refusal_of("small", "[1, -129]"), HasSubstr("element 1 is -129, which is beyond"));
  EXPECT_THAT(refusal_of("big", "[-1]"), HasSubstr("beyond the range of uint64"));
  EXPECT_THAT(refusal_of("x", "[1e39]"), HasSubstr("beyond the range of float"));
  EXPECT_THAT(refusal_of("half", "[70000]"), HasSubstr("beyond the range of float16"));
  EXPECT_THAT(refusal_of("flag", "[1]"), HasSubstr("which is no bool"));
  EXPECT_THAT(refusal_of("words", "[1]"), HasSubstr("which is no string"));
  EXPECT_THAT(refusal_of("words", "[1.5]"), HasSubstr("which is no string"));
}

// A tensor of some bits of each type; bools are 0 or 1.
Tensor random_tensor(ElementType element, Random& random) {
  constexpr int64_t kCount = 200;
  std::vector<std::byte> bytes(kCount * element_size_bytes(element));
  for (std::byte& each : bytes) {
    each = static_cast<std::byte>(random.below(element == ElementType::kBool ? 2 : 256));
  }
  return Tensor::copy_of({bytes.data(), std::array<int64_t, 1>{kCount}.data(), 1, element});
}

// Equal bits, or both no number.
void expect_same(const Tensor& a, const Tensor& b) {
  ASSERT_EQ(a.dims(), b.dims());
  const size_t size = element_size_bytes(a.element_type());
  for (int64_t i = 0; i < *a.dims().count(); ++i) {
    const Number x = load_number(a.view(), i);
    if (x.kind == Number::Kind::kFloat && std::isnan(x.float_value)) {
      EXPECT_TRUE(std::isnan(load_number(b.view(), i).float_value)) << i;
      continue;
    }
    const size_t at = static_cast<size_t>(i) * size;
    EXPECT_EQ(std::memcmp(a.view().as<char>() + at, b.view().as<char>() + at, size), 0) << i;
  }
}

TEST(OutputsJson, WhatIsWrittenIsReadWithTheSameBits) {
  Random random(20261125);
  for (int type = 1; type < kNumElementTypes; ++type) {
    const auto element = static_cast<ElementType>(type);
    if (!kNumberTypes.contains(element)) continue;
    const std::vector<ValueDescription> as = {describe("v", element, {kUnknownDim})};
    const Tensor given = random_tensor(element, random);
    const Json written = Json::parse(outputs_json({{"v", given}}));
    EXPECT_EQ(written["outputs"]["v"]["type"], element_type_name(element));
    const auto back = read_inputs(Json({{"inputs", written["outputs"]}}).dump(), as);
    ASSERT_TRUE(back.is_ok()) << element_type_name(element) << ": " << back.status().to_string();
    expect_same((*back)[0].second, given);
  }
}

TEST(OutputsJson, HasTypeShapeAndFlatData) {
  const Tensor y = Tensor::of<float>({2, 2}, {1, 0.1f, HUGE_VALF, -HUGE_VALF});
  const Tensor none = Tensor::zeros(ElementType::kDouble, {0, 3});
  const Tensor flag = Tensor::scalar(true);
  EXPECT_EQ(outputs_json({{"y", y}, {"a \"b\"", none}, {"f", flag}}),
            "{\"outputs\":{\"y\":{\"type\":\"float\",\"shape\":[2,2],\"data\":[1,0.1,\"Infinity\","
            "\"-Infinity\"]},\"a \\\"b\\\"\":{\"type\":\"double\",\"shape\":[0,3],\"data\":[]},"
            "\"f\":{\"type\":\"bool\",\"shape\":[],\"data\":[true]}}}\n");
  const std::string nan = outputs_json({{"y", Tensor::scalar(std::nanf(""))}});
  EXPECT_THAT(nan, HasSubstr("[\"NaN\"]"));
}

TEST(OutputsJson, StringsThatAreNoUtf8StillMakeJson) {
  std::string text[] = {"a\"\n", "\xff"};
  const int64_t size = 2;
  const Tensor words = Tensor::copy_of({text, &size, 1, ElementType::kString});
  const Json json = Json::parse(outputs_json({{"w", words}}));
  EXPECT_EQ(json["outputs"]["w"]["data"], Json({"a\"\n", "\xEF\xBF\xBD"}));
}

TEST(ErrorJson, IsOneShortLineOfJson) {
  const std::string json = error_json("bad \"name\"\n\xff" + std::string(100'000, 'x'));
  EXPECT_LT(json.size(), 1000u);
  EXPECT_EQ(json.find('\n'), json.size() - 1);
  EXPECT_THAT(Json::parse(json)["error"].get<std::string>(), HasSubstr("bad \"name\"?"));
}

TEST(CheckHaveJson, OnlyTensorsOfCommonTypesDo) {
  EXPECT_TRUE(check_have_json(inputs(), "input").is_ok());
  const ValueType sequence = ValueType::sequence_of(tensor_type(ElementType::kFloat, {}));
  const std::vector<ValueDescription> bad = {
      describe("c", ElementType::kComplex64, {}),
      describe("e", ElementType::kFloat8E5M2, {}),
      {"s", sequence, to_string(sequence)},
  };
  for (const ValueDescription& each : bad) {
    const Status status = check_have_json(std::span(&each, 1), "output");
    EXPECT_EQ(status.code(), StatusCode::kUnsupported);
    EXPECT_THAT(status.message(), HasSubstr("output '" + each.name + "' is " + each.text));
  }
}

}  // namespace
}  // namespace eddy::server
