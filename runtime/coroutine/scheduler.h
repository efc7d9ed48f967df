// Scheduler: one thread that resumes coroutines, fires timers and polls devices.
//
// A task runs on a pooled fiber until it waits (Completion), yields or returns. Only the
// scheduler's thread resumes tasks; any thread may wake them. A round of its loop: take wakes from
// the inbox, fire due timers, poll, resume up to 32 ready tasks in order, fewer where what they
// call takes long. Idle, it spins for a moment, then sleeps until a wake or the next timer (with
// wanted pollers: in short, growing naps); without these it uses no CPU (idle_pace.h).
//
// Contract for tasks: end by returning, never by an exception (CHECK). Do not block the thread. Do
// not carry the value of a thread_local variable, errno included, over a wait or a yield: other
// tasks of this thread have run. A task stays on this thread for life. Stacks are fixed (256 KiB by
// default): kernels and recursion over user data belong elsewhere.
//
// Shutdown: the destructor waits until every task, also those that tasks still spawn, has
// returned; timers and pollers run meanwhile, so a task that waits for a timer is served. Timers
// left then are dropped without running. A task that is never woken makes it wait for ever: cancel
// first. No other thread may be inside a call on the scheduler by then; a Completion::notify that
// is on its way out does no harm.
//
// Errors: spawn: resource_exhausted (stacks). The constructor throws std::system_error where the
// system gives no thread. Misuse is a CHECK. Threads: every member from any thread unless its
// comment excludes that. Spawn order is run order for one spawner. A task, timer or poller sees
// what a thread wrote before the spawn, notify, run_at or add_poller that caused it to run.
// Cost: yield 20 ns; spawn to end of an empty task 100 ns on a recycled stack; a wake from
// another thread 100 ns while this one spins, tens of microseconds when it sleeps.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "graph/base/status.h"
#include "runtime/coroutine/idle_pace.h"
#include "runtime/coroutine/inbox.h"
#include "runtime/coroutine/poll_set.h"
#include "runtime/coroutine/stack_pool.h"
#include "runtime/coroutine/task_function.h"
#include "runtime/coroutine/task_state.h"
#include "runtime/coroutine/timers.h"

namespace eddy {

struct SchedulerOptions {
  StackPoolOptions stacks{};
  std::string thread_name = "eddy-sched";  // at most 15 characters
  IdlePace::Options idle{};
};

struct Task;  // task.h, internal

// One live task as inspect() saw it.
struct TaskSnapshot {
  std::uint64_t id;  // counts spawns
  std::string name;
  TaskState state;
  const char* waits_for;  // empty unless it waits; a literal
};

class Scheduler {
 public:
  using Clock = std::chrono::steady_clock;

  explicit Scheduler(SchedulerOptions options = {});
  ~Scheduler();  // not from its own thread
  Scheduler(const Scheduler&) = delete;
  Scheduler& operator=(const Scheduler&) = delete;

  // Runs `function` as a new task, some time after this returns or, from another thread, even
  // before. On failure the function is destroyed unrun.
  Status spawn(TaskFunction function, std::string name = {});

  // The scheduler whose thread this is; null on any other.
  static Scheduler* current_or_null();
  // Whether the caller is a task on a stack of its own, and so may wait and yield.
  static bool is_in_task();
  // Inside a task: lets everything else that is ready go first.
  static void yield();
  // Inside a task: calls the function at once, on the thread's own large stack instead of the
  // task's: for code that is not ours to bound (kernels, library calls). It must not wait, yield or
  // throw.
  static void call_on_thread_stack(void (*function)(void*), void* context);

  // Runs `callback` on the scheduler's thread at `when`, or as soon as it can after: exactly
  // once, or not at all if cancelled or still pending when the scheduler ends. It is no task:
  // it must neither wait nor throw. A time in the past means soon.
  TimerId run_at(Clock::time_point when, std::function<void()> callback);
  // True: it will never run. False: it has run, runs, or is about to; on the scheduler's own
  // thread: it has run or is the caller.
  bool cancel_timer(const TimerId& id) { return timers_.cancel(id); }

  // Calls `poller` again and again on the scheduler's thread until it is removed. It returns
  // whether it found something, must be quick and must neither wait nor throw. Pollers cost
  // CPU: add one while something is pending, and remove it afterwards; or give `slack`, which
  // returns how late the next call may come, or that nothing is pending, and call poke() when that
  // changes to less (poll_set.h).
  PollerId add_poller(std::function<bool()> poller, std::function<PollSet::Slack()> slack = {});
  // Makes the thread look at its pollers again.
  void poke() { inbox_.poke(); }
  // What tasks wait for, and pollers see end, ends by then, as far as the caller knows: until then
  // the thread rather spins than naps, where nobody else wants its processor. The latest counts.
  void expect_end(Clock::time_point when);
  // The latest; for tests.
  Clock::time_point expected_end() const {
    return Clock::time_point(Clock::duration(expected_end_.load(std::memory_order_relaxed)));
  }
  // When this returns, the poller is not running and never will again (from inside itself:
  // it is not called again).
  void remove_poller(PollerId id) { pollers_.remove(id); }

  // From now on a round ends by the number of tasks resumed and never by the clock: for devices on
  // which the order of steps must not depend on time (runtime/virtual).
  void ignore_clock_in_rounds() { bounds_rounds_.store(false, std::memory_order_relaxed); }

  // The live tasks, oldest first. Any thread, at any time; states may be a moment old.
  std::vector<TaskSnapshot> inspect() const;

  // The interface for components that build waits; Completion is the example.
  // The task that is the caller (CHECK).
  Task* running_task();
  bool is_in_thread_call_ = false;  // running_ waits for its call_on_thread_stack()
  // Suspends it until wake(task). The wake may come before, but only from this thread's own
  // loop or through the inbox, so it is not lost.
  void suspend_running(const char* what);
  // Call it once per suspension, from any thread. The task's scheduler may be gone when it returns.
  static void wake(Task* task);

 private:
  class ReadyQueue {
   public:
    bool is_empty() const { return head_ == nullptr; }
    void push(Task* task);
    Task* pop();

   private:
    InboxNode* head_ = nullptr;
    InboxNode* tail_ = nullptr;
  };

  static void run_task(void* task);
  void end_task(Task* task);

  void run_loop();
  void accept_wakes();
  bool run_due_timers();
  bool run_ready_tasks();
  bool resume(Task* task);
  bool may_end();
  bool has_tasks();
  void idle();
  void sleep_until_woken(Clock::time_point latest);
  bool is_own_thread() const { return current_or_null() == this; }

  const SchedulerOptions options_;
  Inbox inbox_;
  Timers timers_;
  PollSet pollers_;
  std::atomic<bool> bounds_rounds_{true};    // by the clock; orders nothing
  std::atomic<bool> stop_wanted_{false};     // partner: the poke that follows it
  std::atomic<Clock::rep> expected_end_{0};  // a hint; orders nothing

  // Members of the scheduler's thread alone.
  ReadyQueue ready_;
  Task* running_ = nullptr;
  IdlePace pace_;

  mutable std::mutex tasks_mutex_;
  StackPool stacks_;           // guarded by tasks_mutex_
  Task* youngest_ = nullptr;   // guarded by tasks_mutex_, as the list it heads
  std::uint64_t last_id_ = 0;  // guarded by tasks_mutex_

  std::thread thread_;  // last: it uses all of the above
};

}  // namespace eddy
