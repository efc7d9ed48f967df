// RecordableWork: work in two halves, for buffers that record what it enqueues and launch that
// again: finding its operands on the host, and enqueueing on the device.
//
// Threads: as the node it belongs to.
#pragma once

#include <vector>

namespace eddy {

class RecordableWork {
 public:
  virtual ~RecordableWork() = default;
  // Finds where the operands are now. False: failed, as the work itself would have.
  virtual bool prepare() = 0;
  // False: all operands are always where they were when the work was made, and prepare() need not
  // be called.
  virtual bool may_move() const = 0;
  // Notes that its strand has come to it, as prepare() does.
  virtual void reach() = 0;
  // Whether what enqueue() does depends on nothing but the operands' addresses, as they are now.
  virtual bool is_recordable() const = 0;
  // Of the operands that may move.
  virtual void add_addresses(std::vector<const void*>& addresses) const = 0;
  // On a stream, by its native() handle. `is_recorded`: a capture stream, so the scratch memory
  // that the work uses there stays where it is. False: failed, and not reported until tell_error().
  virtual bool enqueue(void* native_stream, bool is_recorded) = 0;
  // Reports to the run why enqueue() failed. False.
  virtual bool tell_error() = 0;
  // Forgets why enqueue() failed: what was recorded is dropped, and the work done otherwise.
  virtual void forget_error() = 0;
};

}  // namespace eddy
