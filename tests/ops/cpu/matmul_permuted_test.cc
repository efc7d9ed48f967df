// Claim: the CPU's kernel of eddy.PermutedMatMul computes what the reference's loops compute, with
// the bits of Transpose, MatMul and Transpose, for every order in which A and B have neighbours and
// the result keeps its columns, broadcast axes, sizes of 0 and products of several tiles; other
// orders, and sums behind it, it leaves to the reference.
#include <array>

#include <gtest/gtest.h>

#include "ops/contract/registry.h"
#include "ops/cpu/families.h"
#include "tests/ops/testing/op_runner.h"
#include "tests/ops/testing/permuted_calls.h"

namespace eddy::testing {
namespace {

using Ints = std::vector<int64_t>;

bool has_columns(const Ints& order) {
  return order.empty() || order.back() + 1 == static_cast<int64_t>(order.size());
}
bool has_neighbours(const Ints& order) {
  return has_columns(order) || order[order.size() - 2] + 1 == static_cast<int64_t>(order.size());
}
bool is_taken(const PermutedCall& one) {
  return has_neighbours(one.perm_a) && has_neighbours(one.perm_b) && has_columns(one.perm_y);
}

// By the fast kernel, and no other.
Result<std::vector<TestValue>> run_fast(const OpCall& call) {
  KernelRegistry fast;
  add_matmul_permuted_cpu(fast);
  return run_op(call, fast);
}

TestTensor turned(const TestTensor& x, const Ints& order) {
  if (order.empty()) return x;
  OpCall call;
  call.op = "Transpose";
  call.inputs = {x};
  call.attributes.set("perm", order);
  return run_one(call, KernelSet::kCpu);
}

// By the operators that it stands for. (Many matrices of A by a single B are one product there.)
TestTensor by_parts(const PermutedCall& one) {
  OpCall call;
  call.op = "MatMul";
  call.inputs = {turned(one.a, one.perm_a), turned(one.b, one.perm_b)};
  return turned(run_one(call, KernelSet::kCpu), one.perm_y);
}

// The fast kernel gives the reference's values, and the same bits whether it is bound to shapes or
// to ranks; less than ranks the operator does not take.
void compare(const PermutedCall& one) {
  OpCall call = one.call();
  const TestTensor expected = run_one(call, KernelSet::kReference);
  std::vector<TestTensor> found;
  for (const Known known : {Known::kShapes, Known::kRanks}) {
    call.known = known;
    const auto made = run_fast(call);
    ASSERT_TRUE(made.is_ok()) << made.status().to_string();
    found.push_back((*made)[0].tensor());
    ASSERT_TRUE(is_close(found.back(), expected, 1e-5, 1e-4));
  }
  EXPECT_TRUE(is_same_bits(found[0], found[1]));
  if (one.b.dims().rank() == 2 && one.a.dims().rank() > 2) return;
  EXPECT_TRUE(is_same_bits(found[0], by_parts(one)));
}

TEST(PermutedMatMulCpuTest, RandomOrdersAgreeWithTheReference) {
  int num_taken = 0;
  for (uint64_t seed = 1; num_taken < 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    PermutedCall one = random_permuted_call(ElementType::kFloat, random, seed % 3 == 0 ? 150 : 9);
    if (!is_taken(one)) continue;
    ++num_taken;
    one.bias.reset(), one.addend.reset();
    compare(one);
    ASSERT_FALSE(HasFailure());
  }
}

TEST(PermutedMatMulCpuTest, OtherOrdersAndSumsAreLeftToTheReference) {
  int num_left = 0;
  for (uint64_t seed = 1; num_left < 100; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    Random random(seed);
    const PermutedCall one = random_permuted_call(ElementType::kFloat, random);
    if (is_taken(one) && !one.bias && !one.addend) continue;
    ++num_left;
    EXPECT_EQ(run_fast(one.call()).status().code(), StatusCode::kUnsupported);
    EXPECT_TRUE(is_close(run_one(one.call(), KernelSet::kCpu),
                         run_one(one.call(), KernelSet::kReference), 1e-5, 1e-4));
  }
}

// Heads of an attention: rows of a result in several blocks, many products in a tile.
TEST(PermutedMatMulCpuTest, ProductsOfSeveralTilesAgree) {
  Random random(3);
  const auto values = [&](const Dims& dims) {
    return TestTensor::random(ElementType::kFloat, dims, random, -1, 1);
  };
  compare(PermutedCall{.a = values({2, 40, 12, 64}),
                       .b = values({2, 50, 12, 64}),
                       .perm_a = {0, 2, 1, 3},
                       .perm_b = {0, 2, 3, 1},
                       .perm_y = {0, 2, 1, 3}});
  compare(PermutedCall{
      .a = values({70, 300}), .b = values({90, 70}), .perm_a = {1, 0}, .perm_b = {1, 0}});
  compare(PermutedCall{.a = values({2, 1, 4, 64}),
                       .b = values({2, 200, 4, 64}),
                       .perm_a = {0, 2, 1, 3},
                       .perm_b = {0, 2, 3, 1}});
  compare(PermutedCall{.a = values({600, 2, 90}),
                       .b = values({100, 2, 90}),
                       .perm_a = {1, 0, 2},
                       .perm_b = {1, 2, 0}});
}

// Cut into blocks of columns, or of rows where these go by tiles.
TEST(PermutedMatMulCpuTest, LargeProductsByATurnedBHaveTheBitsOfTheirParts) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    Random random(seed);
    const auto size = [&] { return 120 + static_cast<int64_t>(random.below(330)); };
    const int64_t m = seed % 3 == 0 ? 256 + seed : 256 + size(), n = size(), k = size();
    SCOPED_TRACE(std::to_string(m) + " x " + std::to_string(n) + " x " + std::to_string(k));
    const PermutedCall one{.a = TestTensor::random(ElementType::kFloat, {2, m, k}, random, -1, 1),
                           .b = TestTensor::random(ElementType::kFloat, {2, n, k}, random, -1, 1),
                           .perm_b = {0, 2, 1}};
    compare(one);
  }
}

TEST(PermutedMatMulCpuTest, SizesOfZeroGiveEmptyOrZeroResults) {
  Random random(5);
  for (const auto& [m, n, k] : {std::array<int64_t, 3>{0, 3, 4}, {3, 0, 4}, {3, 4, 0}}) {
    const PermutedCall one{.a = TestTensor::random(ElementType::kFloat, {k, m}, random, -1, 1),
                           .b = TestTensor::random(ElementType::kFloat, {n, k}, random, -1, 1),
                           .perm_a = {1, 0},
                           .perm_b = {1, 0}};
    compare(one);
  }
}

}  // namespace
}  // namespace eddy::testing
