#include "examples/dynamic_models/lstm.h"

#include <cmath>
#include <memory>

#include "examples/dynamic_models/parts.h"

namespace eddy::dynamic {
namespace {

struct Lstm {
  LstmSize size;
  std::vector<Array> weights;  // of each layer: [2 * hidden, 4 * hidden]
  std::vector<Array> biases;
  Array x;
};

Lstm draw(const LstmSize& size) {
  Random random(size.seed);
  Lstm lstm{size, {}, {}, random_array(random, {size.steps, size.batch, size.hidden}, 1)};
  const float range = 1 / std::sqrt(static_cast<float>(size.hidden));
  for (int64_t layer = 0; layer < size.layers; ++layer) {
    lstm.weights.push_back(random_array(random, {2 * size.hidden, 4 * size.hidden}, range));
    lstm.biases.push_back(random_array(random, {4 * size.hidden}, range));
  }
  return lstm;
}

Result<Graph> build(const Lstm& lstm, const OpTable& ops) {
  GraphBuilder b(ops, "lstm");
  const Value x = float_input(b, "x", lstm.x);
  const Value steps = b.input("steps", tensor_type(ElementType::kInt64, {}));
  const size_t layers = static_cast<size_t>(lstm.size.layers);
  Values weights, biases;
  for (size_t layer = 0; layer < layers; ++layer) {
    weights.push_back(weight(b, lstm.weights[layer], "weight"));
    biases.push_back(weight(b, lstm.biases[layer], "bias"));
  }
  const Value zero = weight(b, zeros({lstm.size.batch, lstm.size.hidden}), "zero");
  const Values results = for_loop(
      b, "steps", steps, Values(2 * layers, zero), 1, [&](Value iteration, ValueSpan carried) {
        Values next;
        Value h = row(b, x, iteration);
        for (size_t layer = 0; layer < layers; ++layer) {
          const LstmState state = lstm_step(b, h, {carried[2 * layer], carried[2 * layer + 1]},
                                            weights[layer], biases[layer], lstm.size.hidden);
          next.insert(next.end(), {state.h, state.c});
          h = state.h;
        }
        next.push_back(h);
        return next;
      });
  if (results.empty()) return b.finish();
  b.output("h", results.back());
  b.output("c", results[2 * layers - 1]);
  return b.finish();
}

PlainResult run_plainly(const Lstm& lstm) {
  const Array zero = zeros({lstm.size.batch, lstm.size.hidden});
  std::vector<PlainLstmState> states(lstm.weights.size(), {zero, zero});
  Array rows;
  for (int64_t step = 0; step < lstm.size.steps; ++step) {
    Array h = row(lstm.x, step);
    for (size_t layer = 0; layer < states.size(); ++layer) {
      states[layer] = lstm_step(h, states[layer], lstm.weights[layer], lstm.biases[layer]);
      h = states[layer].h;
    }
    push_row(rows, h);
  }
  return {{to_value(rows), to_value(states.back().c)}, lstm.size.steps};
}

}  // namespace

Model make_lstm(const LstmSize& size) {
  const auto lstm = std::make_shared<const Lstm>(draw(size));
  return {"lstm",
          std::to_string(size.layers) + " layers, " + std::to_string(size.steps) +
              " steps, hidden " + std::to_string(size.hidden),
          size.batch,
          "steps",
          {{"x", to_value(lstm->x)}, {"steps", to_value({}, {size.steps})}},
          [lstm](const OpTable& ops) { return build(*lstm, ops); },
          [lstm] { return run_plainly(*lstm); }};
}

}  // namespace eddy::dynamic
