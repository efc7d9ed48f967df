#include "examples/dynamic_models/parts.h"

namespace eddy::dynamic {

Value weight(GraphBuilder& b, const Array& array, const char* name) {
  const Value result = b.tensor<float>(Dims(std::span(array.dims)), array.values);
  b.set_name(result, name);
  return result;
}

Value float_input(GraphBuilder& b, const char* name, const Array& like) {
  return b.input(name, tensor_type(ElementType::kFloat, Dims(std::span(like.dims))));
}

Values for_loop(GraphBuilder& b, const char* name, Value trips, Values carried,
                uint32_t num_scan_outputs, const Body& body) {
  const Value always = b.scalar(true);
  return b.while_loop(
      {.name = name,
       .initial = std::move(carried),
       .trip_limit = trips,
       .num_scan_outputs = num_scan_outputs},
      [&](Value, ValueSpan values) {
        return WhileTest{always, {values.begin(), values.end()}};
      },
      body);
}

Values while_true(GraphBuilder& b, const char* name, Value limit, Values carried,
                  uint32_t num_scan_outputs, const Body& body) {
  carried.insert(carried.begin(), b.scalar(true));
  return b.while_loop(
      {.name = name,
       .initial = std::move(carried),
       .trip_limit = limit,
       .num_scan_outputs = num_scan_outputs},
      [](Value, ValueSpan values) {
        return WhileTest{values[0], {values.begin() + 1, values.end()}};
      },
      body);
}

Value linear(GraphBuilder& b, Value x, Value weight, Value bias) {
  return b.op("Add", {b.op("MatMul", {x, weight}), bias});
}

Value row(GraphBuilder& b, Value x, Value index) { return b.op("Gather", {x, index}); }

Values split(GraphBuilder& b, Value x, size_t parts, int64_t size) {
  const std::vector<int64_t> sizes(parts, size);
  OpOptions options;
  options.num_outputs = static_cast<int>(parts);
  const Value inputs[] = {x, b.vector(std::span(sizes))};
  return b.ops("Split", inputs, {{"axis", -1}}, options);
}

Value join(GraphBuilder& b, Value x, Value y, int64_t axis) {
  return b.op("Concat", {x, y}, {{"axis", axis}});
}

Value reshape(GraphBuilder& b, Value x, std::initializer_list<int64_t> dims) {
  return b.op("Reshape", {x, b.int64s(dims)});
}

Value all_of(GraphBuilder& b, Value x) {
  const Value numbers = b.cast(x, ElementType::kInt32);
  const Value least = b.op("ReduceMin", {numbers}, {{"keepdims", 0}});
  return b.cast(least, ElementType::kBool);
}

namespace {

Attributes window(int64_t pad, int64_t stride) {
  return {{"strides", std::vector<int64_t>{stride, stride}},
          {"pads", std::vector<int64_t>{pad, pad, pad, pad}}};
}

}  // namespace

Value convolve(GraphBuilder& b, Value x, const Array& weights, int64_t stride) {
  return b.op("Conv", {x, weight(b, weights, "filter")}, window(weights.dims[2] / 2, stride));
}

Value convolve(GraphBuilder& b, Value x, const Array& weights, const Array& bias, int64_t stride) {
  return b.op("Conv", {x, weight(b, weights, "filter"), weight(b, bias, "bias")},
              window(weights.dims[2] / 2, stride));
}

Value max_pool(GraphBuilder& b, Value x) {
  Attributes attributes = window(1, 2);
  attributes.set("kernel_shape", std::vector<int64_t>{3, 3});
  return b.op("MaxPool", {x}, std::move(attributes));
}

Value pool(GraphBuilder& b, Value x) { return b.op("Flatten", {b.op("GlobalAveragePool", {x})}); }

LstmState lstm_step(GraphBuilder& b, Value x, LstmState state, Value weight, Value bias,
                    int64_t hidden) {
  const Values gates = split(b, linear(b, join(b, x, state.h, 1), weight, bias), 4, hidden);
  if (gates.size() != 4) return {};  // the builder has an error to report
  const Value kept = b.op("Mul", {b.op("Sigmoid", {gates[2]}), state.c});
  const Value added = b.op("Mul", {b.op("Sigmoid", {gates[0]}), b.op("Tanh", {gates[3]})});
  const Value c = b.op("Add", {kept, added});
  return {b.op("Mul", {b.op("Sigmoid", {gates[1]}), b.op("Tanh", {c})}), c};
}

PlainLstmState lstm_step(const Array& x, const PlainLstmState& state, const Array& weight,
                         const Array& bias) {
  const int64_t hidden = state.h.columns();
  const Array gates = linear(join_columns(x, state.h), weight, bias);
  PlainLstmState next = state;
  for (int64_t r = 0; r < gates.rows(); ++r) {
    for (int64_t i = 0; i < hidden; ++i) {
      const float in = sigmoid(gates.at(r, i));
      const float out = sigmoid(gates.at(r, hidden + i));
      const float forget = sigmoid(gates.at(r, 2 * hidden + i));
      next.c.at(r, i) = forget * state.c.at(r, i) + in * hyperbolic(gates.at(r, 3 * hidden + i));
      next.h.at(r, i) = out * hyperbolic(next.c.at(r, i));
    }
  }
  return next;
}

}  // namespace eddy::dynamic
