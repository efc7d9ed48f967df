// Buffer and BufferRef: reference-counted device memory.
//
// Values are immutable once written, so sharing a buffer is always safe; a writer may use one
// only while it holds the single reference (is_writable). That one rule replaces copies of
// carried, captured and repeated values.
//
// Threads: reference counts are atomic. is_writable() pairs an acquire load with the release of
// the last other reference, so the former holder's reads happen before the new writes.
// Cost: copy one locked increment, move and swap none.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "graph/base/check.h"

namespace eddy {

struct Buffer;

// Takes buffers back when their last reference goes.
class BufferOwner {
 public:
  virtual ~BufferOwner() = default;
  virtual void release(Buffer* buffer) noexcept = 0;
  // The characters of the buffer's strings take so many bytes of the heap, or are about to: they
  // count as in use until the next call or the buffer's end. False, and nothing changes, where
  // that would pass a limit.
  virtual bool charge_strings(Buffer* /*buffer*/, size_t /*size_bytes*/) noexcept { return true; }
};

struct Buffer {
  std::atomic<uint32_t> references{1};
  uint32_t size_class = 0;  // the owner's own
  size_t capacity_bytes = 0;
  void* data = nullptr;  // aligned to 64
  BufferOwner* owner = nullptr;
  size_t num_strings = 0;    // std::string objects alive in data; 0 for plain bytes
  size_t charged_bytes = 0;  // of their characters
};

class BufferRef {
 public:
  BufferRef() = default;
  // Takes over one reference.
  explicit BufferRef(Buffer* buffer) : buffer_(buffer) {}
  BufferRef(const BufferRef& other) : buffer_(other.buffer_) {
    if (buffer_ == nullptr) return;
    const uint32_t before = buffer_->references.fetch_add(1, std::memory_order_relaxed);
    EDDY_DCHECK(before > 0) << "a buffer that has gone is shared";
  }
  BufferRef(BufferRef&& other) noexcept : buffer_(std::exchange(other.buffer_, nullptr)) {}
  BufferRef& operator=(BufferRef other) noexcept {
    swap(other);
    return *this;
  }
  ~BufferRef() { drop(); }

  void swap(BufferRef& other) noexcept { std::swap(buffer_, other.buffer_); }
  void reset() {
    drop();
    buffer_ = nullptr;
  }

  explicit operator bool() const { return buffer_ != nullptr; }
  void* data() const {
    EDDY_DCHECK(buffer_ != nullptr) << "an empty reference has no data";
    return buffer_->data;
  }
  size_t capacity_bytes() const {
    EDDY_DCHECK(buffer_ != nullptr) << "an empty reference has no size";
    return buffer_->capacity_bytes;
  }
  Buffer* get() const { return buffer_; }

  // True when this is the only reference to a buffer of at least size_bytes plain bytes.
  bool is_writable(size_t size_bytes) const {
    return buffer_ != nullptr && buffer_->capacity_bytes >= size_bytes &&
           buffer_->references.load(std::memory_order_acquire) == 1;
  }

 private:
  void drop() {
    if (buffer_ == nullptr) return;
    EDDY_DCHECK(buffer_->references.load(std::memory_order_relaxed) > 0) << "it has gone already";
    EDDY_DCHECK(buffer_->owner != nullptr) << "nobody takes the buffer back";
    // A sole owner needs no locked operation: no other thread can add a reference.
    if (buffer_->references.load(std::memory_order_acquire) == 1 ||
        buffer_->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      buffer_->owner->release(buffer_);
    }
  }
  Buffer* buffer_ = nullptr;
};

}  // namespace eddy
