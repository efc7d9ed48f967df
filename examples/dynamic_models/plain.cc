#include "examples/dynamic_models/plain.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace eddy::dynamic {
namespace {

HostValue copy(const void* data, ElementType element, const std::vector<int64_t>& dims) {
  return HostValue::copy_of(
      {const_cast<void*>(data), dims.data(), static_cast<int32_t>(dims.size()), element});
}

}  // namespace

Array zeros(std::vector<int64_t> dims) {
  size_t count = 1;
  for (const int64_t dim : dims) count *= static_cast<size_t>(dim);
  return {std::move(dims), std::vector<float>(count)};
}

Array random_array(Random& random, std::vector<int64_t> dims, float range) {
  Array array = zeros(std::move(dims));
  for (float& value : array.values) value = random.uniform(-range, range);
  return array;
}

HostValue to_value(const Array& array) {
  return copy(array.values.data(), ElementType::kFloat, array.dims);
}

HostValue to_value(const std::vector<int64_t>& dims, const std::vector<int64_t>& values) {
  return copy(values.data(), ElementType::kInt64, dims);
}

Array multiply(const Array& a, const Array& b) {
  Array result = zeros({a.rows(), b.columns()});
  const int64_t width = b.columns();
  for (int64_t row = 0; row < a.rows(); ++row) {
    float* const sums = &result.values[static_cast<size_t>(row * width)];
    for (int64_t k = 0; k < a.columns(); ++k) {
      const float factor = a.at(row, k);
      const float* const from = &b.values[static_cast<size_t>(k * width)];
      for (int64_t column = 0; column < width; ++column) sums[column] += factor * from[column];
    }
  }
  return result;
}

Array zip(const Array& a, const Array& b, const std::function<float(float, float)>& f) {
  Array result = a;
  for (size_t i = 0; i < a.values.size(); ++i) {
    result.values[i] = f(a.values[i], b.values[i % b.values.size()]);
  }
  return result;
}

Array add(const Array& a, const Array& b) {
  return zip(a, b, [](float x, float y) { return x + y; });
}

Array map(Array a, float (*f)(float)) {
  for (float& value : a.values) value = f(value);
  return a;
}

float sigmoid(float x) { return 1 / (1 + std::exp(-x)); }
float hyperbolic(float x) { return std::tanh(x); }
float relu(float x) { return std::max(x, 0.0f); }

Array linear(const Array& x, const Array& weight, const Array& bias) {
  return add(multiply(x, weight), bias);
}

Array columns(const Array& a, int64_t first, int64_t count) {
  Array result = zeros({a.rows(), count});
  for (int64_t row = 0; row < a.rows(); ++row) {
    for (int64_t column = 0; column < count; ++column) {
      result.at(row, column) = a.at(row, first + column);
    }
  }
  return result;
}

Array join_columns(const Array& a, const Array& b) {
  Array result{{a.rows(), a.columns() + b.columns()}, {}};
  for (int64_t row = 0; row < a.rows(); ++row) {
    for (const Array* from : {&a, &b}) {
      const auto start = from->values.begin() + row * from->columns();
      result.values.insert(result.values.end(), start, start + from->columns());
    }
  }
  return result;
}

Array row(const Array& a, int64_t row) {
  const auto start = a.values.begin() + row * a.columns();
  return {{a.dims.begin() + 1, a.dims.end()}, {start, start + a.columns()}};
}

void push_row(Array& rows, const Array& a) {
  if (rows.dims.empty()) {
    rows.dims = a.dims;
    rows.dims.insert(rows.dims.begin(), 0);
  }
  ++rows.dims[0];
  rows.values.insert(rows.values.end(), a.values.begin(), a.values.end());
}

int64_t argmax(const Array& a, int64_t row) {
  const auto start = a.values.begin() + row * a.columns();
  return std::max_element(start, start + a.columns()) - start;
}

Array softmax(Array a) {
  for (int64_t row = 0; row < a.rows(); ++row) {
    const float largest = a.at(row, argmax(a, row));
    float sum = 0;
    for (int64_t i = 0; i < a.columns(); ++i) sum += std::exp(a.at(row, i) - largest);
    for (int64_t i = 0; i < a.columns(); ++i) {
      a.at(row, i) = std::exp(a.at(row, i) - largest) / sum;
    }
  }
  return a;
}

namespace {

// Adds to `to` [oh, ow] the products of one channel of one image with one k * k filter.
void convolve_channel(const float* image, int64_t h, int64_t w, const float* filter, int64_t k,
                      int64_t stride, float* to, int64_t oh, int64_t ow) {
  const int64_t pad = k / 2;
  for (int64_t y = 0; y < oh; ++y) {
    for (int64_t ky = 0; ky < k; ++ky) {
      const int64_t from_y = y * stride + ky - pad;
      if (from_y < 0 || from_y >= h) continue;
      for (int64_t kx = 0; kx < k; ++kx) {
        for (int64_t x = 0; x < ow; ++x) {
          const int64_t from_x = x * stride + kx - pad;
          if (from_x < 0 || from_x >= w) continue;
          to[y * ow + x] += image[from_y * w + from_x] * filter[ky * k + kx];
        }
      }
    }
  }
}

}  // namespace

Array convolve(const Array& x, const Array& weight, int64_t stride) {
  const int64_t n = x.dims[0], c = x.dims[1], h = x.dims[2], w = x.dims[3];
  const int64_t m = weight.dims[0], k = weight.dims[2];
  const int64_t oh = (h - 1) / stride + 1, ow = (w - 1) / stride + 1;
  Array result = zeros({n, m, oh, ow});
  for (int64_t image = 0; image < n; ++image) {
    for (int64_t to = 0; to < m; ++to) {
      for (int64_t from = 0; from < c; ++from) {
        convolve_channel(&x.values[static_cast<size_t>((image * c + from) * h * w)], h, w,
                         &weight.values[static_cast<size_t>((to * c + from) * k * k)], k, stride,
                         &result.values[static_cast<size_t>((image * m + to) * oh * ow)], oh, ow);
      }
    }
  }
  return result;
}

Array add_bias(Array x, const Array& bias) {
  const size_t size = static_cast<size_t>(x.dims[2] * x.dims[3]);
  for (size_t i = 0; i < x.values.size(); ++i) {
    x.values[i] += bias.values[i / size % bias.values.size()];
  }
  return x;
}

Array max_pool(const Array& x) {
  const int64_t planes = x.dims[0] * x.dims[1], h = x.dims[2], w = x.dims[3];
  Array result = zeros({x.dims[0], x.dims[1], (h - 1) / 2 + 1, (w - 1) / 2 + 1});
  size_t at = 0;
  for (int64_t plane = 0; plane < planes; ++plane) {
    for (int64_t y = 0; y < h; y += 2) {
      for (int64_t i = 0; i < w; i += 2) {
        float largest = x.values[static_cast<size_t>((plane * h + y) * w + i)];
        for (int64_t yy = std::max<int64_t>(y - 1, 0); yy <= std::min(y + 1, h - 1); ++yy) {
          for (int64_t xx = std::max<int64_t>(i - 1, 0); xx <= std::min(i + 1, w - 1); ++xx) {
            largest = std::max(largest, x.values[static_cast<size_t>((plane * h + yy) * w + xx)]);
          }
        }
        result.values[at++] = largest;
      }
    }
  }
  return result;
}

Array pool(const Array& x) {
  Array result = zeros({x.dims[0], x.dims[1]});
  const size_t size = static_cast<size_t>(x.dims[2] * x.dims[3]);
  for (size_t i = 0; i < x.values.size(); ++i) result.values[i / size] += x.values[i];
  for (float& value : result.values) value /= static_cast<float>(size);
  return result;
}

}  // namespace eddy::dynamic
