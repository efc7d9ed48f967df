// Claim: operators of domain ai.onnx.ml are read in the version that a model imports, attributes of
// strings and tensors of strings among them, and are written back as they were; what Eddy doesn't
// do (newer versions) is refused by name; maps are read as pairs of lists.
#include <gtest/gtest.h>

#include <string>

#include "graph/io/export.h"
#include "graph/ir/print.h"
#include "tests/graph/io/test_import.h"

namespace eddy {
namespace {

using namespace test;  // NOLINT: a test's own vocabulary

WireWriter strings_attribute(std::string_view name, const Names& values) {
  WireWriter proto;
  proto.bytes(1, name);
  for (const std::string& value : values) proto.bytes(9, value);
  proto.integer(20, 8);
  return proto;
}
WireWriter floats_attribute(std::string_view name, const std::vector<float>& values) {
  WireWriter proto;
  proto.bytes(1, name);
  for (const float value : values) proto.float32(7, value);
  proto.integer(20, 6);
  return proto;
}
// A list of text: its dimension, its type, its words.
WireWriter text_tensor(const Names& values) {
  WireWriter proto;
  proto.integer(1, static_cast<int64_t>(values.size()));
  proto.integer(2, 8);
  for (const std::string& value : values) proto.bytes(6, value);
  return proto;
}

WireWriter ml_node(std::string_view op, const Names& inputs, const Names& outputs,
                   const Messages& attributes = {}) {
  return node(op, inputs, outputs, attributes, "n", "ai.onnx.ml");
}

std::string ml_model(int64_t version, const Messages& nodes, const ValueType& x,
                     const std::string& output = "y") {
  WireWriter proto;
  proto.integer(1, 8);
  proto.message(7, graph({.nodes = nodes, .inputs = {info("x", x)}, .outputs = {untyped(output)}}));
  proto.message(8, opset_import("", 17));
  proto.message(8, opset_import("ai.onnx.ml", version));
  return proto.data();
}

const Node& only_node(const Graph& g) { return g.node(g.root().nodes[0]); }

TEST(ImportMl, TheVersionOfTheDomainDecides) {
  const WireWriter old =
      ml_node("LabelEncoder", {"x"}, {"y"}, {strings_attribute("classes_strings", {"a", "b"})});
  const Graph first = must_import(ml_model(1, {old}, int64s({-2})));
  EXPECT_EQ(only_node(first).op->since_version, 1);
  EXPECT_EQ(only_node(first).opset_version, 1);
  EXPECT_EQ(first.value(only_node(first).outputs[0]).type.tensor.element, ElementType::kString);
  expect_import_error(ml_model(2, {old}, int64s({-2})), StatusCode::kInvalidArgument,
                      "LabelEncoder has no attribute 'classes_strings' in opset 2");
}

TEST(ImportMl, TensorsOfTextAreAttributes) {
  const WireWriter encoder = ml_node("LabelEncoder", {"x"}, {"y"},
                                     {tensor_attribute("keys_tensor", text_tensor({"a", "b"})),
                                      floats_attribute("values_floats", {0.5f, 2})});
  const Graph g = must_import(ml_model(4, {encoder}, tensor_type(ElementType::kString, {-2, 3})));
  EXPECT_EQ(only_node(g).op->since_version, 4);
  const Constant* keys = only_node(g).attributes.get_tensor_or_null("keys_tensor");
  ASSERT_NE(keys, nullptr);
  ASSERT_EQ(keys->element, ElementType::kString);
  EXPECT_EQ(static_cast<const std::string*>(keys->data)[1], "b");
}

TEST(ImportMl, AModelIsWrittenBackAsItWas) {
  const Graph g = must_import(ml_model(
      3,
      {ml_node("Scaler", {"x"}, {"t"},
               {floats_attribute("scale", {1, 2}), floats_attribute("offset", {3, 4})}),
       ml_node("LinearRegressor", {"t"}, {"y"}, {floats_attribute("coefficients", {1, 2})})},
      floats({-2, 2})));
  EXPECT_EQ(g.value(only_node(g).outputs[0]).type.tensor.element, ElementType::kFloat);
  const Result<std::string> bytes = format_onnx(g);
  ASSERT_TRUE(bytes.is_ok()) << bytes.status().to_string();
  EXPECT_EQ(print_text(must_import(*bytes)), print_text(g));
}

// TypeProto of a map from `key` to tensors of `value`.
WireWriter map_info(std::string_view name, ElementType key, ElementType value) {
  WireWriter tensor, of_value, map, type, proto;
  tensor.integer(1, static_cast<int64_t>(value));
  of_value.message(1, tensor);
  map.integer(1, static_cast<int64_t>(key));
  map.message(2, of_value);
  type.message(5, map);
  proto.bytes(1, name);
  proto.message(2, type);
  return proto;
}

// What sklearn's exporters write at the end: a list of maps, declared as such.
TEST(ImportMl, AListOfMapsIsATableOfTheirValues) {
  const Graph g = must_import(
      ml_model(1,
               {ml_node("ZipMap", {"x"}, {"y"},
                        {attribute("classlabels_int64s", std::vector<int64_t>{7, 8, 9})})},
               floats({-2, 3})));
  EXPECT_EQ(only_node(g).op->name, "Identity");
  EXPECT_EQ(g.output_names(), std::vector<std::string>{"y"});
  const TensorType& y = g.value(g.outputs()[0]).type.tensor;
  EXPECT_EQ(y.element, ElementType::kFloat);
  EXPECT_EQ(y.dims[1], 3);
}

TEST(ImportMl, AMapIsTwoInputsItsKeysAndItsValues) {
  const auto file = [](const Messages& inputs) {
    WireWriter proto;
    proto.integer(1, 8);
    proto.message(7,
                  graph({.nodes = {ml_node("DictVectorizer", {"m"}, {"y"},
                                           {strings_attribute("string_vocabulary", {"a", "b"})})},
                         .inputs = inputs,
                         .outputs = {untyped("y")}}));
    proto.message(8, opset_import("", 17));
    proto.message(8, opset_import("ai.onnx.ml", 1));
    return proto.data();
  };
  const WireWriter m = map_info("m", ElementType::kString, ElementType::kFloat);
  const Graph g = must_import(file({m}));
  ASSERT_EQ(g.inputs().size(), 2u);
  EXPECT_EQ(g.value(g.inputs()[0]).name, "m.keys");
  EXPECT_EQ(g.value(g.inputs()[1]).name, "m.values");
  const TensorType &keys = g.value(g.inputs()[0]).type.tensor,
                   &values = g.value(g.inputs()[1]).type.tensor;
  EXPECT_EQ(keys.element, ElementType::kString);
  EXPECT_EQ(g.symbol(keys.dims[0]), "m.size");
  EXPECT_EQ(values.dims[0], keys.dims[0]);
  EXPECT_EQ(to_string(g.value(g.outputs()[0]).type), "float[1,2]");
  expect_import_error(file({map_info("m", static_cast<ElementType>(99), ElementType::kFloat)}),
                      StatusCode::kInvalidArgument, "graph input 'm': element type 99");
  expect_import_error(file({m, m}), StatusCode::kInvalidArgument, "m.keys");
}

TEST(ImportMl, NewerVersionsAreRefusedByName) {
  expect_import_error(
      ml_model(6, {ml_node("Binarizer", {"x"}, {"y"})}, floats({2, 3})), StatusCode::kUnsupported,
      "operator 'Binarizer' (domain 'ai.onnx.ml', opset 6) at node 'n', known up to opset 5");
  must_import(ml_model(6, {node("Neg", {"x"}, {"y"})}, floats({2, 3})));  // imported, not used
  expect_import_error(
      ml_model(4, {ml_node("TreeEnsemble", {"x"}, {"y"})}, floats({2, 3})),
      StatusCode::kUnsupported,
      "operator 'TreeEnsemble' (domain 'ai.onnx.ml', opset 4) at node 'n', known in "
      "newer opsets only");
}

}  // namespace
}  // namespace eddy
