// Attention by plain loops, in double, for the tests of domain com.microsoft: operands by head, the
// softmax of their scores, rotations; and a fixture that expects a call's outputs.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <iostream>

#include "tests/ops/testing/calls.h"

namespace eddy::testing {

inline constexpr uint64_t kSeed = 29;
inline const TestValue kNone = TestValue::omitted();

inline double at(const TestTensor& tensor, int64_t i) { return number_at(tensor.view(), i); }

// [batch, heads, length, size].
struct Heads {
  int64_t batch = 0, heads = 0, length = 0, size = 0;
  std::vector<double> values = {};

  Heads(int64_t b, int64_t h, int64_t l, int64_t s)
      : batch(b), heads(h), length(l), size(s), values(static_cast<size_t>(b * h * l * s)) {}
  double& operator()(int64_t b, int64_t h, int64_t i, int64_t d) {
    return values[static_cast<size_t>(((b * heads + h) * length + i) * size + d)];
  }
  double operator()(int64_t b, int64_t h, int64_t i, int64_t d) const {
    return values[static_cast<size_t>(((b * heads + h) * length + i) * size + d)];
  }
  template <typename Function>
  void for_each(Function function) const {
    for (int64_t b = 0; b < batch; ++b) {
      for (int64_t h = 0; h < heads; ++h) {
        for (int64_t i = 0; i < length; ++i) {
          for (int64_t d = 0; d < size; ++d) function(b, h, i, d);
        }
      }
    }
  }
};

// Element `first` of each row of x, [batch, length, ...], begins head 0, `step` apart.
inline Heads read_heads(const TestTensor& x, int64_t heads, int64_t size, int64_t first,
                        int64_t step) {
  Heads made(x.dims()[0], heads, x.dims()[1], size);
  const int64_t row = x.count() / (made.batch * made.length);
  made.for_each([&](int64_t b, int64_t h, int64_t i, int64_t d) {
    made(b, h, i, d) = at(x, (b * made.length + i) * row + first + h * step + d);
  });
  return made;
}
inline Heads side_by_side(const TestTensor& x, int64_t heads) {
  const int64_t size = x.dims()[2] / heads;
  return read_heads(x, heads, size, 0, size);
}
inline Heads by_head(const TestTensor& x, int64_t first = 0) {
  const int skip = x.dims().rank() - 4;
  Heads made(x.dims()[skip], x.dims()[skip + 1], x.dims()[skip + 2], x.dims()[skip + 3]);
  for (size_t i = 0; i < made.values.size(); ++i)
    made.values[i] = at(x, first + static_cast<int64_t>(i));
  return made;
}

inline std::vector<float> narrow(const std::vector<double>& values) {
  return {values.begin(), values.end()};
}

inline TestTensor joined(const Heads& x) {
  std::vector<float> values(x.values.size());
  x.for_each([&](int64_t b, int64_t h, int64_t i, int64_t d) {
    values[static_cast<size_t>(((b * x.length + i) * x.heads + h) * x.size + d)] =
        static_cast<float>(x(b, h, i, d));
  });
  return TestTensor::of<float>({x.batch, x.length, x.heads * x.size}, values);
}
inline TestTensor apart(const Heads& x) {
  return TestTensor::of<float>({x.batch, x.heads, x.length, x.size}, narrow(x.values));
}

inline Heads behind(const Heads& past, const Heads& fresh) {
  Heads all(fresh.batch, fresh.heads, past.length + fresh.length, fresh.size);
  all.for_each([&](int64_t b, int64_t h, int64_t i, int64_t d) {
    all(b, h, i, d) = i < past.length ? past(b, h, i, d) : fresh(b, h, i - past.length, d);
  });
  return all;
}

// What is added to the score of query i and key j; -inf hides it.
using Addend = std::function<double(int64_t b, int64_t h, int64_t i, int64_t j)>;
struct Choices {
  double scale = 0;  // 0: by the size of a head
  double softcap = 0;
  std::vector<double> sinks = {};
};

inline Heads attend(const Heads& q, const Heads& k, const Heads& v, const Addend& addend,
                    const Choices& choices = {}) {
  Heads y(q.batch, q.heads, q.length, v.size);
  const double scale = choices.scale != 0 ? choices.scale : 1 / std::sqrt(double(q.size));
  for (int64_t b = 0; b < q.batch; ++b) {
    for (int64_t h = 0; h < q.heads; ++h) {
      const int64_t kv = h / (q.heads / k.heads);
      for (int64_t i = 0; i < q.length; ++i) {
        double total = choices.sinks.empty() ? 0 : std::exp(choices.sinks[static_cast<size_t>(h)]);
        for (int64_t j = 0; j < k.length; ++j) {
          double score = 0;
          for (int64_t d = 0; d < q.size; ++d) score += scale * q(b, h, i, d) * k(b, kv, j, d);
          if (choices.softcap > 0) score = choices.softcap * std::tanh(score / choices.softcap);
          const double weight = std::exp(score + addend(b, h, i, j));
          total += weight;
          for (int64_t d = 0; d < v.size; ++d) y(b, h, i, d) += weight * v(b, kv, j, d);
        }
        for (int64_t d = 0; d < v.size; ++d) y(b, h, i, d) /= total;
      }
    }
  }
  return y;
}

inline const Addend kAll = [](int64_t, int64_t, int64_t, int64_t) { return 0.0; };
inline Addend where(std::function<bool(int64_t b, int64_t i, int64_t j)> is_seen,
                    double hidden = -HUGE_VAL) {
  return [=](int64_t b, int64_t, int64_t i, int64_t j) { return is_seen(b, i, j) ? 0.0 : hidden; };
}

// Pairs of each head's first 2 * half elements, turned by the table's row of a position.
inline Heads turned(const Heads& x, const TestTensor& cos, const TestTensor& sin,
                    bool is_interleaved,
                    const std::function<int64_t(int64_t b, int64_t i)>& position) {
  Heads y = x;
  const int64_t half = cos.dims()[1];
  for (int64_t b = 0; b < x.batch; ++b) {
    for (int64_t h = 0; h < x.heads; ++h) {
      for (int64_t i = 0; i < x.length; ++i) {
        for (int64_t d = 0; d < half; ++d) {
          const double c = at(cos, position(b, i) * half + d),
                       s = at(sin, position(b, i) * half + d);
          const int64_t first = is_interleaved ? 2 * d : d,
                        second = is_interleaved ? 2 * d + 1 : d + half;
          y(b, h, i, first) = x(b, h, i, first) * c - x(b, h, i, second) * s;
          y(b, h, i, second) = x(b, h, i, first) * s + x(b, h, i, second) * c;
        }
      }
    }
  }
  return y;
}

inline OpCall make(const char* op, std::vector<TestValue> inputs, Attributes attributes = {}) {
  return make_of("com.microsoft", op, 1, std::move(inputs), std::move(attributes));
}

class MicrosoftAttentionTest : public ::testing::Test {
 protected:
  MicrosoftAttentionTest() { std::cout << "seed " << kSeed << "\n"; }

  TestTensor floats(const Dims& dims, double low = -1, double high = 1) {
    return TestTensor::random(ElementType::kFloat, dims, random_, low, high);
  }
  static TestTensor words(const Dims& dims, const std::vector<int32_t>& values) {
    return TestTensor::of<int32_t>(dims, values);
  }

  Random random_{kSeed};
};

}  // namespace eddy::testing
