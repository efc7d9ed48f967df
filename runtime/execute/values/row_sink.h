// RowSink: where the rows of a running loop go besides their stack, one after another, in order.
// RowGate: the call that waits until the sinks of a loop, or one of them, have room for the next
// row.
//
// Only one strand pushes into a sink at a time, so room that has been found is there for its push.
//
// Threads: sinks are asked by the loop's strands and answer from any thread. Errors: none.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "graph/ir/tensor_view.h"
#include "runtime/device/strand_runner.h"

namespace eddy {

class RowSink {
 public:
  virtual ~RowSink() = default;
  // There is room.
  virtual void push(const TensorView& row) = 0;
  // True: there is room for one row more. False: `waiter` is called, once, when there is.
  virtual bool has_room_or(std::function<void()> waiter) = 0;
  // True: the waiter has not been called, and will not be.
  virtual bool forget_waiter() = 0;
};

// In place of the number of a result whose rows are meant: those of all of them.
inline constexpr uint32_t kAllRows = UINT32_MAX;

class RowGate {
 public:
  // `sinks` as they are when the call is made; null ones are no sinks.
  RowGate(RunControl& control, std::vector<RowSink* const*> sinks)
      : control_(control), sinks_(std::move(sinks)) {}

  // A StartCallFunction.
  static CallOutcome start(void* row_gate, const Resume& resume);

 private:
  class Listener;

  bool go_on();
  void answer();

  RunControl& control_;
  const std::vector<RowSink* const*> sinks_;
  Resume resume_;
  size_t next_ = 0;  // sinks before it have room
  std::shared_ptr<Listener> listener_;
};

}  // namespace eddy
