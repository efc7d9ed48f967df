// DeviceScratch: scratch memory of one of the device's streams, for kernels that a part of the
// report calls itself. It grows; what it had before stays until the end, since the stream may still
// be at work on it.
#pragma once

#include <vector>

#include "ops/contract/kernel.h"
#include "runtime/device/device.h"

namespace eddy {

class DeviceScratch : public Scratch {
 public:
  explicit DeviceScratch(Allocator& allocator) : allocator_(allocator) {}
  void* reserve(size_t size_bytes) override {
    if (size_bytes <= size_bytes_) return buffers_.back().data();
    Result<BufferRef> buffer = allocator_.allocate(size_bytes);
    if (!buffer.is_ok()) return nullptr;
    size_bytes_ = size_bytes;
    return buffers_.emplace_back(std::move(*buffer)).data();
  }

 private:
  Allocator& allocator_;
  std::vector<BufferRef> buffers_;
  size_t size_bytes_ = 0;  // of the last
};

}  // namespace eddy
