// Claim: what cannot be differentiated is refused in one line that says what, where and what to do:
// losses, parameters, seeds and stops of a wrong name, type or shape, and operators without a rule.
#include <gtest/gtest.h>

#include "graph/ir/builder.h"
#include "tests/ops/gradient/gradient_check.h"

namespace eddy::testing {
namespace {

ValueType floats(const Dims& dims) { return tensor_type(ElementType::kFloat, dims); }

// loss = sum(tanh(x * w)), steps = floor(x), count: integers, far: does not depend on w.
Graph make_graph() {
  GraphBuilder b(gradient_ops());
  const Value x = b.input("x", floats({3}));
  const Value n = b.input("n", tensor_type(ElementType::kInt64, {3}));
  const Value w = b.tensor<float>({3}, {1, 2, 3});
  b.set_name(w, "w");
  const Value y =
      b.op("Tanh", {b.op("Mul", {x, w})}, {}, {.name = "squash", .output_names = {"y"}});
  b.output("vector", y);
  b.output("loss", b.op("ReduceSum", {y}, {{"keepdims", int64_t{0}}}));
  b.output("count", b.op("ReduceSum", {n}, {{"keepdims", int64_t{0}}}));
  b.output("steps", b.op("ReduceSum", {b.op("Floor", {x})}, {{"keepdims", int64_t{0}}}));
  b.output("far", b.op("ReduceSum", {x}, {{"keepdims", int64_t{0}}}));
  auto graph = b.finish();
  EXPECT_TRUE(graph.is_ok()) << graph.status().to_string();
  return std::move(*graph);
}

std::string refusal(const DifferentiateOptions& options, Graph graph = make_graph()) {
  const auto made = differentiate(std::move(graph), gradient_ops(), gradient_rules(), options);
  return made.is_ok() ? "accepted" : made.status().to_string();
}

TEST(MessagesTest, ALossThatIsNone) {
  EXPECT_EQ(refusal({.loss = "lost"}),
            "not found: there is no value 'lost' to take as the loss; name an output");
  EXPECT_EQ(refusal({.loss = "count"}),
            "invalid argument: the loss 'count' is int64[], which has no derivative; name a "
            "floating-point tensor");
  EXPECT_EQ(refusal({.loss = "vector"}),
            "invalid argument: the loss 'vector' is float[3], not one element: give a seed, or "
            "reduce it");
  EXPECT_EQ(refusal({.loss = "far", .wrt = {"w"}}),
            "invalid argument: the loss 'far' does not depend on 'w'; leave it out of wrt");
  EXPECT_EQ(refusal({.loss = "steps"}),
            "invalid argument: the loss 'steps' depends on no input or initializer of "
            "floating-point type");
}

TEST(MessagesTest, ParametersSeedsAndStopsByName) {
  EXPECT_EQ(refusal({.loss = "loss", .wrt = {"v"}}),
            "not found: there is no input or initializer 'v' for a gradient");
  EXPECT_EQ(refusal({.loss = "loss", .wrt = {"n"}}),
            "invalid argument: 'n' is int64[3], which has no derivative; leave it out of wrt");
  EXPECT_EQ(refusal({.loss = "loss", .wrt = {"w", "w"}}),
            "invalid argument: 'w' stands twice in wrt; name it once");
  EXPECT_EQ(refusal({.loss = "loss", .seed = "x"}),
            "invalid argument: the seed 'x' is float[3], but the loss 'loss' is float[]");
  EXPECT_EQ(refusal({.loss = "loss", .stop = {"z"}}),
            "not found: there is no value 'z' to stop at");
  EXPECT_EQ(refusal({.loss = "loss", .wrt = {"w"}, .stop = {"y"}}),
            "invalid argument: the loss 'loss' does not depend on 'w'; leave it out of wrt");
  EXPECT_EQ(refusal({.loss = "loss", .suffix = ""},
                    [] {
                      GraphBuilder b(gradient_ops());
                      const Value x = b.input("x", floats({}));
                      b.output("x", x);
                      b.output("loss", b.op("Exp", {x}));
                      return std::move(*b.finish());
                    }()),
            "invalid argument: the graph has an output 'x' already; choose another suffix for "
            "gradients");
}

TEST(MessagesTest, AnOperatorWithoutARuleNamesWhoNeedsIt) {
  GraphBuilder b(gradient_ops());
  const Value w = b.input("w", floats({2, 2}));
  const Value x = b.input("x", floats({2, 2}));
  const std::vector<Value> made = b.if_else(
      b.input("go", tensor_type(ElementType::kBool, {})),
      [&] {
        return std::vector<Value>{
            b.op("Det", {b.op("Mul", {w, x})}, {}, {.name = "volume", .output_names = {"d"}})};
      },
      [&] { return std::vector<Value>{b.scalar(0.0f)}; }, "choice");
  b.output("loss", made[0]);
  auto graph = b.finish();
  ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
  EXPECT_EQ(refusal({.loss = "loss", .wrt = {"w"}}, graph->copy()),
            "unsupported: at choice/then/volume: operator Det has no gradient rule, and the "
            "gradient of 'w' needs it; stop at 'd', or add a rule");
}

// loss = sum(w + dequantized(quantize(w))): one way has a derivative, the other rounds.
TEST(MessagesTest, QuantizingIsNotFlat) {
  for (const bool is_dynamic : {false, true}) {
    GraphBuilder b(gradient_ops());
    const Value w = b.input("w", floats({4}));
    Value scale = b.scalar(0.5f), zero = b.scalar(uint8_t{3});
    Value q;
    if (is_dynamic) {
      const std::vector<Value> made =
          b.ops("DynamicQuantizeLinear", std::vector{w}, {},
                {.name = "round", .num_outputs = 3, .output_names = {"q", "scale", "zero"}});
      q = made[0], scale = made[1], zero = made[2];
    } else {
      q = b.op("QuantizeLinear", {w, scale, zero}, {}, {.name = "round", .output_names = {"q"}});
    }
    const Value moved = b.op("Reshape", {q, b.int64s({2, 2})});
    const Value x = b.op(
        "Reshape", {b.op("DequantizeLinear", {moved, scale, zero}, {}, {.output_names = {"x"}}),
                    b.int64s({-1})});
    b.output("loss", b.op("ReduceSum", {b.op("Add", {w, x})}, {{"keepdims", int64_t{0}}}));
    auto graph = b.finish();
    ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
    const std::string op = is_dynamic ? "DynamicQuantizeLinear" : "QuantizeLinear";
    EXPECT_EQ(refusal({.loss = "loss"}, graph->copy()),
              "unsupported: at round: operator " + op +
                  " has no gradient rule, and the gradient of 'w' needs it; stop at 'q'");
    EXPECT_EQ(refusal({.loss = "loss", .stop = {"x"}}, graph->copy()), "accepted");
    if (!is_dynamic) {
      EXPECT_EQ(refusal({.loss = "loss", .stop = {"q"}}, graph->copy()), "accepted");
    }
  }
}

// loss = w x w: two uses, of one initializer or of two with one name.
Graph make_twice(bool is_one) {
  GraphBuilder b(gradient_ops());
  const Value x = b.input("x", floats({}));
  const Value first = b.scalar(3.0f), second = is_one ? first : b.scalar(3.0f);
  b.set_name(first, "w");
  b.set_name(second, "w");
  b.output("loss", b.op("Mul", {b.op("Mul", {first, x}), second}));
  return std::move(*b.finish());
}

TEST(MessagesTest, AnInitializerIsOneParameterAlsoInTheResult) {
  EXPECT_EQ(refusal({.loss = "loss", .wrt = {"w"}}, make_twice(false)),
            "invalid argument: several initializers or inputs are named 'w'; give each a name of "
            "its own, or differentiate the model as it was read");
  const auto first =
      differentiate(make_twice(true), gradient_ops(), gradient_rules(), {.loss = "loss"});
  ASSERT_TRUE(first.is_ok()) << first.status().to_string();
  // x.grad = w w: of w, 2 w.
  const auto second = differentiate(first->graph.copy(), gradient_ops(), gradient_rules(),
                                    {.loss = "x.grad", .wrt = {"w"}, .suffix = ".grad2"});
  ASSERT_TRUE(second.is_ok()) << second.status().to_string();
  const auto run = run_graph(second->graph, {{"x", TestTensor::scalar(5.0f)}});
  ASSERT_TRUE(run.is_ok()) << run.status().to_string();
  EXPECT_EQ(number_at(run->outputs.at("w.grad").tensor().view(), 0), 30);
  EXPECT_EQ(number_at(run->outputs.at("w.grad2").tensor().view(), 0), 6);
}

TEST(MessagesTest, AStopMakesAGraphPossible) {
  GraphBuilder b(gradient_ops());
  const Value x = b.input("x", floats({2, 2}));
  const Value d = b.op("Det", {x}, {}, {.name = "volume", .output_names = {"d"}});
  b.output("loss", b.op("Mul", {d, b.op("ReduceSum", {x}, {{"keepdims", int64_t{0}}})}));
  auto graph = b.finish();
  ASSERT_TRUE(graph.is_ok());
  auto made = differentiate(std::move(*graph), gradient_ops(), gradient_rules(),
                            {.loss = "loss", .stop = {"d"}});
  ASSERT_TRUE(made.is_ok()) << made.status().to_string();
  const TestTensor given = TestTensor::of<float>({2, 2}, {3, 1, 1, 2});  // of determinant 5
  const auto run = run_graph(made->graph, {{"x", given}});
  ASSERT_TRUE(run.is_ok()) << run.status().to_string();
  EXPECT_EQ(run->outputs.at("x.grad").tensor().values<float>(), std::vector<float>(4, 5.0f));
}

TEST(MessagesTest, TwoRulesForOneOperatorAreRefused) {
  GradientTable table;
  ASSERT_TRUE(table.add({.op = "Odd", .since_version = 3, .reason = "a test"}).is_ok());
  EXPECT_EQ(table.add({.op = "Odd", .since_version = 3, .reason = "a test"}).message(),
            "operator 'Odd' has two gradient rules since opset 3; add one");
  EXPECT_EQ(table.find_or_null("", "Odd", 2), nullptr);
  EXPECT_NE(table.find_or_null("", "Odd", 9), nullptr);
}

}  // namespace
}  // namespace eddy::testing
