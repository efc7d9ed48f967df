// Claim: a decoder of com.microsoft's operators, MatMulNBits and GroupQueryAttention, gives token
// by token what it gives for all tokens at once: its caches are carried by a loop and grow, or have
// room from the start, and its lengths are known only while it runs.
#include <iostream>

#include "graph/base/random.h"
#include "tests/runtime/testing/ways.h"

namespace eddy {
namespace {

using testing::WaysTest;

constexpr int64_t kTokens = 6, kWidth = 32, kHeads = 4, kKvHeads = 2, kSize = 16;
constexpr uint64_t kSeed = 31;

class DecoderCachesTest : public WaysTest {
 protected:
  DecoderCachesTest() { std::cout << "seed " << kSeed << "\n"; }

  Value floats(GraphBuilder& b, const Dims& dims, float low, float high) {
    std::vector<float> values(static_cast<size_t>(*dims.count()));
    for (float& value : values) value = random_.uniform(low, high);
    return b.tensor<float>(dims, std::span<const float>(values));
  }

  // Once, for the prompt and the steps alike.
  void draw_weights(GraphBuilder& b) {
    const int64_t columns = (kHeads + 2 * kKvHeads) * kSize;
    std::vector<uint8_t> bytes(static_cast<size_t>(columns * kWidth / 2));
    for (uint8_t& byte : bytes) byte = static_cast<uint8_t>(random_.below(256));
    weights_ = b.tensor<uint8_t>({columns, kWidth / 16, 8}, std::span<const uint8_t>(bytes));
    scales_ = floats(b, {columns, kWidth / 16}, 0.01f, 0.05f);
    cos_ = floats(b, {kTokens, kSize / 2}, -1, 1);
    sin_ = floats(b, {kTokens, kSize / 2}, -1, 1);
  }

  // Outputs of attention over x, [1, tokens, kWidth]: the result and the caches.
  std::vector<Value> attend(GraphBuilder& b, Value x, Value past_k, Value past_v, Value last,
                            Value total) {
    const Attributes of_weights = {
        {"K", kWidth}, {"N", (kHeads + 2 * kKvHeads) * kSize}, {"block_size", int64_t{16}}};
    const Value all =
        b.op("MatMulNBits", {x, weights_, scales_}, of_weights, {.domain = "com.microsoft"});
    const Value inputs[] = {all, {}, {}, past_k, past_v, last, total, cos_, sin_};
    return b.ops("GroupQueryAttention", inputs,
                 {{"num_heads", kHeads}, {"kv_num_heads", kKvHeads}, {"do_rotary", int64_t{1}}},
                 {.domain = "com.microsoft", .num_outputs = 3});
  }

  // The results one by one, [tokens, 1, 1, heads * size], with caches of `room` keys at first.
  Value step_by_step(GraphBuilder& b, Value x, int64_t room) {
    const std::vector<float> zeros(static_cast<size_t>(kKvHeads * room * kSize));
    const Value empty = b.tensor<float>({1, kKvHeads, room, kSize}, std::span<const float>(zeros));
    const auto integers = [&](Value value) {
      const Value list = b.op("Reshape", {value, b.int64s({1})});
      return b.op("Cast", {list}, {{"to", static_cast<int64_t>(ElementType::kInt32)}});
    };
    const auto results = b.while_loop(
        {.initial = {empty, empty}, .num_scan_outputs = 1},
        [&](Value i, ValueSpan caches) {
          return WhileTest{b.op("Less", {i, b.scalar<int64_t>(kTokens)}), {caches[0], caches[1]}};
        },
        [&](Value i, ValueSpan caches) {
          const Value place = b.op("Reshape", {i, b.int64s({1})});
          const Value token = b.op("Gather", {x, place}, {{"axis", int64_t{1}}});
          const Value total = b.op("Add", {i, b.scalar<int64_t>(1)});
          const auto made = attend(b, token, caches[0], caches[1], integers(i), integers(total));
          return std::vector<Value>{made[1], made[2], made[0]};
        });
    return results[2];
  }

  Random random_{kSeed};
  Value weights_, scales_, cos_, sin_;
};

EDDY_IN_ALL_WAYS(DecoderCachesTest);

TEST_P(DecoderCachesTest, TokenByTokenGivesWhatAllAtOnceGive) {
  GraphBuilder b(library_.ops());
  draw_weights(b);
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {1, b.symbol("n"), kWidth}));
  const std::vector<int32_t> last = {kTokens - 1}, total = {kTokens};
  const auto whole =
      attend(b, x, {}, {}, b.vector<int32_t>(std::span(last)), b.vector<int32_t>(std::span(total)));
  b.output("whole", whole[0]);
  b.output("growing", step_by_step(b, x, 0));
  b.output("roomy", step_by_step(b, x, kTokens + 3));
  const auto session = make_session(b);
  ASSERT_NE(session, nullptr);
  std::vector<float> tokens(static_cast<size_t>(kTokens * kWidth));
  for (int round = 0; round < 2; ++round) {
    for (float& value : tokens) value = random_.uniform(-1, 1);
    const auto outputs = session->run({{"x", Tensor::of<float>({1, kTokens, kWidth}, tokens)}});
    ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
    const auto expected = values<float>((*outputs)[0].second);
    ASSERT_EQ(expected.size(), static_cast<size_t>(kTokens * kHeads * kSize));
    for (const size_t o : {1, 2}) {
      const auto found = values<float>((*outputs)[o].second);
      ASSERT_EQ(found.size(), expected.size());
      for (size_t i = 0; i < found.size(); ++i) {
        ASSERT_NEAR(found[i], expected[i], 1e-4) << "output " << o << " element " << i;
      }
    }
  }
}

}  // namespace
}  // namespace eddy
