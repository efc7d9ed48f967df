// Conv and ConvTranspose compute what the plain loops compute: on seeded random geometries of one
// to three axes with groups, strides, dilations and paddings, whichever library does the work.
#include <array>

#include <gtest/gtest.h>

#include "ops/cpu/blocked/two_step_conv.h"
#include "ops/cpu/onednn/conv.h"
#include "ops/cpu/tile_conv.h"
#include "tests/ops/testing/op_runner.h"

namespace eddy::testing {
namespace {

constexpr double kRelative = 1e-5, kAbsolute = 1e-4;

struct Geometry {
  Dims x, w;
  Attributes attributes;
};

class HeapScratch : public Scratch {
 public:
  void* reserve(size_t size_bytes) override {
    memory_.resize(size_bytes + 64);
    const auto address = reinterpret_cast<uintptr_t>(memory_.data());
    return memory_.data() + (64 - address % 64) % 64;
  }

 private:
  std::vector<std::byte> memory_;
};

int64_t pick(Random& random, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(random.below(static_cast<uint64_t>(high - low + 1)));
}

// Kernels that always fit: the input is at least as long as the window.
Geometry random_geometry(Random& random, bool is_transposed) {
  const int rank = static_cast<int>(pick(random, 1, 3));
  const int64_t group = pick(random, 0, 2) == 0 ? pick(random, 2, 4) : 1;
  const int64_t channels = group * pick(random, 1, 9), filters = group * pick(random, 1, 40);
  Geometry g{{pick(random, 1, 3), channels},
             {is_transposed ? channels : filters, (is_transposed ? filters : channels) / group},
             {}};
  std::vector<int64_t> strides, dilations, pads;
  for (int i = 0; i < rank; ++i) {
    const int64_t kernel = pick(random, 1, 4);
    dilations.push_back(pick(random, 1, 2));
    strides.push_back(pick(random, 1, 3));
    const int64_t extent = dilations.back() * (kernel - 1) + 1;
    g.x.push_back(is_transposed ? pick(random, 2, 7) : extent + pick(random, 0, 9));
    g.w.push_back(kernel);
  }
  for (int i = 0; i < 2 * rank; ++i) pads.push_back(is_transposed ? 0 : pick(random, 0, 3));
  g.attributes = {{"group", group}, {"strides", strides}, {"dilations", dilations}};
  if (pick(random, 0, 3) == 0) {
    const char* mode = pick(random, 0, 1) ? "SAME_UPPER" : "SAME_LOWER";
    g.attributes.set("auto_pad", std::string(mode));
  } else {
    g.attributes.set("pads", pads);
  }
  return g;
}

void compare(const std::string& op, const Geometry& g, bool has_bias, uint64_t seed) {
  SCOPED_TRACE(op + " seed " + std::to_string(seed) + ": " + to_string(g.x) + " by " +
               to_string(g.w));
  Random random(seed);
  OpCall call;
  call.op = op;
  call.attributes = g.attributes;
  call.inputs = {TestTensor::random(ElementType::kFloat, g.x, random, -1, 1),
                 TestTensor::random(ElementType::kFloat, g.w, random, -1, 1)};
  if (has_bias) {
    const int64_t filters = op == "Conv" ? g.w[0] : g.w[1] * g.attributes.get_int("group", 1);
    call.inputs.push_back(TestTensor::random(ElementType::kFloat, {filters}, random, -1, 1));
  }
  for (uint64_t constants : {0, 2}) {
    call.constant_inputs = constants;
    compare_with_reference(call, kRelative, kAbsolute);
  }
}

TEST(ConvTest, AgreesOnSeededRandomGeometries) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    const Geometry g = random_geometry(random, false);
    compare("Conv", g, seed % 2 == 0, seed);
  }
}

// By windows of one element in groups, which are products; by others; with an addend and without.
TEST(ConvTest, AReluAtLastAgreesOnSeededRandomGeometries) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    Geometry g = random_geometry(random, false);
    if (seed % 2 == 0) {
      const int64_t group = pick(random, 2, 4), channels = pick(random, 2, 20);
      g.x = {pick(random, 1, 2), group * channels, pick(random, 5, 30), pick(random, 7, 40)};
      g.w = {group * pick(random, 1, 40), channels, 1, 1};
      g.attributes = {{"group", group}};
    }
    SCOPED_TRACE("seed " + std::to_string(seed) + ": " + to_string(g.x) + " by " + to_string(g.w));
    OpCall call;
    call.op = "ConvRelu";
    call.domain = "eddy";
    call.attributes = g.attributes;
    call.inputs = {TestTensor::random(ElementType::kFloat, g.x, random, -1, 1),
                   TestTensor::random(ElementType::kFloat, g.w, random, -1, 1),
                   TestTensor::random(ElementType::kFloat, {g.w[0]}, random, -1, 1)};
    const auto types = infer_op(call);
    ASSERT_TRUE(types.is_ok()) << types.status().to_string();
    if (seed % 3 != 0) {
      call.inputs.push_back(
          TestTensor::random(ElementType::kFloat, (*types)[0].tensor.dims, random, -1, 1));
    }
    for (uint64_t constants : {0, 6}) {
      call.constant_inputs = constants;
      compare_with_reference(call, kRelative, kAbsolute);
    }
  }
}

// What fold_into_products promises.
TEST(ConvTest, AReluAtLastHasTheBitsOfThreeNodes) {
  Random random(3);
  const auto values = [&](const Dims& dims) {
    return TestTensor::random(ElementType::kFloat, dims, random, -1, 1);
  };
  OpCall conv;
  conv.op = "Conv";
  conv.attributes = {{"group", int64_t{4}}};
  conv.inputs = {values({2, 64, 20, 20}), values({96, 16, 1, 1}), values({96})};
  conv.constant_inputs = 6;
  const TestTensor addend = values({2, 96, 20, 20});
  const auto after = [](const char* op, std::vector<TestValue> inputs) {
    OpCall call;
    call.op = op;
    call.inputs = std::move(inputs);
    return run_one(call, KernelSet::kCpu);
  };
  const TestTensor sum = after("Add", {run_one(conv, KernelSet::kCpu), addend});
  OpCall at_once = conv;
  at_once.op = "ConvRelu";
  at_once.domain = "eddy";
  at_once.inputs.push_back(addend);
  EXPECT_TRUE(is_same_bits(run_one(at_once, KernelSet::kCpu), after("Relu", {sum})));
}

struct ImageRanges {
  int64_t most_channels, least_kernel, most_kernel, most_beyond, most_pad;
};

// Of two axes, one group and filters for a vector; the image is longer than the window by some.
Geometry random_image(Random& random, const ImageRanges& ranges) {
  Geometry g{
      {pick(random, 1, 5), pick(random, 1, ranges.most_channels)}, {pick(random, 8, 70), 0}, {}};
  g.w[1] = g.x[1];
  std::vector<int64_t> strides, dilations, pads;
  for (int axis = 0; axis < 2; ++axis) {
    const int64_t kernel = pick(random, ranges.least_kernel, ranges.most_kernel);
    dilations.push_back(pick(random, 1, 2));
    strides.push_back(pick(random, 1, 2));
    g.w.push_back(kernel);
    g.x.push_back(dilations.back() * (kernel - 1) + pick(random, 1, ranges.most_beyond));
  }
  for (int i = 0; i < 4; ++i) pads.push_back(pick(random, 0, ranges.most_pad));
  g.attributes = {{"strides", strides}, {"dilations", dilations}, {"pads", pads}};
  return g;
}

bool is_two_step(const Geometry& g) {
  OpCall call;
  call.op = "Conv";
  call.attributes = g.attributes;
  call.inputs = {TestTensor(ElementType::kFloat, g.x), TestTensor(ElementType::kFloat, g.w)};
  const auto types = infer_op(call);
  EXPECT_TRUE(types.is_ok()) << types.status().to_string();
  const TensorType y = types.is_ok() ? (*types)[0].tensor : TensorType(ElementType::kFloat, {});
  const auto view = [](const Dims& dims) {
    return TensorView{nullptr, dims.data(), dims.rank(), ElementType::kFloat};
  };
  ConvShape shape;
  return make_conv_shape(g.attributes, view(g.x), view(g.w), view(y.dims), shape).is_ok() &&
         cpu::TwoStepConv::create_or_null(shape) != nullptr;
}

// Weights that are no constant: by small windows, image by image through blocks of channels; and by
// large ones, through the library.
TEST(ConvTest, AgreesOnSeededRandomImages) {
  constexpr ImageRanges kSmall{35, 1, 5, 20, 6}, kLarge{7, 8, 15, 9, 9};
  for (const ImageRanges& ranges : {kSmall, kLarge}) {
    int num_two_step = 0;
    constexpr int kSeeds = 40;
    for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
      Random random(seed);
      const Geometry g = random_image(random, ranges);
      num_two_step += is_two_step(g);
      compare("Conv", g, seed % 2 == 0, seed);
    }
    if (ranges.least_kernel == kSmall.least_kernel) {
      EXPECT_GT(num_two_step, kSeeds / 3);
    }
  }
}

TEST(ConvTransposeTest, AgreesOnSeededRandomGeometries) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Random random(seed);
    const Geometry g = random_geometry(random, true);
    compare("ConvTranspose", g, seed % 2 == 0, seed);
  }
}

TEST(ConvTest, AgreesAtTheSizesOfAVoiceActivityModel) {
  compare("Conv", {{1, 1, 640}, {258, 1, 256}, {{"strides", std::vector<int64_t>{128}}}}, false, 1);
  const Attributes same = {{"pads", std::vector<int64_t>{1, 1}}};
  const Attributes halved = {{"pads", std::vector<int64_t>{1, 1}},
                             {"strides", std::vector<int64_t>{2}}};
  compare("Conv", {{1, 129, 4}, {128, 129, 3}, same}, true, 2);
  compare("Conv", {{1, 128, 4}, {64, 128, 3}, halved}, true, 3);
  compare("Conv", {{1, 64, 2}, {64, 64, 3}, halved}, true, 4);
  compare("Conv", {{1, 64, 1}, {128, 64, 3}, same}, true, 5);
  compare("Conv", {{1, 128, 1}, {1, 128, 1}, {}}, true, 6);
}

// Positions in blocks, weights by parts of their depth.
TEST(ConvTest, AgreesOnLongAndDeepSignals) {
  using Ints = std::vector<int64_t>;
  compare("Conv", {{1, 288, 200}, {70, 288, 7}, {{"strides", Ints{3}}}}, true, 1);
  compare("Conv", {{1, 1, 9000}, {33, 1, 127}, {{"strides", Ints{20}}}}, true, 2);
  compare("Conv", {{2, 100, 401}, {96, 100, 2}, {{"pads", Ints{5, 1}}}}, false, 3);
  compare("Conv", {{9, 33, 45}, {64, 33, 5}, {{"pads", Ints{2, 2}}}}, true, 4);
  compare("Conv", {{1, 40, 197}, {66, 20, 9}, {{"group", int64_t{2}}}}, true, 5);
}

// Every tile set this processor has, not only the best, on geometries of every kind.
TEST(ConvTest, EveryTileSetAgreesWithThePlainLoop) {
  for (cpu::Isa isa : {cpu::Isa::kBaseline, cpu::Isa::kAvx2, cpu::Isa::kAvx512}) {
    const cpu::TileKernels* tiles = cpu::tile_kernels_or_null(isa);
    if (tiles == nullptr) continue;
    for (uint64_t seed = 1; seed <= 30; ++seed) {
      SCOPED_TRACE(std::string(tiles->name) + " seed " + std::to_string(seed));
      Random random(seed);
      const Geometry g =
          seed == 30 ? Geometry{{1, 90, 211}, {70, 90, 5}, {}} : random_geometry(random, false);
      OpCall call;
      call.op = "Conv";
      call.attributes = g.attributes;
      call.inputs = {TestTensor::random(ElementType::kFloat, g.x, random, -1, 1),
                     TestTensor::random(ElementType::kFloat, g.w, random, -1, 1)};
      const TestTensor expected = run_one(call, KernelSet::kReference);
      TestTensor actual(ElementType::kFloat, expected.type().dims);
      const TensorView x = call.inputs[0].tensor().view(), w = call.inputs[1].tensor().view();
      ConvShape shape;
      ASSERT_TRUE(make_conv_shape(g.attributes, x, w, actual.view(), shape).is_ok());
      ASSERT_TRUE(cpu::TileConv::fits(shape));
      const cpu::TileConv conv(w, shape.group, *tiles);
      HeapScratch memory;
      ASSERT_TRUE(conv.run(shape, x.as<float>(), nullptr, actual.view().mutable_as<float>(), memory)
                      .is_ok());
      EXPECT_TRUE(is_close(actual, expected, kRelative, kAbsolute));
    }
  }
}

TEST(ConvTest, NoChosenLibraryImplementationIsItsReference) {
  int plans = 0;
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    const Geometry g = random_geometry(random, false);
    ConvShape shape;
    OpCall call;
    call.op = "Conv";
    call.attributes = g.attributes;
    call.inputs = {TestTensor(ElementType::kFloat, g.x), TestTensor(ElementType::kFloat, g.w)};
    const auto types = infer_op(call);
    ASSERT_TRUE(types.is_ok()) << types.status().to_string();
    const TestTensor y(ElementType::kFloat, (*types)[0].tensor.dims);
    ASSERT_TRUE(make_conv_shape(g.attributes, call.inputs[0].tensor().view(),
                                call.inputs[1].tensor().view(), y.view(), shape)
                    .is_ok());
    const auto plan = onednn::ConvPlan::create(shape, {});
    if (!plan.is_ok()) continue;  // the plain loop is taken
    ++plans;
    EXPECT_FALSE((*plan)->implementation().starts_with("ref")) << (*plan)->implementation();
  }
  EXPECT_GT(plans, 30);
}

// Binds a kernel when only ranks are known, and runs it on each image and once more on the first.
// Weights are of the first shape where they are constant, else of each in turn.
void compare_changing_shapes(const std::string& op, const Attributes& attributes,
                             const std::vector<Dims>& images, const std::vector<Dims>& weights,
                             uint64_t constants) {
  SCOPED_TRACE(op + " by " + to_string(weights[0]) + " constants " + std::to_string(constants));
  Random random(1);
  const auto values = [&](const Dims& dims) {
    return TestTensor::random(ElementType::kFloat, dims, random, -1, 1);
  };
  OpCall call;
  call.op = op;
  call.attributes = attributes;
  call.known = Known::kRanks;
  call.constant_inputs = constants;
  call.inputs = {values(images[0]), values(weights[0])};
  const auto kernel = bind_op(call, KernelSet::kCpu);
  ASSERT_TRUE(kernel.is_ok()) << kernel.status().to_string();
  for (size_t i = 0; i <= images.size(); ++i) {
    const Dims& image = images[i % images.size()];
    SCOPED_TRACE("call " + std::to_string(i) + ": " + to_string(image));
    call.inputs[0] = values(image);
    if (constants == 0) call.inputs[1] = values(weights[i % weights.size()]);
    const auto made = run_bound(call, *kernel);
    ASSERT_TRUE(made.is_ok()) << made.status().to_string();
    EXPECT_TRUE(
        is_close((*made)[0].tensor(), run_one(call, KernelSet::kReference), kRelative, kAbsolute));
  }
}

// By tiles and by the library, by blocks of channels, as products and not, turned over; images of
// other sides have the same number of elements.
TEST(ConvTest, OneKernelServesShapesThatChange) {
  const Attributes same = {{"pads", std::vector<int64_t>{1, 1, 1, 1}}};
  std::vector<Dims> lengths;
  for (int64_t length = 3; length < 60; length += 4) lengths.push_back({1, 3, length, 12});
  for (const uint64_t constants : {0, 2}) {
    compare_changing_shapes("Conv", {}, lengths, {{5, 3, 3, 3}, {6, 3, 2, 2}}, constants);
    compare_changing_shapes("Conv", {}, {{1, 32, 100}, {2, 32, 50}, {1, 32, 41}},
                            {{64, 32, 3}, {48, 32, 5}}, constants);
    compare_changing_shapes("Conv", same, {{2, 16, 20, 24}, {2, 16, 24, 20}, {1, 16, 9, 33}},
                            {{32, 16, 3, 3}, {33, 16, 3, 3}}, constants);
    compare_changing_shapes("Conv", {}, {{2, 8, 16, 18}, {2, 8, 18, 16}, {1, 8, 15, 15}},
                            {{12, 8, 1, 1}}, constants);
    compare_changing_shapes("ConvTranspose", {}, {{2, 8, 6, 9}, {2, 8, 9, 6}, {1, 8, 9, 7}},
                            {{8, 4, 3, 3}, {8, 5, 3, 3}}, constants);
  }
}

// Around the number of positions from which a product of matrices does the work.
TEST(ConvTest, WindowsOfOneElementAgreeOnLargeAndSmallImages) {
  for (uint64_t seed = 1; seed <= 24; ++seed) {
    Random random(seed);
    const int64_t channels = pick(random, 1, 20), filters = pick(random, 1, 40);
    Geometry g{{pick(random, 1, 3), channels}, {filters, channels}, {}};
    const int rank = static_cast<int>(pick(random, 1, 3));
    const int64_t sizes[] = {pick(random, 200, 400), pick(random, 12, 24), pick(random, 5, 8)};
    for (int i = 0; i < rank; ++i) {
      g.x.push_back(sizes[rank - 1]);
      g.w.push_back(1);
    }
    if (pick(random, 0, 5) == 0) {  // no product after all
      g.attributes = {{"strides", std::vector<int64_t>(static_cast<size_t>(rank), 2)}};
    }
    compare("Conv", g, pick(random, 0, 1) != 0, seed);
  }
}

// 6 images of 3 x 40 x 40 to 24 x 40 x 40 are more than the library is given at once.
TEST(ConvTest, BatchesLargerThanACacheAgreeInBlocksOfImages) {
  compare("Conv", {{6, 3, 40, 40}, {24, 3, 3, 3}, {{"pads", std::vector<int64_t>{1, 1, 1, 1}}}},
          true, 1);
  compare("Conv", {{4, 16, 33, 32}, {16, 8, 3, 3}, {{"group", int64_t{2}}}}, false, 2);
  compare("ConvTranspose",
          {{4, 8, 24, 24}, {8, 8, 2, 2}, {{"strides", std::vector<int64_t>{2, 2}}}}, true, 3);
}

TEST(ConvTest, ZeroSizesGiveEmptyResultsOrTheBias) {
  compare("Conv", {{0, 3, 8}, {4, 3, 3}, {}}, true, 1);
  compare("Conv", {{2, 0, 8}, {4, 0, 3}, {}}, true, 2);
  compare("Conv", {{2, 3, 0}, {4, 3, 3}, {{"pads", std::vector<int64_t>{2, 2}}}}, true, 3);
  compare("Conv", {{2, 3, 8}, {0, 3, 3}, {}}, false, 4);
  compare("ConvTranspose", {{0, 3, 8}, {3, 4, 3}, {}}, true, 5);
  compare("ConvTranspose", {{2, 0, 8}, {0, 4, 3}, {}}, true, 6);
}

// With four axes the reference kernel runs, so its sums are compared with loops of this test.
TEST(ConvTest, FourSpatialAxesAreTheSumsThatTheyShouldBe) {
  const uint64_t seed = 1;
  SCOPED_TRACE("seed " + std::to_string(seed));
  const Dims x_dims = {1, 2, 3, 4, 3, 4}, w_dims = {3, 2, 2, 2, 2, 2};
  Random random(seed);
  OpCall call;
  call.op = "Conv";
  call.inputs = {TestTensor::random(ElementType::kFloat, x_dims, random, -1, 1),
                 TestTensor::random(ElementType::kFloat, w_dims, random, -1, 1)};
  const auto at = [](const TestTensor& tensor, const std::array<int64_t, 6>& place) {
    int64_t offset = 0;
    for (int d = 0; d < 6; ++d) offset = offset * tensor.dims()[d] + place[static_cast<size_t>(d)];
    return number_at(tensor.view(), offset);
  };
  const TestTensor &x = call.inputs[0].tensor(), &w = call.inputs[1].tensor();
  for (const KernelSet kernels : {KernelSet::kReference, KernelSet::kCpu}) {
    const TestTensor y = run_one(call, kernels);
    ASSERT_EQ(y.dims(), (Dims{1, 3, 2, 3, 2, 3}));
    for (int64_t i = 0; i < y.count(); ++i) {
      const std::array<int64_t, 6> o = {0, i / 36, i / 18 % 2, i / 6 % 3, i / 3 % 2, i % 3};
      double sum = 0;
      for (int64_t k = 0; k < 32; ++k) {  // two channels, two taps on each axis
        const int64_t c = k / 16, t = k / 8 % 2, u = k / 4 % 2, v = k / 2 % 2, s = k % 2;
        sum += at(x, {0, c, o[2] + t, o[3] + u, o[4] + v, o[5] + s}) * at(w, {o[1], c, t, u, v, s});
      }
      EXPECT_NEAR(number_at(y.view(), i), sum, 1e-5) << i;
    }
  }
}

TEST(ConvTest, ManySeparateTapsAreNoObstacle) {
  compare("Conv", {{1, 2, 70}, {40, 2, 33}, {{"dilations", std::vector<int64_t>{2}}}}, true, 1);
  compare("Conv", {{1, 1, 400}, {40, 1, 130}, {{"dilations", std::vector<int64_t>{2}}}}, true, 2);
}

TEST(ConvTransposeTest, OutputShapeAndOutputPaddingSetTheSize) {
  const std::vector<int64_t> strides = {3, 2};
  compare("ConvTranspose",
          {{1, 1, 3, 3},
           {1, 2, 3, 3},
           {{"strides", strides}, {"output_shape", std::vector<int64_t>{10, 8}}}},
          true, 1);
  compare("ConvTranspose",
          {{1, 1, 3, 3},
           {1, 2, 3, 3},
           {{"strides", strides}, {"output_padding", std::vector<int64_t>{1, 1}}}},
          true, 2);
  compare("ConvTranspose",
          {{1, 1, 3, 3},
           {1, 2, 3, 3},
           {{"strides", strides}, {"pads", std::vector<int64_t>{1, 2, 1, 2}}}},
          true, 3);
}

std::string conv_error(const Geometry& g, const std::string& op = "Conv") {
  OpCall call;
  call.op = op;
  call.attributes = g.attributes;
  call.inputs = {TestTensor(ElementType::kFloat, g.x), TestTensor(ElementType::kFloat, g.w)};
  return infer_op(call).status().message();
}

TEST(ConvTest, SaysWhichRuleAGeometryBreaks) {
  using Ints = std::vector<int64_t>;
  EXPECT_EQ(conv_error({{1, 3}, {4, 3}, {}}),
            "X of a convolution must have at least 3 dimensions, not [1,3]");
  EXPECT_EQ(conv_error({{1, 3, 8, 8}, {4, 3, 3}, {}}),
            "X and W must have the same number of dimensions: [1,3,8,8] and [4,3,3]");
  EXPECT_EQ(conv_error({{1, 3, 8}, {4, 2, 3}, {}}),
            "X has 3 channels but W takes 2 in each of 1 groups");
  EXPECT_EQ(conv_error({{1, 4, 8}, {3, 2, 3}, {{"group", int64_t{2}}}}),
            "W's 3 output channels do not divide into 2 groups");
  EXPECT_EQ(conv_error({{1, 3, 8}, {4, 3, 3}, {{"group", int64_t{0}}}}),
            "group must be at least 1, not 0");
  EXPECT_EQ(conv_error({{1, 3, 2}, {4, 3, 3}, {}}),
            "the kernel spans 3 elements on spatial axis 0 but the padded input has only 2");
  EXPECT_EQ(conv_error({{1, 3, 8}, {4, 3, 3}, {{"kernel_shape", Ints{5}}}}),
            "kernel_shape says 5 for spatial axis 0 but the weight has 3");
  EXPECT_EQ(conv_error({{1, 3, 8}, {4, 3, 3}, {{"strides", Ints{1, 1}}}}),
            "strides must have 1 values, not 2");
  EXPECT_EQ(conv_error({{1, 3, 8}, {4, 3, 3}, {{"strides", Ints{0}}}}),
            "strides must hold values of 1..65536, not 0");
  EXPECT_EQ(conv_error({{1, 3, 8}, {4, 3, 3}, {{"pads", Ints{-1, 0}}}}),
            "pads must hold values of 0..65536, not -1");
  EXPECT_EQ(conv_error({{1, 3, 8}, {4, 3, 3}, {{"dilations", Ints{1 << 20}}}}),
            "dilations must hold values of 1..65536, not 1048576");
  EXPECT_EQ(conv_error({{1, 3, 8}, {4, 3, 3}, {{"auto_pad", std::string("SOME")}}}),
            "auto_pad must be NOTSET, VALID, SAME_UPPER or SAME_LOWER, not SOME");
  EXPECT_EQ(conv_error({{1, 3, 8}, {2, 4, 3}, {}}, "ConvTranspose"),
            "X has 3 channels but W takes 2");
}

TEST(ConvTest, AWindowThatKeepsSizesKeepsSymbols) {
  OpCall call;
  call.op = "Conv";
  call.attributes = {{"pads", std::vector<int64_t>{1, 1}}};
  const auto types = infer_op_types(call, {tensor_type(ElementType::kFloat, {-2, 3, -3}),
                                           tensor_type(ElementType::kFloat, {4, 3, 3})});
  ASSERT_TRUE(types.is_ok()) << types.status().to_string();
  EXPECT_EQ((*types)[0], tensor_type(ElementType::kFloat, {-2, 4, -3}));
}

}  // namespace
}  // namespace eddy::testing
