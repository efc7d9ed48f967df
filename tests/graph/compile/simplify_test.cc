// Claim: simplifying decides what can be decided before a run, and nothing else.
#include "graph/compile/simplify.h"

#include <gtest/gtest.h>

#include <map>

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

  // Counts evaluations by operator in `times_or_null`.
  Graph run(GraphBuilder& b, SimplifyOptions options = {},
            std::map<std::string, int>* times_or_null = nullptr) {
    auto graph = b.finish();
    EXPECT_TRUE(graph.is_ok()) << graph.status().to_string();
    options.evaluate = [&, this](const Node& node, std::span<const TensorView> inputs) {
      if (times_or_null != nullptr) ++(*times_or_null)[node.op->name];
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

// Nothing else names the symbols, so the copy has other numbers for them.
TEST_F(SimplifyTest, TypesAmongAttributesKeepTheirSymbols) {
  GraphBuilder b(ops_);
  const int64_t free = b.symbol("free");
  const int64_t given = b.symbol("given");
  const ValueType type = tensor_type(ElementType::kFloat, {given, free});
  const Value none = b.op("Optional", {}, {{"type", type}});
  b.output("y", b.op("OptionalHasElement", {none}));
  SimplifyOptions options;
  options.dims = {{"given", 3}};
  const Graph graph = run(b, options);
  const auto& kept = std::get<ValueType>(*graph.node(NodeId(0)).attributes.find_or_null("type"));
  ASSERT_EQ(kept.tensor.dims.rank(), 2);
  EXPECT_EQ(kept.tensor.dims[0], 3);
  EXPECT_EQ(graph.symbol(kept.tensor.dims[1]), "free");
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

TEST_F(SimplifyTest, WhatDoesNothingStaysWhereTheRunMayFindItsRuleBroken) {
  GraphBuilder b(ops_);
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {}));
  const Value axes = b.input("axes", tensor_type(ElementType::kInt64, {1}));
  const Value ratio = b.input("ratio", tensor_type(ElementType::kFloat, {}));
  const Value ratios = b.input("ratios", tensor_type(ElementType::kFloat, {kUnknownDim}));
  b.output("squeezed", b.op("Squeeze", {x, axes}));
  b.output("dropped", b.op("Dropout", {x, ratio}));
  b.output("kept", b.op("Dropout", {x, ratios}));
  const Graph graph = run(b);
  ASSERT_EQ(graph.num_nodes(), 2u);
  EXPECT_EQ(graph.node(NodeId(0)).op->name, "Squeeze");
  EXPECT_EQ(graph.node(NodeId(1)).inputs[1], graph.inputs()[3]);
}

TEST_F(SimplifyTest, AShapeThatChangesInALoopIsNotFolded) {
  GraphBuilder b(ops_);
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {1}));
  const auto out = b.while_loop(
      {.initial = {x, b.int64s({0})}, .trip_limit = b.scalar<int64_t>(3)},
      [&](Value, std::span<const Value> c) {
        return WhileTest{b.scalar(true), {c[0], c[1]}};
      },
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

// A large constant that two branches and every attempt at a widening loop compute is computed once
// and stored once; what only looks alike is computed by itself.
TEST_F(SimplifyTest, LargeResultsAreComputedOnceAndShared) {
  constexpr int32_t kSize = 1 << 16;
  GraphBuilder b(ops_);
  const Value start = b.input("x", tensor_type(ElementType::kFloat, {1}));
  const Value range = b.op("Range", {b.scalar<int32_t>(0), b.scalar(kSize), b.scalar<int32_t>(1)});
  const auto sum_of = [&](Value x) { return b.op("ReduceSum", {x}); };
  const auto sum_as = [&](ElementType type) {
    return sum_of(b.op("Cast", {range}, {{"to", static_cast<int64_t>(type)}}));
  };
  const auto sum_of_zeros = [&](int64_t count) {
    return sum_of(b.op("ConstantOfShape", {b.op("Add", {b.int64s({count}), b.int64s({1})})}));
  };
  const auto out = b.while_loop(
      {.initial = {start}, .trip_limit = b.scalar<int64_t>(3)},
      [&](Value, const auto& c) {
        return WhileTest{b.scalar(true), {c[0]}};
      },
      [&](Value iteration, const auto& f) {
        const Value grown = b.op("Concat", {f[0], start}, {{"axis", 0}});
        const auto plus = [&](std::initializer_list<Value> values) {
          Value sum = grown;
          for (const Value value : values) sum = b.op("Add", {sum, value});
          return std::vector<Value>{sum};
        };
        return b.if_else(
            b.op("Equal", {iteration, b.scalar<int64_t>(0)}),
            [&] {
              return plus({sum_as(ElementType::kFloat), sum_of_zeros(kSize)});
            },
            [&] {
              const Value whole = b.op("Cast", {sum_as(ElementType::kInt64)}, {{"to", 1}});
              return plus({sum_as(ElementType::kFloat), whole, sum_of_zeros(2 * kSize)});
            });
      });
  b.output("y", out[0]);
  std::map<std::string, int> times;
  run(b, {}, &times);
  EXPECT_EQ(times["Range"], 1);
  EXPECT_EQ(times["ConstantOfShape"], 2) << "of two sizes";
  // The small sum is cast in each of the attempts, of which there are at least two.
  EXPECT_GE(times["Add"], 4);
  EXPECT_EQ(times["Cast"], 2 + times["Add"] / 2) << "to float and to int64, and the small ones";
}

// A few lines of a graph that would keep a processor busy for hours are left to the run.
TEST_F(SimplifyTest, EvaluationsEndWhereTheirWorkExceedsTheBudget) {
  constexpr int64_t kSize = 1 << 12;
  constexpr int kNodes = 100;
  const auto sums_folded = [&](double max_folded_work) {
    GraphBuilder b(ops_);
    const Value all = b.op("ConstantOfShape", {b.int64s({kSize})});
    for (int i = 0; i < kNodes; ++i) b.output("y" + std::to_string(i), b.op("ReduceSum", {all}));
    SimplifyOptions options;
    options.max_folded_work = max_folded_work;
    std::map<std::string, int> times;
    const Graph graph = run(b, options, &times);
    // Those that are left are equal.
    EXPECT_EQ(graph.num_nodes(), times["ReduceSum"] < kNodes ? 1u : 0u);
    return times["ReduceSum"];
  };
  EXPECT_EQ(sums_folded(0x1p28), kNodes);
  EXPECT_EQ(sums_folded(11 * (kSize + 400)), 10) << "and one for the constant of shape";
}

// 2 * 64 * 64 * 64 operations where only 3 * 64 * 64 elements are touched.
TEST_F(SimplifyTest, WorkIsWhatTheOperatorsSchemaCountsWhereThatIsMore) {
  const auto products_folded = [&](double max_folded_work) {
    GraphBuilder b(ops_);
    const Value square = b.op("ConstantOfShape", {b.int64s({64, 64})});
    b.output("y", b.op("MatMul", {square, square}));
    SimplifyOptions options;
    options.max_folded_work = max_folded_work;
    std::map<std::string, int> times;
    run(b, options, &times);
    return times["MatMul"];
  };
  EXPECT_EQ(products_folded(600'000), 1);
  EXPECT_EQ(products_folded(400'000), 0);
}

TEST_F(SimplifyTest, ACheckThatFailsEndsThePassWithItsWords) {
  GraphBuilder b(ops_);
  Value x = b.input("x", tensor_type(ElementType::kFloat, {}));
  for (int i = 0; i < 10; ++i) x = b.op("Exp", {x});
  b.output("y", x);
  auto graph = b.finish();
  int num_asked = 0;
  SimplifyOptions options;
  options.check = [&num_asked] {
    return ++num_asked < 5 ? Status::ok() : deadline_exceeded("too late");
  };
  const auto simple = simplify(std::move(*graph), ops_, std::move(options));
  ASSERT_FALSE(simple.is_ok());
  EXPECT_EQ(simple.status().code(), StatusCode::kDeadlineExceeded);
  EXPECT_EQ(simple.status().message(), "too late");
  EXPECT_EQ(num_asked, 5);
}

TEST_F(SimplifyTest, AShapeThatDoesNotFitAnInputIsNamed) {
  GraphBuilder b(ops_);
  b.output("y", b.input("x", tensor_type(ElementType::kFloat, {b.symbol("n"), 4})));
  auto graph = b.finish();
  SimplifyOptions options;
  options.input_dims = {{"x", {2, 5}}};
  const auto simple = simplify(std::move(*graph), ops_, options);
  ASSERT_FALSE(simple.is_ok());
  EXPECT_EQ(simple.status().message(), "input 'x' is float[2,4] and can't have the shape [2,5]");
}

TEST_F(SimplifyTest, AShapeOfAnotherRankIsRefusedWithTheNamesOfTheInputsSymbols) {
  for (const Dims& shape : {Dims{2}, Dims{2, 3, 4, 5}}) {
    GraphBuilder b(ops_);
    b.output("y",
             b.input("x", tensor_type(ElementType::kFloat, {b.symbol("batch"), 4, kUnknownDim})));
    auto graph = b.finish();
    SimplifyOptions options;
    options.input_dims = {{"x", shape}};
    const auto simple = simplify(std::move(*graph), ops_, options);
    EXPECT_EQ(simple.status().message(),
              "input 'x' is float[batch,4,?] and can't have the shape " + to_string(shape));
  }
}

TEST_F(SimplifyTest, AnInputsShapeFixesItsSymbolsInOtherInputsToo) {
  const auto shape_of_y = [&](SimplifyOptions options) {
    GraphBuilder b(ops_);
    b.input("x", tensor_type(ElementType::kFloat, {b.symbol("n"), 4}));
    b.output("y", b.input("z", tensor_type(ElementType::kFloat, {b.symbol("n")})));
    auto graph = b.finish();
    const auto simple = simplify(std::move(*graph), ops_, std::move(options));
    return simple.is_ok() ? to_string(simple->value(simple->outputs()[0]).type)
                          : simple.status().message();
  };
  EXPECT_EQ(shape_of_y({.input_dims = {{"x", {2, 4}}}}), "float[2]");
  EXPECT_EQ(shape_of_y({.dims = {{"n", 3}}, .input_dims = {{"x", {2, 4}}}}),
            "input 'x' is float[3,4] and can't have the shape [2,4]");
  EXPECT_EQ(shape_of_y({.input_dims = {{"x", {2, 4}}, {"z", {5}}}}),
            "input 'z' is float[2] and can't have the shape [5]");
}

// Weights stay in bytes: products read them as bytes; every other reader gets floats.
TEST_F(SimplifyTest, LargeQuantizedWeightsOfAProductStayInBytes) {
  constexpr int64_t kDepth = 128, kColumns = 256;
  const std::vector<uint8_t> bytes(kDepth * kColumns, 7);
  for (const bool is_read_otherwise : {false, true}) {
    GraphBuilder b(ops_);
    const Value x = b.input("x", tensor_type(ElementType::kFloat, {b.symbol("n"), kDepth}));
    const Value w = b.op("DequantizeLinear", {b.tensor<uint8_t>({kDepth, kColumns}, bytes),
                                              b.scalar(0.5f), b.scalar<uint8_t>(3)});
    const auto product = b.if_else(
        b.input("which", tensor_type(ElementType::kBool, {})),
        [&] {
          return std::vector<Value>{b.op("MatMul", {x, w}, {}, {.name = "product"})};
        },
        [&] {
          return std::vector<Value>{b.op("MatMul", {b.op("Neg", {x}), w})};
        });
    b.output("y", product[0]);
    if (is_read_otherwise) b.output("w", w);
    const Graph graph = run(b);
    int num_products = 0;
    for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
      const Node& node = graph.node(NodeId(n));
      if (node.kind != NodeKind::kExec || node.op->name == "Neg") continue;
      ++num_products;
      EXPECT_EQ(node.op->name, "DequantizeMatMul");
      EXPECT_EQ(graph.value(node.inputs[1]).type.tensor.element, ElementType::kUint8);
    }
    EXPECT_EQ(num_products, 2);
    if (!is_read_otherwise) continue;
    const ValueInfo& folded = graph.value(graph.outputs()[1]);
    ASSERT_EQ(folded.origin, ValueOrigin::kConstant);
    EXPECT_EQ(graph.constant(folded.constant).view().as<float>()[5], 2.0f);
  }
}

TEST_F(SimplifyTest, ConstantsOfEqualBytesShareOnePlace) {
  constexpr int64_t kSize = 2048;
  std::vector<float> same(kSize, 1.0f), other(kSize, 1.0f);
  other[kSize / 2 + 1] = 2.0f;
  GraphBuilder b(ops_);
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {kSize}));
  Value sum = x;
  for (const auto* values : {&same, &other, &same}) {
    sum = b.op("Add", {sum, b.vector<float>(*values)});
  }
  const std::vector<int32_t> alike(kSize, 0x3f800000);  // the bytes of 1.0f
  b.output("y", sum);
  b.output("bits", b.op("Add", {b.input("n", tensor_type(ElementType::kInt32, {kSize})),
                                b.vector<int32_t>(alike)}));
  const Graph graph = run(b);
  std::vector<const void*> data;
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    const ValueInfo& info = graph.value(graph.node(NodeId(n)).inputs[1]);
    data.push_back(graph.constant(info.constant).data);
  }
  ASSERT_EQ(data.size(), 4u);
  EXPECT_EQ(data[0], data[2]);
  EXPECT_NE(data[0], data[1]) << "one element differs";
  EXPECT_EQ(data[0], data[3]) << "types do not matter";
}

}  // namespace
}  // namespace eddy
