// Claim: eddy.WinogradConv by weights that change rounds little against the sum of all terms'
// magnitudes, on seeded random images of windows of 3 x 3 and 5 x 5, and has the same bits whether
// shapes are known when it is bound or not, and in parts; where the transforms do not suit, it is
// Conv, bit for bit.
#include <gtest/gtest.h>

#include <algorithm>

#include "ops/cpu/blocked/plain_winograd_conv.h"
#include "tests/ops/cpu/two_step_units.h"

namespace eddy::testing {
namespace {

using cpu::PlainWinogradConv;

int64_t pick(Random& random, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(random.below(static_cast<uint64_t>(high - low + 1)));
}

// Of few channels or positions, too, which do not suit.
OpCall random_conv(Random& random) {
  const int64_t side = random.below(2) == 0 ? 3 : 5;
  const int64_t batch = pick(random, 1, 4), channels = pick(random, 8, 50);
  const int64_t filters = pick(random, 12, 110);
  const int64_t rows = pick(random, 12, 26), columns = pick(random, 12, 26);
  std::vector<int64_t> pads;
  for (int i = 0; i < 4; ++i) pads.push_back(pick(random, 0, side));
  const auto values = [&](const Dims& dims) {
    return TestTensor::random(ElementType::kFloat, dims, random, -1, 1);
  };
  OpCall call;
  call.op = "WinogradConv";
  call.domain = "eddy";
  call.attributes = {{"pads", pads}};
  call.inputs = {values({batch, channels, rows, columns}), values({filters, channels, side, side})};
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

TEST(WinogradConvTest, RoundsLittleOnSeededRandomImages) {
  int num_suited = 0;
  for (uint64_t seed = 1; num_suited < 10; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    ASSERT_LT(seed, 1000u) << "hardly any shape suits";
    Random random(seed);
    const OpCall call = random_conv(random);
    const Dims& w = call.inputs[1].tensor().dims();
    const TestTensor y = run_one(call, KernelSet::kCpu);
    if (!PlainWinogradConv::suits(shape_of(call, y.dims()))) {
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

TEST(WinogradConvTest, UnitsWriteApart) {
  int num_suited = 0;
  for (uint64_t seed = 61; num_suited < 10; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    ASSERT_LT(seed, 1000u) << "hardly any shape suits";
    Random random(seed);
    const OpCall call = random_conv(random);
    const TestTensor expected = run_one(call, KernelSet::kCpu);
    const ConvShape shape = shape_of(call, expected.dims());
    if (!PlainWinogradConv::suits(shape)) continue;
    ++num_suited;
    expect_units_write_apart(PlainWinogradConv(shape), call, expected);
  }
}

}  // namespace
}  // namespace eddy::testing
