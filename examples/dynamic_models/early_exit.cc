#include "examples/dynamic_models/early_exit.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "examples/dynamic_models/parts.h"

namespace eddy::dynamic {
namespace {

constexpr int64_t kClasses = 10;

struct Stage {
  int64_t stride = 1;
  Array first, second;  // filters
  Array judge;          // [channels, classes]
};

struct EarlyExit {
  EarlyExitSize size;
  std::vector<Stage> stages;
  Array x;
};

EarlyExit draw(const EarlyExitSize& size) {
  Random random(size.seed);
  EarlyExit model{size, {}, {}};
  int64_t from = 3;
  for (int64_t i = 0; i < size.stages; ++i) {
    const int64_t to = size.channels;
    const auto range = [](int64_t inputs) { return 3 / std::sqrt(static_cast<float>(inputs)); };
    model.stages.push_back(
        {i % 2 == 1 ? 2 : 1, random_array(random, {to, from, 3, 3}, range(9 * from)),
         random_array(random, {to, to, 3, 3}, range(9 * to)),
         // Later classifiers are surer.
         random_array(random, {to, kClasses}, 0.4f * static_cast<float>(i + 1))});
    from = to;
  }
  model.x = random_array(random, {size.batch, 3, size.image, size.image}, 1);
  return model;
}

// {shares, stages} of stage `index` or of a later one.
Values build_stage(GraphBuilder& b, const EarlyExit& model, size_t index, Value x,
                   Value threshold) {
  const Stage& stage = model.stages[index];
  x = b.op("Relu", {convolve(b, x, stage.first, stage.stride)});
  x = b.op("Relu", {convolve(b, x, stage.second, 1)});
  const Value scores = b.op("MatMul", {pool(b, x), weight(b, stage.judge, "judge")});
  const Value shares = b.op("Softmax", {scores}, {{"axis", -1}});
  const Value stages = b.scalar(static_cast<int64_t>(index + 1));
  if (index + 1 == model.stages.size()) return {shares, stages};
  const Value largest = b.op("ReduceMax", {shares, b.int64s({1})}, {{"keepdims", 0}});
  const Value least_sure = b.op("ReduceMin", {largest}, {{"keepdims", 0}});
  return b.if_else(
      b.op("GreaterOrEqual", {least_sure, threshold}),
      [&]() -> Values {
        return {shares, stages};
      },
      [&] { return build_stage(b, model, index + 1, x, threshold); });
}

Result<Graph> build(const EarlyExit& model, const OpTable& ops) {
  GraphBuilder b(ops, "early_exit");
  const Value x = float_input(b, "x", model.x);
  const Value threshold = b.input("threshold", tensor_type(ElementType::kFloat, {}));
  const Values results = build_stage(b, model, 0, x, threshold);
  if (results.size() != 2) return b.finish();
  b.output("shares", results[0]);
  b.output("stages", results[1]);
  return b.finish();
}

PlainResult run_plainly(const EarlyExit& model) {
  Array x = model.x;
  Array shares;
  int64_t stages = 0;
  for (const Stage& stage : model.stages) {
    x = map(convolve(x, stage.first, stage.stride), relu);
    x = map(convolve(x, stage.second, 1), relu);
    shares = softmax(multiply(pool(x), stage.judge));
    ++stages;
    float least_sure = 1;
    for (int64_t r = 0; r < shares.rows(); ++r) {
      least_sure = std::min(least_sure, shares.at(r, argmax(shares, r)));
    }
    if (least_sure >= model.size.threshold) break;
  }
  return {{to_value(shares), to_value({}, {stages})}, stages};
}

}  // namespace

Model make_early_exit(const EarlyExitSize& size) {
  const auto model = std::make_shared<const EarlyExit>(draw(size));
  return {"early_exit",
          std::to_string(size.stages) + " stages of " + std::to_string(size.channels) +
              " channels, image " + std::to_string(size.image),
          size.batch,
          "",
          {{"x", to_value(model->x)}, {"threshold", to_value(Array{{}, {size.threshold}})}},
          [model](const OpTable& ops) { return build(*model, ops); },
          [model] { return run_plainly(*model); }};
}

}  // namespace eddy::dynamic
