// Claim: on images whose channels lie in blocks, convolutions and pools compute what one element at
// a time computes: on seeded random geometries, by the vectors of every instruction set that this
// processor has, part by part in any order; and turning images over and back changes no bit.
// long: one set of random geometries serves convolutions, transforms and pools.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <span>

#include "ops/cpu/blocked/blocked_conv.h"
#include "ops/cpu/blocked/winograd_conv.h"
#include "ops/cpu/cpu_kernels.h"
#include "ops/reference/eddy/blocked_shape.h"
#include "tests/ops/testing/op_runner.h"

namespace eddy::testing {
namespace {

using cpu::BlockedConv;
using cpu::Isa;
using cpu::TileKernels;
using cpu::WinogradConv;
using Ints = std::vector<int64_t>;

int64_t pick(Random& random, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(random.below(static_cast<uint64_t>(high - low + 1)));
}

// Windows of a random geometry that fit images of `size`.
void set_windows(OpCall& call, Random& random, const Ints& kernel) {
  Ints strides, dilations, begins, ends;
  for (const int64_t taps : kernel) {
    strides.push_back(pick(random, 1, 3));
    dilations.push_back(pick(random, 1, 3) == 3 ? 2 : 1);
    const int64_t extent = dilations.back() * (taps - 1) + 1;
    begins.push_back(pick(random, 0, extent - 1));
    ends.push_back(pick(random, 0, extent - 1));
  }
  begins.insert(begins.end(), ends.begin(), ends.end());
  call.attributes.set("strides", strides);
  call.attributes.set("dilations", dilations);
  call.attributes.set("pads", begins);
}

// An image in blocks, with zeros beyond the last channel.
TestValue blocked_image(int64_t batch, int64_t channels, int64_t rows, int64_t columns,
                        int64_t block, Random& random) {
  OpCall call;
  call.op = "BlockChannels";
  call.domain = "eddy";
  call.attributes = {{"block", block}};
  call.inputs = {
      TestTensor::random(ElementType::kFloat, {batch, channels, rows, columns}, random, -1, 1)};
  return run_one(call, KernelSet::kReference);
}

struct ConvForm {
  int64_t channels, filters, group;
  int64_t x_block;
};

ConvForm random_form(int64_t block, Random& random) {
  switch (random.below(4)) {
    case 0: {  // the first layer of a network
      const int64_t channels = pick(random, 1, 7);
      return {channels, pick(random, 1, 3 * block), 1, random.below(2) == 0 ? 1 : channels};
    }
    case 1: {  // depthwise
      const int64_t channels = pick(random, 2, 3 * block);
      return {channels, channels, channels, block};
    }
    case 2:  // groups of whole blocks
      return {2 * block * pick(random, 1, 2), 2 * block, 2, block};
    default:
      return {pick(random, 1, 3 * block), pick(random, 1, 5 * block), 1, block};
  }
}

void set_activation(OpCall& call, Random& random) {
  constexpr const char* kNames[] = {"Swish", "HardSwish", "LeakyRelu",
                                    "Elu",   "Sigmoid",   "HardSigmoid"};
  const char* const name = kNames[random.below(std::size(kNames))];
  call.attributes.set("activation", std::string(name));
  if (random.below(2) == 0) call.attributes.set("alpha", 0.75f);
  if (random.below(2) == 0) call.attributes.set("beta", 0.25f);
}

// Of `x`, by weights that are constant, with or without what may stand beside and after the sums.
OpCall conv_of(TestValue x, Attributes attributes, const Dims& weights, float largest_weight,
               Random& random) {
  const auto values = [&](const Dims& dims, double largest = 1) {
    return TestTensor::random(ElementType::kFloat, dims, random, -largest, largest);
  };
  OpCall call;
  call.op = "BlockedConv";
  call.domain = "eddy";
  call.attributes = std::move(attributes);
  call.inputs = {std::move(x), values(weights, largest_weight)};
  const bool has_bias = random.below(2) == 0, has_addend = random.below(2) == 0;
  call.inputs.push_back(has_bias ? TestValue(values({weights[0]})) : TestValue::omitted());
  call.constant_inputs = has_bias ? 6 : 2;
  if (random.below(2) == 0) call.attributes.set("clamp", std::vector<float>{-0.5f, 1.5f});
  if (random.below(2) == 0) set_activation(call, random);
  if (!has_addend) return call;
  const auto types = infer_op(call);
  EXPECT_TRUE(types.is_ok()) << types.status().to_string();
  call.inputs.push_back(values((*types)[0].tensor.dims));
  if (random.below(2) == 0) call.in_place_input = 3;
  return call;
}

OpCall random_conv(int64_t block, Random& random) {
  const ConvForm form = random_form(block, random);
  const Ints kernel = {pick(random, 1, 5), pick(random, 1, 5)};
  OpCall windows;
  set_windows(windows, random, kernel);
  Attributes attributes = windows.attributes;
  attributes.set("block", block);
  attributes.set("group", form.group);
  if (form.x_block != block) attributes.set("x_block", form.x_block);
  const int64_t rows = pick(random, 7, 20), columns = pick(random, 7, 24);
  const int64_t batch = pick(random, 1, 2);
  const TestValue x = blocked_image(batch, form.channels, rows, columns, form.x_block, random);
  return conv_of(x, attributes, {form.filters, form.channels / form.group, kernel[0], kernel[1]}, 1,
                 random);
}

// Of windows that Winograd's transforms are made for; sums are of the size of 1. The reference
// takes a second for the largest.
OpCall random_winograd_conv(int64_t block, Random& random) {
  constexpr int64_t kMostWork = int64_t{1} << 26;
  constexpr int64_t kWhole[] = {16, 48, 64, 80, 112, 128, 160, 176, 192};
  const auto pick_channels = [&] {
    return random.below(2) == 0 ? pick(random, 16, 200) : kWhole[random.below(std::size(kWhole))];
  };
  int64_t batch, channels, filters, rows, columns;
  do {
    batch = pick(random, 1, 3);
    channels = pick_channels();
    filters = pick_channels();
    rows = pick(random, 6, 30);
    columns = pick(random, 6, 30);
  } while (batch * channels * filters * rows * columns * 9 > kMostWork);
  const auto pad = [&] { return pick(random, 0, 2); };
  const Attributes attributes = {{"block", block}, {"pads", Ints{pad(), pad(), pad(), pad()}}};
  const TestValue x = blocked_image(batch, channels, rows, columns, block, random);
  OpCall call = conv_of(x, attributes, {filters, channels, 3, 3},
                        1 / std::sqrt(static_cast<float>(channels)), random);
  if (random.below(3) == 0) {  // a Relu
    call.attributes.set("clamp", std::vector<float>{0, std::numeric_limits<float>::max()});
  }
  return call;
}

// By its transforms sums round otherwise.
bool is_for_winograd(const OpCall& call) {
  const int64_t block = channels_in_block();
  if (call.attributes.get_int("x_block", block) != block) return false;
  const auto types = infer_op(call);
  EXPECT_TRUE(types.is_ok()) << types.status().to_string();
  const Dims y_dims = (*types)[0].tensor.dims;
  const TensorView y{nullptr, y_dims.data(), y_dims.rank(), ElementType::kFloat};
  ConvShape shape;
  EXPECT_TRUE(make_blocked_conv_shape(call.attributes, call.inputs[0].tensor().view(),
                                      call.inputs[1].tensor().view(), y, shape)
                  .is_ok());
  return WinogradConv::best_inputs(shape) > 0;
}

// Windows of one element with strides, whose positions are gathered in scratch memory.
bool is_sparse(const OpCall& call) {
  const Dims& w = call.inputs[1].tensor().dims();
  const auto is_all = [&](const char* name, int64_t n) {
    return std::ranges::all_of(call.attributes.get_ints(name), [n](int64_t i) { return i == n; });
  };
  const auto pads = call.attributes.get_ints("pads");
  const bool is_padded = pads.size() == 4 && (pads[0] != 0 || pads[1] != 0);
  return w[2] == 1 && w[3] == 1 && !is_padded && !is_all("strides", 1);
}

// Returns whether its kernel takes Winograd's transforms.
bool check_conv(const OpCall& call) {
  const bool is_winograd = is_for_winograd(call);
  const double bound = is_winograd ? 1e-4 : 1e-5;
  compare_with_reference(call, bound, bound);
  const auto kernel = bind_op(call, KernelSet::kCpu);
  EXPECT_TRUE(kernel.is_ok()) << kernel.status().to_string();
  const bool is_depthwise =
      call.inputs[1].tensor().dims()[1] == 1 && call.attributes.get_int("group", 1) > 1;
  if (!is_depthwise) {
    EXPECT_EQ(kernel.is_ok() && kernel->scratch_bytes > 0, is_winograd || is_sparse(call));
  }
  return is_winograd;
}

TEST(BlockedTest, ConvolutionsAgreeOnSeededRandomGeometries) {
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    check_conv(random_conv(channels_in_block(), random));
  }
}

TEST(BlockedTest, ConvolutionsByWinogradsTransformsAgreeOnSeededRandomGeometries) {
  constexpr int kSeeds = 40;
  int num_winograd = 0;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    num_winograd += check_conv(random_winograd_conv(channels_in_block(), random));
  }
  EXPECT_GT(num_winograd, kSeeds * 3 / 4);
}

// Beside the image there is nothing, not even a zero: an infinite weight makes no NaN of it.
TEST(BlockedTest, WeightsBesideTheImageMayBeAnything) {
  const int64_t block = channels_in_block();
  for (const int64_t kernel : {3, 5, 7}) {
    for (const int64_t stride : {1, 2, 3}) {
      for (const int64_t columns : {1, 7, 12, 40}) {
        SCOPED_TRACE(std::to_string(kernel) + " wide, stride " + std::to_string(stride) + ", " +
                     std::to_string(columns) + " columns");
        Random random(5);
        OpCall call;
        call.op = "BlockedConv";
        call.domain = "eddy";
        const Ints pads(4, kernel / 2);
        call.attributes = {
            {"block", block}, {"group", block}, {"pads", pads}, {"strides", Ints{stride, stride}}};
        TestTensor weights =
            TestTensor::random(ElementType::kFloat, {block, 1, kernel, kernel}, random, -1, 1);
        auto* const w = weights.view().mutable_as<float>();
        for (int64_t c = 0; c < block; ++c) {
          w[c * kernel * kernel] = std::numeric_limits<float>::infinity();
        }
        call.inputs = {blocked_image(1, block, 9, columns, block, random), weights};
        call.constant_inputs = 2;
        compare_with_reference(call, 1e-5, 1e-5);
      }
    }
  }
}

std::vector<const TileKernels*> all_sets() {
  std::vector<const TileKernels*> sets;
  for (const Isa isa : {Isa::kBaseline, Isa::kAvx2, Isa::kAvx512}) {
    if (const TileKernels* const set = cpu::tile_kernels_or_null(isa)) sets.push_back(set);
  }
  return sets;
}

// What `run` makes of the parts of a call, last ones first. A part finds markers everywhere and not
// what others made; where it leaves one, it has not written.
template <typename Run>
TestTensor run_parts_apart(const Dims& dims, uint32_t num_parts, const Run& run) {
  constexpr uint32_t kMarker = 0xffc0dead;  // no number
  TestTensor made(ElementType::kFloat, dims), part_made(ElementType::kFloat, dims);
  const auto count = static_cast<size_t>(made.count());
  const std::span to(made.view().mutable_as<uint32_t>(), count);
  const std::span from(part_made.view().mutable_as<uint32_t>(), count);
  std::vector<uint32_t> num_writers(count);
  for (uint32_t part = num_parts; part-- > 0;) {
    std::ranges::fill(from, kMarker);
    run(part, part_made.view().mutable_as<float>());
    for (size_t i = 0; i < count; ++i) {
      if (from[i] == kMarker) continue;
      to[i] = from[i];
      ++num_writers[i];
    }
  }
  const auto wrong = std::ranges::find_if(num_writers, [](uint32_t n) { return n != 1; });
  EXPECT_TRUE(wrong == num_writers.end())
      << *wrong << " of " << num_parts << " parts write element " << wrong - num_writers.begin();
  return made;
}

TEST(BlockedTest, EverySetsPartsWriteApart) {
  for (const TileKernels* tiles : all_sets()) {
    for (uint64_t seed = 1; seed <= 30; ++seed) {
      SCOPED_TRACE(std::string(tiles->name) + " seed " + std::to_string(seed));
      Random random(seed);
      const int64_t channels = pick(random, 1, 70), filters = pick(random, 60, 150);
      OpCall call;
      call.op = "BlockedConv";
      call.domain = "eddy";
      call.attributes = {{"block", int64_t{tiles->width}}, {"pads", Ints{1, 1, 1, 1}}};
      const int64_t rows = pick(random, 3, 40);
      call.inputs = {
          blocked_image(1, channels, rows, pick(random, 3, 40), tiles->width, random),
          TestTensor::random(ElementType::kFloat, {filters, channels, 3, 3}, random, -1, 1)};
      const TestTensor expected = run_one(call, KernelSet::kReference);
      const TensorView x = call.inputs[0].tensor().view(), w = call.inputs[1].tensor().view();
      ConvShape shape;
      ASSERT_TRUE(make_blocked_conv_shape(call.attributes, x, w, expected.view(), shape).is_ok());
      const BlockedConv conv(w, nullptr, 1, tiles->width, *tiles);
      const auto run = [&](uint32_t part, float* y) {
        conv.run_tile({.shape = &shape, .x = x.as<float>(), .y = y}, part);
      };
      const TestTensor made = run_parts_apart(expected.dims(), conv.count_tiles(shape), run);
      EXPECT_TRUE(is_close(made, expected, 1e-4, 1e-4));
    }
  }
}

// Sums of windows of 3 x 3 in double, many at once, as they are most of the test's work: those of
// the filters in one block of the result.
class PlainSums {
 public:
  PlainSums(const TensorView& x, const TensorView& w, const float* bias, int64_t rows_before,
            int64_t columns_before)
      : x_(x),
        block_(x.dims[4]),
        filters_(w.dims[0]),
        channels_(w.dims[1]),
        before_{rows_before, columns_before},
        bias_(bias) {
    const int64_t blocks = (filters_ + block_ - 1) / block_;
    weights_.resize(static_cast<size_t>(blocks * kTaps * channels_ * block_));
    for (int64_t f = 0; f < filters_; ++f) {
      for (int64_t c = 0; c < channels_; ++c) {
        for (int64_t tap = 0; tap < kTaps; ++tap) {
          const int64_t at = ((f / block_ * kTaps + tap) * channels_ + c) * block_ + f % block_;
          weights_[static_cast<size_t>(at)] = w.as<float>()[(f * channels_ + c) * kTaps + tap];
        }
      }
    }
  }

  // Of filters [block * i, ...) at one place of the result; 0 beyond the last filter.
  void at(int64_t n, int64_t i, int64_t row, int64_t column, std::vector<double>& sums) const {
    sums.assign(static_cast<size_t>(block_), 0);
    for (int64_t f = i * block_; f < std::min(filters_, (i + 1) * block_); ++f) {
      sums[static_cast<size_t>(f % block_)] = bias_[f];
    }
    for (int64_t tap = 0; tap < kTaps; ++tap) {
      const int64_t y = row + tap / 3 - before_[0], z = column + tap % 3 - before_[1];
      if (y < 0 || y >= x_.dims[2] || z < 0 || z >= x_.dims[3]) continue;
      const double* w = weights_.data() + (i * kTaps + tap) * channels_ * block_;
      for (int64_t c = 0; c < channels_; ++c) {
        const int64_t plane = n * x_.dims[1] + c / block_;
        const double value =
            x_.as<float>()[((plane * x_.dims[2] + y) * x_.dims[3] + z) * block_ + c % block_];
        for (double& sum : sums) sum += value * *w++;
      }
    }
  }

 private:
  static constexpr int64_t kTaps = 9;
  const TensorView x_;
  const int64_t block_, filters_, channels_;
  const int64_t before_[2];
  const float* const bias_;
  std::vector<double> weights_;  // [block][tap][channel][filter of the block]
};

// The result of `sums`, with and without an addend, bounded.
struct Convolved {
  TestTensor plain, added;

  Convolved(const PlainSums& sums, const TestTensor& addend, float least, float greatest)
      : plain(ElementType::kFloat, addend.dims()), added(ElementType::kFloat, addend.dims()) {
    const Dims& dims = addend.dims();
    float* to = plain.view().mutable_as<float>();
    float* to_added = added.view().mutable_as<float>();
    const float* more = addend.view().as<float>();
    std::vector<double> values;
    for (int64_t line = 0; line < dims[0] * dims[1] * dims[2]; ++line) {
      const int64_t plane = line / dims[2];
      for (int64_t column = 0; column < dims[3]; ++column) {
        sums.at(plane / dims[1], plane % dims[1], line % dims[2], column, values);
        for (const double value : values) {
          *to++ = std::clamp(static_cast<float>(value), least, greatest);
          *to_added++ = std::clamp(static_cast<float>(value + *more++), least, greatest);
        }
      }
    }
  }
};

// Against the sum of all terms' magnitudes, which bounds what rounding can do.
TEST(BlockedTest, WinogradsTransformsRoundLittleOnEverySet) {
  for (const TileKernels* tiles : all_sets()) {
    for (uint64_t seed = 1; seed <= 25; ++seed) {
      SCOPED_TRACE(std::string(tiles->name) + " seed " + std::to_string(seed));
      Random random(seed);
      const int64_t channels = pick(random, tiles->width, 90), filters = pick(random, 1, 150);
      const int64_t rows = pick(random, 17, 33), columns = pick(random, 15, 40);
      const int64_t before = pick(random, 0, 2), after = pick(random, 0, 2);
      const Attributes attributes = {{"block", int64_t{tiles->width}},
                                     {"pads", Ints{before, after, after, before}}};
      const TestValue image = blocked_image(2, channels, rows, columns, tiles->width, random);
      const TestTensor weights =
          TestTensor::random(ElementType::kFloat, {filters, channels, 3, 3}, random, -1, 1);
      const TestTensor bias = TestTensor::random(ElementType::kFloat, {filters}, random, -1, 1);
      const TestTensor addend = TestTensor::random(
          ElementType::kFloat,
          {2, (filters + tiles->width - 1) / tiles->width, rows + before + after - 2,
           columns + before + after - 2, tiles->width},
          random, -1, 1);
      const TensorView x = image.tensor().view(), w = weights.view();
      const std::vector<float> clamp = {-1.0f, 40.0f};
      const Convolved expected(PlainSums(x, w, bias.view().as<float>(), before, after), addend,
                               clamp[0], clamp[1]);
      ConvShape shape;
      ASSERT_TRUE(make_blocked_conv_shape(attributes, x, w, addend.view(), shape).is_ok());
      const int64_t inputs = seed % 2 == 0 ? 4 : 6;
      ASSERT_TRUE(WinogradConv::suits(shape, inputs, *tiles));
      const WinogradConv conv(w, bias.view().as<float>(), inputs, *tiles);
      std::vector<float> scratch(conv.scratch_bytes() / sizeof(float) + 16);
      void* at = scratch.data();
      size_t room = scratch.size() * sizeof(float);
      ASSERT_NE(std::align(64, conv.scratch_bytes(), at, room), nullptr);
      for (const bool adds : {false, true}) {
        const float* const added_or_null = adds ? addend.view().as<float>() : nullptr;
        const auto run = [&](uint32_t part, float* y) {
          std::ranges::fill(scratch, std::numeric_limits<float>::quiet_NaN());
          conv.run_tile({&shape, x.as<float>(), y, added_or_null, clamp.data()}, part, at);
        };
        const TestTensor made = run_parts_apart(addend.dims(), conv.count_tiles(shape), run);
        const double magnitude = static_cast<double>(channels) * 9 * 0.25;
        EXPECT_TRUE(
            is_close(made, adds ? expected.added : expected.plain, 0, 1e-5 * magnitude + 1e-6));
      }
    }
  }
}

// The sizes for which windows rounded up are one on each axis, and longest beside the image.
Ints shortest_image(const OpCall& call, const Ints& kernel) {
  const auto strides = call.attributes.get_ints("strides");
  const auto dilations = call.attributes.get_ints("dilations");
  const auto pads = call.attributes.get_ints("pads");
  Ints sizes;
  for (size_t i = 0; i < kernel.size(); ++i) {
    const int64_t extent = dilations[i] * (kernel[i] - 1) + 1;
    sizes.push_back(std::max<int64_t>(extent - pads[i] - pads[i + 2] - strides[i] + 1, 1));
  }
  return sizes;
}

TEST(BlockedTest, PoolsAgreeOnSeededRandomGeometries) {
  const int64_t block = channels_in_block();
  for (uint64_t seed = 1; seed <= 120; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    OpCall call;
    call.op = "BlockedPool";
    call.domain = "eddy";
    Ints sizes = {pick(random, 8, 20), pick(random, 8, 20)};
    if (seed % 5 == 0) {
      call.attributes = {{"global", int64_t{1}}};
    } else {
      const Ints kernel = {pick(random, 1, 3), pick(random, 1, 5)};
      set_windows(call, random, kernel);
      call.attributes.set("kernel_shape", kernel);
      const int64_t ceil_mode = pick(random, 0, 1);
      call.attributes.set("ceil_mode", ceil_mode);
      // Windows that are longer than the padded image, by less than a stride.
      if (ceil_mode == 1 && seed % 3 == 0) sizes = shortest_image(call, kernel);
      call.attributes.set("count_include_pad", pick(random, 0, 1));
    }
    call.attributes.set("block", block);
    call.attributes.set("kind", std::string(seed % 2 ? "max" : "average"));
    call.inputs = {blocked_image(pick(random, 1, 2), pick(random, 1, 3 * block), sizes[0], sizes[1],
                                 block, random)};
    compare_with_reference(call, 1e-5, 1e-6);
  }
}

TEST(BlockedTest, ANotANumberIsTheLargestWhereverItStands) {
  const int64_t block = channels_in_block();
  for (int64_t place = 0; place < 4; ++place) {
    std::vector<float> values(static_cast<size_t>(4 * block), 1.0f);
    values[static_cast<size_t>(place * block)] = std::numeric_limits<float>::quiet_NaN();
    OpCall call;
    call.op = "BlockedPool";
    call.domain = "eddy";
    call.attributes = {{"block", block}, {"kind", std::string("max")}, {"global", int64_t{1}}};
    call.inputs = {TestTensor::of<float>({1, 1, 2, 2, block}, values)};
    const TestTensor made = run_one(call, KernelSet::kCpu);
    EXPECT_TRUE(std::isnan(made.view().as<float>()[0])) << place;
    EXPECT_EQ(made.view().as<float>()[1], 1.0f) << place;
  }
}

TEST(BlockedTest, TurningOverAndBackKeepsEveryBit) {
  const int64_t block = channels_in_block();
  for (uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const int64_t channels = pick(random, 1, 3 * block);
    OpCall call;
    call.op = "BlockChannels";
    call.domain = "eddy";
    call.attributes = {{"block", block}};
    call.inputs = {TestTensor::random(
        ElementType::kFloat, {pick(random, 0, 2), channels, pick(random, 1, 9), pick(random, 0, 9)},
        random, -1, 1)};
    compare_with_reference(call);
    OpCall back;
    back.op = "UnblockChannels";
    back.domain = "eddy";
    back.attributes = {{"channels", channels}};
    back.inputs = {run_one(call, KernelSet::kCpu)};
    compare_with_reference(back);
    EXPECT_TRUE(is_same_bits(run_one(back, KernelSet::kCpu), call.inputs[0].tensor()));
  }
}

}  // namespace
}  // namespace eddy::testing
