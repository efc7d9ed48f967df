// Claim: each form that opsets 1 to 6 gave an operator, and later ones changed, means what its text
// says: values worked out by hand, by both sets of kernels and however little is known of the
// shapes; on random shapes an early form is the one of now with its stretching done by hand.
#include <gtest/gtest.h>

#include <cmath>
#include <sstream>
#include <string>

#include "graph/base/random.h"
#include "graph/ir/opset.h"
#include "ops/schema/standard.h"
#include "tests/ops/testing/calls.h"

namespace eddy::testing {
namespace {

using Ints = std::vector<int64_t>;
using Floats = std::vector<float>;

constexpr ElementType kF32 = ElementType::kFloat;

void expect(OpCall call, const TestTensor& expected, Known least = Known::kNothing) {
  for (const Known known : {Known::kShapes, Known::kRanks, Known::kNothing}) {
    if (known > least) continue;
    call.known = known;
    for (const KernelSet kernels : {KernelSet::kReference, KernelSet::kCpu}) {
      EXPECT_TRUE(is_close(run_one(call, kernels), expected, 1e-5, 1e-6))
          << call.op << " of opset " << call.opset << ", known " << static_cast<int>(known);
    }
  }
}

TEST(EarlyFunctionsTest, WhatMayBeOverwrittenChangesNothing) {
  const Attributes in_place = {{"consumed_inputs", Ints{0}}};
  const TestTensor x = floats({3}, {-1, 0, 2});
  expect(make("Relu", 1, {x}, in_place), floats({3}, {0, 0, 2}));
  expect(make("LeakyRelu", 5, {x}, {{"alpha", 0.5f}, {"consumed_inputs", Ints{1}}}),
         floats({3}, {-0.5, 0, 2}));
  expect(make("Clip", 1, {x}, {{"max", 1.0f}, {"consumed_inputs", Ints{0}}}),
         floats({3}, {-1, 0, 1}));
  expect(make("Sum", 1, {x, x}, {{"consumed_inputs", Ints{0, 0}}}), floats({3}, {-2, 0, 4}));
  EXPECT_EQ(refusal(make("Relu", 6, {x}, in_place)),
            "attribute 'consumed_inputs' of Relu ended with opset 5, but the node is of opset 6: "
            "leave the attribute out");
}

TEST(EarlyFunctionsTest, TheSecondInputStretchesFromAnAxis) {
  const TestTensor a = floats({2, 3, 2}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  const TestTensor b = floats({3}, {10, 20, 30});
  const Attributes middle = {{"broadcast", int64_t{1}}, {"axis", int64_t{1}}};
  const Attributes from_end = {{"broadcast", int64_t{1}}, {"axis", int64_t{-2}}};
  const TestTensor sum = floats({2, 3, 2}, {10, 11, 22, 23, 34, 35, 16, 17, 28, 29, 40, 41});
  for (const int opset : {1, 5, 6}) {
    expect(make("Add", opset, {a, b}, middle), sum);
    expect(make("Add", opset, {a, b}, from_end), sum);
  }
  expect(make("Sub", 1, {a, floats({2, 3}, {0, 2, 4, 6, 8, 10})},
              {{"broadcast", int64_t{1}}, {"axis", int64_t{0}}}),
         floats({2, 3, 2}, {0, 1, 0, 1, 0, 1, 0, 1, 0, 1, 0, 1}));
  expect(make("Mul", 1, {a, floats({2}, {1, -1})}, {{"broadcast", int64_t{1}}}),
         floats({2, 3, 2}, {0, -1, 2, -3, 4, -5, 6, -7, 8, -9, 10, -11}));
  expect(make("Pow", 1, {a, floats({}, {2})}, middle),
         floats({2, 3, 2}, {0, 1, 4, 9, 16, 25, 36, 49, 64, 81, 100, 121}));
  expect(make("Less", 1, {a, floats({3}, {1, 3, 9})}, middle),
         TestTensor::of<bool>({2, 3, 2}, {true, false, true, false, true, true, false, false, false,
                                          false, false, false}));
}

TEST(EarlyFunctionsTest, AStretchIsThatOfNowWithOnesAddedByHand) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const int rank = 1 + static_cast<int>(random.below(4));
    Dims a, b, ones;
    for (int i = 0; i < rank; ++i) a.push_back(1 + static_cast<int64_t>(random.below(4)));
    const int axis = static_cast<int>(random.below(static_cast<uint64_t>(rank)));
    const int length = 1 + static_cast<int>(random.below(static_cast<uint64_t>(rank - axis)));
    for (int i = 0; i < length; ++i) b.push_back(a[axis + i]);
    ones = b;
    while (axis + ones.rank() < rank) ones.push_back(1);
    const char* ops[] = {"Add", "Sub", "Mul", "Div", "Pow", "Less", "Greater"};
    const char* op = ops[random.below(std::size(ops))];
    const TestTensor x = TestTensor::random(kF32, a, random, 1, 2);
    const TestTensor y = TestTensor::random(kF32, b, random, 1, 2);
    OpCall early = make(op, 6, {x, y}, {{"broadcast", int64_t{1}}, {"axis", int64_t{axis}}});
    const OpCall now = make(op, 13, {x, TestTensor::of<float>(ones, y.values<float>())});
    for (const Known known : {Known::kShapes, Known::kNothing}) {
      early.known = known;
      EXPECT_TRUE(is_same_bits(run_one(early, KernelSet::kCpu), run_one(now, KernelSet::kCpu)))
          << op << " " << to_string(a) << " " << to_string(b) << " axis " << axis;
    }
  }
}

TEST(EarlyFunctionsTest, AStretchThatDoesNotFitIsRefused) {
  const TestTensor a = floats({2, 3}, {1, 2, 3, 4, 5, 6}), b = floats({3}, {1, 2, 3});
  EXPECT_EQ(refusal(make("Add", 6, {a, b})),
            "input 1 of shape [3] does not stretch over input 0 of shape [2,3]: they must be equal "
            "without broadcast=1");
  EXPECT_EQ(refusal(make("Add", 1, {a, b}, {{"broadcast", int64_t{1}}, {"axis", int64_t{0}}})),
            "input 1 of shape [3] does not stretch over input 0 of shape [2,3] from axis 0");
  EXPECT_EQ(refusal(make("Add", 1, {a, b}, {{"broadcast", int64_t{1}}, {"axis", int64_t{7}}})),
            "axis 7 is out of range for rank 2: -2..1");
  EXPECT_EQ(refusal(make("Add", 1, {a, b}, {{"broadcast", int64_t{1}}, {"axis", int64_t{9}}})),
            "axis 9 is out of range: input 0 has 2 dimensions");
}

TEST(EarlyFunctionsTest, SlopesOfPReluStandForChannels) {
  const TestTensor x = floats({1, 2, 2}, {-1, -2, -3, -4});
  for (const int opset : {1, 6}) {
    expect(make("PRelu", opset, {x, floats({2}, {2, 10})}), floats({1, 2, 2}, {-2, -4, -30, -40}));
    expect(make("PRelu", opset, {floats({2}, {-1, 3}), floats({2}, {2, 10})}),
           floats({2}, {-2, 3}));
  }
}

TEST(EarlyFunctionsTest, CastNamesItsType) {
  expect(make("Cast", 1, {floats({2}, {1.5, -2.5})}, {{"to", "INT32"}}),
         TestTensor::of<int32_t>({2}, {1, -2}));
  expect(make("Cast", 5, {TestTensor::of<int64_t>({1}, {3})}, {{"to", "DOUBLE"}}),
         TestTensor::of<double>({1}, {3}));
  EXPECT_EQ(refusal(make("Cast", 1, {floats({1}, {1})}, {{"to", "float"}})),
            "attribute 'to' is 'float'; it must name an element type as FLOAT or INT64");
}

TEST(EarlyFunctionsTest, ConcatJoinsChannelsUnlessToldOtherwise) {
  const TestTensor a = floats({1, 2}, {1, 2}), b = floats({1, 2}, {3, 4});
  expect(make("Concat", 1, {a, b}), floats({1, 4}, {1, 2, 3, 4}));
  expect(make("Concat", 3, {a, b}, {{"axis", int64_t{0}}}), floats({2, 2}, {1, 2, 3, 4}));
  EXPECT_EQ(refusal(make("Concat", 4, {a, b})), "Concat needs attribute 'axis'");
}

TEST(EarlyFunctionsTest, PadCallsItsPadsPaddings) {
  const TestTensor x = floats({2, 2}, {1, 2, 3, 4});
  expect(make("Pad", 1, {x}, {{"paddings", Ints{0, 1, 0, 0}}, {"value", 9.0f}}),
         floats({2, 3}, {9, 1, 2, 9, 3, 4}));
  expect(make("Pad", 1, {x}, {{"paddings", Ints{0, 0, 1, 0}}, {"mode", "edge"}}),
         floats({3, 2}, {1, 2, 3, 4, 3, 4}));
}

TEST(EarlyFunctionsTest, ReshapeHasItsShapeAsAnAttribute) {
  const TestTensor x = floats({2, 3}, {1, 2, 3, 4, 5, 6});
  expect(make("Reshape", 1, {x}, {{"shape", Ints{0, -1, 1}}, {"consumed_inputs", Ints{0}}}),
         floats({2, 3, 1}, {1, 2, 3, 4, 5, 6}));
  expect(make("Reshape", 4, {floats({1, 1}, {7})}), floats({}, {7}));
}

TEST(EarlyFunctionsTest, SplitTakesItsLengthsByAttributeOrInput) {
  const TestTensor x = floats({3, 1}, {1, 2, 3});
  const Attributes lengths = {{"split", Ints{1, 2}}};
  for (OpCall call : {make("Split", 1, {x}, lengths), make("Split", 1, {x, floats({2}, {1, 2})})}) {
    call.num_outputs = 2;
    const auto parts = run_op(call, KernelSet::kCpu);
    ASSERT_TRUE(parts.is_ok()) << parts.status().message();
    EXPECT_TRUE(is_close((*parts)[0].tensor(), floats({1, 1}, {1}), 0, 0));
    EXPECT_TRUE(is_close((*parts)[1].tensor(), floats({2, 1}, {2, 3}), 0, 0));
  }
  OpCall halves = make("Split", 1, {floats({1, 4}, {1, 2, 3, 4})}, {{"axis", int64_t{1}}});
  halves.num_outputs = 2;
  const auto parts = run_op(halves, KernelSet::kCpu);
  ASSERT_TRUE(parts.is_ok()) << parts.status().message();
  EXPECT_TRUE(is_close((*parts)[1].tensor(), floats({1, 2}, {3, 4}), 0, 0));
  OpCall twice = make("Split", 1, {x, floats({2}, {1, 2})}, lengths);
  twice.num_outputs = 2;
  EXPECT_EQ(refusal(twice), "the lengths are given twice, as attribute 'split' and as input 1");
}

TEST(EarlyFunctionsTest, TileRepeatsOneAxis) {
  const TestTensor x = floats({2, 2}, {1, 2, 3, 4});
  expect(make("Tile", 1, {x, floats({1}, {2}), floats({1}, {1})}),
         floats({2, 4}, {1, 2, 1, 2, 3, 4, 3, 4}));
  expect(make("Tile", 5, {x, floats({}, {2}), floats({}, {-2})}),
         floats({4, 2}, {1, 2, 3, 4, 1, 2, 3, 4}));
}

TEST(EarlyFunctionsTest, SeluHasFewerDigits) {
  const auto expected = [](double alpha, double gamma) {
    return floats({2}, {static_cast<float>(gamma * alpha * (std::exp(-2.0) - 1)),
                        static_cast<float>(gamma * 1000)});
  };
  const TestTensor x = floats({2}, {-2, 1000});
  expect(make("Selu", 5, {x}), expected(1.6732, 1.0507));
  expect(make("Selu", 1, {x}, {{"alpha", 2.0f}, {"gamma", 3.0f}}), expected(2, 3));
  expect(make("Selu", 6, {x}), expected(1.67326319217681884765625, 1.05070102214813232421875));
}

TEST(EarlyFunctionsTest, NormsTakeAnyExponent) {
  const TestTensor x = floats({1, 1, 4}, {1, -2, 3, 4});
  const auto norm = [](double a, double b, double p) {
    return static_cast<float>(std::pow(std::pow(a, p) + std::pow(b, p), 1 / p));
  };
  for (const double p : {2.0, 2.5}) {
    const Attributes windows = {{"p", static_cast<float>(p)}, {"kernel_shape", Ints{2}}};
    expect(make("LpPool", 1, {x}, windows),
           floats({1, 1, 3}, {norm(1, 2, p), norm(2, 3, p), norm(3, 4, p)}), Known::kRanks);
    const float all = static_cast<float>(
        std::pow(1 + std::pow(2.0, p) + std::pow(3.0, p) + std::pow(4.0, p), 1 / p));
    expect(make("GlobalLpPool", 1, {x}, {{"p", static_cast<float>(p)}}), floats({1, 1, 1}, {all}),
           Known::kRanks);
  }
  EXPECT_EQ(refusal(make("LpPool", 1, {x})), "LpPool needs attribute 'kernel_shape'");
  EXPECT_EQ(refusal(make("GlobalLpPool", 1, {x}, {{"p", 0.0f}})),
            "attribute 'p' must be at least 1, not 0.000000");
}

TEST(EarlyFunctionsTest, EveryOperatorOfOpsetOneIsThere) {
  OpTable table;
  ASSERT_TRUE(add_standard_schemas(table).is_ok());
  std::istringstream operators(
      "Abs Add And ArgMax ArgMin AveragePool BatchNormalization Cast Ceil Clip Concat Conv "
      "ConvTranspose DepthToSpace Div Dropout Elu Equal Exp Flatten Floor GRU Gather Gemm "
      "GlobalAveragePool GlobalLpPool GlobalMaxPool Greater HardSigmoid Hardmax Identity "
      "InstanceNormalization LRN LSTM LeakyRelu Less Log LogSoftmax LpNormalization LpPool "
      "MatMul Max MaxPool MaxRoiPool Mean Min Mul Neg Not Or PRelu Pad Pow RNN "
      "RandomNormal RandomNormalLike RandomUniform RandomUniformLike Reciprocal ReduceL1 "
      "ReduceL2 ReduceLogSum ReduceLogSumExp ReduceMax ReduceMean ReduceMin ReduceProd "
      "ReduceSum ReduceSumSquare Relu Reshape Selu Shape Sigmoid Size Slice Softmax "
      "Softplus Softsign SpaceToDepth Split Sqrt Squeeze Sub Sum Tanh Tile TopK Transpose "
      "Unsqueeze Upsample Xor ");
  size_t count = 0;
  for (std::string op; operators >> op; ++count) {
    EXPECT_NE(table.find_or_null("", op, 1), nullptr) << op;
  }
  EXPECT_EQ(count, 92u);
  EXPECT_EQ(kOldestOpset, 1);
}

}  // namespace
}  // namespace eddy::testing
