// Claim: the fast elementwise kernels give the reference's values for every type, every pattern of
// broadcasting and every amount of knowledge when binding, in place too; and errors are named.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>

#include "ops/reference/parts/number.h"
#include "tests/ops/testing/op_runner.h"

namespace eddy::testing {
namespace {

constexpr ElementType kF32 = ElementType::kFloat;

const ElementType kNumbers[] = {ElementType::kFloat,   ElementType::kDouble,  ElementType::kInt32,
                                ElementType::kInt64,   ElementType::kUint8,   ElementType::kInt8,
                                ElementType::kUint16,  ElementType::kFloat16, ElementType::kUint64,
                                ElementType::kBfloat16};

// Pairs of shapes: equal, single elements, rows, columns, both sides repeated, empty.
const std::pair<Dims, Dims> kShapes[] = {
    {{}, {}},
    {{1}, {}},
    {{1, 1}, {1}},
    {{37}, {37}},
    {{37}, {}},
    {{1}, {37}},
    {{3, 5}, {5}},
    {{3, 5}, {3, 1}},
    {{3, 1}, {1, 5}},
    {{2, 1, 4}, {3, 1}},
    {{2, 3, 1, 5}, {4, 1}},
    {{0, 3}, {3}},
    {{0, 2, 1}, {1, 3}},
    {{4, 1, 1}, {2, 3}},
    {{1, 6, 1}, {2, 1, 7}},
    {{3, 600, 4}, {3, 1, 4}},
    {{2, 1, 3}, {2, 9, 3}},
};

bool is_integer(ElementType element) { return kIntTypes.contains(element); }

OpCall make_call(const std::string& op, int opset, std::vector<TestValue> inputs) {
  OpCall call;
  call.op = op;
  call.opset = opset;
  call.inputs = std::move(inputs);
  return call;
}

TEST(ElementwiseTest, BinaryKernelsEqualTheReferenceBitForBit) {
  const uint64_t seed = 41;
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  for (const char* op : {"Add", "Sub", "Mul", "Div", "Max", "Min", "Equal", "Greater", "Less",
                         "GreaterOrEqual", "LessOrEqual"}) {
    for (ElementType element : kNumbers) {
      for (const auto& [a, b] : kShapes) {
        const double low = std::string(op) == "Div" ? 1 : 0;
        compare_with_reference(make_call(op, 17,
                                         {TestTensor::random(element, a, random, 0, 9),
                                          TestTensor::random(element, b, random, low, 9)}));
      }
    }
  }
}

TEST(ElementwiseTest, LogicEqualsTheReference) {
  Random random(42);
  for (const char* op : {"And", "Or", "Xor", "Equal"}) {
    for (const auto& [a, b] : kShapes) {
      compare_with_reference(make_call(op, 17,
                                       {TestTensor::random(ElementType::kBool, a, random),
                                        TestTensor::random(ElementType::kBool, b, random)}));
    }
  }
  compare_with_reference(
      make_call("Not", 17, {TestTensor::random(ElementType::kBool, {5, 7}, random)}));
}

TEST(ElementwiseTest, SignsOfRemaindersFollowTheDivisorOrTheDividend) {
  for (int64_t fmod : {0, 1}) {
    OpCall call = make_call("Mod", 13,
                            {TestTensor::of<int64_t>({4}, {-4, 7, 5, -8}),
                             TestTensor::of<int64_t>({4}, {2, -3, 8, 3})});
    call.attributes.set("fmod", fmod);
    const auto expected =
        fmod ? std::vector<int64_t>{0, 1, 5, -2} : std::vector<int64_t>{0, -2, 5, 1};
    EXPECT_EQ(run_one(call, KernelSet::kReference).values<int64_t>(), expected);
    EXPECT_EQ(run_one(call, KernelSet::kCpu).values<int64_t>(), expected);
  }
}

// Every pair of small numbers: with fmod=0 the remainder is that of rounding down, so it has the
// divisor's sign; with fmod=1 that of rounding towards zero.
template <typename T>
void expect_remainders(int64_t low) {
  std::vector<T> a, b, floored, truncated;
  for (int64_t x = low; x <= 9; ++x) {
    for (int64_t y = low; y <= 9; ++y) {
      if (y == 0) continue;
      a.push_back(static_cast<T>(x));
      b.push_back(static_cast<T>(y));
      const int64_t quotient =
          static_cast<int64_t>(std::floor(static_cast<double>(x) / static_cast<double>(y)));
      floored.push_back(static_cast<T>(x - quotient * y));
      truncated.push_back(static_cast<T>(x - x / y * y));
    }
  }
  const Dims dims = {static_cast<int64_t>(a.size())};
  OpCall call = make_call("Mod", 13, {TestTensor::of<T>(dims, a), TestTensor::of<T>(dims, b)});
  for (const KernelSet kernels : {KernelSet::kReference, KernelSet::kCpu}) {
    call.attributes.set("fmod", int64_t{0});
    EXPECT_EQ(run_one(call, kernels).values<T>(), floored);
    call.attributes.set("fmod", int64_t{1});
    EXPECT_EQ(run_one(call, kernels).values<T>(), truncated);
  }
}

TEST(ElementwiseTest, RemaindersOfEveryPairOfSignsAreWhatDivisionLeaves) {
  expect_remainders<int8_t>(-9);
  expect_remainders<int16_t>(-9);
  expect_remainders<int32_t>(-9);
  expect_remainders<int64_t>(-9);
  expect_remainders<uint8_t>(0);
  expect_remainders<uint64_t>(0);
}

TEST(ElementwiseTest, ARemainderByOneZeroAmongOthersIsAnErrorOfIntegersAndNaNOfFloats) {
  for (const KernelSet kernels : {KernelSet::kReference, KernelSet::kCpu}) {
    for (const int64_t fmod : {0, 1}) {
      OpCall call = make_call("Mod", 13,
                              {TestTensor::of<int32_t>({5}, {1, -2, 3, -4, 5}),
                               TestTensor::of<int32_t>({5}, {2, -1, 3, 0, 5})});
      call.attributes.set("fmod", fmod);
      const auto result = run_op(call, kernels);
      ASSERT_FALSE(result.is_ok());
      EXPECT_NE(result.status().message().find("integer division by zero"), std::string::npos);
    }
    OpCall floats = make_call("Mod", 13,
                              {TestTensor::of<float>({4}, {7.5f, -7.5f, 7.5f, 1}),
                               TestTensor::of<float>({4}, {2, 2, -2, 0})});
    floats.attributes.set("fmod", int64_t{1});
    const std::vector<float> rest = run_one(floats, kernels).values<float>();
    EXPECT_EQ((std::vector<float>(rest.begin(), rest.end() - 1)),
              (std::vector<float>{1.5f, -1.5f, 1.5f}));
    EXPECT_TRUE(std::isnan(rest[3]));
  }
}

TEST(ElementwiseTest, RemaindersEqualTheReference) {
  Random random(43);
  for (ElementType element : {ElementType::kInt32, ElementType::kInt64, ElementType::kInt8,
                              ElementType::kUint8, kF32, ElementType::kFloat16}) {
    for (int64_t fmod : {0, 1}) {
      const bool is_float = !is_integer(element);
      if (is_float && fmod == 0) continue;
      for (const auto& [a, b] : kShapes) {
        const double low = element == ElementType::kUint8 ? 0 : -9;
        // Both signs, without 0.
        TestTensor divisor = TestTensor::random(element, b, random, 1, 5);
        for (int64_t i = 0; low < 0 && i < divisor.count(); ++i) {
          if (random.below(2) == 0) continue;
          store_number(divisor.view(), i, Number::of_double(-number_at(divisor.view(), i)));
        }
        OpCall call =
            make_call("Mod", 13, {TestTensor::random(element, a, random, low, 9), divisor});
        call.attributes.set("fmod", fmod);
        compare_with_reference(call);
      }
    }
  }
}

TEST(ElementwiseTest, TheLowestIntegerByMinusOneWrapsInsteadOfTrapping) {
  const int64_t lowest = std::numeric_limits<int64_t>::min();
  for (const char* op : {"Div", "Mod"}) {
    for (size_t size : {size_t{1}, size_t{5}}) {
      const Dims dims = {static_cast<int64_t>(size)};
      const OpCall call =
          make_call(op, 14,
                    {TestTensor::of<int64_t>(dims, std::vector<int64_t>(size, lowest)),
                     TestTensor::of<int64_t>(dims, std::vector<int64_t>(size, -1))});
      const int64_t expected = std::string(op) == "Div" ? lowest : 0;
      for (KernelSet kernels : {KernelSet::kReference, KernelSet::kCpu}) {
        EXPECT_EQ(run_one(call, kernels).values<int64_t>(), std::vector<int64_t>(size, expected));
      }
    }
  }
}

TEST(ElementwiseTest, IntegerDivisionByZeroIsAnErrorThatNamesIt) {
  for (const char* op : {"Div", "Mod"}) {
    for (ElementType element : {ElementType::kInt32, ElementType::kInt64, ElementType::kUint8}) {
      for (const Dims& dims : {Dims{}, Dims{3}}) {
        Random random(1);
        const OpCall call = make_call(op, 14,
                                      {TestTensor::random(element, dims, random, 1, 5),
                                       TestTensor::random(element, {}, random, 0, 0)});
        for (KernelSet kernels : {KernelSet::kReference, KernelSet::kCpu}) {
          const auto result = run_op(call, kernels);
          ASSERT_FALSE(result.is_ok());
          EXPECT_EQ(result.status().code(), StatusCode::kRunFailed);
          EXPECT_NE(result.status().message().find("integer division by zero"), std::string::npos)
              << result.status().message();
        }
      }
    }
  }
}

TEST(ElementwiseTest, PowTakesExponentsOfAnotherTypeAndNegativeOnes) {
  const auto run = [](TestTensor base, TestTensor exponent) {
    return run_one(make_call("Pow", 15, {base, exponent}), KernelSet::kCpu);
  };
  EXPECT_EQ(run(TestTensor::of<int64_t>({4}, {2, -3, -1, 5}),
                TestTensor::of<int32_t>({4}, {10, 3, -3, -1}))
                .values<int64_t>(),
            (std::vector<int64_t>{1024, -27, -1, 0}));
  EXPECT_EQ(run(TestTensor::of<int32_t>({2}, {4, 2}), TestTensor::of<float>({}, {0.5f}))
                .values<int32_t>(),
            (std::vector<int32_t>{2, 1}));
  Random random(44);
  for (const auto& [a, b] : kShapes) {
    compare_with_reference(make_call("Pow", 13,
                                     {TestTensor::random(kF32, a, random, 0.1, 3),
                                      TestTensor::random(kF32, b, random, -3, 3)}),
                           1e-6);
  }
  compare_with_reference(
      make_call("Pow", 13, {TestTensor::random(kF32, {33}, random), TestTensor::scalar(2.0f)}),
      1e-6);
}

TEST(ElementwiseTest, ANanOnEitherSideIsTheMaximumAndTheMinimum) {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (const char* op : {"Max", "Min"}) {
    for (int64_t count : {1, 40}) {
      const std::vector<float> one(static_cast<size_t>(count), 1),
          none(static_cast<size_t>(count), nan);
      for (const auto& [a, b] : {std::pair(one, none), std::pair(none, one)}) {
        const TestTensor y = run_one(
            make_call(op, 13,
                      {TestTensor::of<float>({count}, a), TestTensor::of<float>({count}, b)}),
            KernelSet::kCpu);
        for (float value : y.values<float>()) EXPECT_TRUE(std::isnan(value));
      }
    }
  }
}

TEST(ElementwiseTest, VariadicOperatorsFoldAllInputs) {
  Random random(45);
  for (const char* op : {"Max", "Min", "Sum", "Mean"}) {
    for (ElementType element : {kF32, ElementType::kDouble, ElementType::kInt64}) {
      if (element == ElementType::kInt64 && (op[0] == 'S' || op[1] == 'e')) continue;
      for (size_t count = 1; count <= 4; ++count) {
        const Dims kDims[] = {{1, 4}, {3, 1}, {}, {2, 3, 4}};
        OpCall call = make_call(op, 13, {});
        for (size_t i = 0; i < count; ++i) {
          call.inputs.push_back(TestTensor::random(element, kDims[i], random));
        }
        compare_with_reference(call, 1e-6, 1e-6);
      }
    }
  }
}

TEST(ElementwiseTest, UnaryKernelsAreCloseToTheReference) {
  struct Row {
    const char* op;
    double low, high;
  };
  const Row kRows[] = {
      {"Abs", -9, 9},         {"Neg", -9, 9},       {"Relu", -9, 9},
      {"Sign", -2, 2},        {"Ceil", -9, 9},      {"Floor", -9, 9},
      {"Round", -9, 9},       {"Sqrt", 0, 9},       {"Reciprocal", 1, 9},
      {"Exp", -20, 20},       {"Log", 0.01, 20},    {"Sigmoid", -20, 20},
      {"Tanh", -5, 5},        {"Erf", -4, 4},       {"Softplus", -20, 20},
      {"Softsign", -9, 9},    {"Elu", -9, 9},       {"Celu", -9, 9},
      {"Selu", -9, 9},        {"LeakyRelu", -9, 9}, {"ThresholdedRelu", -9, 9},
      {"HardSigmoid", -5, 5}, {"HardSwish", -5, 5}, {"Sin", -9, 9},
      {"Cos", -9, 9},         {"Tan", -1.4, 1.4},   {"Gelu", -3, 5},
      {"Mish", -9, 9},        {"Swish", -9, 9},
  };
  const uint64_t seed = 46;
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  for (const Row& row : kRows) {
    for (ElementType element : {kF32, ElementType::kDouble, ElementType::kFloat16}) {
      for (const Dims& dims : {Dims{}, Dims{1}, Dims{3, 45}, Dims{0}}) {
        // In float, where a function crosses 0 the error is one of its argument.
        const double rtol = element == ElementType::kFloat16 ? 1e-3 : 3e-6;
        compare_with_reference(
            make_call(row.op, 24, {TestTensor::random(element, dims, random, row.low, row.high)}),
            rtol, 2e-7);
      }
    }
  }
  for (const char* op : {"Abs", "Neg", "Relu", "Sign"}) {
    for (ElementType element : {ElementType::kInt32, ElementType::kInt64, ElementType::kInt8}) {
      compare_with_reference(make_call(op, 14, {TestTensor::random(element, {19}, random, -9, 9)}));
    }
  }
}

TEST(ElementwiseTest, GeluHasTwoFormulas) {
  OpCall call = make_call("Gelu", 20, {TestTensor::of<float>({3}, {-1, 0, 1})});
  EXPECT_TRUE(is_close(run_one(call, KernelSet::kCpu),
                       TestTensor::of<float>({3}, {-0.15865526f, 0, 0.84134474f}), 1e-6, 0));
  call.attributes.set("approximate", std::string("tanh"));
  EXPECT_TRUE(is_close(run_one(call, KernelSet::kCpu),
                       TestTensor::of<float>({3}, {-0.158808f, 0, 0.841192f}), 1e-5, 0));
  compare_with_reference(call, 1e-6);
  call.attributes.set("approximate", std::string("sine"));
  EXPECT_FALSE(run_op(call, KernelSet::kCpu).is_ok());
}

TEST(ElementwiseTest, ClipTakesEitherLimitOrNone) {
  Random random(47);
  for (ElementType element : {kF32, ElementType::kInt64, ElementType::kInt8}) {
    for (int mask = 0; mask < 4; ++mask) {
      OpCall call = make_call("Clip", 13, {TestTensor::random(element, {5, 9}, random, -9, 9)});
      call.inputs.push_back(mask & 1 ? TestValue(TestTensor::random(element, {}, random, -4, -4))
                                     : TestValue::omitted());
      call.inputs.push_back(mask & 2 ? TestValue(TestTensor::random(element, {}, random, 3, 3))
                                     : TestValue::omitted());
      compare_with_reference(call);
    }
  }
  OpCall old = make_call("Clip", 6, {TestTensor::of<float>({3}, {-2, 0.5f, 2})});
  old.attributes = {{"min", -1.0f}, {"max", 1.0f}};
  EXPECT_EQ(run_one(old, KernelSet::kCpu).values<float>(), (std::vector<float>{-1, 0.5f, 1}));
}

TEST(ElementwiseTest, WherePicksBroadcastElementsOfEveryType) {
  Random random(48);
  const Dims kTriples[][3] = {
      {{}, {}, {}},      {{5, 4}, {5, 4}, {5, 4}}, {{4}, {}, {5, 4}},     {{5, 1}, {4}, {}},
      {{}, {5, 4}, {4}}, {{2, 1, 1}, {3, 1}, {7}}, {{1, 3}, {2, 1}, {1}}, {{0}, {1}, {}}};
  for (ElementType element :
       {kF32, ElementType::kInt64, ElementType::kBool, ElementType::kFloat16}) {
    for (const auto& dims : kTriples) {
      compare_with_reference(make_call("Where", 16,
                                       {TestTensor::random(ElementType::kBool, dims[0], random),
                                        TestTensor::random(element, dims[1], random, 0, 9),
                                        TestTensor::random(element, dims[2], random, 0, 9)}));
    }
  }
  const OpCall texts =
      make_call("Where", 16,
                {TestTensor::of<bool>({2}, {true, false}), TestTensor::of_strings({2}, {"a", "b"}),
                 TestTensor::of_strings({}, {"c"})});
  EXPECT_EQ(run_one(texts, KernelSet::kCpu).strings(), (std::vector<std::string>{"a", "c"}));
}

// Memory of a caller's may hold any byte.
TEST(ElementwiseTest, WhereTakesEveryByteButZeroForTrue) {
  for (const ElementType element : {ElementType::kUint8, kF32, ElementType::kInt64}) {
    Random random(4);
    TestTensor condition(ElementType::kBool, {70});
    auto* const bytes = static_cast<uint8_t*>(const_cast<void*>(condition.view().data));
    for (int i = 0; i < 70; ++i) bytes[i] = static_cast<uint8_t>(i % 5 == 0 ? 0 : 255 - 3 * i);
    const TestTensor x = TestTensor::random(element, {70}, random, 1, 9);
    const TestTensor zero(element, {1});
    std::memset(const_cast<void*>(zero.view().data), 0, zero.view().size_bytes());
    const TestTensor found = run_one(make_call("Where", 16, {condition, x, zero}), KernelSet::kCpu);
    const size_t size = element_size_bytes(element);
    const auto at = [&](const TestTensor& tensor, int i) {
      return static_cast<const char*>(tensor.view().data) + static_cast<size_t>(i) * size;
    };
    for (int i = 0; i < 70; ++i) {
      EXPECT_EQ(std::memcmp(at(found, i), i % 5 == 0 ? at(zero, 0) : at(x, i), size), 0) << i;
    }
  }
}

TEST(ElementwiseTest, InPlaceGivesTheSameBits) {
  Random random(49);
  for (const char* op : {"Add", "Sub", "Div", "Exp", "Tanh", "Relu", "Max", "Sum"}) {
    const bool is_unary = op[0] == 'E' || op[0] == 'T' || op[0] == 'R';
    for (int at = 0; at < (is_unary || op[0] == 'M' || op[1] == 'u' ? 1 : 2); ++at) {
      for (const Dims& other : {Dims{6, 7}, Dims{7}, Dims{6, 1}, Dims{}}) {
        OpCall call = make_call(op, 13, {TestTensor::random(kF32, {6, 7}, random, 1, 2)});
        if (!is_unary) call.inputs.push_back(TestTensor::random(kF32, other, random, 1, 2));
        if (at == 1) std::swap(call.inputs[0], call.inputs[1]);
        const TestTensor apart = run_one(call, KernelSet::kCpu);
        call.in_place_input = at;
        EXPECT_TRUE(is_same_bits(run_one(call, KernelSet::kCpu), apart)) << op;
      }
    }
  }
}

TEST(ElementwiseTest, OpsetSixStretchesTheSecondInputFromAnAxis) {
  Random random(50);
  for (const char* op : {"Add", "Mul", "Pow", "Less"}) {
    const bool is_less = op[0] == 'L';
    OpCall call = make_call(op, 6,
                            {TestTensor::random(kF32, {2, 3, 4}, random, 1, 2),
                             TestTensor::random(kF32, {3}, random, 1, 2)});
    call.attributes = {{"broadcast", int64_t{1}}, {"axis", int64_t{1}}};
    compare_with_reference(call, is_less ? 0 : 1e-6);
    // The same as NumPy's rule with a dimension added by hand.
    OpCall modern = make_call(op, 13, call.inputs);
    const TestTensor& b = call.inputs[1].tensor();
    modern.inputs[1] = TestTensor::of<float>({3, 1}, b.values<float>());
    EXPECT_TRUE(is_same_bits(run_one(call, KernelSet::kCpu), run_one(modern, KernelSet::kCpu)));
  }
}

TEST(ElementwiseTest, SlopesOfPReluStretchOverChannelsBeforeOpsetSeven) {
  Random random(51);
  const TestTensor x = TestTensor::random(kF32, {2, 3, 4}, random);
  const TestTensor slope = TestTensor::random(kF32, {3}, random);
  const OpCall old = make_call("PRelu", 6, {x, slope});
  const OpCall modern =
      make_call("PRelu", 16, {x, TestTensor::of<float>({3, 1}, slope.values<float>())});
  EXPECT_TRUE(is_same_bits(run_one(old, KernelSet::kCpu), run_one(modern, KernelSet::kCpu)));
  compare_with_reference(modern);
}

}  // namespace
}  // namespace eddy::testing
