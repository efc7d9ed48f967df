// ExecutorObject: where users' callbacks run: inline, on a thread of its own, or where the caller
// drains it (its own event loop, woken by a file descriptor).
//
// Internal to runtime/api/c. Each posted task is called exactly once. When the last handle of
// one that the caller drains goes, nobody can drain it any more: what waits is called then, by that
// thread, and what comes later inline.
//
// The descriptor of one that the caller drains is set while tasks wait, and stays set until run()
// has found none: while tasks come one after the other it is neither set nor cleared again, which
// would take longer than they do. A loop that is woken for nothing then clears it.
//
// Ownership: runs and streams of rows keep their executor. Threads: any. A thread of its own calls
// one task after the other; what several threads drain is called at once.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>

#include "runtime/api/c/event_file.h"
#include "runtime/api/c/handles.h"

namespace eddy::c {

// What an executor calls, once: it is given the executor's hold, and throws nothing.
class Task {
 public:
  virtual ~Task() = default;
  virtual void call(std::shared_ptr<Task> self) = 0;
};

class ExecutorObject : public Object {
 public:
  static constexpr Kind kKind = Kind::kExecutor;

  // Throws std::system_error where the system has no thread or descriptor.
  explicit ExecutorObject(int32_t kind);
  ~ExecutorObject() override;

  void released() noexcept override;
  void post(std::shared_ptr<Task> task);
  void post(std::function<void()> function);
  // Of one that the caller drains: takes the task, unless it would be called here.
  bool try_post(std::shared_ptr<Task>&& task);
  int32_t kind() const { return kind_; }
  int fd() const { return file_.fd(); }
  // Calls at most `max` of what waits now; how many.
  size_t run(size_t max);

 private:
  struct Queue {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::shared_ptr<Task>> waiting;  // under the mutex
    bool is_file_set = false;                   // under the mutex
    bool is_ending = false;                     // under the mutex
    bool is_released = false;                   // under the mutex

    std::shared_ptr<Task> pop();  // under the mutex
  };
  static void loop(const std::shared_ptr<Queue>& queue);

  const int32_t kind_;
  EventFile file_;
  const std::shared_ptr<Queue> queue_;  // the thread's, too
  std::thread thread_;
};

// Calls that give no executor have it called here.
inline void post_to(ExecutorObject* executor_or_null, std::shared_ptr<Task> task) {
  if (executor_or_null != nullptr) return executor_or_null->post(std::move(task));
  Task& called = *task;
  called.call(std::move(task));
}

}  // namespace eddy::c
