// A small convolutional network learns digits that this program draws: shifted, dimmed, in noise.
//
// Shows: Trainer. Forward pass, gradients and update are one planned graph; parameters lie in two
// buffers that take turns. What was trained is a model like any other.
#include <algorithm>
#include <cstdio>
#include <vector>

#include "examples/report.h"
#include "graph/base/random.h"
#include "graph/ir/builder.h"
#include "ops/gradient/standard_gradients.h"
#include "runtime/training/trainer.h"

namespace eddy {
namespace {

constexpr uint64_t kSeed = 11;
constexpr int64_t kSide = 8, kBatch = 20, kSteps = 360, kUnseen = 1000;

// 4 x 6 pixels each, row by row.
constexpr const char* kGlyphs[10] = {".##.#..##..##..##..#.##.", "..#..##...#...#...#..###",
                                     ".##.#..#...#..#..#..####", "###....#.##....#...####.",
                                     "#..##..#####...#...#...#", "#####...###....#...####.",
                                     ".##.#...###.#..##..#.##.", "####...#..#..#...#...#..",
                                     ".##.#..#.##.#..##..#.##.", ".##.#..##..#.###...#.##."};

struct Batch {
  Tensor images, classes;
};

Batch draw(int64_t count, Random& random) {
  Batch batch{Tensor::zeros(ElementType::kFloat, {count, 1, kSide, kSide}),
              Tensor::zeros(ElementType::kInt64, {count})};
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

Result<Graph> build(const Library& library, Random& random) {
  GraphBuilder b(library.ops());
  const auto weights = [&](const char* name, const Dims& dims, float size) {
    std::vector<float> values(static_cast<size_t>(*dims.count()));
    for (float& each : values) each = random.uniform(-size, size);
    return b.constant({values.data(), dims.data(), dims.rank(), ElementType::kFloat}, name);
  };
  const int64_t batch = b.symbol("batch");
  const Value x = b.input("x", tensor_type(ElementType::kFloat, {batch, 1, kSide, kSide}));
  const Value classes = b.input("classes", tensor_type(ElementType::kInt64, {batch}));
  const std::vector<int64_t> pads(4, 1), two(2, 2);
  const Value conv = b.op("Conv", {x, weights("w1", {8, 1, 3, 3}, 0.5f), weights("b1", {8}, 0.1f)},
                          {{"pads", pads}});
  const Value pooled =
      b.op("MaxPool", {b.op("Relu", {conv})}, {{"kernel_shape", two}, {"strides", two}});
  const Value hidden =
      b.op("Tanh", {b.op("Gemm", {b.op("Flatten", {pooled}), weights("w2", {128, 24}, 0.12f),
                                  weights("b2", {24}, 0.1f)})});
  const Value scores =
      b.op("Gemm", {hidden, weights("w3", {24, 10}, 0.3f), weights("b3", {10}, 0.1f)});
  b.output("scores", scores);
  b.output("loss", b.op("SoftmaxCrossEntropyLoss", {scores, classes}));
  return b.finish();
}

// Of the model as it is now: the share of digits that it names rightly.
Result<double> share_named(const Library& library, const Trainer& trainer, const Batch& digits) {
  EDDY_ASSIGN_OR_RETURN(Graph model, trainer.model());
  EDDY_ASSIGN_OR_RETURN(auto session, Session::create(library, std::move(model), {}));
  EDDY_ASSIGN_OR_RETURN(const NamedTensors outputs,
                        session->run({{"x", digits.images}, {"classes", digits.classes}}));
  const float* row = outputs[0].second.values<float>().data();
  int64_t right = 0;
  for (const int64_t digit : digits.classes.values<int64_t>()) {
    right += std::max_element(row, row + 10) - row == digit;
    row += 10;
  }
  return static_cast<double>(right) / static_cast<double>(kUnseen);
}

Status run() {
  const Library library;
  GradientTable rules;
  EDDY_RETURN_IF_ERROR(add_standard_gradients(rules));
  Random random(kSeed);
  EDDY_ASSIGN_OR_RETURN(Graph model, build(library, random));
  EDDY_ASSIGN_OR_RETURN(auto trainer,
                        Trainer::create(library, std::move(model), rules,
                                        {.loss = "loss", .optimizer = Optimizer::kAdam}, {}));
  const Batch unseen = draw(kUnseen, random);
  EDDY_ASSIGN_OR_RETURN(const double before, share_named(library, *trainer, unseen));
  for (int64_t step = 0; step < kSteps; ++step) {
    const Batch batch = draw(kBatch, random);
    EDDY_RETURN_IF_ERROR(
        trainer->step({{"x", batch.images}, {"classes", batch.classes}}, 0.012f).status());
  }
  EDDY_ASSIGN_OR_RETURN(const double after, share_named(library, *trainer, unseen));
  std::printf(
      "%lld unseen digits, seed %llu: at first %.1f %% are named, after %lld steps %.1f %%\n",
      static_cast<long long>(kUnseen), static_cast<unsigned long long>(kSeed), 100 * before,
      static_cast<long long>(kSteps), 100 * after);
  const bool has_learned = before < 0.3 && after >= 0.97;
  return has_learned ? Status::ok() : run_failed("fewer than 97 % are named");
}

}  // namespace
}  // namespace eddy

int main() { return eddy::report(eddy::run()); }
