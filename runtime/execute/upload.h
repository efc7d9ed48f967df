// Uploader: copies host tensors to a device while a program is bound.
//
// It binds the device's own eddy.ToDevice kernel and runs it on a stream of its own; the bytes
// are on the device once finish() has returned ok.
//
// Ownership: a buffer goes to the slot it was copied for. Errors: memory that is out, what the
// kernel or the device says. Threads: one; finish() blocks and moves the device on.
#pragma once

#include <deque>
#include <map>
#include <memory>

#include "runtime/device/execution_device.h"
#include "runtime/execute/values/slot.h"

namespace eddy {

class Uploader {
 public:
  explicit Uploader(const ExecutionDevice& to) : to_(to) {}
  ~Uploader();

  // Gives `to`, a tensor of `from`'s type and shape, device memory with `from`'s bytes.
  Status copy(const TensorView& from, Slot& to);
  Status finish();

 private:
  // What the stream calls, now or later, to enqueue one copy.
  struct Copy {
    static bool run(void* copy) {
      const Copy& self = *static_cast<Copy*>(copy);
      return self.kernel.run(self.args);
    }

    const BoundKernel& kernel;
    TensorView from, to;
    Status error = {};
    KernelArgs args = {};
  };

  Status start();
  Result<const BoundKernel*> kernel(ElementType element);

  const ExecutionDevice& to_;
  std::unique_ptr<Stream> stream_;
  std::map<ElementType, BoundKernel> kernels_;
  std::deque<Copy> copies_;  // queued; far below a stream's credit
};

}  // namespace eddy
