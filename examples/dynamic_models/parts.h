// Pieces of graphs that several models use.
//
// Loops here keep all their work in the body and carry the decision as a value, as ONNX's Loop
// does, so that the models can be exported for others to run.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "examples/dynamic_models/plain.h"
#include "graph/ir/builder.h"

namespace eddy::dynamic {

using Values = std::vector<Value>;
// Next carried values, then scan rows.
using Body = std::function<Values(Value iteration, ValueSpan carried)>;

Value weight(GraphBuilder& b, const Array& array, const char* name);
Value float_input(GraphBuilder& b, const char* name, const Array& like);

// Goes round `trips` (int64 scalar) times.
Values for_loop(GraphBuilder& b, const char* name, Value trips, Values carried,
                uint32_t num_scan_outputs, const Body& body);
// Goes round at most `limit` times, until the body ends it: it gives a bool (go on?), then the next
// carried values, then scan rows.
Values while_true(GraphBuilder& b, const char* name, Value limit, Values carried,
                  uint32_t num_scan_outputs, const Body& body);

Value linear(GraphBuilder& b, Value x, Value weight, Value bias);
// Element `index` (int64 scalar) along the first axis.
Value row(GraphBuilder& b, Value x, Value index);
// Equal parts of the last axis.
Values split(GraphBuilder& b, Value x, size_t parts, int64_t size);
Value join(GraphBuilder& b, Value x, Value y, int64_t axis);
Value reshape(GraphBuilder& b, Value x, std::initializer_list<int64_t> dims);
// True when every element of a bool tensor is.
Value all_of(GraphBuilder& b, Value x);
// Padded so that stride 1 keeps the size.
Value convolve(GraphBuilder& b, Value x, const Array& weights, int64_t stride);
Value convolve(GraphBuilder& b, Value x, const Array& weights, const Array& bias, int64_t stride);
// Largest of windows of 3 x 3 with stride 2, padded by 1.
Value max_pool(GraphBuilder& b, Value x);
// Mean over the image: [n, c].
Value pool(GraphBuilder& b, Value x);

// One step of an LSTM: gates i, o, f, c from [x, h] * weight + bias.
struct LstmState {
  Value h, c;
};
LstmState lstm_step(GraphBuilder& b, Value x, LstmState state, Value weight, Value bias,
                    int64_t hidden);
struct PlainLstmState {
  Array h, c;
};
PlainLstmState lstm_step(const Array& x, const PlainLstmState& state, const Array& weight,
                         const Array& bias);

}  // namespace eddy::dynamic
