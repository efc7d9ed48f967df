// Claim: a Split of a product by a constant, through Adds, of constant rows and of further
// products, becomes a product for each part with the same elements; where something else reads what
// stands between, parts or rows are few, sizes or matrices are not known, or the axis is another,
// the graph stays as it is.
#include "graph/compile/part_products.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "graph/ir/builder.h"
#include "ops/schema/standard.h"

namespace eddy {
namespace {

using ::testing::ElementsAre;
using ::testing::UnorderedElementsAre;
using Names = std::vector<std::string>;

class PartProductsTest : public ::testing::Test {
 protected:
  PartProductsTest() : b_(ops_) {
    EXPECT_TRUE(add_standard_schemas(ops_).is_ok());
    x_ = b_.input("x", floats({16, 3}));
  }

  static ValueType floats(const Dims& dims) { return tensor_type(ElementType::kFloat, dims); }

  // Its elements count up from `first`.
  Value counted(const Dims& dims, float first = 0) {
    std::vector<float> elements(static_cast<size_t>(*dims.count()));
    for (size_t i = 0; i < elements.size(); ++i) elements[i] = first + static_cast<float>(i);
    return b_.tensor<float>(dims, std::span<const float>(elements));
  }
  Value product(Value x) { return b_.op("MatMul", {x, counted({3, 192})}); }
  std::vector<Value> split(Value whole, const std::vector<int64_t>& sizes, int64_t axis = -1) {
    const Value lengths = b_.vector(std::span<const int64_t>(sizes));
    const Value inputs[] = {whole, lengths};
    return b_.ops("Split", inputs, {{"axis", axis}},
                  {.num_outputs = static_cast<int>(sizes.size())});
  }
  void output(const std::vector<Value>& values) {
    for (const Value value : values) b_.output("y" + std::to_string(num_outputs_++), value);
  }

  Graph part(size_t num_expected) {
    Result<Graph> graph = b_.finish();
    EXPECT_TRUE(graph.is_ok()) << graph.status().to_string();
    Result<PartedGraph> made = part_products(std::move(*graph), ops_);
    EXPECT_TRUE(made.is_ok()) << made.status().to_string();
    EXPECT_EQ(made->num_splits, num_expected);
    return std::move(made->graph);
  }
  static Names names(const Graph& graph) {
    Names names;
    for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
      const Node& node = graph.node(NodeId(n));
      names.push_back(node.kind == NodeKind::kExec ? node.op->name : "loop");
    }
    return names;
  }
  void expect_left() { part(0); }
  static std::vector<float> elements(const Graph& graph, ValueId constant) {
    const TensorView view = graph.constant(graph.value(constant).constant).view();
    return {view.as<float>(), view.as<float>() + view.count()};
  }
  static const Node& maker(const Graph& graph, ValueId value) {
    return graph.node(graph.value(value).producer);
  }
  // What `rows` x `columns` elements that count up have at columns begin to end.
  static std::vector<float> columns(int rows, int columns, int begin, int end, float first = 0) {
    std::vector<float> part;
    for (int r = 0; r < rows; ++r) {
      for (int c = begin; c < end; ++c) part.push_back(first + static_cast<float>(r * columns + c));
    }
    return part;
  }

  OpTable ops_;
  GraphBuilder b_;
  Value x_;
  int num_outputs_ = 0;
};

TEST_F(PartProductsTest, EachPartHasItsColumns) {
  const Value sum = b_.op("Add", {product(x_), counted({192}, 1000)});
  output(split(sum, {64, 128}));
  const Graph graph = part(1);
  EXPECT_THAT(names(graph), UnorderedElementsAre("MatMul", "MatMul", "Add", "Add"));
  int begin = 0;
  for (const int size : {64, 128}) {
    const ValueId part = graph.outputs()[begin == 0 ? 0 : 1];
    EXPECT_EQ(graph.value(part).type, floats({16, size}));
    const Node& add = maker(graph, part);
    EXPECT_EQ(elements(graph, add.inputs[1]), columns(1, 192, begin, begin + size, 1000));
    const Node& matmul = maker(graph, add.inputs[0]);
    EXPECT_EQ(graph.value(matmul.inputs[0]).name, "x");
    EXPECT_EQ(elements(graph, matmul.inputs[1]), columns(3, 192, begin, begin + size));
    begin += size;
  }
}

// As PyTorch's exporter writes a cell.
TEST_F(PartProductsTest, GemmsThatReadTheirMatrixTurnedOverHaveItsRows) {
  const Value h = b_.input("h", floats({16, 2}));
  const Attributes by_rows = {{"transB", int64_t{1}}, {"alpha", 2.0f}};
  const Value a = b_.op("Gemm", {x_, counted({192, 3}), counted({1, 192}, 500)}, by_rows);
  const Value b = b_.op("Gemm", {h, counted({192, 2})}, by_rows);
  output(split(b_.op("Add", {a, b}), {64, 64, 64}, 1));
  const Graph graph = part(1);
  EXPECT_THAT(names(graph), UnorderedElementsAre("Gemm", "Gemm", "Gemm", "Gemm", "Gemm", "Gemm",
                                                 "Add", "Add", "Add"));
  const Node& add = maker(graph, graph.outputs()[1]);
  const Node& gemm = maker(graph, add.inputs[0]);
  EXPECT_EQ(elements(graph, gemm.inputs[1]), columns(64, 3, 0, 3, 64 * 3));
  EXPECT_EQ(elements(graph, gemm.inputs[2]), columns(1, 192, 64, 128, 500));
  EXPECT_EQ(gemm.attributes.get_float("alpha", 1), 2.0f);
  EXPECT_EQ(gemm.attributes.get_int("transB", 0), 1);
  EXPECT_EQ(elements(graph, maker(graph, add.inputs[1]).inputs[1]), columns(64, 2, 0, 2, 64 * 2));
}

TEST_F(PartProductsTest, SplitsInLoopsGoToo) {
  const Value h = b_.while_loop(
      {.initial = {x_}, .trip_limit = b_.scalar(int64_t{3})},
      [&](Value, ValueSpan carried) {
        return WhileTest{b_.scalar(true), {carried[0]}};
      },
      [&](Value, ValueSpan received) {
        const auto parts = split(product(received[0]), {96, 96});
        const Value sum = b_.op("Add", {parts[0], parts[1]});
        return std::vector<Value>{b_.op("MatMul", {sum, counted({96, 3})})};
      })[0];
  output({h});
  EXPECT_THAT(names(part(1)), UnorderedElementsAre("loop", "MatMul", "MatMul", "Add", "MatMul"));
}

TEST_F(PartProductsTest, WhatSomethingElseReadsStays) {
  const Value whole = product(x_);
  output(split(whole, {96, 96}));
  output({whole});
  expect_left();
}

TEST_F(PartProductsTest, AnAddendThatIsNoProductStays) {
  const Value given = b_.input("given", floats({16, 192}));
  output(split(b_.op("Add", {product(x_), given}), {96, 96}));
  expect_left();
}

TEST_F(PartProductsTest, AnAddendOfOtherShapeStays) {
  output(split(b_.op("Add", {product(x_), counted({16, 192})}), {96, 96}));
  expect_left();
}

TEST_F(PartProductsTest, AMatrixThatChangesStays) {
  const Value w = b_.input("w", floats({3, 192}));
  output(split(b_.op("MatMul", {x_, w}), {96, 96}));
  expect_left();
}

TEST_F(PartProductsTest, AnotherAxisStays) {
  output(split(product(x_), {8, 8}, 0));
  expect_left();
}

TEST_F(PartProductsTest, NarrowPartsStay) {
  output(split(product(x_), {63, 129}));
  expect_left();
}

TEST_F(PartProductsTest, FewRowsStay) {
  output(split(product(b_.input("few", floats({15, 3}))), {96, 96}));
  expect_left();
}

TEST_F(PartProductsTest, AnUnknownNumberOfRowsStays) {
  output(split(product(b_.input("open", floats({b_.symbol("N"), 3}))), {96, 96}));
  expect_left();
}

}  // namespace
}  // namespace eddy
