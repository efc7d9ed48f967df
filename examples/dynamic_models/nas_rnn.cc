#include "examples/dynamic_models/nas_rnn.h"

#include <cmath>
#include <memory>

#include "examples/dynamic_models/parts.h"

namespace eddy::dynamic {
namespace {

struct NasRnn {
  NasRnnSize size;
  Array from_x, from_h;  // [hidden, 8 * hidden]
  Array x;
};

NasRnn draw(const NasRnnSize& size) {
  Random random(size.seed);
  const float range = 1 / std::sqrt(static_cast<float>(size.hidden));
  return {size, random_array(random, {size.hidden, 8 * size.hidden}, range),
          random_array(random, {size.hidden, 8 * size.hidden}, range),
          random_array(random, {size.steps, size.batch, size.hidden}, 1)};
}

// {c, h} after the eight parts of x and of h.
Values cell(GraphBuilder& b, const Values& x, const Values& h, Value c) {
  const auto act = [&](const char* op, const char* combine, size_t i) {
    return b.op(op, {b.op(combine, {x[i], h[i]})});
  };
  const auto pair = [&](const char* op, const char* combine, Value left, Value right) {
    return b.op(op, {b.op(combine, {left, right})});
  };
  const Value a0 = act("Sigmoid", "Add", 0), a1 = act("Relu", "Add", 1);
  const Value a2 = act("Sigmoid", "Add", 2), a3 = act("Relu", "Mul", 3);
  const Value a4 = act("Tanh", "Add", 4), a5 = act("Sigmoid", "Add", 5);
  const Value a6 = act("Tanh", "Add", 6), a7 = act("Sigmoid", "Add", 7);
  const Value b0 = pair("Tanh", "Mul", a0, a1), b1 = pair("Tanh", "Add", a2, a3);
  const Value b2 = pair("Tanh", "Mul", a4, a5), b3 = pair("Sigmoid", "Add", a6, a7);
  const Value next_c = b.op("Mul", {pair("Tanh", "Add", b0, c), b1});
  return {next_c, pair("Tanh", "Mul", next_c, pair("Tanh", "Add", b2, b3))};
}

Result<Graph> build(const NasRnn& nas, const OpTable& ops) {
  GraphBuilder b(ops, "nas_rnn");
  const Value x = float_input(b, "x", nas.x);
  const Value steps = b.input("steps", tensor_type(ElementType::kInt64, {}));
  const Value from_x = weight(b, nas.from_x, "from_x");
  const Value from_h = weight(b, nas.from_h, "from_h");
  const Value zero = weight(b, zeros({nas.size.batch, nas.size.hidden}), "zero");
  const Values results =
      for_loop(b, "steps", steps, {zero, zero}, 1, [&](Value iteration, ValueSpan carried) {
        const int64_t hidden = nas.size.hidden;
        const Value now = row(b, x, iteration);
        const Values x_parts = split(b, b.op("MatMul", {now, from_x}), 8, hidden);
        const Values h_parts = split(b, b.op("MatMul", {carried[1], from_h}), 8, hidden);
        if (x_parts.size() != 8 || h_parts.size() != 8) return Values{};
        const Values next = cell(b, x_parts, h_parts, carried[0]);
        return Values{next[0], next[1], next[1]};
      });
  if (results.empty()) return b.finish();
  b.output("h", results[2]);
  b.output("c", results[0]);
  return b.finish();
}

void step_plainly(const Array& x, const Array& h, Array& next_h, Array& c) {
  const int64_t hidden = c.columns();
  for (int64_t r = 0; r < c.rows(); ++r) {
    for (int64_t i = 0; i < hidden; ++i) {
      const auto sum = [&](int64_t part) {
        return x.at(r, part * hidden + i) + h.at(r, part * hidden + i);
      };
      const float product = x.at(r, 3 * hidden + i) * h.at(r, 3 * hidden + i);
      const float b0 = hyperbolic(sigmoid(sum(0)) * relu(sum(1)));
      const float b1 = hyperbolic(sigmoid(sum(2)) + relu(product));
      const float b2 = hyperbolic(hyperbolic(sum(4)) * sigmoid(sum(5)));
      const float b3 = sigmoid(hyperbolic(sum(6)) + sigmoid(sum(7)));
      c.at(r, i) = hyperbolic(b0 + c.at(r, i)) * b1;
      next_h.at(r, i) = hyperbolic(c.at(r, i) * hyperbolic(b2 + b3));
    }
  }
}

PlainResult run_plainly(const NasRnn& nas) {
  Array c = zeros({nas.size.batch, nas.size.hidden});
  Array h = c;
  Array rows;
  for (int64_t step = 0; step < nas.size.steps; ++step) {
    const Array from_x = multiply(row(nas.x, step), nas.from_x);
    step_plainly(from_x, multiply(h, nas.from_h), h, c);
    push_row(rows, h);
  }
  return {{to_value(rows), to_value(c)}, nas.size.steps};
}

}  // namespace

Model make_nas_rnn(const NasRnnSize& size) {
  const auto nas = std::make_shared<const NasRnn>(draw(size));
  return {"nas_rnn",
          std::to_string(size.steps) + " steps, hidden " + std::to_string(size.hidden),
          size.batch,
          "steps",
          {{"x", to_value(nas->x)}, {"steps", to_value({}, {size.steps})}},
          [nas](const OpTable& ops) { return build(*nas, ops); },
          [nas] { return run_plainly(*nas); }};
}

}  // namespace eddy::dynamic
