// Claim: the operators of domain com.microsoft give what ONNX Runtime gives, on seeded inputs, in
// the forms that it takes on a CPU; and a file with them is read. Skipped where ONNX Runtime is not
// installed; a case that its version refuses is left out and named.
#include "graph/io/import.h"
#include "ops/schema/standard.h"
#include "tests/graph/io/model_writer.h"
#include "tests/tools/bench/rival.h"

namespace eddy::testing {
namespace {

using Ints = std::vector<int64_t>;

const TestValue kNone = TestValue::omitted();

class RivalMicrosoftTest : public RivalTest {
 protected:
  static OpCall call(const char* op, std::vector<TestValue> inputs, Attributes attributes = {},
                     size_t num_outputs = 1) {
    OpCall made = RivalTest::call(op, 1, std::move(inputs), std::move(attributes), num_outputs);
    made.domain = "com.microsoft";
    return made;
  }
  void compare(const char* op, std::vector<TestValue> inputs, Attributes attributes = {},
               size_t num_outputs = 1) {
    RivalTest::compare(call(op, std::move(inputs), std::move(attributes), num_outputs));
  }
  // Quantized results may differ by one where a sum lies between two.
  void compare_steps(const char* op, std::vector<TestValue> inputs, Attributes attributes = {}) {
    RivalTest::compare(call(op, std::move(inputs), std::move(attributes)), {.steps = 1});
  }

  TestTensor bytes(const Dims& dims, ElementType element = ElementType::kUint8) {
    const bool is_signed = element == ElementType::kInt8;
    return TestTensor::random(element, dims, random_, is_signed ? -128 : 0, is_signed ? 127 : 255);
  }
  static TestTensor scale(float value) { return TestTensor::scalar(value); }
  static TestTensor zero(uint8_t value) { return TestTensor::scalar(value); }
  static TestTensor words(const Dims& dims, const std::vector<int32_t>& values) {
    return TestTensor::of<int32_t>(dims, values);
  }
};

TEST_F(RivalMicrosoftTest, Activations) {
  const TestTensor x = floats({2, 3, 9}, -4, 4), bias = floats({9});
  compare("Gelu", {x});
  compare("BiasGelu", {x, bias});
  compare("FastGelu", {x});
  compare("FastGelu", {x, bias});
  compare("QuickGelu", {x});
  compare("QuickGelu", {x}, {{"alpha", 0.7f}});
  EXPECT_GE(num_compared_, 6);
}

TEST_F(RivalMicrosoftTest, FusedProducts) {
  for (const int64_t a : {0, 1}) {
    for (const int64_t b : {0, 1}) {
      const Attributes trans = {{"transA", a}, {"transB", b}, {"alpha", 0.5f}};
      compare("FusedMatMul",
              {floats(a ? Dims{4, 3} : Dims{3, 4}), floats(b ? Dims{5, 4} : Dims{4, 5})}, trans);
      compare(
          "FusedMatMul",
          {floats(a ? Dims{2, 4, 3} : Dims{2, 3, 4}), floats(b ? Dims{2, 5, 4} : Dims{2, 4, 5})},
          trans);
      Attributes batched = trans;
      batched.set("transBatchA", int64_t{1});
      batched.set("transBatchB", int64_t{1});
      compare(
          "FusedMatMul",
          {floats(a ? Dims{4, 2, 3} : Dims{3, 2, 4}), floats(b ? Dims{5, 2, 4} : Dims{4, 2, 5})},
          batched);
    }
  }
  compare("FusedMatMul", {floats({4}), floats({4, 5})}, {{"transA", int64_t{1}}});
  const TestTensor x = floats({1, 2, 5, 6}), w = floats({3, 2, 3, 3}), b = floats({3});
  const Attributes window = {{"pads", Ints{1, 0, 1, 0}}, {"strides", Ints{2, 1}}};
  const auto fused = [&](const char* activation, std::vector<float> parameters) {
    Attributes attributes = window;
    attributes.set("activation", activation);
    if (!parameters.empty()) attributes.set("activation_params", parameters);
    return attributes;
  };
  for (const char* name : {"Relu", "Tanh", "Sigmoid"})
    compare("FusedConv", {x, w, b}, fused(name, {}));
  compare("FusedConv", {x, w, b}, fused("LeakyRelu", {0.3f}));
  compare("FusedConv", {x, w, b}, fused("Clip", {-0.5f, 0.5f}));
  compare("FusedConv", {x, w, b}, fused("HardSigmoid", {0.3f, 0.4f}));
  compare("FusedConv", {x, w, b, floats({1, 3, 3, 4})}, fused("Relu", {}));
  EXPECT_GE(num_compared_, 19);
}

TEST_F(RivalMicrosoftTest, SkippedNormalizations) {
  const TestTensor x = floats({2, 3, 8}), gamma = floats({8}), beta = floats({8}),
                   bias = floats({8});
  for (const Dims& dims : {Dims{2, 3, 8}, Dims{1, 3, 8}, Dims{3, 8}}) {
    const TestTensor skip = floats(dims);
    compare("SkipLayerNormalization", {x, skip, gamma, beta, bias}, {{"epsilon", 1e-3f}});
    compare("SkipSimplifiedLayerNormalization", {x, skip, gamma, bias}, {{"epsilon", 1e-3f}});
  }
  compare("SkipLayerNormalization", {x, floats({2, 3, 8}), gamma});
  compare("SkipSimplifiedLayerNormalization", {floats({5, 8}), floats({5, 8}), gamma});
  for (const int64_t axis : {-1, 2}) {
    RivalTest::compare(RivalTest::call("SimplifiedLayerNormalization", 17, {x, gamma},
                                       {{"axis", axis}, {"epsilon", 1e-3f}}));
  }
  EXPECT_GE(num_compared_, 10);
}

TEST_F(RivalMicrosoftTest, EmbedLayerNormalization) {
  const TestTensor ids = words({2, 3}, {0, 4, 2, 1, 1, 3}),
                   segments = words({2, 3}, {0, 1, 1, 0, 0, 1});
  const TestTensor word = floats({5, 8}), position = floats({6, 8}), segment = floats({2, 8});
  const TestTensor gamma = floats({8}), beta = floats({8});
  const TestTensor mask = words({2, 3}, {1, 1, 0, 1, 1, 1});
  compare("EmbedLayerNormalization", {ids, segments, word, position, segment, gamma, beta, mask},
          {}, 2);
  compare("EmbedLayerNormalization", {ids, segments, word, position, segment, gamma, beta}, {}, 2);
  compare("EmbedLayerNormalization",
          {ids, kNone, word, position, kNone, gamma, beta, mask, words({2, 3}, {5, 4, 3, 0, 1, 2})},
          {{"epsilon", 1e-3f}}, 3);
  compare("EmbedLayerNormalization",
          {ids, kNone, word, position, kNone, gamma, beta, mask, words({1, 3}, {5, 4, 3})}, {}, 3);
  EXPECT_GE(num_compared_, 4);
}

TEST_F(RivalMicrosoftTest, QuantizedProducts) {
  for (const ElementType element : {ElementType::kUint8, ElementType::kInt8}) {
    const TestTensor b = bytes({16, 5}, element), zeros = bytes({5}, element),
                     one = bytes({}, element);
    const TestTensor scales = floats({5}, 0.01, 0.02), bias = floats({5});
    const TestTensor a = floats({2, 3, 16});
    compare("DynamicQuantizeMatMul", {a, b, scale(0.02f), one, bias});
    compare("DynamicQuantizeMatMul", {a, b, scales, zeros});
    compare("DynamicQuantizeMatMul", {a, b, scales});
    const TestTensor q = bytes({3, 16}, ElementType::kUint8);
    compare("MatMulIntegerToFloat", {q, b, scale(0.03f), scale(0.02f), zero(7), one, bias});
    compare("MatMulIntegerToFloat", {q, b, scale(0.03f), scales, zero(7), zeros});
    compare("MatMulIntegerToFloat", {q, b, scale(0.03f), scales});
  }
  EXPECT_GE(num_compared_, 12);
}

TEST_F(RivalMicrosoftTest, QuantizedElements) {
  const TestTensor a = bytes({2, 3, 4}), b = bytes({3, 1});
  for (const char* op : {"QLinearAdd", "QLinearMul"}) {
    compare_steps(op,
                  {a, scale(0.02f), zero(120), b, scale(0.03f), zero(99), scale(0.04f), zero(130)});
  }
  const TestTensor s = bytes({2, 3}, ElementType::kInt8);
  const auto signed_zero = [](int8_t value) { return TestTensor::scalar(value); };
  compare_steps("QLinearAdd", {s, scale(0.02f), signed_zero(-3), s, scale(0.03f), signed_zero(5),
                               scale(0.06f), signed_zero(1)});
  compare_steps("QLinearConcat",
                {scale(0.03f), zero(100), a, scale(0.02f), zero(120), bytes({2, 5, 4}),
                 scale(0.03f), zero(100)},
                {{"axis", int64_t{1}}});
  const std::vector<TestValue> pool = {bytes({2, 3, 4, 5}), scale(0.02f), zero(99), scale(0.01f),
                                       zero(50)};
  compare_steps("QLinearGlobalAveragePool", pool);
  compare_steps("QLinearGlobalAveragePool", pool, {{"channels_last", int64_t{1}}});
  compare("NhwcMaxPool", {bytes({2, 7, 6, 3})},
          {{"kernel_shape", Ints{3, 2}}, {"strides", Ints{2, 1}}, {"pads", Ints{1, 0, 1, 1}}});
  compare("NhwcMaxPool", {bytes({1, 7, 6, 3}, ElementType::kInt8)}, {{"kernel_shape", Ints{2, 2}}});
  EXPECT_GE(num_compared_, 8);
}

TEST_F(RivalMicrosoftTest, Attention) {
  const TestTensor x = floats({2, 4, 6}), w = floats({6, 24}), b = floats({24});
  const TestTensor past = floats({2, 2, 2, 3, 4});
  const auto heads = [](int64_t unidirectional) {
    return Attributes{{"num_heads", int64_t{2}}, {"unidirectional", unidirectional}};
  };
  for (const int64_t unidirectional : {0, 1}) {
    const Attributes two = heads(unidirectional);
    compare("Attention", {x, w, b}, two);
    compare("Attention", {x, w, b, kNone, past}, two, 2);
    compare("Attention", {x, w, b, words({2}, {4, 2})}, two);
    compare("Attention", {x, w, b, words({4}, {4, 3, 1, 0})}, two);
    compare("Attention", {x, w, b, words({2, 4}, {1, 1, 1, 0, 0, 1, 1, 1})}, two);
    compare("Attention", {x, w, b, words({2, 7}, {1, 1, 1, 0, 1, 1, 1, 0, 1, 1, 1, 1, 1, 0}), past},
            two, 2);
    compare("Attention", {x, w, b, kNone, kNone, floats({2, 2, 4, 4})}, two);
    compare("Attention", {x, w, b, kNone, kNone, floats({1, 1, 4, 4})}, two);
    std::vector<int32_t> each(32);
    for (int32_t& seen : each) seen = random_.below(3) > 0;
    compare("Attention", {x, w, b, words({2, 4, 4}, each)}, two);
  }
  // A row of the mask without any key.
  compare("Attention", {x, w, b, words({2, 4}, {0, 0, 0, 0, 1, 1, 1, 1})}, heads(0));
  Attributes sized = heads(0);
  sized.set("qkv_hidden_sizes", Ints{4, 4, 16});
  sized.set("scale", 0.3f);
  sized.set("mask_filter_value", -50.0f);
  compare("Attention", {x, w, b, words({2, 4}, {1, 1, 1, 0, 0, 1, 1, 1})}, sized);
  EXPECT_GE(num_compared_, 18);
}

TEST_F(RivalMicrosoftTest, QAttention) {
  for (const ElementType element : {ElementType::kUint8, ElementType::kInt8}) {
    const TestTensor x = bytes({2, 4, 6}), w = bytes({6, 24}, element), b = floats({24});
    const TestTensor one = bytes({}, element);
    const TestTensor mask = words({2, 4}, {1, 1, 1, 0, 0, 1, 1, 1});
    for (const int64_t unidirectional : {0, 1}) {
      const Attributes two = {{"num_heads", int64_t{2}}, {"unidirectional", unidirectional}};
      compare("QAttention", {x, w, b, scale(0.01f), scale(0.02f), kNone, zero(120), one}, two);
      compare("QAttention", {x, w, b, scale(0.01f), scale(0.02f), mask, zero(120), one}, two);
      compare("QAttention",
              {x, w, b, scale(0.01f), scale(0.02f), words({2}, {4, 3}), zero(120), one,
               floats({2, 2, 2, 3, 4})},
              two, 2);
      compare("QAttention", {x, w, b, scale(0.01f), floats({24}, 0.01, 0.02), kNone, zero(120)},
              two);
    }
  }
  EXPECT_GE(num_compared_, 12);
}

TEST_F(RivalMicrosoftTest, MultiHeadAttention) {
  const TestTensor q = floats({2, 4, 8}), k = floats({2, 5, 8}), v = floats({2, 5, 12});
  const TestTensor same = floats({2, 5, 8}), bias = floats({24});
  const TestTensor past_k = floats({2, 2, 3, 4}), past_v = floats({2, 2, 3, 4});
  const auto heads = [](int64_t unidirectional) {
    return Attributes{{"num_heads", int64_t{2}}, {"unidirectional", unidirectional}};
  };
  for (const int64_t unidirectional : {0, 1}) {
    const Attributes two = heads(unidirectional);
    compare("MultiHeadAttention", {q, floats({2, 4, 8}), floats({2, 4, 12})}, two);
    compare("MultiHeadAttention", {q, floats({2, 4, 8}), floats({2, 4, 8}), bias}, two);
    compare("MultiHeadAttention",
            {q, floats({2, 4, 8}), floats({2, 4, 8}), bias, kNone, kNone, past_k, past_v}, two, 3);
  }
  const Attributes two = heads(0);
  const TestTensor mask = words({2, 5}, {1, 1, 1, 0, 1, 0, 1, 1, 1, 1});
  compare("MultiHeadAttention", {q, k, v}, two);
  compare("MultiHeadAttention", {q, k, v, floats({28})}, two);
  compare("MultiHeadAttention", {q, k, v, kNone, mask}, two);
  compare("MultiHeadAttention", {q, k, v, kNone, words({2}, {5, 3})}, two);
  compare("MultiHeadAttention", {q, k, v, kNone, kNone, floats({1, 2, 4, 5})}, two);
  compare("MultiHeadAttention", {q, k, v, kNone, mask, floats({2, 1, 4, 5})}, two);
  std::vector<int32_t> each(40);
  for (int32_t& seen : each) seen = random_.below(3) > 0;
  compare("MultiHeadAttention", {q, k, v, kNone, words({2, 4, 5}, each)}, two);
  compare("MultiHeadAttention", {q, floats({2, 2, 5, 4}), floats({2, 2, 5, 4})}, two);
  compare("MultiHeadAttention", {q, floats({2, 2, 5, 4}), floats({2, 2, 5, 4}), bias}, two);
  compare("MultiHeadAttention", {q, k, same}, two, 4);
  compare("MultiHeadAttention", {q, k, same, kNone, mask}, two, 4);
  compare("MultiHeadAttention", {floats({2, 4, 2, 3, 4})}, two);
  compare("MultiHeadAttention", {q, floats({2, 5, 2, 2, 4})}, two);
  Attributes scaled = two;
  scaled.set("scale", 0.2f);
  scaled.set("mask_filter_value", -30.0f);
  compare("MultiHeadAttention", {q, k, v, kNone, mask}, scaled);
  EXPECT_GE(num_compared_, 15);
}

TEST_F(RivalMicrosoftTest, RotaryEmbedding) {
  const TestTensor c = floats({10, 4}), s = floats({10, 4});
  const TestTensor ids = TestTensor::of<int64_t>({2, 3}, {0, 1, 2, 7, 8, 9}), offset = ints({4});
  for (const int64_t interleaved : {0, 1}) {
    const Attributes how = {{"interleaved", interleaved}};
    compare("RotaryEmbedding", {floats({2, 3, 32}), ids, c, s}, how);
    compare("RotaryEmbedding", {floats({2, 3, 32}), offset, c, s}, how);
    compare("RotaryEmbedding", {floats({2, 4, 3, 8}), ids, c, s}, how);
    Attributes some = how;
    some.set("num_heads", int64_t{4});
    some.set("rotary_embedding_dim", int64_t{8});
    compare("RotaryEmbedding", {floats({2, 3, 64}), offset, c, s}, some);
  }
  EXPECT_GE(num_compared_, 8);
}

class GroupQueryRivalTest : public RivalMicrosoftTest {
 protected:
  struct Form {
    int64_t batch = 1, queries = 1, past = 0, total = 1;
    std::vector<int32_t> lengths = {};  // less one
    bool is_packed = false, has_tables = false, has_bias = false, has_sink = false;
    Attributes attributes = {};
  };
  static constexpr int64_t kHeads = 4, kKvHeads = 2, kSize = 16;

  void compare_form(const Form& form, bool with_present) {
    const auto side = [&](int64_t heads) { return Dims{form.batch, form.queries, heads * kSize}; };
    std::vector<TestValue> inputs(7, kNone);
    if (form.is_packed) {
      inputs[0] = floats(side(kHeads + 2 * kKvHeads));
    } else {
      inputs[0] = floats(side(kHeads));
      inputs[1] = floats(side(kKvHeads));
      inputs[2] = floats(side(kKvHeads));
    }
    for (const size_t i : {3, 4}) inputs[i] = floats({form.batch, kKvHeads, form.past, kSize});
    inputs[5] = words({form.batch}, form.lengths);
    inputs[6] = words({1}, {static_cast<int32_t>(form.total)});
    if (form.has_tables || form.has_bias || form.has_sink) {
      inputs.resize(9, kNone);
      for (const size_t i : {7, 8}) {
        if (form.has_tables) inputs[i] = floats({20, kSize / 2});
      }
    }
    if (form.has_bias || form.has_sink) inputs.resize(11, kNone);
    if (form.has_bias) inputs[10] = floats({1, 1, form.queries, form.total});
    if (form.has_sink) inputs.push_back(floats({kHeads}));
    Attributes attributes = form.attributes;
    attributes.set("num_heads", kHeads);
    attributes.set("kv_num_heads", kKvHeads);
    if (form.has_tables) attributes.set("do_rotary", int64_t{1});
    // Without present keys ONNX Runtime forgets the past ones, so they are always asked for.
    RivalTest::compare(call("GroupQueryAttention", inputs, attributes, 3),
                       {.num_outputs = with_present ? size_t{3} : 1});
  }
};

TEST_F(GroupQueryRivalTest, PromptsAndSteps) {
  for (const bool is_packed : {false, true}) {
    for (const bool has_tables : {false, true}) {
      for (const int64_t interleaved : {0, 1}) {
        const Attributes how = {{"rotary_interleaved", interleaved}};
        Form form = {.batch = 2,
                     .queries = 5,
                     .total = 5,
                     .lengths = {4, 4},
                     .is_packed = is_packed,
                     .has_tables = has_tables,
                     .attributes = how};
        compare_form(form, true);  // all at once
        form = {.batch = 2,
                .queries = 1,
                .past = 5,
                .total = 6,
                .lengths = {5, 5},
                .is_packed = is_packed,
                .has_tables = has_tables,
                .attributes = how};
        compare_form(form, true);  // one more
        form.lengths = {5, 3};     // samples of different lengths: the caches' ends mean nothing
        compare_form(form, false);
        form.past = 12;  // a cache with room
        compare_form(form, false);
        form = {.batch = 1,
                .queries = 3,
                .past = 5,
                .total = 8,
                .lengths = {7},
                .is_packed = is_packed,
                .has_tables = has_tables,
                .attributes = how};
        compare_form(form, true);  // several more
      }
    }
  }
  EXPECT_GE(num_compared_, 40);
}

TEST_F(GroupQueryRivalTest, Choices) {
  std::vector<Attributes> choices;
  for (const int64_t window : {1, 2, 3, 4, 20}) choices.push_back({{"local_window_size", window}});
  choices.push_back({{"softcap", 1.5f}, {"scale", 0.3f}});
  choices.push_back({{"smooth_softmax", int64_t{1}}});
  choices.push_back(
      {{"smooth_softmax", int64_t{1}}, {"softcap", 1.5f}, {"local_window_size", int64_t{3}}});
  choices.push_back({{"causal", int64_t{0}}});
  for (const Attributes& choice : choices) {
    for (const bool has_bias : {false, true}) {
      compare_form({.batch = 2,
                    .queries = 5,
                    .total = 5,
                    .lengths = {4, 4},
                    .has_bias = has_bias,
                    .attributes = choice},
                   true);
      compare_form({.batch = 2,
                    .queries = 1,
                    .past = 5,
                    .total = 6,
                    .lengths = {5, 5},
                    .has_bias = has_bias,
                    .attributes = choice},
                   true);
    }
  }
  for (const bool has_bias : {false, true}) {
    compare_form({.batch = 1,
                  .queries = 5,
                  .total = 5,
                  .lengths = {4},
                  .has_bias = has_bias,
                  .has_sink = true},
                 true);
    compare_form({.batch = 2,
                  .queries = 1,
                  .past = 5,
                  .total = 6,
                  .lengths = {5, 5},
                  .has_bias = has_bias,
                  .has_sink = true},
                 true);
  }
  EXPECT_GE(num_compared_, 36);
}

class MatMulBitsRivalTest : public RivalMicrosoftTest {
 protected:
  enum Zeros { kNoZeros, kPacked, kFloats };

  OpCall bits_call(const Dims& a, int64_t n, int64_t bits, int64_t block, Zeros zeros,
                   bool has_bias) {
    const int64_t k = a[a.rank() - 1], blocks = (k + block - 1) / block;
    std::vector<TestValue> inputs = {floats(a), bytes({n, blocks, block * bits / 8}),
                                     floats({n * blocks}, 0.01, 0.1)};
    if (zeros == kPacked) inputs.push_back(bytes({n * ((blocks * bits + 7) / 8)}));
    if (zeros == kFloats) inputs.push_back(floats({n, blocks}, 0, 9));
    if (has_bias) {
      inputs.resize(5, kNone);
      inputs.push_back(floats({n}));
    }
    OpCall made =
        call("MatMulNBits", inputs, {{"K", k}, {"N", n}, {"bits", bits}, {"block_size", block}});
    made.constant_inputs = 2 + 4 + 8 + 32;
    return made;
  }
};

TEST_F(MatMulBitsRivalTest, EveryFormOfWeights) {
  for (const int64_t bits : {4, 8, 2}) {
    for (const int64_t block : {16, 32, 128}) {
      for (const Zeros zeros : {kNoZeros, kPacked, kFloats}) {
        for (const bool has_bias : {false, true}) {
          for (const auto& [a, n] : std::vector<std::pair<Dims, int64_t>>{
                   {{1, 64}, 5}, {{7, 48}, 33}, {{2, 3, 200}, 70}}) {
            RivalTest::compare(bits_call(a, n, bits, block, zeros, has_bias),
                               {.relative = 1e-4, .absolute = 1e-3});
          }
        }
      }
    }
  }
  EXPECT_GE(num_compared_, 50);
}

// Not with packed zero points, which the rival's version 1.30 takes for 8 here, whatever they are.
TEST_F(MatMulBitsRivalTest, RowsNameTheirBlocks) {
  for (const int64_t block : {16, 32}) {
    for (const Zeros zeros : {kNoZeros, kFloats}) {
      for (const int64_t k : {64, 96}) {
        OpCall made = bits_call({5, k}, 33, 4, block, zeros, false);
        std::vector<int32_t> groups;
        for (int64_t i = 0; i < k; ++i) groups.push_back(static_cast<int32_t>(i / block));
        for (size_t i = groups.size(); i > 1; --i) {
          std::swap(groups[i - 1], groups[random_.below(i)]);
        }
        made.inputs.resize(4, kNone);
        made.inputs.push_back(TestTensor::of<int32_t>({k}, groups));
        made.constant_inputs |= 16;
        RivalTest::compare(made, {.relative = 1e-4, .absolute = 1e-3});
      }
    }
  }
  EXPECT_GE(num_compared_, 8);
}

TEST_F(RivalMicrosoftTest, AFileImportsTheDomain) {
  OpTable table;
  ASSERT_TRUE(add_standard_schemas(table).is_ok());
  const std::string model =
      model_of(call("BiasGelu", {floats({2, 3}), floats({3})}), {ElementType::kFloat});
  const auto graph = import_onnx_bytes(test::as_bytes(model), table);
  ASSERT_TRUE(graph.is_ok()) << graph.status().to_string();
  EXPECT_EQ(graph->num_nodes(), 2u);
}

}  // namespace
}  // namespace eddy::testing
