// Arrays of floats and plain loops over them: what the models are checked against.
//
// Shapes are the caller's business: mismatches are programmer errors.
// Threads: pure. Cost: one thread, no blocking, sums from first to last.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "graph/base/random.h"
#include "graph/io/host_value.h"

namespace eddy::dynamic {

struct Array {
  std::vector<int64_t> dims;
  std::vector<float> values;  // row-major

  int64_t rows() const { return dims.empty() ? 1 : dims[0]; }
  int64_t columns() const { return static_cast<int64_t>(values.size()) / rows(); }
  float& at(int64_t row, int64_t column) {
    return values[static_cast<size_t>(row * columns() + column)];
  }
  float at(int64_t row, int64_t column) const {
    return values[static_cast<size_t>(row * columns() + column)];
  }
};

Array zeros(std::vector<int64_t> dims);
// Uniform in [-range, range).
Array random_array(Random& random, std::vector<int64_t> dims, float range);
HostValue to_value(const Array& array);
HostValue to_value(const std::vector<int64_t>& dims, const std::vector<int64_t>& values);

// [rows, inner] * [inner, columns].
Array multiply(const Array& a, const Array& b);
// Element by element; a `b` of fewer elements is repeated along the first axes.
Array zip(const Array& a, const Array& b, const std::function<float(float, float)>& f);
Array add(const Array& a, const Array& b);
Array map(Array a, float (*f)(float));
float sigmoid(float x);
float hyperbolic(float x);
float relu(float x);
// x * weight + bias.
Array linear(const Array& x, const Array& weight, const Array& bias);

// Columns of a matrix.
Array columns(const Array& a, int64_t first, int64_t count);
Array join_columns(const Array& a, const Array& b);
// Row `row` along the first axis, without that axis.
Array row(const Array& a, int64_t row);
// Appends `a` as the next row of `rows` (empty at first).
void push_row(Array& rows, const Array& a);
int64_t argmax(const Array& a, int64_t row);
// Over the last axis of a matrix.
Array softmax(Array a);

// Images [n, c, h, w] with weights [m, c, k, k], padded so that stride 1 keeps the size.
Array convolve(const Array& x, const Array& weight, int64_t stride);
// Adds bias[m] to every position of channel m.
Array add_bias(Array x, const Array& bias);
// Largest of windows of 3 x 3 with stride 2, padded by 1.
Array max_pool(const Array& x);
// Mean over the image: [n, c].
Array pool(const Array& x);

}  // namespace eddy::dynamic
