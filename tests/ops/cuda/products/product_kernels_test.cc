// Claim: our own products and recurrences on CUDA give the reference's values within the rounding
// of their sums (exactly, for integers), whatever the shapes, strides and batches.
#include "tests/ops/cuda/host/kernel_fixture.h"
#include "tests/ops/testing/permuted_calls.h"

namespace eddy::testing {
namespace {

using ::testing::HasSubstr;

class CudaProductTest : public CudaKernelFixture {
 protected:
  double tolerance(ElementType element) const {
    return element == ElementType::kDouble ? 1e-12 : is_half(element) ? 2e-2 : 1e-5;
  }
  // LSTM, GRU or RNN with every optional input.
  OpCall make_recurrent(const std::string& op, ElementType element, int64_t directions,
                        int64_t layout) {
    const int64_t steps = 5, batch = 3, input = 7, hidden = 11;
    const int64_t gates = op == "LSTM" ? 4 : op == "GRU" ? 3 : 1;
    const Dims state =
        layout != 0 ? Dims{batch, directions, hidden} : Dims{directions, batch, hidden};
    const auto weights = [&](const Dims& dims) { return random(element, dims, -0.5, 0.5); };
    std::vector<TestValue> inputs = {
        weights(layout != 0 ? Dims{batch, steps, input} : Dims{steps, batch, input}),
        weights({directions, gates * hidden, input}),
        weights({directions, gates * hidden, hidden}),
        weights({directions, 2 * gates * hidden}),
        TestTensor::of<int32_t>({batch}, {5, 0, 3}),
        weights(state)};
    if (op == "LSTM") {
      inputs.push_back(weights(state));
      inputs.push_back(weights({directions, 3 * hidden}));
    }
    OpCall call = make_call(op, inputs);
    call.num_outputs = op == "LSTM" ? 3 : 2;
    call.attributes.set("hidden_size", hidden);
    call.attributes.set("layout", layout);
    call.attributes.set("direction", std::string(directions == 2 ? "bidirectional" : "forward"));
    return call;
  }
};

TEST_F(CudaProductTest, ProductsOfEveryShapeAreTheReferences) {
  const std::pair<Dims, Dims> shapes[] = {
      {{1, 37}, {37, 100}},   {{3, 37}, {37, 5}},
      {{70, 37}, {37, 3}},    {{65, 17}, {17, 66}},
      {{130, 16}, {16, 64}},  {{37}, {37, 5}},
      {{5, 37}, {37}},        {{9}, {9}},
      {{2, 3, 5, 7}, {7, 9}}, {{2, 3, 5, 7}, {3, 7, 9}},
      {{5, 7}, {2, 3, 7, 9}}, {{2, 1, 5, 7}, {1, 3, 7, 9}},
      {{4, 0}, {0, 6}},       {{0, 4}, {4, 6}},
      {{3, 1, 12}, {12, 40}},
  };
  for (const auto& [a, b] : shapes) {
    for (const ElementType element : kCudaFloats) {
      compare(make_call("MatMul", {random(element, a, -1, 1), random(element, b, -1, 1)}),
              tolerance(element), tolerance(element));
    }
    for (const ElementType element : {ElementType::kInt32, ElementType::kUint64}) {
      compare(make_call("MatMul", {random(element, a, 0, 90), random(element, b, 0, 90)}));
    }
  }
}

TEST_F(CudaProductTest, PermutedProductsWithBiasAndAddendAreTheReferences) {
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const ElementType element = kCudaFloats[round % 4];
    const double within = tolerance(element);
    compare_ranked(random_permuted_call(element, random_).call(), within, within);
  }
}

TEST_F(CudaProductTest, OperandsThatLieInLargerTensorsAreReadThere) {
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE("round " + std::to_string(round));
    const ElementType element = kCudaFloats[round % 4];
    const double within = tolerance(element);
    const OpCall call = random_placed_call(element, random_, 40).call();
    const auto expected = run_op(call, KernelSet::kReference), actual = run_op(call, registry_);
    ASSERT_TRUE(expected.is_ok()) << expected.status().to_string();
    ASSERT_TRUE(actual.is_ok()) << actual.status().to_string();
    EXPECT_TRUE(is_close((*actual)[0].tensor(), (*expected)[0].tensor(), within, within));
  }
}

TEST_F(CudaProductTest, GemmTransposesScalesAndAddsWhatIsBroadcast) {
  for (const ElementType element : {ElementType::kFloat, ElementType::kFloat16}) {
    for (const int64_t transposes_a : {0, 1}) {
      for (const int64_t transposes_b : {0, 1}) {
        for (const auto& [m, n, k] :
             {std::tuple<int64_t, int64_t, int64_t>{2, 70, 33}, {70, 2, 33}, {66, 65, 18}}) {
          for (const Dims& c : {Dims{}, Dims{n}, Dims{m, 1}, Dims{m, n}}) {
            OpCall call =
                make_call("Gemm", {random(element, transposes_a ? Dims{k, m} : Dims{m, k}, -1, 1),
                                   random(element, transposes_b ? Dims{n, k} : Dims{k, n}, -1, 1),
                                   random(element, c, -1, 1)});
            call.attributes.set("transA", transposes_a);
            call.attributes.set("transB", transposes_b);
            call.attributes.set("alpha", 0.5f);
            call.attributes.set("beta", 1.5f);
            compare(call, tolerance(element), tolerance(element));
          }
        }
      }
    }
  }
  OpCall scaled = make_call("Gemm", {random(ElementType::kInt32, {2, 2}, 0, 9),
                                     random(ElementType::kInt32, {2, 2}, 0, 9)});
  compare(scaled);
  scaled.attributes.set("alpha", 0.5f);
  EXPECT_THAT(refusal(scaled), HasSubstr("factors of integer products"));
}

TEST_F(CudaProductTest, BytesLessTheirZeroPointsMultiplyExactly) {
  for (const ElementType a : {ElementType::kInt8, ElementType::kUint8}) {
    for (const ElementType b : {ElementType::kInt8, ElementType::kUint8}) {
      for (const int64_t rows : {2, 67}) {
        OpCall call = make_call("MatMulInteger",
                                {random(a, {rows, 40}, 0, 127), random(b, {40, 35}, 0, 127)});
        compare(call);
        call.inputs.push_back(random(a, {}, 0, 127));
        call.inputs.push_back(random(b, {35}, 0, 127));
        compare(call);
        call.inputs[2] = random(a, {rows}, 0, 127);
        compare(call);
      }
      compare(
          make_call("MatMulInteger", {random(a, {3, 5, 8}, 0, 127), random(b, {3, 8, 6}, 0, 127),
                                      random(a, {5}, 0, 127), random(b, {}, 0, 127)}));
      compare(make_call("MatMulInteger", {random(a, {3, 5, 8}, 0, 127), random(b, {8, 6}, 0, 127),
                                          random(a, {5}, 0, 127)}));
    }
    for (const Dims& scale : {Dims{}, Dims{35}}) {
      OpCall call =
          make_call("DequantizeMatMul",
                    {random(ElementType::kFloat, {2, 3, 40}, -1, 1), random(a, {40, 35}, 0, 127),
                     random(ElementType::kFloat, scale, 0.01, 0.02), random(a, scale, 0, 127)});
      call.domain = "eddy";
      call.opset = 1;
      compare(call, 1e-4, 1e-4);
    }
  }
}

TEST_F(CudaProductTest, RecurrencesAreTheReferencesInBothDirectionsAndLayouts) {
  for (const char* op : {"LSTM", "GRU", "RNN"}) {
    for (const ElementType element : kCudaFloats) {
      for (const int64_t directions : {1, 2}) {
        for (const int64_t layout : {0, 1}) {
          OpCall call = make_recurrent(op, element, directions, layout);
          compare(call, tolerance(element), tolerance(element));
          call.attributes.set("clip", 0.3f);
          compare(call, tolerance(element), tolerance(element));
        }
      }
    }
  }
}

TEST_F(CudaProductTest, RecurrencesTakeTheirAttributesAndLeaveInputsOut) {
  OpCall gru = make_recurrent("GRU", ElementType::kFloat, 2, 0);
  gru.attributes.set("linear_before_reset", int64_t{1});
  compare(gru, 1e-5, 1e-5);
  OpCall lstm = make_recurrent("LSTM", ElementType::kFloat, 1, 0);
  lstm.attributes.set("input_forget", int64_t{1});
  lstm.attributes.set("direction", std::string("reverse"));
  compare(lstm, 1e-5, 1e-5);
  lstm.inputs.resize(3);
  compare(lstm, 1e-5, 1e-5);
  for (const char* activation : {"Relu", "Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh",
                                 "HardSigmoid", "Elu", "Softsign", "Softplus", "Sigmoid", "Tanh"}) {
    OpCall rnn = make_recurrent("RNN", ElementType::kFloat, 1, 0);
    rnn.attributes.set("activations", std::vector<std::string>{activation});
    const std::string name = activation;
    const bool has_both = name == "Affine" || name == "ScaledTanh" || name == "HardSigmoid";
    if (has_both || name == "LeakyRelu" || name == "ThresholdedRelu" || name == "Elu") {
      rnn.attributes.set("activation_alpha", std::vector<float>{0.3f});
    }
    if (has_both) rnn.attributes.set("activation_beta", std::vector<float>{0.4f});
    compare(rnn, 1e-5, 1e-5);
  }
}

TEST_F(CudaProductTest, SequencesOfNoStepsKeepTheirStateAndWrongLengthsAreReported) {
  for (const char* op : {"LSTM", "GRU", "RNN"}) {
    OpCall call = make_recurrent(op, ElementType::kFloat, 2, 0);
    call.inputs[0] = random(ElementType::kFloat, {0, 3, 7}, 0, 1);
    call.inputs[4] = TestValue::omitted();
    compare(call);
    call = make_recurrent(op, ElementType::kFloat, 1, 0);
    call.inputs[4] = TestTensor::of<int32_t>({3}, {5, 6, 3});
    EXPECT_EQ(refusal(call), "sequence length 6 is out of range 0..5");  // the kernel's finding
    call.constant_inputs = uint64_t{1} << 4;
    EXPECT_EQ(refusal(call), "sequence_lens[1] is 6, out of range 0..5");
  }
}

}  // namespace
}  // namespace eddy::testing
