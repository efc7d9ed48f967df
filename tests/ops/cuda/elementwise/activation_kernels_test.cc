// Claim: activations, trigonometry, clipping, bits and operators of any number of inputs give the
// reference's values on CUDA kernels, for every type they take; those of bytes and integers, and
// all that only choose, bit for bit.
#include <limits>

#include "tests/ops/cuda/host/kernel_fixture.h"

namespace eddy::testing {
namespace {

const ElementType kIntegers[] = {ElementType::kInt32, ElementType::kInt64, ElementType::kInt8};
const Dims kFew[] = {Dims{}, Dims{5}, Dims{3, 70}, Dims{0}};

class ActivationKernels : public CudaKernelFixture {
 protected:
  // Computed as float and rounded once; a value near a tie may round the other way.
  void compare_close(const OpCall& call) {
    const bool is_coarse = is_half(call.inputs[0].tensor().element());
    compare(call, is_coarse ? 1e-2 : 4e-6, is_coarse ? 2e-3 : 4e-7);
  }
  OpCall latest(OpCall call) {
    call.opset = 24;
    return call;
  }
};

TEST_F(ActivationKernels, FunctionsOfFloatsAreTheReferencesWithinAFewUnits) {
  struct Case {
    const char* op;
    double low;
    double high;
  };
  const Case kCases[] = {{"Acos", -0.9, 0.9}, {"Acosh", 1.1, 9},      {"Asin", -0.9, 0.9},
                         {"Asinh", -5, 5},    {"Atan", -5, 5},        {"Atanh", -0.9, 0.9},
                         {"Celu", -4, 4},     {"Cosh", -3, 3},        {"Elu", -4, 4},
                         {"Gelu", -4, 4},     {"HardSigmoid", -4, 4}, {"HardSwish", -5, 5},
                         {"Mish", -4, 4},     {"Selu", -4, 4},        {"Shrink", -2, 2},
                         {"Sign", -2, 2},     {"Sinh", -3, 3},        {"Softsign", -9, 9},
                         {"Swish", -5, 5},    {"Tan", -1.2, 1.2},     {"ThresholdedRelu", -3, 3}};
  for (const Case& each : kCases) {
    for (const ElementType element : kCudaFloats) {
      for (const Dims& dims : kFew) {
        compare_close(latest(make_call(each.op, {random(element, dims, each.low, each.high)})));
      }
    }
  }
}

TEST_F(ActivationKernels, AttributesArriveInTheirPlaces) {
  const auto with = [&](const char* op, std::vector<Attributes::Entry> attributes) {
    OpCall call = latest(make_call(op, {random(ElementType::kFloat, {300}, -3, 3)}));
    for (auto& [name, value] : attributes) call.attributes.set(name, value);
    compare_close(call);
  };
  with("Elu", {{"alpha", 0.3f}});
  with("Celu", {{"alpha", 2.5f}});
  with("Selu", {{"alpha", 0.3f}, {"gamma", 2.0f}});
  with("HardSigmoid", {{"alpha", 0.7f}, {"beta", 0.1f}});
  with("ThresholdedRelu", {{"alpha", 0.4f}});
  with("Shrink", {{"bias", 0.3f}, {"lambd", 1.1f}});
  with("LeakyRelu", {{"alpha", 0.3f}});
  with("Gelu", {{"approximate", std::string("tanh")}});
}

TEST_F(ActivationKernels, IntegersAndBytesAreExact) {
  for (const ElementType element : kIntegers) {
    const bool is_byte = element == ElementType::kInt8;
    for (const char* op : {"Sign", "BitwiseNot", "Abs", "Neg", "Relu"}) {
      compare(latest(make_call(op, {random(element, {100}, -50, 50)})));
    }
    for (const char* op : {"Add", "Sub", "Mul", "Max", "Min", "Equal", "Less", "LessOrEqual",
                           "Greater", "GreaterOrEqual", "BitwiseAnd", "BitwiseOr", "BitwiseXor"}) {
      compare(latest(
          make_call(op, {random(element, {3, 65}, -99, 99), random(element, {65}, -99, 99)})));
    }
    if (is_byte) continue;
    compare(make_call("PRelu", {random(element, {3, 65}, -9, 9), random(element, {65}, -9, 9)}));
    compare(make_call("Pow", {random(element, {3, 65}, -4, 4), random(element, {65}, -2, 9)}));
  }
  for (const ElementType element :
       {ElementType::kUint8, ElementType::kUint16, ElementType::kUint32, ElementType::kUint64}) {
    for (const char* direction : {"LEFT", "RIGHT"}) {
      OpCall call =
          make_call("BitShift", {random(element, {3, 65}, 0, 200), random(element, {65}, 0, 70)});
      call.attributes.set("direction", std::string(direction));
      compare(call);
    }
    compare(latest(
        make_call("BitwiseXor", {random(element, {65}, 0, 200), random(element, {65}, 0, 200)})));
  }
}

TEST_F(ActivationKernels, ClipTakesEitherLimitBothOrNone) {
  for (const ElementType element :
       {ElementType::kFloat, ElementType::kDouble, ElementType::kFloat16, ElementType::kBfloat16,
        ElementType::kInt32, ElementType::kInt64, ElementType::kInt8}) {
    const TestTensor low = random(element, {}, -3, -2);
    const TestTensor high = random(element, {}, 2, 3);
    for (const Dims& dims : kFew) {
      const TestTensor x = random(element, dims, -9, 9);
      compare(make_call("Clip", {x}));
      compare(make_call("Clip", {x, low}));
      compare(make_call("Clip", {x, TestValue::omitted(), high}));
      compare(make_call("Clip", {x, low, high}));
      compare(make_call("Clip", {x, high, low}));
    }
  }
  OpCall old = make_call("Clip", {random(ElementType::kFloat, {99}, -9, 9)});
  old.opset = 10;
  compare(old);
  old.attributes.set("min", -1.5f);
  compare(old);
  old.attributes.set("max", 0.5f);
  compare(old);
}

TEST_F(ActivationKernels, AnyNumberOfInputsIsFoldedFromTheFirstOn) {
  for (const char* op : {"Max", "Min", "Sum", "Mean"}) {
    for (const ElementType element : {ElementType::kFloat, ElementType::kDouble}) {
      const std::vector<TestValue> all = {
          random(element, {3, 1, 5}, -9, 9), random(element, {4, 1}, -9, 9),
          random(element, {1, 5}, -9, 9), random(element, {}, -9, 9)};
      for (size_t count = 1; count <= all.size(); ++count) {
        compare(make_call(op, {all.begin(), all.begin() + static_cast<long>(count)}), 2e-6, 1e-6);
      }
    }
  }
  for (const ElementType element : kIntegers) {
    compare(make_call("Max", {random(element, {40}, -9, 9), random(element, {40}, -9, 9),
                              random(element, {1}, -9, 9)}));
  }
}

TEST_F(ActivationKernels, IntegersAreDividedTowardsZeroAndTheirRestsAreExact) {
  for (const ElementType element :
       {ElementType::kInt8, ElementType::kUint8, ElementType::kInt16, ElementType::kUint16,
        ElementType::kInt32, ElementType::kUint32, ElementType::kInt64, ElementType::kUint64}) {
    const bool is_signed = kSignedIntTypes.contains(element);
    const TestTensor x = random(element, {3, 65}, is_signed ? -99 : 0, 99);
    for (const double low : {1.0, is_signed ? -9.0 : 1.0}) {
      const TestTensor y = random(element, {65}, low, low < 0 ? -1 : 9);
      OpCall rest = make_call("Mod", {x, y});
      compare(make_call("Div", {x, y}));
      compare(rest);
      rest.attributes.set("fmod", int64_t{1});
      compare(rest);
    }
  }
  const int64_t lowest = std::numeric_limits<int64_t>::min();
  const TestTensor ends = TestTensor::of<int64_t>({3}, {lowest, lowest, 7});
  const TestTensor minus_one = TestTensor::of<int64_t>({}, {-1});
  compare(make_call("Div", {ends, minus_one}));
  compare(make_call("Mod", {ends, minus_one}));
}

TEST_F(ActivationKernels, ADivisionByZeroFailsTheRunByItsElement) {
  const TestTensor x = random(ElementType::kInt32, {2, 5}, -9, 9);
  const TestTensor y = TestTensor::of<int32_t>({5}, {1, 2, 3, 0, 5});
  for (const char* op : {"Div", "Mod"}) {
    const OpCall call = make_call(op, {x, y});
    EXPECT_EQ(refusal(call),
              "integer division by zero in " + std::string(op) + " at element 3 of input 1");
    EXPECT_EQ(refusal(call), run_op(call, KernelSet::kReference).status().message());
  }
}

TEST_F(ActivationKernels, FmodAndTestsOfFloatsAreExact) {
  const float infinity = std::numeric_limits<float>::infinity();
  const TestTensor special =
      TestTensor::of<float>({6}, {1, infinity, -infinity, std::nanf(""), 0, -3});
  compare(make_call("IsNaN", {special}));
  for (const int64_t positive : {0, 1}) {
    OpCall call = make_call("IsInf", {special});
    call.attributes.set("detect_positive", positive);
    call.attributes.set("detect_negative", int64_t{1});
    compare(call);
    call.attributes.set("detect_negative", int64_t{0});
    compare(call);
  }
  for (const ElementType element : kCudaFloats) {
    OpCall call =
        make_call("Mod", {random(element, {3, 65}, -99, 99), random(element, {65}, 1, 9)});
    call.attributes.set("fmod", int64_t{1});
    compare(call);
    compare(make_call("PRelu", {random(element, {3, 65}, -9, 9), random(element, {65}, -9, 9)}),
            is_half(element) ? 1e-2 : 0, 0);
  }
}

}  // namespace
}  // namespace eddy::testing
