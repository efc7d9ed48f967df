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

// Text, or a file's bytes, as a value of uint8 elements.
Refusal give_text(const std::string& text, eddy_value* value);

}  // namespace eddy::c
