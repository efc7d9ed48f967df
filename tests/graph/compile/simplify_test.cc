// Claim: simplifying decides what can be decided before a run, and nothing else.
#include "graph/compile/simplify.h"

#include <gtest/gtest.h>

#include "graph/ir/builder.h"
#include "ops/contract/evaluate.h"
#include "ops/reference/reference_kernels.h"
#include "ops/schema/standard.h"

namespace eddy {
namespace {

class SimplifyTest : public testing::Test {
 protected:
  SimplifyTest() {
    EXPECT_TRUE(add_standard_schemas(ops_).is_ok());
    add_reference_kernels(kernels_);
  }

  Graph run(GraphBuilder& b, SimplifyOptions options = {}) {
    auto graph = b.finish();
    EXPECT_TRUE(graph.is_ok()) << graph.status().to_string();
    options.evaluate = [this](const Node& node, std::span<const TensorView> inputs) {
      return evaluate_node(kernels_, *node.op, node.attributes, node.opset_version, inputs,
                           node.outputs.size());
    };
    auto simple = simplify(std::move(*graph), ops_, options);
    EXPECT_TRUE(simple.is_ok()) << simple.status().to_string();
    return std::move(*simple);
  }

  OpTable ops_;
  KernelRegistry kernels_;
};

TEST_F(SimplifyTest, ConstantsFoldThroughChains) {
  GraphBuilder b(ops_);
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {}));
  const Value five = b.op("Add", {b.scalar(2.0f), b.scalar(3.0f)});
  b.output("y", b.op("Mul", {x, b.op("Neg", {five})}));
  const Graph graph = run(b);
  ASSERT_EQ(graph.num_nodes(), 1u);
  const ValueInfo& folded = graph.value(graph.node(NodeId(0)).inputs[1]);
  EXPECT_EQ(*graph.constant(folded.constant).view().as<float>(), -5.0f);
}

TEST_F(SimplifyTest, ShapesOfKnownSizeFoldAndTakeTheirBranchAlong) {
  GraphBuilder b(ops_);
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {b.symbol("n"), 4}));
  const Value rows = b.op("Gather", {b.op("Shape", {x}), b.scalar<int64_t>(0)});
  const auto out = b.if_else(
      b.op("Equal", {rows, b.scalar<int64_t>(1)}),
      [&] { return std::vector<Value>{b.op("Neg", {x})}; },
      [&] { return std::vector<Value>{b.op("Exp", {x})}; });
  b.output("y", out[0]);
  SimplifyOptions options;
  options.dims = {{"n", 1}};
  const Graph graph = run(b, options);
  ASSERT_EQ(graph.num_nodes(), 1u);
  EXPECT_EQ(graph.node(NodeId(0)).op->name, "Neg");
}

TEST_F(SimplifyTest, WithoutASizeTheBranchStays) {
  GraphBuilder b(ops_);
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {b.symbol("n")}));
  const Value rows = b.op("Gather", {b.op("Shape", {x}), b.scalar<int64_t>(0)});
  const auto out = b.if_else(
      b.op("Equal", {rows, b.scalar<int64_t>(1)}), [&] { return std::vector<Value>{x}; },
      [&] { return std::vector<Value>{b.op("Exp", {x})}; });
  b.output("y", out[0]);
  const Graph graph = run(b);
  EXPECT_EQ(graph.num_regions(), 3u);
}

TEST_F(SimplifyTest, IdentitiesAndDeadNodesDisappear) {
  GraphBuilder b(ops_);
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {2, 3}));
  b.op("Exp", {x});
  const Value same = b.op("Reshape", {b.op("Identity", {x}), b.int64s({2, 3})});
  b.output("y", b.op("Cast", {same}, {{"to", int64_t{1}}}));
  const Graph graph = run(b);
  EXPECT_EQ(graph.num_nodes(), 0u);
  EXPECT_EQ(graph.outputs()[0], graph.inputs()[0]);
}

TEST_F(SimplifyTest, AShapeThatChangesInALoopIsNotFolded) {
  GraphBuilder b(ops_);
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {1}));
  const auto out = b.while_loop(
      {.initial = {x, b.int64s({0})}, .trip_limit = b.scalar<int64_t>(3)},
      [&](Value, std::span<const Value> c) { return WhileTest{b.scalar(true), {c[0], c[1]}}; },
      [&](Value, std::span<const Value> f) {
        return std::vector<Value>{b.op("Concat", {f[0], x}, {{"axis", int64_t{0}}}),
                                  b.op("Shape", {f[0]})};
      });
  b.output("last_shape", out[1]);
  const Graph graph = run(b);
  bool has_shape = false;
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    const Node& node = graph.node(NodeId(n));
    has_shape |= node.kind == NodeKind::kExec && node.op->name == "Shape";
  }
  EXPECT_TRUE(has_shape);
}

TEST_F(SimplifyTest, AShapeThatDoesNotFitAnInputIsNamed) {
  GraphBuilder b(ops_);
  b.output("y", b.input("x", tensor_type(ElementType::kFloat, {b.symbol("n"), 4})));
  auto graph = b.finish();
  SimplifyOptions options;
  options.input_dims = {{"x", {2, 5}}};
  const auto simple = simplify(std::move(*graph), ops_, options);
  ASSERT_FALSE(simple.is_ok());
  EXPECT_EQ(simple.status().message(), "input 'x' is float[s0,4] and can't have the shape [2,5]");
}

}  // namespace
}  // namespace eddy
