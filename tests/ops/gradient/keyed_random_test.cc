// Claim: numbers drawn by key change with the seed, the step, the iteration and the node, and with
// nothing else; they have the distributions that ONNX's operators ask for; a node with a seed of
// its own draws as another one with it; and Dropout by key hands its adjoints back through its
// mask.
#include "ops/gradient/keyed_random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "graph/ir/builder.h"
#include "ops/gradient/training_step.h"
#include "tests/ops/gradient/gradient_check.h"

namespace eddy::testing {
namespace {

constexpr int64_t kCount = 4096;

Graph finish(GraphBuilder& b) {
  auto graph = b.finish();
  EXPECT_TRUE(graph.is_ok()) << graph.status().to_string();
  return std::move(*graph);
}

Graph keyed(Graph graph, uint64_t seed = 1) {
  auto made = key_random_numbers(std::move(graph), gradient_ops(), {.seed = seed, .step = "step"});
  EXPECT_TRUE(made.is_ok()) << made.status().to_string();
  return std::move(*made);
}

std::vector<double> numbers(const Graph& graph, int64_t step, const std::string& output = "y",
                            NamedValues inputs = {}) {
  inputs["step"] = TestTensor::scalar(step);
  const auto run = run_graph(graph, inputs);
  EXPECT_TRUE(run.is_ok()) << run.status().to_string();
  std::vector<double> found;
  const TensorView view = run->outputs.at(output).tensor().view();
  for (int64_t i = 0; i < view.count(); ++i) found.push_back(number_at(view, i));
  return found;
}

struct Moments {
  double mean = 0, variance = 0;
};

Moments moments(const std::vector<double>& all) {
  Moments of;
  for (const double x : all) of.mean += x / static_cast<double>(all.size());
  for (const double x : all) {
    of.variance += (x - of.mean) * (x - of.mean) / static_cast<double>(all.size());
  }
  return of;
}

Graph drawing(const char* op, Attributes attributes, const char* name = "draw") {
  GraphBuilder b(gradient_ops());
  attributes.set("shape", std::vector<int64_t>{kCount});
  b.output("y", b.op(op, {}, std::move(attributes), {.name = name}));
  return finish(b);
}

TEST(KeyedRandomTest, SeedStepAndNodeDecideAndNothingElse) {
  const Graph graph = keyed(drawing("RandomUniform", {}));
  const auto drawn = numbers(graph, 1);
  EXPECT_EQ(drawn, numbers(graph, 1));
  EXPECT_NE(drawn, numbers(graph, 2));
  EXPECT_NE(drawn, numbers(keyed(drawing("RandomUniform", {}), 2), 1));
  EXPECT_NE(drawn, numbers(keyed(drawing("RandomUniform", {}, "other")), 1));
  const auto seeded = [](const char* name) {
    return numbers(keyed(drawing("RandomUniform", {{"seed", 7.0f}}, name)), 1);
  };
  EXPECT_EQ(seeded("draw"), seeded("other")) << "one seed, one sequence";
  EXPECT_NE(drawn, seeded("draw"));
}

TEST(KeyedRandomTest, DistributionsAreThoseOfTheOperators) {
  const auto uniform =
      moments(numbers(keyed(drawing("RandomUniform", {{"low", 2.0f}, {"high", 5.0f}})), 3));
  EXPECT_NEAR(uniform.mean, 3.5, 0.06);
  EXPECT_NEAR(uniform.variance, 9.0 / 12, 0.05);
  for (const int64_t type : {1, 10, 11}) {
    const auto normal = moments(numbers(
        keyed(drawing("RandomNormal", {{"mean", -1.0f}, {"scale", 2.0f}, {"dtype", type}})), 3));
    EXPECT_NEAR(normal.mean, -1, 0.15) << type;
    EXPECT_NEAR(normal.variance, 4, 0.4) << type;
  }
  GraphBuilder b(gradient_ops());
  const Value p = b.input("p", tensor_type(ElementType::kDouble, {kUnknownDim}));
  b.output("tossed", b.op("Bernoulli", {p}));
  const Value weights = b.tensor<float>({1, 3}, {std::log(1.0f), std::log(2.0f), std::log(5.0f)});
  b.output("classes", b.op("Multinomial", {weights}, {{"sample_size", kCount}}));
  const Graph graph = keyed(finish(b));
  const NamedValues inputs = {
      {"p", TestTensor::of<double>({kCount}, std::vector<double>(kCount, 0.25))}};
  EXPECT_NEAR(moments(numbers(graph, 1, "tossed", inputs)).mean, 0.25, 0.03);
  double times[3] = {};
  for (const double drawn : numbers(graph, 1, "classes", inputs)) {
    ASSERT_TRUE(drawn == 0 || drawn == 1 || drawn == 2) << drawn;
    times[static_cast<int>(drawn)] += 8.0 / kCount;
  }
  for (const int i : {0, 1, 2}) EXPECT_NEAR(times[i], i == 0 ? 1 : i == 1 ? 2 : 5, 0.25) << i;
}

// Rows of a loop in a loop: each iteration of each has numbers of its own.
TEST(KeyedRandomTest, EachIterationOfANestDrawsItsOwn) {
  GraphBuilder b(gradient_ops());
  const auto loop = [&](const char* name, const std::function<Value()>& row) {
    return b.while_loop(
        {.name = name, .trip_limit = b.scalar(int64_t{3}), .num_scan_outputs = 1},
        [&](Value, ValueSpan) {
          return WhileTest{b.scalar(true), {}};
        },
        [&](Value, ValueSpan) { return std::vector<Value>{row()}; })[0];
  };
  b.output("y", loop("outer", [&] {
             return loop("inner", [&] {
               return b.op("RandomNormal", {}, {{"shape", std::vector<int64_t>{2}}});
             });
           }));
  const Graph graph = keyed(finish(b));
  const auto drawn = numbers(graph, 1);
  EXPECT_EQ(drawn.size(), 18u);
  EXPECT_EQ(std::set<double>(drawn.begin(), drawn.end()).size(), 18u);
  EXPECT_EQ(drawn, numbers(graph, 1));
}

TEST(KeyedRandomTest, DropoutHandsAdjointsBackThroughItsMask) {
  for (const bool is_training : {true, false}) {
    GraphBuilder b(gradient_ops());
    const Value w = b.tensor<double>({4, 64}, std::vector<double>(256, 1.0));
    b.set_name(w, "w");
    const Value training = b.input("training", tensor_type(ElementType::kBool, {}));
    const Value y = b.op("Dropout", {w, b.scalar(0.75), training});
    b.output("y", y);
    b.output("loss", b.op("ReduceSum", {y}, {{"keepdims", int64_t{0}}}));
    const auto step = make_training_step(finish(b), gradient_ops(), gradient_rules(),
                                         {.loss = "loss", .seed = 5});
    ASSERT_TRUE(step.is_ok()) << step.status().to_string();
    EXPECT_EQ(step->step, "step");
    NamedValues inputs = {{"w", TestTensor::of<double>({4, 64}, std::vector<double>(256, 1.0))},
                          {"rate", TestTensor::scalar(1.0f)},
                          {"training", TestTensor::scalar(is_training)}};
    const auto kept = numbers(step->graph, 1, "y", inputs);
    const auto next = numbers(step->graph, 1, "w.next", inputs);
    double num_kept = 0;
    for (size_t i = 0; i < kept.size(); ++i) {
      EXPECT_EQ(next[i], 1 - kept[i]);  // the gradient is the mask times its scale, as y is
      EXPECT_TRUE(kept[i] == 0 || kept[i] == (is_training ? 4 : 1)) << kept[i];
      num_kept += kept[i] != 0;
    }
    EXPECT_NEAR(num_kept, is_training ? 64 : 256, is_training ? 28 : 0);
    const bool is_equal = kept == numbers(step->graph, 2, "y", inputs);
    EXPECT_NE(is_equal, is_training) << "another step, another mask";
  }
}

TEST(KeyedRandomTest, DropoutThatNeverTrainsStays) {
  GraphBuilder b(gradient_ops());
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {2}));
  b.output("y", b.op("Dropout", {x}));
  b.output("z", b.op("Dropout", {x, b.scalar(0.5f), b.scalar(false)}));
  EXPECT_FALSE(draws_by_key(finish(b)));
}

}  // namespace
}  // namespace eddy::testing
