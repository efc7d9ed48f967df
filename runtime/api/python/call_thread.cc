#include "runtime/api/python/call_thread.h"

#include <thread>
#include <utility>

#include "runtime/api/python/interpreter_lock.h"

namespace eddy::python {
namespace {

thread_local bool is_call_thread = false;

}  // namespace

bool CallThread::is_this_thread() { return is_call_thread; }

// Detached: joining would hold the interpreter's lock, which the thread may need to end.
CallThread::CallThread() : queue_(std::make_shared<Queue>()) {
  std::thread([queue = queue_] { run(queue); }).detach();
}

CallThread::~CallThread() {
  {
    const std::lock_guard lock(queue_->mutex);
    queue_->is_over = true;
  }
  queue_->changed.notify_one();
}

void CallThread::post(std::function<void()> call) {
  {
    const std::lock_guard lock(queue_->mutex);
    queue_->calls.push_back(std::move(call));
  }
  queue_->changed.notify_one();
}

void CallThread::run(const std::shared_ptr<Queue>& queue) {
  is_call_thread = true;
  go_on_at_the_end();
  for (;;) {
    std::function<void()> call;
    {
      std::unique_lock lock(queue->mutex);
      queue->changed.wait(lock, [&] { return queue->is_over || !queue->calls.empty(); });
      if (queue->calls.empty()) return;
      call = std::move(queue->calls.front());
      queue->calls.pop_front();
    }
    call();
  }
}

}  // namespace eddy::python
