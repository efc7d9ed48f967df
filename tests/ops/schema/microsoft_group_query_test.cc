// Claim: GroupQueryAttention and RotaryEmbedding of domain com.microsoft give what plain loops over
// their definitions give, on seeded inputs, by both sets of kernels and however little is known of
// the shapes: with caches with and without room, samples of different lengths, packed operands,
// windows, sinks, norms and tables for a part of each head; and a breach of their rules, or a form
// that is not built, is refused by name.
#include <algorithm>

#include "tests/ops/schema/plain_heads.h"

namespace eddy::testing {
namespace {

TEST_F(MicrosoftAttentionTest, RotaryEmbeddingTurnsHeadsInEveryLayout) {
  const TestTensor c = floats({10, 3}), s = floats({10, 3}), x = floats({2, 4, 12});
  const std::vector<int64_t> places = {0, 1, 2, 3, 9, 8, 7, 6};
  const auto listed = [&](int64_t b, int64_t i) { return places[b * 4 + i]; };
  const auto from_five = [](int64_t, int64_t i) { return 5 + i; };
  const TestTensor ids = TestTensor::of<int64_t>({2, 4}, places),
                   five = TestTensor::of<int64_t>({1}, {5});
  for (const bool is_interleaved : {false, true}) {
    const Attributes how = {{"interleaved", int64_t{is_interleaved}}};
    const Heads heads = side_by_side(x, 2);
    expect_all(make("RotaryEmbedding", {x, ids, c, s}, how),
               {joined(turned(heads, c, s, is_interleaved, listed))});
    expect_all(make("RotaryEmbedding", {x, five, c, s}, how),
               {joined(turned(heads, c, s, is_interleaved, from_five))});
    expect_all(make("RotaryEmbedding", {apart(heads), five, c, s}, how),
               {apart(turned(heads, c, s, is_interleaved, from_five))});
    Attributes partial = how;
    partial.set("num_heads", int64_t{1});
    partial.set("rotary_embedding_dim", int64_t{6});
    expect_all(make("RotaryEmbedding", {x, ids, c, s}, partial),
               {joined(turned(side_by_side(x, 1), c, s, is_interleaved, listed))});
  }
  EXPECT_EQ(refusal(make("RotaryEmbedding", {x, ids, c, s}, {{"scale", 2.0f}})),
            "attribute scale must be 1: multiply by it in a node of its own");
  EXPECT_EQ(
      refusal(make("RotaryEmbedding", {x, ids, c, s}, {{"rotary_embedding_dim", int64_t{4}}})),
      "rotary_embedding_dim needs attribute num_heads");
}

// One call of GroupQueryAttention: its operands, and what plain loops make of them.
class GroupQueryTest : public MicrosoftAttentionTest {
 protected:
  struct Form {
    int64_t queries = 1, past = 0, total = 1;
    std::vector<int32_t> lengths = {};  // less one, of two samples
    bool is_packed = false, has_bias = false, has_sinks = false, has_norms = false;
    int64_t half = 0;  // of the tables; 0: there are none
    Attributes attributes = {};
  };
  static constexpr int64_t kHeads = 4, kKvHeads = 2, kSize = 6;

  static Heads normalized(Heads x, const TestTensor& weight) {
    for (size_t first = 0; first < x.values.size(); first += kSize) {
      double square = 0;
      for (size_t d = 0; d < kSize; ++d) square += std::pow(x.values[first + d], 2) / double(kSize);
      for (size_t d = 0; d < kSize; ++d)
        x.values[first + d] *= at(weight, static_cast<int64_t>(d)) / std::sqrt(square + 1e-6);
    }
    return x;
  }

  void expect_form(const Form& form) {
    const TestTensor all = floats({2, form.queries, (kHeads + 2 * kKvHeads) * kSize});
    Heads q = read_heads(all, kHeads, kSize, 0, kSize),
          k = read_heads(all, kKvHeads, kSize, kHeads * kSize, kSize);
    const Heads v = read_heads(all, kKvHeads, kSize, (kHeads + kKvHeads) * kSize, kSize);
    std::vector<TestValue> inputs(16, kNone);
    inputs[0] = form.is_packed ? all : joined(q);
    if (!form.is_packed) inputs[1] = joined(k), inputs[2] = joined(v);
    const TestTensor past_k = floats({2, kKvHeads, form.past, kSize}),
                     past_v = floats({2, kKvHeads, form.past, kSize});
    if (form.past > 0) inputs[3] = past_k, inputs[4] = past_v;
    inputs[5] = words({2}, form.lengths);
    inputs[6] = words({1}, {static_cast<int32_t>(form.total)});
    const auto written = [&](int64_t b) {
      return form.queries == form.total ? 0 : form.lengths[b] + 1 - form.queries;
    };
    OpCall call = make("GroupQueryAttention", inputs, form.attributes);
    call.attributes.set("num_heads", kHeads);
    call.attributes.set("kv_num_heads", kKvHeads);
    if (form.has_norms) {
      const TestTensor q_norm = floats({kSize}), k_norm = floats({kSize});
      call.inputs[14] = q_norm, call.inputs[15] = k_norm;
      q = normalized(q, q_norm), k = normalized(k, k_norm);
    }
    if (form.half > 0) {
      const TestTensor c = floats({12, form.half}), s = floats({12, form.half});
      call.inputs[7] = c, call.inputs[8] = s;
      call.constant_inputs = 1 << 7 | 1 << 8;
      call.attributes.set("do_rotary", int64_t{1});
      const bool is_interleaved = form.attributes.get_int("rotary_interleaved", 0) != 0;
      const auto position = [&](int64_t b, int64_t i) { return written(b) + i; };
      q = turned(q, c, s, is_interleaved, position), k = turned(k, c, s, is_interleaved, position);
    }
    Choices choices = {.scale = form.attributes.get_float("scale", 0),
                       .softcap = form.attributes.get_float("softcap", 0)};
    if (form.has_sinks) {
      const TestTensor sinks = floats({kHeads});
      call.inputs[11] = sinks;
      for (int64_t h = 0; h < kHeads; ++h) choices.sinks.push_back(at(sinks, h));
    }
    if (form.attributes.get_int("smooth_softmax", 0) != 0) choices.sinks.assign(kHeads, 0);
    const TestTensor bias = floats({1, kHeads, form.queries, form.total});
    if (form.has_bias) call.inputs[10] = bias;
    const int64_t room = std::max(form.total, form.past),
                  window = form.attributes.get_int("local_window_size", -1);
    Heads keys(2, kKvHeads, room, kSize), values(2, kKvHeads, room, kSize);
    keys.for_each([&](int64_t b, int64_t h, int64_t i, int64_t d) {
      const bool is_new = i >= written(b) && i < written(b) + form.queries;
      keys(b, h, i, d) = is_new ? k(b, h, i - written(b), d)
                         : i < form.past
                             ? at(past_k, ((b * kKvHeads + h) * form.past + i) * kSize + d)
                             : 0;
      values(b, h, i, d) = is_new ? v(b, h, i - written(b), d)
                           : i < form.past
                               ? at(past_v, ((b * kKvHeads + h) * form.past + i) * kSize + d)
                               : 0;
    });
    const bool is_causal = form.attributes.get_int("causal", 1) != 0;
    const Addend addend = [&](int64_t b, int64_t h, int64_t i, int64_t j) {
      const int64_t place = written(b) + i;
      const bool is_seen = j <= form.lengths[b] &&
                           (!is_causal || (j <= place && (window < 1 || j > place - window)));
      if (!is_seen) return -HUGE_VAL;
      return form.has_bias ? at(bias, (h * form.queries + i) * form.total + j) : 0;
    };
    expect_all(call,
               {joined(attend(q, keys, values, addend, choices)), apart(keys), apart(values)});
  }
};

TEST_F(GroupQueryTest, WritesNewKeysBehindThoseOfEachSample) {
  for (const bool is_packed : {false, true}) {
    for (const int64_t half : {0, 3, 2}) {
      SCOPED_TRACE("half " + std::to_string(half));
      expect_form(
          {.queries = 5, .total = 5, .lengths = {4, 4}, .is_packed = is_packed, .half = half});
      expect_form({.queries = 1,
                   .past = 5,
                   .total = 6,
                   .lengths = {5, 5},
                   .is_packed = is_packed,
                   .half = half});
      expect_form({.queries = 1,
                   .past = 5,
                   .total = 6,
                   .lengths = {5, 3},
                   .is_packed = is_packed,
                   .half = half});
      expect_form({.queries = 1,
                   .past = 9,
                   .total = 6,
                   .lengths = {2, 5},
                   .is_packed = is_packed,
                   .half = half});
      expect_form({.queries = 3,
                   .past = 5,
                   .total = 8,
                   .lengths = {7, 6},
                   .is_packed = is_packed,
                   .half = half,
                   .attributes = {{"rotary_interleaved", int64_t{1}}}});
    }
  }
}

TEST_F(GroupQueryTest, WindowsCapsSinksNormsAndBiases) {
  const std::vector<Attributes> choices = {
      {},
      {{"local_window_size", int64_t{1}}},
      {{"local_window_size", int64_t{3}}},
      {{"local_window_size", int64_t{50}}},
      {{"softcap", 1.5f}, {"scale", 0.3f}},
      {{"smooth_softmax", int64_t{1}}, {"local_window_size", int64_t{2}}},
      {{"causal", int64_t{0}}}};
  for (const Attributes& choice : choices) {
    for (const bool has_bias : {false, true}) {
      for (const bool has_sinks : {false, true}) {
        if (has_sinks && choice.has("smooth_softmax")) continue;
        expect_form({.queries = 5,
                     .total = 5,
                     .lengths = {4, 4},
                     .has_bias = has_bias,
                     .has_sinks = has_sinks,
                     .has_norms = has_sinks,
                     .half = 3,
                     .attributes = choice});
        expect_form({.queries = 1,
                     .past = 9,
                     .total = 6,
                     .lengths = {5, 3},
                     .has_bias = has_bias,
                     .has_sinks = has_sinks,
                     .attributes = choice});
      }
    }
  }
}

TEST_F(GroupQueryTest, RefusesWhatDoesNotFitOrIsNotBuilt) {
  const TestTensor q = floats({2, 1, 24}), kv = floats({2, 1, 12}), past = floats({2, 2, 5, 6});
  const TestValue lengths = words({2}, {5, 5}), total = words({1}, {6});
  const auto with = [&](const char* name, AttributeValue value) {
    OpCall call = make("GroupQueryAttention", {q, kv, kv, past, past, lengths, total},
                       {{"num_heads", int64_t{4}}, {"kv_num_heads", int64_t{2}}});
    call.attributes.set(name, std::move(value));
    return refusal(call);
  };
  EXPECT_EQ(with("scale", 0.0f), "accepted");
  EXPECT_EQ(with("kv_num_heads", int64_t{3}),
            "num_heads must be a multiple of kv_num_heads, not 4 of 3");
  EXPECT_EQ(with("kv_num_heads", int64_t{0}), "attribute kv_num_heads must be at least 1, not 0");
  EXPECT_EQ(with("num_heads", int64_t{8}), "key of shape [2,1,12] has heads of 6, not 3");
  EXPECT_EQ(with("num_heads", int64_t{10}), "query of shape [2,1,24] does not fall into 10 heads");
  EXPECT_EQ(with("do_rotary", int64_t{1}), "do_rotary needs cos_cache and sin_cache");
  EXPECT_EQ(with("local_window_size", int64_t{0}),
            "local_window_size must be -1 or at least 1, not 0");
  EXPECT_EQ(with("k_quant_type", "PER_TENSOR"),
            "attribute k_quant_type must be NONE, not 'PER_TENSOR': export caches of floats");
  EXPECT_EQ(with("sliding_window_cache", int64_t{1}),
            "attribute sliding_window_cache must be 0, not 1: export caches that hold all keys");
  EXPECT_EQ(refusal(make("GroupQueryAttention", {q, kv, kv, past, kNone, lengths, total},
                         {{"num_heads", int64_t{4}}, {"kv_num_heads", int64_t{2}}})),
            "past_key and past_value go together, but one is missing");
  // A length beyond the cache is an error of the run, not of memory.
  EXPECT_NE(refusal(make("GroupQueryAttention", {q, kv, kv, past, past, words({2}, {90, 5}), total},
                         {{"num_heads", int64_t{4}}, {"kv_num_heads", int64_t{2}}})),
            "accepted");
}

}  // namespace
}  // namespace eddy::testing
