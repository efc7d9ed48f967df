// Claim: the training step of each optimizer gives the parameters and states that its formula
// gives, computed here in plain loops over doubles, for several steps in a row; gradients whose
// norm exceeds clip_norm are scaled to it; and what can't be trained is refused.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "graph/ir/builder.h"
#include "ops/gradient/training_step.h"
#include "tests/ops/gradient/gradient_check.h"

namespace eddy::testing {
namespace {

constexpr double kTarget = 3.0;

// loss = sum((w x - target)^2), w a vector; its gradient is 2 (w x - target) x.
Graph make_graph() {
  GraphBuilder b(gradient_ops());
  const Value x = b.input("x", tensor_type(ElementType::kDouble, {2}));
  const Value w = b.tensor<double>({2}, {0.5, -1.0});
  b.set_name(w, "w");
  const Value error = b.op("Sub", {b.op("Mul", {w, x}), b.scalar(kTarget)});
  b.output("loss", b.op("ReduceSumSquare", {error}, {{"keepdims", int64_t{0}}}));
  auto graph = b.finish();
  EXPECT_TRUE(graph.is_ok()) << graph.status().to_string();
  return std::move(*graph);
}

TestTensor tensor_of(const OwnedTensor& owned) {
  TestTensor tensor(owned.element, owned.dims);
  const TensorView to = tensor.view();
  std::memcpy(to.data, owned.view().data, to.size_bytes());
  return tensor;
}

struct Plain {
  double w, v = 0, h = 0;

  void step(const TrainingOptions& options, double g, double rate, int64_t count) {
    const double m = options.momentum, b1 = options.beta1, b2 = options.beta2;
    switch (options.optimizer) {
      case Optimizer::kSgd:
        w -= rate * g;
        break;
      case Optimizer::kMomentum:
        v = m * v + g;
        w -= rate * v;
        break;
      case Optimizer::kNesterov:
        v = m * v + g;
        w -= rate * (g + m * v);
        break;
      case Optimizer::kAdagrad:
        h += g * g;
        w -= rate * g / (std::sqrt(h) + options.epsilon);
        break;
      case Optimizer::kAdam: {
        const auto t = static_cast<double>(count);
        v = b1 * v + (1 - b1) * g;
        h = b2 * h + (1 - b2) * g * g;
        w -= rate * std::sqrt(1 - std::pow(b2, t)) / (1 - std::pow(b1, t)) * v /
             (std::sqrt(h) + options.epsilon);
        break;
      }
    }
  }
};

void expect_steps(TrainingOptions options) {
  options.loss = "loss";
  auto step = make_training_step(make_graph(), gradient_ops(), gradient_rules(), options);
  ASSERT_TRUE(step.is_ok()) << step.status().to_string();
  const std::vector<double> x = {1.5, -0.5};
  constexpr float kRate = 0.0625f;
  NamedValues inputs = {{"x", TestTensor::of<double>({2}, x)},
                        {step->rate, TestTensor::scalar(kRate)}};
  for (const TrainingBinding& binding : step->bindings) {
    inputs[binding.input] = tensor_of(binding.initial);
  }
  Plain plain[2] = {{0.5}, {-1.0}};
  double last_loss = INFINITY;
  for (int64_t count = 1; count <= 4; ++count) {
    if (!step->step.empty()) inputs[step->step] = TestTensor::scalar(count);
    const auto run = run_graph(step->graph, inputs);
    ASSERT_TRUE(run.is_ok()) << run.status().to_string();
    double g[2], norm = 0;
    for (const int i : {0, 1}) {
      g[i] = 2 * (plain[i].w * x[static_cast<size_t>(i)] - kTarget) * x[static_cast<size_t>(i)];
      norm += g[i] * g[i];
    }
    norm = std::sqrt(norm);
    const double factor = options.clip_norm > 0 ? std::min(1.0, options.clip_norm / norm) : 1;
    for (const int i : {0, 1}) plain[i].step(options, g[i] * factor, double{kRate}, count);
    const double loss = number_at(run->outputs.at("loss").tensor().view(), 0);
    EXPECT_LT(loss, last_loss);
    last_loss = loss;
    for (const TrainingBinding& binding : step->bindings) {
      inputs[binding.input] = run->outputs.at(binding.output);
    }
    const auto w = inputs.at("w").tensor().values<double>();
    for (const size_t i : {0, 1}) {
      EXPECT_NEAR(w[i], plain[i].w, 1e-7 * std::abs(plain[i].w)) << "step " << count;
    }
  }
}

TEST(TrainingStepTest, EachOptimizerFollowsItsFormula) {
  for (const char* name : {"sgd", "momentum", "nesterov", "adam", "adagrad"}) {
    SCOPED_TRACE(name);
    const auto optimizer = optimizer_by_name(name);
    ASSERT_TRUE(optimizer.has_value());
    expect_steps({.loss = {}, .optimizer = *optimizer, .momentum = 0.5});
    expect_steps({.loss = {}, .optimizer = *optimizer, .momentum = 0.5, .clip_norm = 1.25});
  }
  EXPECT_FALSE(optimizer_by_name("lbfgs").has_value());
}

std::string refusal(const TrainingOptions& options) {
  const auto made = make_training_step(make_graph(), gradient_ops(), gradient_rules(), options);
  return made.is_ok() ? "accepted" : made.status().message();
}

TEST(TrainingStepTest, WhatCannotBeTrainedIsRefused) {
  EXPECT_EQ(refusal({.loss = "loss", .wrt = {"x"}}),
            "'x' is no initializer of floating-point type, so it can't be trained");
  EXPECT_EQ(refusal({.loss = "gain"}),
            "there is no value 'gain' to take as the loss; name an output");
  EXPECT_EQ(refusal({.loss = "loss", .momentum = 1}),
            "momentum, beta1 and beta2 must lie in [0, 1)");
  EXPECT_EQ(refusal({.loss = "loss", .epsilon = 0}), "epsilon must be positive");
  EXPECT_EQ(refusal({.loss = "loss", .clip_norm = -1}),
            "clip_norm must be a positive number, or 0 for none");
  EXPECT_EQ(refusal({.loss = "loss", .stop = {"w"}}),
            "the loss 'loss' depends on no initializer of floating-point type to train");
}

}  // namespace
}  // namespace eddy::testing
