#include "examples/dynamic_models/adaptive_time.h"

#include <cmath>
#include <memory>

#include "examples/dynamic_models/parts.h"

namespace eddy::dynamic {
namespace {

constexpr float kEnough = 0.99f;

struct AdaptiveTime {
  AdaptiveTimeSize size;
  Array cell, bias;       // [2 * hidden, hidden]
  Array halt, halt_bias;  // [hidden, 1]
  Array x;
};

AdaptiveTime draw(const AdaptiveTimeSize& size) {
  Random random(size.seed);
  const float root = std::sqrt(static_cast<float>(size.hidden));
  return {size,
          random_array(random, {2 * size.hidden, size.hidden}, 2 / root),
          random_array(random, {size.hidden}, 1),
          random_array(random, {size.hidden, 1}, 4 / root),
          Array{{1}, {-1.5f}},
          random_array(random, {size.steps, size.batch, size.hidden}, 1)};
}

// The captured values that a pondering step needs.
struct Known {
  Value cell, bias, halt, halt_bias, last, enough, one, none;
};

// Carried: state, halted [batch, 1], mixed state.
Values ponder(GraphBuilder& b, const Known& known, Value x, Value iteration, ValueSpan carried) {
  const Value state = carried[0], halted = carried[1];
  const Value next = b.op("Tanh", {linear(b, join(b, x, state, 1), known.cell, known.bias)});
  const Value chance = b.op("Sigmoid", {linear(b, next, known.halt, known.halt_bias)});
  const Value is_out = b.op("GreaterOrEqual", {iteration, known.last});
  const Value is_enough = b.op("GreaterOrEqual", {b.op("Add", {halted, chance}), known.enough});
  const Value is_last = b.op("Or", {is_enough, is_out});
  const Value rest = b.op("Sub", {known.one, halted});
  const Value is_going = b.op("Less", {halted, known.enough});
  const Value share = b.op("Where", {is_going, b.op("Where", {is_last, rest, chance}), known.none});
  const Value sum = b.op("Add", {halted, share});
  const Value is_over = all_of(b, b.op("GreaterOrEqual", {sum, known.enough}));
  return {b.op("Not", {is_over}), b.op("Where", {is_going, next, state}), sum,
          b.op("Add", {carried[2], b.op("Mul", {share, next})})};
}

Result<Graph> build(const AdaptiveTime& model, const OpTable& ops) {
  const AdaptiveTimeSize& size = model.size;
  GraphBuilder b(ops, "adaptive_time");
  const Value x = float_input(b, "x", model.x);
  const Value steps = b.input("steps", tensor_type(ElementType::kInt64, {}));
  const Known known{weight(b, model.cell, "cell"),
                    weight(b, model.bias, "bias"),
                    weight(b, model.halt, "halt"),
                    weight(b, model.halt_bias, "halt_bias"),
                    b.scalar(size.patience - 1),
                    b.scalar(kEnough),
                    b.scalar(1.0f),
                    b.scalar(0.0f)};
  const Value zero = weight(b, zeros({size.batch, size.hidden}), "zero");
  const Value column = weight(b, zeros({size.batch, 1}), "column");
  const Value count = b.scalar<int64_t>(0);
  const Values results =
      for_loop(b, "steps", steps, {zero, count}, 2, [&](Value iteration, ValueSpan carried) {
        const Value now = row(b, x, iteration);
        const Values pondered =
            while_true(b, "ponder", b.scalar(size.patience), {carried[0], column, zero, count}, 0,
                       [&](Value i, ValueSpan inner) {
                         Values next = ponder(b, known, now, i, inner);
                         next.push_back(b.op("Add", {inner[3], b.scalar<int64_t>(1)}));
                         return next;
                       });
        if (pondered.size() != 4) return Values{};
        return Values{pondered[2], b.op("Add", {carried[1], pondered[3]}), pondered[2],
                      pondered[3]};
      });
  if (results.empty()) return b.finish();
  b.output("rows", results[2]);
  b.output("ponders", results[3]);
  b.output("total", results[1]);
  return b.finish();
}

// The mixed state after one step of the input, and how often it was pondered.
int64_t ponder_plainly(const AdaptiveTime& model, const Array& x, Array& state) {
  Array mixed = zeros(state.dims);
  std::vector<float> halted(static_cast<size_t>(model.size.batch));
  int64_t count = 0;
  for (bool is_going = true; is_going && count < model.size.patience; ++count) {
    const Array next = map(linear(join_columns(x, state), model.cell, model.bias), hyperbolic);
    const Array chances = map(linear(next, model.halt, model.halt_bias), sigmoid);
    is_going = false;
    for (size_t r = 0; r < halted.size(); ++r) {
      if (halted[r] >= kEnough) continue;
      const bool is_last =
          halted[r] + chances.values[r] >= kEnough || count == model.size.patience - 1;
      const float share = is_last ? 1 - halted[r] : chances.values[r];
      for (int64_t i = 0; i < model.size.hidden; ++i) {
        const int64_t at = static_cast<int64_t>(r);
        state.at(at, i) = next.at(at, i);
        mixed.at(at, i) += share * next.at(at, i);
      }
      halted[r] += share;
      is_going = is_going || halted[r] < kEnough;
    }
  }
  state = mixed;
  return count;
}

PlainResult run_plainly(const AdaptiveTime& model) {
  Array state = zeros({model.size.batch, model.size.hidden});
  Array rows;
  std::vector<int64_t> ponders;
  int64_t total = 0;
  for (int64_t step = 0; step < model.size.steps; ++step) {
    ponders.push_back(ponder_plainly(model, row(model.x, step), state));
    total += ponders.back();
    push_row(rows, state);
  }
  return {{to_value(rows), to_value({model.size.steps}, ponders), to_value({}, {total})}, total};
}

}  // namespace

Model make_adaptive_time(const AdaptiveTimeSize& size) {
  const auto model = std::make_shared<const AdaptiveTime>(draw(size));
  return {"adaptive_time",
          std::to_string(size.steps) + " steps, hidden " + std::to_string(size.hidden),
          size.batch,
          "",
          {{"x", to_value(model->x)}, {"steps", to_value({}, {size.steps})}},
          [model](const OpTable& ops) { return build(*model, ops); },
          [model] { return run_plainly(*model); }};
}

}  // namespace eddy::dynamic
