// Claim: operators that are functions of others give values worked out by hand, by both sets of
// kernels and however little is known of the shapes; and a breach of their rules is refused by the
// operator's own name.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "graph/ir/builder.h"
#include "ops/schema/standard.h"
#include "tests/ops/testing/calls.h"

namespace eddy::testing {
namespace {

using Ints = std::vector<int64_t>;
using Floats = std::vector<float>;

TestTensor ints(const Ints& values) {
  return TestTensor::of<int64_t>({static_cast<int64_t>(values.size())}, values);
}
TestTensor bytes(Dims dims, const std::vector<uint8_t>& values) {
  return TestTensor::of<uint8_t>(dims, values);
}

void expect_close(OpCall call, const TestTensor& expected, Known least = Known::kRanks) {
  for (const Known known : {Known::kShapes, Known::kRanks, Known::kNothing}) {
    if (known > least) continue;
    call.known = known;
    for (const KernelSet kernels : {KernelSet::kReference, KernelSet::kCpu}) {
      EXPECT_TRUE(is_close(run_one(call, kernels), expected, 1e-5, 1e-6)) << call.op;
    }
  }
}

TEST(FunctionsTest, SwiGluGatesOneInputByTheOther) {
  const OpCall call = make("SwiGLU", 28, {floats({2}, {1, -2}), floats({2}, {3, 4})});
  expect_close(call, floats({2}, {2.1931758f, -0.9536234f}), Known::kNothing);
  EXPECT_EQ(refusal(make("SwiGLU", 28, {floats({2}, {1, 2}), floats({1}, {3})})),
            "A and B must have one shape, not [2] and [1]");
}

TEST(FunctionsTest, GroupNormalizationScalesByGroupAndLaterByChannel) {
  const Attributes two = {{"num_groups", int64_t{2}}, {"epsilon", 0.0f}};
  expect_close(
      make("GroupNormalization", 18,
           {floats({1, 2, 2}, {1, 2, 3, 4}), floats({2}, {2, 3}), floats({2}, {10, 20})}, two),
      floats({1, 2, 2}, {8, 12, 17, 23}));
  expect_close(
      make("GroupNormalization", 21,
           {floats({1, 4, 1}, {1, 3, 5, 9}), floats({4}, {1, 2, 3, 4}), floats({4}, {0, 0, 1, 1})},
           two),
      floats({1, 4, 1}, {-1, 2, -2, 5}));
  EXPECT_EQ(
      refusal(make("GroupNormalization", 21,
                   {floats({1, 3, 1}, {1, 2, 3}), floats({3}, {1, 1, 1}), floats({3}, {1, 1, 1})},
                   two)),
      "3 channels do not fall into 2 groups");
  EXPECT_EQ(refusal(make("GroupNormalization", 18,
                         {floats({1, 2, 1}, {1, 2}), floats({1}, {1}), floats({2}, {1, 1})}, two)),
            "scale of shape [1] must be [2]");
}

TEST(FunctionsTest, GroupNormalizationRefusesChannelsThatItLearnsOfInTheRun) {
  const TestTensor x(ElementType::kFloat, {7, 7, 2}), ones(ElementType::kFloat, {7});
  for (const int opset : {18, 21}) {
    OpCall call = make("GroupNormalization", opset, {x, ones, ones}, {{"num_groups", int64_t{2}}});
    if (opset == 18) call.inputs[1] = call.inputs[2] = floats({2}, {1, 1});
    call.known = Known::kRanks;
    EXPECT_EQ(run_op(call, KernelSet::kCpu).status().message(),
              "7 channels do not fall into 2 groups");
  }
  for (const Dims& dims : {Dims{2, 4, 0}, Dims{0, 4, 3}, Dims{2, 4}}) {
    const TestTensor given(ElementType::kFloat, dims), each(ElementType::kFloat, {4});
    OpCall call = make("GroupNormalization", 21, {given, each, each}, {{"num_groups", int64_t{2}}});
    call.known = Known::kRanks;
    EXPECT_EQ(run_one(call, KernelSet::kCpu).dims(), dims);
  }
}

TEST(FunctionsTest, LpNormalizationLeavesZerosAlone) {
  const TestTensor x = floats({2, 2}, {3, 4, 0, 0});
  expect_close(make("LpNormalization", 22, {x}), floats({2, 2}, {0.6f, 0.8f, 0, 0}),
               Known::kNothing);
  expect_close(make("LpNormalization", 11, {x}, {{"p", int64_t{1}}, {"axis", int64_t{0}}}),
               floats({2, 2}, {1, 1, 0, 0}), Known::kNothing);
  EXPECT_EQ(refusal(make("LpNormalization", 22, {x}, {{"p", int64_t{3}}})),
            "p must be 1 or 2, not 3");
}

TEST(FunctionsTest, MeanVarianceNormalizationIsOverAxesOfItsOwn) {
  expect_close(
      make("MeanVarianceNormalization", 13, {floats({2, 2}, {1, 5, 3, 5})}, {{"axes", Ints{0}}}),
      floats({2, 2}, {-1, 0, 1, 0}), Known::kNothing);
  expect_close(make("MeanVarianceNormalization", 9, {floats({1, 2, 1, 2}, {1, 3, 4, 8})}),
               floats({1, 2, 1, 2}, {-1, 1, -1, 1}));
}

TEST(FunctionsTest, AffineGridGivesAPlaceToEveryPixel) {
  const TestTensor identity = floats({1, 2, 3}, {1, 0, 0, 0, 1, 0});
  OpCall call =
      make("AffineGrid", 20, {identity, ints({1, 1, 2, 3})}, {{"align_corners", int64_t{1}}});
  expect_close(call, floats({1, 2, 3, 2}, {-1, -1, 0, -1, 1, -1, -1, 1, 0, 1, 1, 1}),
               Known::kShapes);
  const float third = 2.0f / 3;
  call.attributes = {};
  expect_close(
      call,
      floats({1, 2, 3, 2}, {-third, -.5f, 0, -.5f, third, -.5f, -third, .5f, 0, .5f, third, .5f}),
      Known::kShapes);
  // x + 2 y + 3 z + 4, x, y.
  const TestTensor volume = floats({1, 3, 4}, {1, 2, 3, 4, 1, 0, 0, 0, 0, 1, 0, 0});
  expect_close(make("AffineGrid", 20, {volume, ints({1, 5, 1, 1, 2})}),
               floats({1, 1, 1, 2, 3}, {3.5f, -.5f, 0, 4.5f, .5f, 0}), Known::kShapes);
}

TEST(FunctionsTest, CenterCropPadCutsAndPadsAroundTheMiddle) {
  const TestTensor x = floats({2, 5}, {1, 2, 3, 4, 5, 6, 7, 8, 9, 10});
  expect_close(make("CenterCropPad", 18, {x, ints({4, 2})}),
               floats({4, 2}, {0, 0, 2, 3, 7, 8, 0, 0}));
  expect_close(make("CenterCropPad", 18, {floats({1}, {7}), ints({4})}, {{"axes", Ints{-1}}}),
               floats({4}, {0, 7, 0, 0}));
  EXPECT_EQ(refusal(make("CenterCropPad", 18, {x, ints({4})})),
            "the input shape of shape [1] must be [2]");
}

TEST(FunctionsTest, UpsampleIsAResizeWithoutShift) {
  const TestTensor x = floats({1, 1, 1, 2}, {1, 3});
  const TestTensor wide = floats({1, 1, 2, 4}, {1, 1, 3, 3, 1, 1, 3, 3});
  expect_close(make("Upsample", 9, {x, floats({4}, {1, 1, 2, 2})}), wide);
  expect_close(make("Upsample", 7, {x}, {{"scales", Floats{1, 1, 2, 2}}}), wide);
  expect_close(make("Upsample", 9, {x, floats({4}, {1, 1, 1, 2})}, {{"mode", "linear"}}),
               floats({1, 1, 1, 4}, {1, 2, 3, 3}));
}

TEST(FunctionsTest, MaxUnpoolPutsMaximaBackWhereTheyWere) {
  const TestTensor x = floats({1, 1, 2, 2}, {5, 6, 7, 8});
  const TestTensor places = TestTensor::of<int64_t>({1, 1, 2, 2}, {5, 7, 13, 15});
  const Attributes windows = {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}};
  expect_close(make("MaxUnpool", 22, {x, places}, windows),
               floats({1, 1, 4, 4}, {0, 0, 0, 0, 0, 5, 0, 6, 0, 0, 0, 0, 0, 7, 0, 8}));
  expect_close(make("MaxUnpool", 9, {x, places, ints({1, 1, 4, 5})}, windows),
               floats({1, 1, 4, 5}, {0, 0, 0, 0, 0, 0, 5, 0, 6, 0, 0, 0, 0, 0, 0, 0, 7, 0, 8, 0}));
  EXPECT_EQ(refusal(make("MaxUnpool", 22, {x, places}, {{"kernel_shape", Ints{2}}})),
            "X must have the axes of kernel_shape after [N, C], not [1,1,2,2]");
  EXPECT_EQ(
      refusal(make("MaxUnpool", 22, {x, TestTensor::of<int64_t>({1, 1, 2, 1}, {5, 7})}, windows)),
      "I of shape [1,1,2,1] must be that of X, [1,1,2,2]");
  EXPECT_EQ(refusal(make("MaxUnpool", 22, {x, places},
                         {{"kernel_shape", Ints{1, 2}}, {"pads", Ints{9, 0, 0, 0}}})),
            "kernel_shape, strides and pads make no size of axis 2 of X, of shape [1,1,2,2]");
}

TEST(FunctionsTest, NegativeLogLikelihoodPicksWeighsAndIgnores) {
  const TestTensor x = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  const TestTensor weights = floats({3}, {1, 2, 3});
  const auto loss = [&](const Ints& classes, bool is_weighed, Attributes attributes) {
    std::vector<TestValue> inputs = {x, ints(classes)};
    if (is_weighed) inputs.push_back(weights);
    return make("NegativeLogLikelihoodLoss", 13, inputs, std::move(attributes));
  };
  expect_close(loss({2, 0}, false, {{"reduction", "none"}}), floats({2}, {-3, -4}));
  expect_close(loss({2, 0}, true, {{"reduction", "none"}}), floats({2}, {-9, -4}));
  expect_close(loss({2, 0}, true, {{"reduction", "sum"}}), floats({}, {-13}));
  expect_close(loss({2, 0}, true, {}), floats({}, {-3.25f}));
  expect_close(loss({2, 0}, false, {}), floats({}, {-3.5f}));
  expect_close(loss({2, -7}, false, {{"ignore_index", int64_t{-7}}}), floats({}, {-3}));
  expect_close(loss({2, -7}, true, {{"ignore_index", int64_t{-7}}, {"reduction", "none"}}),
               floats({2}, {-9, 0}));
  // One that no class of 32 bits has, and the two ends of 64 bits.
  expect_close(make("NegativeLogLikelihoodLoss", 13, {x, TestTensor::of<int32_t>({2}, {2, 0})},
                    {{"ignore_index", int64_t{1} << 32}}),
               floats({}, {-3.5f}));
  for (const int64_t end : {INT64_MIN, INT64_MAX}) {
    expect_close(loss({2, end}, false, {{"ignore_index", end}}), floats({}, {-3}));
  }
  const TestTensor image = floats({1, 2, 2}, {1, 2, 3, 4});
  expect_close(make("NegativeLogLikelihoodLoss", 12,
                    {image, TestTensor::of<int32_t>({1, 2}, {1, 0})}, {{"reduction", "none"}}),
               floats({1, 2}, {-3, -2}));
  EXPECT_EQ(refusal(loss({2}, false, {})),
            "the classes of shape [1] are not one for each place of the scores of shape [2,3]");
  EXPECT_EQ(refusal(loss({2, 0}, false, {{"reduction", "max"}})),
            "reduction must be none, sum or mean, not 'max'");
}

TEST(FunctionsTest, LossesRefuseSizesThatDoNotFitAndThatTheyLearnOfInTheRun) {
  const TestTensor x(ElementType::kFloat, {3, 5, 2}), line(ElementType::kFloat, {3, 5});
  const auto message = [](const TestTensor& scores, const Dims& classes, int64_t weights) {
    const Ints first(static_cast<size_t>(*classes.count()), 0);
    OpCall call = make("NegativeLogLikelihoodLoss", 13,
                       {scores, TestTensor::of<int64_t>(classes, first),
                        TestTensor(ElementType::kFloat, {weights})});
    call.known = Known::kNothing;
    return run_op(call, KernelSet::kCpu).status().message();
  };
  EXPECT_EQ(message(x, {3, 2}, 5), "");
  EXPECT_EQ(message(line, {3}, 5), "");
  EXPECT_EQ(message(line, {1}, 5),
            "the classes of shape [1] are not one for each place of the scores of shape [3,5]");
  EXPECT_EQ(message(x, {3, 1}, 5),
            "the classes of shape [3,1] are not one for each place of the scores of shape [3,5,2]");
  EXPECT_NE(message(x, {2, 3}, 5), "");
  EXPECT_EQ(message(line, {3}, 8), "weights of shape [8] must be [5]");
}

TEST(FunctionsTest, SoftmaxCrossEntropyGivesTheLogarithmsToo) {
  OpCall call =
      make("SoftmaxCrossEntropyLoss", 13, {floats({1, 2}, {0, std::log(3.0f)}), ints({0})});
  expect_close(call, floats({}, {std::log(4.0f)}));
  call.num_outputs = 2;
  const auto both = run_op(call, KernelSet::kReference);
  ASSERT_TRUE(both.is_ok()) << both.status().to_string();
  EXPECT_TRUE(
      is_close((*both)[1].tensor(), floats({1, 2}, {-std::log(4.0f), std::log(0.75f)}), 1e-6, 0));
}

TEST(FunctionsTest, WindowsEndAtTheLastSampleOrGoOnAfterIt) {
  const TestTensor four = TestTensor::scalar<int64_t>(4);
  expect_close(make("HannWindow", 17, {four}), floats({4}, {0, .5f, 1, .5f}), Known::kNothing);
  expect_close(make("HannWindow", 17, {TestTensor::scalar<int32_t>(5)}, {{"periodic", int64_t{0}}}),
               floats({5}, {0, .5f, 1, .5f, 0}), Known::kNothing);
  const float low = 4.0f / 46, middle = 25.0f / 46;
  expect_close(make("HammingWindow", 17, {four}), floats({4}, {low, middle, 1, middle}),
               Known::kNothing);
  expect_close(make("BlackmanWindow", 17, {four}), floats({4}, {0, .34f, 1, .34f}),
               Known::kNothing);
  expect_close(make("BlackmanWindow", 17, {four}, {{"output_datatype", int64_t{11}}}),
               TestTensor::of<double>({4}, {0, .34, 1, .34}), Known::kNothing);
  expect_close(make("BlackmanWindow", 17, {four}, {{"output_datatype", int64_t{2}}}),
               bytes({4}, {0, 0, 1, 0}), Known::kNothing);
}

TEST(FunctionsTest, AQuantizedProductOfVectorsHasNoAxisOfTheirScales) {
  const TestTensor a = bytes({2}, {3, 4}), b = bytes({2}, {5, 6}), zero = bytes({1}, {0});
  const TestTensor matrix = bytes({2, 2}, {5, 1, 6, 2}), one = floats({1}, {1});
  const auto product = [&](const TestTensor& left, const TestTensor& right) {
    return make("QLinearMatMul", 21, {left, one, zero, right, one, zero, one, zero});
  };
  expect_close(product(a, b), bytes({}, {39}));
  expect_close(product(a, matrix), bytes({2}, {39, 11}));
  expect_close(product(matrix, a), bytes({2}, {19, 26}));
}

TEST(FunctionsTest, ConvIntegerSubtractsZeroPointsAlsoWhereItPads) {
  const TestTensor x = bytes({1, 1, 3, 3}, {2, 3, 4, 5, 6, 7, 8, 9, 10});
  const TestTensor ones = bytes({1, 1, 2, 2}, {1, 1, 1, 1});
  const std::vector<TestValue> inputs = {x, ones, TestTensor::scalar<uint8_t>(1)};
  expect_close(make("ConvInteger", 10, inputs),
               TestTensor::of<int32_t>({1, 1, 2, 2}, {12, 16, 24, 28}));
  expect_close(make("ConvInteger", 10, inputs, {{"pads", Ints{1, 1, 1, 1}}}),
               TestTensor::of<int32_t>({1, 1, 4, 4},
                                       {1, 3, 5, 3, 5, 12, 16, 9, 11, 24, 28, 15, 7, 15, 17, 9}));
}

TEST(FunctionsTest, QuantizedProductsAreExactSumsScaledOnce) {
  const auto scale = [](float value) { return TestTensor::scalar(value); };
  const auto zero = [](uint8_t value) { return TestTensor::scalar(value); };
  // (1 * 2 + 3 * 4) * 0.5 * 0.5 / 0.25 + 5 and (1 * -1 + 3 * 6) + 5
  expect_close(make("QLinearMatMul", 10,
                    {bytes({1, 2}, {2, 4}), scale(0.5f), zero(1), bytes({2, 2}, {3, 0, 5, 7}),
                     scale(0.5f), zero(1), scale(0.25f), zero(5)}),
               bytes({1, 2}, {19, 22}));
  // By row and column: 1 * 2 * {1, 2} * {1, 10}, clamped at 255.
  expect_close(make("QLinearMatMul", 21,
                    {bytes({2, 1}, {1, 1}), floats({2}, {1, 2}), zero(0), bytes({1, 2}, {2, 20}),
                     floats({2}, {1, 10}), bytes({2}, {0, 0}), scale(1), zero(0)}),
               bytes({2, 2}, {2, 200, 4, 255}));
  // Channels of their own scales, and a bias in units of the product's scale.
  expect_close(make("QLinearConv", 10,
                    {bytes({1, 1, 1, 2}, {3, 5}), scale(1), zero(1), bytes({2, 1, 1, 1}, {2, 3}),
                     floats({2}, {1, 2}), bytes({2}, {0, 1}), scale(2), zero(10),
                     TestTensor::of<int32_t>({2}, {2, 0})}),
               bytes({1, 2, 1, 2}, {13, 15, 14, 18}));
}

TEST(FunctionsTest, AQuantizedProductMayBeOfFloatsOfAByte) {
  using enum ElementType;
  const auto small = [](const Dims& dims, std::vector<float> numbers, ElementType element) {
    OpCall cast = make("Cast", 21, {TestTensor::of<float>(dims, std::move(numbers))},
                       {{"to", static_cast<int64_t>(element)}});
    return run_one(cast, KernelSet::kReference);
  };
  for (const ElementType element : {kFloat8E4M3FN, kFloat8E4M3FNUZ, kFloat8E5M2, kFloat8E5M2FNUZ}) {
    const TestTensor zero = small({}, {0}, element), no_bytes = TestTensor::scalar<uint8_t>(0);
    const TestTensor a = small({2, 2}, {1, -2, 0.5f, 4}, element);
    const TestTensor b = small({2, 2}, {2, 1, 1, -1}, element);
    // By rows 1 and 2, by columns 1 and 0.5, over 0.5.
    const std::vector<TestValue> inputs = {
        a, floats({2}, {1, 2}), zero, b, floats({2}, {1, 0.5f}), zero, floats({}, {0.5f}), zero};
    expect_close(make("QLinearMatMul", 21, inputs), small({2, 2}, {0, 3, 20, -7}, element));
    std::vector<TestValue> to_bytes = inputs;
    to_bytes[7] = no_bytes;
    expect_close(make("QLinearMatMul", 21, to_bytes), bytes({2, 2}, {0, 3, 20, 0}));
  }
}

TEST(FunctionsTest, ACausalConvolutionLeavesItsLastElementsForTheNextCall) {
  const TestTensor x = floats({1, 1, 3}, {1, 2, 3}), weight = floats({1, 1, 2}, {10, 1});
  OpCall call = make("CausalConvWithState", 27, {x, weight});
  expect_close(call, floats({1, 1, 3}, {1, 12, 23}), Known::kShapes);
  call.inputs = {x, weight, floats({1}, {5}), floats({1, 1, 1}, {4})};
  call.num_outputs = 2;
  const auto both = run_op(call, KernelSet::kCpu);
  ASSERT_TRUE(both.is_ok()) << both.status().to_string();
  EXPECT_EQ((*both)[0].tensor().values<float>(), (Floats{46, 17, 28}));
  EXPECT_EQ((*both)[1].tensor().values<float>(), Floats{3});
  call = make("CausalConvWithState", 27, {x, floats({1, 1, 1}, {2})}, {{"activation", "silu"}});
  call.num_outputs = 2;
  const auto single = run_op(call, KernelSet::kCpu);
  ASSERT_TRUE(single.is_ok()) << single.status().to_string();
  EXPECT_EQ((*single)[1].tensor().dims(), (Dims{1, 1, 0}));
  EXPECT_TRUE(is_close((*single)[0].tensor(), floats({1, 1, 3}, {1.7615942f, 3.928055f, 5.985164f}),
                       1e-5, 0));
}

// Sizes are read by nodes, as they may change from one iteration to the next.
TEST(FunctionsTest, AFunctionInALoopFollowsSizesThatGrow) {
  OpTable table;
  ASSERT_TRUE(add_standard_schemas(table).is_ok());
  GraphBuilder b(table);
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {1, 2, 2}));
  const auto results = b.while_loop(
      {.name = "grow", .initial = {x}, .trip_limit = b.scalar(int64_t{3})},
      [&](Value, ValueSpan carried) {
        return WhileTest{b.scalar(true), {carried.begin(), carried.end()}};
      },
      [&](Value, ValueSpan carried) -> std::vector<Value> {
        const Value ones = b.op("Expand", {b.scalar(1.0f), b.int64s({2})});
        const Value normal = b.op("GroupNormalization", {carried[0], ones, ones},
                                  {{"num_groups", int64_t{1}}}, {.opset_version = 21});
        return {b.op("Concat", {carried[0], normal}, {{"axis", int64_t{2}}})};
      });
  b.output("y", results[0]);
  const Result<Graph> graph = b.finish();
  ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
  EXPECT_EQ(to_string(graph->value(graph->outputs()[0]).type), "float[1,2,?]");
  for (uint32_t n = 0; n < graph->num_nodes(); ++n) {
    const Node& node = graph->node(NodeId(n));
    EXPECT_TRUE(node.op == nullptr || node.op->expand == nullptr) << node.name;
  }
}

}  // namespace
}  // namespace eddy::testing
