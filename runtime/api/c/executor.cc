#include "runtime/api/c/executor.h"

#include <algorithm>
#include <utility>

#include "graph/base/check.h"
#include "runtime/api/c/api_functions.h"
#include "runtime/api/c/convert.h"
#include "runtime/api/c/errors.h"

namespace eddy::c {

ExecutorObject::ExecutorObject(int32_t kind) : kind_(kind), queue_(std::make_shared<Queue>()) {
  if (kind == EDDY_EXECUTOR_CALLER) file_.open();
  if (kind == EDDY_EXECUTOR_THREAD) thread_ = std::thread([queue = queue_] { loop(queue); });
}

ExecutorObject::~ExecutorObject() {
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(queue_->mutex);
    queue_->is_ending = true;
  }
  queue_->changed.notify_all();
  // On its own thread, inside a callback that lets go of it, it ends behind what waits.
  if (thread_.get_id() == std::this_thread::get_id()) {
    thread_.detach();
  } else {
    thread_.join();
  }
}

namespace {

void call(std::shared_ptr<Task> task) {
  Task& called = *task;
  called.call(std::move(task));
}

class FunctionTask : public Task {
 public:
  explicit FunctionTask(std::function<void()> function) : function_(std::move(function)) {}
  void call(std::shared_ptr<Task>) override { function_(); }

 private:
  const std::function<void()> function_;
};

}  // namespace

std::shared_ptr<Task> ExecutorObject::Queue::pop() {
  EDDY_DCHECK(!waiting.empty()) << "no task waits";
  std::shared_ptr<Task> task = std::move(waiting.front());
  waiting.pop_front();
  return task;
}

void ExecutorObject::loop(const std::shared_ptr<Queue>& queue) {
  std::unique_lock lock(queue->mutex);
  while (true) {
    queue->changed.wait(lock, [&] { return !queue->waiting.empty() || queue->is_ending; });
    if (queue->waiting.empty()) return;
    std::shared_ptr<Task> task = queue->pop();
    lock.unlock();
    c::call(std::move(task));  // what it holds goes outside of the lock
    lock.lock();
  }
}

void ExecutorObject::released() noexcept {
  if (kind_ != EDDY_EXECUTOR_CALLER) return;
  {
    const std::lock_guard lock(queue_->mutex);
    queue_->is_released = true;  // nothing is posted from here on
  }
  run(SIZE_MAX);
}

void ExecutorObject::post(std::function<void()> function) {
  post(std::make_shared<FunctionTask>(std::move(function)));
}

void ExecutorObject::post(std::shared_ptr<Task> task) {
  if (kind_ == EDDY_EXECUTOR_INLINE) return c::call(std::move(task));
  if (kind_ == EDDY_EXECUTOR_CALLER) {
    if (!try_post(std::move(task))) c::call(std::move(task));
    return;
  }
  {
    const std::lock_guard lock(queue_->mutex);
    queue_->waiting.push_back(std::move(task));
  }
  queue_->changed.notify_one();
}

bool ExecutorObject::try_post(std::shared_ptr<Task>&& task) {
  if (kind_ != EDDY_EXECUTOR_CALLER) return false;
  const std::lock_guard lock(queue_->mutex);
  if (queue_->is_released) return false;
  queue_->waiting.push_back(std::move(task));
  if (!std::exchange(queue_->is_file_set, true)) file_.set();
  return true;
}

size_t ExecutorObject::run(size_t max) {
  size_t count = 0;
  for (; count < max; ++count) {
    std::shared_ptr<Task> task;
    {
      const std::lock_guard lock(queue_->mutex);
      // What tasks post themselves has its turn in the next call.
      if (count == 0) max = std::min(max, queue_->waiting.size());
      if (queue_->waiting.empty()) {
        // Not behind tasks: more may come at once.
        if (count == 0 && std::exchange(queue_->is_file_set, false)) file_.clear();
        break;
      }
      task = queue_->pop();
    }
    c::call(std::move(task));
  }
  return count;
}

eddy_code executor_create(int32_t kind, eddy_executor* executor, eddy_error* error) {
  return enter(error, [&]() -> Refusal {
    EDDY_C_TRY(need(executor, "place for the executor"));
    if (kind < EDDY_EXECUTOR_INLINE || kind > EDDY_EXECUTOR_CALLER) {
      return {EDDY_INVALID_ARGUMENT,
              "there is no executor of kind " + std::to_string(kind) + "; give EDDY_EXECUTOR_*"};
    }
    try {
      *executor = make_handle<eddy_executor>(std::make_shared<ExecutorObject>(kind));
    } catch (const std::system_error& failure) {
      return {EDDY_RESOURCE_EXHAUSTED,
              std::string("the system has no thread or descriptor for it: ") + failure.what()};
    }
    return {};
  });
}

namespace {

Refusal check_caller(const ExecutorObject& executor) {
  if (executor.kind() == EDDY_EXECUTOR_CALLER) return {};
  return {EDDY_INVALID_STATE, "this executor calls by itself; make one of EDDY_EXECUTOR_CALLER"};
}

}  // namespace

eddy_code executor_fd(eddy_executor executor, int* fd, eddy_error* error) {
  return enter_with<ExecutorObject>(executor, error, [&](const auto& e) -> Refusal {
    EDDY_C_TRY(need(fd, "place for the descriptor"));
    EDDY_C_TRY(check_caller(*e));
    *fd = e->fd();
    return {};
  });
}

eddy_code executor_run(eddy_executor executor, size_t max, size_t* num_called, eddy_error* error) {
  return enter_with<ExecutorObject>(executor, error, [&](const auto& e) -> Refusal {
    EDDY_C_TRY(check_caller(*e));
    const size_t count = e->run(max);
    if (num_called != nullptr) *num_called = count;
    return {};
  });
}

}  // namespace eddy::c
