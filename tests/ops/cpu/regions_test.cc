// Claim: the fast RoiAlign and MaxRoiPool give what the plain ones do: of regions of any size,
// empty, turned over, outside and nowhere, in both coordinate modes, for means and maxima, on
// planes and bins of any size; they refuse what the plain ones refuse, by the same words; a value
// without weight has no influence, and a NaN stays a maximum.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/ops/testing/op_runner.h"

namespace eddy::testing {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

int64_t pick(Random& random, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(random.below(static_cast<uint64_t>(high - low + 1)));
}

// Corners on elements, between them, far outside, in any order, and no numbers.
TestTensor random_corners(Random& random, int64_t regions, int64_t columns, float most) {
  TestTensor rois =
      TestTensor::random(ElementType::kFloat, {regions, columns}, random,
                         -0.3 * static_cast<double>(most), 1.3 * static_cast<double>(most));
  auto* const at = rois.view().mutable_as<float>();
  for (int64_t i = 0; i < regions * columns; ++i) {
    const uint64_t kind = random.below(24);
    if (kind < 6) at[i] = std::round(at[i]);
    if (kind == 6) at[i] = -1;
    if (kind == 7) at[i] = std::nanf("");
    if (kind == 8) at[i] = most * 5;
    if (kind == 9 && i > 1) at[i] = at[i - 2];  // an empty region
  }
  return rois;
}

TestTensor random_images(Random& random, int64_t regions, int64_t images) {
  TestTensor made(ElementType::kInt64, {regions});
  for (int64_t r = 0; r < regions; ++r) {
    made.view().mutable_as<int64_t>()[r] = pick(random, 0, images - 1);
  }
  return made;
}

OpCall random_align(Random& random) {
  const Dims x = {pick(random, 1, 3), pick(random, 1, 70), pick(random, 1, 40),
                  pick(random, 1, 40)};
  const int64_t regions = pick(random, 0, 6);
  OpCall call;
  call.op = "RoiAlign";
  call.opset = random.below(4) == 0 ? 10 : 22;
  call.attributes = {{"mode", std::string(random.below(2) == 0 ? "avg" : "max")},
                     {"output_height", pick(random, 1, 9)},
                     {"output_width", pick(random, 1, 9)},
                     {"spatial_scale", random.below(2) == 0 ? 1.0f : 0.37f}};
  call.attributes.set("sampling_ratio", random.below(3) == 0 ? int64_t{0} : pick(random, 1, 9));
  if (call.opset > 10) {
    call.attributes.set("coordinate_transformation_mode",
                        std::string(random.below(2) == 0 ? "half_pixel" : "output_half_pixel"));
  }
  call.inputs = {TestTensor::random(ElementType::kFloat, x, random, -1, 1),
                 random_corners(random, regions, 4, 40), random_images(random, regions, x[0])};
  return call;
}

// By the shapes known when binding the kernel has tiles or none: their bits are the same.
void expect_agreement(const OpCall& call) {
  const auto plain = run_op(call, KernelSet::kReference);
  if (plain.is_ok()) return compare_with_reference(call, 1e-5, 1e-5);
  EXPECT_EQ(run_op(call, KernelSet::kCpu).status().message(), plain.status().message());
}

TEST(RoiAlignCpuTest, AgreesWithPlainLoopsOnSeededRandomRegions) {
  for (uint64_t seed = 1; seed <= 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    expect_agreement(random_align(random));
  }
}

// Several tiles: regions and channels of each.
TEST(RoiAlignCpuTest, ManyRegionsOfManyChannelsAgree) {
  for (const char* mode : {"avg", "max"}) {
    Random random(5);
    OpCall call;
    call.op = "RoiAlign";
    call.opset = 16;
    call.attributes = {{"mode", std::string(mode)},
                       {"output_height", int64_t{7}},
                       {"output_width", int64_t{7}},
                       {"sampling_ratio", int64_t{2}}};
    call.inputs = {TestTensor::random(ElementType::kFloat, {2, 130, 17, 23}, random, -1, 1),
                   TestTensor::random(ElementType::kFloat, {20, 4}, random, -4, 27),
                   random_images(random, 20, 2)};
    compare_with_reference(call, 1e-5, 1e-5);
  }
}

TEST(RoiAlignCpuTest, WhatHasNoWeightHasNoInfluenceAndNanStays) {
  for (const char* mode : {"avg", "max"}) {
    for (const float value : {kInfinity, -kInfinity, std::nanf("")}) {
      for (const float start : {0.0f, 0.5f, 1.0f, 1.25f}) {
        SCOPED_TRACE(std::string(mode) + " of " + std::to_string(value) + " from " +
                     std::to_string(start));
        TestTensor x(ElementType::kFloat, {1, 1, 4, 5});
        auto* const at = x.view().mutable_as<float>();
        for (int i = 0; i < 20; ++i) at[i] = static_cast<float>(i) - 9;
        at[7] = value;
        OpCall call;
        call.op = "RoiAlign";
        call.opset = 16;
        call.attributes = {{"mode", std::string(mode)},
                           {"output_height", int64_t{2}},
                           {"output_width", int64_t{3}},
                           {"sampling_ratio", int64_t{2}},
                           {"coordinate_transformation_mode", std::string("output_half_pixel")}};
        call.inputs = {x, TestTensor::of<float>({1, 4}, {start, start, start + 3, start + 2}),
                       TestTensor::of<int64_t>({1}, {0})};
        compare_with_reference(call, 1e-5, 1e-5);
      }
    }
  }
}

TEST(RoiAlignCpuTest, RefusesWhatThePlainOneRefusesByTheSameWords) {
  OpCall call;
  call.op = "RoiAlign";
  call.opset = 16;
  const auto expect_words = [&](const TestTensor& x, const TestTensor& rois,
                                const std::vector<int64_t>& images, const std::string& words) {
    call.inputs = {x, rois, TestTensor::of<int64_t>({static_cast<int64_t>(images.size())}, images)};
    EXPECT_EQ(run_op(call, KernelSet::kCpu).status().message(), words);
    EXPECT_EQ(run_op(call, KernelSet::kReference).status().message(), words);
  };
  const TestTensor rois = TestTensor::of<float>({2, 4}, {0, 0, 1, 1, 0, 0, 1e9f, 1});
  const std::string far = "batch_indices[0] is 2, out of range 0..1";
  const std::string wide = "region 1 is more than 4096 elements wide or high for each bin";
  for (const int64_t channels : {0, 1, 65}) {  // also where nothing is computed
    const TestTensor x(ElementType::kFloat, {2, channels, 3, 3});
    expect_words(x, rois, {2, 0}, far);
    expect_words(x, rois, {0, 1}, wide);
  }
  const TestTensor flat(ElementType::kFloat, {2, 1, 0, 3});
  expect_words(flat, rois, {0, 5}, "batch_indices[1] is 5, out of range 0..1");
  call.inputs = {flat, TestTensor::of<float>({1, 4}, {0, 0, 2, 2}),
                 TestTensor::of<int64_t>({1}, {1})};
  compare_with_reference(call);
}

TEST(MaxRoiPoolCpuTest, AgreesWithPlainLoopsOnSeededRandomRegions) {
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const Dims x = {pick(random, 1, 3), pick(random, 1, 70), pick(random, 0, 40),
                    pick(random, 0, 40)};
    const int64_t regions = pick(random, 0, 6);
    OpCall call;
    call.op = "MaxRoiPool";
    call.opset = 22;
    call.attributes = {
        {"pooled_shape", std::vector<int64_t>{pick(random, 1, 9), pick(random, 1, 9)}},
        {"spatial_scale", random.below(2) == 0 ? 1.0f : 0.4f}};
    TestTensor values = TestTensor::random(ElementType::kFloat, x, random, -1, 1);
    for (int64_t i = 0; i < values.view().count(); ++i) {
      const uint64_t kind = random.below(60);
      if (kind == 0) values.view().mutable_as<float>()[i] = std::nanf("");
      if (kind == 1) values.view().mutable_as<float>()[i] = -kInfinity;
    }
    TestTensor rois = random_corners(random, regions, 5, 40);
    for (int64_t r = 0; r < regions; ++r) {
      // One in a hundred of no image.
      rois.view().mutable_as<float>()[r * 5] =
          static_cast<float>(random.below(100) == 0 ? 7 : pick(random, 0, x[0] - 1));
    }
    call.inputs = {values, rois};
    const auto plain = run_op(call, KernelSet::kReference);
    if (plain.is_ok()) {
      compare_with_reference(call);  // the same elements
    } else {
      EXPECT_EQ(run_op(call, KernelSet::kCpu).status().message(), plain.status().message());
    }
  }
}

}  // namespace
}  // namespace eddy::testing
