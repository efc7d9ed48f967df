// Sequence and optional operators follow the standard's positions (negative ones from the back),
// share elements untouched, and refuse places and shapes that are not there.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/ops/testing/op_runner.h"

namespace eddy::testing {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

OpCall make_call(std::string op, std::vector<TestValue> inputs, Attributes attributes = {},
                 int opset = 18) {
  OpCall call;
  call.op = std::move(op);
  call.opset = opset;
  call.attributes = std::move(attributes);
  call.inputs = std::move(inputs);
  return call;
}

TestTensor row(std::vector<int64_t> values) {
  return TestTensor::of<int64_t>({static_cast<int64_t>(values.size())}, values);
}

TestValue rows(const std::vector<std::vector<int64_t>>& values) {
  std::vector<TestTensor> tensors;
  for (const auto& value : values) tensors.push_back(row(value));
  return TestValue::sequence(ElementType::kInt64, tensors);
}

// The first element of each tensor of a sequence.
std::vector<int64_t> heads(const TestValue& sequence) {
  EXPECT_EQ(sequence.kind, TestValue::Kind::kSequence);
  std::vector<int64_t> result;
  for (const TestTensor& tensor : sequence.tensors) result.push_back(tensor.values<int64_t>()[0]);
  return result;
}

TestValue result_of(const OpCall& call) {
  auto result = run_op(call, KernelSet::kCpu);
  EXPECT_TRUE(result.is_ok()) << result.status().to_string();
  return result.is_ok() ? (*result)[0] : TestValue();
}

std::string error_of(const OpCall& call) {
  return run_op(call, KernelSet::kCpu).status().to_string();
}

TestTensor position(int64_t value) { return TestTensor::scalar(value); }

TEST(SequenceTest, InsertTakesAnyPlaceUpToTheEnd) {
  const TestValue three = rows({{1}, {2}, {3}});
  const auto insert = [&](TestValue at) {
    return make_call("SequenceInsert", {three, row({9}), at});
  };
  EXPECT_THAT(heads(result_of(insert(TestValue::omitted()))), ElementsAre(1, 2, 3, 9));
  EXPECT_THAT(heads(result_of(insert(position(0)))), ElementsAre(9, 1, 2, 3));
  EXPECT_THAT(heads(result_of(insert(position(3)))), ElementsAre(1, 2, 3, 9));
  EXPECT_THAT(heads(result_of(insert(position(-1)))), ElementsAre(1, 2, 9, 3));
  EXPECT_THAT(heads(result_of(insert(position(-3)))), ElementsAre(9, 1, 2, 3));
  EXPECT_THAT(error_of(insert(position(4))), HasSubstr("position 4 is out of range"));
  EXPECT_THAT(error_of(insert(position(-4))), HasSubstr("position -4 is out of range"));
}

TEST(SequenceTest, EraseAndAtTakeOnlyPlacesThatAreThere) {
  const TestValue three = rows({{1}, {2}, {3}});
  EXPECT_THAT(heads(result_of(make_call("SequenceErase", {three}))), ElementsAre(1, 2));
  EXPECT_THAT(heads(result_of(make_call("SequenceErase", {three, position(-3)}))),
              ElementsAre(2, 3));
  EXPECT_THAT(error_of(make_call("SequenceErase", {three, position(3)})),
              HasSubstr("position 3 is out of range for a sequence of length 3"));
  EXPECT_THAT(error_of(make_call("SequenceErase", {rows({})})),
              HasSubstr("out of range for a sequence of length 0"));
  const TestValue at = result_of(make_call("SequenceAt", {three, position(-1)}));
  EXPECT_THAT(at.tensor().values<int64_t>(), ElementsAre(3));
  EXPECT_THAT(error_of(make_call("SequenceAt", {rows({}), position(0)})),
              HasSubstr("position 0 is out of range"));
}

TEST(SequenceTest, ConstructEmptyAndLengthAgree) {
  const TestValue made = result_of(make_call("SequenceConstruct", {row({1}), row({2, 3})}));
  EXPECT_THAT(heads(made), ElementsAre(1, 2));
  const TestValue length = result_of(make_call("SequenceLength", {made}));
  EXPECT_THAT(length.tensor().values<int64_t>(), ElementsAre(2));
  const OpCall empty =
      make_call("SequenceEmpty", {}, {{"dtype", static_cast<int64_t>(ElementType::kString)}});
  EXPECT_EQ(result_of(empty).element, ElementType::kString);
  EXPECT_EQ(result_of(empty).tensors.size(), 0u);
  EXPECT_THAT(error_of(make_call("SequenceEmpty", {}, {{"dtype", int64_t{99}}})),
              HasSubstr("dtype 99"));
}

TEST(SequenceTest, TypesThatDifferAreRefused) {
  EXPECT_THAT(error_of(make_call("SequenceConstruct", {row({1}), TestTensor::scalar(1.0f)})),
              HasSubstr("must have the same element type"));
  EXPECT_THAT(error_of(make_call("SequenceInsert", {rows({{1}}), TestTensor::scalar(1.0f)})),
              HasSubstr("can't be inserted"));
  EXPECT_THAT(error_of(make_call("SequenceLength", {row({1})})), HasSubstr("must be a sequence"));
}

TEST(SequenceTest, SplitMakesChunksPartsOrSingleSteps) {
  const TestTensor data = TestTensor::of<int64_t>({5}, {0, 1, 2, 3, 4});
  const auto chunks = result_of(make_call("SplitToSequence", {data, position(2)}));
  ASSERT_EQ(chunks.tensors.size(), 3u);
  EXPECT_THAT(chunks.tensors[2].values<int64_t>(), ElementsAre(4));
  const auto parts = result_of(make_call("SplitToSequence", {data, row({1, 0, 4})}));
  ASSERT_EQ(parts.tensors.size(), 3u);
  EXPECT_EQ(parts.tensors[1].dims(), (Dims{0}));
  EXPECT_THAT(parts.tensors[2].values<int64_t>(), ElementsAre(1, 2, 3, 4));
  const auto steps = result_of(make_call("SplitToSequence", {data}, {{"keepdims", int64_t{0}}}));
  ASSERT_EQ(steps.tensors.size(), 5u);
  EXPECT_EQ(steps.tensors[3].dims(), Dims());
  EXPECT_THAT(error_of(make_call("SplitToSequence", {data, position(0)})),
              HasSubstr("split must be positive"));
  EXPECT_THAT(error_of(make_call("SplitToSequence", {data, row({2, 4})})),
              HasSubstr("split entry 1 is 4, but 3 elements"));
  EXPECT_THAT(error_of(make_call("SplitToSequence", {data, row({2})})),
              HasSubstr("leave 3 elements"));
}

TEST(SequenceTest, ConcatUndoesSplitAlongEveryAxis) {
  for (int64_t axis : {0, 1, 2, -1}) {
    for (ElementType element : {ElementType::kFloat, ElementType::kInt8, ElementType::kString}) {
      Random random(static_cast<uint64_t>(axis + 5));
      TestTensor data = TestTensor::of_strings({2, 3, 4}, std::vector<std::string>(24));
      if (element == ElementType::kString) {
        for (int i = 0; i < 24; ++i) {
          data.view().mutable_as<std::string>()[i] = "a rather long string " + std::to_string(i);
        }
      } else {
        data = TestTensor::random(element, {2, 3, 4}, random, -100, 100);
      }
      for (int64_t keepdims : {0, 1}) {
        const TestValue split = result_of(
            make_call("SplitToSequence", {data}, {{"axis", axis}, {"keepdims", keepdims}}));
        const TestValue joined = result_of(
            make_call("ConcatFromSequence", {split}, {{"axis", axis}, {"new_axis", 1 - keepdims}}));
        EXPECT_TRUE(is_same_bits(joined.tensor(), data)) << "axis " << axis;
      }
    }
  }
}

TEST(SequenceTest, ConcatRefusesNothingAndMisfits) {
  EXPECT_THAT(error_of(make_call("ConcatFromSequence", {rows({})}, {{"axis", int64_t{0}}})),
              HasSubstr("an empty sequence"));
  EXPECT_THAT(error_of(make_call("ConcatFromSequence", {rows({{1}, {2, 3}})},
                                 {{"axis", int64_t{0}}, {"new_axis", int64_t{1}}})),
              HasSubstr("elements 0 and 1 do not join along axis 0: [1] and [2]"));
}

TEST(SequenceTest, AFullOptionalIsItsValue) {
  const TestTensor value = row({7});
  EXPECT_THAT(result_of(make_call("Optional", {value})).tensor().values<int64_t>(), ElementsAre(7));
  TestValue full = value;
  full.is_optional = true;
  for (int opset : {15, 18}) {
    const auto has = [&](TestValue input) -> bool {
      return result_of(make_call("OptionalHasElement", {input}, {}, opset))
          .tensor()
          .values<bool>()[0];
    };
    EXPECT_TRUE(has(full));
    EXPECT_FALSE(has(TestValue::none(ElementType::kInt64)));
    const TestValue got = result_of(make_call("OptionalGetElement", {full}, {}, opset));
    EXPECT_THAT(got.tensor().values<int64_t>(), ElementsAre(7));
    EXPECT_THAT(error_of(make_call("OptionalGetElement", {TestValue::none(ElementType::kInt64)}, {},
                                   opset)),
                HasSubstr("the optional is empty"));
  }
  const OpCall none = make_call("Optional", {}, {{"type", tensor_type(ElementType::kInt64, {1})}});
  EXPECT_EQ(result_of(none).kind, TestValue::Kind::kNone);
  EXPECT_THAT(error_of(make_call("Optional", {})), HasSubstr("needs an input"));
}

TEST(SequenceTest, IdentityPassesSequencesAndOptionalsOn) {
  EXPECT_THAT(heads(result_of(make_call("Identity", {rows({{1}, {2}})}))), ElementsAre(1, 2));
  EXPECT_EQ(result_of(make_call("Identity", {TestValue::none(ElementType::kInt64)})).kind,
            TestValue::Kind::kNone);
}

}  // namespace
}  // namespace eddy::testing
