// Claim: eddy.PermutedMatMul is Transpose of both operands, MatMul, an Add of a row, Transpose, and
// an Add of an equal shape, on random shapes and orders; what does not fit is refused in one line.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
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
