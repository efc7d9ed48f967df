// Claim: Gradient nodes give the derivatives of what they name, at the values that they are given,
// in the root, in branches and in loops, of each other, and beside parameters that are then
// trained; and names that they can't see, or that have no derivative, are refused by name.
#include "graph/differentiate/expand_gradients.h"

#include <gtest/gtest.h>

#include <cmath>

#include "graph/ir/builder.h"
#include "tests/ops/gradient/gradient_check.h"

namespace eddy::testing {
namespace {

using Names = std::vector<std::string>;
const ValueType kScalar = tensor_type(ElementType::kDouble, {});

std::vector<Value> gradient(GraphBuilder& b, const Names& xs, const Names& zs, const char* y,
                            std::vector<Value> inputs, Names outputs = {}) {
  Attributes attributes = {{"xs", xs}, {"y", std::string(y)}};
  if (!zs.empty()) attributes.set("zs", zs);
  return b.ops("Gradient", inputs, std::move(attributes),
               {.name = "slope",
                .domain = "ai.onnx.preview.training",
                .num_outputs = static_cast<int>(xs.size()),
                .output_names = std::move(outputs)});
}

Value named(GraphBuilder& b, const char* op, std::initializer_list<Value> inputs,
            const char* name) {
  return b.op(op, inputs, {}, {.output_names = {name}});
}

Result<Graph> expanded(GraphBuilder& b) {
  EDDY_ASSIGN_OR_RETURN(Graph graph, b.finish());
  EXPECT_TRUE(has_gradient_nodes(graph));
  return expand_gradients(std::move(graph), gradient_ops(), gradient_rules());
}

double run(GraphBuilder& b, const NamedValues& inputs, const std::string& output = "result") {
  const auto graph = expanded(b);
  EXPECT_TRUE(graph.is_ok()) << graph.status().to_string();
  if (!graph.is_ok()) return NAN;
  EXPECT_FALSE(has_gradient_nodes(*graph));
  const auto made = run_graph(*graph, inputs);
  EXPECT_TRUE(made.is_ok()) << made.status().to_string();
  return made.is_ok() ? number_at(made->outputs.at(output).tensor().view(), 0) : NAN;
}

TestValue number(double x) { return TestTensor::scalar(x); }

// y = a a b: at what is given, which need not be a and b.
TEST(ExpandGradientsTest, TheSubgraphIsTakenAtTheNodesInputs) {
  const auto slope = [](bool is_elsewhere, const Names& xs, const Names& zs) {
    GraphBuilder b(gradient_ops());
    const Value a = b.input("a", kScalar), c = b.input("c", kScalar);
    named(b, "Mul", {b.op("Mul", {a, a}), c}, "y");
    const Value other = is_elsewhere ? b.scalar(10.0) : a;
    const bool is_first = xs[0] == "a";
    const Value x = is_first ? other : c, z = is_first ? c : other;
    b.output("result", gradient(b, xs, zs, "y", {x, z})[0]);
    return run(b, {{"a", number(3)}, {"c", number(5)}});
  };
  EXPECT_EQ(slope(false, {"a"}, {"c"}), 30);
  EXPECT_EQ(slope(true, {"a"}, {"c"}), 100);
  EXPECT_EQ(slope(false, {"c"}, {"a"}), 9);
  EXPECT_EQ(slope(true, {"c"}, {"a"}), 100);
}

TEST(ExpandGradientsTest, GradientsOfGradients) {
  GraphBuilder b(gradient_ops());
  const Value x = b.input("x", kScalar);
  named(b, "Mul", {b.op("Mul", {x, x}), b.op("Mul", {x, x})}, "y");
  gradient(b, {"x"}, {}, "y", {x}, {"first"});
  gradient(b, {"x"}, {}, "first", {x}, {"second"});
  b.output("result", gradient(b, {"x"}, {}, "second", {x})[0]);
  EXPECT_EQ(run(b, {{"x", number(2)}}), 48);
}

// The sum of all elements of a tensor is meant, and values between cut the way.
TEST(ExpandGradientsTest, ValuesBetweenCutTheWay) {
  GraphBuilder b(gradient_ops());
  const Value x = b.input("x", tensor_type(ElementType::kDouble, {3}));
  const Value middle = named(b, "Exp", {x}, "middle");
  named(b, "Mul", {middle, x}, "y");
  b.output("result", b.op("ReduceSum", {gradient(b, {"middle"}, {"x"}, "y", {middle, x})[0]},
                          {{"keepdims", int64_t{0}}}));
  EXPECT_EQ(run(b, {{"x", TestTensor::of<double>({3}, {1, 2, 4})}}), 7);
}

// Newton's method whose slope is a Gradient node in the loop; in `before` of it, and in a branch.
TEST(ExpandGradientsTest, InLoopsAndBranches) {
  GraphBuilder b(gradient_ops());
  const Value a = b.input("a", kScalar);
  const auto root = b.while_loop(
      {.name = "newton", .initial = {a}, .trip_limit = b.scalar(int64_t{30})},
      [&](Value, ValueSpan c) {
        const Value x = named(b, "Identity", {c[0]}, "x");
        const Value error = named(b, "Sub", {b.op("Mul", {x, x}), a}, "error");
        const Value slope = gradient(b, {"x"}, {}, "error", {x})[0];
        const Value step = b.op("Div", {error, slope});
        return WhileTest{b.op("Greater", {b.op("Abs", {error}), b.scalar(1e-9)}),
                         {b.op("Sub", {x, step})}};
      },
      [&](Value, ValueSpan f) { return std::vector<Value>{f[0]}; });
  named(b, "Identity", {root[0]}, "r");
  named(b, "Sin", {a}, "wave");
  const auto made = b.if_else(
      b.op("Greater", {a, b.scalar(1.0)}),
      [&] { return gradient(b, {"a"}, {}, "wave", {root[0]}); },
      [&] { return std::vector<Value>{a}; }, "choose");
  b.output("result", b.op("Add", {root[0], made[0]}));
  EXPECT_NEAR(run(b, {{"a", number(2)}}), std::sqrt(2) + std::cos(std::sqrt(2)), 1e-9);
}

// A loop between x and y, and the derivative through it.
TEST(ExpandGradientsTest, ThroughALoop) {
  GraphBuilder b(gradient_ops());
  const Value x = b.input("x", kScalar);
  const auto power = b.while_loop(
      {.name = "power", .initial = {x}, .trip_limit = b.scalar(int64_t{3})},
      [&](Value, ValueSpan c) {
        return WhileTest{b.scalar(true), {c[0]}};
      },
      [&](Value, ValueSpan f) {
        return std::vector<Value>{b.op("Mul", {f[0], x})};
      });
  named(b, "Identity", {power[0]}, "y");
  b.output("result", gradient(b, {"x"}, {}, "y", {x})[0]);
  EXPECT_EQ(run(b, {{"x", number(2)}}), 32);
}

// A penalty on the slope, trained: the parameter stays one initializer.
TEST(ExpandGradientsTest, ParametersStayWhole) {
  GraphBuilder b(gradient_ops());
  const Value x = b.input("x", kScalar), w = b.scalar(3.0);
  b.set_name(w, "w");
  named(b, "Mul", {w, b.op("Mul", {x, x})}, "y");
  const Value slope = gradient(b, {"x"}, {}, "y", {x})[0];
  b.output("loss", b.op("Mul", {slope, slope}));
  auto graph = b.finish();
  ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
  const auto made = differentiate(std::move(*graph), gradient_ops(), gradient_rules(),
                                  {.loss = "loss", .wrt = {"w"}});
  ASSERT_TRUE(made.is_ok()) << made.status().to_string();
  const auto found = run_graph(made->graph, {{"x", number(2)}});
  ASSERT_TRUE(found.is_ok()) << found.status().to_string();
  EXPECT_EQ(number_at(found->outputs.at("w.grad").tensor().view(), 0), 96);  // 8 w x x
}

std::string refusal(const Names& xs, const Names& zs, const char* y, bool is_inside = false) {
  GraphBuilder b(gradient_ops());
  const Value a = b.input("a", kScalar), n = b.input("n", tensor_type(ElementType::kInt64, {}));
  named(b, "Mul", {a, a}, "y");
  named(b, "Add", {n, n}, "whole");
  b.if_else(
      b.scalar(true), [&] { return std::vector<Value>{named(b, "Exp", {a}, "hidden")}; },
      [&] { return std::vector<Value>{a}; }, "choose");
  std::vector<Value> inputs(xs.size() + zs.size(), a);
  if (is_inside) inputs[0] = n;
  b.output("result", gradient(b, xs, zs, y, inputs)[0]);
  const auto made = expanded(b);
  return made.is_ok() ? "accepted" : made.status().message();
}

TEST(ExpandGradientsTest, WhatANodeCannotNameIsRefused) {
  EXPECT_EQ(refusal({"a"}, {}, "z"),
            "node 'slope' (Gradient): attribute y names 'z', which is no "
            "tensor that the node can see");
  EXPECT_EQ(refusal({"b"}, {}, "y"),
            "node 'slope' (Gradient): attribute xs names 'b', which is no "
            "tensor that the node can see");
  EXPECT_EQ(refusal({"a"}, {"b"}, "y"),
            "node 'slope' (Gradient): attribute zs names 'b', which is "
            "no tensor that the node can see");
  EXPECT_EQ(refusal({"a"}, {}, "hidden"),
            "node 'slope' (Gradient): attribute y names 'hidden', which is no tensor that the node "
            "can see");
  EXPECT_EQ(refusal({"a"}, {"a"}, "y"),
            "node 'slope' (Gradient): 'a' stands twice in xs and zs; name it once");
  EXPECT_EQ(refusal({"a"}, {}, "whole"),
            "node 'slope' (Gradient): the y 'whole' is int64[], which has no derivative; name a "
            "floating-point tensor");
  EXPECT_EQ(refusal({"a"}, {}, "y", true),
            "node 'slope' (Gradient): input 0 is int64[], but 'a' is double[]");
  EXPECT_EQ(refusal({"hidden"}, {}, "y").substr(0, 60),
            "node 'slope' (Gradient): attribute xs names 'hidden', which ");
}

TEST(ExpandGradientsTest, AnXThatDoesNotMatterIsRefused) {
  GraphBuilder b(gradient_ops());
  const Value a = b.input("a", kScalar), c = b.input("c", kScalar);
  named(b, "Mul", {a, a}, "y");
  b.output("result", gradient(b, {"c"}, {}, "y", {c})[0]);
  EXPECT_EQ(expanded(b).status().message(),
            "node 'slope' (Gradient): the loss 'y' does not depend on 'c'; leave it out of wrt");
}

}  // namespace
}  // namespace eddy::testing
