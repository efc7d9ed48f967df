// What is asked of memory that callers hand to a run, for its inputs and outputs, and how messages
// describe it.
//
// Internal to runtime/api. Errors: kInvalidArgument, which names the input or output.
#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <string>

#include "graph/base/status.h"
#include "graph/ir/tensor_view.h"
#include "graph/ir/types.h"
#include "runtime/execute/values/slot.h"

namespace eddy {

// "float[2,3]".
inline std::string found(ElementType element, std::span<const int64_t> dims) {
  if (dims.size() > static_cast<size_t>(kMaxRank)) {
    return "a tensor of rank " + std::to_string(dims.size());
  }
  return std::string(element_type_name(element)) + to_string(Dims(dims));
}
inline std::string found(const TensorView& view) { return found(view.element, view.shape()); }

inline bool is_of(const ValueType& type, ElementType element, std::span<const int64_t> dims) {
  return dims.size() <= static_cast<size_t>(kMaxRank) &&
         std::ranges::all_of(dims, [](int64_t dim) { return dim >= 0; }) &&
         is_compatible(TensorType(element, Dims(dims)), type);
}

// Of what processors and compilers ask of an address.
inline size_t alignment_of(ElementType element) {
  return element == ElementType::kString ? alignof(std::string) : element_size_bytes(element);
}

inline bool is_aligned(const void* data, ElementType element) {
  const size_t alignment = alignment_of(element);
  return alignment > 0 && reinterpret_cast<uintptr_t>(data) % alignment == 0;
}

// That there is memory for as many bytes as the shape, which is a type's, has. `what` says whose.
template <typename What>
Status check_memory(const What& what, const TensorView& view) {
  EDDY_ASSIGN_OR_RETURN(const size_t bytes, tensor_size_bytes(view.element, view.shape()));
  if (view.data != nullptr || bytes == 0) return Status::ok();
  return invalid_argument(what() + " was given a null pointer; give memory for " + found(view));
}

}  // namespace eddy
