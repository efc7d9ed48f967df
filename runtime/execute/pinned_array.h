// PinnedArray: a number of objects that is known at first, made one after the other in one piece of
// memory: their addresses stay, and what is used in order lies in order.
//
// A large piece stands in huge pages where the system gives them (madvise): a graph of a million
// small nodes reads each one's memory once in a run, and walks of the page table would take as long
// as the nodes' work. Errors: std::bad_alloc. Threads: one. Cost: emplace_back is the object's.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <new>

#include "graph/base/check.h"

namespace eddy {

template <typename T>
class PinnedArray {
 public:
  PinnedArray() = default;
  ~PinnedArray() {
    while (size_ > 0) data_[--size_].~T();
    std::free(data_);
  }
  PinnedArray(const PinnedArray&) = delete;
  PinnedArray& operator=(const PinnedArray&) = delete;

  // Once, before the first.
  void reserve(size_t capacity) {
    EDDY_CHECK(data_ == nullptr) << "there are objects that stay where they are";
    if (capacity == 0) return;
    const size_t needed = capacity * sizeof(T);
    const size_t alignment = needed >= 2 * kHugePage ? kHugePage : std::max<size_t>(alignof(T), 64);
    const size_t size_bytes = (needed + alignment - 1) / alignment * alignment;
    void* const memory = std::aligned_alloc(alignment, size_bytes);
    if (memory == nullptr) throw std::bad_alloc();
    if (alignment == kHugePage) [[maybe_unused]]
      const int is_refused = madvise(memory, size_bytes, MADV_HUGEPAGE);
    data_ = static_cast<T*>(memory);
    capacity_ = capacity;
  }
  T& emplace_back() {
    EDDY_CHECK(size_ < capacity_) << "more objects than the " << capacity_ << " asked for";
    T* const made = new (data_ + size_) T();
    ++size_;
    return *made;
  }

 private:
  static constexpr size_t kHugePage = size_t{2} << 20;

  T* data_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

}  // namespace eddy
