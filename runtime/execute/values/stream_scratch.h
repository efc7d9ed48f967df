// StreamScratch: growing scratch memory of one of the machine's streams.
//
// Strands of one stream are never at work together, recorded or not, so all of them use the same.
#pragma once

#include <vector>

#include "ops/contract/kernel.h"
#include "runtime/device/device.h"

namespace eddy {

class StreamScratch : public Scratch {
 public:
  explicit StreamScratch(Allocator& allocator) : allocator_(allocator) {}
  void* reserve(size_t size_bytes) override;
  // What was reserved last stays where it is.
  void keep();

 private:
  Allocator& allocator_;
  BufferRef buffer_;
  std::vector<BufferRef> kept_;
};

}  // namespace eddy
