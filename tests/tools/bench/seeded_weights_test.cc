// Claim: weights that a network makes from their shapes become random ones of the seed, with the
// variance that their fan-in asks for; all else stays, and a network without such weights is left
// alone.
#include "tools/bench/seeded_weights.h"

#include <gtest/gtest.h>

#include "graph/ir/builder.h"
#include "ops/schema/standard.h"

namespace eddy {
namespace {

class SeededWeights : public testing::Test {
 protected:
  SeededWeights() { EXPECT_TRUE(add_standard_schemas(ops_).is_ok()); }

  // y = x w + b, w of 64 x 100 and b of 100 from their shapes.
  Graph net() {
    GraphBuilder b(ops_);
    const Value x = b.input("x", tensor_type(ElementType::kFloat, {1, 64}));
    const Value w = b.op("ConstantOfShape", {b.int64s({64, 100})});
    const Value bias = b.op("ConstantOfShape", {b.int64s({100})});
    b.output("y", b.op("Gemm", {x, w, bias}));
    auto graph = b.finish();
    EXPECT_TRUE(graph.is_ok()) << graph.status().to_string();
    return std::move(*graph);
  }
  std::vector<float> weights(uint64_t seed) {
    auto seeded = seeded_weights(ops_, net(), seed);
    EXPECT_TRUE(seeded.is_ok()) << seeded.status().to_string();
    const Graph& graph = **seeded;
    EXPECT_EQ(graph.root().nodes.size(), 2u) << "the bias and the product";
    for (uint32_t i = 0; i < graph.num_constants(); ++i) {
      const Constant& constant = graph.constant(ConstantId(i));
      if (constant.element != ElementType::kFloat) continue;
      EXPECT_EQ(constant.dims, (Dims{64, 100}));
      const auto* data = static_cast<const float*>(constant.data);
      return {data, data + 6400};
    }
    ADD_FAILURE() << "no weights";
    return {};
  }
  OpTable ops_;
};

TEST_F(SeededWeights, AreDrawnFromTheSeedWithTheVarianceOfTheirFanIn) {
  const std::vector<float> drawn = weights(7);
  double sum = 0;
  double squares = 0;
  for (const float weight : drawn) {
    sum += weight;
    squares += static_cast<double>(weight) * weight;
  }
  const double count = static_cast<double>(drawn.size());
  EXPECT_NEAR(sum / count, 0, 0.01);
  EXPECT_NEAR(squares / count, 2.0 / 100, 0.001);
  EXPECT_EQ(weights(7), drawn);
  EXPECT_NE(weights(8), drawn);
}

TEST_F(SeededWeights, AreNoneWhereNoneIsMadeFromItsShape) {
  GraphBuilder b(ops_);
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {2}));
  b.output("y", b.op("Add", {x, b.op("ConstantOfShape", {b.int64s({2})})}));
  auto graph = b.finish();
  ASSERT_TRUE(graph.is_ok());
  const auto seeded = seeded_weights(ops_, std::move(*graph), 7);
  ASSERT_TRUE(seeded.is_ok());
  EXPECT_FALSE(seeded->has_value()) << "a bias keeps its value";
}

}  // namespace
}  // namespace eddy
