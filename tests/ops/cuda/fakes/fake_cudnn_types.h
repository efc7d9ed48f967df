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

// A tensor or a filter; row-major.
struct FakeCudnn::Shape {
  DnnType type = DnnType::kFloat;
  std::vector<int64_t> dims;

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

}  // namespace eddy::testing
