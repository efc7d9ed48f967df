#include "runtime/virtual/virtual_allocator.h"

#include <cstring>
#include <string>

#include "graph/base/check.h"

namespace eddy {
namespace {

constexpr int kFresh = 0xa5;
constexpr int kGone = 0x5a;

}  // namespace

Status VirtualAllocator::check(size_t amount, const char* unit) {
  if (!engine_.should_fail(FaultKind::kAllocation)) return Status::ok();
  return resource_exhausted("the virtual device was told to have no memory for " +
                            std::to_string(amount) + " " + unit);
}

Result<BufferRef> VirtualAllocator::allocate(size_t size_bytes) {
  EDDY_RETURN_IF_ERROR(check(size_bytes, "bytes"));
  EDDY_ASSIGN_OR_RETURN(BufferRef buffer, host_.allocate(size_bytes));
  buffer.get()->owner = this;
  EDDY_DCHECK(buffer.capacity_bytes() >= size_bytes && buffer.get()->num_strings == 0)
      << "a buffer that is too small, or still holds strings";
  std::memset(buffer.data(), kFresh, buffer.capacity_bytes());
  if (engine_.watcher_or_null() != nullptr) {
    auto guard = engine_.lock();
    engine_.watcher_or_null()->on_allocate(buffer.data(), buffer.capacity_bytes());
  }
  return buffer;
}

Result<BufferRef> VirtualAllocator::allocate_strings(size_t count) {
  EDDY_RETURN_IF_ERROR(check(count, "strings"));
  EDDY_ASSIGN_OR_RETURN(BufferRef buffer, host_.allocate_strings(count));
  buffer.get()->owner = this;
  return buffer;
}

void VirtualAllocator::release(Buffer* buffer) noexcept {
  EDDY_DCHECK(buffer->owner == this) << "the buffer of another allocator";
  if (buffer->num_strings == 0) std::memset(buffer->data, kGone, buffer->capacity_bytes);
  buffer->owner = &host_;
  host_.release(buffer);
}

}  // namespace eddy
