// Claim: a product of a Concat along the depth that nothing else reads becomes a sum of products,
// what is there first first, with the rows of the matrix that belong to each part; in all other
// cases the graph stays as it is.
#include "graph/compile/split_concats.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/ir/builder.h"
#include "ops/schema/standard.h"
#include "tests/graph/compile/placed_graph.h"

namespace eddy {
namespace {

using ::testing::ElementsAre;

ValueType floats(const Dims& dims) { return tensor_type(ElementType::kFloat, dims); }

class SplitConcatsTest : public ::testing::Test {
 protected:
  SplitConcatsTest() { EXPECT_TRUE(add_standard_schemas(ops_).is_ok()); }

  static Value op(GraphBuilder& b, const char* name, const std::vector<Value>& inputs,
                  const char* device = "cuda") {
    return b.ops(name, inputs, {}, {.name = name, .device = device, .output_names = {}})[0];
  }
  static Value concat(GraphBuilder& b, const std::vector<Value>& inputs, int64_t axis = -1) {
    return b.ops("Concat", inputs, {{"axis", axis}}, {.device = "cuda", .output_names = {}})[0];
  }
  // Row r of five is {10 r, 10 r + 1}.
  static Value matrix(GraphBuilder& b) {
    return b.tensor<float>({5, 2}, {0, 1, 10, 11, 20, 21, 30, 31, 40, 41});
  }
  SplitConcats split(GraphBuilder& b) {
    GraphOnDevice given = finish_on_device(b);
    Result<SplitConcats> made =
        split_concats(std::move(given.graph), ops_, std::move(given.value_devices), "cuda");
    EXPECT_TRUE(made.is_ok()) << made.status().to_string();
    expect_on_device(made->graph, made->value_devices);
    return std::move(*made);
  }
  size_t num_split(GraphBuilder& b) { return split(b).num_split; }
  static std::vector<float> rows(const Graph& graph, const Node& product) {
    const TensorView view = graph.constant(graph.value(product.inputs[1]).constant).view();
    return {view.as<float>(), view.as<float>() + view.count()};
  }

  OpTable ops_;
};

TEST_F(SplitConcatsTest, WhatIsThereFirstIsMultipliedFirst) {
  GraphBuilder b(ops_);
  const Value x = b.input("x", floats({3, 2})), h = b.input("h", floats({3, 3}));
  const Value late = op(b, "Tanh", {x});
  b.output("y", op(b, "MatMul", {concat(b, {late, h}), matrix(b)}));
  const SplitConcats made = split(b);
  EXPECT_EQ(made.num_split, 1u);
  ASSERT_EQ(made.graph.num_nodes(), 3u);
  EXPECT_EQ(made.graph.node(NodeId(0)).op->name, "Tanh");
  const Node& first = made.graph.node(NodeId(1));
  const Node& second = made.graph.node(NodeId(2));
  EXPECT_EQ(first.op->name, "PermutedMatMul");
  EXPECT_EQ(made.graph.value(first.inputs[0]).name, "h");
  EXPECT_THAT(rows(made.graph, first), ElementsAre(20, 21, 30, 31, 40, 41));
  EXPECT_EQ(second.inputs[0], made.graph.node(NodeId(0)).outputs[0]);
  EXPECT_THAT(rows(made.graph, second), ElementsAre(0, 1, 10, 11));
  ASSERT_EQ(second.inputs.size(), 4u);
  EXPECT_TRUE(second.inputs[2].is_none());
  EXPECT_EQ(second.inputs[3], first.outputs[0]) << "the addend";
}

TEST_F(SplitConcatsTest, ThreePartsAreAChainAndARowIsAddedOnce) {
  GraphBuilder b(ops_);
  const Value x = b.input("x", floats({2, 3, 2})), y = b.input("y", floats({2, 3, 2}));
  const Value z = b.input("z", floats({2, 3, 1}));
  const Value row = b.tensor<float>({2}, {7, 8});
  const Value inputs[] = {concat(b, {x, y, z}, 2), matrix(b), row};
  b.output("out", b.ops("PermutedMatMul", inputs, {},
                        {.domain = "eddy", .device = "cuda", .output_names = {}})[0]);
  const SplitConcats made = split(b);
  ASSERT_EQ(made.graph.num_nodes(), 3u);
  const Node &first = made.graph.node(NodeId(0)), &second = made.graph.node(NodeId(1)),
             &third = made.graph.node(NodeId(2));
  EXPECT_EQ(first.inputs.size(), 2u);
  EXPECT_TRUE(second.inputs[2].is_none());
  EXPECT_EQ(second.inputs[3], first.outputs[0]);
  EXPECT_FALSE(third.inputs[2].is_none());
  EXPECT_EQ(third.inputs[3], second.outputs[0]);
  EXPECT_THAT(rows(made.graph, third), ElementsAre(40, 41));
}

TEST_F(SplitConcatsTest, OthersStayAsTheyAre) {
  using Make = std::function<void(GraphBuilder&, Value x, Value h)>;
  const std::pair<const char*, Make> cases[] = {
      {"another reader of the Concat",
       [](GraphBuilder& b, Value x, Value h) {
         const Value both = concat(b, {x, h});
         b.output("y", op(b, "MatMul", {both, matrix(b)}));
         b.output("z", op(b, "Tanh", {both}));
       }},
      {"a matrix that is no constant",
       [](GraphBuilder& b, Value x, Value h) {
         const Value given = b.input("given", floats({5, 2}));
         b.output("y", op(b, "MatMul", {concat(b, {x, h}), given}));
       }},
      {"the other operand",
       [](GraphBuilder& b, Value, Value) {
         const Value w = b.input("w", floats({2, 3}));
         b.output("y", op(b, "MatMul", {matrix(b), concat(b, {w, w})}));
       }},
      {"another axis",
       [](GraphBuilder& b, Value, Value) {
         const Value w = b.input("w", floats({2, 5}));
         b.output("y", op(b, "MatMul", {concat(b, {w, w}, 0), matrix(b)}));
       }},
      {"the host's",
       [](GraphBuilder& b, Value x, Value h) {
         b.output("y", op(b, "MatMul", {concat(b, {x, h}), matrix(b)}, "cpu"));
       }},
      {"unknown sizes",
       [](GraphBuilder& b, Value, Value) {
         const Value open = b.input("open", floats({b.symbol("n"), 2}));
         const Value more = b.input("more", floats({b.symbol("n"), 3}));
         b.output("y", op(b, "MatMul", {concat(b, {open, more}), matrix(b)}));
       }},
      {"integers, of which no such product is",
       [](GraphBuilder& b, Value, Value) {
         const Value whole = b.input("whole", tensor_type(ElementType::kInt32, {3, 2}));
         const Value w = b.tensor<int32_t>({4, 2}, {1, 2, 3, 4, 5, 6, 7, 8});
         b.output("y", op(b, "MatMul", {concat(b, {whole, whole}), w}));
       }},
      {"too large",
       [](GraphBuilder& b, Value, Value) {
         const Value large = b.input("large", floats({SplitConcats::kMostElements / 2 + 1, 2}));
         const Value more = b.input("more", floats({SplitConcats::kMostElements / 2 + 1, 3}));
         b.output("y", op(b, "MatMul", {concat(b, {large, more}), matrix(b)}));
       }},
  };
  for (const auto& [what, make] : cases) {
    SCOPED_TRACE(what);
    GraphBuilder b(ops_);
    make(b, b.input("x", floats({3, 2})), b.input("h", floats({3, 3})));
    EXPECT_EQ(num_split(b), 0u);
  }
}

}  // namespace
}  // namespace eddy
