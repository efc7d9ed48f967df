// The objects behind the handles and descriptors of FakeCudnn.
#pragma once

#include <cstdint>
#include <vector>

#include "tests/ops/cuda/fakes/fake_cudnn.h"
#include "tests/ops/cuda/fakes/library_numbers.h"

namespace eddy::testing {

inline FakeFloat float_of(DnnType type) {
  switch (type) {
    case DnnType::kDouble:
      return FakeFloat::kDouble;
    case DnnType::kHalf:
      return FakeFloat::kHalf;
    case DnnType::kBfloat16:
      return FakeFloat::kBfloat16;
    default:
      return FakeFloat::kFloat;
  }
}

// The factors of every call of ours.
inline bool are_one_and_zero(FakeFloat type, const void* alpha, const void* beta) {
  const FakeFloat scale = type == FakeFloat::kDouble ? type : FakeFloat::kFloat;
  return read_number(scale, alpha, 0) == 1 && read_number(scale, beta, 0) == 0;
}

struct FakeCudnn::Handle {
  void* stream = nullptr;
};

// A tensor or a filter, dense; elements are counted row-major by the dims, wherever they lie.
struct FakeCudnn::Shape {
  DnnType type = DnnType::kFloat;
  std::vector<int64_t> dims;
  bool is_channels_last = false;  // axis 1 lies behind the others

  // Both are channels first, or both last, or could be either.
  bool is_laid_as(const Shape& other) const {
    const auto could_be_either = [](const Shape& shape) {
      return shape.dims[1] == 1 || shape.volume(2) == 1;
    };
    return is_channels_last == other.is_channels_last || could_be_either(*this) ||
           could_be_either(other);
  }
  // Where an element lies.
  int64_t place(int64_t index) const {
    if (!is_channels_last) return index;
    const int64_t size = volume(2), channels = dims[1];
    const int64_t n = index / size / channels, c = index / size % channels;
    return (n * size + index % size) * channels + c;
  }
  double read(const void* from, int64_t index) const {
    return read_number(float_of(type), from, place(index));
  }
  void write(void* to, int64_t index, double value) const {
    write_number(float_of(type), to, place(index), value);
  }

  int64_t volume(size_t from) const {
    int64_t volume = 1;
    for (size_t i = from; i < dims.size(); ++i) volume *= dims[i];
    return volume;
  }
  // Coordinates of a flat index of the spatial axes.
  std::vector<int64_t> position(int64_t index) const {
    std::vector<int64_t> at(dims.size() - 2);
    for (size_t i = at.size(); i-- > 0;) {
      at[i] = index % dims[i + 2];
      index /= dims[i + 2];
    }
    return at;
  }
};

// Steps of a window and where its taps are.
struct FakeCudnn::Window {
  std::vector<int64_t> pads, strides, dilations;

  // The flat place in x under a tap, or -1 in the padding.
  int64_t place(const Shape& x, const std::vector<int64_t>& at,
                const std::vector<int64_t>& tap) const {
    int64_t index = 0;
    for (size_t i = 0; i < at.size(); ++i) {
      const int64_t p = at[i] * strides[i] + tap[i] * dilations[i] - pads[i];
      if (p < 0 || p >= x.dims[i + 2]) return -1;
      index = index * x.dims[i + 2] + p;
    }
    return index;
  }
};

struct FakeCudnn::Convolution : Window {
  int64_t groups = 1;
  int math = kDnnDefaultMath;
  int chosen_math = -1;  // of the first algorithm listed that may be taken
};

struct FakeCudnn::Pooling : Window {
  DnnPoolMode mode = DnnPoolMode::kMax;
  std::vector<int64_t> sizes;
};

struct FakeCudnn::Activation {
  bool is_set = false;
  bool is_relu = false;  // else the identity
};

// A convolution's sums.
struct FakeCudnn::Sums {
  Shape x, w, y;
  Convolution c;
  const void* from;
  const void* weights;

  FakeFloat type() const { return float_of(x.type); }
  double at(int64_t item) const {
    const int64_t in_size = x.volume(2), out_size = y.volume(2), num_taps = w.volume(2);
    const int64_t filters = y.dims[1], channels = w.dims[1];
    const int64_t n = item / out_size / filters, f = item / out_size % filters;
    const std::vector<int64_t> place_of = y.position(item % out_size);
    double sum = 0;
    for (int64_t tap = 0; tap < num_taps; ++tap) {
      const int64_t place = c.place(x, place_of, w.position(tap));
      for (int64_t i = 0; place >= 0 && i < channels; ++i) {
        const int64_t plane = n * x.dims[1] + f / (filters / c.groups) * channels + i;
        sum += x.read(from, plane * in_size + place) *
               w.read(weights, (f * channels + i) * num_taps + tap);
      }
    }
    return sum;
  }
};

}  // namespace eddy::testing
