#include <cmath>

#include "examples/dynamic_models/parts.h"
#include "examples/nets/net.h"

namespace eddy::nets {
namespace {

// Mean square of what an LSTM makes of numbers of mean square 1, about.
constexpr float kPowerOfStates = 0.1f;

struct Shape {
  int64_t steps, features, hidden, classes;
};

Shape shape_of(Scale scale) {
  return scale == Scale::kSmall ? Shape{5, 12, 16, 7} : Shape{100, 512, 512, 512};
}

// For what is applied to `fan_in` numbers of mean square `power`.
Value draw(GraphBuilder& b, Random& random, std::vector<int64_t> dims, int64_t fan_in, float power,
           const char* name) {
  const float range = std::sqrt(3 / (static_cast<float>(fan_in) * power));
  return dynamic::weight(b, dynamic::random_array(random, std::move(dims), range), name);
}

// An LSTM over x, [steps, 1, features] of mean square `power`, in 1 or 2 `directions`:
// [steps, 1, directions * hidden].
Value recur(GraphBuilder& b, Random& random, Value x, const Shape& shape, int64_t features,
            float power, int64_t directions) {
  const int64_t hidden = shape.hidden, gates = 4 * hidden;
  const Value inputs[] = {
      x, draw(b, random, {directions, gates, features}, features, power, "weights"),
      draw(b, random, {directions, gates, hidden}, hidden, 1, "recurrence"),
      draw(b, random, {directions, 2 * gates}, 100, 1, "bias")};
  const Value states =  // [steps, directions, 1, hidden]
      b.op("LSTM", inputs,
           {{"hidden_size", hidden}, {"direction", directions == 2 ? "bidirectional" : "forward"}});
  const Value turned = b.op("Transpose", {states}, {{"perm", std::vector<int64_t>{0, 2, 1, 3}}});
  return dynamic::reshape(b, turned, {shape.steps, 1, directions * hidden});
}

}  // namespace

Result<Net> lstm(const OpTable& ops, Scale scale, uint64_t seed) {
  const Shape shape = shape_of(scale);
  const int64_t hidden = shape.hidden;
  Random random(seed);
  GraphBuilder b(ops, "lstm");
  const dynamic::Array x =
      dynamic::random_array(random, {shape.steps, 1, shape.features}, std::sqrt(3.0f));
  Value y = dynamic::float_input(b, "x", x);
  y = recur(b, random, y, shape, shape.features, 1, 1);
  y = recur(b, random, y, shape, hidden, kPowerOfStates, 2);
  const Value rows = dynamic::reshape(b, y, {shape.steps, 2 * hidden});
  const Value classes =
      draw(b, random, {2 * hidden, shape.classes}, 2 * hidden, kPowerOfStates, "classes");
  const Value bias = draw(b, random, {shape.classes}, 100, 1, "bias");
  b.output("scores", b.op("Gemm", {rows, classes, bias}));
  EDDY_ASSIGN_OR_RETURN(Graph graph, b.finish());
  return Net{std::move(graph), {{"x", dynamic::to_value(x)}}};
}

}  // namespace eddy::nets
