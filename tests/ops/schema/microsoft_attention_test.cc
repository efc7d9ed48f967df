// Claim: Attention, QAttention and MultiHeadAttention of domain com.microsoft give what plain loops
// over their definitions give, on seeded inputs, by both sets of kernels and however little is
// known of the shapes: with masks of every form, caches and packed operands; and a breach of their
// rules, or a form that is not built, is refused by name.
#include "tests/ops/schema/plain_heads.h"

namespace eddy::testing {
namespace {

// Queries, keys and values of Attention: input times weights plus bias.
TestTensor projected(const TestTensor& x, const TestTensor& w, const TestTensor& b) {
  const int64_t depth = w.dims()[0], columns = w.dims()[1], rows = x.count() / depth;
  std::vector<float> values;
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t j = 0; j < columns; ++j) {
      double sum = at(b, j);
      for (int64_t i = 0; i < depth; ++i) sum += at(x, r * depth + i) * at(w, i * columns + j);
      values.push_back(static_cast<float>(sum));
    }
  }
  return TestTensor::of<float>({x.dims()[0], x.dims()[1], columns}, values);
}

TEST_F(MicrosoftAttentionTest, AttentionProjectsMasksAndKeepsItsPast) {
  const TestTensor x = floats({2, 4, 6}), w = floats({6, 24}), bias = floats({24});
  const TestTensor past = floats({2, 2, 2, 3, 4});
  const TestTensor all = projected(x, w, bias);
  const Heads q = read_heads(all, 2, 4, 0, 4), k = read_heads(all, 2, 4, 8, 4),
              v = read_heads(all, 2, 4, 16, 4);
  const Attributes two = {{"num_heads", int64_t{2}}};
  expect_all(make("Attention", {x, w, bias}, two), {joined(attend(q, k, v, kAll))});
  constexpr double kFilter = -10000;
  const std::vector<int32_t> ends = {4, 2}, starts = {1, 0};
  expect_all(
      make("Attention", {x, w, bias, words({2}, ends)}, two),
      {joined(attend(q, k, v,
                     where([&](int64_t b, int64_t, int64_t j) { return j < ends[b]; }, kFilter)))});
  expect_all(make("Attention", {x, w, bias, words({4}, {4, 2, 1, 0})}, two),
             {joined(attend(
                 q, k, v,
                 where([&](int64_t b, int64_t, int64_t j) { return j < ends[b] && j >= starts[b]; },
                       kFilter)))});
  std::vector<int32_t> each(2 * 4 * 4);
  for (int32_t& seen : each) seen = random_.below(3) > 0;
  expect_all(make("Attention", {x, w, bias, words({2, 4, 4}, each)}, two),
             {joined(attend(q, k, v,
                            where([&](int64_t b, int64_t i,
                                      int64_t j) { return each[(b * 4 + i) * 4 + j] > 0; },
                                  kFilter)))});
  const std::vector<int32_t> flags(each.begin(), each.begin() + 14);
  const Heads keys = behind(by_head(past), k), values = behind(by_head(past, 48), v);
  Attributes causal = two;
  causal.set("unidirectional", int64_t{1});
  const Addend seen = [&](int64_t b, int64_t, int64_t i, int64_t j) {
    return j > i + 3 ? -HUGE_VAL : flags[b * 7 + j] > 0 ? 0 : kFilter;
  };
  std::vector<double> present = keys.values;
  present.insert(present.end(), values.values.begin(), values.values.end());
  expect_all(make("Attention", {x, w, bias, words({2, 7}, flags), past}, causal),
             {joined(attend(q, keys, values, seen)),
              TestTensor::of<float>({2, 2, 2, 7, 4}, narrow(present))});
}

TEST_F(MicrosoftAttentionTest, AttentionMayHaveWiderValuesAndABias) {
  const TestTensor x = floats({2, 4, 6}), w = floats({6, 24}), bias = floats({24}),
                   scores = floats({1, 2, 4, 4});
  const TestTensor all = projected(x, w, bias);
  const Heads q = read_heads(all, 2, 2, 0, 2), k = read_heads(all, 2, 2, 4, 2),
              v = read_heads(all, 2, 8, 8, 8);
  const Addend added = [&](int64_t, int64_t h, int64_t i, int64_t j) {
    return at(scores, (h * 4 + i) * 4 + j);
  };
  expect_all(make("Attention", {x, w, bias, kNone, kNone, scores},
                  {{"num_heads", int64_t{2}},
                   {"scale", 0.3f},
                   {"qkv_hidden_sizes", std::vector<int64_t>{4, 4, 16}}}),
             {joined(attend(q, k, v, added, {.scale = double{0.3f}}))});
}

TEST_F(MicrosoftAttentionTest, QAttentionProjectsBytes) {
  const auto bytes = [&](const Dims& dims) {
    return TestTensor::random(ElementType::kUint8, dims, random_, 0, 255);
  };
  const TestTensor x = bytes({1, 3, 4}), w = bytes({4, 12}), bias = floats({12}),
                   scales = floats({12}, 0.01, 0.02);
  std::vector<float> values;
  for (int64_t r = 0; r < 3; ++r) {
    for (int64_t j = 0; j < 12; ++j) {
      double sum = 0;
      for (int64_t i = 0; i < 4; ++i) sum += (at(x, r * 4 + i) - 120) * (at(w, i * 12 + j) - 99);
      values.push_back(static_cast<float>(sum * double{0.004f} * at(scales, j) + at(bias, j)));
    }
  }
  const TestTensor all = TestTensor::of<float>({1, 3, 12}, values);
  const Heads q = read_heads(all, 2, 2, 0, 2), k = read_heads(all, 2, 2, 4, 2),
              v = read_heads(all, 2, 2, 8, 2);
  expect_all(
      make("QAttention",
           {x, w, bias, TestTensor::scalar(0.004f), scales, kNone, TestTensor::scalar<uint8_t>(120),
            TestTensor::scalar<uint8_t>(99)},
           {{"num_heads", int64_t{2}}, {"unidirectional", int64_t{1}}}),
      {joined(attend(q, k, v, where([](int64_t, int64_t i, int64_t j) { return j <= i; })))});
}

// [batch, heads, queries, keys].
TestTensor scores_of(const Heads& q, const Heads& k, const Addend& addend) {
  Heads scores(q.batch, q.heads, q.length, k.length);
  scores.for_each([&](int64_t b, int64_t h, int64_t i, int64_t j) {
    for (int64_t d = 0; d < q.size; ++d) scores(b, h, i, j) += q(b, h, i, d) * k(b, h, j, d);
    scores(b, h, i, j) = scores(b, h, i, j) / std::sqrt(double(q.size)) + addend(b, h, i, j);
  });
  return apart(scores);
}

TEST_F(MicrosoftAttentionTest, MultiHeadAttentionTakesEveryFormOfOperands) {
  const Attributes two = {{"num_heads", int64_t{2}}};
  const TestTensor q = floats({2, 4, 6}), k = floats({2, 5, 6}), v = floats({2, 5, 8});
  const Heads qs = side_by_side(q, 2), ks = side_by_side(k, 2), vs = side_by_side(v, 2);
  expect_all(make("MultiHeadAttention", {q, k, v}, two), {joined(attend(qs, ks, vs, kAll))});
  const TestTensor bias = floats({20});
  const auto biased = [&](Heads x, int64_t first) {
    x.for_each([&](int64_t b, int64_t h, int64_t i, int64_t d) {
      x(b, h, i, d) += at(bias, first + h * x.size + d);
    });
    return x;
  };
  const Heads qb = biased(qs, 0), kb = biased(ks, 6), vb = biased(vs, 12);
  expect_all(make("MultiHeadAttention", {q, k, v, bias}, two),
             {joined(attend(qb, kb, vb, kAll)), apart(kb), apart(vb)});
  expect_all(make("MultiHeadAttention", {q, apart(ks), apart(vs), bias}, two),
             {joined(attend(qb, ks, vs, kAll))});
  const std::vector<int32_t> some = {1, 1, 0, 1, 1, 1, 0, 1, 1, 0};
  const Addend hidden =
      where([&](int64_t b, int64_t, int64_t j) { return some[b * 5 + j] > 0; }, -10000);
  expect_all(make("MultiHeadAttention", {q, k, v, kNone, words({2, 5}, some)}, two),
             {joined(attend(qs, ks, vs, hidden)), apart(ks), apart(vs), scores_of(qs, ks, hidden)});
  const TestTensor all = floats({2, 4, 2, 3, 5}), pair = floats({2, 5, 2, 2, 3});
  const auto third = [&](int64_t i) { return read_heads(all, 2, 5, i * 5, 15); };
  expect_all(make("MultiHeadAttention", {all}, two),
             {joined(attend(third(0), third(1), third(2), kAll))});
  expect_all(
      make("MultiHeadAttention", {q, pair}, two),
      {joined(attend(qs, read_heads(pair, 2, 3, 0, 6), read_heads(pair, 2, 3, 3, 6), kAll))});
  const TestTensor past_k = floats({2, 2, 3, 3}), past_v = floats({2, 2, 3, 4}),
                   scores = floats({2, 1, 4, 8});
  const std::vector<int32_t> mask = {1, 1, 0, 1, 1, 1, 0, 1, 1, 0, 1, 1, 1, 1, 1, 1};
  const Heads keys = behind(by_head(past_k), ks), values = behind(by_head(past_v), vs);
  const Addend added = [&](int64_t b, int64_t, int64_t i, int64_t j) {
    return at(scores, (b * 4 + i) * 8 + j) + (mask[b * 8 + j] > 0 ? 0 : -10000);
  };
  expect_all(make("MultiHeadAttention",
                  {q, k, v, kNone, words({2, 8}, mask), scores, past_k, past_v}, two),
             {joined(attend(qs, keys, values, added)), apart(keys), apart(values)});
}

TEST_F(MicrosoftAttentionTest, RefusesWhatDoesNotFitOrIsNotBuilt) {
  const TestTensor x = floats({2, 4, 6}), w = floats({6, 24});
  const auto attention = [&](std::vector<TestValue> inputs, Attributes attributes) {
    if (!attributes.has("num_heads")) attributes.set("num_heads", int64_t{2});
    return refusal(make("Attention", std::move(inputs), std::move(attributes)));
  };
  EXPECT_EQ(attention({x, w}, {{"num_heads", int64_t{0}}}),
            "attribute num_heads must be at least 1, not 0");
  EXPECT_EQ(attention({x, w}, {{"num_heads", int64_t{3}}}),
            "24 columns of weights do not fall into queries, keys and values of 3 heads");
  EXPECT_EQ(attention({x, w}, {{"qkv_hidden_sizes", std::vector<int64_t>{4, 4, 8}}}),
            "qkv_hidden_sizes do not add up to the 24 columns of weights");
  EXPECT_EQ(attention({x, floats({5, 24})}, {}),
            "weights of shape [5,24] does not fit input of shape [2,4,6]");
  EXPECT_EQ(attention({x, w}, {{"do_rotary", int64_t{1}}}),
            "attribute do_rotary must be 0, not 1: use RotaryEmbedding nodes");
  EXPECT_EQ(attention({x, w, kNone, words({8}, {1, 1, 1, 1, 1, 1, 1, 1})}, {}),
            "mask_index of shape [8] does not fit a batch of 2");
  EXPECT_EQ(attention({x, w, kNone, kNone, floats({2, 2, 3, 3, 4})}, {}),
            "past of shape [2,2,3,3,4] must be [2, batch, 2, length, head size]");
  const auto multi = [&](std::vector<TestValue> inputs) {
    return refusal(make("MultiHeadAttention", std::move(inputs), {{"num_heads", int64_t{4}}}));
  };
  EXPECT_EQ(multi({floats({2, 4, 6}), x, x}), "query of shape [2,4,6] does not fall into 4 heads");
  const TestTensor q = floats({2, 4, 8});
  EXPECT_EQ(multi({q, floats({2, 4, 4}), q}), "query and key must have one size, not 8 and 4");
  EXPECT_EQ(multi({q, floats({3, 4, 8}), q}), "key of shape [3,4,8] has another batch than query");
  EXPECT_EQ(multi({q, q, q, floats({23})}), "bias of shape [23] must be [24]");
  EXPECT_EQ(multi({q, kNone, q}), "value is given without key");
  EXPECT_EQ(multi({q, q, q, kNone, kNone, kNone, floats({2, 4, 1, 2})}),
            "past_key and past_value go together, but one is missing");
}

}  // namespace
}  // namespace eddy::testing
