// VirtualAllocator: pooled host memory that notices: allocations fail as a fault plan says, fresh
// memory holds a pattern, and so does memory given back, so that a read of what was never
// written, or after the end, gets the same wrong value every time.
//
// Errors, threads: as HostAllocator.
#pragma once

#include "runtime/cpu/host_allocator.h"
#include "runtime/virtual/virtual_engine.h"

namespace eddy {

class VirtualAllocator : public Allocator {
 public:
  VirtualAllocator(VirtualEngine& engine, size_t limit_bytes)
      : engine_(engine), host_(limit_bytes) {}

  Result<BufferRef> allocate(size_t size_bytes) override;
  Result<BufferRef> allocate_strings(size_t count) override;
  void release(Buffer* buffer) noexcept override;
  bool charge_strings(Buffer* buffer, size_t size_bytes) noexcept override {
    return host_.charge_strings(buffer, size_bytes);
  }
  MemoryStatistics statistics() const override { return host_.statistics(); }
  void trim() override { host_.trim(); }

 private:
  Status check(size_t amount, const char* unit);

  VirtualEngine& engine_;
  HostAllocator host_;
};

}  // namespace eddy
