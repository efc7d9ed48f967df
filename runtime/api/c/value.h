// ValueObject: a value as handles hold it.
//
// Internal to runtime/api/c. Immutable, so any number of threads may read it.
#pragma once

#include "runtime/api/c/handles.h"
#include "runtime/api/tensor.h"

namespace eddy::c {

struct ValueObject : Object {
  static constexpr Kind kKind = Kind::kValue;
  explicit ValueObject(Tensor t) : tensor(std::move(t)) {}
  const Tensor tensor;
};

}  // namespace eddy::c
