// Claim: an attribute or type is refused in opsets that do not have it, by a message that names it
// and the opset that brought it; and a rule on an attribute's values is enforced.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "graph/ir/opset.h"
#include "ops/schema/standard.h"
#include "tests/ops/testing/op_runner.h"

namespace eddy::testing {
namespace {

using Ints = std::vector<int64_t>;
using Floats = std::vector<float>;

ValueType floats(Dims dims) { return tensor_type(ElementType::kFloat, dims); }

// Output 0, or the message.
std::string infer(const std::string& op, int opset, const std::vector<ValueType>& inputs,
                  Attributes attributes = {}, size_t num_outputs = 1) {
  OpCall call;
  call.op = op;
  call.opset = opset;
  call.num_outputs = num_outputs;
  call.attributes = std::move(attributes);
  const auto types = infer_op_types(call, inputs);
  return types.is_ok() ? to_string((*types)[0]) : types.status().message();
}

// The same, with values.
std::string infer_values(const std::string& op, int opset, std::vector<TestValue> inputs,
                         Attributes attributes = {}, size_t num_outputs = 1) {
  OpCall call;
  call.op = op;
  call.opset = opset;
  call.num_outputs = num_outputs;
  call.inputs = std::move(inputs);
  call.attributes = std::move(attributes);
  const auto types = infer_op(call);
  return types.is_ok() ? to_string((*types)[0]) : types.status().message();
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

struct Row {
  const char* op;
  size_t num_inputs;
  const char* attribute;
  AttributeValue value;
  int first, last;  // opsets that have the attribute, of those that have the operator
};
constexpr int kEver = kNewestOpset;

// By ONNX's change log; what each operator has in all of its opsets isn't listed.
std::vector<Row> rows() {
  std::vector<Row> rows = {
      {"MaxPool", 1, "ceil_mode", int64_t{1}, 10, kEver},
      {"MaxPool", 1, "dilations", Ints{1, 1}, 10, kEver},
      {"MaxPool", 1, "storage_order", int64_t{0}, 8, kEver},
      {"AveragePool", 1, "ceil_mode", int64_t{1}, 10, kEver},
      {"AveragePool", 1, "count_include_pad", int64_t{1}, 7, kEver},
      {"AveragePool", 1, "dilations", Ints{1, 1}, 19, kEver},
      {"Relu", 1, "consumed_inputs", Ints{0}, 1, 5},
      {"Add", 2, "consumed_inputs", Ints{0, 0}, 1, 5},
      {"Sum", 2, "consumed_inputs", Ints{0, 0}, 1, 5},
      {"GRU", 3, "linear_before_reset", int64_t{1}, 3, kEver},
      {"Pad", 1, "paddings", Ints{0}, 1, 1},
      {"Reshape", 1, "shape", Ints{0}, 1, 4},
      {"Gemm", 3, "broadcast", int64_t{1}, 1, 6},
      {"ArgMax", 1, "select_last_index", int64_t{1}, 12, kEver},
      {"ArgMin", 1, "select_last_index", int64_t{1}, 12, kEver},
      {"QuantizeLinear", 2, "axis", int64_t{1}, 13, kEver},
      {"QuantizeLinear", 2, "saturate", int64_t{1}, 19, kEver},
      {"QuantizeLinear", 2, "block_size", int64_t{1}, 21, kEver},
      {"QuantizeLinear", 2, "output_dtype", int64_t{3}, 21, kEver},
      {"QuantizeLinear", 2, "precision", int64_t{1}, 23, kEver},
      {"DequantizeLinear", 2, "output_dtype", int64_t{1}, 23, kEver},
      {"Cast", 1, "round_mode", "up", 24, kEver},
      {"CastLike", 2, "round_mode", "up", 24, kEver},
      {"Range", 3, "stash_type", int64_t{1}, 27, kEver},
      {"DequantizeLinear", 2, "axis", int64_t{1}, 13, kEver},
      {"DequantizeLinear", 2, "block_size", int64_t{1}, 21, kEver},
      {"LSTM", 3, "output_sequence", int64_t{1}, 1, 6},
      {"BatchNormalization", 5, "is_test", int64_t{1}, 1, 6},
      {"BatchNormalization", 5, "spatial", int64_t{1}, 1, 8},
      {"BatchNormalization", 5, "training_mode", int64_t{0}, 14, kEver},
      {"Resize", 3, "coordinate_transformation_mode", "asymmetric", 11, kEver},
      {"Resize", 3, "antialias", int64_t{0}, 18, kEver},
      {"Resize", 3, "axes", Ints{0}, 18, kEver},
      {"Cast", 1, "saturate", int64_t{1}, 19, kEver},
      {"CastLike", 2, "saturate", int64_t{1}, 19, kEver},
      {"Clip", 1, "min", 0.5f, 1, 10},
      {"Add", 2, "broadcast", int64_t{1}, 1, 6},
      {"And", 2, "axis", int64_t{1}, 1, 6},
      {"Split", 1, "split", Ints{1}, 1, 12},
      {"Split", 1, "num_outputs", int64_t{1}, 18, kEver},
      {"Slice", 1, "starts", Ints{0}, 1, 9},
      {"DepthToSpace", 1, "mode", "DCR", 11, kEver},
      {"Pad", 1, "pads", Ints{0}, 2, 10},
      {"Reshape", 2, "allowzero", int64_t{1}, 14, kEver},
      {"Squeeze", 1, "axes", Ints{0}, 1, 12},
      {"Unsqueeze", 1, "axes", Ints{0}, 1, 12},
      {"Shape", 1, "start", int64_t{0}, 15, kEver},
      {"Dropout", 1, "is_test", int64_t{1}, 1, 6},
      {"Dropout", 1, "ratio", 0.5f, 1, 11},
      {"Dropout", 1, "seed", int64_t{1}, 12, kEver},
      {"GatherND", 2, "batch_dims", int64_t{0}, 12, kEver},
      {"ScatterElements", 3, "reduction", "none", 16, kEver},
      {"ScatterND", 3, "reduction", "none", 16, kEver},
      {"TopK", 1, "k", int64_t{1}, 1, 9},
      {"TopK", 2, "largest", int64_t{1}, 11, kEver},
      {"ReduceSum", 1, "axes", Ints{0}, 1, 12},
      {"ReduceSum", 1, "noop_with_empty_axes", int64_t{1}, 13, kEver},
      {"ReduceL2", 1, "axes", Ints{0}, 1, 17},
      {"ReduceL2", 1, "noop_with_empty_axes", int64_t{1}, 18, kEver},
  };
  for (const char* op : {"LSTM", "GRU", "RNN"}) {
    rows.push_back({op, 3, "layout", int64_t{1}, 14, kEver});
  }
  return rows;
}

TEST(OpsetsTest, AnAttributeIsTakenInItsOpsetsAndRefusedInOthers) {
  OpTable table;
  ASSERT_TRUE(add_standard_schemas(table).is_ok());
  for (const Row& row : rows()) {
    bool was_taken = false;
    for (int opset = kOldestOpset; opset <= kEver; ++opset) {
      if (table.find_or_null("", row.op, opset) == nullptr) continue;
      const std::vector<ValueType> unknown(row.num_inputs, TensorType(ElementType::kUndefined));
      const std::string said = infer(row.op, opset, unknown, {{row.attribute, row.value}});
      const std::string name = "'" + std::string(row.attribute) + "'";
      const bool is_refused =
          contains(said, name) && (contains(said, "came with") || contains(said, "ended with") ||
                                   contains(said, "has no attribute"));
      const bool is_expected = opset < row.first || opset > row.last;
      // Where an attribute became an input or came with one, their number is wrong first.
      const bool is_missed = contains(said, "which is missing") || contains(said, "takes at most");
      EXPECT_TRUE(is_refused == is_expected || (is_expected && is_missed))
          << row.op << " " << row.attribute << " in opset " << opset << ": " << said;
      was_taken |= !is_expected && !is_missed;
    }
    EXPECT_TRUE(was_taken) << row.op << " " << row.attribute;
  }
}

TEST(OpsetsTest, MessagesSayWhichOpsetHasIt) {
  const Attributes pool = {{"kernel_shape", Ints{2}}, {"dilations", Ints{2}}};
  EXPECT_EQ(infer("AveragePool", 17, {floats({1, 1, 5})}, pool),
            "attribute 'dilations' of AveragePool came with opset 19, but the node is of opset 17: "
            "raise the opset or leave the attribute out");
  EXPECT_EQ(infer("AveragePool", 19, {floats({1, 1, 5})}, pool), to_string(floats({1, 1, 3})));
  EXPECT_EQ(infer("Gemm", 7, {floats({2, 2}), floats({2, 2}), floats({2})}, {{"broadcast", 1}}),
            "attribute 'broadcast' of Gemm ended with opset 6, but the node is of opset 7: leave "
            "the attribute out");
  EXPECT_EQ(infer("ReduceMax", 18, {floats({2})}, {{"axes", Ints{0}}}),
            "ReduceMax has no attribute 'axes' in opset 18");
  EXPECT_EQ(
      infer("ReduceMax", 18, {tensor_type(ElementType::kBool, {2})}),
      "input 0 ('data') of ReduceMax can be bool from opset 20 on, but the node is of opset 18");
  EXPECT_EQ(infer("ReduceMax", 20, {tensor_type(ElementType::kBool, {2})}), "bool[1]");
  EXPECT_EQ(infer("MaxPool", 11, {tensor_type(ElementType::kInt8, {1, 1, 4})},
                  {{"kernel_shape", Ints{2}}}),
            "input 0 ('X') of MaxPool can be int8 from opset 12 on, but the node is of opset 11");
  EXPECT_EQ(infer("MaxPool", 6, {floats({1, 1, 4})}, {{"kernel_shape", Ints{2}}}, 2),
            "MaxPool has 1 output in opset 6, not 2");
  EXPECT_EQ(infer("Erf", 13, {tensor_type(ElementType::kInt32, {2})}),
            "input 0 ('X') of Erf can't be int32");
}

TEST(OpsetsTest, TypesThatCameOrWentInOpset27And28) {
  const auto pair = [](ElementType element) {
    return std::vector<ValueType>(2, tensor_type(element, {2}));
  };
  const Attributes right = {{"direction", "RIGHT"}};
  EXPECT_EQ(infer("BitShift", 28, pair(ElementType::kInt16), right), "int16[2]");
  EXPECT_EQ(infer("BitShift", 27, pair(ElementType::kInt16), right),
            "input 0 ('A') of BitShift can be int16 from opset 28 on, but the node is of opset 27");
  EXPECT_EQ(infer("ReduceLogSum", 27, {tensor_type(ElementType::kInt32, {2})}), "int32[1]");
  EXPECT_EQ(infer("ReduceLogSum", 28, {tensor_type(ElementType::kInt32, {2})}),
            "input 0 ('data') of ReduceLogSum can't be int32");
  const std::vector<ValueType> halves(3, tensor_type(ElementType::kFloat16, {}));
  EXPECT_EQ(infer("Range", 27, halves), "float16[?]");
  EXPECT_EQ(infer("Range", 26, halves), "input 0 ('start') of Range can't be float16");
}

TEST(OpsetsTest, AQuantizationComputesInFloatsAndGivesTheTypeAskedFor) {
  const std::vector<ValueType> inputs = {floats({2}), floats({})};
  EXPECT_EQ(infer("QuantizeLinear", 23, inputs, {{"precision", 1}}), "uint8[2]");
  EXPECT_EQ(infer("QuantizeLinear", 23, inputs, {{"precision", 10}}),
            "attribute 'precision' is 10, but only 1 (float) is supported; leave it out");
  const std::vector<ValueType> bytes = {tensor_type(ElementType::kInt8, {2}), floats({})};
  EXPECT_EQ(infer("DequantizeLinear", 23, bytes, {{"output_dtype", 10}}), "float16[2]");
  EXPECT_EQ(infer("DequantizeLinear", 23, bytes, {{"output_dtype", 7}}),
            "attribute 'output_dtype' is 7, which is none of float (1), float16 (10) and bfloat16 "
            "(16)");
}

TEST(OpsetsTest, AQuantizationByAxisNeedsOpset13) {
  const std::vector<ValueType> inputs = {floats({2, 3}), floats({3})};
  EXPECT_EQ(infer("QuantizeLinear", 10, inputs),
            "the scale of shape [3] must be one value before opset 13");
  EXPECT_EQ(infer("QuantizeLinear", 13, inputs), "uint8[2,3]");
  EXPECT_EQ(infer("QuantizeLinear", 10, {floats({2, 3}), floats({1})}), "uint8[2,3]");
  EXPECT_EQ(infer("DequantizeLinear", 12, {tensor_type(ElementType::kInt8, {2, 3}), floats({3})}),
            "the scale of shape [3] must be one value before opset 13");
}

TEST(OpsetsTest, AGemmBroadcastsItsAddendBeforeOpset7OnlyWhereItsAttributeIsSet) {
  const auto gemm = [](int opset, Dims c, Attributes attributes = {}) {
    return infer("Gemm", opset, {floats({2, 5}), floats({5, 3}), floats(c)}, std::move(attributes));
  };
  EXPECT_EQ(gemm(6, {3}),
            "C of Gemm must have the result's shape [2,3] before opset 7, not [3], unless the "
            "attribute broadcast is 1");
  EXPECT_EQ(gemm(6, {2, 3}), to_string(floats({2, 3})));
  EXPECT_EQ(gemm(6, {3}, {{"broadcast", 1}}), to_string(floats({2, 3})));
  EXPECT_EQ(gemm(7, {3}), to_string(floats({2, 3})));
}

TEST(OpsetsTest, FlattenCountsFromTheEndFromOpset11On) {
  EXPECT_EQ(infer("Flatten", 9, {floats({2, 3})}, {{"axis", -1}}),
            "axis -1 of Flatten is negative, which came with opset 11, but the node is of opset 9");
  EXPECT_EQ(infer("Flatten", 11, {floats({2, 3})}, {{"axis", -1}}), to_string(floats({2, 3})));
}

TEST(AttributeValuesTest, WhatIsNoChoiceIsRefused) {
  const auto pool = [](Attributes attributes) {
    attributes.set("kernel_shape", Ints{2});
    return infer("MaxPool", 17, {floats({1, 1, 4})}, std::move(attributes));
  };
  EXPECT_EQ(pool({{"storage_order", 7}}),
            "attribute 'storage_order' of MaxPool must be 0 or 1, not 7");
  EXPECT_EQ(pool({{"auto_pad", "SAME_UPPER"}, {"pads", Ints{1, 0}}}),
            "auto_pad SAME_UPPER decides the paddings: leave pads out");
  EXPECT_EQ(pool({{"auto_pad", "SAME_UPPER"}, {"pads", Ints{0, 0}}}), to_string(floats({1, 1, 4})));
  EXPECT_EQ(pool({{"auto_pad", "NOTSET"}, {"pads", Ints{1, 0}}}), to_string(floats({1, 1, 4})));
  const auto gru = [](Attributes attributes) {
    return infer("GRU", 17, {floats({5, 1, 2}), floats({1, 9, 2}), floats({1, 9, 3})},
                 std::move(attributes), 2);
  };
  EXPECT_EQ(gru({{"linear_before_reset", 5}}),
            "attribute 'linear_before_reset' of GRU must be 0 or 1, not 5");
  EXPECT_EQ(gru({{"layout", 9}}), "attribute 'layout' of GRU must be 0 or 1, not 9");
  EXPECT_EQ(gru({{"activation_alpha", Floats{0.1f}}}),
            "activation_alpha has 1 values, but the activations take 0");
  const std::vector<std::string> names = {"HardSigmoid", "Tanh"};
  EXPECT_EQ(gru({{"activations", names}, {"activation_alpha", Floats{0.1f}}}),
            to_string(floats({5, 1, 1, 3})));
  EXPECT_EQ(gru({{"activations", names}, {"activation_beta", Floats{0.1f, 0.2f}}}),
            "activation_beta has 2 values, but the activations take 1");
  EXPECT_EQ(infer("QuantizeLinear", 21, {floats({2}), floats({})}, {{"output_dtype", 99}}),
            "attribute 'output_dtype' is 99, which is no element type");
  EXPECT_EQ(infer("GatherND", 13, {floats({2, 3}), tensor_type(ElementType::kInt64, {2, 1})},
                  {{"batch_dims", -1}}),
            "batch_dims must not be negative: -1");
  EXPECT_EQ(infer("ScatterND", 16,
                  {tensor_type(ElementType::kBool, {2}), tensor_type(ElementType::kInt64, {1, 1}),
                   tensor_type(ElementType::kBool, {1})},
                  {{"reduction", "add"}}),
            "reduction 'add' combines numbers, not bool");
}

// What constants say wrongly is known before anything runs.
TEST(AttributeValuesTest, ConstantInputsAreCheckedWithTheTypes) {
  const TestTensor x(ElementType::kFloat, {5, 2, 2});
  const auto lengths = [&](const std::vector<int32_t>& values) {
    return infer_values(
        "RNN", 17,
        {x, TestTensor(ElementType::kFloat, {1, 3, 2}), TestTensor(ElementType::kFloat, {1, 3, 3}),
         TestValue::omitted(), TestTensor::of<int32_t>({2}, values)},
        {}, 2);
  };
  EXPECT_EQ(lengths({5, 99}), "sequence_lens[1] is 99, out of range 0..5");
  EXPECT_EQ(lengths({-5, 1}), "sequence_lens[0] is -5, out of range 0..5");
  EXPECT_EQ(lengths({0, 5}), to_string(floats({5, 1, 2, 3})));
  EXPECT_EQ(infer_values("Trilu", 14, {x, TestTensor::of<int64_t>({2}, {1, 2})}),
            "k must have one element, not 2");
  const auto dropout = [&](const TestTensor& ratio, bool trains) {
    return infer_values("Dropout", 13, {x, ratio, TestTensor::scalar(trains)});
  };
  EXPECT_EQ(dropout(TestTensor::scalar(1.5f), true), "ratio must lie in [0, 1), not 1.500000");
  EXPECT_EQ(dropout(TestTensor::scalar(1.5f), false), to_string(floats({5, 2, 2})));
  EXPECT_EQ(dropout(TestTensor::of<float>({2}, {0, 0}), false),
            "ratio must have one element, not 2");
  const Attributes crop = {{"coordinate_transformation_mode", "tf_crop_and_resize"}};
  const TestTensor image(ElementType::kFloat, {1, 1, 4, 4});
  const TestTensor scales = TestTensor::of<float>({4}, {1, 1, 2, 2});
  EXPECT_EQ(infer_values("Resize", 13, {image, TestTensor::of<float>({2}, {0, 1}), scales}, crop),
            "roi must hold 8 values, not 2");
  EXPECT_EQ(infer_values("Resize", 13, {image, TestValue::omitted(), scales}, crop),
            "tf_crop_and_resize needs the input roi");
  const auto scaled = [&](float scale) {
    return infer_values(
        "Resize", 13, {image, TestValue::omitted(), TestTensor::of<float>({4}, {1, 1, scale, 1})});
  };
  EXPECT_EQ(scaled(1e18f), "scales ask for 1e+18 times axis 2 of size 4, more than a tensor holds");
  EXPECT_EQ(scaled(-1), "scales must be positive and finite, not -1.000000 for axis 2");
  EXPECT_EQ(scaled(HUGE_VALF), "scales must be positive and finite, not inf for axis 2");
}

}  // namespace
}  // namespace eddy::testing
