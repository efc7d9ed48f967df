// Reading and writing floats of the types that CUDA libraries name, for their fakes.
#pragma once

#include <cstdint>

#include "graph/ir/half.h"

namespace eddy::testing {

enum class FakeFloat { kFloat, kDouble, kHalf, kBfloat16 };

inline double read_number(FakeFloat type, const void* data, int64_t i) {
  switch (type) {
    case FakeFloat::kDouble:
      return static_cast<const double*>(data)[i];
    case FakeFloat::kHalf:
      return static_cast<const Float16*>(data)[i];
    case FakeFloat::kBfloat16:
      return static_cast<const Bfloat16*>(data)[i];
    default:
      return static_cast<const float*>(data)[i];
  }
}

inline void write_number(FakeFloat type, void* data, int64_t i, double value) {
  switch (type) {
    case FakeFloat::kDouble:
      static_cast<double*>(data)[i] = value;
      break;
    case FakeFloat::kHalf:
      static_cast<Float16*>(data)[i] = static_cast<float>(value);
      break;
    case FakeFloat::kBfloat16:
      static_cast<Bfloat16*>(data)[i] = static_cast<float>(value);
      break;
    default:
      static_cast<float*>(data)[i] = static_cast<float>(value);
      break;
  }
}

}  // namespace eddy::testing
