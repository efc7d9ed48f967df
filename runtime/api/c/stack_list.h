// StackList: some items of a call, on the stack where they are few.
//
// Internal to runtime/api/c. `capacity` is how many there will be at most. Errors: throws
// std::bad_alloc where the system has no memory for many. Cost: no allocation up to four items.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include "graph/base/check.h"

namespace eddy::c {

template <typename T>
class StackList {
 public:
  explicit StackList(size_t capacity)
      : items_(capacity <= kRoom ? reinterpret_cast<T*>(room_)
                                 : std::allocator<T>().allocate(capacity)),
        capacity_(capacity) {}
  ~StackList() {
    std::destroy_n(items_, size_);
    if (capacity_ > kRoom) std::allocator<T>().deallocate(items_, capacity_);
  }
  StackList(const StackList&) = delete;
  StackList& operator=(const StackList&) = delete;

  template <typename... Args>
  T& add(Args&&... args) {
    EDDY_DCHECK(size_ < capacity_) << "a list of " << capacity_ << " is full";
    T* const made = std::construct_at(items_ + size_, std::forward<Args>(args)...);
    ++size_;
    return *made;
  }
  size_t size() const { return size_; }
  std::span<T> span() { return {items_, size_}; }

 private:
  static constexpr size_t kRoom = 4;

  T* const items_;
  const size_t capacity_;
  size_t size_ = 0;
  alignas(T) std::byte room_[kRoom * sizeof(T)];
};

}  // namespace eddy::c
