// Claim: eddy.PermutedMatMul is Transpose of both operands, MatMul, an Add of a row, Transpose, and
// an Add of an equal shape, on random shapes and orders, and the same of operands that lie in
// larger tensors; what does not fit is refused in one line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "graph/base/random.h"
#include "tests/ops/testing/permuted_calls.h"

namespace eddy::testing {
namespace {

using ::testing::HasSubstr;

TestTensor run(OpCall call) {
  auto result = run_op(call, KernelSet::kReference);
  EXPECT_TRUE(result.is_ok()) << call.op << ": " << result.status().to_string();
  return result.is_ok() ? (*result)[0].tensor() : TestTensor::of<float>({0}, {});
}

TestTensor transposed(const TestTensor& x, const std::vector<int64_t>& perm) {
  if (perm.empty()) return x;
  OpCall call;
  call.op = "Transpose";
  call.inputs = {x};
  call.attributes.set("perm", perm);
  return run(call);
}

TestTensor of_two(const char* op, const TestTensor& x, const TestTensor& y) {
  OpCall call;
  call.op = op;
  call.inputs = {x, y};
  return run(call);
}

TEST(PermutedMatMulTest, RandomOnesAreTheStandardsOperatorsOneAfterTheOther) {
  constexpr uint64_t kSeed = 29;
  Random random(kSeed);
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE("round " + std::to_string(round) + ", seed " + std::to_string(kSeed));
    // Doubles: the sums' orders are alike but for the rounding of what is between.
    const PermutedCall one = random_permuted_call(ElementType::kDouble, random);
    TestTensor expected =
        of_two("MatMul", transposed(one.a, one.perm_a), transposed(one.b, one.perm_b));
    if (one.bias) expected = of_two("Add", expected, *one.bias);
    expected = transposed(expected, one.perm_y);
    if (one.addend) expected = of_two("Add", expected, *one.addend);
    EXPECT_TRUE(is_close(run(one.call()), expected, 1e-13, 1e-13));
  }
}

// The operand that lies there, dense.
TestTensor taken_from(const TestTensor& x, const std::vector<int64_t>& place) {
  if (place.empty()) return x;
  std::vector<int64_t> at = {place[0]};
  Dims dims;
  for (size_t i = 1; i < place.size(); i += 2) {
    std::vector<int64_t> next;
    for (const int64_t base : at) {
      for (int64_t j = 0; j < place[i]; ++j) next.push_back(base + j * place[i + 1]);
    }
    at = next;
    dims.push_back(place[i]);
  }
  std::vector<double> values;
  for (const int64_t i : at) values.push_back(x.values<double>()[static_cast<size_t>(i)]);
  return TestTensor::of<double>(dims, values);
}

TEST(PermutedMatMulTest, OperandsThatLieInLargerTensorsAreTakenFromThere) {
  constexpr uint64_t kSeed = 28;
  Random random(kSeed);
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE("round " + std::to_string(round) + ", seed " + std::to_string(kSeed));
    const PermutedCall one = random_placed_call(ElementType::kDouble, random);
    PermutedCall dense = one;
    dense.a = taken_from(one.a, one.place_a), dense.b = taken_from(one.b, one.place_b);
    dense.place_a = dense.place_b = {};
    if (one.alpha != 1) {  // of the sum alone
      dense.alpha = 1;
      dense.b = of_two("Mul", dense.b, TestTensor::scalar<double>(one.alpha));
    }
    EXPECT_TRUE(is_close(run(one.call()), run(dense.call()), 1e-13, 1e-13));
  }
}

TEST(PermutedMatMulTest, WhatDoesNotFitIsRefused) {
  const auto refusal = [](const std::function<void(PermutedCall&)>& spoil) {
    PermutedCall one{.a = TestTensor::of<float>({2, 3}, {1, 2, 3, 4, 5, 6}),
                     .b = TestTensor::of<float>({3, 2}, {1, 2, 3, 4, 5, 6})};
    spoil(one);
    const auto result = run_op(one.call(), KernelSet::kReference);
    return result.is_ok() ? "accepted" : result.status().message();
  };
  const TestTensor row = TestTensor::of<float>({3}, {1, 2, 3});
  EXPECT_EQ(refusal([](PermutedCall&) {}), "accepted");
  EXPECT_THAT(refusal([](PermutedCall& one) {
                one.perm_a = {1, 0};
              }),
              HasSubstr("A has 2 columns but B has 3 rows"));
  EXPECT_THAT(refusal([](PermutedCall& one) {
                one.perm_b = {1, 1};
              }),
              HasSubstr("perm_b: perm names axis 1 twice"));
  const auto place = [&](std::vector<int64_t> ints) {
    return refusal([&](PermutedCall& one) { one.place_a = ints; });
  };
  EXPECT_EQ(place({3, 1, 0, 3, 1}), "accepted");
  constexpr int64_t kMost = std::numeric_limits<int64_t>::max();
  for (const std::vector<int64_t>& outside : {std::vector<int64_t>{4, 1, 0, 3, 1},
                                              {-1, 2, 3, 3, 1},
                                              {0, 2, 4, 3, 1},
                                              {0, 2, -3, 3, 1},
                                              {0, 0, 3, 3, 1},
                                              {0, 3, kMost, 3, kMost},
                                              {kMost, 2, kMost, 3, 1}}) {
    EXPECT_THAT(place(outside), HasSubstr("place_a names elements outside of [2,3]"));
  }
  EXPECT_THAT(place({0, 2, 3, 3}), HasSubstr("must be a first element, then size and stride"));
  EXPECT_THAT(refusal([](PermutedCall& one) {
                one.perm_a = {0, 1};
                one.place_a = {0, 2, 3, 3, 1};
              }),
              HasSubstr("place_a and perm_a exclude each other"));
  EXPECT_THAT(refusal([](PermutedCall& one) {
                one.perm_y = {0, 1, 2};
              }),
              HasSubstr("perm_y: perm has 3 entries for a tensor of rank 2"));
  EXPECT_THAT(refusal([&](PermutedCall& one) { one.a = row; }),
              HasSubstr("must have at least two dimensions, not [3]"));
  EXPECT_THAT(refusal([&](PermutedCall& one) { one.bias = row; }),
              HasSubstr("bias of shape [3] must be [2]"));
  EXPECT_THAT(refusal([&](PermutedCall& one) { one.addend = row; }),
              HasSubstr("the addend must have the shape of the result, [2,2], not [3]"));
}

}  // namespace
}  // namespace eddy::testing
