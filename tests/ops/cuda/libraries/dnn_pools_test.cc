// Claim: where cuDNN is there, large pools go through it with the reference's values and are
// described once for each shape; what it does not do is done by our own kernel, with the same
// values.
#include "ops/cuda/libraries/dnn_pools.h"

#include <cmath>

#include "tests/ops/cuda/libraries/dnn_fixture.h"

namespace eddy::testing {
namespace {

constexpr ElementType kFloat = ElementType::kFloat;

class DnnPoolsTest : public DnnFixture {
 protected:
  int64_t draw(int64_t first, int64_t last) {
    return first + static_cast<int64_t>(random_.below(static_cast<uint64_t>(last - first + 1)));
  }
  std::vector<int64_t> draw_all(size_t count, int64_t first, int64_t last) {
    std::vector<int64_t> drawn(count);
    for (int64_t& each : drawn) each = draw(first, last);
    return drawn;
  }
  // A window of one, two or three axes; the library takes some of them.
  OpCall draw_pool(const std::string& op, ElementType element) {
    const auto axes = static_cast<size_t>(draw(1, 3));
    std::vector<int64_t> dims = {draw(1, 2), draw(1, 3)};
    for (size_t i = 0; i < axes; ++i) dims.push_back(draw(1, 9));
    OpCall call = make_call(op, {random(element, Dims(dims), -2, 2)});
    call.opset = 19;
    Attributes& attributes = call.attributes;
    attributes.set("kernel_shape", draw_all(axes, 1, 4));
    attributes.set("strides", draw_all(axes, 1, 3));
    if (draw(0, 3) == 0) attributes.set("dilations", draw_all(axes, 1, 2));
    std::vector<int64_t> pads = draw_all(2 * axes, 0, 2);
    if (draw(0, 2) > 0) std::copy_n(pads.begin(), axes, pads.begin() + static_cast<long>(axes));
    attributes.set("pads", pads);
    attributes.set("ceil_mode", draw(0, 1));
    if (op == "AveragePool") attributes.set("count_include_pad", draw(0, 1));
    return call;
  }
  // A thousand pools as `change` leaves them, which may refuse one; how many were compared, of
  // which some went through the library and some did not.
  template <typename Change>
  int compare_random_pools(Change change) {
    int num_pools = 0;
    for (int i = 0; i < 1000; ++i) {
      SCOPED_TRACE("pool " + std::to_string(i));
      const ElementType element = kCudaFloats[i % 4];
      const double tolerance = is_half(element) ? 2e-2 : 1e-6;
      OpCall call = draw_pool(i % 3 == 0 ? "MaxPool" : "AveragePool", element);
      if (!change(call)) continue;
      if (!run_op(call, KernelSet::kReference).is_ok()) continue;  // windows larger than the input
      compare_ranked(call, tolerance, tolerance);
      num_pools += 2;
    }
    EXPECT_GT(fake_.num_pools(), num_pools / 4);
    EXPECT_LT(fake_.num_pools(), num_pools * 3 / 4);
    return num_pools;
  }
};

TEST_F(DnnPoolsTest, RandomWindowsHaveTheReferencesValuesWhicheverWayTheyGo) {
  EXPECT_GT(compare_random_pools([](OpCall&) { return true; }), 600);
}

// The same windows; images turned over where they have two axes.
TEST_F(DnnPoolsTest, RandomWindowsOverChannelsThatComeLastHaveTheReferencesValues) {
  const int num_pools = compare_random_pools([&](OpCall& call) {
    const TensorView image = call.inputs[0].tensor().view();
    const Dims plain(image.shape());
    if (plain.rank() != 4) return false;
    call.op = "ChannelsLast" + call.op;
    call.domain = "eddy";
    call.inputs = {random(image.element, {plain[0], plain[2], plain[3], plain[1]}, -2, 2)};
    return true;
  });
  EXPECT_GT(num_pools, 150);
}

TEST_F(DnnPoolsTest, PlanesAndVolumesOfEveryFloatGoThere) {
  for (const ElementType element : kCudaFloats) {
    const double tolerance = is_half(element) ? 2e-2 : 1e-6;
    for (const Dims& x : {Dims{2, 3, 9}, Dims{2, 3, 9, 8}, Dims{1, 2, 5, 6, 7}}) {
      compare_ranked(make_pool("MaxPool", element, x), 0, 0);
      OpCall average = make_pool("AveragePool", element, x);
      compare_ranked(average, tolerance, tolerance);
      average.attributes.set("count_include_pad", int64_t{1});
      compare_ranked(average, tolerance, tolerance);
    }
  }
  EXPECT_EQ(fake_.num_pools(), 4 * 3 * 3 * 2);
}

TEST_F(DnnPoolsTest, ANanIsItsWindowsGreatest) {
  std::vector<float> values(64, -INFINITY);
  values[9] = NAN;
  values[45] = 3;
  OpCall call = make_pool("MaxPool", kFloat, {1, 1, 8, 8});
  call.inputs = {TestTensor::of<float>({1, 1, 8, 8}, values)};
  compare_ranked(call, 0, 0);
  EXPECT_EQ(fake_.num_pools(), 2);
}

TEST_F(DnnPoolsTest, WhatTheLibraryDoesNotDoIsDoneByOurOwnKernel) {
  const Dims x = {1, 3, 9, 8};
  OpCall indices = make_pool("MaxPool", kFloat, x);
  indices.num_outputs = 2;
  OpCall bytes = make_pool("MaxPool", kFloat, x);
  bytes.inputs = {random_bytes(ElementType::kInt8, x)};
  OpCall dilated = make_pool("MaxPool", kFloat, x);
  dilated.attributes.set("dilations", std::vector<int64_t>{1, 2});
  OpCall uneven = make_pool("MaxPool", kFloat, x);
  uneven.attributes.set("pads", std::vector<int64_t>{1, 0, 1, 1});
  OpCall further = make_pool("AveragePool", kFloat, x);
  further.attributes.set("pads", std::vector<int64_t>{0, 0, 0, 0});
  further.attributes.set("ceil_mode", int64_t{1});
  // Sizes as those of even padding, but the last window lacks what the other end does not have.
  OpCall part = make_pool("AveragePool", kFloat, x);
  part.attributes.set("pads", std::vector<int64_t>{1, 1, 0, 0});
  part.attributes.set("ceil_mode", int64_t{1});
  part.attributes.set("count_include_pad", int64_t{1});
  for (const OpCall& call : {indices, bytes, dilated, uneven, further, part}) {
    compare_ranked(call, 1e-6, 1e-6);
  }
  EXPECT_EQ(fake_.num_pools(), 0);
}

TEST_F(DnnPoolsTest, PoolsThatDifferInTheirLastPaddingAloneHavePlansOfTheirOwn) {
  OpCall whole = make_pool("AveragePool", kFloat, {1, 3, 9, 9});
  whole.attributes.set("count_include_pad", int64_t{1});
  OpCall part = whole;
  part.attributes.set("pads", std::vector<int64_t>{1, 1, 0, 0});
  part.attributes.set("ceil_mode", int64_t{1});
  for (const OpCall& call : {whole, part, whole}) compare_ranked(call, 1e-6, 1e-6);
  EXPECT_EQ(fake_.num_pools(), 4);
}

TEST_F(DnnPoolsTest, SmallInputsAreOurs) {
  use({.least_pool_elements = 2 * 3 * 9 * 8});
  compare_ranked(make_pool("MaxPool", kFloat, {2, 3, 9, 7}), 0, 0);
  EXPECT_EQ(fake_.num_pools(), 0);
  compare_ranked(make_pool("MaxPool", kFloat, {2, 3, 9, 8}), 0, 0);
  EXPECT_EQ(fake_.num_pools(), 2);
}

TEST_F(DnnPoolsTest, MorePlanesThanAGridsSecondAxisHoldsAreOurs) {
  compare_ranked(make_pool("MaxPool", kFloat, {65536, 1, 2}), 0, 0);
  compare_ranked(make_pool("MaxPool", kFloat, {1, 65536, 2}), 0, 0);
  EXPECT_EQ(fake_.num_pools(), 0);
  compare_ranked(make_pool("MaxPool", kFloat, {1, 65535, 2}), 0, 0);
  EXPECT_EQ(fake_.num_pools(), 2);
}

TEST_F(DnnPoolsTest, AShapeIsDescribedOnceAndAverageAndMaximumHavePlansOfTheirOwn) {
  WatchedCalls& calls = watched();
  use({.least_pool_elements = 0}, watch_calls(*fake_.api(), calls));
  for (int i = 0; i < 3; ++i) {
    for (const char* op : {"MaxPool", "AveragePool"}) {
      compare_ranked(make_pool(op, kFloat, {1, 3, 9, 8}), 1e-6, 1e-6);
    }
  }
  EXPECT_EQ(calls.count("cudnnCreatePoolingDescriptor"), 2u);
  EXPECT_EQ(calls.count("cudnnCreateTensorDescriptor"), 4u);
  EXPECT_EQ(calls.count("cudnnPoolingForward"), 12u);
}

TEST_F(DnnPoolsTest, PlansOfTheShapesMetLastAreKept) {
  use({.max_plans = 3, .least_pool_elements = 0});
  for (int64_t width = 3; width <= 20; ++width) {
    compare_ranked(make_pool("MaxPool", kFloat, {1, 3, 8, width}), 0, 0);
    EXPECT_LE(fake_.num_alive(), 3 * 3) << "three descriptors a plan";
  }
}

}  // namespace
}  // namespace eddy::testing
