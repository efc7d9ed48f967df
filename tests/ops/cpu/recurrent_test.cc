// LSTM, GRU and RNN compute what the plain loops compute, for every direction, layout, optional
// input and attribute, with weights constant or not, and sequences of equal or different lengths.
#include <cmath>

#include <gtest/gtest.h>

#include "tests/ops/testing/op_runner.h"

namespace eddy::testing {
namespace {

constexpr double kRelative = 1e-4, kAbsolute = 2e-5;

struct Sizes {
  int64_t sequence, batch, input, hidden;
};

// An operator's call with random contents; optional inputs and attributes are added by the tests.
struct Call {
  OpCall call;
  Random random;
  Sizes sizes;
  int64_t gates, directions = 1;
  bool batch_first = false;

  Call(const std::string& op, Sizes sizes_in, uint64_t seed) : random(seed), sizes(sizes_in) {
    call.op = op;
    call.num_outputs = op == "LSTM" ? 3 : 2;
    gates = op == "LSTM" ? 4 : op == "GRU" ? 3 : 1;
  }

  void set(const char* name, AttributeValue value) { call.attributes.set(name, std::move(value)); }
  void set_direction(const std::string& direction) {
    set("direction", direction);
    directions = direction == "bidirectional" ? 2 : 1;
  }
  TestTensor floats(const Dims& dims) {
    return TestTensor::random(ElementType::kFloat, dims, random, -1, 1);
  }
  // Small enough that a recurrence does not amplify rounding.
  TestTensor weights(const Dims& dims) {
    const double bound = 1 / std::sqrt(static_cast<double>(sizes.hidden));
    return TestTensor::random(ElementType::kFloat, dims, random, -bound, bound);
  }
  Dims state() const {
    return batch_first ? Dims{sizes.batch, directions, sizes.hidden}
                       : Dims{directions, sizes.batch, sizes.hidden};
  }

  void add_weights() {
    set("hidden_size", sizes.hidden);
    set("layout", int64_t{batch_first});
    call.inputs = {floats(batch_first ? Dims{sizes.batch, sizes.sequence, sizes.input}
                                      : Dims{sizes.sequence, sizes.batch, sizes.input}),
                   weights({directions, gates * sizes.hidden, sizes.input}),
                   weights({directions, gates * sizes.hidden, sizes.hidden})};
  }
  void add_bias() { add(3, floats({directions, 2 * gates * sizes.hidden})); }
  void add_lengths() {
    add(4, TestTensor::random(ElementType::kInt32, {sizes.batch}, random, 0,
                              static_cast<double>(sizes.sequence)));
  }
  void add_states() {
    add(5, floats(state()));
    if (gates == 4) add(6, floats(state()));
  }
  void add_peepholes() {
    if (gates == 4) add(7, floats({directions, 3 * sizes.hidden}));
  }
  void add(size_t input, TestTensor tensor) {
    while (call.inputs.size() <= input) call.inputs.push_back(TestValue::omitted());
    call.inputs[input] = std::move(tensor);
  }

  void compare() {
    const auto expected = run_op(call, KernelSet::kReference);
    ASSERT_TRUE(expected.is_ok()) << expected.status().to_string();
    for (uint64_t constants : {0, 2, 4, 6}) {
      for (Known known : {Known::kShapes, Known::kRanks, Known::kNothing}) {
        call.constant_inputs = constants;
        call.known = known;
        const auto actual = run_op(call, KernelSet::kCpu);
        ASSERT_TRUE(actual.is_ok()) << actual.status().to_string();
        for (size_t o = 0; o < call.num_outputs; ++o) {
          EXPECT_TRUE(
              is_close((*actual)[o].tensor(), (*expected)[o].tensor(), kRelative, kAbsolute))
              << "output " << o << ", constants " << constants;
        }
      }
    }
  }
};

const char* const kOperators[] = {"LSTM", "GRU", "RNN"};

TEST(RecurrentTest, AgreesForEveryDirectionLayoutAndOptionalInput) {
  uint64_t seed = 0;
  for (const char* op : kOperators) {
    for (const char* direction : {"forward", "reverse", "bidirectional"}) {
      for (int options = 0; options < 32; ++options) {
        SCOPED_TRACE(std::string(op) + " " + direction + " options " + std::to_string(options) +
                     " seed " + std::to_string(++seed));
        Call call(op, {5, 3, 4, 7}, seed);
        call.batch_first = options & 1;
        call.set_direction(direction);
        call.add_weights();
        if (options & 2) call.add_bias();
        if (options & 4) call.add_lengths();
        if (options & 8) call.add_states();
        if (options & 16) call.add_peepholes();
        call.compare();
      }
    }
  }
}

TEST(RecurrentTest, AgreesOnSeededRandomSizes) {
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    for (const char* op : kOperators) {
      SCOPED_TRACE(std::string(op) + " seed " + std::to_string(seed));
      Random random(seed);
      const auto size = [&](uint64_t bound) {
        return static_cast<int64_t>(1 + random.below(bound));
      };
      Call call(op, {size(12), size(9), size(40), size(70)}, seed);
      call.batch_first = seed % 2;
      call.add_weights();
      call.add_bias();
      call.add_states();
      call.compare();
    }
  }
}

TEST(RecurrentTest, AgreesAtTheSizesOfAVoiceActivityModel) {
  Call call("LSTM", {1, 1, 128, 128}, 1);
  call.add_weights();
  call.add_bias();
  call.add_states();
  call.compare();
}

TEST(RecurrentTest, AgreesWhereStepsAreProjectedInSeveralBlocks) {
  for (const char* direction : {"forward", "reverse"}) {
    for (bool batch_first : {false, true}) {
      Call call("LSTM", {40, 20, 3, 65}, 2);
      call.batch_first = batch_first;
      call.set_direction(direction);
      call.add_weights();
      call.add_bias();
      call.compare();
    }
  }
}

TEST(RecurrentTest, AgreesWithClippingCoupledGatesAndALateReset) {
  for (const char* op : kOperators) {
    for (int options = 1; options < 8; ++options) {
      SCOPED_TRACE(std::string(op) + " options " + std::to_string(options));
      Call call(op, {4, 2, 5, 6}, static_cast<uint64_t>(options));
      if (options & 1) call.set("clip", 0.3f);
      if ((options & 2) && call.gates == 4) call.set("input_forget", int64_t{1});
      if ((options & 4) && call.gates == 3) call.set("linear_before_reset", int64_t{1});
      call.add_weights();
      call.add_bias();
      call.compare();
    }
  }
}

TEST(RecurrentTest, AgreesForEveryActivationFunction) {
  struct Function {
    const char* name;
    bool has_alpha, has_beta;
  };
  for (const auto& [name, has_alpha, has_beta] : {Function{"Sigmoid", false, false},
                                                  {"Tanh", false, false},
                                                  {"Relu", false, false},
                                                  {"Affine", true, true},
                                                  {"LeakyRelu", true, false},
                                                  {"ThresholdedRelu", true, false},
                                                  {"ScaledTanh", true, true},
                                                  {"HardSigmoid", true, true},
                                                  {"Elu", true, false},
                                                  {"Softsign", false, false},
                                                  {"Softplus", false, false}}) {
    for (const char* op : kOperators) {
      SCOPED_TRACE(std::string(op) + " " + name);
      Call call(op, {3, 2, 4, 5}, 9);
      const size_t count = call.gates == 4 ? 3 : call.gates == 3 ? 2 : 1;
      call.set("activations", std::vector<std::string>(count, name));
      if (has_alpha) call.set("activation_alpha", std::vector<float>{0.7f});
      if (has_beta) call.set("activation_beta", std::vector<float>{0.4f});
      call.add_weights();
      call.add_bias();
      call.compare();
    }
  }
}

TEST(RecurrentTest, ZeroSizesGiveEmptyResultsOrTheInitialState) {
  for (const char* op : kOperators) {
    for (const Sizes& sizes : {Sizes{0, 2, 3, 4}, Sizes{3, 0, 3, 4}, Sizes{3, 2, 0, 4}}) {
      Call call(op, sizes, 5);
      call.add_weights();
      call.add_states();
      call.compare();
    }
  }
}

TEST(RecurrentTest, LargeGatesSaturateAndNanStaysNan) {
  Call call("LSTM", {1, 1, 1, 3}, 6);
  call.add_weights();
  call.call.inputs[1] = TestTensor::of<float>(
      {1, 12, 1}, {1e30f, -1e30f, 90, 1e30f, -100, 0, 50, 1e30f, -90, -1e30f, 1e9f, 0.1f});
  call.call.inputs[0] = TestTensor::of<float>({1, 1, 1}, {1});
  call.compare();
  call.call.inputs[0] = TestTensor::of<float>({1, 1, 1}, {NAN});
  call.compare();
}

TEST(RecurrentTest, ASequenceLengthOutOfRangeIsAnErrorOfTheRun) {
  Call call("LSTM", {3, 2, 4, 5}, 7);
  call.add_weights();
  call.add(4, TestTensor::of<int32_t>({2}, {1, 4}));
  for (KernelSet kernels : {KernelSet::kReference, KernelSet::kCpu}) {
    const auto result = run_op(call.call, kernels);
    EXPECT_EQ(result.status().message(), "sequence_lens[1] is 4, out of range 0..3");
  }
}

std::string error_of(Call& call) { return infer_op(call.call).status().message(); }

TEST(RecurrentTest, SaysWhichRuleAnInputBreaks) {
  const auto fresh = [] {
    Call call("LSTM", {3, 2, 4, 5}, 8);
    call.add_weights();
    return call;
  };
  Call call = fresh();
  call.call.inputs[1] = TestTensor(ElementType::kFloat, {1, 19, 4});
  EXPECT_EQ(error_of(call), "W must have 4 times the hidden size on axis 1, not [1,19,4]");
  call = fresh();
  call.call.inputs[2] = TestTensor(ElementType::kFloat, {1, 20, 6});
  EXPECT_EQ(error_of(call), "R must have size 5 on axis 2, not [1,20,6]");
  call = fresh();
  call.call.inputs[1] = TestTensor(ElementType::kFloat, {2, 20, 4});
  EXPECT_EQ(error_of(call), "W must have size 1 on axis 0, not [2,20,4]");
  call = fresh();
  call.call.inputs[0] = TestTensor(ElementType::kFloat, {3, 2});
  EXPECT_EQ(error_of(call), "X must have 3 dimensions, not [3,2]");
  call = fresh();
  call.add(3, TestTensor(ElementType::kFloat, {1, 32}));
  EXPECT_EQ(error_of(call), "B must have 8 x 5 values on axis 1, not [1,32]");
  call = fresh();
  call.set("direction", std::string("sideways"));
  EXPECT_EQ(error_of(call), "direction must be forward, reverse or bidirectional, not sideways");
  call = fresh();
  call.set("activations", std::vector<std::string>{"Tanh"});
  EXPECT_EQ(error_of(call), "activations must name 3 functions, not 1");
  call.set("activations", std::vector<std::string>{"Tanh", "Tanh", "Gauss"});
  EXPECT_EQ(error_of(call), "activations: unknown function Gauss");
}

}  // namespace
}  // namespace eddy::testing
