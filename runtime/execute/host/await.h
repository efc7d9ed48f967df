// await: where devices and coroutines meet. A task suspends until a stream is idle; the device
// calls a listener from any thread, which wakes the task.
//
// On an idle stream nothing happens but one acquire load. Threads: call in a task.
#pragma once

#include "runtime/coroutine/completion.h"
#include "runtime/device/device.h"

namespace eddy {

// Turns a device's call into a wake-up.
class CompletionListener : public EventListener {
 public:
  void on_complete() override { completion_.notify(); }
  void wait(const char* what) { completion_.wait(what); }

 private:
  Completion completion_;
};

// Returns once everything issued to the stream has run and its effects are visible here.
inline void await_idle(Stream& stream) {
  if (stream.is_idle()) return;
  CompletionListener listener;
  if (!stream.listen_or_idle(listener)) listener.wait("stream to be idle");
}

}  // namespace eddy
