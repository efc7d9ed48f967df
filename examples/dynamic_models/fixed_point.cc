#include "examples/dynamic_models/fixed_point.h"

#include <algorithm>
#include <cmath>
#include <memory>

#include "examples/dynamic_models/parts.h"

namespace eddy::dynamic {
namespace {

struct FixedPoint {
  FixedPointSize size;
  Array state, input;  // [hidden, hidden]
  Array bias;
  Array x;
};

FixedPoint draw(const FixedPointSize& size) {
  Random random(size.seed);
  // The spectral radius stays below 1 and the layer contracts.
  const float range = 1 / std::sqrt(static_cast<float>(size.hidden));
  return {size, random_array(random, {size.hidden, size.hidden}, 1.2f * range),
          random_array(random, {size.hidden, size.hidden}, range),
          random_array(random, {size.hidden}, range),
          random_array(random, {size.batch, size.hidden}, 1)};
}

Result<Graph> build(const FixedPoint& model, const OpTable& ops) {
  GraphBuilder b(ops, "fixed_point");
  const Value x = float_input(b, "x", model.x);
  const Value tolerance = b.input("tolerance", tensor_type(ElementType::kFloat, {}));
  const Value limit = b.input("limit", tensor_type(ElementType::kInt64, {}));
  const Value state = weight(b, model.state, "state");
  const Value drive = linear(b, x, weight(b, model.input, "input"), weight(b, model.bias, "bias"));
  const Value zero = weight(b, zeros(model.x.dims), "zero");
  const Values results = while_true(b, "solve", limit, {zero}, 1, [&](Value, ValueSpan carried) {
    const Value z = b.op("Tanh", {b.op("Add", {b.op("MatMul", {carried[0], state}), drive})});
    const Value moved = b.op("Abs", {b.op("Sub", {z, carried[0]})});
    const Value change = b.op("ReduceMax", {moved}, {{"keepdims", 0}});
    return Values{b.op("GreaterOrEqual", {change, tolerance}), z, change};
  });
  if (results.empty()) return b.finish();
  b.output("changes", results[1]);
  b.output("z", results[0]);
  return b.finish();
}

PlainResult run_plainly(const FixedPoint& model) {
  const Array drive = linear(model.x, model.input, model.bias);
  Array z = zeros(model.x.dims);
  Array changes{{0}, {}};
  bool is_going = true;
  while (is_going && changes.dims[0] < model.size.limit) {
    const Array next = map(add(multiply(z, model.state), drive), hyperbolic);
    float change = 0;
    for (size_t i = 0; i < z.values.size(); ++i) {
      change = std::max(change, std::abs(next.values[i] - z.values[i]));
    }
    changes.values.push_back(change);
    ++changes.dims[0];
    z = next;
    is_going = change >= model.size.tolerance;
  }
  return {{to_value(changes), to_value(z)}, changes.dims[0]};
}

}  // namespace

Model make_fixed_point(const FixedPointSize& size) {
  const auto model = std::make_shared<const FixedPoint>(draw(size));
  return {"fixed_point",
          "hidden " + std::to_string(size.hidden),
          size.batch,
          "solve",
          {{"x", to_value(model->x)},
           {"tolerance", to_value(Array{{}, {size.tolerance}})},
           {"limit", to_value({}, {size.limit})}},
          [model](const OpTable& ops) { return build(*model, ops); },
          [model] { return run_plainly(*model); }};
}

}  // namespace eddy::dynamic
