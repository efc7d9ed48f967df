// TensorView: a borrowed, dense, row-major tensor. The one form in which data crosses from
// graph to kernels to callers.
//
// The maker of a view keeps data and dims alive while it is used. A null data with
// element == kUndefined stands for an omitted optional input; a zero-size tensor may have a null
// data too, so call is_omitted().
#pragma once

#include <cstdint>
#include <span>
#include <type_traits>

#include "graph/base/check.h"
#include "graph/ir/element_type.h"
#include "graph/ir/types.h"

namespace eddy {

struct TensorView {
  void* data = nullptr;
  const int64_t* dims = nullptr;  // `rank` sizes, each >= 0
  int32_t rank = 0;
  ElementType element = ElementType::kUndefined;

  bool is_omitted() const { return element == ElementType::kUndefined; }
  std::span<const int64_t> shape() const {
    EDDY_DCHECK(rank >= 0 && (rank == 0 || dims != nullptr)) << "rank " << rank << " without sizes";
    return {dims, static_cast<size_t>(rank)};
  }
  int64_t count() const {
    int64_t product = 1;
    for (int32_t i = 0; i < rank; ++i) product *= dims[i];
    return product;
  }
  size_t size_bytes() const { return static_cast<size_t>(count()) * element_size_bytes(element); }

  template <typename T>
  const T* as() const {
    return static_cast<const T*>(data);
  }
  template <typename T>
  T* mutable_as() const {
    return static_cast<T*>(data);
  }
};
static_assert(std::is_trivially_copyable_v<TensorView>, "kernels get copies of it");

}  // namespace eddy
