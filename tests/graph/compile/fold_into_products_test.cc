// long: each form that is folded, and each that stays.
// Claim: transpositions around a device's product, a constant bias and an addend of equal shape
// become part of it where nothing else reads them and nothing elementwise reads the sum, as do a
// Relu behind a convolution and a residual before that, and on the CPU swaps of the first two axes
// all around a convolution, in loops' bodies too, each node in one product only; in all other cases
// the graph stays as it is.
#include "graph/compile/fold_into_products.h"

#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "graph/ir/builder.h"
#include "ops/schema/standard.h"
#include "tests/graph/compile/placed_graph.h"

namespace eddy {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using Ints = std::vector<int64_t>;

class FoldIntoProductsTest : public ::testing::Test {
 protected:
  FoldIntoProductsTest() { EXPECT_TRUE(add_standard_schemas(ops_).is_ok()); }

  static ValueType floats(std::initializer_list<int64_t> dims) {
    return tensor_type(ElementType::kFloat, dims);
  }
  static Value op(GraphBuilder& b, const char* name, std::initializer_list<Value> inputs,
                  const char* device = "cuda") {
    return b.op(name, inputs, {}, {.name = name, .device = device});
  }
  static Value turn(GraphBuilder& b, Value x, Ints perm, const char* device = "cuda") {
    return b.op("Transpose", {x}, {{"perm", std::move(perm)}}, {.name = "turn", .device = device});
  }
  static Value row(GraphBuilder& b) { return b.tensor<float>({4}, {1, 2, 3, 4}); }

  FoldedProducts fold(GraphBuilder& b) {
    GraphOnDevice given = finish_on_device(b);
    const FoldIntoProductsOptions options = {
        "cuda", [](const Graph& from, NodeId id) {
          const Node& node = from.node(id);
          return node.kind == NodeKind::kExec &&
                 (node.op->name == "Relu" || node.op->name == "Add");
        }};
    Result<FoldedProducts> made =
        fold_into_products(std::move(given.graph), ops_, std::move(given.value_devices), options);
    EXPECT_TRUE(made.is_ok()) << made.status().to_string();
    expect_on_device(made->graph, made->value_devices);
    return std::move(*made);
  }
  static std::vector<std::string> names(const Graph& graph) {
    std::vector<std::string> names;
    for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
      const Node& node = graph.node(NodeId(n));
      names.push_back(node.kind == NodeKind::kExec ? node.op->name : "loop");
    }
    return names;
  }

  OpTable ops_;
};

Ints perm_of(const Node& node, const char* name) {
  const std::span<const int64_t> perm = node.attributes.get_ints(name);
  return Ints(perm.begin(), perm.end());
}

TEST_F(FoldIntoProductsTest, TranspositionsBecomeOrdersOfTheProduct) {
  GraphBuilder b(ops_);
  const Value q = b.input("q", floats({1, 5, 3, 4})), k = b.input("k", floats({1, 6, 3, 4}));
  const Value product = op(b, "MatMul", {turn(b, q, {0, 2, 1, 3}), turn(b, k, {0, 2, 3, 1})});
  b.output("y", turn(b, product, {0, 2, 1, 3}));
  const FoldedProducts made = fold(b);
  EXPECT_EQ(made.num_folded, 3u);
  ASSERT_THAT(names(made.graph), ElementsAre("PermutedMatMul"));
  const Node& node = made.graph.node(NodeId(0));
  EXPECT_EQ(node.name, "MatMul");
  EXPECT_EQ(node.device, "cuda");
  EXPECT_THAT(perm_of(node, "perm_a"), ElementsAre(0, 2, 1, 3));
  EXPECT_THAT(perm_of(node, "perm_b"), ElementsAre(0, 2, 3, 1));
  EXPECT_THAT(perm_of(node, "perm_y"), ElementsAre(0, 2, 1, 3));
  EXPECT_EQ(made.graph.value(node.outputs[0]).type, floats({1, 5, 3, 6}));
}

// Heads of thirds of one product, as exporters write them.
TEST_F(FoldIntoProductsTest, OperandsAreReadWhereTheyLieInALargerTensor) {
  for (const bool is_sliced : {false, true}) {
    SCOPED_TRACE(is_sliced);
    GraphBuilder b(ops_);
    const auto on = [&](const char* name, std::initializer_list<Value> inputs, int64_t axis) {
      return b.op(name, inputs, {{"axis", axis}}, {.name = name, .device = "cuda"});
    };
    // Five tokens, two heads of four elements.
    const Value packed = b.input("packed", floats({5, 1, 24}));
    const Value in_front =
        is_sliced ? Value()
                  : turn(b, op(b, "Reshape", {packed, b.int64s({5, 1, 3, 8})}), {2, 0, 1, 3});
    const auto part = [&](int64_t i) {
      const Value whole =
          is_sliced
              ? op(b, "Slice", {packed, b.int64s({8 * i}), b.int64s({8 * i + 8}), b.int64s({2})})
              : on("Gather", {in_front, b.scalar(i)}, 0);
      return turn(b, op(b, "Reshape", {whole, b.int64s({5, 2, 4})}), {1, 0, 2});
    };
    const Value half = b.scalar(0.5f);
    const Value scores = op(b, "MatMul",
                            {op(b, "Mul", {part(0), half}),
                             op(b, "Div", {turn(b, part(1), {0, 2, 1}), b.scalar(4.0f)})});
    b.output("y", op(b, "MatMul", {op(b, "Softmax", {scores}), part(2)}));
    const FoldedProducts made = fold(b);
    ASSERT_THAT(names(made.graph), ElementsAre("PermutedMatMul", "Softmax", "PermutedMatMul"));
    const Node &first = made.graph.node(NodeId(0)), &second = made.graph.node(NodeId(2));
    EXPECT_EQ(made.graph.value(first.inputs[0]).name, "packed");
    EXPECT_EQ(first.inputs[0], first.inputs[1]);
    EXPECT_THAT(perm_of(first, "place_a"), ElementsAre(0, 2, 4, 5, 24, 4, 1));
    EXPECT_THAT(perm_of(first, "place_b"), ElementsAre(8, 2, 4, 4, 1, 5, 24));
    EXPECT_EQ(first.attributes.get_float("alpha", 1), 0.125f);
    EXPECT_THAT(perm_of(second, "place_a"), IsEmpty());
    EXPECT_THAT(perm_of(second, "place_b"), ElementsAre(16, 2, 4, 5, 24, 4, 1));
    EXPECT_EQ(second.attributes.get_float("alpha", 1), 1.0f);
  }
}

TEST_F(FoldIntoProductsTest, WhatOthersReadStaysBesideAProductThatReadsItsSource) {
  GraphBuilder b(ops_);
  const Value x = b.input("x", floats({4, 2, 3})), w = b.input("w", floats({2, 3, 5}));
  const Value turned = turn(b, x, {1, 0, 2});
  const Value part = op(b, "Slice", {turned, b.int64s({1}), b.int64s({3}), b.int64s({1})});
  b.output("y", op(b, "MatMul", {part, w}));
  b.output("z", op(b, "Softmax", {turned}));
  const FoldedProducts made = fold(b);
  EXPECT_EQ(made.num_folded, 1u);
  ASSERT_THAT(names(made.graph), ElementsAre("Transpose", "PermutedMatMul", "Softmax"));
  const Node& product = made.graph.node(NodeId(1));
  EXPECT_EQ(made.graph.value(product.inputs[0]).name, "x");
  EXPECT_THAT(perm_of(product, "place_a"), ElementsAre(6, 2, 3, 2, 6, 3, 1));
}

TEST_F(FoldIntoProductsTest, ABiasAndAnAddendBehindItAreInputs) {
  GraphBuilder b(ops_);
  const Value x = b.input("x", floats({2, 5, 3})), w = b.input("w", floats({3, 4}));
  const Value before = b.input("before", floats({2, 5, 4}));
  const Value sum = op(b, "Add", {op(b, "MatMul", {x, w}), row(b)});
  b.output("y", op(b, "Softmax", {op(b, "Add", {before, sum})}));
  const FoldedProducts made = fold(b);
  EXPECT_EQ(made.num_folded, 2u);
  ASSERT_THAT(names(made.graph), ElementsAre("PermutedMatMul", "Softmax"));
  const Node& node = made.graph.node(NodeId(0));
  ASSERT_EQ(node.inputs.size(), 4u);
  EXPECT_EQ(made.graph.value(node.inputs[2]).origin, ValueOrigin::kConstant);
  EXPECT_EQ(made.graph.value(node.inputs[3]).name, "before");
  EXPECT_THAT(perm_of(node, "perm_a"), IsEmpty());
}

TEST_F(FoldIntoProductsTest, AnAddendWithoutABiasAndABiasWithoutAnAddend) {
  GraphBuilder b(ops_);
  const Value x = b.input("x", floats({5, 3})), w = b.input("w", floats({3, 4}));
  b.output("y", op(b, "Softmax", {op(b, "Add", {op(b, "MatMul", {x, w}), row(b)})}));
  b.output("z", op(b, "Add", {op(b, "MatMul", {x, w}), b.input("c", floats({5, 4}))}));
  const FoldedProducts made = fold(b);
  ASSERT_THAT(names(made.graph), ElementsAre("PermutedMatMul", "Softmax", "PermutedMatMul"));
  EXPECT_EQ(made.graph.node(NodeId(0)).inputs.size(), 3u);
  const Node& second = made.graph.node(NodeId(2));
  ASSERT_EQ(second.inputs.size(), 4u);
  EXPECT_TRUE(second.inputs[2].is_none());
}

TEST_F(FoldIntoProductsTest, ASumOfTwoProductsIsPartOfOne) {
  GraphBuilder b(ops_);
  const Value x = b.input("x", floats({5, 3})), w = b.input("w", floats({3, 4}));
  const Value v = b.input("v", floats({3, 4}));
  b.output("y", op(b, "Add", {op(b, "MatMul", {x, w}), op(b, "MatMul", {x, v})}));
  EXPECT_THAT(names(fold(b).graph), ElementsAre("MatMul", "PermutedMatMul"));
}

TEST_F(FoldIntoProductsTest, ATranspositionBetweenTwoProductsIsPartOfOne) {
  GraphBuilder b(ops_);
  const Value x = b.input("x", floats({1, 5, 3, 4})), w = b.input("w", floats({4, 4}));
  const Value first = op(b, "MatMul", {x, w});
  b.output("y", op(b, "MatMul", {turn(b, first, {0, 2, 1, 3}), w}));
  const FoldedProducts made = fold(b);
  EXPECT_EQ(made.num_folded, 1u);
  EXPECT_EQ(made.graph.num_nodes(), 2u);
}

TEST_F(FoldIntoProductsTest, InALoopsBodyToo) {
  GraphBuilder b(ops_);
  const Value from = b.input("x", floats({4, 4}));
  b.output("y", b.while_loop(
                    {.name = "loop", .initial = {from}},
                    [&](Value, ValueSpan v) {
                      return WhileTest{b.scalar(true), {v[0]}};
                    },
                    [&](Value, ValueSpan v) {
                      const Value product = op(b, "MatMul", {turn(b, v[0], {1, 0}), from});
                      return std::vector<Value>{op(b, "Add", {product, row(b)})};
                    })[0]);
  EXPECT_EQ(fold(b).num_folded, 2u);
}

class FoldIntoConvolutionsTest : public FoldIntoProductsTest {
 protected:
  static Value conv(GraphBuilder& b, Value x, bool has_bias = true) {
    const Value w = b.tensor<float>({2, 2, 1, 1}, {1, 2, 3, 4});
    std::vector<Value> inputs = {x, w};
    if (has_bias) inputs.push_back(b.tensor<float>({2}, {5, 6}));
    return b.op("Conv", inputs, {{"group", int64_t{1}}}, {.name = "conv", .device = "cuda"});
  }
  static Value image(GraphBuilder& b, const char* name = "x") {
    return b.input(name, floats({1, 2, 4, 4}));
  }
};

TEST_F(FoldIntoConvolutionsTest, AReluAndAResidualBeforeIt) {
  GraphBuilder b(ops_);
  const Value x = image(b);
  const Value first = op(b, "Relu", {conv(b, x)});
  b.output("y", op(b, "Relu", {op(b, "Add", {conv(b, first), x})}));
  const FoldedProducts made = fold(b);
  EXPECT_EQ(made.num_folded, 3u);
  ASSERT_THAT(names(made.graph), ElementsAre("ConvRelu", "ConvRelu"));
  EXPECT_EQ(made.graph.node(NodeId(0)).inputs.size(), 3u);
  const Node& second = made.graph.node(NodeId(1));
  ASSERT_EQ(second.inputs.size(), 4u);
  EXPECT_EQ(made.graph.value(second.inputs[3]).name, "x");
  EXPECT_EQ(second.attributes.get_int("group", 0), 1);
  EXPECT_EQ(second.name, "conv_2");
}

TEST_F(FoldIntoConvolutionsTest, OfTwoConvolutionsThatAreAddedOneTakesTheSum) {
  GraphBuilder b(ops_);
  const Value x = image(b), z = image(b, "z");
  b.output("y", op(b, "Relu", {op(b, "Add", {conv(b, x), conv(b, z)})}));
  EXPECT_THAT(names(fold(b).graph), ElementsAre("Conv", "ConvRelu"));
}

TEST_F(FoldIntoConvolutionsTest, OthersStayAsTheyAre) {
  using Build = std::function<Value(GraphBuilder&, Value x)>;
  const std::pair<const char*, Build> cases[] = {
      {"no Relu", [](GraphBuilder& b, Value x) { return op(b, "Sigmoid", {conv(b, x)}); }},
      {"no bias", [](GraphBuilder& b, Value x) { return op(b, "Relu", {conv(b, x, false)}); }},
      {"a Relu on the CPU",
       [](GraphBuilder& b, Value x) { return op(b, "Relu", {conv(b, x)}, ""); }},
      {"a residual without a Relu",
       [](GraphBuilder& b, Value x) {
         return op(b, "Add", {conv(b, x), x});
       }},
      {"a sum that is larger",
       [](GraphBuilder& b, Value x) {
         const Value many = b.input("many", floats({3, 2, 4, 4}));
         return op(b, "Relu", {op(b, "Add", {conv(b, x), many})});
       }},
      {"a result that others read",
       [](GraphBuilder& b, Value x) {
         const Value made = conv(b, x);
         b.output("z", made);
         return op(b, "Relu", {made});
       }},
  };
  for (const auto& [what, build] : cases) {
    SCOPED_TRACE(what);
    GraphBuilder b(ops_);
    b.output("y", build(b, image(b)));
    EXPECT_EQ(fold(b).num_folded, 0u);
  }
}

// long: a list of cases
TEST_F(FoldIntoProductsTest, OthersStayAsTheyAre) {
  using Build = std::function<void(GraphBuilder&, Value x, Value w)>;
  const auto product = [](GraphBuilder& b, Value x, Value w) { return op(b, "MatMul", {x, w}); };
  const std::pair<const char*, Build> cases[] = {
      {"nothing around it",
       [&](GraphBuilder& b, Value x, Value w) { b.output("y", product(b, x, w)); }},
      {"a sum that Relu reads",
       [&](GraphBuilder& b, Value x, Value w) {
         b.output("y", op(b, "Relu", {op(b, "Add", {product(b, x, w), row(b)})}));
       }},
      {"a product that is a result, too",
       [&](GraphBuilder& b, Value x, Value w) {
         const Value made = product(b, x, w);
         b.output("z", made);
         b.output("y", op(b, "Add", {made, row(b)}));
       }},
      {"a bias that is computed",
       [&](GraphBuilder& b, Value x, Value w) {
         b.output("y", op(b, "Add", {product(b, x, w), b.input("bias", floats({4}))}));
       }},
      {"an addend that is broadcast",
       [&](GraphBuilder& b, Value x, Value w) {
         b.output("y", op(b, "Add", {product(b, x, w), b.input("c", floats({5, 1}))}));
       }},
      {"a sum that is larger",
       [&](GraphBuilder& b, Value x, Value w) {
         b.output("y", op(b, "Add", {product(b, x, w), b.input("c", floats({2, 5, 4}))}));
       }},
      {"a product added to itself",
       [&](GraphBuilder& b, Value x, Value w) {
         const Value made = product(b, x, w);
         b.output("y", op(b, "Add", {made, made}));
       }},
      {"a product on the CPU",
       [&](GraphBuilder& b, Value x, Value w) {
         b.output("y", op(b, "Add", {op(b, "MatMul", {x, w}, ""), row(b)}));
       }},
      {"a sum on the CPU",
       [&](GraphBuilder& b, Value x, Value w) {
         b.output("y", op(b, "Add", {product(b, x, w), row(b)}, ""));
       }},
      {"a transposed value that others read",
       [&](GraphBuilder& b, Value, Value w) {
         const Value turned = turn(b, w, {1, 0});
         b.output("z", turned);
         b.output("y", op(b, "MatMul", {turned, w}));
       }},
      {"columns that lie apart",
       [&](GraphBuilder& b, Value x, Value w) {
         b.output("y", turn(b, product(b, x, w), {1, 0}));
       }},
      {"matrices without neighbours",
       [&](GraphBuilder& b, Value, Value) {
         const Value from = b.input("from", floats({3, 5, 2}));
         const Value other = b.input("other", floats({2, 5, 4}));
         b.output("y", op(b, "MatMul", {turn(b, from, {2, 0, 1}), other}));
       }},
      {"two axes of matrices",
       [&](GraphBuilder& b, Value, Value) {
         const Value q = b.input("q", floats({2, 5, 3, 4}));
         const Value k = b.input("k", floats({2, 3, 4, 5}));
         b.output("y", op(b, "MatMul", {turn(b, q, {0, 2, 1, 3}), k}));
       }},
      {"unknown sizes",
       [&](GraphBuilder& b, Value, Value w) {
         const Value q = b.input("q", floats({1, kUnknownDim, 3, 3}));
         b.output("y", op(b, "MatMul", {turn(b, q, {0, 2, 1, 3}), w}));
       }},
      {"integers",
       [&](GraphBuilder& b, Value, Value) {
         const Value i = b.input("i", tensor_type(ElementType::kInt32, {4, 4}));
         b.output("y", op(b, "MatMul", {turn(b, i, {1, 0}), i}));
       }},
  };
  for (const auto& [what, build] : cases) {
    SCOPED_TRACE(what);
    GraphBuilder b(ops_);
    const Value x = b.input("x", floats({5, 3})), w = b.input("w", floats({3, 4}));
    build(b, x, w);
    EXPECT_EQ(fold(b).num_folded, 0u);
  }
}

// On the CPU: the transpositions alone, of sizes that nobody knows, too.
class FoldOnCpuTest : public FoldIntoProductsTest {
 protected:
  static Value product(GraphBuilder& b, Value x, Value w) { return op(b, "MatMul", {x, w}, ""); }
  static Value turned(GraphBuilder& b, Value x, Ints perm) {
    return turn(b, x, std::move(perm), "");
  }

  FoldedProducts fold(GraphBuilder& b) {
    Result<Graph> graph = b.finish();
    EXPECT_TRUE(graph.is_ok()) << graph.status().to_string();
    std::vector<uint32_t> devices(graph->num_values(), 0);
    auto made = fold_into_products(std::move(*graph), ops_, std::move(devices),
                                   {.device = "", .panel_columns = 8});
    EXPECT_TRUE(made.is_ok()) << made.status().to_string();
    return std::move(*made);
  }
};

TEST_F(FoldOnCpuTest, AReluBehindAConvolutionThatIsAProductForEachGroup) {
  struct Case {
    int64_t group, kernel;
    const char* sum;
    std::vector<std::string> expected;
  };
  const Case cases[] = {{2, 1, "Add", {"ConvRelu"}},
                        {2, 1, "Sum", {"ConvRelu"}},
                        {1, 1, "Add", {"Conv", "Add", "Relu"}},
                        {2, 3, "Add", {"Conv", "Add", "Relu"}},
                        {4, 1, "Add", {"Conv", "Add", "Relu"}}};
  for (const Case& c : cases) {
    SCOPED_TRACE(std::to_string(c.group) + " groups, windows of " + std::to_string(c.kernel));
    GraphBuilder b(ops_);
    const Dims w = {4, 4 / c.group, c.kernel, c.kernel};
    const std::vector<float> ones(static_cast<size_t>(*w.count()), 1.0f);
    const Value x = b.input("x", floats({1, 4, 5, 5}));
    const int64_t pad = c.kernel / 2;
    const Value made = b.op(
        "Conv",
        {x, b.tensor<float>(w, std::span<const float>(ones)), b.tensor<float>({4}, {1, 2, 3, 4})},
        {{"group", c.group}, {"pads", std::vector<int64_t>(4, pad)}});
    b.output("y", b.op("Relu", {b.op(c.sum, {made, x})}));
    EXPECT_EQ(names(fold(b).graph), c.expected);
  }
}

TEST_F(FoldOnCpuTest, HeadsOfAnyBatchAndLengthAreReadWhereTheyLie) {
  GraphBuilder b(ops_);
  const ValueType heads = floats({kUnknownDim, kUnknownDim, 3, 4});
  const Value q = b.input("q", heads), k = b.input("k", heads);
  const Value made = product(b, turned(b, q, {0, 2, 1, 3}), turned(b, k, {0, 2, 3, 1}));
  b.output("y", turned(b, made, {0, 2, 1, 3}));
  const FoldedProducts folded = fold(b);
  EXPECT_EQ(folded.num_folded, 3u);
  ASSERT_THAT(names(folded.graph), ElementsAre("PermutedMatMul"));
  EXPECT_THAT(perm_of(folded.graph.node(NodeId(0)), "perm_b"), ElementsAre(0, 2, 3, 1));
}

// Gates of a cell; the last part may end within a panel.
TEST_F(FoldOnCpuTest, ASplitOfColumnsIntoPanelsBecomesResultsOfTheProduct) {
  for (const bool has_row : {false, true}) {
    SCOPED_TRACE(has_row);
    GraphBuilder b(ops_);
    const std::vector<float> ones(4 * 29, 1.0f), row(29, 2.0f);
    const Value x = b.input("x", floats({kUnknownDim, 4}));
    Value made = product(b, x, b.tensor<float>({4, 29}, std::span<const float>(ones)));
    if (has_row) {
      made = b.op("Add", {made, b.tensor<float>({29}, std::span<const float>(row))});
    }
    const Value inputs[] = {made, b.tensor<int64_t>({3}, {8, 16, 5})};
    const auto parts = b.ops("Split", inputs, {{"axis", int64_t{-1}}},
                             {.name = "split", .num_outputs = 3, .output_names = {"p", "q", "r"}});
    for (size_t i = 0; i < 3; ++i) b.output("y" + std::to_string(i), parts[i]);
    const Graph graph = fold(b).graph;
    ASSERT_THAT(names(graph), ElementsAre("SplitMatMul"));
    const Node& node = graph.node(NodeId(0));
    EXPECT_THAT(perm_of(node, "split"), ElementsAre(8, 16, 5));
    EXPECT_EQ(node.inputs.size(), has_row ? 3u : 2u);
    EXPECT_EQ(graph.value(node.outputs[1]).name, "q");
    EXPECT_EQ(graph.value(node.outputs[2]).type, floats({kUnknownDim, 5}));
  }
}

TEST_F(FoldOnCpuTest, OtherSplitsStay) {
  struct Case {
    const char* what;
    int64_t axis;
    std::array<int64_t, 2> sizes;
    bool is_read, is_constant;
  };
  const Case cases[] = {{"parts that begin within a panel", 1, {12, 12}, false, true},
                        {"rows", 0, {2, 3}, false, true},
                        {"a product that another reads", 1, {8, 16}, true, true},
                        {"a matrix that may change", 1, {8, 16}, false, false}};
  for (const Case& c : cases) {
    SCOPED_TRACE(c.what);
    GraphBuilder b(ops_);
    const std::vector<float> ones(4 * 24, 1.0f);
    const Value w = c.is_constant ? b.tensor<float>({4, 24}, std::span<const float>(ones))
                                  : b.input("w", floats({4, 24}));
    const Value made = product(b, b.input("x", floats({5, 4})), w);
    const Value inputs[] = {made, b.tensor<int64_t>({2}, {c.sizes[0], c.sizes[1]})};
    const auto parts = b.ops("Split", inputs, {{"axis", c.axis}}, {.num_outputs = 2});
    b.output("y", parts[0]);
    b.output("z", parts[1]);
    if (c.is_read) b.output("all", made);
    EXPECT_EQ(fold(b).num_folded, 0u);
  }
}

// Attention as exporters write it: queries and keys are scaled behind their transpositions.
TEST_F(FoldOnCpuTest, WhatScalesATransposedOperandByOneNumberComesFirst) {
  for (const bool is_number_first : {false, true}) {
    SCOPED_TRACE(is_number_first);
    GraphBuilder b(ops_);
    const ValueType heads = floats({kUnknownDim, kUnknownDim, 3, 4});
    const Value q = b.input("q", heads), k = b.input("k", heads);
    const Value number = b.input("number", floats({1}));
    const auto scaled = [&](Value x, const char* name) {
      if (is_number_first) return b.op("Mul", {number, x}, {}, {.name = name});
      return b.op("Mul", {x, number}, {}, {.name = name});
    };
    const Value made = product(b, scaled(turned(b, q, {0, 2, 1, 3}), "by_q"),
                               scaled(turned(b, k, {0, 2, 3, 1}), "by_k"));
    b.output("y", made);
    const Graph graph = fold(b).graph;
    ASSERT_THAT(names(graph), ElementsAre("Mul", "Mul", "PermutedMatMul"));
    EXPECT_EQ(graph.node(NodeId(0)).name, "by_q");
    EXPECT_EQ(graph.value(graph.node(NodeId(1)).inputs[0]).name, "k");
    EXPECT_EQ(graph.value(graph.node(NodeId(1)).inputs[1]).name, "number");
    EXPECT_THAT(perm_of(graph.node(NodeId(2)), "perm_a"), ElementsAre(0, 2, 1, 3));
    EXPECT_THAT(perm_of(graph.node(NodeId(2)), "perm_b"), ElementsAre(0, 2, 3, 1));
  }
}

// Swaps all around a convolution, as the adjoint of weights has them.
class FoldSwapsTest : public FoldOnCpuTest {
 protected:
  static Value swap(GraphBuilder& b, Value x) { return turned(b, x, {1, 0, 2, 3}); }
  static Value conv(GraphBuilder& b, Value x, Value w, Attributes attributes = {}) {
    return b.op("Conv", {x, w}, std::move(attributes), {.name = "conv"});
  }
  static Value images(GraphBuilder& b, ElementType element = ElementType::kFloat) {
    return b.input("x", tensor_type(element, {8, 3, 10, 9}));
  }
  static Value windows(GraphBuilder& b, ElementType element = ElementType::kFloat) {
    return b.input("w", tensor_type(element, {8, 5, 8, 8}));
  }
};

TEST_F(FoldSwapsTest, AllAroundAConvolution) {
  GraphBuilder b(ops_);
  const Attributes padded = {{"pads", Ints{1, 1, 1, 1}}, {"dilations", Ints{1, 1}}};
  b.output("y", swap(b, conv(b, swap(b, images(b)), swap(b, windows(b)), padded)));
  const FoldedProducts made = fold(b);
  ASSERT_THAT(names(made.graph), ElementsAre("SwappedConv"));
  const Node& node = made.graph.node(NodeId(0));
  EXPECT_EQ(node.name, "conv");
  EXPECT_THAT(perm_of(node, "pads"), ElementsAre(1, 1, 1, 1));
  EXPECT_EQ(made.graph.value(node.inputs[0]).name, "x");
  EXPECT_EQ(made.graph.value(node.outputs[0]).type, floats({5, 3, 5, 4}));
}

// The images' swap stands before the loop, and another reads it.
TEST_F(FoldSwapsTest, WhatOthersReadStaysAndWhatNobodyReadsGoes) {
  for (const bool is_read : {false, true}) {
    SCOPED_TRACE(is_read);
    GraphBuilder b(ops_);
    const Value x = swap(b, images(b)), w = windows(b);
    const auto loop = b.while_loop(
        {.name = "loop", .initial = {w}, .trip_limit = b.scalar(int64_t{2})},
        [&](Value, ValueSpan c) {
          return WhileTest{b.scalar(true), {c[0]}};
        },
        [&](Value, ValueSpan f) {
          const Value made = swap(b, conv(b, x, swap(b, f[0])));
          const Value sum = b.op("ReduceSum", {made}, {{"keepdims", int64_t{0}}});
          return std::vector<Value>{b.op("Add", {f[0], sum})};
        });
    b.output("y", loop[0]);
    if (is_read) b.output("z", b.op("Relu", {x}));
    const std::vector<std::string> made = names(fold(b).graph);
    EXPECT_EQ(std::ranges::count(made, "SwappedConv"), 1);
    EXPECT_EQ(std::ranges::count(made, "Transpose"), is_read ? 1 : 0);
  }
}

TEST_F(FoldSwapsTest, OthersStayAsTheyAre) {
  using Build = std::function<Value(GraphBuilder&)>;
  const std::pair<const char*, Build> cases[] = {
      {"images that are not swapped",
       [](GraphBuilder& b) {
         const Value x = b.input("x", floats({3, 8, 10, 9}));
         return swap(b, conv(b, x, swap(b, windows(b))));
       }},
      {"a result that is not swapped",
       [](GraphBuilder& b) { return conv(b, swap(b, images(b)), swap(b, windows(b))); }},
      {"a result that is read twice",
       [](GraphBuilder& b) {
         const Value made = conv(b, swap(b, images(b)), swap(b, windows(b)));
         b.output("z", made);
         return swap(b, made);
       }},
      {"another order",
       [](GraphBuilder& b) {
         const Value made = conv(b, swap(b, images(b)), swap(b, windows(b)));
         return turned(b, made, {1, 0, 3, 2});
       }},
      {"a bias",
       [](GraphBuilder& b) {
         const Value bias = b.tensor<float>({5}, {1, 2, 3, 4, 5});
         return swap(b, b.op("Conv", {swap(b, images(b)), swap(b, windows(b)), bias}));
       }},
      {"groups",
       [](GraphBuilder& b) {
         const Value w = b.input("w", floats({4, 6, 8, 8}));
         return swap(b, conv(b, swap(b, images(b)), swap(b, w), {{"group", int64_t{2}}}));
       }},
      {"doubles",
       [](GraphBuilder& b) {
         const ElementType d = ElementType::kDouble;
         return swap(b, conv(b, swap(b, images(b, d)), swap(b, windows(b, d))));
       }},
  };
  for (const auto& [what, build] : cases) {
    SCOPED_TRACE(what);
    GraphBuilder b(ops_);
    b.output("y", build(b));
    EXPECT_EQ(fold(b).num_folded, 0u);
  }
}

TEST_F(FoldOnCpuTest, OthersStayAsTheyAre) {
  using Build = std::function<void(GraphBuilder&)>;
  const auto input = [](GraphBuilder& b, const char* name, Dims dims) {
    return b.input(name, ValueType(TensorType(ElementType::kFloat, dims)));
  };
  const std::pair<const char*, Build> cases[] = {
      {"what is scaled by a row of numbers",
       [&](GraphBuilder& b) {
         const Value x = turned(b, input(b, "x", {5, 3}), {1, 0});
         const Value scaled = b.op("Mul", {x, b.tensor<float>({5}, {1, 2, 3, 4, 5})});
         b.output("y", product(b, scaled, input(b, "k", {5, 2})));
       }},
      {"a scaled operand that another reads",
       [&](GraphBuilder& b) {
         const Value x = turned(b, input(b, "x", {5, 3}), {1, 0});
         const Value scaled = b.op("Mul", {x, b.tensor<float>({1}, {2})});
         b.output("y", product(b, scaled, input(b, "k", {5, 2})));
         b.output("z", scaled);
       }},
      {"a scaled operand whose transposition another reads",
       [&](GraphBuilder& b) {
         const Value x = turned(b, input(b, "x", {5, 3}), {1, 0});
         const Value scaled = b.op("Mul", {x, b.tensor<float>({1}, {2})});
         b.output("y", product(b, scaled, input(b, "k", {5, 2})));
         b.output("z", x);
       }},
      {"a constant, which is packed",
       [&](GraphBuilder& b) {
         const Value w = b.tensor<float>({3, 2}, {1, 2, 3, 4, 5, 6});
         b.output("y", product(b, turned(b, input(b, "x", {3, 5}), {1, 0}), w));
       }},
      {"many matrices by one, which are one product",
       [&](GraphBuilder& b) {
         const Value x = turned(b, input(b, "x", {4, 2, 3}), {1, 0, 2});
         b.output("y", product(b, x, input(b, "w", {3, 6})));
       }},
      {"nothing next to another",
       [&](GraphBuilder& b) {
         const Value x = turned(b, input(b, "x", {4, 2, 3}), {2, 0, 1});
         b.output("y", product(b, x, input(b, "w", {3, 2, 6})));
       }},
      {"doubles",
       [&](GraphBuilder& b) {
         const Value x = b.input("x", tensor_type(ElementType::kDouble, {3, 3}));
         b.output("y", product(b, turned(b, x, {1, 0}), x));
       }},
      {"a sum behind it",
       [&](GraphBuilder& b) {
         const Value x = input(b, "x", {4, 4}), w = input(b, "w", {4, 4});
         b.output("y", op(b, "Softmax", {op(b, "Add", {product(b, x, w), row(b)}, "")}, ""));
       }},
      {"a convolution",
       [&](GraphBuilder& b) {
         const Value w = b.tensor<float>({2, 2, 1, 1}, {1, 2, 3, 4});
         const Value bias = b.tensor<float>({2}, {5, 6});
         b.output("y",
                  op(b, "Relu", {op(b, "Conv", {input(b, "x", {1, 2, 4, 4}), w, bias}, "")}, ""));
       }},
  };
  for (const auto& [what, build] : cases) {
    SCOPED_TRACE(what);
    GraphBuilder b(ops_);
    build(b);
    EXPECT_EQ(fold(b).num_folded, 0u);
  }
}

}  // namespace
}  // namespace eddy
