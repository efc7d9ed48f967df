// Claim: the fast DeformConv gives what the plain one does: for windows and planes of any size,
// groups and groups of offsets, with and without mask and bias, for taps that are moved between
// elements, onto them, outside and nowhere; a value without weight has no influence.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "tests/ops/testing/op_runner.h"

namespace eddy::testing {
namespace {

using Ints = std::vector<int64_t>;

int64_t pick(Random& random, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(random.below(static_cast<uint64_t>(high - low + 1)));
}

// Moves by whole elements, far away and by no number among others.
TestTensor random_moves(Random& random, const Dims& dims) {
  TestTensor moves = TestTensor::random(ElementType::kFloat, dims, random, -2.5, 2.5);
  auto* const at = moves.view().mutable_as<float>();
  const bool is_wild = random.below(4) == 0;
  for (int64_t i = 0; i < moves.view().count(); ++i) {
    const uint64_t kind = random.below(40);
    if (kind < 8) at[i] = std::round(at[i]);
    if (!is_wild) continue;
    if (kind == 9) at[i] = std::nanf("");
    if (kind == 10) at[i] = 1e30f;
    if (kind == 11) at[i] = -std::numeric_limits<float>::infinity();
  }
  return moves;
}

struct Geometry {
  Dims x, w;
  Ints strides, dilations, pads;
  int64_t group = 1, moved = 1;
};

OpCall deform(Random& random, const Geometry& g, bool has_bias, bool has_mask) {
  const auto out = [&](size_t i) {
    const int at = static_cast<int>(i) + 2;
    const int64_t extent = g.dilations[i] * (g.w[at] - 1) + 1;
    return (g.x[at] + g.pads[i] + g.pads[i + 2] - extent) / g.strides[i] + 1;
  };
  const int64_t taps = g.w[2] * g.w[3];
  OpCall call;
  call.op = "DeformConv";
  call.opset = random.below(2) == 0 ? 19 : 22;
  call.attributes = {{"strides", g.strides},
                     {"dilations", g.dilations},
                     {"pads", g.pads},
                     {"group", g.group},
                     {"offset_group", g.moved}};
  call.inputs = {TestTensor::random(ElementType::kFloat, g.x, random, -1, 1),
                 TestTensor::random(ElementType::kFloat, g.w, random, -1, 1),
                 random_moves(random, {g.x[0], 2 * taps * g.moved, out(0), out(1)})};
  call.inputs.push_back(has_bias
                            ? TestValue(TestTensor::random(ElementType::kFloat, {g.w[0]}, random))
                            : TestValue::omitted());
  if (has_mask) {
    call.inputs.push_back(TestTensor::random(
        ElementType::kFloat, {g.x[0], taps * g.moved, out(0), out(1)}, random, 0, 1));
  }
  return call;
}

Geometry random_geometry(Random& random) {
  Geometry g;
  g.group = pick(random, 1, 3);
  g.moved = pick(random, 1, 2);
  const int64_t channels = g.group * g.moved * pick(random, 1, 2);
  g.x = {pick(random, 1, 2), channels};
  g.w = {g.group * pick(random, 1, 9), channels / g.group};
  Ints ends;
  for (int i = 0; i < 2; ++i) {
    g.w.push_back(pick(random, 1, 3));
    g.strides.push_back(pick(random, 1, 3));
    g.dilations.push_back(pick(random, 1, 2));
    g.pads.push_back(pick(random, 0, 2));
    ends.push_back(pick(random, 0, 2));
    const int64_t extent = g.dilations.back() * (g.w[i + 2] - 1) + 1;
    const int64_t least = std::max<int64_t>(extent - g.pads.back() - ends.back(), 0);
    g.x.push_back(least + pick(random, 0, 20));
  }
  g.pads.insert(g.pads.end(), ends.begin(), ends.end());
  return g;
}

TEST(DeformConvCpuTest, AgreesWithPlainLoopsOnSeededRandomGeometries) {
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const Geometry g = random_geometry(random);
    compare_with_reference(deform(random, g, random.below(2) == 0, random.below(2) == 0), 1e-4,
                           1e-4);
  }
}

// Several tiles of several blocks, by the large products, too.
TEST(DeformConvCpuTest, ImagesOfManyBlocksAgree) {
  Random random(3);
  Geometry g{.x = {2, 32, 37, 41},
             .w = {48, 16, 3, 3},
             .strides = {1, 1},
             .dilations = {1, 1},
             .pads = {1, 1, 1, 1},
             .group = 2,
             .moved = 4};
  compare_with_reference(deform(random, g, true, true), 1e-4, 1e-4);
}

TEST(DeformConvCpuTest, WhatHasNoWeightHasNoInfluence) {
  TestTensor x(ElementType::kFloat, {1, 1, 4, 4});
  for (int64_t i = 0; i < 16; ++i) {
    x.view().mutable_as<float>()[i] = std::numeric_limits<float>::infinity();
  }
  x.view().mutable_as<float>()[5] = 3;
  // Onto element (1, 1) from each of four; outside of the image from a fifth.
  OpCall call;
  call.op = "DeformConv";
  call.opset = 19;
  TestTensor moves(ElementType::kFloat, {1, 2, 4, 4});
  auto* const at = moves.view().mutable_as<float>();
  for (int64_t i = 0; i < 16; ++i) {
    at[i] = static_cast<float>(1 - i / 4);
    at[16 + i] = static_cast<float>(1 - i % 4);
  }
  at[0] = -7;
  call.inputs = {x, TestTensor::of<float>({1, 1, 1, 1}, {2}), moves};
  const std::vector<float> values = run_one(call, KernelSet::kCpu).values<float>();
  ASSERT_EQ(values.size(), 16u);
  EXPECT_EQ(values[0], 0);
  for (size_t i = 1; i < 16; ++i) EXPECT_EQ(values[i], 6) << i;
  compare_with_reference(call);
}

}  // namespace
}  // namespace eddy::testing
