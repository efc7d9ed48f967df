// Pools compute what one window at a time computes: on seeded random geometries, with padding,
// dilation, ceil_mode and NaN, and MaxPool's indices in both storage orders; norms of any power,
// also of values whose powers no float holds.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "ops/contract/registry.h"
#include "ops/cpu/families.h"
#include "tests/ops/testing/op_runner.h"

namespace eddy::testing {
namespace {

using Ints = std::vector<int64_t>;

int64_t pick(Random& random, int64_t low, int64_t high) {
  return low + static_cast<int64_t>(random.below(static_cast<uint64_t>(high - low + 1)));
}

OpCall random_pool(const std::string& op, Random& random) {
  const int rank = static_cast<int>(pick(random, 1, 4));
  const int64_t ceil_mode = pick(random, 0, 1);
  Dims x{pick(random, 1, 2), pick(random, 1, 3)};
  Ints kernel, strides, dilations, begins, ends;
  for (int i = 0; i < rank; ++i) {
    kernel.push_back(pick(random, 1, 3));
    strides.push_back(pick(random, 1, 3));
    dilations.push_back(pick(random, 1, 2));
    const int64_t extent = dilations.back() * (kernel.back() - 1) + 1;
    begins.push_back(pick(random, 0, extent - 1));
    ends.push_back(pick(random, 0, extent - 1));
    // With ceil_mode a window may be longer than the padded image, by less than a stride.
    const int64_t longer = ceil_mode * (begins.back() + ends.back() + strides.back() - 1);
    x.push_back(std::max<int64_t>(extent - longer, 1) + pick(random, 0, 6));
  }
  OpCall call;
  call.op = op;
  call.opset = 19;
  call.attributes = {{"kernel_shape", kernel}, {"strides", strides}, {"dilations", dilations}};
  call.attributes.set("ceil_mode", ceil_mode);
  if (op == "LpPool") call.attributes.set("p", pick(random, 1, 9));
  if (op == "AveragePool") call.attributes.set("count_include_pad", pick(random, 0, 1));
  if (pick(random, 0, 3) == 0) {
    call.attributes.set("auto_pad", std::string(pick(random, 0, 1) ? "SAME_UPPER" : "SAME_LOWER"));
  } else {
    begins.insert(begins.end(), ends.begin(), ends.end());
    call.attributes.set("pads", begins);
  }
  call.inputs = {TestTensor::random(ElementType::kFloat, x, random, -1, 1)};
  return call;
}

TEST(PoolTest, AgreesOnSeededRandomGeometries) {
  for (const char* op : {"MaxPool", "AveragePool", "LpPool"}) {
    for (uint64_t seed = 1; seed <= 80; ++seed) {
      SCOPED_TRACE(std::string(op) + " seed " + std::to_string(seed));
      Random random(seed);
      compare_with_reference(random_pool(op, random), 1e-5, 1e-6);
    }
  }
}

// Values that are often equal, and some NaN; by the fast kernel, and no other.
TEST(MaxPoolTest, IndicesAreTheReferencesOnSeededRandomGeometries) {
  KernelRegistry fast;
  add_pool_indices_cpu(fast);
  int num_taken = 0;
  for (uint64_t seed = 1; num_taken < 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    OpCall call = random_pool("MaxPool", random);
    const bool is_wide = seed % 4 == 0;
    Dims dims = call.inputs[0].tensor().dims();
    if (is_wide) dims[dims.rank() - 1] += 40;
    std::vector<float> values(static_cast<size_t>(*dims.count()));
    for (float& value : values) {
      value = random.below(40) == 0 ? NAN : static_cast<float>(random.below(5)) - 2;
    }
    call.inputs = {TestTensor::of<float>(dims, values)};
    call.num_outputs = 2;
    const auto found = run_op(call, fast);
    if (dims.rank() > 5) {
      EXPECT_EQ(found.status().code(), StatusCode::kUnsupported);
      continue;
    }
    ++num_taken;
    ASSERT_TRUE(found.is_ok()) << found.status().to_string();
    const auto expected = run_op(call, KernelSet::kReference);
    ASSERT_TRUE(expected.is_ok()) << expected.status().to_string();
    EXPECT_TRUE(is_close((*found)[0].tensor(), (*expected)[0].tensor(), 0, 0));
    EXPECT_TRUE(is_same_bits((*found)[1].tensor(), (*expected)[1].tensor()));
    ASSERT_FALSE(HasFailure());
  }
}

TEST(PoolTest, WindowsOfAWholePlaneAgree) {
  for (const char* op : {"MaxPool", "AveragePool"}) {
    for (const Dims& x : {Dims{2, 3, 5}, Dims{1, 4, 7, 7}, Dims{2, 1, 3, 4, 5}}) {
      Random random(2);
      OpCall call;
      call.op = op;
      call.attributes = {{"kernel_shape", Ints(x.begin() + 2, x.end())}};
      call.inputs = {TestTensor::random(ElementType::kFloat, x, random, -1, 1)};
      compare_with_reference(call, 1e-5, 1e-6);
    }
  }
}

TEST(PoolTest, GlobalPoolsAgree) {
  for (const char* op : {"GlobalMaxPool", "GlobalAveragePool"}) {
    for (const Dims& x : {Dims{2, 3, 5}, Dims{1, 2, 40, 3}, Dims{0, 2, 4}, Dims{2, 1, 3, 4, 5}}) {
      Random random(1);
      OpCall call;
      call.op = op;
      call.inputs = {TestTensor::random(ElementType::kFloat, x, random, -1, 1)};
      compare_with_reference(call, 1e-5, 1e-6);
    }
  }
}

TEST(GlobalLpPoolTest, AgreesForPlanesOfAnySizeAndAnyPower) {
  for (const int64_t size : {0, 1, 7, 255, 256, 257, 1000}) {
    for (const int64_t p : {1, 2, 3, 4, 6, 31}) {
      SCOPED_TRACE(std::to_string(size) + " elements, p " + std::to_string(p));
      Random random(static_cast<uint64_t>(size * 40 + p));
      OpCall call;
      call.op = "GlobalLpPool";
      call.attributes = {{"p", p}};
      call.inputs = {TestTensor::random(ElementType::kFloat, {2, 3, size}, random, -2, 2)};
      compare_with_reference(call, 1e-5, 1e-6);
    }
  }
}

TEST(LpPoolTest, PowersLeaveTheRangeOfFloatsAndRootsDoNot) {
  OpCall call;
  call.op = "LpPool";
  call.attributes = {{"kernel_shape", Ints{2}}, {"strides", Ints{2}}};
  call.inputs = {TestTensor::of<float>({1, 1, 6}, {3e30f, -4e30f, 3e-30f, 4e-30f, NAN, 1})};
  for (const int64_t p : {1, 2, 3, 5, 8}) {
    call.attributes.set("p", p);
    compare_with_reference(call, 1e-5, 0);
  }
  call.attributes.set("p", int64_t{2});
  EXPECT_TRUE(is_close(run_one(call, KernelSet::kCpu),
                       TestTensor::of<float>({1, 1, 3}, {5e30f, 5e-30f, NAN}), 1e-6, 0));
}

TEST(MaxPoolTest, IndicesCountRowsOrColumnsFirst) {
  OpCall call;
  call.op = "MaxPool";
  call.attributes = {{"kernel_shape", Ints{2, 2}}, {"strides", Ints{2, 2}}};
  call.inputs = {TestTensor::of<float>({1, 1, 2, 4}, {1, 9, 3, 4, 5, 6, 7, 8})};
  call.num_outputs = 2;
  for (int64_t order : {0, 1}) {
    call.attributes.set("storage_order", order);
    const auto result = run_op(call, KernelSet::kCpu);
    ASSERT_TRUE(result.is_ok()) << result.status().to_string();
    EXPECT_TRUE(is_same_bits((*result)[0].tensor(), TestTensor::of<float>({1, 1, 1, 2}, {9, 8})));
    const auto expected = order == 0 ? TestTensor::of<int64_t>({1, 1, 1, 2}, {1, 7})
                                     : TestTensor::of<int64_t>({1, 1, 1, 2}, {2, 7});
    EXPECT_TRUE(is_same_bits((*result)[1].tensor(), expected));
  }
}

TEST(MaxPoolTest, IndicesDoNotWalkThePadding) {
  constexpr int64_t kPad = 65536;
  OpCall call;
  call.op = "MaxPool";
  call.attributes = {{"kernel_shape", Ints{kPad + 2, kPad + 2}}, {"pads", Ints{kPad, kPad, 0, 0}}};
  call.inputs = {TestTensor::of<float>({1, 1, 2, 2}, {1, 9, 3, 4})};
  call.num_outputs = 2;
  const auto result = run_op(call, KernelSet::kCpu);
  ASSERT_TRUE(result.is_ok()) << result.status().to_string();
  EXPECT_TRUE(is_same_bits((*result)[0].tensor(), TestTensor::of<float>({1, 1, 1, 1}, {9})));
  EXPECT_TRUE(is_same_bits((*result)[1].tensor(), TestTensor::of<int64_t>({1, 1, 1, 1}, {1})));
}

TEST(MaxPoolTest, NanWins) {
  OpCall call;
  call.op = "MaxPool";
  call.attributes = {{"kernel_shape", Ints{2}}};
  call.inputs = {TestTensor::of<float>({1, 1, 4}, {NAN, 1, -INFINITY, -INFINITY})};
  compare_with_reference(call);
  EXPECT_TRUE(is_close(run_one(call, KernelSet::kCpu),
                       TestTensor::of<float>({1, 1, 3}, {NAN, 1, -INFINITY}), 0, 0));
}

TEST(AveragePoolTest, AWindowPastThePaddingCountsOnlyWhatIsThere) {
  OpCall call;
  call.op = "AveragePool";
  call.opset = 19;
  call.attributes = {{"kernel_shape", Ints{3}},
                     {"strides", Ints{2}},
                     {"ceil_mode", int64_t{1}},
                     {"count_include_pad", int64_t{1}}};
  call.inputs = {TestTensor::of<float>({1, 1, 4}, {1, 2, 3, 6})};
  compare_with_reference(call);
  EXPECT_TRUE(
      is_close(run_one(call, KernelSet::kCpu), TestTensor::of<float>({1, 1, 2}, {2, 4.5f}), 0, 0));
}

TEST(PoolTest, OneWindowRoundedUpIsAsLongAsTheImage) {
  OpCall call;
  call.opset = 19;
  call.attributes = {
      {"kernel_shape", Ints{5, 2}}, {"strides", Ints{2, 2}}, {"ceil_mode", int64_t{1}}};
  call.inputs = {TestTensor::of<float>({1, 1, 4, 1}, {1, 2, 3, 6})};
  const auto expect = [&](const char* op, float value) {
    call.op = op;
    for (const KernelSet kernels : {KernelSet::kReference, KernelSet::kCpu}) {
      EXPECT_TRUE(
          is_close(run_one(call, kernels), TestTensor::of<float>({1, 1, 1, 1}, {value}), 1e-6, 0))
          << op;
    }
  };
  expect("MaxPool", 6);
  expect("AveragePool", 3);
  expect("LpPool", std::sqrt(50.0f));
  call.attributes.set("count_include_pad", int64_t{1});
  expect("AveragePool", 3);
}

TEST(PoolTest, SaysWhichRuleAGeometryBreaks) {
  OpCall call;
  call.op = "MaxPool";
  call.inputs = {TestTensor(ElementType::kFloat, {1, 1, 4})};
  const auto message = [&] { return infer_op(call).status().message(); };
  call.attributes = {{"kernel_shape", Ints{2, 2}}};
  EXPECT_EQ(message(), "kernel_shape must have 1 values, not 2");
  call.attributes = {{"kernel_shape", Ints{5}}};
  EXPECT_EQ(message(),
            "the kernel spans 5 elements on spatial axis 0 but the padded input has only 4");
  call.attributes = {{"kernel_shape", Ints{6}}, {"strides", Ints{2}}, {"ceil_mode", int64_t{1}}};
  EXPECT_EQ(message(),
            "the kernel spans 6 elements on spatial axis 0 but the padded input has only 4");
  call.attributes = {{"kernel_shape", Ints{2}}, {"pads", Ints{2, 0}}};
  EXPECT_EQ(message(), "pads of 2 and 0 on spatial axis 0 must be smaller than the window's 2");
  call.inputs = {TestTensor(ElementType::kFloat, {4, 4})};
  EXPECT_EQ(message(), "X of a pool must have at least 3 dimensions, not [4,4]");
}

}  // namespace
}  // namespace eddy::testing
