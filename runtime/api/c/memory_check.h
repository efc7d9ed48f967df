// MemoryCheck: whether a caller's memory is the same at the end of a run as at its beginning.
//
// Of the checking mode (option check_memory): what was written, or freed and used again, while a
// run read it has another sum; what was given back to the system cannot be read, which is seen
// without a crash. Bytes that are changed and changed back in between pass. Internal to
// runtime/api/c. Threads: any. Cost: two reads of the memory for each run.
#pragma once

#include <cstdint>
#include <string>

#include "graph/ir/tensor_view.h"
#include "runtime/api/c/refusal.h"

namespace eddy::c {

class MemoryCheck {
 public:
  // Notes what is there now. Strings have no memory of the caller's.
  static Refusal begin(std::string name, const TensorView& view, MemoryCheck& check);
  // That it still is.
  Refusal verify() const;

 private:
  std::string name_;
  const void* data_ = nullptr;
  size_t size_bytes_ = 0;
  uint64_t sum_ = 0;
};

}  // namespace eddy::c
