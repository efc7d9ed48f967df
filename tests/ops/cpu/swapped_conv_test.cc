// Claim: eddy.SwappedConv gives the reference's values on seeded random images, windows, strides,
// dilations and pads, of one element and of none too, rounding little against the sum of all terms'
// magnitudes where Winograd's transforms suit, with the same bits whether shapes are known when it
// is bound or not, and in units of any order.
#include <gtest/gtest.h>

#include <algorithm>

#include "ops/cpu/blocked/swapped_conv.h"
#include "ops/cpu/blocked/swapped_winograd_conv.h"
#include "tests/ops/cpu/two_step_units.h"

namespace eddy::testing {
namespace {

int64_t pick(Random& random, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(random.below(static_cast<uint64_t>(high - low + 1)));
}

OpCall swapped(const Dims& x, const Dims& w, Attributes attributes, Random& random) {
  const auto values = [&](const Dims& dims) {
    return TestTensor::random(ElementType::kFloat, dims, random, -1, 1);
  };
  OpCall call;
  call.op = "SwappedConv";
  call.domain = "eddy";
  call.attributes = std::move(attributes);
  call.inputs = {values(x), values(w)};
  return call;
}

// Any that has results, as the adjoint of weights of windows of `taps`.
OpCall random_call(Random& random) {
  const int64_t samples = pick(random, 1, 12), images = pick(random, 1, 30);
  const int64_t filters = pick(random, 1, 90);
  Dims x = {samples, images}, w = {samples, filters};
  std::vector<int64_t> strides, dilations, pads, ends;
  for (int i = 0; i < 2; ++i) {
    const int64_t taps = pick(random, 1, 6);
    const int64_t window = pick(random, 1, 20);
    const int64_t stride = pick(random, 1, 2), dilation = pick(random, 1, 2);
    const int64_t begin = pick(random, 0, 2), end = pick(random, 0, 2);
    const int64_t reach = (taps - 1) * stride + (window - 1) * dilation + 1;
    x.push_back(std::max<int64_t>(reach - begin - end + pick(random, 0, stride - 1), 1));
    w.push_back(std::min(window, (x[i + 2] + begin + end - 1) / dilation + 1));
    strides.push_back(stride), dilations.push_back(dilation);
    pads.push_back(begin), ends.push_back(end);
  }
  pads.insert(pads.end(), ends.begin(), ends.end());
  return swapped(x, w, {{"strides", strides}, {"dilations", dilations}, {"pads", pads}}, random);
}

// Sides that there are transforms for, and enough channels.
OpCall random_winograd_call(Random& random) {
  const int64_t side = random.below(2) == 0 ? 3 : 5;
  const int64_t samples = pick(random, 30, 60), images = pick(random, 9, 33);
  const int64_t filters = pick(random, 40, 80), rows = pick(random, 7, 15);
  const int64_t columns = pick(random, 7, 15), pad = pick(random, 0, side / 2);
  return swapped({samples, images, rows, columns},
                 {samples, filters, rows + 2 * pad - side + 1, columns + 2 * pad - side + 1},
                 {{"pads", std::vector<int64_t>(4, pad)}}, random);
}

ConvShape shape_of(const OpCall& call, const Dims& y) {
  ConvShape shape;
  const TensorView made{nullptr, y.data(), y.rank(), ElementType::kFloat};
  EXPECT_TRUE(make_swapped_conv_shape(call.attributes, call.inputs[0].tensor().view(),
                                      call.inputs[1].tensor().view(), made, shape)
                  .is_ok());
  return shape;
}

// Of random calls, those of `Conv`; the seed is printed where it fails.
template <typename Conv, typename Check>
void for_seeds(uint64_t first, OpCall (*make)(Random&), const Check& check) {
  int num_suited = 0;
  for (uint64_t seed = first; num_suited < 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    ASSERT_LT(seed, first + 1000) << "hardly any shape suits";
    Random random(seed);
    const OpCall call = make(random);
    const TestTensor y = run_one(call, KernelSet::kCpu);
    const ConvShape shape = shape_of(call, y.dims());
    if (!Conv::suits(shape)) continue;
    ++num_suited;
    check(call, y, shape);
  }
}

double largest_sum(const OpCall& call) {
  const Dims& w = call.inputs[1].tensor().dims();
  return static_cast<double>(w[0] * w[2] * w[3]) * 0.25;
}

TEST(SwappedConvTest, AsTheReferenceOnSeededRandomImages) {
  for_seeds<cpu::SwappedConv>(1, random_call, [](const OpCall& call, const TestTensor&, auto&) {
    compare_with_reference(call, 0, 1e-6 * largest_sum(call) + 1e-6);
  });
}

TEST(SwappedConvTest, UnitsWriteApart) {
  for_seeds<cpu::SwappedConv>(100, random_call,
                              [](const OpCall& call, const TestTensor& y, const ConvShape& shape) {
                                if (cpu::SwappedWinogradConv::suits(shape)) return;
                                expect_units_write_apart(cpu::SwappedConv(shape), call, y);
                              });
}

TEST(SwappedConvTest, TransformsRoundLittle) {
  for_seeds<cpu::SwappedWinogradConv>(
      200, random_winograd_call, [](const OpCall& call, const TestTensor&, auto&) {
        compare_with_reference(call, 0, 1e-5 * largest_sum(call) + 1e-6);
      });
}

TEST(SwappedConvTest, UnitsOfTransformsWriteApart) {
  for_seeds<cpu::SwappedWinogradConv>(
      300, random_winograd_call,
      [](const OpCall& call, const TestTensor& y, const ConvShape& shape) {
        expect_units_write_apart(cpu::SwappedWinogradConv(shape), call, y);
      });
}

// Windows in several blocks: long rows, many rows, whole images; several panels.
TEST(SwappedConvTest, LargeImagesAndManyFilters) {
  Random random(7);
  const auto check = [&](const Dims& x, const Dims& w, int64_t pad) {
    const OpCall call = swapped(x, w, {{"pads", std::vector<int64_t>(4, pad)}}, random);
    compare_with_reference(call, 0, 1e-6 * largest_sum(call) + 1e-6);
  };
  check({2, 3, 3, 1300}, {2, 70, 3, 1299}, 0);
  check({2, 14, 60, 50}, {2, 40, 60, 50}, 1);
  check({9, 20, 30, 28}, {9, 150, 30, 28}, 0);
}

TEST(SwappedConvTest, NoImagesNoFiltersAndNoSamples) {
  Random random(8);
  for (const auto& [x, w] : {std::pair{Dims{3, 0, 5, 5}, Dims{3, 4, 3, 3}},
                             {Dims{3, 2, 5, 5}, Dims{3, 0, 3, 3}},
                             {Dims{0, 2, 5, 5}, Dims{0, 4, 3, 3}}}) {
    compare_with_reference(swapped(x, w, {}, random));
  }
}

TEST(SwappedConvTest, GroupsAndDoublesAreTheReferences) {
  Random random(9);
  compare_with_reference(swapped({4, 3, 6, 6}, {2, 6, 5, 5}, {{"group", int64_t{2}}}, random), 1e-5,
                         1e-5);
}

}  // namespace
}  // namespace eddy::testing
