// Claim: parameters that a network makes from their shapes are drawn from the seed by what reads
// them: weights with the variance that their fan-in asks for, factors near one, small offsets; so
// that the network's output depends on its input. All else stays, and a network without such
// parameters is left alone.
#include "tools/bench/seeded_weights.h"

#include <gtest/gtest.h>

#include <cmath>

#include "graph/base/random.h"
#include "graph/ir/builder.h"
#include "runtime/api/session.h"

namespace eddy {
namespace {

class SeededWeights : public testing::Test {
 protected:
  static Graph finish(GraphBuilder& b) {
    auto graph = b.finish();
    EXPECT_TRUE(graph.is_ok()) << graph.status().to_string();
    return std::move(*graph);
  }
  static Value made(GraphBuilder& b, std::initializer_list<int64_t> dims) {
    return b.op("ConstantOfShape", {b.int64s(dims)});
  }
  // y = x w + b, w of 64 x 100 from its shape.
  Graph product(bool is_transposed) {
    GraphBuilder b(library_.ops());
    const Value x = b.input("x", tensor_type(ElementType::kFloat, {1, is_transposed ? 100 : 64}));
    b.output("y", b.op("Gemm", {x, made(b, {64, 100})}, {{"transB", is_transposed ? 1 : 0}}));
    return finish(b);
  }
  // Of the one float constant.
  std::vector<float> drawn(Graph graph, uint64_t seed) {
    auto seeded = seeded_weights(library_.ops(), std::move(graph), seed);
    EXPECT_TRUE(seeded.is_ok()) << seeded.status().to_string();
    std::vector<float> values;
    for (uint32_t i = 0; i < (*seeded)->num_constants(); ++i) {
      const Constant& constant = (*seeded)->constant(ConstantId(i));
      if (constant.element != ElementType::kFloat) continue;
      const auto* data = static_cast<const float*>(constant.data);
      values.insert(values.end(), data, data + *constant.dims.count());
    }
    return values;
  }
  static double variance(const std::vector<float>& values) {
    double squares = 0;
    for (const float each : values) squares += static_cast<double>(each) * each;
    return squares / static_cast<double>(values.size());
  }
  // How many outputs of a graph of one image differ, by more than results are compared by, for two
  // random images.
  int count_differing(Graph graph) {
    auto session = Session::create(library_, std::move(graph), {.num_threads = 1});
    EXPECT_TRUE(session.is_ok()) << session.status().to_string();
    const ValueDescription& input = (*session)->inputs()[0];
    std::vector<NamedTensors> made;
    for (const uint64_t seed : {1u, 2u}) {
      Random random(seed);
      std::vector<float> image(static_cast<size_t>(*input.type.tensor.dims.count()));
      for (float& each : image) each = random.uniform(0.0f, 1.0f);
      auto outputs = (*session)->run(
          {{input.name, Tensor::of<float>(input.type.tensor.dims, std::span<const float>(image))}});
      EXPECT_TRUE(outputs.is_ok()) << outputs.status().to_string();
      made.push_back(std::move(*outputs));
    }
    const auto first = made[0][0].second.values<float>();
    const auto second = made[1][0].second.values<float>();
    int count = 0;
    for (size_t i = 0; i < first.size(); ++i) {
      count += std::abs(first[i] - second[i]) > 1e-4 + 1e-3 * std::abs(second[i]) ? 1 : 0;
    }
    return count;
  }
  const Library library_;
};

TEST_F(SeededWeights, WeightsHaveTheVarianceOfTheirFanIn) {
  const std::vector<float> plain = drawn(product(false), 7);
  ASSERT_EQ(plain.size(), 6400u);
  EXPECT_NEAR(variance(plain), 2.0 / 64, 0.0015);
  EXPECT_NEAR(variance(drawn(product(true), 7)), 2.0 / 100, 0.001);
  EXPECT_EQ(drawn(product(false), 7), plain);
  EXPECT_NE(drawn(product(false), 8), plain);
}

TEST_F(SeededWeights, FanInIsThatOfTheShapeInWhichAWeightIsRead) {
  GraphBuilder b(library_.ops());
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {1, 64}));
  const Value w = b.op("Reshape", {made(b, {1, 1, 100, 64}), b.int64s({100, 64})});
  b.output("y", b.op("Gemm", {x, w}, {{"transB", 1}}));
  EXPECT_NEAR(variance(drawn(finish(b), 7)), 2.0 / 64, 0.0015);
}

// Convolution, normalization, a residual, Softmax: what the stored networks are made of.
TEST_F(SeededWeights, TheOutputDependsOnTheInput) {
  const auto net = [&] {
    GraphBuilder b(library_.ops());
    Value x = b.input("x", tensor_type(ElementType::kFloat, {1, 3, 8, 8}));
    const auto block = [&](Value from, int64_t channels) {
      const Value conv = b.op("Conv", {from, made(b, {16, channels, 3, 3})},
                              {{"pads", std::vector<int64_t>{1, 1, 1, 1}}});
      return b.op("BatchNormalization",
                  {conv, made(b, {16}), made(b, {16}), made(b, {16}), made(b, {16})});
    };
    x = b.op("Relu", {block(x, 3)});
    for (int i = 0; i < 8; ++i) x = b.op("Relu", {b.op("Sum", {x, block(x, 16)})});
    const Value flat = b.op("Flatten", {b.op("GlobalAveragePool", {x})});
    b.output("y", b.op("Softmax", {b.op("Gemm", {flat, made(b, {10, 16})}, {{"transB", 1}})}));
    return finish(b);
  };
  EXPECT_EQ(count_differing(net()), 0) << "with equal parameters nothing of the input is left";
  auto seeded = seeded_weights(library_.ops(), net(), 7);
  ASSERT_TRUE(seeded.is_ok()) << seeded.status().to_string();
  EXPECT_GE(count_differing(std::move(**seeded)), 5) << "of ten";
}

TEST_F(SeededWeights, StatesAndTablesKeepTheirValue) {
  GraphBuilder b(library_.ops());
  const Value x = b.input("x", tensor_type(ElementType::kInt64, {2}));
  b.output("y", b.op("Gather", {made(b, {4, 8}), x}));
  const auto seeded = seeded_weights(library_.ops(), finish(b), 7);
  ASSERT_TRUE(seeded.is_ok());
  EXPECT_FALSE(seeded->has_value());
}

}  // namespace
}  // namespace eddy
