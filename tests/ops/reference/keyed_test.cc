// Claim: FoldKey and KeyedUniform give what philox4x32-10 gives by a second implementation, which
// has Random123's known answers (kat_vectors): numbers in [0, 1) that depend on the key and on
// their place alone, whatever the shape; keys of other numbers, or in another order, differ; and
// calls without a shape, or of another type, are refused.
#include <gtest/gtest.h>

#include <array>
#include <bit>

#include "tests/ops/testing/op_runner.h"

namespace eddy::testing {
namespace {

using Words = std::array<uint32_t, 4>;

// Figure 2 of the paper, round for round.
Words block(std::array<uint32_t, 2> key, Words counter) {
  for (uint32_t round = 0; round < 10; ++round) {
    const auto product = [&](uint32_t multiplier, uint32_t x) {
      return static_cast<unsigned __int128>(multiplier) * x;
    };
    const auto even = product(0xD2511F53u, counter[0]), odd = product(0xCD9E8D57u, counter[2]);
    const auto high = [](auto x) { return static_cast<uint32_t>(x >> 32); };
    const auto low = [](auto x) { return static_cast<uint32_t>(x); };
    const uint32_t k0 = key[0] + round * 0x9E3779B9u, k1 = key[1] + round * 0xBB67AE85u;
    counter = {high(odd) ^ counter[1] ^ k0, low(odd), high(even) ^ counter[3] ^ k1, low(even)};
  }
  return counter;
}

TEST(KeyedTest, TheSecondImplementationHasTheKnownAnswers) {
  EXPECT_EQ(block({0, 0}, {0, 0, 0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  const uint32_t all = 0xffffffff;
  EXPECT_EQ(block({all, all}, {all, all, all, all}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(block({0xa4093822, 0x299f31d0}, {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

std::array<uint32_t, 2> halves(uint64_t x) {
  return {static_cast<uint32_t>(x), static_cast<uint32_t>(x >> 32)};
}

OpCall call_of(const char* op, std::vector<int64_t> numbers, Attributes attributes = {}) {
  OpCall call;
  call.op = op;
  call.domain = "eddy";
  call.attributes = std::move(attributes);
  for (const int64_t number : numbers) call.inputs.push_back(TestTensor::scalar(number));
  return call;
}

int64_t folded(std::vector<int64_t> numbers) {
  return run_one(call_of("FoldKey", std::move(numbers)), KernelSet::kCpu).values<int64_t>()[0];
}

TEST(KeyedTest, KeysAreFoldedNumberByNumber) {
  for (const int64_t key : {int64_t{0}, int64_t{77}, int64_t{-5}}) {
    for (const int64_t number : {int64_t{0}, int64_t{1} << 40, int64_t{-1}}) {
      const auto [low, high] = halves(static_cast<uint64_t>(number));
      const Words expected = block(halves(static_cast<uint64_t>(key)), {low, high, 1, 0});
      EXPECT_EQ(static_cast<uint64_t>(folded({key, number})),
                uint64_t{expected[0]} | uint64_t{expected[1]} << 32);
      EXPECT_EQ(folded({key, number, 3}), folded({folded({key, number}), 3}));
    }
  }
  EXPECT_NE(folded({1, 2}), folded({2, 1}));
  EXPECT_NE(folded({1, 2, 3}), folded({1, 3, 2}));
}

TestTensor drawn(int64_t key, int64_t dtype, std::vector<int64_t> shape) {
  return run_one(call_of("KeyedUniform", {key}, {{"dtype", dtype}, {"shape", std::move(shape)}}),
                 KernelSet::kCpu);
}

TEST(KeyedTest, NumbersDependOnKeyAndPlaceAlone) {
  constexpr int64_t kKey = 0x123456789abcdef;
  for (const std::vector<int64_t>& shape :
       {std::vector<int64_t>{3, 7}, {21}, {1}, {2}, {3}, {5}, {0}, {}}) {
    const TestTensor floats = drawn(kKey, 1, shape), doubles = drawn(kKey, 11, shape);
    const auto few = floats.values<float>();
    for (size_t i = 0; i < few.size(); ++i) {
      const Words words = block(halves(kKey), {static_cast<uint32_t>(i / 4), 0, 0, 0});
      EXPECT_EQ(few[i], static_cast<float>(words[i % 4] >> 8) / 16777216.0f);
    }
    const auto many = doubles.values<double>();
    for (size_t i = 0; i < many.size(); ++i) {
      const Words words = block(halves(kKey), {static_cast<uint32_t>(i / 2), 0, 0, 0});
      const uint64_t bits = uint64_t{words[i % 2 * 2]} | uint64_t{words[i % 2 * 2 + 1]} << 32;
      EXPECT_EQ(many[i], static_cast<double>(bits >> 11) / 9007199254740992.0);
      EXPECT_TRUE(many[i] >= 0 && many[i] < 1);
    }
  }
}

TEST(KeyedTest, ShapesMayBeAnothersToo) {
  OpCall call = call_of("KeyedUniform", {5}, {{"dtype", int64_t{11}}});
  call.inputs.push_back(TestTensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6}));
  EXPECT_TRUE(is_same_bits(run_one(call, KernelSet::kCpu), drawn(5, 11, {2, 3})));
}

std::string refusal(Attributes attributes, std::vector<int64_t> inputs) {
  const auto types = infer_op(call_of("KeyedUniform", std::move(inputs), std::move(attributes)));
  return types.is_ok() ? "accepted" : types.status().message();
}

TEST(KeyedTest, BadCallsAreRefused) {
  EXPECT_EQ(refusal({}, {1}),
            "KeyedUniform takes its shape from input 'like' or attribute 'shape'");
  EXPECT_EQ(refusal({{"shape", std::vector<int64_t>{2}}}, {1, 2}),
            "KeyedUniform takes its shape from input 'like' or attribute 'shape'");
  EXPECT_EQ(refusal({{"shape", std::vector<int64_t>{-2}}}, {1}),
            "the shape has the negative size -2");
  EXPECT_EQ(refusal({{"dtype", int64_t{7}}}, {1, 2}),
            "attribute 'dtype' of KeyedUniform must be float (1) or double (11)");
}

}  // namespace
}  // namespace eddy::testing
