// Claim: Attention, RotaryEmbedding and TensorScatter give values worked out by hand; and the fast
// Attention, over blocks of keys, what the plain one computes from all scores.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/ops/testing/op_runner.h"

namespace eddy::testing {
namespace {

using Ints = std::vector<int64_t>;
using Floats = std::vector<float>;

constexpr ElementType kF32 = ElementType::kFloat;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

TestTensor floats(Dims dims, const Floats& values) { return TestTensor::of<float>(dims, values); }

OpCall attention(std::vector<TestValue> inputs, Attributes attributes = {}, int opset = 24) {
  OpCall call;
  call.op = "Attention";
  call.opset = opset;
  call.inputs = std::move(inputs);
  call.attributes = std::move(attributes);
  return call;
}

void expect_values(const OpCall& call, const TestTensor& expected) {
  for (const KernelSet kernels : {KernelSet::kReference, KernelSet::kCpu}) {
    EXPECT_TRUE(is_close(run_one(call, kernels), expected, 1e-5, 1e-6));
  }
}

std::string refusal(const OpCall& call) {
  const auto result = run_op(call, KernelSet::kCpu);
  return result.is_ok() ? "accepted" : result.status().message();
}

// One head of size 1, scale 1: the scores are the keys, log 3 and 0, so the weights are 3/4 and
// 1/4.
const TestTensor kQuery = floats({1, 1, 2, 1}, {1, 1});
const TestTensor kKeys = floats({1, 1, 2, 1}, {std::log(3.0f), 0});
const TestTensor kValues = floats({1, 1, 2, 1}, {4, 8});

TEST(AttentionTest, ValuesByHand) {
  expect_values(attention({kQuery, kKeys, kValues}), floats({1, 1, 2, 1}, {5, 5}));
  // The first query sees the first key only.
  expect_values(attention({kQuery, kKeys, kValues}, {{"is_causal", int64_t{1}}}),
                floats({1, 1, 2, 1}, {4, 5}));
  const TestTensor mask = TestTensor::of<bool>({2, 2}, {false, true, false, false});
  expect_values(attention({kQuery, kKeys, kValues, mask}), floats({1, 1, 2, 1}, {8, 0}));
  const TestTensor bias = floats({1, 2}, {-std::log(3.0f), 0});
  expect_values(attention({kQuery, kKeys, kValues, bias}), floats({1, 1, 2, 1}, {6, 6}));
  expect_values(attention({kQuery, kKeys, kValues}, {{"scale", 0.0f}}),
                floats({1, 1, 2, 1}, {6, 6}));
}

TEST(AttentionTest, AShortMaskEndsAtItsLastKeyFromOpset24On) {
  const TestTensor first = TestTensor::of<bool>({1, 1}, {true});
  expect_values(attention({kQuery, kKeys, kValues, first}), floats({1, 1, 2, 1}, {4, 4}));
  expect_values(attention({kQuery, kKeys, kValues, first}, {}, 23), floats({1, 1, 2, 1}, {5, 5}));
}

TEST(AttentionTest, CachesAreJoinedAndCountBeforeTheNewKeys) {
  const TestTensor query = floats({1, 1, 1, 1}, {1});
  OpCall call =
      attention({query, floats({1, 1, 1, 1}, {0}), floats({1, 1, 1, 1}, {8}), TestValue::omitted(),
                 floats({1, 1, 1, 1}, {std::log(3.0f)}), floats({1, 1, 1, 1}, {4})},
                {{"is_causal", int64_t{1}}});
  call.num_outputs = 3;
  for (const KernelSet kernels : {KernelSet::kReference, KernelSet::kCpu}) {
    const auto outputs = run_op(call, kernels);
    ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
    EXPECT_TRUE(is_close((*outputs)[0].tensor(), floats({1, 1, 1, 1}, {5}), 1e-5, 0));
    EXPECT_TRUE(is_same_bits((*outputs)[1].tensor(), kKeys));
    EXPECT_TRUE(is_same_bits((*outputs)[2].tensor(), kValues));
  }
}

TEST(AttentionTest, LengthsOfTheBatchAlignCausalQueriesToTheLastKey) {
  const TestTensor query = floats({3, 1, 2, 1}, {1, 1, 1, 1, 1, 1});
  const float key = std::log(3.0f);
  const TestTensor keys = floats({3, 1, 2, 1}, {key, 0, key, 0, key, 0});
  const TestTensor values = floats({3, 1, 2, 1}, {4, 8, 4, 8, 4, 8});
  const TestTensor lengths = TestTensor::of<int64_t>({3}, {2, 1, 0});
  std::vector<TestValue> inputs(7);
  inputs[0] = query;
  inputs[1] = keys;
  inputs[2] = values;
  inputs[6] = lengths;
  expect_values(attention(inputs), floats({3, 1, 2, 1}, {5, 5, 4, 4, 0, 0}));
  expect_values(attention(inputs, {{"is_causal", int64_t{1}}}),
                floats({3, 1, 2, 1}, {4, 5, 0, 4, 0, 0}));
  for (const int64_t length : {int64_t{-1}, int64_t{3}, INT64_MIN, INT64_MAX}) {
    inputs[6] = TestTensor::of<int64_t>({3}, {2, length, 0});
    for (const KernelSet kernels : {KernelSet::kReference, KernelSet::kCpu}) {
      EXPECT_EQ(run_op(attention(inputs), kernels).status().message(),
                "nonpad_kv_seqlen[1] is " + std::to_string(length) +
                    ", but must be 0 to 2, the length of K");
    }
  }
}

TEST(AttentionTest, ScoresAreShownAtEachStage) {
  OpCall call =
      attention({kQuery, kKeys, kValues, floats({2}, {0, -kInfinity})}, {{"softcap", 0.5f}});
  call.num_outputs = 4;
  const float key = std::log(3.0f), capped = 0.5f * std::tanh(2 * key);
  const std::vector<Floats> expected = {{key, 0, key, 0},
                                        {capped, 0, capped, 0},
                                        {capped, -kInfinity, capped, -kInfinity},
                                        {1, 0, 1, 0}};
  for (int64_t mode = 0; mode < 4; ++mode) {
    call.attributes.set("qk_matmul_output_mode", mode);
    const auto outputs = run_op(call, KernelSet::kCpu);
    ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
    EXPECT_TRUE(is_close((*outputs)[3].tensor(),
                         floats({1, 1, 2, 2}, expected[static_cast<size_t>(mode)]), 1e-5, 1e-6))
        << mode;
  }
}

struct Sizes {
  int64_t batch, q_heads, kv_heads, queries, keys, past, head, v_head;
};

// Every combination of mask, cache, soft cap and causality, with blocks of 64 queries and 128 keys
// full, cut and alone.
TEST(AttentionTest, BlocksOfKeysAddUpToAllScores) {
  const uint64_t seed = 71;
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  const Sizes kSizes[] = {{2, 4, 2, 3, 5, 0, 8, 6},    {1, 2, 1, 70, 150, 0, 16, 16},
                          {1, 2, 2, 1, 1, 300, 8, 8},  {2, 1, 1, 65, 65, 64, 4, 4},
                          {1, 3, 1, 2, 0, 7, 5, 3},    {0, 2, 2, 3, 3, 0, 4, 4},
                          {1, 2, 2, 130, 129, 0, 3, 3}};
  for (const Sizes& s : kSizes) {
    for (int choice = 0; choice < 12; ++choice) {
      const auto tensor = [&](const Dims& dims) {
        return TestTensor::random(kF32, dims, random, -2, 2);
      };
      std::vector<TestValue> inputs(6);
      inputs[0] = tensor({s.batch, s.q_heads, s.queries, s.head});
      inputs[1] = tensor({s.batch, s.kv_heads, s.keys, s.head});
      inputs[2] = tensor({s.batch, s.kv_heads, s.keys, s.v_head});
      const Dims full{s.batch, s.q_heads, s.queries, s.keys + s.past};
      if (choice % 3 == 1) inputs[3] = tensor({s.queries, s.keys + s.past});
      if (choice % 3 == 2) inputs[3] = TestTensor::random(ElementType::kBool, full, random);
      if (s.past > 0) {
        inputs[4] = tensor({s.batch, s.kv_heads, s.past, s.head});
        inputs[5] = tensor({s.batch, s.kv_heads, s.past, s.v_head});
      }
      OpCall call = attention(inputs, {{"is_causal", int64_t{choice / 3 % 2}}});
      if (choice >= 6) call.attributes.set("softcap", 1.5f);
      call.num_outputs = choice % 2 == 0 ? 1 : 3;
      SCOPED_TRACE("choice " + std::to_string(choice) + " of " + to_string(full));
      compare_with_reference(call, 1e-4, 1e-5);
    }
  }
}

TEST(AttentionTest, HeadsSideBySideAreTheSameHeads) {
  const uint64_t seed = 72;
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  const auto tensor = [&](const Dims& dims) {
    return TestTensor::random(kF32, dims, random, -2, 2);
  };
  OpCall call = attention({tensor({2, 5, 12}), tensor({2, 7, 6}), tensor({2, 7, 8})},
                          {{"q_num_heads", int64_t{4}}, {"kv_num_heads", int64_t{2}}});
  call.num_outputs = 3;
  compare_with_reference(call, 1e-4, 1e-5);
  EXPECT_EQ(to_string((*infer_op(call))[0]), "float[2,5,16]");
  EXPECT_EQ(to_string((*infer_op(call))[1]), "float[2,2,7,3]");
}

TEST(AttentionTest, ShapesThatDoNotBelongTogetherAreRefused) {
  const TestTensor q = floats({1, 1, 2, 1}, {1, 1}), flat = floats({1, 2, 1}, {1, 1});
  EXPECT_EQ(refusal(attention({flat, flat, flat})),
            "Q of shape [1,2,1] has 3 dimensions and needs attribute q_num_heads");
  EXPECT_EQ(refusal(attention({q, floats({1, 1, 1, 2}, {1, 1}), q})),
            "the head sizes of Q and K differ: 1 and 2");
  EXPECT_EQ(refusal(attention({floats({1, 3, 1, 1}, {1, 1, 1}), floats({1, 2, 1, 1}, {1, 1}),
                               floats({1, 2, 1, 1}, {1, 1})})),
            "3 heads of Q do not share 2 heads of K evenly");
  EXPECT_EQ(refusal(attention({q, q, q, floats({3}, {1, 1, 1})})),
            "attn_mask of shape [3] does not stretch over [1,1,2,2]");
  EXPECT_EQ(refusal(attention({q, q, q, TestValue::omitted(), q})),
            "past_key and past_value go together, but one is missing");
  EXPECT_EQ(refusal(attention({q, q, q}, {{"qk_matmul_output_mode", int64_t{4}}})),
            "qk_matmul_output_mode must be 0 to 3, not 4");
}

OpCall rotary(std::vector<TestValue> inputs, Attributes attributes = {}) {
  OpCall call = attention(std::move(inputs), std::move(attributes));
  call.op = "RotaryEmbedding";
  return call;
}

TEST(RotaryEmbeddingTest, ValuesByHand) {
  // A quarter turn for position 1, none for position 0.
  const TestTensor cosines = floats({2, 1}, {1, 0}), sines = floats({2, 1}, {0, 1});
  const TestTensor ids = TestTensor::of<int64_t>({1, 2}, {1, 0});
  const TestTensor x = floats({1, 1, 2, 2}, {1, 2, 3, 4});
  expect_values(rotary({x, cosines, sines, ids}), floats({1, 1, 2, 2}, {-2, 1, 3, 4}));
  // Pairs (1, 3) and (2, 4), or side by side.
  const TestTensor line = floats({1, 1, 1, 4}, {1, 2, 3, 4});
  const TestTensor c = floats({1, 1, 2}, {0, 1}), s = floats({1, 1, 2}, {1, 0});
  expect_values(rotary({line, c, s}), floats({1, 1, 1, 4}, {-3, 2, 1, 4}));
  expect_values(rotary({line, c, s}, {{"interleaved", int64_t{1}}}),
                floats({1, 1, 1, 4}, {-2, 1, 3, 4}));
  // Only the first two of each head turn.
  expect_values(rotary({line, floats({1, 1, 1}, {0}), floats({1, 1, 1}, {1})},
                       {{"rotary_embedding_dim", int64_t{2}}}),
                floats({1, 1, 1, 4}, {-2, 1, 3, 4}));
  EXPECT_EQ(refusal(rotary({x, cosines, sines, TestTensor::of<int64_t>({1, 2}, {1, 2})})),
            "position 2 of place 1 has no row in caches of 2");
}

TEST(RotaryEmbeddingTest, AgreesWithThePlainLoopAlsoInPlace) {
  const uint64_t seed = 73;
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  for (const bool is_flat : {false, true}) {
    for (const int64_t interleaved : {0, 1}) {
      const Dims dims = is_flat ? Dims{2, 5, 24} : Dims{2, 3, 5, 8};
      OpCall call = rotary({TestTensor::random(kF32, dims, random, -2, 2),
                            TestTensor::random(kF32, {2, 5, 3}, random, -1, 1),
                            TestTensor::random(kF32, {2, 5, 3}, random, -1, 1)},
                           {{"interleaved", interleaved}, {"rotary_embedding_dim", int64_t{6}}});
      if (is_flat) call.attributes.set("num_heads", int64_t{3});
      compare_with_reference(call, 1e-5, 1e-6);
      call.in_place_input = 0;
      compare_with_reference(call, 1e-5, 1e-6);
    }
  }
}

TEST(TensorScatterTest, RowsAreWrittenFromAPlaceOfEachBatch) {
  const TestTensor cache = floats({2, 3, 1}, {1, 2, 3, 4, 5, 6});
  const TestTensor update = floats({2, 2, 1}, {10, 20, 30, 40});
  OpCall call = attention({cache, update, TestTensor::of<int64_t>({2}, {1, 0})});
  call.op = "TensorScatter";
  expect_values(call, floats({2, 3, 1}, {1, 10, 20, 30, 40, 6}));
  call.in_place_input = 0;
  expect_values(call, floats({2, 3, 1}, {1, 10, 20, 30, 40, 6}));
  call.in_place_input = -1;
  call.inputs[2] = TestTensor::of<int64_t>({2}, {2, 5});
  EXPECT_EQ(refusal(call), "write_indices[0] is 2, but 2 rows go into 3");
  call.attributes.set("mode", "circular");
  expect_values(call, floats({2, 3, 1}, {20, 2, 10, 40, 5, 30}));
  call.inputs[2] = TestTensor::of<int64_t>({2}, {0, -1});
  EXPECT_EQ(refusal(call), "write_indices[1] is -1, but 2 rows go into 3");
  EXPECT_EQ(refusal([&] {
              OpCall bad = call;
              bad.inputs[1] = floats({2, 4, 1}, {1, 2, 3, 4, 5, 6, 7, 8});
              return bad;
            }()),
            "update of shape [2,4,1] does not fit past_cache of shape [2,3,1] on axis 1");
}

}  // namespace
}  // namespace eddy::testing
