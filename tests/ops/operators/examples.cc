#include "tests/ops/operators/examples.h"

#include <algorithm>

namespace eddy::testing {
namespace {

using Inputs = std::vector<TestValue>;
using Ints = std::vector<int64_t>;

const std::vector<ElementType> kFloats = {ElementType::kFloat};
const std::vector<ElementType> kNumbers = {ElementType::kFloat, ElementType::kInt64,
                                           ElementType::kInt32};
const std::vector<ElementType> kAll = {ElementType::kFloat, ElementType::kInt64,
                                       ElementType::kInt32, ElementType::kBool};
const std::vector<ElementType> kBytes = {ElementType::kInt8, ElementType::kUint8};

TestTensor random(ElementType element, const Dims& dims, Random& random) {
  return TestTensor::random(element, dims, random, element == ElementType::kBool ? 0 : -3,
                            element == ElementType::kBool ? 1 : 3);
}

// A number of the element type.
TestTensor number(ElementType element, double value) {
  TestTensor tensor(element, {});
  switch (element) {
    case ElementType::kFloat:
      tensor.view().mutable_as<float>()[0] = static_cast<float>(value);
      break;
    case ElementType::kInt64:
      tensor.view().mutable_as<int64_t>()[0] = static_cast<int64_t>(value);
      break;
    case ElementType::kInt32:
      tensor.view().mutable_as<int32_t>()[0] = static_cast<int32_t>(value);
      break;
    default:
      tensor.view().mutable_as<uint8_t>()[0] = value != 0;
  }
  return tensor;
}

TestTensor ints(const Ints& values) {
  return TestTensor::of<int64_t>({static_cast<int64_t>(values.size())}, values);
}

// Random inputs of the given shapes, all of the main input's type.
std::function<Inputs(ElementType, Random&)> shaped(std::vector<Dims> shapes) {
  return [shapes = std::move(shapes)](ElementType element, Random& r) {
    Inputs inputs;
    for (const Dims& dims : shapes) inputs.push_back(random(element, dims, r));
    return inputs;
  };
}

// A random first input, then the same others each time.
std::function<Inputs(ElementType, Random&)> with(Dims first, Inputs others) {
  return [first, others = std::move(others)](ElementType element, Random& r) {
    Inputs inputs = {random(element, first, r)};
    inputs.insert(inputs.end(), others.begin(), others.end());
    return inputs;
  };
}

Example unary(const char* op, int first_opset, const std::vector<ElementType>& elements = kFloats,
              Attributes attributes = {}) {
  return {op, first_opset, elements, std::move(attributes), 1, shaped({{2, 3, 5}})};
}

Example reduction(const char* op, const std::vector<ElementType>& elements = kNumbers) {
  return {op, 1, elements, {{"keepdims", int64_t{0}}}, 1, with({2, 3, 5}, {ints({1})})};
}

Example arg(const char* op) {
  return {
      op, 1, kNumbers, {{"axis", int64_t{1}}, {"keepdims", int64_t{0}}}, 1, shaped({{2, 7, 5}})};
}

Example window(const char* op) {
  return {
      op,      1,
      kFloats, {{"kernel_shape", Ints{3, 2}}, {"pads", Ints{1, 0, 1, 1}}, {"strides", Ints{2, 1}}},
      1,       shaped({{2, 3, 7, 6}})};
}

Example recurrent(const char* op, int64_t gates) {
  constexpr int64_t kHidden = 4;
  return {op,      1,
          kFloats, {{"hidden_size", kHidden}},
          2,       shaped({{3, 2, 5}, {1, gates * kHidden, 5}, {1, gates * kHidden, kHidden}})};
}

Example scatter(const char* op, TestTensor indices, const Dims& updates) {
  return {op, 11, kAll, {}, 1, [=](ElementType element, Random& r) -> Inputs {
            return {random(element, {3, 4}, r), indices, random(element, updates, r)};
          }};
}

std::vector<Example> activations() {
  return {
      unary("Abs", 1, kNumbers),
      unary("Cos", 7),
      unary("Dropout", 1),
      unary("Elu", 1, kFloats, {{"alpha", 0.5f}}),
      unary("Erf", 9),
      unary("Gelu", 20),
      unary("HardSigmoid", 1),
      unary("HardSwish", 14),
      unary("IsNaN", 9),
      unary("LeakyRelu", 1, kFloats, {{"alpha", 0.1f}}),
      unary("LogSoftmax", 1),
      unary("Reciprocal", 1),
      unary("Round", 11),
      unary("Selu", 1),
      unary("Sign", 9, kNumbers),
      unary("Sin", 7),
      unary("Softplus", 1),
      unary("Swish", 24, kFloats, {{"alpha", 0.5f}}),
      unary("Tan", 7),
      {"PRelu", 1, kNumbers, {}, 1, shaped({{2, 3, 5}, {3, 1}})},
      {"Clip",
       1,
       kNumbers,
       {},
       1,
       [](ElementType element, Random& r) -> Inputs {
         return {random(element, {2, 3, 5}, r), number(element, -1), number(element, 2)};
       }},
      {"Mean", 1, kFloats, {}, 1, shaped({{2, 3}, {3}, {2, 1}})},
      {"Sum", 1, kFloats, {}, 1, shaped({{2, 3}, {3}, {2, 1}})},
      {"Xor", 1, {ElementType::kBool}, {}, 1, shaped({{2, 3}, {3}})},
      {"CastLike", 15, kAll, {}, 1, with({2, 3}, {TestTensor::of<float>({1}, {0})})},
  };
}

std::vector<Example> reductions() {
  std::vector<ElementType> all = kAll;
  return {
      arg("ArgMax"),
      arg("ArgMin"),
      reduction("ReduceL1"),
      reduction("ReduceL2"),
      reduction("ReduceLogSum"),
      reduction("ReduceLogSumExp"),
      reduction("ReduceMax", all),
      reduction("ReduceMin", all),
      reduction("ReduceProd"),
      reduction("ReduceSumSquare"),
      {"TopK", 1, kNumbers, {{"axis", int64_t{1}}}, 2, with({2, 9, 3}, {ints({2})})},
  };
}

std::vector<Example> windows_and_norms() {
  return {
      window("AveragePool"),
      window("MaxPool"),
      {"GlobalAveragePool", 1, kFloats, {}, 1, shaped({{2, 3, 4, 5}})},
      {"GlobalMaxPool", 1, kFloats, {}, 1, shaped({{2, 3, 4, 5}})},
      {"ConvTranspose", 1, kFloats, {}, 1, shaped({{1, 2, 5, 4}, {2, 3, 3, 2}, {3}})},
      {"BatchNormalization",
       1,
       kFloats,
       {},
       1,
       [](ElementType element, Random& r) -> Inputs {
         const TestTensor positive = TestTensor::of<float>({3}, {0.5f, 1, 2});
         return {random(element, {2, 3, 4}, r), random(element, {3}, r), random(element, {3}, r),
                 random(element, {3}, r), positive};
       }},
      {"InstanceNormalization", 1, kFloats, {}, 1, shaped({{2, 3, 8}, {3}, {3}})},
      {"LayerNormalization", 17, kFloats, {}, 1, shaped({{2, 3, 8}, {8}, {8}})},
      {"LRN", 1, kFloats, {{"size", int64_t{3}}}, 1, shaped({{2, 5, 3, 4}})},
      {"Resize",
       10,
       kNumbers,
       {{"mode", std::string("nearest")}},
       1,
       with({1, 2, 3, 4}, {TestValue::omitted(), TestValue::omitted(), ints({1, 2, 6, 8})})},
  };
}

std::vector<Example> matrices() {
  return {
      {"Gemm", 1, kNumbers, {{"transB", int64_t{1}}}, 1, shaped({{3, 5}, {4, 5}, {4}})},
      {"MatMulInteger", 10, kBytes, {}, 1, shaped({{3, 5}, {5, 4}})},
      recurrent("GRU", 3),
      recurrent("RNN", 1),
      {"DequantizeLinear", 10, kBytes, {}, 1, with({2, 3}, {TestTensor::of<float>({}, {0.25f})})},
      {"QuantizeLinear",
       10,
       kFloats,
       {},
       1,
       with({2, 3}, {TestTensor::of<float>({}, {0.25f}), TestTensor::of<uint8_t>({}, {3})})},
      {"DynamicQuantizeLinear", 11, kFloats, {}, 3, shaped({{2, 3}})},
  };
}

std::vector<Example> movements() {
  return {
      {"EyeLike", 9, kAll, {{"k", int64_t{1}}}, 1, shaped({{3, 4}})},
      {"Flatten", 1, kAll, {{"axis", int64_t{2}}}, 1, shaped({{2, 3, 5}})},
      {"GatherElements",
       11,
       kAll,
       {{"axis", int64_t{1}}},
       1,
       with({2, 4}, {TestTensor::of<int64_t>({2, 2}, {0, 3, -1, 2})})},
      {"GatherND", 11, kAll, {}, 1, with({3, 4}, {TestTensor::of<int64_t>({2, 2}, {0, 3, -1, 2})})},
      {"NonZero", 9, kAll, {}, 1, shaped({{3, 4}})},
      {"OneHot",
       9,
       kAll,
       {},
       1,
       [](ElementType element, Random&) -> Inputs {
         TestTensor values(element, {2});
         std::memcpy(values.view().data, number(element, 0).view().data,
                     element_size_bytes(element));
         std::memcpy(values.view().mutable_as<std::byte>() + element_size_bytes(element),
                     number(element, 1).view().data, element_size_bytes(element));
         return {ints({0, 2, -1, 7}), ints({4}), values};
       }},
      scatter("ScatterElements", TestTensor::of<int64_t>({1, 2}, {2, 0}), {1, 2}),
      scatter("ScatterND", TestTensor::of<int64_t>({2, 1}, {2, 0}), {2, 4}),
      {"Trilu", 14, kAll, {{"upper", int64_t{0}}}, 1, shaped({{2, 3, 4}})},
  };
}

}  // namespace

OpCall Example::call(ElementType element, uint64_t seed) const {
  Random random(seed);
  OpCall call;
  call.op = op;
  call.opset = std::max(22, first_opset);
  call.attributes = attributes;
  call.inputs = inputs(element, random);
  call.num_outputs = num_outputs;
  // Host values: as constants they fix shapes.
  for (size_t i = 1; i < call.inputs.size(); ++i) call.constant_inputs |= uint64_t{1} << i;
  return call;
}

const std::vector<Example>& examples() {
  static const std::vector<Example>* const all = [] {
    auto* made = new std::vector<Example>;
    for (auto part : {activations(), reductions(), windows_and_norms(), matrices(), movements()}) {
      made->insert(made->end(), part.begin(), part.end());
    }
    return made;
  }();
  return *all;
}

}  // namespace eddy::testing
