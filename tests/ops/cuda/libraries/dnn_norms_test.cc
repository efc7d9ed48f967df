// Claim: where cuDNN is there, large batch norms of types that it has go through it with the
// reference's values; our own kernel runs the others.
#include "ops/cuda/libraries/dnn_norms.h"

#include "tests/ops/cuda/libraries/dnn_fixture.h"

namespace eddy::testing {
namespace {

constexpr ElementType kFloat = ElementType::kFloat;

class DnnNormsTest : public DnnFixture {};

TEST_F(DnnNormsTest, EveryRankIsTheReferencesInTheTypesThatTheLibraryHas) {
  for (const ElementType element : kCudaFloats) {
    const double tolerance = is_half(element) ? 2e-2 : 1e-6;
    for (const Dims& x : {Dims{5, 3}, Dims{2, 3, 7}, Dims{2, 3, 5, 6}, Dims{1, 4, 3, 2, 5}}) {
      const int num_norms = fake_.num_norms();
      compare_ranked(make_norm(element, x), tolerance, tolerance);
      EXPECT_EQ(fake_.num_norms(), num_norms + (is_half(element) ? 0 : 2));
    }
  }
}

TEST_F(DnnNormsTest, RandomShapesAreTheReferences) {
  for (int i = 0; i < 100; ++i) {
    const auto draw = [&](uint64_t most) { return static_cast<int64_t>(1 + random_.below(most)); };
    const Dims x = {draw(4), draw(9), draw(11), draw(7)};
    compare_ranked(make_norm(i % 2 == 0 ? kFloat : ElementType::kDouble, x), 1e-6, 1e-6);
  }
  EXPECT_EQ(fake_.num_norms(), 200);
}

TEST_F(DnnNormsTest, SmallOnesEmptyOnesAndNegativeEpsilonsAreOurs) {
  use({.least_norm_elements = 60});
  compare_ranked(make_norm(kFloat, {1, 4, 3, 4}), 1e-6, 1e-6);
  compare_ranked(make_norm(kFloat, {0, 4, 3, 4}), 0, 0);
  OpCall negative = make_norm(kFloat, {1, 4, 3, 5});
  negative.attributes.set("epsilon", -0.01f);
  compare_ranked(negative, 1e-6, 1e-6);
  EXPECT_EQ(fake_.num_norms(), 0);
  compare_ranked(make_norm(kFloat, {1, 4, 3, 5}), 1e-6, 1e-6);
  EXPECT_EQ(fake_.num_norms(), 2);
}

TEST_F(DnnNormsTest, MoreThanAGridsSecondAxisHoldsIsOurs) {
  compare_ranked(make_norm(kFloat, {65536, 1, 2}), 1e-6, 1e-6);
  compare_ranked(make_norm(kFloat, {1, 65536, 2}), 1e-6, 1e-6);
  EXPECT_EQ(fake_.num_norms(), 0);
  compare_ranked(make_norm(kFloat, {65535, 1, 2}), 1e-6, 1e-6);
  EXPECT_EQ(fake_.num_norms(), 2);
}

TEST_F(DnnNormsTest, AShapeIsDescribedOnce) {
  WatchedCalls& calls = watched();
  use({.least_norm_elements = 0}, watch_calls(*fake_.api(), calls));
  for (int i = 0; i < 3; ++i) compare_ranked(make_norm(kFloat, {2, 4, 3, 4}), 1e-6, 1e-6);
  EXPECT_EQ(calls.count("cudnnCreateTensorDescriptor"), 2u);
  EXPECT_EQ(calls.count("cudnnBatchNormalizationForwardInference"), 6u);
}

}  // namespace
}  // namespace eddy::testing
