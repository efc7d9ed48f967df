// Claim: eddy.WinogradConv by weights that change rounds little against the sum of all terms'
// magnitudes, on seeded random images of windows, or positions, of 3 x 3 and 5 x 5, and has the
// same bits whether shapes are known when it is bound or not, and in parts; where the transforms do
// not suit, it is Conv, bit for bit.
#include <gtest/gtest.h>

#include <algorithm>

#include "ops/cpu/blocked/large_winograd_conv.h"
#include "ops/cpu/blocked/plain_winograd_conv.h"
#include "tests/ops/testing/op_runner.h"

namespace eddy::testing {
namespace {

using cpu::LargeWinogradConv;
using cpu::PlainWinogradConv;

int64_t pick(Random& random, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(random.below(static_cast<uint64_t>(high - low + 1)));
}

bool suits(const ConvShape& shape) {
  return PlainWinogradConv::suits(shape) || LargeWinogradConv::suits(shape);
}

// By small windows or large ones. Of few channels or positions, too, which do not suit.
OpCall random_conv(Random& random, bool is_large) {
  const int64_t side = random.below(2) == 0 ? 3 : 5;
  int64_t batch = pick(random, 1, 4), channels = pick(random, 8, 50);
  const int64_t filters = pick(random, 12, is_large ? 80 : 110);
  int64_t rows = pick(random, 12, 26), columns = pick(random, 12, 26);
  int64_t window_rows = side, window_columns = side;
  std::vector<int64_t> pads;
  for (int i = 0; i < 4; ++i) pads.push_back(pick(random, 0, side));
  if (is_large) {
    batch = pick(random, 6, 36), channels = pick(random, 1, 24);
    rows = pick(random, side, 16), columns = pick(random, side, 16);
    window_rows = std::max<int64_t>(rows + pads[0] + pads[2] - side + 1, 1);
    window_columns = std::max<int64_t>(columns + pads[1] + pads[3] - side + 1, 1);
  }
  const auto values = [&](const Dims& dims) {
    return TestTensor::random(ElementType::kFloat, dims, random, -1, 1);
  };
  OpCall call;
  call.op = "WinogradConv";
  call.domain = "eddy";
  call.attributes = {{"pads", pads}};
  call.inputs = {values({batch, channels, rows, columns}),
                 values({filters, channels, window_rows, window_columns})};
  if (random.below(2) == 0) call.inputs.push_back(values({filters}));
  return call;
}

ConvShape shape_of(const OpCall& call, const Dims& y) {
  ConvShape shape;
  const TensorView made{nullptr, y.data(), y.rank(), ElementType::kFloat};
  EXPECT_TRUE(make_conv_shape(call.attributes, call.inputs[0].tensor().view(),
                              call.inputs[1].tensor().view(), made, shape)
                  .is_ok());
  return shape;
}

class WinogradConvTest : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(SmallAndLargeWindows, WinogradConvTest, ::testing::Bool());

TEST_P(WinogradConvTest, RoundsLittleOnSeededRandomImages) {
  int num_suited = 0;
  for (uint64_t seed = 1; num_suited < 10; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    ASSERT_LT(seed, 1000u) << "hardly any shape suits";
    Random random(seed);
    const OpCall call = random_conv(random, GetParam());
    const Dims& w = call.inputs[1].tensor().dims();
    const TestTensor y = run_one(call, KernelSet::kCpu);
    if (!suits(shape_of(call, y.dims()))) {
      OpCall conv = call;
      conv.op = "Conv", conv.domain = "";
      EXPECT_TRUE(is_same_bits(y, run_one(conv, KernelSet::kCpu)));
      continue;
    }
    ++num_suited;
    const double magnitude = static_cast<double>(w[1] * w[2] * w[3]) * 0.25;
    compare_with_reference(call, 0, 1e-5 * magnitude + 1e-6);
  }
}

// Units of each step in any order, with memory that held something else.
TEST_P(WinogradConvTest, UnitsWriteApart) {
  int num_suited = 0;
  for (uint64_t seed = 61; num_suited < 10; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    ASSERT_LT(seed, 1000u) << "hardly any shape suits";
    Random random(seed);
    const OpCall call = random_conv(random, GetParam());
    const TestTensor expected = run_one(call, KernelSet::kCpu);
    const ConvShape shape = shape_of(call, expected.dims());
    if (!suits(shape)) continue;
    ++num_suited;
    const auto made_conv = cpu::TwoStepConv::create_or_null(shape, true);
    ASSERT_NE(made_conv, nullptr);
    const cpu::TwoStepConv& conv = *made_conv;
    const TestTensor shared(ElementType::kFloat, {static_cast<int64_t>(conv.shared_bytes() / 4)});
    const TestTensor made(ElementType::kFloat, expected.dims());
    const bool has_bias = call.inputs.size() > 2;
    const cpu::TwoStepConv::Call parts{
        call.inputs[0].tensor().view().as<float>(), call.inputs[1].tensor().view().as<float>(),
        has_bias ? call.inputs[2].tensor().view().as<float>() : nullptr,
        made.view().mutable_as<float>(), shared.view().data};
    for (uint32_t unit = conv.num_units(); unit-- > 0;) conv.prepare(parts, unit);
    for (uint32_t unit = conv.num_units(); unit-- > 0;) {
      const TestTensor scratch(ElementType::kFloat,
                               {static_cast<int64_t>(conv.scratch_bytes() / 4)});
      conv.run(parts, scratch.view().data, unit);
    }
    EXPECT_TRUE(is_same_bits(made, expected));
  }
}

}  // namespace
}  // namespace eddy::testing
