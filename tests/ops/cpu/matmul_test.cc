// MatMul and Gemm compute what three nested loops compute: for every rank that broadcasts, for
// sizes around the edges of a register tile, with and without a constant B, and for zero sizes.
#include <cmath>
#include <limits>
#include <optional>

#include <gtest/gtest.h>

#include "ops/reference/parts/number.h"
#include "tests/ops/testing/op_runner.h"

namespace eddy::testing {
namespace {

constexpr double kRelative = 1e-5, kAbsolute = 1e-4;

void compare_matmul(const Dims& a, const Dims& b, uint64_t seed) {
  SCOPED_TRACE("seed " + std::to_string(seed) + ": " + to_string(a) + " times " + to_string(b));
  Random random(seed);
  OpCall call;
  call.op = "MatMul";
  call.inputs = {TestTensor::random(ElementType::kFloat, a, random, -1, 1),
                 TestTensor::random(ElementType::kFloat, b, random, -1, 1)};
  for (uint64_t constants : {0, 2}) {
    call.constant_inputs = constants;
    compare_with_reference(call, kRelative, kAbsolute);
  }
}

TEST(MatMulTest, AgreesAroundTheEdgesOfATile) {
  uint64_t seed = 100;
  for (int64_t m : {1, 2, 5, 6, 7, 13}) {
    for (int64_t n : {1, 2, 15, 16, 17, 33, 63, 64, 65, 130}) {
      for (int64_t k : {1, 3, 8, 19}) compare_matmul({m, k}, {k, n}, ++seed);
    }
  }
}

TEST(MatMulTest, AgreesOnSeededRandomShapes) {
  for (uint64_t seed = 1; seed <= 40; ++seed) {
    Random random(seed);
    const auto size = [&] { return static_cast<int64_t>(1 + random.below(150)); };
    const int64_t k = size();
    compare_matmul({size(), k}, {k, size()}, seed);
  }
}

TEST(MatMulTest, AgreesWhereDepthIsSplitIntoBlocks) {
  compare_matmul({9, 2500}, {2500, 70}, 7);
  compare_matmul({1, 2500}, {2500, 70}, 8);
}

TEST(MatMulTest, VectorsLoseTheirDimension) {
  compare_matmul({7}, {7}, 1);
  compare_matmul({7}, {7, 5}, 2);
  compare_matmul({5, 7}, {7}, 3);
  compare_matmul({7}, {3, 7, 5}, 4);
  compare_matmul({3, 5, 7}, {7}, 5);
}

TEST(MatMulTest, LeadingDimensionsBroadcastAsInNumpy) {
  compare_matmul({3, 4, 5}, {3, 5, 6}, 1);
  compare_matmul({3, 4, 5}, {5, 6}, 2);
  compare_matmul({4, 5}, {3, 5, 6}, 3);
  compare_matmul({2, 1, 4, 5}, {3, 5, 6}, 4);
  compare_matmul({2, 3, 4, 5}, {1, 3, 5, 6}, 5);
  compare_matmul({1, 3, 1, 4, 5}, {2, 1, 2, 5, 6}, 6);
}

TEST(MatMulTest, ZeroSizesGiveEmptyOrZeroResults) {
  compare_matmul({0, 4}, {4, 3}, 1);
  compare_matmul({2, 0}, {0, 3}, 2);
  compare_matmul({2, 4}, {4, 0}, 3);
  compare_matmul({0, 2, 4}, {0, 4, 3}, 4);
  compare_matmul({0, 2, 4}, {4, 3}, 5);
  compare_matmul({3, 2, 0}, {3, 0, 3}, 6);
}

TEST(MatMulTest, InfinitiesAndNansPassThrough) {
  OpCall call;
  call.op = "MatMul";
  const float inf = std::numeric_limits<float>::infinity();
  call.inputs = {TestTensor::of<float>({2, 2}, {inf, 1, NAN, 0}),
                 TestTensor::of<float>({2, 2}, {1, 0, 1, -1})};
  compare_with_reference(call);
}

TEST(MatMulTest, IntegersAgreeForEveryRankThatBroadcasts) {
  uint64_t seed = 50;
  for (const auto& [a, b] : {std::pair<Dims, Dims>{{7}, {7}},
                             {{7}, {3, 7, 5}},
                             {{3, 5, 7}, {7}},
                             {{2, 1, 3, 4}, {5, 4, 6}},
                             {{1, 3, 4}, {2, 1, 4, 1}},
                             {{3, 0}, {0, 5}},
                             {{0, 4}, {4, 5}},
                             {{9, 70}, {70, 33}}}) {
    for (ElementType element : {ElementType::kInt32, ElementType::kInt64}) {
      SCOPED_TRACE("seed " + std::to_string(++seed) + ": " + to_string(a) + " times " +
                   to_string(b));
      Random random(seed);
      OpCall call;
      call.op = "MatMul";
      call.inputs = {TestTensor::random(element, a, random, -50000, 50000),
                     TestTensor::random(element, b, random, -50000, 50000)};
      compare_with_reference(call);
    }
  }
}

TEST(GemmTest, IntegersAgreeForEveryTranspositionAndAddend) {
  uint64_t seed = 80;
  for (ElementType element : {ElementType::kInt32, ElementType::kInt64}) {
    for (int64_t way = 0; way < 4; ++way) {
      for (const std::optional<Dims>& c :
           {std::optional<Dims>(), std::optional<Dims>(Dims{}), std::optional<Dims>(Dims{5}),
            std::optional<Dims>(Dims{3, 1}), std::optional<Dims>(Dims{3, 5})}) {
        SCOPED_TRACE("seed " + std::to_string(++seed));
        Random random(seed);
        const bool ta = way & 1, tb = way & 2;
        OpCall call;
        call.op = "Gemm";
        call.attributes = {{"transA", int64_t{ta}}, {"transB", int64_t{tb}}};
        // Scaled products take the reference.
        if (seed % 5 == 0) call.attributes.set("alpha", 0.5f);
        call.inputs = {TestTensor::random(element, ta ? Dims{9, 3} : Dims{3, 9}, random, -99, 99),
                       TestTensor::random(element, tb ? Dims{5, 9} : Dims{9, 5}, random, -99, 99)};
        if (c) call.inputs.push_back(TestTensor::random(element, *c, random, -99, 99));
        compare_with_reference(call);
      }
    }
  }
}

// Scaled in double and cut; where that has no number of 64 bits, as Cast would make one.
TEST(GemmTest, IntegersAreScaledAndClamped) {
  const auto scaled = [](auto a, float alpha) {
    using T = decltype(a);
    OpCall call;
    call.op = "Gemm";
    call.attributes = {{"alpha", alpha}};
    call.inputs = {TestTensor::of<T>({1, 1}, {a}), TestTensor::of<T>({1, 1}, {T{1}})};
    const TestTensor y = run_one(call, KernelSet::kCpu);
    compare_with_reference(call);
    return y.view().as<T>()[0];
  };
  const float inf = std::numeric_limits<float>::infinity();
  EXPECT_EQ(scaled(int64_t{7}, -0.5f), -3);
  EXPECT_EQ(scaled(int64_t{7}, inf), INT64_MAX);
  EXPECT_EQ(scaled(int64_t{-7}, inf), INT64_MIN);
  EXPECT_EQ(scaled(int64_t{7}, NAN), 0);
  EXPECT_EQ(scaled(int64_t{1} << 62, 4.0f), INT64_MAX);
  EXPECT_EQ(scaled(uint64_t{1} << 63, 0.5f), uint64_t{1} << 62);
  EXPECT_EQ(scaled(uint64_t{7}, inf), UINT64_MAX);
  EXPECT_EQ(scaled(uint64_t{7}, -2.0f), static_cast<uint64_t>(-14));
  EXPECT_EQ(scaled(uint32_t{7}, -2.0f), static_cast<uint32_t>(-14));
  EXPECT_EQ(scaled(int32_t{7}, 0.5f), 3);
}

// Small whole numbers, of which every type holds every sum: against loops of the test's own, as the
// reference is what serves most of these types.
TEST(MatMulTest, EveryTypeMultipliesWholeNumbersExactly) {
  constexpr int64_t kRows = 3, kDepth = 4, kColumns = 5;
  for (ElementType element :
       {ElementType::kDouble, ElementType::kFloat, ElementType::kInt32, ElementType::kInt64,
        ElementType::kUint32, ElementType::kUint64, ElementType::kFloat16}) {
    SCOPED_TRACE(std::string(element_type_name(element)) + ", seed 3");
    Random random(3);
    const double low = kUnsignedIntTypes.contains(element) ? 0 : -9;
    const auto matrix = [&](const Dims& dims) {
      const TestTensor whole = TestTensor::random(ElementType::kInt32, dims, random, low, 9);
      TestTensor made(element, dims);
      for (int64_t i = 0; i < made.count(); ++i) {
        store_number(made.view(), i, load_number(whole.view(), i));
      }
      return made;
    };
    const TestTensor a = matrix({kRows, kDepth}), b = matrix({kDepth, kColumns});
    OpCall call;
    call.op = "MatMul";
    call.inputs = {a, b};
    for (const KernelSet kernels : {KernelSet::kReference, KernelSet::kCpu}) {
      const TestTensor c = run_one(call, kernels);
      ASSERT_EQ(c.type(), TensorType(element, {kRows, kColumns}));
      for (int64_t i = 0; i < kRows * kColumns; ++i) {
        double sum = 0;
        for (int64_t k = 0; k < kDepth; ++k) {
          sum += number_at(a.view(), i / kColumns * kDepth + k) *
                 number_at(b.view(), k * kColumns + i % kColumns);
        }
        EXPECT_EQ(number_at(c.view(), i), sum) << i;
      }
    }
    compare_with_reference(call);
  }
}

TEST(MatMulTest, SaysWhichShapesDoNotFit) {
  OpCall call;
  call.op = "MatMul";
  const auto message = [&](const Dims& a, const Dims& b) {
    call.inputs = {TestTensor(ElementType::kFloat, a), TestTensor(ElementType::kFloat, b)};
    return infer_op(call).status().message();
  };
  EXPECT_EQ(message({2, 3}, {4, 5}), "A has 3 columns but B has 4 rows: [2,3] times [4,5]");
  EXPECT_EQ(message({2, 3, 4}, {3, 4, 5}),
            "leading dimensions of A and B do not broadcast: [2,3,4] and [3,4,5]");
  EXPECT_EQ(message({}, {4}),
            "A and B of a matrix product must have at least one dimension, not [] and [4]");
}

void compare_gemm(int64_t m, int64_t n, int64_t k, const Attributes& attributes,
                  std::optional<Dims> c, uint64_t seed) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  Random random(seed);
  const bool ta = attributes.get_int("transA", 0), tb = attributes.get_int("transB", 0);
  OpCall call;
  call.op = "Gemm";
  call.attributes = attributes;
  call.inputs = {
      TestTensor::random(ElementType::kFloat, ta ? Dims{k, m} : Dims{m, k}, random, -1, 1),
      TestTensor::random(ElementType::kFloat, tb ? Dims{n, k} : Dims{k, n}, random, -1, 1)};
  if (c) call.inputs.push_back(TestTensor::random(ElementType::kFloat, *c, random, -1, 1));
  for (uint64_t constants : {0, 2}) {
    call.constant_inputs = constants;
    compare_with_reference(call, kRelative, kAbsolute);
  }
}

TEST(GemmTest, AgreesForEveryTranspositionScaleAndAddend) {
  uint64_t seed = 0;
  for (int64_t ta : {0, 1}) {
    for (int64_t tb : {0, 1}) {
      for (float alpha : {1.0f, 0.5f}) {
        for (float beta : {1.0f, 0.25f, 0.0f}) {
          const Attributes attributes = {
              {"transA", ta}, {"transB", tb}, {"alpha", alpha}, {"beta", beta}};
          for (const auto& c : std::vector<std::optional<Dims>>{
                   std::nullopt, Dims{}, Dims{1}, Dims{11}, Dims{1, 11}, Dims{7, 1}, Dims{7, 11}}) {
            compare_gemm(7, 11, 5, attributes, c, ++seed);
          }
        }
      }
    }
  }
}

TEST(GemmTest, AgreesOnLargeAndThinProducts) {
  for (int64_t tb : {0, 1}) {
    const Attributes attributes = {{"transB", tb}};
    compare_gemm(1, 300, 200, attributes, Dims{300}, 1);
    compare_gemm(100, 110, 120, attributes, Dims{110}, 2);
    compare_gemm(100, 110, 120, attributes, Dims{100, 110}, 3);
    compare_gemm(50, 1, 70, attributes, std::nullopt, 4);
    compare_gemm(3, 4, 0, attributes, Dims{4}, 5);
    compare_gemm(0, 4, 3, attributes, Dims{4}, 6);
  }
}

}  // namespace
}  // namespace eddy::testing
