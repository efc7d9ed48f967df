// Claim: eddy.ExpandedConv is its two convolutions one after the other on seeded random images,
// windows, strides, dilations and pads, of channels that fill no block, with any ends of both, from
// its parts in any order, with the same bits whether shapes are known when it is bound or not; and
// calls that do not fit together are refused with what is wrong.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "ops/cpu/tile/tile.h"
#include "tests/ops/testing/op_runner.h"

namespace eddy::testing {
namespace {

using ::testing::HasSubstr;
using Ints = std::vector<int64_t>;

int64_t pick(Random& random, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(random.below(static_cast<uint64_t>(high - low + 1)));
}

int64_t block() { return cpu::tile_kernels().width; }

TestTensor values(const Dims& dims, Random& random) {
  return TestTensor::random(ElementType::kFloat, dims, random, -1, 1);
}

// An image in blocks, with zeros beyond the last channel.
TestValue image(const Dims& dims, Random& random) {
  OpCall call;
  call.op = "BlockChannels";
  call.domain = "eddy";
  call.attributes = {{"block", block()}};
  call.inputs = {values(dims, random)};
  return run_one(call, KernelSet::kReference);
}

struct Sizes {
  int64_t batch, channels, filters, rows, columns;
};

OpCall expanded(const Sizes& s, const Ints& kernel, Attributes attributes, Random& random) {
  OpCall call;
  call.op = "ExpandedConv";
  call.domain = "eddy";
  call.attributes = std::move(attributes);
  call.attributes.set("block", block());
  call.inputs = {image({s.batch, s.channels, s.rows, s.columns}, random),
                 values({s.filters, s.channels, 1, 1}, random), TestValue::omitted(),
                 values({s.filters, 1, kernel[0], kernel[1]}, random)};
  call.constant_inputs = 0b01010;
  if (random.below(2) == 0) {
    call.inputs[2] = values({s.filters}, random);
    call.constant_inputs |= 0b00100;
  }
  if (random.below(2) == 0) {
    call.inputs.push_back(values({s.filters}, random));
    call.constant_inputs |= 0b10000;
  }
  return call;
}

void set_ends(OpCall& call, Random& random) {
  constexpr const char* kNames[] = {"Swish", "HardSwish", "LeakyRelu", "Sigmoid"};
  for (const std::string prefix : {"", "inner_"}) {
    if (random.below(2) == 0) {
      call.attributes.set(prefix + "clamp", std::vector<float>{-0.5f, 1.5f});
    }
    if (random.below(2) == 0) continue;
    call.attributes.set(prefix + "activation", std::string(kNames[random.below(4)]));
    if (random.below(2) == 0) call.attributes.set(prefix + "alpha", 0.75f);
  }
}

OpCall random_call(Random& random) {
  const Sizes sizes{pick(random, 1, 2), pick(random, 1, 3 * block()), pick(random, 2, 6 * block()),
                    pick(random, 7, 20), pick(random, 7, 24)};
  Ints kernel, strides, dilations, begins, ends;
  for (int axis = 0; axis < 2; ++axis) {
    kernel.push_back(pick(random, 1, 5));
    strides.push_back(pick(random, 1, 3));
    dilations.push_back(pick(random, 1, 3) == 3 ? 2 : 1);
    // As wide as the window too, which then sees nothing of the image.
    begins.push_back(pick(random, 0, kernel.back() + 1));
    ends.push_back(pick(random, 0, kernel.back() + 1));
  }
  begins.insert(begins.end(), ends.begin(), ends.end());
  const Attributes windows = {{"strides", strides}, {"dilations", dilations}, {"pads", begins}};
  OpCall call = expanded(sizes, kernel, windows, random);
  set_ends(call, random);
  return call;
}

TEST(ExpandedConvTest, AsTheReferenceOnSeededRandomImages) {
  int num_run = 0;
  for (uint64_t seed = 1; num_run < 60; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const OpCall call = random_call(random);
    if (!infer_op(call).is_ok()) continue;  // the window is larger than the image
    ++num_run;
    compare_with_reference(call, 1e-4, 2e-4);
  }
}

// Several bands: rows beyond one's memory, and many columns.
TEST(ExpandedConvTest, BandsOfLargeImages) {
  Random random(3);
  const Attributes plain = {{"pads", Ints{1, 1, 1, 1}}};
  const Attributes halved = {{"pads", Ints{2, 2, 2, 2}}, {"strides", Ints{2, 2}}};
  compare_with_reference(expanded({1, 24, 72, 60, 56}, {3, 3}, plain, random), 1e-4, 2e-4);
  compare_with_reference(expanded({2, 16, 40, 75, 64}, {5, 5}, halved, random), 1e-4, 2e-4);
  compare_with_reference(expanded({1, 3, 20, 9, 3000}, {3, 3}, plain, random), 1e-4, 2e-4);
}

TEST(ExpandedConvTest, IsTwoConvolutions) {
  Random random(5);
  const Attributes windows = {{"pads", Ints{1, 1, 1, 1}}, {"strides", Ints{2, 1}}};
  OpCall call = expanded({1, 24, 80, 30, 31}, {3, 3}, windows, random);
  call.attributes.set("inner_clamp", std::vector<float>{0.0f, 6.0f});
  call.attributes.set("activation", std::string("Swish"));
  const auto conv = [&](TestValue x, const TestValue& w, const TestValue& bias,
                        Attributes attributes) {
    OpCall made;
    made.op = "BlockedConv";
    made.domain = "eddy";
    made.attributes = std::move(attributes);
    made.attributes.set("block", block());
    made.inputs = {std::move(x), w, bias};
    made.constant_inputs = bias.kind == TestValue::Kind::kOmitted ? 2 : 6;
    return run_one(made, KernelSet::kCpu);
  };
  Attributes outer = windows;
  outer.set("group", int64_t{80});
  outer.set("activation", std::string("Swish"));
  const TestTensor between = conv(call.inputs[0], call.inputs[1], call.inputs[2],
                                  {{"clamp", std::vector<float>{0.0f, 6.0f}}});
  const TestValue bias = call.inputs.size() > 4 ? call.inputs[4] : TestValue::omitted();
  const TestTensor expected = conv(between, call.inputs[3], bias, outer);
  EXPECT_TRUE(is_close(run_one(call, KernelSet::kCpu), expected, 1e-6, 1e-6));
}

TEST(ExpandedConvTest, WhatDoesNotFitIsRefused) {
  Random random(7);
  const OpCall call = expanded({1, 5, 8, 9, 9}, {3, 3}, {}, random);
  const auto message = [](const OpCall& wrong) {
    const auto types = infer_op(wrong);
    return types.is_ok() ? "ok" : types.status().to_string();
  };
  const auto with = [&](size_t input, const TestValue& value) {
    OpCall wrong = call;
    wrong.inputs.resize(std::max(wrong.inputs.size(), input + 1), TestValue::omitted());
    wrong.inputs[input] = value;
    return message(wrong);
  };
  EXPECT_EQ(message(call), "ok");
  EXPECT_THAT(with(0, values({1, 5, 9, 9}, random)), HasSubstr("5 dimensions"));
  EXPECT_THAT(with(1, values({8, 5, 3, 3}, random)), HasSubstr("windows of one element"));
  EXPECT_THAT(with(1, values({8, 50, 1, 1}, random)), HasSubstr("takes 50 channels"));
  EXPECT_THAT(with(2, values({7}, random)), HasSubstr("B of shape [7] must be [8]"));
  EXPECT_THAT(with(3, values({9, 1, 3, 3}, random)), HasSubstr("for each of 8 filters"));
  EXPECT_THAT(with(3, values({8, 2, 3, 3}, random)), HasSubstr("for each of 8 filters"));
  EXPECT_THAT(with(4, values({9}, random)), HasSubstr("depthwise_B of shape [9] must be [8]"));
  OpCall wrong = call;
  wrong.attributes.set("inner_clamp", std::vector<float>{1.0f});
  EXPECT_THAT(message(wrong), HasSubstr("inner_clamp must be the least value and the greatest"));
  wrong = call;
  wrong.attributes.set("inner_activation", std::string("Add"));
  EXPECT_THAT(message(wrong), HasSubstr("inner_activation must be an operator of one float"));
}

}  // namespace
}  // namespace eddy::testing
