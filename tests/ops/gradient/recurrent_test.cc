// Claim: gradients of RNN agree with central differences in double, for X, W, R, B and the initial
// state, by Y, by the last state and by both, over activations, one step and unknown shapes; and
// the forms without a rule are refused with what to do.
#include <gtest/gtest.h>

#include "tests/ops/gradient/gradient_check.h"

namespace eddy::testing {
namespace {

constexpr uint64_t kSeed = 20261128;
constexpr int64_t kBatch = 2, kInput = 3, kHidden = 4;

TestTensor doubles(const Dims& dims, uint64_t seed) {
  Random random(kSeed + seed);
  return TestTensor::random(ElementType::kDouble, dims, random, -1, 1);
}

OpCall rnn(int64_t steps, bool has_state, size_t num_outputs, Attributes attributes = {}) {
  OpCall call;
  call.op = "RNN";
  call.opset = 22;
  call.num_outputs = num_outputs;
  call.attributes = std::move(attributes);
  call.attributes.set("hidden_size", kHidden);
  call.inputs = {doubles({steps, kBatch, kInput}, 1), doubles({1, kHidden, kInput}, 2),
                 doubles({1, kHidden, kHidden}, 3)};
  if (has_state) {
    call.inputs.push_back(doubles({1, 2 * kHidden}, 4));
    call.inputs.push_back(TestValue::omitted());
    call.inputs.push_back(doubles({1, kBatch, kHidden}, 5));
  }
  return call;
}

TEST(RecurrentTest, RnnAgreesWithDifferences) {
  printf("seed %llu\n", static_cast<unsigned long long>(kSeed));
  for (const int64_t steps : {1, 4}) {
    for (const bool has_state : {false, true}) {
      for (const size_t num_outputs : {1, 2}) expect_gradient(rnn(steps, has_state, num_outputs));
    }
  }
  for (const char* f : {"Sigmoid", "Relu"}) {
    expect_gradient(rnn(3, true, 2, {{"activations", std::vector<std::string>{f}}}));
  }
}

TEST(RecurrentTest, OtherFormsAreRefused) {
  const auto refusal = [](const OpCall& call) -> std::string {
    auto loss = make_loss(call, Shapes::kStatic, 1);
    if (!loss.is_ok()) return loss.status().to_string();
    return differentiate(std::move(loss->graph), gradient_ops(), gradient_rules(), {.loss = "loss"})
        .status()
        .to_string();
  };
  EXPECT_EQ(refusal(rnn(2, true, 1, {{"direction", std::string("reverse")}})),
            "unsupported: at node: the gradient of RNN with direction=reverse is not known; "
            "reverse X and Y around it");
  EXPECT_EQ(refusal(rnn(2, true, 1, {{"clip", 3.0f}})),
            "unsupported: at node: the gradient of RNN with clip is not known; leave it out");
  OpCall lengths = rnn(2, true, 1);
  lengths.inputs[4] = TestTensor::of<int32_t>({kBatch}, {1, 2});
  EXPECT_EQ(refusal(lengths),
            "unsupported: at node: the gradient of RNN with sequence_lens is not known; mask the "
            "loss instead");
  EXPECT_EQ(refusal(rnn(2, true, 1, {{"activations", std::vector<std::string>{"Softsign"}}})),
            "unsupported: at node: the gradient of RNN is known with Tanh, Sigmoid and Relu only; "
            "use one of them");
}

}  // namespace
}  // namespace eddy::testing
