// Claim: a small convolutional network learns digits that this test draws (shifted, dimmed, in
// noise): trained by the graph of make_training_step() alone, it names at least 97 % of 500 digits
// that it has not seen; before, it is no better than chance.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

#include "graph/ir/builder.h"
#include "ops/gradient/training_step.h"
#include "tests/ops/gradient/gradient_check.h"

namespace eddy::testing {
namespace {

constexpr uint64_t kSeed = 11;
constexpr int64_t kSide = 8, kBatch = 20, kSteps = 240, kUnseen = 500;

// 4 x 6 pixels each, row by row.
constexpr const char* kGlyphs[10] = {".##.#..##..##..##..#.##.", "..#..##...#...#...#..###",
                                     ".##.#..#...#..#..#..####", "###....#.##....#...####.",
                                     "#..##..#####...#...#...#", "#####...###....#...####.",
                                     ".##.#...###.#..##..#.##.", "####...#..#..#...#...#..",
                                     ".##.#..#.##.#..##..#.##.", ".##.#..##..#.###...#.##."};

struct Batch {
  TestTensor images, classes;
};

Batch draw(int64_t count, Random& random) {
  Batch batch{TestTensor(ElementType::kFloat, {count, 1, kSide, kSide}),
              TestTensor(ElementType::kInt64, {count})};
  for (int64_t n = 0; n < count; ++n) {
    const uint64_t digit = random.below(10);
    batch.classes.view().mutable_as<int64_t>()[n] = static_cast<int64_t>(digit);
    float* image = batch.images.view().mutable_as<float>() + n * kSide * kSide;
    for (int64_t i = 0; i < kSide * kSide; ++i) image[i] = random.uniform(-0.25f, 0.25f);
    const auto right = static_cast<int64_t>(random.below(5));
    const auto down = static_cast<int64_t>(random.below(3));
    const float ink = random.uniform(0.7f, 1.0f);
    for (int64_t i = 0; i < 24; ++i) {
      if (kGlyphs[digit][i] == '#') image[(down + i / 4) * kSide + right + i % 4] += ink;
    }
  }
  return batch;
}

Graph make_network(Random& random) {
  GraphBuilder b(gradient_ops());
  const auto weights = [&](const char* name, const Dims& dims, double size) {
    const TestTensor start = TestTensor::random(ElementType::kFloat, dims, random, -size, size);
    return b.constant(start.view(), name);
  };
  const int64_t batch = b.symbol("batch");
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {batch, 1, kSide, kSide}));
  const Value classes = b.input("classes", tensor_type(ElementType::kInt64, {batch}));
  const std::vector<int64_t> pads(4, 1), two(2, 2);
  const Value conv = b.op("Conv", {x, weights("w1", {8, 1, 3, 3}, 0.5), weights("b1", {8}, 0.1)},
                          {{"pads", pads}});
  const Value pooled =
      b.op("MaxPool", {b.op("Relu", {conv})}, {{"kernel_shape", two}, {"strides", two}});
  const Value flat = b.op("Flatten", {pooled});
  const Value hidden = b.op(
      "Tanh", {b.op("Gemm", {flat, weights("w2", {128, 24}, 0.12), weights("b2", {24}, 0.1)})});
  const Value scores =
      b.op("Gemm", {hidden, weights("w3", {24, 10}, 0.3), weights("b3", {10}, 0.1)});
  b.output("scores", scores);
  b.output("loss", b.op("SoftmaxCrossEntropyLoss", {scores, classes}));
  auto graph = b.finish();
  EXPECT_TRUE(graph.is_ok()) << graph.status().to_string();
  return std::move(*graph);
}

double share_named(const TestTensor& scores, const TestTensor& classes) {
  const float* row = scores.view().as<float>();
  int64_t right = 0;
  for (int64_t n = 0; n < classes.count(); ++n, row += 10) {
    right += std::max_element(row, row + 10) - row == classes.view().as<int64_t>()[n];
  }
  return static_cast<double>(right) / static_cast<double>(classes.count());
}

TEST(DigitsTest, ANetworkLearnsDigits) {
  Random random(kSeed);
  auto step = make_training_step(make_network(random), gradient_ops(), gradient_rules(),
                                 {.loss = "loss", .optimizer = Optimizer::kAdam});
  ASSERT_TRUE(step.is_ok()) << step.status().to_string();
  NamedValues inputs;
  for (const TrainingBinding& binding : step->bindings) {
    TestTensor start(binding.initial.element, binding.initial.dims);
    std::memcpy(start.view().data, binding.initial.view().data, start.view().size_bytes());
    inputs[binding.input] = start;
  }
  inputs[step->rate] = TestTensor::scalar(0.012f);
  const auto run = [&](const Batch& batch, int64_t count) {
    inputs["x"] = batch.images;
    inputs["classes"] = batch.classes;
    inputs[step->step] = TestTensor::scalar(count);
    return run_graph(step->graph, inputs);
  };
  const Batch unseen = draw(kUnseen, random);
  const auto before = run(unseen, 1);
  ASSERT_TRUE(before.is_ok()) << before.status().to_string();
  EXPECT_LT(share_named(before->outputs.at("scores").tensor(), unseen.classes), 0.3);
  for (int64_t count = 1; count <= kSteps; ++count) {
    const auto made = run(draw(kBatch, random), count);
    ASSERT_TRUE(made.is_ok()) << made.status().to_string();
    for (const TrainingBinding& binding : step->bindings) {
      inputs[binding.input] = made->outputs.at(binding.output);
    }
  }
  const auto after = run(unseen, 1);
  ASSERT_TRUE(after.is_ok()) << after.status().to_string();
  const double share = share_named(after->outputs.at("scores").tensor(), unseen.classes);
  printf("seed %llu: %.1f %% of %lld unseen digits after %lld steps of %lld, loss %.4f\n",
         static_cast<unsigned long long>(kSeed), 100 * share, static_cast<long long>(kUnseen),
         static_cast<long long>(kSteps), static_cast<long long>(kBatch),
         number_at(after->outputs.at("loss").tensor().view(), 0));
  EXPECT_GE(share, 0.97);
}

}  // namespace
}  // namespace eddy::testing
