// long: each operator has its own cases.
// Claim: each gradient rule agrees with central differences in double to 1e-6 relative, for every
// input of floating-point type, over attributes, opset forms, broadcasting, and shapes that are
// known, symbolic, unknown or without rank; at kinks it has the value that its table states.
#include <gtest/gtest.h>

#include "tests/ops/gradient/gradient_check.h"

namespace eddy::testing {
namespace {

using Ints = std::vector<int64_t>;

constexpr uint64_t kSeed = 20261127;

TestTensor doubles(const Dims& dims, double low = -2, double high = 2, uint64_t seed = kSeed) {
  Random random(seed + static_cast<uint64_t>(dims.rank() * 31));
  return TestTensor::random(ElementType::kDouble, dims, random, low, high);
}
TestTensor ints(const Ints& values) {
  return TestTensor::of<int64_t>({static_cast<int64_t>(values.size())}, values);
}
TestTensor places(const Dims& dims, const Ints& values) {
  return TestTensor::of<int64_t>(dims, values);
}
TestTensor truths(const Dims& dims, uint64_t seed = kSeed) {
  Random random(seed);
  return TestTensor::random(ElementType::kBool, dims, random, 0, 1);
}

// Inputs of integers are constants where the bits say so.
OpCall make(const char* op, std::vector<TestValue> inputs, Attributes attributes = {},
            int opset = 22, uint64_t constants = 0, size_t num_outputs = 1) {
  OpCall call;
  call.op = op;
  call.opset = opset;
  call.inputs = std::move(inputs);
  call.attributes = std::move(attributes);
  call.constant_inputs = constants;
  call.num_outputs = num_outputs;
  return call;
}

// As given, and with the integers known while the graph is built.
void expect_both(OpCall call, uint64_t constants) {
  expect_gradient(call);
  call.constant_inputs = constants;
  expect_gradient(call);
}

class RulesTest : public ::testing::Test {
 protected:
  void SetUp() override { printf("seed %llu\n", static_cast<unsigned long long>(kSeed)); }
};

TEST_F(RulesTest, OperatorsOfOneInput) {
  for (const char* op :
       {"Abs",      "Neg",        "Relu",    "LeakyRelu", "Elu",    "Celu",
        "Selu",     "Exp",        "Sigmoid", "Tanh",      "Sin",    "Cos",
        "Atan",     "Sinh",       "Cosh",    "Asinh",     "Erf",    "Softplus",
        "Softsign", "HardSwish",  "Mish",    "Gelu",      "Shrink", "ThresholdedRelu",
        "Identity", "Reciprocal", "Tan"}) {
    expect_gradient(make(op, {doubles({3, 4}, -1.4, 1.4)}));
  }
  for (const char* op : {"Log", "Sqrt"}) expect_gradient(make(op, {doubles({5}, 0.3, 3)}));
  for (const char* op : {"Asin", "Acos", "Atanh"}) {
    expect_gradient(make(op, {doubles({5}, -0.8, 0.8)}));
  }
  expect_gradient(make("Acosh", {doubles({5}, 1.3, 3)}));
  expect_gradient(make("HardSwish", {doubles({9}, -6, 6)}));
  expect_gradient(make("HardSigmoid", {doubles({9}, -5, 5)}, {{"alpha", 0.3f}, {"beta", 0.4f}}));
  expect_gradient(make("Swish", {doubles({5})}, {{"alpha", 1.5f}}, 24));
  expect_gradient(make("Gelu", {doubles({5})}, {{"approximate", std::string("tanh")}}));
  expect_gradient(make("LeakyRelu", {doubles({5})}, {{"alpha", 0.3f}}));
  expect_gradient(make("Elu", {doubles({5})}, {{"alpha", 0.7f}}));
  expect_gradient(make("Celu", {doubles({5})}, {{"alpha", 0.7f}}));
  expect_gradient(make("Selu", {doubles({5})}, {{"alpha", 1.2f}, {"gamma", 0.9f}}));
  expect_gradient(make("Shrink", {doubles({9})}, {{"lambd", 0.8f}, {"bias", 0.3f}}));
}

TEST_F(RulesTest, BinaryOperatorsAddUpWhatWasBroadcast) {
  const std::pair<Dims, Dims> shapes[] = {{{2, 3}, {2, 3}}, {{2, 3}, {3}}, {{3}, {2, 3}},
                                          {{2, 1}, {1, 3}}, {{}, {2, 3}},  {{2, 1, 3}, {4, 1}}};
  for (const auto& [a, b] : shapes) {
    for (const char* op : {"Add", "Sub", "Mul", "Div", "Pow", "Max", "Min", "Sum", "Mean"}) {
      expect_gradient(make(op, {doubles(a, 0.5, 2), doubles(b, 0.6, 2.2, kSeed + 1)}));
    }
  }
  expect_gradient(make("Max", {doubles({2, 3}), doubles({3}, -2, 2, 5), doubles({1}, -2, 2, 6)}));
  expect_gradient(make("Mod", {doubles({2, 3}, 3, 9), doubles({3}, 1, 2)}, {{"fmod", int64_t{1}}}));
  expect_gradient(make("PRelu", {doubles({2, 3}), doubles({3}, 0.1, 0.9)}));
  expect_gradient(make("Where", {truths({2, 3}), doubles({3}), doubles({2, 1}, -2, 2, 9)}));
  expect_gradient(make("Clip", {doubles({9}), TestTensor::scalar(-0.7), TestTensor::scalar(0.9)}));
  expect_gradient(make("Clip", {doubles({9}), TestValue::omitted(), TestTensor::scalar(0.9)}));
  expect_gradient(make("Clip", {doubles({9})}, {{"min", -0.7f}, {"max", 0.9f}}, 6));
  expect_gradient(make("Add", {doubles({2, 3}), doubles({2, 3})}, {}, 6));
  const Attributes stretch = {{"broadcast", int64_t{1}}, {"axis", int64_t{0}}};
  expect_gradient(make("Mul", {doubles({2, 3}), doubles({2}, -2, 2, 5)}, stretch, 6));
  expect_gradient(make("PRelu", {doubles({2, 3, 2}), doubles({3}, 0.1, 0.9)}, {}, 6));
  expect_gradient(make("CastLike", {doubles({4}), doubles({2})}));
}

TEST_F(RulesTest, ReductionsByAttributeAndByInput) {
  for (const char* op :
       {"ReduceSum", "ReduceMean", "ReduceMax", "ReduceMin", "ReduceProd", "ReduceL1", "ReduceL2",
        "ReduceSumSquare", "ReduceLogSum", "ReduceLogSumExp"}) {
    const TestTensor x = doubles({2, 3, 2}, 0.4, 2);
    for (const int64_t keeps : {0, 1}) {
      const Attributes keep = {{"keepdims", keeps}};
      expect_both(make(op, {x, ints({-1, 0})}, keep), 2);
      expect_gradient(make(op, {x}, keep));
      expect_gradient(make(op, {x}, {{"keepdims", keeps}, {"axes", Ints{1}}}, 12));
      expect_gradient(make(op, {x}, {{"keepdims", keeps}, {"noop_with_empty_axes", int64_t{1}}}));
    }
  }
  for (const int64_t exclusive : {0, 1}) {
    for (const int64_t reverse : {0, 1}) {
      expect_both(make("CumSum", {doubles({2, 4}), TestTensor::scalar(int64_t{1})},
                       {{"exclusive", exclusive}, {"reverse", reverse}}),
                  2);
    }
  }
}

TEST_F(RulesTest, AProductWithZerosHasTheProductOfTheOthers) {
  const TestTensor x = TestTensor::of<double>({3, 3}, {2, 0, 5, 0, 0, 3, 2, 3, 4});
  expect_gradient(make("ReduceProd", {x, ints({1})}));
}

TEST_F(RulesTest, ProductsOfEveryRank) {
  const std::pair<Dims, Dims> shapes[] = {
      {{2, 3}, {3, 4}},    {{5, 2, 3}, {3, 4}},    {{5, 2, 3}, {5, 3, 4}},
      {{2, 3}, {5, 3, 4}}, {{1, 2, 3}, {5, 3, 4}}, {{2, 1, 2, 3}, {4, 3, 2}},
      {{3}, {3}},          {{3}, {3, 4}},          {{2, 3}, {3}},
      {{5, 2, 3}, {3}},    {{3}, {5, 3, 4}}};
  for (const auto& [a, b] : shapes) expect_gradient(make("MatMul", {doubles(a), doubles(b)}));
  for (const int64_t a : {0, 1}) {
    for (const int64_t b : {0, 1}) {
      const Attributes flags = {{"transA", a}, {"transB", b}, {"alpha", 0.5f}, {"beta", 2.0f}};
      const TestTensor left = doubles(a ? Dims{3, 2} : Dims{2, 3});
      const TestTensor right = doubles(b ? Dims{4, 3} : Dims{3, 4});
      for (const Dims& addend : {Dims{4}, Dims{2, 1}, Dims{2, 4}, Dims{}}) {
        expect_gradient(make("Gemm", {left, right, doubles(addend)}, flags));
      }
      expect_gradient(make("Gemm", {left, right}, flags));
    }
  }
}

TEST_F(RulesTest, MovingOperatorsMoveBack) {
  const TestTensor x = doubles({2, 3, 4});
  expect_both(make("Reshape", {x, ints({4, -1})}), 2);
  expect_gradient(make("Flatten", {x}, {{"axis", int64_t{2}}}));
  expect_both(make("Squeeze", {doubles({2, 1, 3}), ints({1})}), 2);
  expect_both(make("Unsqueeze", {x, ints({0, -1})}), 2);
  expect_gradient(make("Squeeze", {doubles({2, 1, 3})}, {{"axes", Ints{1}}}, 11));
  expect_gradient(make("Transpose", {x}, {{"perm", Ints{2, 0, 1}}}));
  expect_gradient(make("Transpose", {x}));
  expect_both(make("Expand", {doubles({3, 1}), ints({2, 3, 4})}), 2);
  expect_both(make("Tile", {x, ints({2, 1, 3})}), 2);
  expect_gradient(
      make("Concat", {x, doubles({2, 1, 4}), doubles({2, 2, 4})}, {{"axis", int64_t{-2}}}));
  expect_gradient(make("Split", {x, ints({1, 3})}, {{"axis", int64_t{2}}}, 22, 0, 2));
  expect_gradient(make("Split", {x}, {{"axis", int64_t{-1}}}, 11, 0, 2));
  expect_gradient(
      make("Trilu", {doubles({3, 4}), TestTensor::scalar(int64_t{1})}, {{"upper", int64_t{0}}}));
  expect_gradient(make("DepthToSpace", {doubles({1, 8, 2, 3})}, {{"blocksize", int64_t{2}}}));
  expect_gradient(make("DepthToSpace", {doubles({1, 8, 2, 3})},
                       {{"blocksize", int64_t{2}}, {"mode", std::string("CRD")}}));
  expect_gradient(make("SpaceToDepth", {doubles({1, 2, 4, 6})}, {{"blocksize", int64_t{2}}}));
  expect_gradient(make("ReverseSequence", {doubles({4, 2}), ints({3, 2})},
                       {{"batch_axis", int64_t{1}}, {"time_axis", int64_t{0}}}));
  expect_gradient(make("Dropout", {x}));
}

TEST_F(RulesTest, SlicesAndPads) {
  const TestTensor x = doubles({4, 5});
  expect_both(make("Slice", {x, ints({1, -3}), ints({3, 100}), ints({0, 1})}), 14);
  expect_both(make("Slice", {x, ints({1}), ints({3})}), 6);
  expect_both(make("Slice", {x, ints({-1, 0}), ints({-100, 5}), ints({1, 0}), ints({-2, 3})}), 30);
  expect_gradient(
      make("Slice", {x}, {{"starts", Ints{1}}, {"ends", Ints{4}}, {"axes", Ints{1}}}, 9));
  expect_both(make("Pad", {x, ints({1, 0, 2, 3}), TestTensor::scalar(0.5)}), 2);
  expect_both(make("Pad", {x, ints({-1, 0, 2, -1})}), 2);
  expect_both(make("Pad", {x, ints({1, 2}), TestValue::omitted(), ints({1})}), 10);
  for (const char* mode : {"reflect", "edge", "wrap"}) {
    expect_both(make("Pad", {x, ints({1, 0, 2, 3})}, {{"mode", std::string(mode)}}), 2);
  }
  expect_gradient(make("Pad", {x}, {{"pads", Ints{1, 0, 2, 3}}}, 10));
}

TEST_F(RulesTest, GatheringAddsWhereOnePlaceIsReadTwice) {
  const TestTensor x = doubles({3, 4, 2});
  expect_both(make("Gather", {x, places({2, 2}, {0, 2, 2, -1})}), 2);
  expect_both(make("Gather", {x, places({2, 2}, {0, 3, 3, -1})}, {{"axis", int64_t{1}}}), 2);
  expect_gradient(make("Gather", {x, places({}, {1})}, {{"axis", int64_t{-1}}}));
  expect_gradient(make("GatherElements", {doubles({3, 2}), places({2, 2}, {0, 2, 2, -1})}));
  expect_gradient(make("GatherND", {x, places({3, 2}, {0, 1, 2, 3, 0, 1})}));
  for (const char* reduction : {"none", "add"}) {
    const Attributes how = {{"reduction", std::string(reduction)}};
    expect_gradient(make("ScatterElements",
                         {doubles({3, 2}), places({2, 2}, {0, 2, 1, 0}), doubles({2, 2})}, how));
    expect_gradient(
        make("ScatterND", {x, places({2, 1}, {0, 2}), doubles({2, 4, 2}, -2, 2, 4)}, how));
  }
  expect_gradient(make("Compress",
                       {doubles({3, 4}), TestTensor::of<bool>({3}, {true, false, true})},
                       {{"axis", int64_t{0}}}));
  expect_gradient(make("TopK", {doubles({3, 5}), ints({2})}, {{"axis", int64_t{1}}}, 22, 0, 2));
}

TEST_F(RulesTest, Normalizations) {
  for (const char* op : {"Softmax", "LogSoftmax"}) {
    expect_gradient(make(op, {doubles({2, 3, 2})}));
    expect_gradient(make(op, {doubles({2, 3, 2})}, {{"axis", int64_t{1}}}));
    expect_gradient(make(op, {doubles({2, 3, 2})}, {{"axis", int64_t{1}}}, 11));
  }
  const TestTensor x = doubles({2, 3, 4}), by_channel = doubles({3}, 0.5, 2);
  const Attributes from1 = {{"axis", int64_t{1}}};
  expect_gradient(make("LayerNormalization", {x, doubles({4}), doubles({4})}));
  expect_gradient(make("LayerNormalization", {x, doubles({3, 4})}, from1));
  expect_gradient(make("RMSNormalization", {x, doubles({4})}, {}, 23));
  expect_gradient(make("InstanceNormalization", {x, by_channel, doubles({3})}));
  const std::vector<TestValue> batch = {x, by_channel, doubles({3}), doubles({3}, -1, 1, 7),
                                        doubles({3}, 0.5, 2, 8)};
  expect_gradient(make("BatchNormalization", batch));
  expect_gradient(
      make("BatchNormalization", {doubles({4, 3}), batch[1], batch[2], batch[3], batch[4]}));
}

TEST_F(RulesTest, TrainingModes) {
  const std::vector<TestValue> batch = {doubles({3, 2, 4}), doubles({2}, 0.5, 2, 3),
                                        doubles({2}, -1, 1, 4), doubles({2}, -1, 1, 7),
                                        doubles({2}, 0.5, 2, 8)};
  const Attributes trains = {{"training_mode", int64_t{1}}, {"momentum", 0.7f}};
  expect_gradient(make("BatchNormalization", batch, trains));
  expect_gradient(make("BatchNormalization", batch, trains, 15, 0, 3));
  std::vector<TestValue> rows = batch;
  rows[0] = doubles({5, 2});
  expect_gradient(make("BatchNormalization", rows, trains, 14, 0, 3));
  expect_gradient(make("Dropout", {doubles({4, 3})}, {{"ratio", 0.3f}}, 6, 0, 2));
  expect_gradient(make("Dropout", {doubles({4, 3})}, {{"is_test", int64_t{1}}}, 6));
  const Attributes seeded = {{"seed", int64_t{5}}};
  for (const bool is_on : {true, false}) {
    const TestTensor training = TestTensor::of<bool>({}, {is_on});
    expect_both(
        make("Dropout", {doubles({4, 3}), TestTensor::scalar(0.3f), training}, seeded, 22, 0, 2),
        6);
    expect_both(
        make("Dropout", {doubles({4, 3}), TestValue::omitted(), training}, seeded, 12, 0, 2), 4);
  }
}

TEST_F(RulesTest, Convolutions) {
  struct Case {
    Dims x, w;
    Attributes attributes;
  };
  const Case cases[] = {
      {{2, 3, 5, 4}, {4, 3, 3, 2}, {}},
      {{1, 2, 6, 7}, {2, 2, 3, 3}, {{"strides", Ints{2, 3}}, {"pads", Ints{1, 0, 2, 1}}}},
      {{1, 2, 7}, {3, 2, 2}, {{"dilations", Ints{2}}, {"strides", Ints{2}}}},
      {{2, 4, 5, 5}, {6, 2, 2, 2}, {{"group", int64_t{2}}, {"strides", Ints{2, 2}}}},
      {{1, 2, 5}, {2, 1, 3}, {{"group", int64_t{2}}, {"auto_pad", std::string("SAME_UPPER")}}},
  };
  for (const Case& c : cases) {
    expect_gradient(make("Conv", {doubles(c.x), doubles(c.w), doubles({c.w[0]})}, c.attributes));
  }
  const Case transposed[] = {
      {{2, 3, 4}, {3, 2, 3}, {{"strides", Ints{2}}, {"pads", Ints{1, 0}}}},
      {{1, 4, 3, 3}, {4, 2, 2, 2}, {{"group", int64_t{2}}, {"dilations", Ints{2, 1}}}},
      {{1, 2, 3}, {2, 2, 3}, {{"strides", Ints{3}}, {"output_padding", Ints{2}}}},
  };
  for (const Case& c : transposed) {
    expect_gradient(make("ConvTranspose", {doubles(c.x), doubles(c.w)}, c.attributes));
  }
}

TEST_F(RulesTest, Pools) {
  const TestTensor x = doubles({2, 2, 5, 4});
  const Attributes plain = {{"kernel_shape", Ints{2, 3}}, {"strides", Ints{2, 1}}};
  const Attributes padded = {{"kernel_shape", Ints{3, 2}}, {"pads", Ints{1, 0, 1, 1}}};
  const Attributes counted = {
      {"kernel_shape", Ints{3, 2}}, {"pads", Ints{1, 0, 1, 1}}, {"count_include_pad", int64_t{1}}};
  for (const Attributes& attributes : {plain, padded}) {
    expect_gradient(make("MaxPool", {x}, attributes));
    expect_gradient(make("AveragePool", {x}, attributes));
    // By places that the model itself asks for, in either order.
    for (const int64_t order : {0, 1}) {
      Attributes ordered = attributes;
      ordered.set("storage_order", order);
      OpCall call = make("MaxPool", {x}, ordered);
      call.num_outputs = 2;
      expect_gradient(call);
    }
  }
  expect_gradient(make("MaxPool", {doubles({1, 2, 3, 2, 4})},
                       {{"kernel_shape", Ints{2, 2, 2}}, {"storage_order", int64_t{1}}}));
  expect_gradient(make("AveragePool", {x}, counted));
  // Rounded up: the last windows reach beyond the image, or begin behind it and see nothing.
  for (const int64_t counts_padding : {0, 1}) {
    for (const Ints& pads : {Ints{0, 0, 0, 0}, Ints{1, 0, 1, 1}, Ints{0, 1, 1, 0}}) {
      for (const Ints& dilations : {Ints{1, 1}, Ints{1, 2}}) {
        expect_gradient(make("AveragePool", {x},
                             {{"kernel_shape", Ints{3, 2}},
                              {"strides", Ints{3, 3}},
                              {"pads", pads},
                              {"dilations", dilations},
                              {"ceil_mode", int64_t{1}},
                              {"count_include_pad", counts_padding}},
                             19));
      }
    }
    expect_gradient(make("AveragePool", {doubles({1, 1, 4})},
                         {{"kernel_shape", Ints{3}},
                          {"strides", Ints{4}},
                          {"pads", Ints{0, 2}},
                          {"ceil_mode", int64_t{1}},
                          {"count_include_pad", counts_padding}},
                         19));
  }
  expect_gradient(make("GlobalAveragePool", {x}));
  expect_gradient(make("GlobalMaxPool", {x}));
}

int count_nodes(const Graph& graph, std::string_view op) {
  int count = 0;
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    const Node& node = graph.node(NodeId(n));
    count += node.kind == NodeKind::kExec && node.op->name == op;
  }
  return count;
}

// The way back asks the forward pass for the maxima's places, in the model's own opset.
TEST_F(RulesTest, APoolAndAConvolutionAreNotMadeTwiceOrTooLarge) {
  GraphBuilder b(gradient_ops());
  b.set_opset("", 13);
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {1, 2, 6, 6}));
  const Value w = b.input("w", tensor_type(ElementType::kFloat, {3, 2, 3, 3}));
  const Value y = b.op("Conv", {x, w}, {{"pads", Ints{1, 1, 1, 1}}});
  const Value pooled = b.op("MaxPool", {y}, {{"kernel_shape", Ints{2, 2}}});
  b.output("loss", b.op("ReduceSum", {pooled}, {{"keepdims", int64_t{0}}}));
  auto graph = b.finish();
  ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
  const auto made =
      differentiate(std::move(*graph), gradient_ops(), gradient_rules(), {.loss = "loss"});
  ASSERT_TRUE(made.is_ok()) << made.status().to_string();
  EXPECT_EQ(count_nodes(made->graph, "MaxPool"), 1);
  EXPECT_EQ(count_nodes(made->graph, "Conv"), 3);
  EXPECT_EQ(count_nodes(made->graph, "ConvTranspose"), 0);
  for (uint32_t n = 0; n < made->graph.num_nodes(); ++n) {
    const Node& node = made->graph.node(NodeId(n));
    if (node.kind == NodeKind::kExec && node.op->name == "MaxPool") {
      EXPECT_EQ(node.opset_version, 13);
    }
  }
}

// Relu of the largest: the same values and adjoints by fewer comparisons. Where a window might be
// empty, or the Relu stands outside of the loop, it stays.
TEST_F(RulesTest, APoolOfWhatReluMakesComparesTheLargestAlone) {
  const TestTensor x = doubles({2, 3, 6, 5});
  const auto made = [&](const Attributes& pool, std::string_view clipped_by) {
    GraphBuilder b(gradient_ops());
    const Value given = b.input("x", tensor_type(ElementType::kDouble, {2, 3, 6, 5}));
    const Value zero = b.scalar(0.0);
    const Value y = clipped_by == "Relu"
                        ? b.op("Relu", {given})
                        : b.op("Where", {b.op("Greater", {given, zero}), given, zero});
    const Value pooled = b.op("MaxPool", {y}, pool);
    const Value loss =
        b.op("ReduceSum", {b.op("Mul", {pooled, pooled})}, {{"keepdims", int64_t{0}}});
    b.output("loss", loss);
    auto graph = b.finish();
    EXPECT_TRUE(graph.is_ok()) << graph.status().to_string();
    auto gradient =
        differentiate(std::move(*graph), gradient_ops(), gradient_rules(), {.loss = "loss"});
    EXPECT_TRUE(gradient.is_ok()) << gradient.status().to_string();
    return std::move(gradient->graph);
  };
  struct Case {
    Attributes pool;
    bool is_moved;
  };
  const Case cases[] = {
      {{{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}}, true},
      {{{"kernel_shape", Ints{3, 3}}, {"pads", Ints{1, 1, 1, 1}}}, true},
      {{{"kernel_shape", Ints{2, 2}}, {"dilations", Ints{2, 2}}, {"pads", Ints{1, 1, 1, 1}}},
       false},
      {{{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}, {"ceil_mode", int64_t{1}}}, false}};
  for (const Case& c : cases) {
    const Graph graph = made(c.pool, "Relu");
    const auto is_pool = [&](ValueId value) {
      const ValueInfo& info = graph.value(value);
      return info.origin == ValueOrigin::kNodeOutput &&
             graph.node(info.producer).op->name == "MaxPool";
    };
    ASSERT_EQ(count_nodes(graph, "Relu"), c.is_moved ? 2 : 1) << "the first has no reader left";
    bool is_moved = false;
    for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
      const Node& node = graph.node(NodeId(n));
      is_moved |= node.op->name == "Relu" && is_pool(node.inputs[0]);
    }
    EXPECT_EQ(is_moved, c.is_moved);
    const auto run = run_graph(graph, {{"x", x}});
    const auto other = run_graph(made(c.pool, "Where"), {{"x", x}});
    ASSERT_TRUE(run.is_ok() && other.is_ok());
    for (const char* output : {"loss", "x.grad"}) {
      EXPECT_TRUE(
          is_same_bits(run->outputs.at(output).tensor(), other->outputs.at(output).tensor()))
          << output;
    }
  }
}

TEST_F(RulesTest, LossesDifferentiateAsTheirNodes) {
  const TestTensor scores = doubles({3, 4});
  const TestTensor classes = ints({2, 0, 3});
  for (const char* reduction : {"none", "sum", "mean"}) {
    const Attributes how = {{"reduction", std::string(reduction)}};
    expect_both(make("SoftmaxCrossEntropyLoss", {scores, classes}, how), 2);
    expect_gradient(
        make("NegativeLogLikelihoodLoss", {scores, classes, doubles({4}, 0.5, 1)}, how));
  }
  expect_gradient(
      make("SoftmaxCrossEntropyLoss", {scores, classes}, {{"ignore_index", int64_t{0}}}, 22, 0, 2));
}

TEST_F(RulesTest, NeighbouringChannels) {
  const TestTensor x = doubles({2, 5, 2, 3});
  for (const int64_t size : {1, 2, 3, 4, 7}) {
    expect_gradient(
        make("LRN", {x}, {{"size", size}, {"alpha", 0.7f}, {"beta", 0.6f}, {"bias", 1.5f}}));
  }
  expect_gradient(make("LRN", {doubles({2, 4})}, {{"size", int64_t{3}}}, 12));
}

TEST_F(RulesTest, OneHotMarksItsValues) {
  const TestTensor depth = TestTensor::scalar(int64_t{4});
  const TestTensor where = places({2, 3}, {0, 3, -1, 2, 9, 1});  // 9 is outside
  for (const int64_t axis : {-1, 0, 1}) {
    expect_both(make("OneHot", {where, depth, doubles({2})}, {{"axis", axis}}), 2);
  }
}

TestTensor scales(const std::vector<float>& values) {
  return TestTensor::of<float>({static_cast<int64_t>(values.size())}, values);
}

TEST_F(RulesTest, ResizingByScalesAndSizes) {
  const TestTensor x = doubles({1, 2, 3, 4});
  const TestValue none = TestValue::omitted();
  const Attributes modes[] = {{{"mode", std::string("nearest")}},
                              {{"mode", std::string("nearest")},
                               {"coordinate_transformation_mode", std::string("asymmetric")},
                               {"nearest_mode", std::string("ceil")}},
                              {{"mode", std::string("linear")}},
                              {{"mode", std::string("linear")},
                               {"coordinate_transformation_mode", std::string("align_corners")}},
                              {{"mode", std::string("linear")}, {"antialias", int64_t{1}}},
                              {{"mode", std::string("cubic")}, {"exclude_outside", int64_t{1}}}};
  for (const Attributes& mode : modes) {
    expect_both(make("Resize", {x, none, scales({1, 1, 1.7f, 0.6f})}, mode), 4);
    expect_both(make("Resize", {x, none, none, ints({1, 2, 5, 2})}, mode), 8);
  }
  const Attributes two = {{"mode", std::string("linear")}, {"axes", Ints{-1, 2}}};
  expect_gradient(make("Resize", {x, none, none, ints({6, 2})}, two));
  expect_gradient(
      make("Resize", {x, scales({1, 1, 2, 1.5f})}, {{"mode", std::string("linear")}}, 10, 2));
  expect_gradient(
      make("Resize", {x, scales({1, 1, 2, 1.5f})}, {{"mode", std::string("nearest")}}, 10));
}

TEST_F(RulesTest, ResizingThatIsRefused) {
  const TestValue none = TestValue::omitted();
  const auto refusal = [](const OpCall& call) {
    auto loss = make_loss(call, Shapes::kStatic, 1);
    EXPECT_TRUE(loss.is_ok()) << loss.status().to_string();
    return differentiate(std::move(loss->graph), gradient_ops(), gradient_rules(), {.loss = "loss"})
        .status()
        .message();
  };
  const TestTensor x = doubles({4, 4}), roi = doubles({4}, 0.1, 0.9);
  const std::string cropping =
      refusal(make("Resize", {x, roi, none, ints({2, 2})},
                   {{"mode", std::string("linear")},
                    {"coordinate_transformation_mode", std::string("tf_crop_and_resize")}}));
  EXPECT_NE(cropping.find("tf_crop_and_resize is not known"), std::string::npos) << cropping;
  const std::string aspect = refusal(make(
      "Resize", {x, none, none, ints({2, 3})},
      {{"mode", std::string("linear")}, {"keep_aspect_ratio_policy", std::string("not_larger")}}));
  EXPECT_NE(aspect.find("give scales, or stretch"), std::string::npos) << aspect;
}

// The gradient of the sum of outputs, at a point.
std::vector<double> slope_at(const OpCall& call) {
  auto loss = make_loss(call, Shapes::kStatic, 1);
  EXPECT_TRUE(loss.is_ok()) << loss.status().to_string();
  TestTensor& weights = loss->inputs.at("w0").tensors[0];
  for (int64_t i = 0; i < weights.count(); ++i) weights.view().mutable_as<double>()[i] = 1;
  const auto gradient =
      differentiate(std::move(loss->graph), gradient_ops(), gradient_rules(), {.loss = "loss"});
  EXPECT_TRUE(gradient.is_ok()) << gradient.status().to_string();
  const auto run = run_graph(gradient->graph, loss->inputs);
  EXPECT_TRUE(run.is_ok()) << run.status().to_string();
  return run->outputs.at("x0.grad").tensor().values<double>();
}

TEST_F(RulesTest, KinksHaveTheValuesOfTheTable) {
  const TestTensor zero = TestTensor::of<double>({1}, {0});
  using Slopes = std::vector<double>;
  EXPECT_EQ(slope_at(make("Relu", {zero})), Slopes{0});
  EXPECT_EQ(slope_at(make("Abs", {zero})), Slopes{0});
  EXPECT_EQ(slope_at(make("Max", {zero, zero})), Slopes{0.5});
  EXPECT_EQ(slope_at(make("Min", {zero, zero, zero})), Slopes{1.0 / 3});
  const TestTensor ends = TestTensor::of<double>({3}, {-1, 1, 2});
  EXPECT_EQ(slope_at(make("Clip", {ends, TestTensor::scalar(-1.0), TestTensor::scalar(1.0)})),
            (Slopes{1, 1, 0}));
  const TestTensor equal = TestTensor::of<double>({1, 1, 4}, {3, 3, 1, 3});
  EXPECT_EQ(slope_at(make("ReduceMax", {equal})), (Slopes{1.0 / 3, 1.0 / 3, 0, 1.0 / 3}));
  EXPECT_EQ(slope_at(make("MaxPool", {equal}, {{"kernel_shape", Ints{4}}})), (Slopes{1, 0, 0, 0}));
  EXPECT_EQ(slope_at(make("GlobalMaxPool", {equal})), (Slopes{1, 0, 0, 0}));
  EXPECT_EQ(slope_at(make("Pow", {zero, TestTensor::scalar(0.0)})), Slopes{0});
  EXPECT_EQ(slope_at(make("ReduceL2", {zero})), Slopes{0});
}

}  // namespace
}  // namespace eddy::testing
