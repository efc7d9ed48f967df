// Staging: host memory that a device with memory of its own reads and writes at its own speed
// (page-locked, for a GPU), and what is copied through it.
//
// The host values of a program live there, so copies to and from the device need no detour; what
// does not (a caller's buffer, a loop's counter) is there when its copy is issued, and the device's
// eddy.ToDevice may stage it. A device without it reads and writes any host memory.
//
// Errors: no memory, what the driver answers. Ownership: the device's; its memory goes before it.
// Threads: any.
#pragma once

#include <cstddef>
#include <cstdint>

#include "graph/base/status.h"
#include "runtime/device/device.h"

namespace eddy {

class Staging {
 public:
  virtual ~Staging() = default;
  virtual Allocator& staging() = 0;
  // Whether all of these bytes are memory of staging().
  virtual bool is_staging(const void* data, size_t size_bytes) const = 0;
  // Copies host memory of any kind to the device's, and returns when it is there. Refuses a place
  // that is not the device's.
  virtual Status write(void* to, const void* from, size_t size_bytes) = 0;
  // Enqueues a copy of eight bytes between places in staging memory, as one kernel, so that it may
  // stand in any captured graph. Only where can_copy_words().
  virtual bool can_copy_words() const { return false; }
  virtual Status copy_word(int64_t* /*to*/, const int64_t* /*from*/, void* /*native_stream*/) {
    return unsupported("this device lacks the kernel that copies words");
  }
};

}  // namespace eddy
