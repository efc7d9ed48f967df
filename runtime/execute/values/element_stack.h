// ElementStack: the elements of a sequence, as a value of its own.
//
// A stack is a reference to its last element, which refers to the one before it. Copying, pushing
// and popping cost O(1), whatever else holds the same elements or more of them: nothing is written
// that another stack sees, so no proof and no count has to say that a sequence has one holder. An
// element goes when the last stack above it has gone. So what a loop pushes, iteration after
// iteration, and another one pops, is never copied.
//
//   a = push(push({}, x), y)   b = pop(a)   c = push(b, z)      x <- y (a)
//                                                             x <- z (c)
//
// An element at a place is found in O(log n) by skipping: each knows one further down, too.
// Memory: a link is a block of the allocator given, so a session's limit counts it.
// Threads: a stack belongs to one strand at a time; its elements are shared by any number (counted
// atomically). Source: Myers, "An applicative random-access stack", IPL 17 (1983).
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "graph/base/check.h"
#include "graph/base/status.h"
#include "graph/ir/types.h"
#include "ops/contract/kernel.h"
#include "runtime/device/device.h"

namespace eddy {

// An element of a sequence; immutable.
struct SequenceElement {
  BufferRef buffer;
  const void* data = nullptr;
  ElementType element = ElementType::kUndefined;
  Dims dims;

  TensorView view() const { return {const_cast<void*>(data), dims.data(), dims.rank(), element}; }
};

class ElementStack {
 public:
  ElementStack() = default;
  ElementStack(const ElementStack& other) : last_(other.last_) { hold(last_); }
  ElementStack(ElementStack&& other) noexcept : last_(std::exchange(other.last_, nullptr)) {}
  ElementStack& operator=(ElementStack other) noexcept {
    swap(other);
    return *this;
  }
  ~ElementStack() { let_go(last_); }

  size_t size() const { return last_ == nullptr ? 0 : last_->size; }
  bool empty() const { return last_ == nullptr; }
  // Of one that is not empty.
  const SequenceElement& back() const {
    EDDY_DCHECK(last_ != nullptr) << "an empty sequence has no last element";
    return last_->element;
  }
  const SequenceElement& operator[](size_t position) const;  // position < size()
  // From the first to the last, borrowed: O(n).
  std::vector<const SequenceElement*> in_order() const;

  // kResourceExhausted, and nothing is pushed: the allocator has no memory for the link, or there
  // are 2^32 - 1 elements.
  Status push_back(SequenceElement element, Allocator& allocator);
  void pop_back();  // of one that is not empty
  void clear() { let_go(std::exchange(last_, nullptr)); }
  void swap(ElementStack& other) noexcept { std::swap(last_, other.last_); }

 private:
  // 128 bytes, which are two lines of a cache and a size of the allocator's.
  struct Link {
    std::atomic<uint32_t> references{1};  // released where one goes, acquired where a link does
    uint32_t size;                        // elements up to here
    Link* before;                         // holds a reference; null: the first
    const Link* skip;                     // further down, or null; not counted: below `before`
    SequenceElement element;
    BufferRef memory;  // of this link
  };

  static void hold(Link* link) {
    if (link != nullptr) link->references.fetch_add(1, std::memory_order_relaxed);
  }
  static void let_go(Link* link);

  Link* last_ = nullptr;
};

}  // namespace eddy
