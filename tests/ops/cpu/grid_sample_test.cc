// Claim: the fast GridSample gives what the plain one does, for planes of any size, grids of any
// length, and coordinates on elements, at edges, outside and nowhere; a value with no weight,
// an infinity among them, has no influence.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/ops/testing/op_runner.h"

namespace eddy::testing {
namespace {

constexpr float kInfinity = std::numeric_limits<float>::infinity();

OpCall sample(TestTensor x, TestTensor grid, const std::string& padding, int64_t aligned) {
  OpCall call;
  call.op = "GridSample";
  call.opset = 20;
  call.inputs = {std::move(x), std::move(grid)};
  call.attributes = {
      {"mode", std::string("linear")}, {"padding_mode", padding}, {"align_corners", aligned}};
  return call;
}

TEST(GridSampleCpuTest, AgreesWithPlainLoopsForPlanesAndGridsOfAnySize) {
  uint64_t seed = 0;
  for (const Dims& plane : {Dims{1, 1}, Dims{1, 9}, Dims{2, 2}, Dims{7, 5}, Dims{40, 37}}) {
    for (const int64_t count : {1, 3, 15, 16, 33, 64, 100}) {
      for (const char* padding : {"zeros", "border", "reflection"}) {
        SCOPED_TRACE("seed " + std::to_string(++seed));
        Random random(seed);
        const TestTensor x =
            TestTensor::random(ElementType::kFloat, {2, 3, plane[0], plane[1]}, random, -1, 1);
        const TestTensor grid =
            TestTensor::random(ElementType::kFloat, {2, 1, count, 2}, random, -1.6, 1.6);
        compare_with_reference(sample(x, grid, padding, int64_t(seed % 2)), 1e-4, 1e-5);
      }
    }
  }
}

// Each element of a plane of five by five, and its neighbours, beside coordinates of every kind.
TEST(GridSampleCpuTest, PlacesOnElementsAtEdgesAndNowhere) {
  Random random(3);
  const float nan = std::numeric_limits<float>::quiet_NaN();
  std::vector<float> line = {-2,    -1.5f, -1.4f,     -1.2f,      -1,   -0.9f,   -0.5f, 0,
                             0.25f, 0.5f,  0.999f,    1,          1.2f, 1.3999f, 1.4f,  2,
                             1e9f,  -1e9f, kInfinity, -kInfinity, nan,  1e30f};
  std::vector<float> places;
  for (const float y : line) {
    for (const float x : line) places.insert(places.end(), {x, y});
  }
  const auto size = static_cast<int64_t>(line.size());
  const TestTensor grid = TestTensor::of<float>({1, size, size, 2}, places);
  const TestTensor x = TestTensor::random(ElementType::kFloat, {1, 2, 5, 5}, random, -1, 1);
  for (const char* padding : {"zeros", "border", "reflection"}) {
    for (const int64_t aligned : {0, 1}) {
      compare_with_reference(sample(x, grid, padding, aligned), 1e-4, 1e-5);
    }
  }
}

// However far outside, infinities included: at the border its own element, in the mirror some
// element of the plane, all of which are 1 or more.
TEST(GridSampleCpuTest, FarOutsideIsTheBordersElementAndNanIsNowhere) {
  constexpr float kHighest = std::numeric_limits<float>::max();
  const TestTensor grid = TestTensor::of<float>(
      {1, 1, 6, 2}, {-1e14f, -1e14f, 1e15f, -1e20f, -kHighest, kHighest, kInfinity, kInfinity,
                     kInfinity, -1e30f, std::numeric_limits<float>::quiet_NaN(), 9});
  const TestTensor wide = TestTensor::of<float>({1, 1, 2, 3}, {1, 2, 3, 4, 5, 6});
  const TestTensor lone = TestTensor::of<float>({1, 1, 1, 1}, {7});
  for (const char* mode : {"nearest", "linear", "cubic"}) {
    for (const int64_t aligned : {0, 1}) {
      SCOPED_TRACE(std::string(mode) + " " + std::to_string(aligned));
      for (const KernelSet kernels : {KernelSet::kReference, KernelSet::kCpu}) {
        const auto values = [&](const TestTensor& x, const char* padding) {
          OpCall call = sample(x, grid, padding, aligned);
          call.attributes.set("mode", std::string(mode));
          return run_one(call, kernels).values<float>();
        };
        EXPECT_EQ(values(wide, "border"), (std::vector<float>{1, 3, 4, 6, 3, 0}));
        EXPECT_EQ(values(lone, "border"), (std::vector<float>{7, 7, 7, 7, 7, 0}));
        EXPECT_EQ(values(wide, "zeros"), std::vector<float>(6, 0));
        const std::vector<float> mirrored = values(wide, "reflection");
        ASSERT_EQ(mirrored.size(), 6u);
        for (size_t i = 0; i < 5; ++i) EXPECT_TRUE(mirrored[i] >= 1 && mirrored[i] <= 6) << i;
      }
    }
  }
}

TEST(GridSampleCpuTest, NothingLiesInAnEmptyPlane) {
  Random random(4);
  const TestTensor grid = TestTensor::random(ElementType::kFloat, {2, 3, 5, 2}, random, -1, 1);
  for (const Dims& plane : {Dims{0, 3}, Dims{3, 0}, Dims{0, 0}}) {
    for (const char* padding : {"zeros", "border", "reflection"}) {
      const TestTensor x(ElementType::kFloat, {2, 2, plane[0], plane[1]});
      compare_with_reference(sample(x, grid, padding, 0));
    }
  }
}

TEST(GridSampleCpuTest, WhatHasNoWeightHasNoInfluence) {
  TestTensor x(ElementType::kFloat, {1, 1, 4, 4});
  for (int64_t i = 0; i < 16; ++i) x.view().mutable_as<float>()[i] = kInfinity;
  x.view().mutable_as<float>()[5] = 3;
  // On element (1, 1) exactly, and far outside.
  const float third = -1.0f / 3;
  const TestTensor grid = TestTensor::of<float>({1, 1, 3, 2}, {third, third, 5, 5, 0, 9});
  const TestTensor y = run_one(sample(x, grid, "zeros", 1), KernelSet::kCpu);
  const std::vector<float> values = y.values<float>();
  ASSERT_EQ(values.size(), 3u);
  EXPECT_EQ(values[1], 0);
  EXPECT_EQ(values[2], 0);
  compare_with_reference(sample(x, grid, "zeros", 1));
}

}  // namespace
}  // namespace eddy::testing
