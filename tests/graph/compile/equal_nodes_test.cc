// Claim: equal nodes are made once, in the region where both see the first; what differs in any
// way, draws random numbers or calls the caller's functions stays apart; Dropout that drops nothing
// goes.
#include <gtest/gtest.h>

#include "graph/compile/simplify.h"
#include "graph/ir/builder.h"
#include "ops/contract/evaluate.h"
#include "ops/reference/reference_kernels.h"
#include "ops/schema/standard.h"

namespace eddy {
namespace {

class EqualNodes : public testing::Test {
 protected:
  EqualNodes() {
    EXPECT_TRUE(add_standard_schemas(ops_).is_ok());
    add_reference_kernels(kernels_);
  }

  Graph run(GraphBuilder& b) {
    auto graph = b.finish();
    EXPECT_TRUE(graph.is_ok()) << graph.status().to_string();
    SimplifyOptions options;
    options.evaluate = [this](const Node& node, std::span<const TensorView> inputs) {
      return evaluate_node(kernels_, *node.op, node.attributes, node.opset_version, inputs,
                           node.outputs.size());
    };
    auto simple = simplify(std::move(*graph), ops_, options);
    EXPECT_TRUE(simple.is_ok()) << simple.status().to_string();
    return std::move(*simple);
  }
  static int count(const Graph& graph, std::string_view op) {
    int found = 0;
    for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
      const Node& node = graph.node(NodeId(n));
      found += node.kind == NodeKind::kExec && node.op->name == op;
    }
    return found;
  }

  OpTable ops_;
  KernelRegistry kernels_;
};

const ValueType kLine = tensor_type(ElementType::kFloat, {4});

TEST_F(EqualNodes, ChainsOfEqualNodesBecomeOne) {
  GraphBuilder b(ops_);
  const Value x = b.input("x", kLine);
  for (const char* name : {"first", "second"}) {
    const Value y = b.op("Mul", {b.op("Relu", {x}), b.scalar(2.0f)});
    b.output(name, b.op("Softmax", {y}, {{"axis", 0}}));
  }
  const Graph graph = run(b);
  EXPECT_EQ(graph.num_nodes(), 3u);
  ASSERT_EQ(graph.outputs().size(), 2u);
  EXPECT_EQ(graph.outputs()[0], graph.outputs()[1]);
  EXPECT_EQ(graph.output_names()[1], "second");
}

TEST_F(EqualNodes, WhatDiffersStaysApart) {
  GraphBuilder b(ops_);
  const Value x = b.input("x", kLine), y = b.input("y", kLine);
  const Value outputs[] = {b.op("Add", {x, y}),
                           b.op("Sub", {x, y}),
                           b.op("Sub", {y, x}),
                           b.op("Add", {x, b.scalar(1.0f)}),
                           b.op("Add", {x, b.scalar(2.0f)}),
                           b.op("LeakyRelu", {x}, {{"alpha", 0.1f}}),
                           b.op("LeakyRelu", {x}, {{"alpha", 0.2f}}),
                           b.op("Clip", {x, Value(), b.scalar(1.0f)}),
                           b.op("Clip", {x, b.scalar(1.0f)}),
                           b.op("RandomNormalLike", {x}, {{"seed", 1.0f}}),
                           b.op("RandomNormalLike", {x}, {{"seed", 1.0f}})};
  for (size_t i = 0; i < std::size(outputs); ++i) b.output("o" + std::to_string(i), outputs[i]);
  EXPECT_EQ(run(b).num_nodes(), std::size(outputs));
}

// Within a body, and with what stands before it; never with the other region's, nor with a body's
// after it.
TEST_F(EqualNodes, RegionsSeeWhatStandsAroundThem) {
  GraphBuilder b(ops_);
  const Value x = b.input("x", kLine);
  const Value go = b.input("go", tensor_type(ElementType::kBool, {}));
  const Value outside = b.op("Exp", {x});
  const auto chosen = b.if_else(
      go,
      [&] {
        const Value same = b.op("Exp", {x}), own = b.op("Sin", {x});
        return std::vector<Value>{b.op("Add", {b.op("Add", {same, own}), b.op("Sin", {x})})};
      },
      [&] { return std::vector<Value>{b.op("Sin", {x})}; });
  b.output("y", b.op("Add", {chosen[0], b.op("Sin", {x})}));
  b.output("outside", outside);
  const Graph graph = run(b);
  EXPECT_EQ(count(graph, "Exp"), 1);
  EXPECT_EQ(count(graph, "Sin"), 3) << "one in each branch, one behind them";
}

// The body is built again with wider types: what the first attempt made is forgotten.
TEST_F(EqualNodes, BodiesThatAreBuiltAgainStandAlone) {
  GraphBuilder b(ops_);
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {1}));
  WhileOptions options;
  options.initial = {x};
  options.carried_types = {tensor_type(ElementType::kFloat, {kUnknownDim})};
  options.trip_limit = b.scalar<int64_t>(3);
  const auto results = b.while_loop(
      options,
      [&](Value, ValueSpan carried) {
        return WhileTest{b.scalar(true), {carried[0]}};
      },
      [&](Value, ValueSpan forwarded) {
        const Value grown = b.op("Concat", {forwarded[0], b.op("Neg", {x})}, {{"axis", 0}});
        const Value again = b.op("Concat", {forwarded[0], b.op("Neg", {x})}, {{"axis", 0}});
        return std::vector<Value>{b.op("Max", {grown, again})};
      });
  b.output("y", results[0]);
  const Graph graph = run(b);
  EXPECT_EQ(count(graph, "Concat"), 1);
  EXPECT_EQ(count(graph, "Neg"), 1);
}

TEST_F(EqualNodes, IdleDropoutGoes) {
  GraphBuilder b(ops_);
  const Value x = b.input("x", kLine);
  const Value inputs[] = {b.op("Relu", {x})};
  const auto idle = b.ops("Dropout", inputs, {}, {.opset_version = 13, .num_outputs = 2});
  b.output("idle", b.op("Neg", {idle[0]}));
  const auto masked = b.ops("Dropout", inputs, {}, {.opset_version = 13, .num_outputs = 2});
  b.output("masked", b.op("Abs", {masked[0]}));
  b.output("mask", masked[1]);
  const Value training[] = {inputs[0], b.scalar(0.5f), b.scalar(true)};
  b.output("training", b.ops("Dropout", training, {}, {.opset_version = 13})[0]);
  EXPECT_EQ(count(run(b), "Dropout"), 2);
}

}  // namespace
}  // namespace eddy
