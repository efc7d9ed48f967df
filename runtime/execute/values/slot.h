// Slot: where one value of a graph lives during a run.
//
// A slot holds a tensor, a sequence or nothing. Its memory is a shared buffer, or borrowed (a
// constant, the caller's input, a loop's counter). Values move between slots without copying:
// share() adds a reference, swap() exchanges contents. A producer may write into its slot's
// buffer again only while that is the only reference (BufferRef::is_writable), so sharing is
// always safe.
//
// Threads: a slot belongs to whichever strand the plan lets touch it.
#pragma once

#include <array>
#include <atomic>

#include "graph/base/status.h"
#include "graph/ir/types.h"
#include "ops/contract/kernel.h"
#include "runtime/device/device.h"
#include "runtime/execute/values/element_stack.h"

namespace eddy {

class Slot {
 public:
  Slot() = default;
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;

  TensorView view;   // kTensor: dims point to this slot's own storage
  BufferRef buffer;  // owner of view.data; null: borrowed
  ValueKind kind = ValueKind::kNone;
  ElementType sequence_element = ElementType::kUndefined;
  bool is_volatile = false;  // borrowed memory that changes (a loop's counter): copy, don't share
  ElementStack elements;     // kSequence

  // Sets kind, element type and dims; the memory stays.
  void set_tensor(ElementType element, std::span<const int64_t> dims);
  // Becomes a view of memory that outlives its use here.
  void borrow(const TensorView& tensor);
  // Becomes a tensor like this one, whose bytes are not in this slot's buffer, in memory of its
  // own.
  Status copy(const TensorView& tensor, Allocator& allocator);
  // Becomes the same value as `source`. Fails only when a volatile source must be copied.
  Status share(const Slot& source, Allocator& allocator);
  void set_none();
  // Gives up memory of at least `min_bytes`, and elements; kind, type and shape stay.
  void release(size_t min_bytes) {
    if (buffer && buffer.capacity_bytes() >= min_bytes) buffer.reset();
    elements.clear();
  }
  // Exchanges everything.
  void swap(Slot& other);
  // Exchanges memory only; both must hold tensors of the same type and shape.
  void swap_memory(Slot& other) {
    std::swap(view.data, other.view.data);
    buffer.swap(other.buffer);
  }
  // Makes view.data writable memory for the current type and shape, reusing the buffer if it may.
  Status make_writable(Allocator& allocator);
  // Makes sequence element `element` this slot's tensor.
  void share_element(const SequenceElement& element);
  SequenceElement as_element() const;

 private:
  std::array<int64_t, kMaxRank> dims_{};
};

// Bytes of a tensor of this type, or kResourceExhausted when the product overflows.
Result<size_t> tensor_size_bytes(ElementType element, std::span<const int64_t> dims);

}  // namespace eddy
