// Claim: every operator of the standard table has a reference kernel, and the kernels of this
// folder's simple families give values worked out by hand.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <string>

#include "ops/contract/registry.h"
#include "ops/reference/parts/broadcast.h"
#include "ops/reference/parts/number.h"
#include "ops/reference/reference_kernels.h"
#include "ops/schema/standard.h"
#include "tests/ops/testing/op_runner.h"

namespace eddy::testing {
namespace {

TEST(ReferenceTest, EveryOperatorOfTheStandardTableHasAKernel) {
  OpTable table;
  ASSERT_TRUE(add_standard_schemas(table).is_ok());
  KernelRegistry registry;
  add_reference_kernels(registry);
  for (const auto& def : table.all()) {
    // Domain eddy names host functions, which a session supplies; plain loops for regular
    // expressions and for files of pictures would be other libraries; gradients are replaced before
    // anything is bound (graph/differentiate/expand_gradients.h).
    constexpr std::string_view kOthers[] = {"Gradient", "ImageDecoder", "RegexFullMatch"};
    if (def->domain == "eddy" || def->expand != nullptr) continue;
    if (std::ranges::find(kOthers, def->name) != std::end(kOthers)) continue;
    EXPECT_TRUE(registry.has(def->domain, def->name, def->since_version)) << def->name;
  }
}

TEST(ReferenceTest, EveryKernelBelongsToAnOperatorOfTheTable) {
  OpTable table;
  ASSERT_TRUE(add_standard_schemas(table).is_ok());
  KernelRegistry registry;
  add_reference_kernels(registry);
  for (const KernelEntry& entry : registry.entries()) {
    EXPECT_TRUE(table.knows(entry.domain, entry.op)) << entry.op;
  }
}

std::vector<float> run(const std::string& op, int opset, std::vector<TestValue> inputs,
                       Attributes attributes = {}) {
  OpCall call;
  call.op = op;
  call.opset = opset;
  call.inputs = std::move(inputs);
  call.attributes = std::move(attributes);
  return run_one(call, KernelSet::kReference).values<float>();
}

TestTensor floats(Dims dims, const std::vector<float>& values) {
  return TestTensor::of<float>(dims, values);
}

TEST(ReferenceTest, ElementwiseValuesByHand) {
  const std::vector<TestValue> pair = {floats({2, 1}, {6, -8}), floats({2}, {2, 4})};
  EXPECT_EQ(run("Add", 14, pair), (std::vector<float>{8, 10, -6, -4}));
  EXPECT_EQ(run("Sub", 14, pair), (std::vector<float>{4, 2, -10, -12}));
  EXPECT_EQ(run("Mul", 14, pair), (std::vector<float>{12, 24, -16, -32}));
  EXPECT_EQ(run("Div", 14, pair), (std::vector<float>{3, 1.5f, -4, -2}));
  EXPECT_EQ(run("Pow", 15, pair), (std::vector<float>{36, 1296, 64, 4096}));
  EXPECT_EQ(run("Mean", 13, pair), (std::vector<float>{4, 5, -3, -2}));
  EXPECT_EQ(run("PRelu", 16, {floats({2, 2}, {6, -8, -1, 4}), floats({2}, {2, 4})}),
            (std::vector<float>{6, -32, -2, 4}));
  EXPECT_EQ(run("Mod", 13, pair, {{"fmod", int64_t{1}}}), (std::vector<float>{0, 2, -0.0f, -0.0f}));
  const std::vector<TestValue> one = {floats({4}, {-2.5f, -0.5f, 0.5f, 1.5f})};
  EXPECT_EQ(run("Round", 11, one), (std::vector<float>{-2, 0, 0, 2}));
  EXPECT_EQ(run("Sign", 13, one), (std::vector<float>{-1, -1, 1, 1}));
  EXPECT_EQ(run("HardSigmoid", 6, one), (std::vector<float>{0, 0.4f, 0.6f, 0.8f}));
  EXPECT_EQ(run("LeakyRelu", 6, one, {{"alpha", 0.5f}}),
            (std::vector<float>{-1.25f, -0.25f, 0.5f, 1.5f}));
  EXPECT_EQ(run("ThresholdedRelu", 10, one), (std::vector<float>{0, 0, 0, 1.5f}));
  EXPECT_EQ(run("Shrink", 9, one, {{"lambd", 1.0f}, {"bias", 0.5f}}),
            (std::vector<float>{-2, 0, 0, 1}));
}

TEST(ReferenceTest, ReductionsByHand) {
  const std::vector<TestValue> x = {floats({2, 2}, {3, -4, 1, 2})};
  const Attributes last = {{"axes", std::vector<int64_t>{1}}, {"keepdims", int64_t{0}}};
  EXPECT_EQ(run("ReduceSum", 11, x, last), (std::vector<float>{-1, 3}));
  EXPECT_EQ(run("ReduceMean", 11, x, last), (std::vector<float>{-0.5f, 1.5f}));
  EXPECT_EQ(run("ReduceL1", 11, x, last), (std::vector<float>{7, 3}));
  EXPECT_EQ(run("ReduceL2", 11, x, last)[0], 5);
  EXPECT_EQ(run("ReduceMax", 11, x, last), (std::vector<float>{3, 2}));
  EXPECT_EQ(run("ReduceProd", 11, x, last), (std::vector<float>{-12, 2}));
  EXPECT_EQ(run("ReduceSumSquare", 11, x), std::vector<float>{30});
}

TEST(ReferenceTest, PoolsByNormsByHand) {
  const std::vector<TestValue> x = {floats({1, 1, 4}, {3, -4, 6, 8})};
  const Attributes pairs = {{"kernel_shape", std::vector<int64_t>{2}},
                            {"strides", std::vector<int64_t>{2}}};
  EXPECT_EQ(run("LpPool", 22, x, pairs), (std::vector<float>{5, 10}));
  Attributes sums = pairs;
  sums.set("p", int64_t{1});
  sums.set("pads", std::vector<int64_t>{1, 1});
  EXPECT_EQ(run("LpPool", 11, x, sums), (std::vector<float>{3, 10, 8}));
  Attributes apart = pairs;
  apart.set("dilations", std::vector<int64_t>{3});
  EXPECT_EQ(run("LpPool", 18, x, apart), (std::vector<float>{std::sqrt(73.0f)}));
  EXPECT_EQ(run("GlobalLpPool", 2, x, {{"p", int64_t{1}}}), std::vector<float>{21});
}

TEST(ReferenceTest, CumulativeProductsByHand) {
  const std::vector<TestValue> x = {floats({2, 3}, {1, 2, 3, 4, 5, 6}),
                                    TestTensor::scalar<int64_t>(-1)};
  EXPECT_EQ(run("CumProd", 26, x), (std::vector<float>{1, 2, 6, 4, 20, 120}));
  EXPECT_EQ(run("CumProd", 26, x, {{"exclusive", int64_t{1}}}),
            (std::vector<float>{1, 1, 2, 1, 4, 20}));
  EXPECT_EQ(run("CumProd", 26, x, {{"reverse", int64_t{1}}}),
            (std::vector<float>{6, 6, 3, 120, 30, 6}));
}

TEST(ReferenceTest, DeterminantsByHand) {
  EXPECT_EQ(run("Det", 11, {floats({2, 2, 2}, {1, 2, 3, 4, 0, 2, 3, 0})}),
            (std::vector<float>{-2, -6}));
  EXPECT_EQ(run("Det", 22, {floats({3, 3}, {2, 0, 0, 4, 0, 5, 1, 3, 7})}), std::vector<float>{-30});
  EXPECT_EQ(run("Det", 22, {floats({2, 2}, {1, 2, 2, 4})}), std::vector<float>{0});
  EXPECT_EQ(run("Det", 22, {floats({2, 0, 0}, {})}), (std::vector<float>{1, 1}));
}

TEST(ReferenceTest, ColumnsAreAddedWhereTheyOverlap) {
  const auto sizes = [](const std::vector<int64_t>& values) {
    return TestTensor::of<int64_t>({static_cast<int64_t>(values.size())}, values);
  };
  // Windows of 2 over 4 places: 3 of them.
  const TestTensor columns = floats({1, 2, 3}, {1, 2, 3, 10, 20, 30});
  EXPECT_EQ(run("Col2Im", 18, {columns, sizes({4}), sizes({2})}),
            (std::vector<float>{1, 12, 23, 30}));
  // 2 x 1 blocks, a column of padding on the left that is left out.
  EXPECT_EQ(run("Col2Im", 18, {floats({1, 2, 2}, {1, 2, 3, 4}), sizes({2, 1}), sizes({2, 1})},
                {{"pads", std::vector<int64_t>{0, 1, 0, 0}}}),
            (std::vector<float>{2, 4}));
}

TEST(ReferenceTest, BitsAreSeenAsAnotherType) {
  OpCall call;
  call.op = "BitCast";
  call.opset = 26;
  call.inputs = {floats({2}, {1.0f, -0.0f})};
  call.attributes = {{"to", static_cast<int64_t>(ElementType::kInt32)}};
  EXPECT_EQ(run_one(call, KernelSet::kReference).values<int32_t>(),
            (std::vector<int32_t>{0x3f800000, INT32_MIN}));
  call.attributes = {{"to", static_cast<int64_t>(ElementType::kInt64)}};
  EXPECT_EQ(infer_op(call).status().message(),
            "float has 32 bits, which can't be seen as int64 of 64");
}

TEST(ReferenceTest, BitsOfElementsThatShareBytesOfFilesAreSeenAsAnotherType) {
  using enum ElementType;
  const auto seen = [](std::vector<int32_t> numbers, ElementType from, ElementType to) {
    OpCall call;
    call.op = "Cast";
    call.opset = 26;
    const auto count = static_cast<int64_t>(numbers.size());
    call.inputs = {TestTensor::of<int32_t>({count}, std::move(numbers))};
    call.attributes = {{"to", static_cast<int64_t>(from)}};
    TestTensor bits = run_one(call, KernelSet::kReference);
    call.op = "BitCast";
    call.inputs = {std::move(bits)};
    call.attributes = {{"to", static_cast<int64_t>(to)}};
    bits = run_one(call, KernelSet::kReference);
    call.op = "Cast";
    call.inputs = {std::move(bits)};
    call.attributes = {{"to", static_cast<int64_t>(kInt32)}};
    return run_one(call, KernelSet::kReference).values<int32_t>();
  };
  EXPECT_EQ(seen({-8, -1, 3, 7}, kInt4, kUint4), (std::vector<int32_t>{8, 15, 3, 7}));
  EXPECT_EQ(seen({8, 15, 0, 7}, kUint4, kInt4), (std::vector<int32_t>{-8, -1, 0, 7}));
  EXPECT_EQ(seen({-2, -1, 1}, kInt2, kUint2), (std::vector<int32_t>{2, 3, 1}));
  EXPECT_EQ(seen({2, 3, 1}, kUint2, kInt2), (std::vector<int32_t>{-2, -1, 1}));
  EXPECT_EQ(seen({-6, 1}, kFloat4E2M1, kInt4), (std::vector<int32_t>{-1, 2}));
  EXPECT_EQ(seen({-1, 2}, kInt4, kFloat4E2M1), (std::vector<int32_t>{-6, 1}));
}

TEST(ReferenceTest, SignedNumbersShiftTheirSignIn) {
  OpCall call;
  call.op = "BitShift";
  call.opset = 28;
  call.inputs = {TestTensor::of<int8_t>({3}, {-8, 7, -1}), TestTensor::of<int8_t>({3}, {1, 2, 7})};
  call.attributes = {{"direction", "RIGHT"}};
  EXPECT_EQ(run_one(call, KernelSet::kReference).values<int8_t>(),
            (std::vector<int8_t>{-4, 1, -1}));
  call.attributes = {{"direction", "LEFT"}};
  EXPECT_EQ(run_one(call, KernelSet::kReference).values<int8_t>(),
            (std::vector<int8_t>{-16, 28, -128}));
}

TEST(BroadcastIndexTest, RepeatedDimensionsHaveNoStride) {
  const int64_t output[] = {2, 3, 4};
  const BroadcastIndex column({3, 1}, output);
  for (int64_t i = 0; i < 24; ++i) EXPECT_EQ(column(i), i / 4 % 3);
  const BroadcastIndex row({4}, output);
  for (int64_t i = 0; i < 24; ++i) EXPECT_EQ(row(i), i % 4);
}

TEST(NumberTest, ConversionsClampCutAndRoundOnce) {
  EXPECT_EQ(saturate<int64_t>(9.3e18), INT64_MAX);
  EXPECT_EQ(saturate<uint64_t>(-1), 0u);
  EXPECT_EQ(saturate<uint64_t>(2e19), UINT64_MAX);
  EXPECT_EQ(saturate<int8_t>(-128.9), -128);
  EXPECT_EQ(Number::of_int(300).to_integer<uint8_t>(), 44);
  EXPECT_EQ(Number::of_int(-1).to_integer<uint64_t>(), UINT64_MAX);
  // Through double this would round twice.
  EXPECT_EQ(Number::of_int((int64_t{1} << 54) + (int64_t{1} << 30) + 1).to_float(),
            std::nextafter(0x1p54f, 0x1p60f));
}

}  // namespace
}  // namespace eddy::testing
