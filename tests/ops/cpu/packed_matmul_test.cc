// Claim: the CPU's kernels of eddy.PackMatrix, eddy.PackedMatMul and eddy.SplitMatMul compute what
// the reference's loops compute, the packing bit by bit, for matrices of any size, turned over or
// not, with a row and without, sizes of 0 among them; panels of another width they leave to the
// reference; what does not fit is refused.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "ops/contract/registry.h"
#include "ops/cpu/cpu_kernels.h"
#include "ops/cpu/families.h"
#include "tests/ops/testing/op_runner.h"

namespace eddy::testing {
namespace {

using ::testing::HasSubstr;

struct Product {
  Dims a;
  int64_t n = 0;
  bool is_turned = false, has_row = false;
  int64_t width = columns_in_panel();
  int64_t depth() const { return a[a.rank() - 1]; }
};

Result<std::vector<TestValue>> run_fast(const OpCall& call) {
  KernelRegistry fast;
  add_matmul_cpu(fast);
  return run_op(call, fast);
}

class PackedMatMulTest : public ::testing::Test {
 protected:
  TestTensor values(const Dims& dims) {
    return TestTensor::random(ElementType::kFloat, dims, random_, -1, 1);
  }

  OpCall packing(const Product& p, const TestTensor& b) {
    OpCall call;
    call.op = "PackMatrix";
    call.domain = "eddy";
    call.inputs = {b};
    call.attributes.set("width", p.width);
    call.attributes.set("turned", int64_t{p.is_turned});
    return call;
  }
  OpCall product(const Product& p, const TestTensor& a, const TestTensor& packed) {
    OpCall call;
    call.op = "PackedMatMul";
    call.domain = "eddy";
    call.inputs = {a, packed};
    if (p.has_row) call.inputs.push_back(values({p.n}));
    call.attributes.set("columns", p.n);
    call.attributes.set("width", p.width);
    return call;
  }
  TestTensor matrix(const Product& p) {
    return p.is_turned ? values({p.n, p.depth()}) : values({p.depth(), p.n});
  }

  void compare(const Product& p) {
    SCOPED_TRACE(to_string(p.a) + " by " + std::to_string(p.n) + (p.is_turned ? " turned" : "") +
                 (p.has_row ? " and a row" : ""));
    const TestTensor a = values(p.a), b = matrix(p);
    const OpCall pack = packing(p, b);
    const TestTensor packed = run_one(pack, KernelSet::kReference);
    const auto fast = run_fast(pack);
    ASSERT_TRUE(fast.is_ok()) << fast.status().to_string();
    EXPECT_TRUE(is_same_bits((*fast)[0].tensor(), packed));
    const OpCall call = product(p, a, packed);
    const auto found = run_fast(call);
    ASSERT_TRUE(found.is_ok()) << found.status().to_string();
    EXPECT_TRUE(is_close((*found)[0].tensor(), run_one(call, KernelSet::kReference), 1e-5, 1e-4));
  }

  Random random_{7};
};

TEST_F(PackedMatMulTest, RandomProductsAgreeWithTheReference) {
  for (int i = 0; i < 200; ++i) {
    const auto size = [&](uint64_t most) { return static_cast<int64_t>(random_.below(most)); };
    Product p{.a = {size(40), size(70)}, .n = size(150)};
    if (random_.below(3) == 0) p.a = {size(4), size(9), size(30)};
    p.is_turned = random_.below(2) == 0;
    p.has_row = random_.below(2) == 0;
    compare(p);
    ASSERT_FALSE(HasFailure()) << "product " << i;
  }
}

// Several tiles; more depth than a block of it.
TEST_F(PackedMatMulTest, LargeOnesAgree) {
  compare({.a = {130, 700}, .n = 400, .has_row = true});
  compare({.a = {9, 1500}, .n = 1100, .is_turned = true});
  compare({.a = {2, 64, 300}, .n = 260, .is_turned = true, .has_row = true});
}

TEST_F(PackedMatMulTest, OtherPanelsAreLeftToTheReference) {
  const Product p{.a = {5, 6}, .n = 7, .width = 4};
  const OpCall pack = packing(p, matrix(p));
  EXPECT_EQ(run_fast(pack).status().code(), StatusCode::kUnsupported);
  const TestTensor packed = run_one(pack, KernelSet::kCpu);
  const OpCall call = product(p, values(p.a), packed);
  EXPECT_EQ(run_fast(call).status().code(), StatusCode::kUnsupported);
  EXPECT_TRUE(
      is_close(run_one(call, KernelSet::kCpu), run_one(call, KernelSet::kReference), 1e-5, 1e-4));
}

TEST_F(PackedMatMulTest, AProductIsTheStandards) {
  const Product p{.a = {3, 11}, .n = 20};
  const TestTensor a = values(p.a), b = matrix(p);
  OpCall plain;
  plain.op = "MatMul";
  plain.inputs = {a, b};
  const TestTensor packed = run_one(packing(p, b), KernelSet::kCpu);
  EXPECT_TRUE(is_close(run_one(product(p, a, packed), KernelSet::kCpu),
                       run_one(plain, KernelSet::kReference), 1e-5, 1e-4));
}

// eddy.SplitMatMul
class SplitMatMulTest : public PackedMatMulTest {
 protected:
  OpCall product(const Dims& a, const Dims& b, std::vector<int64_t> sizes) {
    OpCall call;
    call.op = "SplitMatMul";
    call.domain = "eddy";
    call.inputs = {values(a), values(b)};
    call.num_outputs = sizes.size();
    call.attributes.set("split", std::move(sizes));
    call.constant_inputs = 2;
    return call;
  }
};

TEST_F(SplitMatMulTest, PartsAreTheProductsOfAnyRowsAndDepth) {
  const int64_t width = columns_in_panel();
  for (const Dims& a : {Dims{7}, Dims{5, 7}, Dims{2, 3, 7}, Dims{0, 7}, Dims{4, 0}}) {
    for (const bool has_row : {false, true}) {
      SCOPED_TRACE(to_string(a) + (has_row ? " and a row" : ""));
      const int64_t columns = 3 * width + 5;
      OpCall call = product(a, {a[a.rank() - 1], columns}, {width, 2 * width, 5});
      if (has_row) call.inputs.push_back(values({columns}));
      const auto found = run_fast(call);
      ASSERT_TRUE(found.is_ok()) << found.status().to_string();
      const auto expected = run_op(call, KernelSet::kReference);
      ASSERT_TRUE(expected.is_ok()) << expected.status().to_string();
      for (size_t i = 0; i < 3; ++i) {
        EXPECT_TRUE(is_close((*found)[i].tensor(), (*expected)[i].tensor(), 1e-5, 1e-4)) << i;
      }
    }
  }
}

TEST_F(SplitMatMulTest, OtherPanelsAndMatricesThatMayChangeAreLeftToTheReference) {
  const int64_t width = columns_in_panel();
  OpCall call = product({5, 6}, {6, 2 * width}, {width + 1, width - 1});
  EXPECT_EQ(run_fast(call).status().code(), StatusCode::kUnsupported);
  call = product({5, 6}, {6, 2 * width}, {width, width});
  call.constant_inputs = 0;
  EXPECT_EQ(run_fast(call).status().code(), StatusCode::kUnsupported);
}

TEST_F(SplitMatMulTest, WhatDoesNotFitIsRefused) {
  const auto refusal = [&](const OpCall& call) {
    return run_op(call, KernelSet::kReference).status().message();
  };
  EXPECT_THAT(refusal(product({3, 5}, {6, 9}, {4, 5})), HasSubstr("must have the 5 rows"));
  EXPECT_THAT(refusal(product({3, 6}, {6, 9}, {4, 4})), HasSubstr("must have the 8 columns"));
  EXPECT_THAT(refusal(product({3, 6}, {6, 9}, {10, -1})), HasSubstr("has the size -1"));
  EXPECT_THAT(refusal(product({}, {6, 9}, {4, 5})), HasSubstr("at least one dimension"));
  EXPECT_THAT(refusal(product({3, 6}, {2, 6, 9}, {4, 5})), HasSubstr("two dimensions"));
  OpCall call = product({3, 6}, {6, 9}, {4, 5});
  call.inputs.push_back(values({8}));
  EXPECT_THAT(refusal(call), HasSubstr("one number for each of the 9 columns"));
  call = product({3, 6}, {6, 9}, {4, 5});
  call.num_outputs = 3;
  EXPECT_THAT(refusal(call), HasSubstr("split has 2 entries for 3 outputs"));
}

TEST_F(PackedMatMulTest, WhatDoesNotFitIsRefused) {
  const Product p{.a = {3, 11}, .n = 20, .width = 8};
  const TestTensor a = values(p.a), b = matrix(p);
  const TestTensor packed = run_one(packing(p, b), KernelSet::kReference);
  const auto refusal = [&](const OpCall& call) {
    return run_op(call, KernelSet::kReference).status().message();
  };
  OpCall call = product({.a = {3, 12}, .n = 20, .width = 8}, values({3, 12}), packed);
  EXPECT_THAT(refusal(call),
              HasSubstr("must have 304 elements, as a matrix of 12 x 20 has packed"));
  call = product(p, a, packed);
  call.attributes.set("width", int64_t{0});
  EXPECT_THAT(refusal(call), HasSubstr("width must be positive"));
  call = product(p, a, packed);
  call.attributes.set("columns", int64_t{-2});
  EXPECT_THAT(refusal(call), HasSubstr("columns must be given"));
  call = product(p, a, packed);
  call.inputs.push_back(values({19}));
  EXPECT_THAT(refusal(call), HasSubstr("one number for each of the 20 columns"));
  EXPECT_THAT(refusal(packing(p, values({2, 3, 4}))), HasSubstr("must be a matrix"));
}

}  // namespace
}  // namespace eddy::testing
