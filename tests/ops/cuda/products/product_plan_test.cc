// Claim: products are planned as one of tall matrices where A's meet one matrix of B, whatever the
// order of A's axes, and as several where they do not.
#include "ops/cuda/products/product_plan.h"

#include <gtest/gtest.h>

namespace eddy {
namespace {

TensorView view(const Dims& dims) {
  return {nullptr, dims.data(), dims.rank(), ElementType::kFloat};
}

ProductOrders turned_over() { return {{1, 0, 2}, {}, {}}; }  // the first two axes of A

TEST(ProductPlan, MatricesOfOneRowAreTheRowsOfOneHoweverFarApartTheyLie) {
  const Dims a = {1, 33, 67}, b = {67, 65}, y = {33, 1, 65};
  const ProductPlan plan =
      ProductPlan::of(PermutedProduct(view(a), view(b), view(y), turned_over()));
  EXPECT_EQ(plan.params().m, 33);
  EXPECT_EQ(plan.params().num_batches, 1u);
  EXPECT_EQ(plan.params().a_row, 67);
  EXPECT_EQ(plan.params().out_row, 65);
}

TEST(ProductPlan, MatricesThatFollowOneAnotherAreOneAndThoseThatDoNotStayApart) {
  const Dims a = {5, 3, 67}, b = {67, 65}, y = {5, 3, 65};
  const ProductPlan plain = ProductPlan::of(PermutedProduct(view(a), view(b), view(y), {}));
  EXPECT_EQ(plain.params().m, 15);
  EXPECT_EQ(plain.params().num_batches, 1u);
  const Dims turned = {3, 5, 65};
  const ProductPlan apart =
      ProductPlan::of(PermutedProduct(view(a), view(b), view(turned), turned_over()));
  EXPECT_EQ(apart.params().m, 5);
  EXPECT_EQ(apart.params().num_batches, 3u);
}

TEST(ProductPlan, EachMatrixOfOneRowMeetsItsOwnMatrixOfB) {
  const Dims a = {1, 4, 67}, b = {4, 67, 65}, y = {4, 1, 65};
  const ProductPlan plan =
      ProductPlan::of(PermutedProduct(view(a), view(b), view(y), turned_over()));
  EXPECT_EQ(plan.params().m, 1);
  EXPECT_EQ(plan.params().num_batches, 4u);
}

}  // namespace
}  // namespace eddy
