#include "tests/ops/operators/function_calls.h"

#include <utility>

#include "tests/ops/testing/calls.h"

namespace eddy::testing {
namespace {

using Ints = std::vector<int64_t>;
using Floats = std::vector<float>;
using Words = std::vector<std::string>;

const TestValue kNone = TestValue::omitted();

class Calls {
 public:
  explicit Calls(Random& random) : random_(random) {}

  void add(const char* op, int opset, std::vector<TestValue> inputs, Attributes attributes = {},
           size_t num_outputs = 1) {
    add_of("", op, opset, std::move(inputs), std::move(attributes), num_outputs);
  }
  void add_of(const char* domain, const char* op, int version, std::vector<TestValue> inputs,
              Attributes attributes = {}, size_t num_outputs = 1) {
    calls_.push_back(
        make_of(domain, op, version, std::move(inputs), std::move(attributes), num_outputs));
  }
  void add_microsoft(const char* op, std::vector<TestValue> inputs, Attributes attributes = {},
                     size_t num_outputs = 1) {
    add_of("com.microsoft", op, 1, std::move(inputs), std::move(attributes), num_outputs);
  }

  TestTensor x(const Dims& dims) {
    return TestTensor::random(ElementType::kFloat, dims, random_, -2, 2);
  }
  TestTensor bools(const Dims& dims) {
    return TestTensor::random(ElementType::kBool, dims, random_);
  }
  TestTensor bytes(const Dims& dims) {
    return TestTensor::random(ElementType::kUint8, dims, random_, 0, 255);
  }
  static TestTensor ints(const Ints& values) {
    return TestTensor::of<int64_t>({static_cast<int64_t>(values.size())}, values);
  }
  static TestTensor words(const Dims& dims, const std::vector<int32_t>& values) {
    return TestTensor::of<int32_t>(dims, values);
  }
  static TestTensor scale() { return TestTensor::scalar(0.02f); }
  static TestTensor zero() { return TestTensor::scalar<uint8_t>(100); }

  std::vector<OpCall> take() { return std::move(calls_); }

 private:
  Random& random_;
  std::vector<OpCall> calls_;
};

void add_early(Calls& c) {
  const Attributes along = {{"broadcast", int64_t{1}}, {"axis", int64_t{1}}};
  for (const char* op : {"Add", "Sub", "Mul", "Div", "Pow", "Greater", "Less"}) {
    c.add(op, 6, {c.x({2, 3, 4}), c.x({3})}, along);
    c.add(op, 6, {c.x({2, 3}), c.x({2, 3})});
  }
  for (const char* op : {"And", "Or", "Xor"}) c.add(op, 6, {c.bools({2, 3}), c.bools({3})}, along);
  c.add("Equal", 6, {c.bools({2, 3}), c.bools({2, 3})});
  c.add("PRelu", 6, {c.x({2, 3, 4}), c.x({3})});
  c.add("Selu", 5, {c.x({2, 3})});
  c.add("Cast", 5, {c.x({2, 3})}, {{"to", "INT64"}});
  c.add("Concat", 3, {c.x({2, 3}), c.x({2, 1})}, {{"axis", int64_t{1}}});
  c.add("Pad", 1, {c.x({2, 3})}, {{"paddings", Ints{1, 0, 0, 2}}});
  c.add("Reshape", 4, {c.x({2, 3})}, {{"shape", Ints{3, -1}}});
  c.add("Split", 1, {c.x({4, 3})}, {{"split", Ints{1, 3}}}, 2);
  c.add("Split", 1, {c.x({4, 3}), floats({2}, {1, 3})}, {}, 2);
  c.add("Tile", 5, {c.x({2, 3}), floats({}, {2}), floats({}, {1})});
  c.add("LpPool", 1, {c.x({1, 2, 5})}, {{"kernel_shape", Ints{2}}, {"p", 2.5f}});
  c.add("GlobalLpPool", 1, {c.x({1, 2, 5})}, {{"p", 3.0f}});
}

void add_norms_and_losses(Calls& c) {
  const Attributes groups = {{"num_groups", int64_t{2}}};
  c.add("GroupNormalization", 18, {c.x({2, 4, 3}), c.x({2}), c.x({2})}, groups);
  c.add("GroupNormalization", 21, {c.x({2, 4, 3}), c.x({4}), c.x({4})}, groups);
  c.add("LpNormalization", 22, {c.x({2, 3})}, {{"axis", int64_t{0}}});
  c.add("MeanVarianceNormalization", 13, {c.x({2, 3, 2, 2})});
  c.add("SimplifiedLayerNormalization", 17, {c.x({2, 3, 4}), c.x({4})});
  c.add("SwiGLU", 28, {c.x({2, 3}), c.x({2, 3})});
  const TestTensor classes = TestTensor::of<int64_t>({2, 3}, {0, 3, 1, 2, 0, 1});
  for (const char* op : {"NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss"}) {
    for (const char* reduction : {"mean", "none"}) {
      c.add(op, 13, {c.x({2, 4, 3}), classes, c.x({4})}, {{"reduction", reduction}});
    }
  }
  const auto train = [&](const char* op, size_t states, Attributes attributes) {
    std::vector<TestValue> inputs = {TestTensor::scalar(0.1f), TestTensor::scalar<int64_t>(1)};
    for (size_t i = 0; i < 2 + states; ++i) {
      inputs.push_back(TestTensor::of<float>({2, 2}, {1, 2, 3, 4}));
    }
    c.add_of("ai.onnx.preview.training", op, 1, std::move(inputs), std::move(attributes),
             1 + states);
  };
  train("Adagrad", 1, {});
  train("Adam", 2, {});
  train("Momentum", 1,
        {{"alpha", 0.9f}, {"beta", 0.5f}, {"mode", "nesterov"}, {"norm_coefficient", 0.0f}});
}

void add_images_and_signals(Calls& c) {
  c.add("AffineGrid", 20, {c.x({1, 2, 3}), c.ints({1, 1, 2, 3})});
  c.add("CenterCropPad", 18, {c.x({2, 3}), c.ints({4, 2})});
  c.add("Upsample", 1, {c.x({1, 1, 2, 2})}, {{"height_scale", 2.0f}, {"width_scale", 1.5f}});
  c.add("Upsample", 7, {c.x({1, 1, 2, 2})}, {{"scales", Floats{1, 1, 2, 2}}});
  c.add("Upsample", 9, {c.x({1, 1, 2, 2}), floats({4}, {1, 1, 2, 2})});
  const Attributes windows = {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}};
  const TestTensor places = TestTensor::of<int64_t>({1, 1, 2, 2}, {5, 7, 13, 15});
  c.add("MaxUnpool", 22, {c.x({1, 1, 2, 2}), places}, windows);
  c.add("MaxUnpool", 22, {c.x({1, 1, 2, 2}), places, c.ints({1, 1, 5, 4})}, windows);
  for (const char* op : {"HannWindow", "HammingWindow", "BlackmanWindow"}) {
    c.add(op, 17, {TestTensor::scalar<int64_t>(5)});
  }
  c.add("CausalConvWithState", 27, {c.x({2, 3, 5}), c.x({3, 1, 3}), c.x({3}), c.x({2, 3, 2})}, {},
        2);
  for (const char* equation : {"bij,bjk->bik", "ij,kj", "...ij,jk->...ki"}) {
    const bool has_rows = equation[0] != 'i';
    c.add("Einsum", 12,
          {c.x(has_rows ? Dims{2, 3, 4} : Dims{3, 4}), c.x(equation[0] == 'b' ? Dims{2, 4, 5}
                                                           : has_rows         ? Dims{4, 5}
                                                                              : Dims{5, 4})},
          {{"equation", equation}});
  }
  c.add("Einsum", 12, {c.x({3, 3})}, {{"equation", "ii->i"}});
}

void add_quantized(Calls& c) {
  const TestTensor s = Calls::scale(), z = Calls::zero();
  c.add("ConvInteger", 10, {c.bytes({1, 2, 4, 4}), c.bytes({3, 2, 2, 2}), z, z});
  for (const int opset : {10, 21}) {
    c.add("QLinearMatMul", opset, {c.bytes({2, 3, 4}), s, z, c.bytes({4, 5}), s, z, s, z});
  }
  const TestTensor bias = TestTensor::of<int32_t>({3}, {1, -2, 3});
  c.add("QLinearConv", 10, {c.bytes({1, 2, 4, 4}), s, z, c.bytes({3, 2, 2, 2}), s, z, s, z, bias});
  c.add_microsoft("DynamicQuantizeMatMul", {c.x({2, 3, 4}), c.bytes({4, 5}), s, z, c.x({5})});
  c.add_microsoft("MatMulIntegerToFloat",
                  {c.bytes({2, 3, 4}), c.bytes({4, 5}), s, s, z, z, c.x({5})});
  for (const char* op : {"QLinearAdd", "QLinearMul"}) {
    c.add_microsoft(op, {c.bytes({2, 3}), s, z, c.bytes({3}), s, z, s, z});
  }
  c.add_microsoft("QLinearConcat", {s, z, c.bytes({2, 3}), s, z, c.bytes({2, 1}), s, z},
                  {{"axis", int64_t{1}}});
  c.add_microsoft("QLinearGlobalAveragePool", {c.bytes({1, 2, 3, 4}), s, z, s, z});
  c.add_microsoft("NhwcMaxPool", {c.bytes({1, 4, 4, 2})}, {{"kernel_shape", Ints{2, 2}}});
}

void add_transformers(Calls& c) {
  for (const char* op : {"Gelu", "QuickGelu"}) c.add_microsoft(op, {c.x({2, 3, 4})});
  for (const char* op : {"BiasGelu", "FastGelu"}) c.add_microsoft(op, {c.x({2, 3, 4}), c.x({4})});
  c.add_microsoft("FusedMatMul", {c.x({2, 4, 3}), c.x({2, 4, 5})}, {{"transA", int64_t{1}}});
  c.add_microsoft("FusedMatMul", {c.x({3, 2, 4}), c.x({2, 4, 5})}, {{"transBatchA", int64_t{1}}});
  c.add_microsoft("FusedConv", {c.x({1, 2, 4, 4}), c.x({3, 2, 2, 2}), c.x({3}), c.x({1, 3, 3, 3})},
                  {{"activation", "Relu"}});
  c.add_microsoft("SkipLayerNormalization",
                  {c.x({2, 3, 4}), c.x({2, 3, 4}), c.x({4}), c.x({4}), c.x({4})}, {}, 4);
  c.add_microsoft("SkipLayerNormalization", {c.x({2, 3, 4}), c.x({3, 4}), c.x({4})});
  c.add_microsoft("SkipSimplifiedLayerNormalization",
                  {c.x({2, 3, 4}), c.x({1, 3, 4}), c.x({4}), c.x({4})}, {}, 4);
  const TestTensor ids = Calls::words({2, 3}, {0, 4, 2, 1, 1, 3});
  const TestTensor ones = Calls::words({2, 3}, {1, 1, 0, 1, 1, 1});
  c.add_microsoft("EmbedLayerNormalization",
                  {ids, ones, c.x({5, 4}), c.x({6, 4}), c.x({2, 4}), c.x({4}), c.x({4}), ones}, {},
                  2);
  c.add_microsoft("EmbedLayerNormalization",
                  {ids, kNone, c.x({5, 4}), c.x({6, 4}), kNone, c.x({4}), c.x({4}), ones,
                   Calls::words({1, 3}, {5, 4, 3})},
                  {}, 3);
}

void add_attention(Calls& c) {
  const Attributes heads = {{"num_heads", int64_t{2}}};
  const TestTensor mask = Calls::words({2, 4}, {1, 1, 1, 0, 0, 1, 1, 1});
  c.add_microsoft("Attention", {c.x({2, 4, 6}), c.x({6, 24}), c.x({24}), mask}, heads);
  c.add_microsoft("Attention",
                  {c.x({2, 4, 6}), c.x({6, 24}), c.x({24}), kNone, c.x({2, 2, 2, 3, 4})}, heads, 2);
  c.add_microsoft("Attention",
                  {c.x({2, 4, 6}), c.x({6, 24}), c.x({24}), kNone, kNone, c.x({2, 2, 4, 4})},
                  heads);
  const TestTensor s = Calls::scale(), z = Calls::zero();
  c.add_microsoft("QAttention", {c.bytes({2, 4, 6}), c.bytes({6, 24}), c.x({24}), s, s, mask, z, z},
                  heads);
  c.add_microsoft("MultiHeadAttention", {c.x({2, 4, 8}), c.x({2, 4, 8}), c.x({2, 4, 12})}, heads);
  c.add_microsoft(
      "MultiHeadAttention",
      {c.x({2, 4, 8}), c.x({2, 4, 8}), c.x({2, 4, 8}), c.x({24}), mask, c.x({2, 2, 4, 4})}, heads);
  c.add_microsoft("MultiHeadAttention",
                  {c.x({2, 4, 8}), c.x({2, 4, 8}), c.x({2, 4, 8}), kNone, kNone, kNone,
                   c.x({2, 2, 3, 4}), c.x({2, 2, 3, 4})},
                  heads, 3);
  c.add_microsoft("MultiHeadAttention", {c.x({2, 4, 8}), c.x({2, 2, 5, 4}), c.x({2, 2, 5, 4})},
                  heads);
  c.add_microsoft("MultiHeadAttention", {c.x({2, 4, 2, 3, 4})}, heads);
  c.add_microsoft("MultiHeadAttention", {c.x({2, 4, 8}), c.x({2, 5, 2, 2, 4})}, heads);
  const TestTensor places = TestTensor::of<int64_t>({2, 3}, {0, 1, 2, 7, 8, 9});
  c.add_microsoft("RotaryEmbedding", {c.x({2, 3, 32}), places, c.x({10, 4}), c.x({10, 4})});
  c.add_microsoft("RotaryEmbedding",
                  {c.x({2, 4, 3, 8}), Calls::ints({4}), c.x({10, 4}), c.x({10, 4})});
  const Attributes grouped = {{"num_heads", int64_t{4}}, {"kv_num_heads", int64_t{2}}};
  const TestTensor lengths = Calls::words({2}, {4, 3}), total = Calls::words({1}, {5});
  c.add_microsoft("GroupQueryAttention",
                  {c.x({2, 2, 64}), c.x({2, 2, 32}), c.x({2, 2, 32}), c.x({2, 2, 3, 16}),
                   c.x({2, 2, 3, 16}), lengths, total},
                  grouped, 3);
  Attributes rotary = grouped;
  rotary.set("do_rotary", int64_t{1});
  c.add_microsoft("GroupQueryAttention",
                  {c.x({2, 5, 128}), kNone, kNone, c.x({2, 2, 0, 16}), c.x({2, 2, 0, 16}), lengths,
                   total, c.x({20, 8}), c.x({20, 8})},
                  rotary, 3);
}

void add_classic(Calls& c) {
  const TestTensor keys = Calls::ints({3, 1});
  c.add_of("ai.onnx.ml", "CastMap", 1, {keys, c.x({2})}, {{"cast_to", "TO_FLOAT"}});
  c.add_of("ai.onnx.ml", "CastMap", 1, {keys, c.x({2})},
           {{"map_form", "SPARSE"}, {"max_map", int64_t{5}}});
  c.add_of("ai.onnx.ml", "DictVectorizer", 1, {keys, c.x({2})},
           {{"int64_vocabulary", Ints{1, 2, 3}}});
  c.add_of("ai.onnx.ml", "DictVectorizer", 1, {TestTensor::of_strings({2}, {"a", "b"}), c.x({2})},
           {{"string_vocabulary", Words{"b", "c"}}});
  c.add_of("ai.onnx.ml", "ZipMap", 1, {c.x({2, 3})}, {{"classlabels_int64s", Ints{7, 8, 9}}});
}

}  // namespace

std::vector<OpCall> function_calls(Random& random) {
  Calls calls(random);
  for (auto* add : {add_early, add_norms_and_losses, add_images_and_signals, add_quantized,
                    add_transformers, add_attention, add_classic}) {
    add(calls);
  }
  return calls.take();
}

}  // namespace eddy::testing
