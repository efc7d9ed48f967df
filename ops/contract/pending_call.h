// PendingCall: the completion that a kernel owes after it returned kLater.
//
//   CallOutcome start(const KernelArgs& args, PendingCall& call) {
//     my_queue.push([&args, call = std::move(call)]() mutable {
//       args.outputs[0] …; call.complete(Status::ok()); });
//     return CallOutcome::kLater;
//   }
//
// Until it is complete, what args points to stays where it is; the strand that made the call waits,
// and nothing else does. complete() may come from any thread, also before start() has returned. A
// call that goes away incomplete has failed, so nothing is lost and nothing hangs.
//
// A run that is stopped waits for its calls, because they may be writing: on_stop() is how a call
// learns of it, to complete early, with whatever status.
//
// Threads: one at a time; on_stop's function is called by the thread that stops the run, or at once
// by on_stop(), and must be quick. Errors: a second complete() is a CHECK.
#pragma once

#include <functional>
#include <memory>

#include "graph/base/check.h"
#include "graph/base/status.h"

namespace eddy {

class PendingCall {
 public:
  // What the executor makes of it.
  class Receiver {
   public:
    virtual ~Receiver() = default;
    virtual void complete(Status status) = 0;
    virtual void on_stop(std::function<void()> function) = 0;
    virtual void complete_when_readable(int file, std::function<Status()> read) = 0;
  };

  PendingCall() = default;
  explicit PendingCall(std::shared_ptr<Receiver> receiver) : receiver_(std::move(receiver)) {}
  PendingCall(PendingCall&&) = default;
  PendingCall& operator=(PendingCall&& other) {
    drop();
    receiver_ = std::move(other.receiver_);
    return *this;
  }
  ~PendingCall() { drop(); }

  bool is_open() const { return receiver_ != nullptr; }
  // Ok: the outputs are there. Else the run fails with it, at the node.
  void complete(Status status) { take()->complete(std::move(status)); }
  // The run has been stopped, or is before the call is complete.
  void on_stop(std::function<void()> function) {
    EDDY_CHECK(is_open()) << "a call that was answered waits for a stop";
    receiver_->on_stop(std::move(function));
  }
  // Completes with the status of `read`, on a thread of the executor's that waits for such files,
  // once the file can be read without waiting. The file stays the caller's, and open until then.
  void complete_when_readable(int file, std::function<Status()> read) {
    take()->complete_when_readable(file, std::move(read));
  }
  // There is no call: start() has returned its outcome at once.
  void forget() { receiver_.reset(); }

 private:
  std::shared_ptr<Receiver> take() {
    EDDY_CHECK(is_open()) << "a call is completed twice";
    return std::move(receiver_);
  }
  void drop() {
    if (is_open()) complete(run_failed("the call was dropped without an answer"));
  }

  std::shared_ptr<Receiver> receiver_;
};

}  // namespace eddy
