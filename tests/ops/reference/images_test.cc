// Claim: DeformConv, GridSample, MaxRoiPool, NonMaxSuppression and RoiAlign give values worked out
// by hand, and refuse places that no tensor has; DeformConv without offsets is Conv.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "graph/base/random.h"
#include "tests/ops/testing/calls.h"

namespace eddy::testing {
namespace {

using Floats = std::vector<float>;

void expect_values(const OpCall& call, const Dims& dims, const Floats& expected) {
  const TestTensor found = run_one(call, KernelSet::kReference);
  ASSERT_EQ(found.dims(), dims) << call.op;
  EXPECT_TRUE(is_close(found, floats(dims, expected), 1e-5, 1e-6)) << call.op;
}
// One line of one channel.
void expect_line(const OpCall& call, const Floats& expected) {
  expect_values(call, {1, 1, 1, static_cast<int64_t>(expected.size())}, expected);
}

// A row of 4 elements, sampled along it in the middle of its only line.
OpCall sample(const Floats& places, Attributes attributes) {
  Floats grid;
  for (const float x : places) grid.insert(grid.end(), {x, 0});
  return make("GridSample", 20,
              {floats({1, 1, 1, 4}, {10, 20, 30, 40}),
               floats({1, 1, static_cast<int64_t>(places.size()), 2}, grid)},
              std::move(attributes));
}

TEST(GridSampleTest, PlacesAreCountedFromCornersOrFromEdges) {
  expect_line(sample({-1, -0.5f, 0, 1}, {{"align_corners", int64_t{1}}}), {10, 17.5f, 25, 40});
  // -1 is half an element outside: half of the first, half of nothing.
  expect_line(sample({-1, -0.75f, 0, 0.75f}, {}), {5, 10, 25, 40});
}

TEST(GridSampleTest, WhatLiesOutsideIsZeroTheEdgeOrAMirror) {
  const Floats places = {-1.25f, 1, 1.5f};  // -1, 3.5 and 4.5
  expect_line(sample(places, {}), {0, 20, 0});
  expect_line(sample(places, {{"padding_mode", "border"}}), {10, 40, 40});
  expect_line(sample(places, {{"padding_mode", "reflection"}}), {10, 40, 35});
  expect_line(sample({-1, 0.1f, 1.5f}, {{"mode", "nearest"}}), {10, 30, 0});
}

TEST(GridSampleTest, CubicWeightsPassThroughTheElementsAndAddUpToOne) {
  const Attributes cubic = {{"mode", "cubic"}, {"padding_mode", "border"}};
  // Half way: -3/32, 19/32, 19/32, -3/32.
  expect_line(sample({-0.75f, 0}, cubic), {10, 25});
  OpCall old = sample({0}, {{"mode", "bicubic"}, {"padding_mode", "border"}});
  old.opset = 16;
  expect_line(old, {25});
  EXPECT_EQ(infer_op(sample({0}, {{"mode", "bicubic"}})).status().message(),
            "attribute 'mode' must be one of linear, nearest, cubic, not 'bicubic'");
}

TEST(GridSampleTest, VolumesHaveThreeCoordinatesTheLastAxisFirst) {
  const TestTensor x = floats({1, 1, 2, 1, 2}, {1, 2, 3, 4});
  const TestTensor grid = floats({1, 1, 1, 2, 3}, {1, 0, -1, -1, 0, 1});
  expect_values(make("GridSample", 20, {x, grid}, {{"align_corners", int64_t{1}}}), {1, 1, 1, 1, 2},
                {2, 3});
}

std::vector<int64_t> selected(std::vector<TestValue> inputs, Attributes attributes = {}) {
  return run_one(make("NonMaxSuppression", 11, std::move(inputs), std::move(attributes)),
                 KernelSet::kReference)
      .values<int64_t>();
}

// Places inside, at elements, at and beyond the edges, and nowhere; an infinity that is not read
// has no influence.
TEST(GridSampleTest, TheFastKernelReadsTheSamePlaces) {
  const char* modes[] = {"linear", "nearest"};
  const char* paddings[] = {"zeros", "border", "reflection"};
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    const auto size = [&](uint64_t most) { return 1 + static_cast<int64_t>(random.below(most)); };
    const Dims image = {size(2), size(40), size(30), size(30)};
    const Dims places = {image[0], size(40), size(30), 2};
    TestTensor x = TestTensor::random(ElementType::kFloat, image, random, -1, 1);
    if (seed % 4 == 0) x.view().mutable_as<float>()[0] = INFINITY;
    TestTensor grid = TestTensor::random(ElementType::kFloat, places, random, -1.3f, 1.3f);
    auto* const at = grid.view().mutable_as<float>();
    for (int64_t i = 0; i < grid.view().count(); ++i) {
      const uint64_t kind = random.below(16);
      if (kind < 3) at[i] = static_cast<float>(kind) - 1;
      if (kind == 3) at[i] = seed % 3 == 0 ? std::nanf("") : 1e30f;
    }
    const OpCall call = make("GridSample", 20, {x, grid},
                             {{"mode", modes[random.below(2)]},
                              {"padding_mode", paddings[random.below(3)]},
                              {"align_corners", static_cast<int64_t>(random.below(2))}});
    SCOPED_TRACE("seed " + std::to_string(seed));
    const TestTensor fast = run_one(call, KernelSet::kCpu);
    EXPECT_TRUE(is_close(fast, run_one(call, KernelSet::kReference), 1e-5, 1e-6));
  }
}

TEST(NonMaxSuppressionTest, KeepsTheBestOfThoseThatOverlap) {
  const TestTensor boxes = floats({1, 4, 4}, {0, 0, 1, 1, 1, 1.1f, 0, 0.1f,  // corners swapped
                                              0, 10, 1, 11, 0, 0.1f, 1, 1.1f});
  const TestTensor scores = floats({1, 1, 4}, {0.9f, 0.95f, 0.3f, 0.6f});
  const auto one = [](int64_t value) { return TestTensor::scalar(value); };
  const auto part = [](float value) { return TestTensor::of<float>({1}, {value}); };
  EXPECT_EQ(selected({boxes, scores, one(3), part(0.5f)}),
            (std::vector<int64_t>{0, 0, 1, 0, 0, 2}));
  EXPECT_EQ(selected({boxes, scores, one(1), part(0.5f)}), (std::vector<int64_t>{0, 0, 1}));
  EXPECT_EQ(selected({boxes, scores, one(3), part(0.5f), part(0.4f)}),
            (std::vector<int64_t>{0, 0, 1}));
  EXPECT_EQ(selected({boxes, scores, one(3), part(0.9f)}),
            (std::vector<int64_t>{0, 0, 1, 0, 0, 0, 0, 0, 2}));
  EXPECT_TRUE(selected({boxes, scores}).empty());
  // x, y of the middle, width, height.
  const TestTensor middles = floats({1, 2, 4}, {0.5f, 0.5f, 1, 1, 0.6f, 0.5f, 1, 1});
  EXPECT_EQ(selected({middles, floats({1, 1, 2}, {1, 2}), one(2), part(0.5f)},
                     {{"center_point_box", int64_t{1}}}),
            (std::vector<int64_t>{0, 0, 1}));
}

TEST(NonMaxSuppressionTest, EachImageAndClassHasBoxesOfItsOwn) {
  const auto one = [](int64_t value) { return TestTensor::scalar(value); };
  const TestTensor half = TestTensor::of<float>({1}, {0.5f});
  const TestTensor boxes = floats({1, 3, 4}, {0, 0, 1, 1, 0, 0.1f, 1, 1.1f, 0, 10, 1, 11});
  const TestTensor scores = floats({1, 2, 3}, {0.9f, 0.95f, 0.3f, 0.4f, 0.2f, 0.8f});
  EXPECT_EQ(selected({boxes, scores, one(2), half}),
            (std::vector<int64_t>{0, 0, 1, 0, 0, 2, 0, 1, 2, 0, 1, 0}));
  // The two boxes overlap in the first image only.
  const TestTensor pairs =
      floats({2, 2, 4}, {0, 0, 1, 1, 0, 0.1f, 1, 1.1f, 0, 0, 1, 1, 0, 5, 1, 6});
  EXPECT_EQ(selected({pairs, floats({2, 1, 2}, {1, 2, 1, 2}), one(2), half}),
            (std::vector<int64_t>{0, 0, 1, 1, 0, 1, 1, 0, 0}));
}

TEST(NonMaxSuppressionTest, TheFastKernelKeepsTheSameBoxes) {
  for (uint64_t seed = 1; seed <= 60; ++seed) {
    Random random(seed);
    const auto count = static_cast<int64_t>(random.below(seed % 3 == 0 ? 700 : 40));
    const int64_t classes = 1 + static_cast<int64_t>(random.below(4));
    TestTensor boxes = TestTensor::random(ElementType::kFloat, {2, count, 4}, random, 0, 10);
    TestTensor scores = TestTensor::random(ElementType::kFloat, {2, classes, count}, random, -1, 1);
    auto* const score = scores.view().mutable_as<float>();
    for (int64_t i = 0; i < scores.view().count(); ++i) {  // ties, zeros of both signs, no numbers
      const uint64_t kind = random.below(12);
      if (kind < 4) score[i] = 0.25f * static_cast<float>(kind);
      if (kind == 4) score[i] = -0.0f;
      if (kind == 5 && seed % 4 == 0) score[i] = std::nanf("");
    }
    if (count > 0 && seed % 5 == 0) boxes.view().mutable_as<float>()[0] = std::nanf("");
    const float overlap = 0.1f * static_cast<float>(random.below(11));
    OpCall call = make("NonMaxSuppression", 11,
                       {boxes, scores, TestTensor::scalar(static_cast<int64_t>(random.below(60))),
                        TestTensor::of<float>({1}, {overlap}), TestTensor::of<float>({1}, {-0.5f})},
                       {{"center_point_box", static_cast<int64_t>(random.below(2))}});
    if (random.below(3) == 0) call.inputs.pop_back();
    const TestTensor plain = run_one(call, KernelSet::kReference);
    EXPECT_TRUE(is_same_bits(run_one(call, KernelSet::kCpu), plain)) << "seed " << seed;
  }
}

TEST(RoiAlignTest, MeansOfSamplesBetweenTheElements) {
  const TestTensor x = floats({1, 1, 3, 3}, {0, 1, 2, 3, 4, 5, 6, 7, 8});
  const TestTensor images = TestTensor::of<int64_t>({1}, {0});
  // The region from (0.5, 0.5) to (2.5, 2.5) has its middle at element (1, 1).
  const TestTensor region = floats({1, 4}, {0.5f, 0.5f, 2.5f, 2.5f});
  const Attributes two = {{"sampling_ratio", int64_t{2}}};
  expect_line(make("RoiAlign", 16, {x, region, images}, two), {4});
  Attributes bins = two;
  bins.set("output_width", int64_t{2});
  expect_line(make("RoiAlign", 16, {x, region, images}, bins), {3.5f, 4.5f});
  // Without the shift of half a pixel it lies further.
  expect_line(make("RoiAlign", 10, {x, floats({1, 4}, {0, 0, 2, 2}), images}, two), {4});
  const auto far = run_op(make("RoiAlign", 16, {x, region, TestTensor::of<int64_t>({1}, {1})}),
                          KernelSet::kReference);
  EXPECT_EQ(far.status().message(), "batch_indices[0] is 1, out of range 0..0");
}

TEST(MaxRoiPoolTest, BinsShareTheElementsBetweenThem) {
  const TestTensor x = floats({1, 1, 3, 4}, {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11});
  const Attributes two = {{"pooled_shape", std::vector<int64_t>{2, 2}}};
  // Three rows and four columns: the middle row is in both bins.
  expect_values(make("MaxRoiPool", 22, {x, floats({1, 5}, {0, 0, 0, 3, 2})}, two), {1, 1, 2, 2},
                {5, 7, 9, 11});
  // Half as large: columns 1 to 2, rows 0 to 1.
  Attributes scaled = two;
  scaled.set("spatial_scale", 0.5f);
  expect_values(make("MaxRoiPool", 22, {x, floats({1, 5}, {0, 2, 0, 4, 2})}, scaled), {1, 1, 2, 2},
                {1, 2, 5, 6});
  // Beside the image there is nothing, and nothing is 0.
  expect_values(make("MaxRoiPool", 22, {x, floats({1, 5}, {0, 9, 9, 12, 12})}, two), {1, 1, 2, 2},
                {0, 0, 0, 0});
  const auto outside =
      run_op(make("MaxRoiPool", 22, {x, floats({1, 5}, {1, 0, 0, 1, 1})}, two), KernelSet::kCpu);
  EXPECT_NE(outside.status().to_string().find("none of the 1 images"), std::string::npos)
      << outside.status().to_string();
}

TEST(DeformConvTest, TapsLieWhereTheyAreMoved) {
  const TestTensor x = floats({1, 1, 3, 3}, {0, 1, 2, 3, 4, 5, 6, 7, 8});
  const TestTensor w = floats({1, 1, 2, 2}, {1, 1, 1, 1});
  Floats moves(32, 0.0f);
  moves[0] = 0.5f;           // the first tap of the first element, half a row down
  moves[5 * 4 + 1] = -0.1f;  // the third tap of the second one, to the left
  const TestTensor offset = floats({1, 8, 2, 2}, moves);
  expect_values(make("DeformConv", 22, {x, w, offset}), {1, 1, 2, 2}, {9.5f, 11.9f, 20, 24});
  // With half of each value, and a bias.
  expect_values(make("DeformConv", 22,
                     {x, w, offset, floats({1}, {1}), floats({1, 4, 2, 2}, Floats(16, 0.5f))}),
                {1, 1, 2, 2}, {5.75f, 6.95f, 11, 13});
}

TEST(DeformConvTest, WithoutOffsetsItIsAConvolution) {
  constexpr uint64_t kSeed = 23;
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  Random random(kSeed);
  const TestTensor x = TestTensor::random(ElementType::kFloat, {2, 4, 7, 6}, random);
  const TestTensor w = TestTensor::random(ElementType::kFloat, {6, 2, 3, 2}, random);
  const TestTensor b = TestTensor::random(ElementType::kFloat, {6}, random);
  const Attributes window = {{"group", 2},
                             {"strides", std::vector<int64_t>{2, 1}},
                             {"dilations", std::vector<int64_t>{1, 2}},
                             {"pads", std::vector<int64_t>{1, 0, 2, 1}}};
  const TestTensor y = run_one(make("Conv", 22, {x, w, b}, window), KernelSet::kReference);
  Attributes moved = window;
  moved.set("offset_group", int64_t{2});
  const Dims offsets = {2, 2 * 2 * 6, y.dims()[2], y.dims()[3]};
  const TestTensor still =
      TestTensor::of<float>(offsets, Floats(static_cast<size_t>(*offsets.count()), 0.0f));
  const TestTensor found =
      run_one(make("DeformConv", 22, {x, w, still, b}, moved), KernelSet::kReference);
  EXPECT_TRUE(is_close(found, y, 1e-5, 1e-6));
  const auto bad = run_op(make("DeformConv", 22, {x, w, b}, window), KernelSet::kReference);
  EXPECT_NE(bad.status().to_string().find("must be [2, 12, "), std::string::npos)
      << bad.status().to_string();
}

}  // namespace
}  // namespace eddy::testing
