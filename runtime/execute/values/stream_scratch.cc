#include "runtime/execute/values/stream_scratch.h"

namespace eddy {

void* StreamScratch::reserve(size_t size_bytes) {
  if (!buffer_ || buffer_.capacity_bytes() < size_bytes) {
    buffer_.reset();
    Result<BufferRef> larger = allocator_.allocate(size_bytes);
    if (!larger.is_ok()) return nullptr;
    buffer_ = std::move(*larger);
  }
  return buffer_.data();
}

void StreamScratch::keep() {
  const bool is_kept = !kept_.empty() && kept_.back().get() == buffer_.get();
  if (buffer_ && !is_kept) kept_.push_back(buffer_);
}

}  // namespace eddy
