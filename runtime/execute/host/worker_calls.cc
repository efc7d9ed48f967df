#include "runtime/execute/host/worker_calls.h"

#include "graph/base/check.h"
#include "runtime/coroutine/completion.h"
#include "runtime/coroutine/scheduler.h"

namespace eddy {

WorkerCalls::WorkerCalls(Device& host) : host_(host), has_workers_(!host.needs_polling()) {}

void WorkerCalls::call(Function function, void* context) {
  if (!has_workers_) return Scheduler::call_on_thread_stack(function, context);
  if (stream_ == nullptr) {
    Result<std::unique_ptr<Stream>> made = host_.create_stream();
    EDDY_CHECK(made.is_ok()) << "a device whose work needs no polling refuses a stream";
    stream_ = std::move(*made);
  }
  struct Call {
    Function function;
    void* context;
    Completion done = {};
    static bool run(void* call) {
      auto& self = *static_cast<Call*>(call);
      self.function(self.context);
      self.done.notify();
      return true;
    }
  } call{function, context};
  const bool is_taken = stream_->launch({Call::run, &call, false});
  EDDY_CHECK(is_taken) << "a stream of workers refuses a call";
  call.done.wait("a worker");
}

}  // namespace eddy
