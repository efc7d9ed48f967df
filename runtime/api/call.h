// Call: one prepared run: inputs and outputs bound by index, then run again and again, in any way.
//
//   call->bind_input(0, x);
//   call->bind_output(0, y);
//   call->run();                             // on this thread, or waited for by it
//   call->submit(); … call->wait();          // meanwhile this thread goes on
//   call->submit_on(*stream, {}, on_end);    // in the order of a caller's stream
//
// A run ends once, however it was submitted: with its outputs, or with a status that names the
// reason. RunHandle (run_handle.h) is the same of a run that Session::run_async() or run_on() has
// made.
//
// Bound memory: an output must have exactly the shape the run produces, and is made in the memory
// bound for it, whatever makes it: a node of the root or of any branch, or a loop. Where data
// decide how often a loop runs, each iteration may be the last, so what it carries takes turns in
// two places: with one bound it is copied once every other time; with a spare bound too it ends in
// either, which output() names. What no node has made (captured, passed through, of a loop
// of no iteration) is copied, and so is what overlaps an input or another output, when the run has
// read all inputs. What the graph keeps for longer may need a copy still: copied_bytes().
//
// Errors: kInvalidArgument for misuse, and the errors of runs in session.h; after a failure bound
// outputs are unspecified. Threads: a Call is used by one thread at a time, but for cancel() and
// is_done(), which any may call.
#pragma once

#include <chrono>
#include <functional>
#include <memory>

#include "graph/base/status.h"
#include "runtime/api/run_end.h"
#include "runtime/api/run_options.h"
#include "runtime/api/tensor.h"
#include "runtime/device/device.h"

namespace eddy {

class TraceRecorder;
struct SessionCore;

// Must go before its session.
class Call {
 public:
  using Callback = std::function<void(const Status&)>;

  // Cancels a run that is under way and waits for its end; in a host function, where no thread may
  // wait, it only cancels, and bound memory must stay until the run has ended.
  ~Call();
  Call(const Call&) = delete;
  Call& operator=(const Call&) = delete;

  // Borrowed until rebound or the Call goes. Checked against the input's type here. No binding
  // changes while a run is under way.
  Status bind_input(size_t index, const TensorView& view);
  // Of any kind: sequences and nothing, too. Its memory is borrowed likewise.
  Status bind_input(size_t index, const Tensor& value);
  Status bind_input(size_t index, Tensor&& value) = delete;
  // The run writes this output there. The view's shape must be the output's, and may go afterwards.
  Status bind_output(size_t index, const TensorView& view);
  // Or there: the run writes to both, and leaves the output in the one of the two that output()
  // then names. The spare is of the same type and shape, and apart from the view.
  Status bind_output(size_t index, const TensorView& view, const TensorView& spare);
  // The same in a device's memory, where it is once the run has ended; what the device
  // has made and only this output names goes there without passing through the host's. Inputs of
  // the kind: Tensor by DLPack (dlpack.h).
  Status bind_device_output(size_t index, const TensorView& view);

  // Runs and waits for the end; the run's result.
  Status run(const RunOptions& options = {});
  // Begins a run and returns; one that takes less than to wake a worker, a µs or two by estimate of
  // fixed shapes, is run before that. A failure: there is none, and the callback is not called.
  // Else it is called once, last, on the session's callback thread, when this Call may be used
  // again, by it too.
  // `begun` is called before that, once this Call may not be used but by those that wait for it.
  Status submit(const RunOptions& options = {}, Callback callback = {},
                const std::function<void()>& begun = {});
  // The same for what more than a callback is asked of.
  Status submit(const RunOptions& options, std::shared_ptr<RunEnd> end,
                const std::function<void()>& begun);
  // In the order of a stream of the session's (Session::create_stream(), adopt_stream()): what is
  // in front may write the inputs, what is behind read the outputs.
  Status submit_on(Stream& stream, const RunOptions& options = {}, Callback callback = {},
                   const std::function<void()>& begun = {});
  Status submit_on(Stream& stream, const RunOptions& options, std::shared_ptr<RunEnd> end,
                   const std::function<void()>& begun);

  // Blocks until no run is under way; the last one's result. A run that no worker has begun yet may
  // run here.
  Status wait();
  // Blocks for so long at most. True: no run is under way. Where wait() would be refused, it
  // returns at once.
  bool wait_for(std::chrono::nanoseconds timeout);
  // Whether wait() would be refused, and why; whether wait() for a run to come would.
  Status check_wait() const;
  Status check_wait_for_next() const;
  bool is_done() const;
  bool has_run() const;  // a run was submitted, ever
  void cancel();         // the run under way; one that waits ends at once
  // Whether RunOptions::on_overdue was called for the run under way, or is about to be, and an
  // answer is owed still.
  bool is_overdue() const;

  // Output `index` of the last run, a tensor; valid until the next one. Of a bound output: the
  // caller's memory that holds it. Without data where there is none: no such output, none made yet,
  // the last run has failed or is under way.
  TensorView output(size_t index) const;
  // Of any kind, as Session::run() returns it; nothing where there is none, and for one that is
  // bound in a device's memory.
  Tensor value(size_t index) const;
  // Bytes that the last run had to copy because outputs were not made where they were bound.
  size_t copied_bytes() const;

 private:
  friend class Session;
  struct State;
  explicit Call(std::unique_ptr<State> state);
  static Result<std::unique_ptr<Call>> prepare(SessionCore& core, TraceRecorder* trace_or_null);
  Status submit_to(Stream* stream_or_null, const RunOptions& options,
                   std::shared_ptr<RunEnd> end_or_null, const std::function<void()>& begun);

  std::unique_ptr<State> state_;
};

}  // namespace eddy
