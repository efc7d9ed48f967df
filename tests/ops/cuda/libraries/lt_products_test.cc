// Claim: where cuBLASLt is there, products go through it with the reference's values, its heuristic
// is called once for each shape, and our own kernels compute what it does not support. Wherever its
// matrices lie, in an arena or row by row behind each other, a product has the same bits.
#include "ops/cuda/libraries/lt_products.h"

#include "tests/ops/cuda/fakes/fake_cublas_lt.h"
#include "tests/ops/cuda/host/kernel_fixture.h"
#include "tests/ops/testing/permuted_calls.h"

namespace eddy::testing {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

class LtProductsTest : public CudaKernelFixture {
 protected:
  LtProductsTest() { use({}); }
  ~LtProductsTest() override {
    with_library_ = {};
    products_.reset();
    EXPECT_THAT(fake_.violations(), IsEmpty());
    EXPECT_EQ(fake_.num_alive(), 0);
  }
  // What few rows there are are the library's, too, unless a test says otherwise.
  void use(LtOptions options, bool takes_few_rows = true) {
    if (takes_few_rows) options.most_of_few_rows = options.most_of_tensor_tile = 0;
    with_library_ = {};
    products_ = std::move(*LtProducts::create(fake_.api(), launcher_, options));
    add_cuda_kernels(with_library_, launcher_, {.products = products_.get()});
  }
  void compare_library(const OpCall& call, double tolerance) {
    SCOPED_TRACE(call.op + ", seed " + std::to_string(kSeed));
    compare_with_reference(call, with_library_, tolerance, tolerance);
  }
  OpCall make_matmul(ElementType element, const Dims& a, const Dims& b) {
    return make_call("MatMul", {random(element, a, -1, 1), random(element, b, -1, 1)});
  }

  FakeCublasLt fake_;
  std::unique_ptr<LtProducts> products_;
  KernelRegistry with_library_;
};

TEST_F(LtProductsTest, ProductsOfEveryFloatAndShapeAreTheReferences) {
  const std::pair<Dims, Dims> shapes[] = {
      {{1, 37}, {37, 100}},      {{70, 37}, {37, 3}},    {{37}, {37, 5}},
      {{5, 37}, {37}},           {{2, 3, 5, 7}, {7, 9}}, {{2, 3, 5, 7}, {2, 3, 7, 9}},
      {{2, 3, 5, 7}, {3, 7, 9}}, {{1, 1}, {1, 1}},       {{4, 5, 6}, {1, 6, 2}},
  };
  for (const ElementType element : kCudaFloats) {
    for (const auto& [a, b] : shapes) {
      compare_library(make_matmul(element, a, b), is_half(element) ? 1e-2 : 1e-6);
    }
  }
  EXPECT_GT(fake_.num_products(), 50);
}

TEST_F(LtProductsTest, GemmTransposesScalesAndAdds) {
  for (const int64_t transposes_a : {0, 1}) {
    for (const int64_t transposes_b : {0, 1}) {
      for (const Dims& c : {Dims{9}, Dims{6, 9}, Dims{6, 1}, Dims{}}) {
        for (const float beta : {1.0f, 0.5f}) {
          OpCall call = make_call(
              "Gemm", {random(ElementType::kFloat, transposes_a ? Dims{5, 6} : Dims{6, 5}, -1, 1),
                       random(ElementType::kFloat, transposes_b ? Dims{9, 5} : Dims{5, 9}, -1, 1),
                       random(ElementType::kFloat, c, -1, 1)});
          call.attributes.set("transA", transposes_a);
          call.attributes.set("transB", transposes_b);
          call.attributes.set("alpha", 0.75f);
          call.attributes.set("beta", beta);
          compare_library(call, 1e-6);
        }
      }
    }
  }
  EXPECT_GT(fake_.num_products(), 0);
}

TEST_F(LtProductsTest, PermutedProductsAreTheReferencesWhoeverMakesThem) {
  for (int round = 0; round < 300; ++round) {
    SCOPED_TRACE("round " + std::to_string(round) + ", seed " + std::to_string(kSeed));
    const ElementType element = kCudaFloats[round % 4];
    const OpCall call = random_permuted_call(element, random_).call();
    const double tolerance = is_half(element) ? 2e-2 : 1e-5;
    const auto expected = run_op(call, KernelSet::kReference);
    const auto actual = run_op(call, with_library_);
    ASSERT_TRUE(expected.is_ok() && actual.is_ok()) << actual.status().to_string();
    EXPECT_TRUE(is_close((*actual)[0].tensor(), (*expected)[0].tensor(), tolerance, tolerance));
  }
  EXPECT_GT(fake_.num_products(), 30);
}

TEST_F(LtProductsTest, AHeadsMatricesAreOneCallWhereTheirProjectionsMadeThem) {
  // [1, tokens, heads, width]: queries times keys, and the weights' sums as [1, tokens, heads, …].
  const int64_t tokens = 5, heads = 3, width = 4;
  PermutedCall scores{.a = random(ElementType::kFloat, {1, tokens, heads, width}, -1, 1),
                      .b = random(ElementType::kFloat, {1, tokens, heads, width}, -1, 1)};
  scores.perm_a = {0, 2, 1, 3};
  scores.perm_b = {0, 2, 3, 1};
  PermutedCall sums{.a = random(ElementType::kFloat, {1, heads, tokens, tokens}, -1, 1),
                    .b = random(ElementType::kFloat, {1, tokens, heads, width}, -1, 1)};
  sums.perm_b = {0, 2, 1, 3};
  sums.perm_y = {0, 2, 1, 3};
  PermutedCall projection{.a = random(ElementType::kFloat, {1, tokens, 6}, -1, 1),
                          .b = random(ElementType::kFloat, {6, 8}, -1, 1)};
  projection.bias = random(ElementType::kFloat, {8}, -1, 1);
  projection.addend = random(ElementType::kFloat, {1, tokens, 8}, -1, 1);
  for (const PermutedCall& one : {scores, sums, projection}) {
    const int before = fake_.num_products();
    const auto expected = run_op(one.call(), KernelSet::kReference);
    const auto actual = run_op(one.call(), with_library_);
    ASSERT_TRUE(expected.is_ok() && actual.is_ok()) << actual.status().to_string();
    EXPECT_TRUE(is_close((*actual)[0].tensor(), (*expected)[0].tensor(), 1e-6, 1e-6));
    EXPECT_EQ(fake_.num_products(), before + 1) << "by the library";
  }
}

TEST_F(LtProductsTest, TheHeuristicIsAskedOnceForEachShape) {
  const OpCall call = make_matmul(ElementType::kFloat, {8, 16}, {16, 32});
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(run_op(call, with_library_).is_ok());
  EXPECT_EQ(fake_.num_products(), 5);
  EXPECT_EQ(products_->num_plans(), 1u);
  EXPECT_EQ(fake_.num_heuristics(), 1);
  ASSERT_TRUE(run_op(make_matmul(ElementType::kFloat, {9, 16}, {16, 32}), with_library_).is_ok());
  EXPECT_EQ(products_->num_plans(), 2u);
  EXPECT_EQ(fake_.num_heuristics(), 2);
}

// A product on memory that is chosen: `a`, `b`, the result and a row that is added.
struct PlacedProduct {
  int64_t m, n, k;
  bool adds_row;
  std::vector<float> a = std::vector<float>(static_cast<size_t>(m * k));
  std::vector<float> b = std::vector<float>(static_cast<size_t>(k * n));
  std::vector<float> row = std::vector<float>(static_cast<size_t>(n));

  // Each is the `index`-th of its size behind a block of memory of its own.
  std::vector<float> run(LtProducts& products, size_t index) const {
    const auto place = [index](const std::vector<float>& values) {
      auto block = std::make_unique<Block>();
      std::copy(values.begin(), values.end(), block->floats + index * values.size());
      return block;
    };
    const auto at_a = place(a), at_b = place(b), at_row = place(row);
    std::vector<float> result(static_cast<size_t>(m * n));
    const auto at_out = place(result);
    cuda::ProductParams params{};
    params.m = m, params.n = n, params.k = k, params.num_batches = 1;
    params.a = at_a->floats + index * a.size(), params.b = at_b->floats + index * b.size();
    float* const out = at_out->floats + index * result.size();
    params.out = out;
    params.c = adds_row ? at_row->floats + index * row.size() : nullptr;
    params.a_row = k, params.b_row = params.out_row = n;
    params.a_column = params.b_column = params.c_column = params.out_column = 1;
    params.alpha = params.beta = 1;
    const Result<bool> is_done = products.run(KernelArgs{}, ElementType::kFloat, params);
    EXPECT_TRUE(is_done.is_ok() && *is_done);
    std::copy_n(out, result.size(), result.begin());
    return result;
  }

 private:
  struct alignas(4096) Block {
    float floats[4096];
  };
};

TEST_F(LtProductsTest, WhereItsMatricesLieChangesNoBit) {
  use({.max_workspace_bytes = 0});
  for (int round = 0; round < 60; ++round) {
    const auto size = [&] { return static_cast<int64_t>(1 + random_.below(12)); };
    PlacedProduct product{.m = size(), .n = size(), .k = size(), .adds_row = round % 2 == 0};
    for (auto* values : {&product.a, &product.b, &product.row}) {
      for (float& value : *values) value = static_cast<float>(random_.uniform() - 0.5);
    }
    SCOPED_TRACE("round " + std::to_string(round) + ", seed " + std::to_string(kSeed));
    const size_t num_plans = products_->num_plans();
    const std::vector<float> first = product.run(*products_, 0);
    for (size_t index = 1; index < 9; ++index) {
      EXPECT_EQ(product.run(*products_, index), first) << "place " << index;
    }
    EXPECT_LE(products_->num_plans(), num_plans + 1);
  }
}

TEST_F(LtProductsTest, WhatTheLibraryDoesNotDoIsDoneByOurOwnKernels) {
  fake_.know_nothing(1000);  // whatever buffers are aligned to
  compare_library(make_matmul(ElementType::kFloat, {8, 16}, {16, 32}), 1e-5);
  EXPECT_EQ(fake_.num_products(), 0);
  // Two batch axes that are walked differently, integers, nothing to multiply.
  compare_library(make_matmul(ElementType::kFloat, {2, 1, 5, 7}, {1, 3, 7, 9}), 1e-5);
  compare_library(make_call("MatMul", {random(ElementType::kInt32, {3, 4}, 0, 9),
                                       random(ElementType::kInt32, {4, 5}, 0, 9)}),
                  0);
  compare_library(make_matmul(ElementType::kFloat, {3, 0}, {0, 5}), 0);
  EXPECT_EQ(fake_.num_products(), 0);
}

TEST_F(LtProductsTest, FewRowsOrColumnsOfLittleDepthAreOurOwnKernels) {
  use({.most_of_few_rows = 16 * 32}, false);
  const std::pair<std::pair<Dims, Dims>, bool> shapes[] = {
      {{{1, 16}, {16, 32}}, false},       {{{4, 16}, {16, 32}}, false},
      {{{32, 16}, {16, 4}}, false},       {{{1, 16}, {16, 33}}, true},
      {{{5, 16}, {16, 32}}, true},        {{{32, 16}, {16, 5}}, true},
      {{{2, 1, 16}, {2, 16, 16}}, false}, {{{2, 1, 16}, {2, 16, 32}}, true},
  };
  for (const auto& [dims, is_librarys] : shapes) {
    const int num_before = fake_.num_products();
    compare_library(make_matmul(ElementType::kFloat, dims.first, dims.second), 1e-6);
    EXPECT_EQ(fake_.num_products() > num_before, is_librarys) << to_string(dims.first);
  }
}

// Whatever fits: sums of up to 200 products of numbers below 1, each rounded to 10 bits.
TEST_F(LtProductsTest, SmallProductsInTf32AreOurOwnKernelsOnTensorCores) {
  constexpr double kWithin = 200 * 0x1p-10;
  const std::pair<std::pair<Dims, Dims>, bool> shapes[] = {
      {{{32, 64}, {64, 32}}, false},       {{{33, 68}, {68, 36}}, false},
      {{{5, 4}, {4, 8}}, false},           {{{70, 200}, {200, 100}}, false},
      {{{3, 40, 72}, {3, 72, 12}}, false}, {{{3, 40, 72}, {72, 12}}, false},
      {{{32, 66}, {66, 32}}, true},        {{{32, 64}, {64, 33}}, true},
      {{{128, 200}, {200, 128}}, true},    {{{8, 260}, {260, 8}}, true},
  };
  for (const bool allows_tf32 : {true, false}) {
    use({.allows_tf32 = allows_tf32, .most_of_tensor_tile = 3'000'000}, false);
    for (const auto& [dims, is_librarys] : shapes) {
      const int num_before = fake_.num_products();
      const OpCall call = make_matmul(ElementType::kFloat, dims.first, dims.second);
      SCOPED_TRACE(to_string(dims.first) + to_string(dims.second));
      compare_with_reference(call, with_library_, kWithin, kWithin);
      EXPECT_EQ(fake_.num_products() > num_before, is_librarys || !allows_tf32);
    }
  }
  use({.allows_tf32 = true}, false);
  const int num_before = fake_.num_products();
  for (const ElementType element : {ElementType::kDouble, ElementType::kFloat16}) {
    compare_with_reference(make_matmul(element, {32, 64}, {64, 32}), with_library_, 2e-2, 2e-2);
  }
  EXPECT_GT(fake_.num_products(), num_before);
}

// Numbers that TF32 holds, whose sums float32 holds: nothing is rounded.
TEST_F(LtProductsTest, ATensorTilesSumsAreExactWhereNothingIsRounded) {
  use({.allows_tf32 = true}, false);
  const auto whole = [&](const Dims& dims) {
    std::vector<float> numbers(static_cast<size_t>(*dims.count()));
    for (float& number : numbers) number = static_cast<float>(random_.below(17)) - 8;
    return TestTensor::of<float>(dims, numbers);
  };
  for (const auto& [m, k, n] : {std::array<int64_t, 3>{5, 4, 8},
                                {32, 64, 32},
                                {33, 68, 36},
                                {70, 192, 100},
                                {17, 196, 44},
                                {64, 256, 64}}) {
    SCOPED_TRACE(k);
    compare_library(make_call("MatMul", {whole({m, k}), whole({k, n})}), 0);
  }
  EXPECT_EQ(fake_.num_products(), 0);
}

// 2^32 + 1 would be 1 in the library's 32 bits.
TEST_F(LtProductsTest, MoreBatchesThanTheLibraryCountsAreDoneByOurOwnKernels) {
  use({.max_workspace_bytes = 0});
  const float number = 2;
  float result = 0;
  cuda::ProductParams params{};
  params.m = params.n = params.k = 1;
  params.a = params.b = &number;
  params.out = &result;
  params.a_row = params.b_row = params.out_row = 1;
  params.a_column = params.b_column = params.c_column = params.out_column = 1;
  params.alpha = params.beta = 1;
  params.batch_rank = 1;
  for (const uint64_t num_batches : {uint64_t{1}, uint64_t{1} << 31, (uint64_t{1} << 32) + 1}) {
    params.num_batches = num_batches;
    const Result<bool> is_done = products_->run(KernelArgs{}, ElementType::kFloat, params);
    ASSERT_TRUE(is_done.is_ok()) << is_done.status().to_string();
    EXPECT_EQ(*is_done, num_batches == 1) << num_batches;
  }
  EXPECT_EQ(fake_.num_products(), 1);
}

TEST_F(LtProductsTest, Tf32IsUsedOnlyWhereItIsAllowed) {
  const OpCall floats = make_matmul(ElementType::kFloat, {8, 16}, {16, 32});
  ASSERT_TRUE(run_op(floats, with_library_).is_ok());
  EXPECT_EQ(fake_.num_tf32(), 0);
  use({.allows_tf32 = true});
  ASSERT_TRUE(run_op(floats, with_library_).is_ok());
  EXPECT_EQ(fake_.num_tf32(), 1);
  ASSERT_TRUE(run_op(make_matmul(ElementType::kFloat16, {8, 16}, {16, 32}), with_library_).is_ok());
  EXPECT_EQ(fake_.num_tf32(), 1);
}

TEST_F(LtProductsTest, WhatTheLibraryRefusesWhenAskedIsDoneByOurOwnKernelInEveryRun) {
  constexpr int kInvalidValue = 7, kArchMismatch = 8;
  using Refuse = void (FakeCublasLt::*)(int);
  int64_t rows = 8;  // a shape of its own for each
  for (const int refusal : {kInvalidValue, kArchMismatch, kLtNotSupported}) {
    for (const Refuse refuse : {&FakeCublasLt::refuse_products, &FakeCublasLt::refuse_heuristics,
                                &FakeCublasLt::refuse_descriptions}) {
      const OpCall call = make_matmul(ElementType::kFloat, {++rows, 16}, {16, 32});
      const int num_products = fake_.num_products();
      (fake_.*refuse)(refusal);
      compare_library(call, 1e-5);
      const auto first = run_op(call, with_library_);
      ASSERT_TRUE(first.is_ok()) << first.status().to_string();
      EXPECT_EQ(fake_.num_products(), num_products);
      (fake_.*refuse)(0);
      const auto second = run_op(call, with_library_);
      ASSERT_TRUE(second.is_ok()) << second.status().to_string();
      EXPECT_TRUE(is_same_bits((*second)[0].tensor(), (*first)[0].tensor()));
    }
  }
}

TEST_F(LtProductsTest, MemoryThatTheLibraryLacksFailsTheRunByTheCallsName) {
  const OpCall call = make_matmul(ElementType::kFloat, {8, 16}, {16, 32});
  fake_.refuse_heuristics(kLtNoMemory);
  const auto result = run_op(call, with_library_);
  fake_.refuse_heuristics(0);
  ASSERT_FALSE(result.is_ok());
  EXPECT_EQ(result.status().code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(result.status().message(), HasSubstr("cublasLtMatmulAlgoGetHeuristic answered"));
  EXPECT_TRUE(run_op(call, with_library_).is_ok()) << "the next run asks again";
}

TEST_F(LtProductsTest, PlansOfTheShapesMetLastAreKept) {
  use({.max_plans = 3});
  for (int64_t rows = 1; rows <= 20; ++rows) {
    compare_library(make_matmul(ElementType::kFloat, {rows, 16}, {16, 8}), 1e-6);
    EXPECT_LE(products_->num_plans(), 3u);
    EXPECT_LE(fake_.num_alive(), 3 * 4) << "four layouts a plan";
  }
}

TEST_F(LtProductsTest, ItsHandleIsLeftForTheNextOneAndNeverDestroyed) {
  const int num_created = fake_.num_created();
  for (int round = 0; round < 3; ++round) use({});
  EXPECT_EQ(fake_.num_created(), num_created + 1) << "the next one is made before the last goes";
  EXPECT_EQ(fake_.num_destroyed(), 0);
}

TEST_F(LtProductsTest, AFailureNamesItsCall) {
  const OpCall call = make_matmul(ElementType::kFloat, {8, 16}, {16, 32});
  fake_.fail_product(13);
  const auto result = run_op(call, with_library_);
  ASSERT_FALSE(result.is_ok());
  EXPECT_EQ(result.status().message(), "cublasLtMatmul answered CUBLAS_STATUS_EXECUTION_FAILED");
}

TEST(CublasLt, AMissingLibraryIsReportedAndAnotherOneNamesWhatItLacks) {
  const auto missing = load_cublas_lt_from("libno_such_library.so");
  EXPECT_THAT(missing.status().message(), HasSubstr("no cuBLASLt, so products run on Eddy's own"));
  EXPECT_THAT(missing.status().message(), HasSubstr("libno_such_library.so"));
  EXPECT_THAT(load_cublas_lt_from("libc.so.6").status().message(),
              HasSubstr("libc.so.6 lacks cublasLtCreate"));
}

}  // namespace
}  // namespace eddy::testing
