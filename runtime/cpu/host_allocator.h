// HostAllocator: pooled host memory with a limit.
//
// Sizes are rounded up to classes of four steps per power of two (at most 25 % waste); freed
// buffers are kept by class and handed out again, so a run with fixed shapes allocates nothing
// once warm. Header and bytes are one block, bytes aligned to 64. Shapes that change find a block
// of their class or, from 64 KiB on, one up to four times as large; when the system must give a
// large block, smaller ones go back while more than a third of all memory is cached. So a tensor
// that grows does not leave its whole past behind.
//
// Errors: kResourceExhausted past the limit (used bytes, not cached ones) or when the system has
// no more, though all cached blocks have gone back to it. Threads: any; one short lock a call.
// After fork() a child must leave it and its buffers alone: the lock may have been held.
// Cost: O(1), about 20 ns when cached.
#pragma once

#include <array>
#include <memory>
#include <utility>

#include "graph/base/short_lock.h"
#include "runtime/device/device.h"
#include "runtime/device/size_class.h"

namespace eddy {

// Where blocks come from. Called by any thread, without a lock; throws nothing.
class HostMemory {
 public:
  virtual ~HostMemory() = default;
  // Aligned to 64; null: there is no more.
  virtual void* allocate(size_t size_bytes) = 0;
  virtual void release(void* block, size_t size_bytes) = 0;
};

class HostAllocator : public Allocator {
 public:
  // limit_bytes 0: no limit. memory_or_null: null: the system.
  explicit HostAllocator(size_t limit_bytes = 0, std::shared_ptr<HostMemory> memory_or_null = {})
      : limit_bytes_(limit_bytes), memory_or_null_(std::move(memory_or_null)) {}
  // Every buffer must have been released.
  ~HostAllocator() override;

  Result<BufferRef> allocate(size_t size_bytes) override;
  Result<BufferRef> allocate_strings(size_t count) override;
  void release(Buffer* buffer) noexcept override;
  bool charge_strings(Buffer* buffer, size_t size_bytes) noexcept override;
  MemoryStatistics statistics() const override;
  void trim() override;

 private:
  Buffer* take_cached(size_t size_class);
  bool charge(size_t bytes);
  void* try_block(size_t size_bytes);
  void* allocate_block(size_t capacity_bytes);
  void give_back(Buffer* list);

  const size_t limit_bytes_;
  const std::shared_ptr<HostMemory> memory_or_null_;
  mutable ShortLock lock_;
  std::array<Buffer*, kNumSizeClasses> free_{};  // under the lock; lists of what is cached
  MemoryStatistics statistics_;                  // under the lock
};

}  // namespace eddy
