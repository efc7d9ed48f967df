// Claim: eddy.ChannelsLastConv and the pools beside it are Conv, eddy.ConvRelu and ONNX's pools on
// images turned over, with the same bits, on random windows; what does not fit is refused in one
// line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "graph/base/random.h"
#include "tests/ops/testing/op_runner.h"

namespace eddy::testing {
namespace {

using ::testing::HasSubstr;
using Ints = std::vector<int64_t>;
constexpr uint64_t kSeed = 61;

class ChannelsLastTest : public ::testing::Test {
 protected:
  int64_t draw(int64_t first, int64_t last) {
    return first + static_cast<int64_t>(random_.below(static_cast<uint64_t>(last - first + 1)));
  }
  Attributes draw_window(const Dims& kernel) {
    Attributes attributes = {{"kernel_shape", Ints{kernel[2], kernel[3]}},
                             {"strides", Ints{draw(1, 3), draw(1, 3)}},
                             {"dilations", Ints{draw(1, 2), draw(1, 2)}}};
    if (draw(0, 3) == 0) {
      attributes.set("auto_pad", std::string("SAME_UPPER"));
    } else {
      attributes.set("pads", Ints{draw(0, 1), draw(0, 1), draw(0, 1), draw(0, 1)});
    }
    return attributes;
  }
  TestTensor random(ElementType element, const Dims& dims) {
    return TestTensor::random(element, dims, random_, -2, 2);
  }
  // The plain call by the operator of that name on its images turned over, and its result, turned
  // back, beside the plain one's.
  static void compare(const OpCall& plain, const std::string& op, int64_t relu = 0) {
    OpCall last = plain;
    last.op = op;
    last.domain = "eddy";
    if (relu != 0) last.attributes.set("relu", relu);
    for (TestValue& input : last.inputs) {
      const bool is_image =
          input.kind == TestValue::Kind::kTensor && input.tensor().view().rank == 4;
      if (is_image) input = turned(input.tensor(), {0, 2, 3, 1});
    }
    const auto expected = run_op(plain, KernelSet::kReference);
    const auto found = run_op(last, KernelSet::kReference);
    ASSERT_EQ(expected.is_ok(), found.is_ok())
        << expected.status().to_string() << ", " << found.status().to_string();
    if (!expected.is_ok()) return;
    EXPECT_TRUE(is_same_bits(turned((*found)[0].tensor(), {0, 3, 1, 2}), (*expected)[0].tensor()));
  }
  static TestTensor turned(const TestTensor& image, const Ints& perm) {
    OpCall call;
    call.op = "Transpose";
    call.inputs = {image};
    call.attributes.set("perm", perm);
    return run_one(call, KernelSet::kReference);
  }
  static std::string refusal(const std::string& op, std::vector<TestValue> inputs,
                             Attributes attributes = {}) {
    OpCall call;
    call.op = op;
    call.domain = "eddy";
    call.inputs = std::move(inputs);
    call.attributes = std::move(attributes);
    const auto result = run_op(call, KernelSet::kReference);
    return result.is_ok() ? "accepted" : result.status().message();
  }

  Random random_{kSeed};
};

TEST_F(ChannelsLastTest, RandomConvolutionsAreThePlainOnesTurnedOver) {
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE("round " + std::to_string(round) + ", seed " + std::to_string(kSeed));
    const ElementType element = round % 2 == 0 ? ElementType::kFloat : ElementType::kFloat16;
    const int64_t group = draw(1, 3), channels = draw(1, 3), filters = group * draw(1, 3);
    const Dims w = {filters, channels, draw(1, 3), draw(1, 3)};
    OpCall plain;
    plain.attributes = draw_window(w);
    plain.attributes.set("group", group);
    plain.inputs = {random(element, {draw(1, 2), group * channels, draw(5, 8), draw(5, 8)}),
                    random(element, w)};
    plain.inputs.push_back(draw(0, 1) == 0 ? TestValue::omitted()
                                           : TestValue(random(element, {filters})));
    plain.op = "Conv";
    if (draw(0, 1) == 0) {
      compare(plain, "ChannelsLastConv");
      continue;
    }
    plain.op = "ConvRelu";
    plain.domain = "eddy";
    const auto y = infer_op(plain);
    ASSERT_TRUE(y.is_ok()) << y.status().to_string();
    if (draw(0, 1) == 0) plain.inputs.push_back(random(element, (*y)[0].tensor.dims));
    compare(plain, "ChannelsLastConv", 1);
  }
}

TEST_F(ChannelsLastTest, RandomPoolsAreThePlainOnesTurnedOver) {
  for (int round = 0; round < 200; ++round) {
    SCOPED_TRACE("round " + std::to_string(round) + ", seed " + std::to_string(kSeed));
    const ElementType element = round % 2 == 0 ? ElementType::kFloat : ElementType::kBfloat16;
    OpCall plain;
    plain.op = round % 3 == 0 ? "MaxPool" : "AveragePool";
    plain.opset = 19;
    plain.attributes = draw_window({0, 0, draw(2, 3), draw(2, 3)});
    plain.attributes.set("ceil_mode", draw(0, 1));
    if (plain.op == "AveragePool") plain.attributes.set("count_include_pad", draw(0, 1));
    plain.inputs = {random(element, {draw(1, 2), draw(1, 4), draw(5, 8), draw(5, 8)})};
    compare(plain, "ChannelsLast" + plain.op);
  }
}

TEST_F(ChannelsLastTest, WhatDoesNotFitIsRefused) {
  const ElementType element = ElementType::kFloat;
  const TestTensor x = random(element, {1, 6, 6, 4}), w = random(element, {8, 3, 3, 4});
  EXPECT_THAT(refusal("ChannelsLastConv", {random(element, {1, 6, 6, 4, 1}), w}),
              HasSubstr("input 0 must have 4 dimensions, the last the channels', not [1,6,6,4,1]"));
  EXPECT_THAT(refusal("ChannelsLastConv", {x, random(element, {8, 4, 3, 3})}),
              HasSubstr("X has 4 channels but W takes 3"));
  EXPECT_THAT(refusal("ChannelsLastConv", {x, w, random(element, {7})}), HasSubstr("B"));
  EXPECT_THAT(refusal("ChannelsLastConv", {x, w, {}, random(element, {1, 8, 4, 4})}),
              HasSubstr("the addend must have the shape of the result"));
  EXPECT_THAT(
      refusal("ChannelsLastMaxPool", {random(element, {6, 6, 4})}, {{"kernel_shape", Ints{3, 3}}}),
      HasSubstr("must have 4 dimensions"));
  EXPECT_THAT(refusal("ChannelsLastAveragePool", {x},
                      {{"kernel_shape", Ints{3, 3}}, {"pads", Ints{3, 0, 0, 0}}}),
              HasSubstr("pad"));
}

}  // namespace
}  // namespace eddy::testing
