// Shape rules infer as much as is known and no more: symbols survive what keeps them, ranks follow
// from the length of a shape that is not known yet, and what no value can make right is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/ops/testing/op_runner.h"

namespace eddy::testing {
namespace {

using ::testing::HasSubstr;

constexpr int64_t kS0 = -2, kS1 = -3;  // symbols
constexpr int64_t kAny = kUnknownDim;

ValueType f(Dims dims) { return tensor_type(ElementType::kFloat, dims); }
ValueType i64(Dims dims) { return tensor_type(ElementType::kInt64, dims); }
ValueType unranked() { return TensorType(ElementType::kFloat); }

// An operator, the types of its inputs, and the values of those that are known.
struct Rule {
  std::string op;
  int opset = 18;
  Attributes attributes = {};
  std::vector<ValueType> inputs = {};
  std::vector<std::pair<size_t, std::vector<int64_t>>> known = {};
  size_t num_outputs = 1;
};

std::string infer(const Rule& rule) {
  OpCall call;
  call.op = rule.op;
  call.opset = rule.opset;
  const OpDef* def = find_op(call);
  if (def == nullptr) return "no operator";
  std::vector<const ValueType*> inputs;
  for (const ValueType& type : rule.inputs) {
    inputs.push_back(type.tensor.element == ElementType::kUndefined ? nullptr : &type);
  }
  std::vector<TestTensor> tensors(rule.inputs.size());
  std::vector<TensorView> views(rule.inputs.size());
  std::vector<const TensorView*> values(rule.inputs.size(), nullptr);
  for (const auto& [input, list] : rule.known) {
    tensors[input] = TestTensor::of<int64_t>({static_cast<int64_t>(list.size())}, list);
    views[input] = tensors[input].view();
    values[input] = &views[input];
  }
  std::vector<ValueType> outputs(rule.num_outputs);
  InferContext context(rule.attributes, inputs, values, outputs, rule.opset);
  const Status status = infer_types(*def, context);
  if (!status.is_ok()) return status.to_string();
  std::string text;
  for (const ValueType& type : outputs) text += (text.empty() ? "" : " ") + to_string(type);
  return text;
}

TEST(MovementSchemaTest, ConcatAddsSizesAndKeepsWhatMustAgree) {
  const Attributes axis1 = {{"axis", int64_t{1}}};
  EXPECT_EQ(infer({"Concat", 13, axis1, {f({kS0, 2}), f({kS0, 3})}}), "float[s0,5]");
  EXPECT_EQ(infer({"Concat", 13, axis1, {f({kS0, 2}), f({4, kAny})}}), "float[4,?]");
  EXPECT_EQ(infer({"Concat", 13, axis1, {f({kS0, kS1})}}), "float[s0,s1]");
  EXPECT_EQ(infer({"Concat", 13, axis1, {unranked(), f({4, 2})}}), "float[4,?]");
  EXPECT_EQ(infer({"Concat", 13, axis1, {unranked()}}), "float[...]");
  EXPECT_THAT(infer({"Concat", 13, axis1, {f({3, 2}), f({4, 2})}}),
              HasSubstr("inputs 0 and 1 differ outside axis 1"));
  EXPECT_THAT(infer({"Concat", 13, axis1, {f({3, 2}), f({3})}}), HasSubstr("inputs 0 and 1"));
  EXPECT_THAT(infer({"Concat", 13, axis1, {f({3, 2}), i64({3, 2})}}),
              HasSubstr("same element type"));
  EXPECT_THAT(infer({"Concat", 13, {{"axis", int64_t{2}}}, {f({3, 2})}}), HasSubstr("axis 2"));
  EXPECT_THAT(infer({"Concat", 13, axis1, {ValueType::sequence_of(f({1, 2}))}}),
              HasSubstr("must be a tensor"));
}

TEST(MovementSchemaTest, ReshapeInfersOneDimensionThroughSymbols) {
  const auto reshape = [](Dims from, std::vector<int64_t> to, Attributes attributes = {}) {
    const int64_t length = static_cast<int64_t>(to.size());
    return infer({"Reshape", 14, attributes, {f(from), i64({length})}, {{1, to}}});
  };
  EXPECT_EQ(reshape({kS0, 3, 4}, {-1, 12}), "float[s0,12]");
  EXPECT_EQ(reshape({kS0, 3, 4}, {0, -1}), "float[s0,12]");
  EXPECT_EQ(reshape({kS0, kS1, 4}, {0, 0, 2, -1}), "float[s0,s1,2,2]");
  EXPECT_EQ(reshape({kS0, 3, 4}, {-1, 5}), "float[?,5]");
  EXPECT_EQ(reshape({1, 1}, {}), "float[]");
  EXPECT_THAT(reshape({2, 3}, {}), HasSubstr("the elements of [2,3] do not fit the shape []"));
  EXPECT_THAT(reshape({2, 3}, {4, -1}), HasSubstr("do not fit the shape"));
  EXPECT_THAT(reshape({2, 3}, {5}), HasSubstr("the elements of [2,3] do not fit the shape [5]"));
  EXPECT_THAT(reshape({2, 3}, {-1, -1}), HasSubstr("more than one -1"));
  EXPECT_THAT(reshape({2, 3}, {-2, 3}), HasSubstr("negative size -2"));
  EXPECT_THAT(reshape({2, 3}, {2, 3, 0}), HasSubstr("copies axis 2"));
  EXPECT_THAT(reshape({0, 3}, {0, -1}, {{"allowzero", int64_t{1}}}), HasSubstr("-1"));
  EXPECT_EQ(reshape({0, 3}, {3, 0}, {{"allowzero", int64_t{1}}}), "float[3,0]");
  EXPECT_EQ(reshape({0, 3}, {0, 7}), "float[0,7]");
  EXPECT_THAT(reshape({2, 3}, {INT64_MAX, INT64_MAX}), HasSubstr("exceed int64"));
}

TEST(MovementSchemaTest, AShapeThatIsNotKnownYetStillHasALength) {
  EXPECT_EQ(infer({"Reshape", 14, {}, {f({2, 3}), i64({3})}}), "float[?,?,?]");
  EXPECT_EQ(infer({"Reshape", 14, {}, {f({2, 3}), i64({kAny})}}), "float[...]");
  EXPECT_EQ(infer({"Expand", 13, {}, {f({kS0, 1, 4}), i64({4})}}), "float[?,?,?,4]");
  EXPECT_EQ(infer({"ConstantOfShape", 9, {}, {i64({2})}}), "float[?,?]");
  EXPECT_EQ(infer({"Tile", 13, {}, {f({2, 3}), i64({2})}}), "float[?,?]");
  EXPECT_EQ(infer({"Unsqueeze", 13, {}, {f({2}), i64({2})}}), "float[?,?,?]");
  EXPECT_EQ(infer({"Squeeze", 13, {}, {f({2, 1, 1}), i64({2})}}), "float[?]");
  EXPECT_EQ(infer({"Slice", 13, {}, {f({kS0, 3}), i64({1}), i64({1})}}), "float[?,3]");
  EXPECT_EQ(infer({"Slice", 13, {}, {f({kS0, 3}), i64({1}), i64({1}), i64({1})}, {{3, {1}}}}),
            "float[s0,?]");
  EXPECT_THAT(infer({"Slice", 13, {}, {f({kS0, 3}), i64({5}), i64({5})}}),
              HasSubstr("5 starts are given for a tensor of rank 2"));
  EXPECT_EQ(infer({"Pad", 18, {}, {f({kS0, 3}), i64({4})}}), "float[?,?]");
  EXPECT_EQ(infer({"Split", 13, {}, {f({6, kS0}), i64({2})}, {}, 2}), "float[?,s0] float[?,s0]");
  EXPECT_THAT(infer({"Reshape", 14, {}, {f({2}), i64({9})}}), HasSubstr("9 dimensions"));
  EXPECT_THAT(infer({"Reshape", 14, {}, {f({2}), i64({99})}}), HasSubstr("99"));
}

TEST(MovementSchemaTest, SlicesOfSymbolsKeepThemOnlyWhenWhole) {
  const auto slice = [](int64_t start, int64_t end) {
    return infer({"Slice", 13, {}, {f({kS0, 5}), i64({1}), i64({1})}, {{1, {start}}, {2, {end}}}});
  };
  EXPECT_EQ(slice(0, INT64_MAX), "float[s0,5]");
  EXPECT_EQ(slice(1, INT64_MAX), "float[?,5]");
  EXPECT_EQ(slice(0, 3), "float[?,5]");
  EXPECT_EQ(infer({"Slice",
                   9,
                   {{"starts", std::vector<int64_t>{0, -2}}, {"ends", std::vector<int64_t>{3, 9}}},
                   {f({4, 5})}}),
            "float[3,2]");
}

TEST(MovementSchemaTest, AxesAreAttributesBefore13AndInputsSince) {
  const Attributes axes = {{"axes", std::vector<int64_t>{0, -1}}};
  EXPECT_EQ(infer({"Unsqueeze", 11, axes, {f({kS0})}}), "float[1,s0,1]");
  EXPECT_EQ(infer({"Unsqueeze", 13, {}, {f({kS0}), i64({2})}, {{1, {0, -1}}}}), "float[1,s0,1]");
  EXPECT_THAT(infer({"Unsqueeze", 13, axes, {f({kS0})}}), HasSubstr("axes"));
  EXPECT_EQ(infer({"Squeeze", 11, axes, {f({1, kS0, kAny})}}), "float[s0]");
  EXPECT_EQ(infer({"Squeeze", 13, {}, {f({1, 4, 1})}}), "float[4]");
  EXPECT_EQ(infer({"Squeeze", 13, {}, {f({1, kS0, 1})}}), "float[...]");
  EXPECT_THAT(infer({"Squeeze", 11, axes, {f({1, 3})}}), HasSubstr("axis 1 of [1,3] is not 1"));
  EXPECT_THAT(infer({"Unsqueeze", 13, {}, {f({2}), i64({2})}, {{1, {0, -3}}}}),
              HasSubstr("given twice"));
}

TEST(MovementSchemaTest, ExpandAndTileKeepASymbolThatIsNotRepeated) {
  const std::vector<ValueType> inputs = {f({kS0, 1}), i64({2})};
  EXPECT_EQ(infer({"Expand", 13, {}, inputs, {{1, {1, 7}}}}), "float[s0,7]");
  EXPECT_EQ(infer({"Tile", 13, {}, inputs, {{1, {1, 7}}}}), "float[s0,7]");
  EXPECT_EQ(infer({"Tile", 13, {}, inputs, {{1, {2, 7}}}}), "float[?,7]");
  EXPECT_THAT(infer({"Expand", 13, {}, {f({3}), i64({1})}, {{1, {2}}}}),
              HasSubstr("[3] does not broadcast to [2]"));
  EXPECT_THAT(infer({"Expand", 13, {}, {f({3}), i64({1})}, {{1, {-1}}}}), HasSubstr("-1"));
  EXPECT_THAT(infer({"Tile", 13, {}, {f({3}), i64({1})}, {{1, {-1}}}}), HasSubstr("-1"));
  EXPECT_THAT(infer({"Tile", 13, {}, {f({3}), i64({2})}, {{1, {1, 1}}}}),
              HasSubstr("repeats has 2 entries"));
}

TEST(MovementSchemaTest, SizesBeyondInt64AreRefusedWithTheirShape) {
  const int64_t big = int64_t{1} << 40;
  EXPECT_THAT(infer({"ConstantOfShape", 9, {}, {i64({2})}, {{0, {big, big}}}}),
              HasSubstr("[1099511627776,1099511627776] is too large"));
  EXPECT_THAT(infer({"Expand", 13, {}, {f({1}), i64({2})}, {{1, {big, big}}}}),
              HasSubstr("[1099511627776,1099511627776] is too large"));
  EXPECT_THAT(infer({"Tile", 13, {}, {f({big}), i64({1})}, {{1, {big}}}}),
              HasSubstr("exceeds int64"));
  EXPECT_THAT(infer({"ConstantOfShape", 9, {}, {i64({1})}, {{0, {-1}}}}),
              HasSubstr("negative size -1"));
  // No element, no bytes; but kernels step through the rest.
  EXPECT_THAT(infer({"ConstantOfShape", 9, {}, {i64({3})}, {{0, {big, big, 0}}}}),
              HasSubstr("[1099511627776,1099511627776,0] is too large"));
  EXPECT_EQ(infer({"ConstantOfShape", 9, {}, {i64({3})}, {{0, {1 << 20, 1 << 8, 0}}}}),
            "float[1048576,256,0]");
}

TEST(MovementSchemaTest, RanksAboveTheLimitAreRefused) {
  const Dims eight = {1, 1, 1, 1, 1, 1, 1, 1};
  EXPECT_THAT(infer({"Unsqueeze", 11, {{"axes", std::vector<int64_t>{0}}}, {f(eight)}}),
              HasSubstr("9 dimensions"));
  EXPECT_THAT(infer({"Gather", 13, {}, {f(eight), i64({2, 2})}}),
              HasSubstr("more than 8 dimensions"));
  EXPECT_THAT(infer({"OneHot", 11, {}, {i64(eight), i64({1}), f({2})}}),
              HasSubstr("more than 8 dimensions"));
}

TEST(MovementSchemaTest, ShapeFlattenAndGatherFollowTheRank) {
  EXPECT_EQ(infer({"Shape", 15, {{"start", int64_t{1}}}, {f({kS0, 3, 4})}}), "int64[2]");
  EXPECT_EQ(infer({"Shape", 15, {{"start", int64_t{-9}}, {"end", int64_t{9}}}, {f({kS0, 3})}}),
            "int64[2]");
  EXPECT_EQ(infer({"Shape", 13, {}, {unranked()}}), "int64[?]");
  EXPECT_EQ(infer({"Flatten", 13, {}, {f({kS0, 3, 4})}}), "float[s0,12]");
  EXPECT_EQ(infer({"Flatten", 13, {{"axis", int64_t{-3}}}, {f({kS0, 3, 4})}}), "float[1,?]");
  EXPECT_EQ(infer({"Gather", 13, {{"axis", int64_t{1}}}, {f({kS0, 3, 4}), i64({})}}),
            "float[s0,4]");
  EXPECT_EQ(infer({"Transpose", 13, {}, {f({kS0, 3, 4})}}), "float[4,3,s0]");
  EXPECT_THAT(infer({"Transpose", 13, {{"perm", std::vector<int64_t>{0, 0}}}, {f({2, 3})}}),
              HasSubstr("perm names axis 0 twice"));
  // Of a tensor of any rank as well: a gradient turns it round.
  using Axes = std::vector<int64_t>;
  const auto transposed = [](const Axes& perm) {
    return infer({"Transpose", 13, {{"perm", perm}}, {unranked()}});
  };
  EXPECT_THAT(transposed({1, 0}), HasSubstr("float"));
  EXPECT_THAT(transposed({0, 7}), HasSubstr("perm names axis 7 of a tensor of rank 2"));
  EXPECT_THAT(transposed({1, 1}), HasSubstr("perm names axis 1 twice"));
  EXPECT_THAT(transposed(Axes(40, 0)), HasSubstr("at most 8 dimensions"));
}

TEST(MovementSchemaTest, AHostPredicateIsOneBoolUnlessItSaysOtherwise) {
  OpCall call;
  call.op = "HostPredicate";
  call.domain = "eddy";
  call.opset = 1;
  call.attributes = {{"name", std::string("converged")}};
  for (const std::vector<ValueType>& inputs :
       {std::vector<ValueType>{}, std::vector<ValueType>{f({2}), i64({})}}) {
    const auto types = infer_op_types(call, inputs);
    ASSERT_TRUE(types.is_ok()) << types.status().to_string();
    EXPECT_EQ(to_string((*types)[0]), "bool[]");
  }
  call.attributes.set("type", i64({}));
  EXPECT_EQ(to_string((*infer_op_types(call, {f({2})}))[0]), "int64[]");
  for (const ValueType& type : {i64({2}), i64({kS0}), f({}), ValueType::sequence_of(i64({})),
                                tensor_type(ElementType::kUint8, {})}) {
    call.attributes.set("type", type);
    EXPECT_THAT(infer_op_types(call, {f({2})}).status().to_string(),
                HasSubstr("a host function decides one bool, int32 or int64"))
        << to_string(type);
  }
  call.attributes.set("type", i64({1}));
  EXPECT_EQ(to_string((*infer_op_types(call, {f({2})}))[0]), "int64[1]");
  // It is given views of tensors.
  EXPECT_THAT(infer_op_types(call, {ValueType::sequence_of(f({}))}).status().to_string(),
              HasSubstr("must be a tensor"));
  call.attributes = {};
  EXPECT_THAT(infer_op_types(call, {f({2})}).status().to_string(), HasSubstr("'name'"));
}

}  // namespace
}  // namespace eddy::testing
