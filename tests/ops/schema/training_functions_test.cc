// Claim: the optimizers of ai.onnx.preview.training give, for several tensors at once, what their
// formulas give in plain loops over doubles, with every attribute and in a first update (T = 0);
// and inputs that are not n tensors with what belongs to them are refused.
#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "tests/ops/testing/calls.h"

namespace eddy::testing {
namespace {

using Numbers = std::vector<double>;

TestTensor doubles(const Numbers& values) {
  return TestTensor::of<double>({static_cast<int64_t>(values.size())}, values);
}

// Two tensors, their gradients and their states.
const std::vector<Numbers> kX = {{1, -2}, {0.5}};
const std::vector<Numbers> kG = {{0.25, 3}, {-1}};
const std::vector<Numbers> kV = {{0.5, -0.25}, {2}};
const std::vector<Numbers> kH = {{4, 0.5}, {1}};
constexpr double kRate = 0.125;

OpCall call_of(const char* op, int64_t count, const std::vector<std::vector<Numbers>>& groups,
               Attributes attributes) {
  OpCall call;
  call.op = op;
  call.domain = "ai.onnx.preview.training";
  call.opset = 1;
  call.attributes = std::move(attributes);
  call.inputs = {TestTensor::scalar(kRate), TestTensor::scalar(count)};
  for (const auto& group : groups) {
    for (const Numbers& tensor : group) call.inputs.emplace_back(doubles(tensor));
  }
  call.num_outputs = 2 * (groups.size() - 1);
  return call;
}

// One element's results, in the order of outputs.
template <typename Formula>
void expect_formula(OpCall call, const Formula& formula) {
  const size_t num_kinds = call.num_outputs / 2;
  for (const Known known : {Known::kShapes, Known::kRanks, Known::kNothing}) {
    call.known = known;
    const auto made = run_op(call, KernelSet::kCpu);
    ASSERT_TRUE(made.is_ok()) << made.status().to_string();
    ASSERT_EQ(made->size(), call.num_outputs);
    for (size_t tensor = 0; tensor < 2; ++tensor) {
      for (size_t i = 0; i < kX[tensor].size(); ++i) {
        const Numbers expected = formula(tensor, i);
        ASSERT_EQ(expected.size(), num_kinds);
        for (size_t kind = 0; kind < num_kinds; ++kind) {
          const TestTensor& output = (*made)[kind * 2 + tensor].tensor();
          EXPECT_NEAR(output.values<double>()[i], expected[kind], 1e-12)
              << "tensor " << tensor << ", element " << i << ", output " << kind;
        }
      }
    }
  }
}

TEST(TrainingFunctionsTest, AdagradDividesByTheRootOfAllSquares) {
  for (const int64_t count : {0, 3}) {
    const OpCall call =
        call_of("Adagrad", count, {kX, kG, kH},
                {{"decay_factor", 0.5f}, {"epsilon", 0.25f}, {"norm_coefficient", 0.125f}});
    expect_formula(call, [&](size_t t, size_t i) -> Numbers {
      const double g = 0.125 * kX[t][i] + kG[t][i];
      const double h = kH[t][i] + g * g;
      const double rate = kRate / (1 + 0.5 * static_cast<double>(count));
      return {kX[t][i] - rate * g / (std::sqrt(h) + 0.25), h};
    });
  }
}

TEST(TrainingFunctionsTest, AdamCorrectsItsMeansFromTheFirstUpdateOn) {
  for (const int64_t count : {0, 1, 4}) {
    const OpCall call = call_of("Adam", count, {kX, kG, kV, kH},
                                {{"alpha", 0.75f},
                                 {"beta", 0.5f},
                                 {"epsilon", 0.25f},
                                 {"norm_coefficient", 0.125f},
                                 {"norm_coefficient_post", 0.25f}});
    expect_formula(call, [&](size_t t, size_t i) -> Numbers {
      const double g = 0.125 * kX[t][i] + kG[t][i];
      const double v = 0.75 * kV[t][i] + 0.25 * g;
      const double h = 0.5 * kH[t][i] + 0.5 * g * g;
      const auto n = static_cast<double>(count);
      const double factor =
          count == 0 ? 1 : std::sqrt(1 - std::pow(0.5, n)) / (1 - std::pow(0.75, n));
      return {0.75 * (kX[t][i] - kRate * factor * v / (std::sqrt(h) + 0.25)), v, h};
    });
  }
}

TEST(TrainingFunctionsTest, MomentumTakesTheWholeGradientFirst) {
  for (const char* mode : {"standard", "nesterov"}) {
    for (const int64_t count : {0, 2}) {
      const OpCall call =
          call_of("Momentum", count, {kX, kG, kV},
                  {{"alpha", 0.75f}, {"beta", 0.5f}, {"mode", mode}, {"norm_coefficient", 0.125f}});
      expect_formula(call, [&](size_t t, size_t i) -> Numbers {
        const double g = 0.125 * kX[t][i] + kG[t][i];
        const double v = 0.75 * kV[t][i] + (count == 0 ? 1 : 0.5) * g;
        const double direction = mode == std::string("nesterov") ? g + 0.75 * v : v;
        return {kX[t][i] - kRate * direction, v};
      });
    }
  }
}

TEST(TrainingFunctionsTest, WhatIsNotTensorsWithTheirStatesIsRefused) {
  OpCall adam = call_of("Adam", 1, {kX, kG, kV, kH}, {});
  adam.inputs.pop_back();
  EXPECT_EQ(refusal(adam), "R and T must be followed by n x 4 tensors, not by 7");
  OpCall adagrad = call_of("Adagrad", 1, {kX, kG, kH}, {});
  adagrad.inputs.pop_back();
  EXPECT_EQ(refusal(adagrad), "R and T must be followed by n x 3 tensors, not by 5");
  OpCall shapes = call_of("Adagrad", 1, {kX, kG, kH}, {});
  std::swap(shapes.inputs[4], shapes.inputs[5]);
  EXPECT_EQ(refusal(shapes),
            "inputs 2 and 4 belong to one tensor, so they must have one type and shape, not "
            "double[2] and double[1]");
  const Attributes lazy = {
      {"alpha", 0.5f}, {"beta", 1.0f}, {"mode", "lazy"}, {"norm_coefficient", 0.0f}};
  EXPECT_EQ(refusal(call_of("Momentum", 1, {kX, kG, kV}, lazy)),
            "mode must be standard or nesterov, not 'lazy'");
}

}  // namespace
}  // namespace eddy::testing
