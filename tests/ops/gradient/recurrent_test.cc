// Claim: gradients of RNN, GRU and LSTM agree with central differences in double, for X, W, R, B,
// the initial states and peepholes, by Y, by the last states and by all, in every direction and
// layout, with lengths, clip, each activation, coupled gates and GRU's linear form, with shapes
// known and unknown, and twice differentiated.
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/ops/gradient/gradient_check.h"

namespace eddy::testing {
namespace {

constexpr uint64_t kSeed = 20261128;
constexpr int64_t kBatch = 2, kInput = 1, kHidden = 2;

TestTensor doubles(const Dims& dims, uint64_t seed) {
  Random random(kSeed + seed);
  return TestTensor::random(ElementType::kDouble, dims, random, -1, 1);
}

struct Form {
  int64_t steps = 2;
  bool has_state = true, has_lengths = false, has_peepholes = false;
  size_t num_outputs = 2;
  Attributes attributes = {};
};

OpCall make(const std::string& op, const Form& form) {
  const bool is_lstm = op == "LSTM";
  const int64_t gates = is_lstm ? 4 : op == "GRU" ? 3 : 1;
  const bool is_both = form.attributes.get_string("direction", "forward") == "bidirectional";
  const bool is_batch_first = form.attributes.get_int("layout", 0) == 1;
  const int64_t d = is_both ? 2 : 1;
  const Dims state = is_batch_first ? Dims{kBatch, d, kHidden} : Dims{d, kBatch, kHidden};
  OpCall call;
  call.op = op;
  call.opset = 22;
  call.num_outputs = form.num_outputs;
  call.attributes = form.attributes;
  call.attributes.set("hidden_size", kHidden);
  call.inputs = {
      doubles(is_batch_first ? Dims{kBatch, form.steps, kInput} : Dims{form.steps, kBatch, kInput},
              1),
      doubles({d, gates * kHidden, kInput}, 2), doubles({d, gates * kHidden, kHidden}, 3)};
  if (form.has_state) call.inputs.push_back(doubles({d, 2 * gates * kHidden}, 4));
  call.inputs.resize(is_lstm ? 8 : 6, TestValue::omitted());
  if (form.has_lengths) {
    call.inputs[4] = TestTensor::of<int32_t>({kBatch}, {1, static_cast<int32_t>(form.steps)});
  }
  if (form.has_state) call.inputs[5] = doubles(state, 5);
  if (form.has_state && is_lstm) call.inputs[6] = doubles(state, 6);
  if (form.has_peepholes) call.inputs[7] = doubles({d, 3 * kHidden}, 7);
  return call;
}

Attributes directed(const char* direction, int64_t layout = 0) {
  return {{"direction", std::string(direction)}, {"layout", layout}};
}

// With static shapes; expect_gradient() is slow.
void expect_fixed(const OpCall& call) {
  auto loss = make_loss(call, Shapes::kStatic, 1);
  ASSERT_TRUE(loss.is_ok()) << loss.status().to_string();
  const auto gradient =
      differentiate(std::move(loss->graph), gradient_ops(), gradient_rules(), {.loss = "loss"});
  ASSERT_TRUE(gradient.is_ok()) << gradient.status().to_string();
  EXPECT_EQ(compare_with_differences(*gradient, loss->inputs, "loss", "", 1e-6), "");
}

class RecurrentTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override { printf("seed %llu\n", static_cast<unsigned long long>(kSeed)); }
  void expect(const Form& form) { expect_fixed(make(GetParam(), form)); }
};

TEST_P(RecurrentTest, StatesAndOutputs) {
  expect_gradient(make(GetParam(), {.has_state = false, .num_outputs = 1}));
  expect({.steps = 1});
  expect({.has_state = true, .num_outputs = GetParam() == std::string("LSTM") ? 3u : 2u});
}

TEST_P(RecurrentTest, DirectionsLayoutsAndLengths) {
  for (const char* direction : {"reverse", "bidirectional"}) {
    expect({.attributes = directed(direction)});
  }
  expect({.has_lengths = true, .attributes = directed("bidirectional", 1)});
  expect({.has_state = false, .has_lengths = true});
}

TEST_P(RecurrentTest, ClipsAndActivations) {
  expect({.attributes = {{"clip", 0.4f}}});
  const size_t count = GetParam() == std::string("LSTM")  ? 3
                       : GetParam() == std::string("GRU") ? 2
                                                          : 1;
  for (const char* f : {"Relu", "Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh",
                        "HardSigmoid", "Elu", "Softsign", "Softplus"}) {
    SCOPED_TRACE(f);
    const std::vector<std::string> names(count, f);
    Attributes attributes = {{"activations", names}};
    if (std::string(f) == "ThresholdedRelu") {
      attributes.set("activation_alpha", std::vector<float>(count, 0.1f));
    }
    expect({.attributes = attributes});
  }
}

INSTANTIATE_TEST_SUITE_P(All, RecurrentTest, ::testing::Values("RNN", "GRU", "LSTM"),
                         [](const auto& info) { return std::string(info.param); });

TEST(RecurrentFormsTest, CoupledGatesPeepholesAndTheLinearForm) {
  expect_fixed(make("LSTM", {.has_peepholes = true, .num_outputs = 3}));
  expect_fixed(make("LSTM", {.has_peepholes = true,
                             .attributes = {{"input_forget", int64_t{1}},
                                            {"direction", std::string("bidirectional")}}}));
  expect_fixed(make("GRU", {.attributes = {{"linear_before_reset", int64_t{1}},
                                           {"direction", std::string("reverse")}}}));
  expect_fixed(
      make("GRU", {.has_state = false, .attributes = {{"linear_before_reset", int64_t{1}}}}));
}

TEST(RecurrentFormsTest, CanBeDifferentiatedTwice) {
  expect_second_order(make("RNN", {.has_state = false, .num_outputs = 1}));
}

// Of fixed shapes: nothing that the loop keeps is pushed.
TEST(RecurrentFormsTest, StepsAreKeptAsRows) {
  auto loss = make_loss(make("LSTM", {}), Shapes::kStatic, 1);
  ASSERT_TRUE(loss.is_ok()) << loss.status().to_string();
  const auto gradient =
      differentiate(std::move(loss->graph), gradient_ops(), gradient_rules(), {.loss = "loss"});
  ASSERT_TRUE(gradient.is_ok()) << gradient.status().to_string();
  EXPECT_FALSE(gradient->report.kept.empty());
  for (const KeptReport& kept : gradient->report.kept) {
    EXPECT_NE(kept.kind, KeptClass::kPushed) << kept.value;
  }
  EXPECT_GT(std::ranges::count(gradient->report.kept, KeptClass::kRow, &KeptReport::kind), 0);
}

}  // namespace
}  // namespace eddy::testing
