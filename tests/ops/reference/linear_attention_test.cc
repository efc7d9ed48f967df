// Claim: LinearAttention changes its state by each of its rules as worked out by hand, shares it
// among query heads, and takes and leaves it between calls.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "tests/ops/testing/calls.h"

namespace eddy::testing {
namespace {

using Floats = std::vector<float>;

// Two tokens of one head of size 1: keys 1 and 2, values 3 and 4, decay 1/2, beta 1.
OpCall two_tokens(const char* rule) {
  OpCall call;
  call.op = "LinearAttention";
  call.opset = 27;
  call.attributes = {{"q_num_heads", int64_t{1}},
                     {"kv_num_heads", int64_t{1}},
                     {"scale", 1.0f},
                     {"update_rule", std::string(rule)}};
  const float half = std::log(0.5f);
  call.inputs = {floats({1, 2, 1}, {1, 1}),       floats({1, 2, 1}, {1, 2}),
                 floats({1, 2, 1}, {3, 4}),       TestValue::omitted(),
                 floats({1, 2, 1}, {half, half}), floats({1, 2, 1}, {1, 1})};
  return call;
}

// Two tokens of some values.
void expect_values(const OpCall& call, const Floats& expected) {
  const TestTensor found = run_one(call, KernelSet::kReference);
  const Dims dims = {1, 2, static_cast<int64_t>(expected.size()) / 2};
  ASSERT_EQ(found.dims(), dims);
  EXPECT_TRUE(is_close(found, floats(dims, expected), 1e-6, 0));
}

TEST(LinearAttentionTest, RulesByHand) {
  expect_values(two_tokens("linear"), {3, 11});
  expect_values(two_tokens("gated"), {3, 9.5f});
  expect_values(two_tokens("delta"), {3, -1});
  expect_values(two_tokens("gated_delta"), {3, 3.5f});
}

TEST(LinearAttentionTest, TheStateComesFromTheCallBeforeAndGoesToTheNext) {
  OpCall call = two_tokens("linear");
  call.inputs[3] = floats({1, 1, 1, 1}, {10});
  call.num_outputs = 2;
  const auto outputs = run_op(call, KernelSet::kReference);
  ASSERT_TRUE(outputs.is_ok()) << outputs.status().to_string();
  EXPECT_EQ((*outputs)[0].tensor().values<float>(), (Floats{13, 21}));
  EXPECT_EQ((*outputs)[1].tensor().values<float>(), Floats{21});
}

TEST(LinearAttentionTest, QueryHeadsShareAStateAndKeysDecayByElement) {
  OpCall call = two_tokens("gated");
  call.attributes.set("q_num_heads", int64_t{2});
  const float half = std::log(0.5f);
  call.inputs = {floats({1, 2, 4}, {1, 0, 0, 1, 1, 0, 0, 1}), floats({1, 2, 2}, {1, 1, 1, 1}),
                 floats({1, 2, 1}, {2, 4}), TestValue::omitted(),
                 floats({1, 2, 2}, {0, half, 0, half})};
  expect_values(call, {2, 2, 6, 5});
}

TEST(LinearAttentionTest, WhatARuleNeedsIsAskedFor) {
  OpCall call = two_tokens("gated_delta");
  call.inputs.resize(5);
  EXPECT_EQ(infer_op(call).status().message(), "update_rule gated_delta needs the input beta");
  call = two_tokens("linear");
  call.attributes.set("q_num_heads", int64_t{3});
  call.attributes.set("kv_num_heads", int64_t{2});
  EXPECT_EQ(infer_op(call).status().message(),
            "q_num_heads must be a multiple of kv_num_heads, not 3 of 2");
}

}  // namespace
}  // namespace eddy::testing
