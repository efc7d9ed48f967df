// Lines as CUB's algorithms take them: iterators over functions of an element's number
// (long_line_inl.h). For sources that nvcc compiles for host and device.
#pragma once

#include <cuda_runtime_api.h>

#include <iterator>

#include "ops/cuda/reduce/long_line_inl.h"

namespace eddy::cuda {

// Element j is read(j).
template <typename Read>
struct Reader {
  using iterator_category = std::random_access_iterator_tag;
  using value_type = decltype(std::declval<Read>()(uint64_t{}));
  using difference_type = int64_t;
  using pointer = const value_type*;
  using reference = value_type;

  Read read;
  int64_t at = 0;

  EDDY_HD value_type operator*() const { return read(static_cast<uint64_t>(at)); }
  EDDY_HD value_type operator[](int64_t step) const { return *(*this + step); }
  EDDY_HD Reader operator+(int64_t step) const { return {read, at + step}; }
};

// Assigning value to element j is store(j, value).
template <typename Store, typename Value>
struct Writer {
  struct Element {
    Store store;
    int64_t at;
    EDDY_HD void operator=(const Value& value) const { store(static_cast<uint64_t>(at), value); }
  };
  using iterator_category = std::random_access_iterator_tag;
  using value_type = Value;
  using difference_type = int64_t;
  using pointer = Value*;
  using reference = Element;

  Store store;
  int64_t at = 0;

  EDDY_HD Element operator*() const { return {store, at}; }
  EDDY_HD Element operator[](int64_t step) const { return *(*this + step); }
  EDDY_HD Writer operator+(int64_t step) const { return {store, at + step}; }
};

// The status of `call`, one of CUB's: which looks at the thread's last error, so an earlier one of
// another call is cleared first; and which may throw what the runtime library answers.
template <typename Call>
cudaError_t run_cub(Call call) noexcept {
  static_cast<void>(cudaGetLastError());
  try {
    return call();
  } catch (...) {
    const cudaError_t last = cudaGetLastError();
    return last != cudaSuccess ? last : cudaErrorUnknown;
  }
}

}  // namespace eddy::cuda
