// Task: what the scheduler knows about one coroutine. Internal to runtime/coroutine.
//
// A task lives at the top of its own stack, so that spawning allocates nothing else:
//
//   [ guard | frames of the fiber ..................... ◀ top | Task ]
//
// Threads: the scheduler's, except where a member's comment names another.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <utility>

#include "runtime/coroutine/fiber.h"
#include "runtime/coroutine/inbox.h"
#include "runtime/coroutine/scheduler.h"
#include "runtime/coroutine/stack_pool.h"
#include "runtime/coroutine/task_function.h"

namespace eddy {

// The node is in the inbox or in the ready queue, never in both: a task waits for one thing,
// and one wake ends that.
struct Task : InboxNode {
  Task(Scheduler* owner, const Stack& whole, Stack frames, Fiber::Entry entry, TaskFunction body,
       std::string task_name)
      : scheduler(owner),
        stack(whole),
        fiber(frames, entry, this),
        function(std::move(body)),
        name(std::move(task_name)) {}

  Scheduler* const scheduler;
  const Stack stack;
  Fiber fiber;
  TaskFunction function;
  const std::string name;
  std::uint64_t id = 0;

  // What the task wants called on the thread's own stack; null when nothing.
  void (*thread_call)(void*) = nullptr;
  void* thread_context = nullptr;

  // Hints for Scheduler::inspect, read by any thread, so relaxed and possibly a moment old.
  std::atomic<TaskState> state{TaskState::kReady};
  std::atomic<const char*> waits_for{""};

  // The list of live tasks, guarded by the scheduler's tasks_mutex_.
  Task* older = nullptr;
  Task* younger = nullptr;
};

}  // namespace eddy
