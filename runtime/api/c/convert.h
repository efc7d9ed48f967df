// Between the structs of eddy.h and Eddy's own: tensors, types, attributes, texts.
//
// Internal to runtime/api/c. Errors: what a caller's struct says of itself is checked here
// (kInvalidArgument, with `what` it is); struct_size decides which members are read.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "graph/ir/attributes.h"
#include "graph/ir/tensor_view.h"
#include "graph/ir/types.h"
#include "runtime/api/c/refusal.h"
#include "runtime/api/tensor.h"

namespace eddy::c {

static_assert(sizeof(eddy_tensor) == sizeof(TensorView) &&
                  offsetof(eddy_tensor, dims) == offsetof(TensorView, dims) &&
                  offsetof(eddy_tensor, rank) == offsetof(TensorView, rank) &&
                  offsetof(eddy_tensor, element) == offsetof(TensorView, element),
              "kernels of the caller's read Eddy's views as they are");
static_assert(kMaxRank == EDDY_MAX_RANK && kMaxWrappers == 4);

// "there is no WHAT: it is null".
Refusal is_missing(const char* what);

// The caller's struct as today's, as far as it goes; the rest is zero. It has struct_size, which
// must reach `least`.
template <typename T>
Refusal read_struct(const T* given, size_t least, const char* what, T& read) {
  if (given == nullptr) return is_missing(what);
  const size_t size = given->struct_size;
  if (size < least) {
    return {EDDY_INVALID_ARGUMENT, std::string(what) + " has struct_size " + std::to_string(size) +
                                       "; set it to sizeof, at least " + std::to_string(least)};
  }
  if (size % alignof(T) != 0) {
    return {EDDY_INVALID_ARGUMENT, std::string(what) + " has struct_size " + std::to_string(size) +
                                       ", which ends inside a member; set it to sizeof"};
  }
  std::memset(static_cast<void*>(&read), 0, sizeof(T));
  std::memcpy(static_cast<void*>(&read), given, std::min(size, sizeof(T)));
  return {};
}
// Fills what the caller's struct, whose struct_size says how long it is, has room for.
template <typename T>
Refusal write_struct(const T& value, const char* what, T* given) {
  if (given == nullptr) return is_missing(what);
  const size_t size = given->struct_size;
  if (size <= sizeof(size_t)) {
    return {EDDY_INVALID_ARGUMENT,
            std::string(what) + " has struct_size " + std::to_string(size) + "; set it to sizeof"};
  }
  std::memcpy(static_cast<void*>(given), &value, std::min(size, sizeof(T)));
  given->struct_size = size;
  return {};
}
// The end of a member, for `least`.
#define EDDY_C_UPTO(type, member) (offsetof(type, member) + sizeof(type::member))

[[gnu::always_inline]] inline Refusal need(const void* pointer, const char* what) {
  if (pointer == nullptr) [[unlikely]]
    return is_missing(what);
  return {};
}

// As files have names: UTF-8 without control characters. Null is empty.
Refusal check_name(const char* name, const char* what);
// That it is not empty, either.
Refusal check_given_name(const char* name, const char* what);

// A dense tensor of the caller's that is no omitted one, with memory and without strings.
Refusal read_tensor(const eddy_tensor* given, const char* what, TensorView& view);
// Sizes of a tensor of the caller's.
Refusal read_dims(const int64_t* given, int32_t rank, const char* what, Dims& dims);
// String i of that shape is bytes[offsets[i], offsets[i + 1]).
Refusal read_strings(const int64_t* given, int32_t rank, const int64_t* offsets, const char* bytes,
                     Dims& dims, std::vector<std::string>& strings);
inline eddy_tensor as_c(const TensorView& view) {
  return {view.data, view.dims, view.rank, static_cast<eddy_element>(view.element), {0, 0, 0}};
}
inline const eddy_tensor* as_c(const TensorView* views) {
  return reinterpret_cast<const eddy_tensor*>(views);
}

// A symbol (<= -2) must be one of `num_symbols`.
Refusal read_type(const eddy_type* given, const char* what, size_t num_symbols, ValueType& type);
// Symbols become unknown where they are not kept.
eddy_type as_c(const ValueType& type, bool keeps_symbols);

Refusal read_attributes(const eddy_attribute* given, size_t count, Attributes& attributes,
                        const std::function<Constant(const TensorView&)>& keep);

// A tensor of uint8 elements.
Tensor text_value(const std::string& text);

}  // namespace eddy::c
