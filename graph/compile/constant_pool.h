// ConstantPool: one place for constants of equal bytes.
//
// Weights that a file stores twice (once for each branch of an If, or tied ones) become one
// constant, which kernels then pack once.
//
// Borrows: the given bytes must outlive the pool and every use of what it returns.
// Threads: one at a time. Cost: a sample of each constant, and a comparison of those that look
// alike; smaller ones than kMinBytes are passed over.
#pragma once

#include <cstdint>
#include <map>
#include <utility>

#include "graph/ir/tensor_view.h"

namespace eddy {

class ConstantPool {
 public:
  static constexpr size_t kMinBytes = 4096;

  // Bytes equal to the view's: its own, or those of an earlier constant of the same size that are
  // aligned for the view's elements.
  const void* find_or_add(const TensorView& view);

 private:
  using Key = std::pair<size_t, uint64_t>;  // size and sample
  std::multimap<Key, const void*> known_;
};

}  // namespace eddy
