#include "runtime/coroutine/scheduler.h"

#include <pthread.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>

#include <algorithm>
#include <exception>
#include <new>
#include <utility>

#include "graph/base/check.h"
#include "graph/base/processor.h"
#include "runtime/coroutine/futex.h"
#include "runtime/coroutine/task.h"

namespace eddy {
namespace {

constexpr int kResumesPerRound = 32;
constexpr int kTimersPerRound = 32;
constexpr std::chrono::nanoseconds kLongestRound{100'000};
constexpr std::size_t kTaskBytes = (sizeof(Task) + 63) / 64 * 64;
static_assert(alignof(Task) <= 64 && kTaskBytes % 64 == 0,
              "a task at the top of a stack is aligned");

// Set once by each scheduler's thread; tasks never migrate, so it holds across suspensions.
thread_local Scheduler* this_threads_scheduler = nullptr;

// Another thread has run on this one's processor, by the system's own count.
bool yield_processor() {
  const auto count = [] {
    rusage usage{};
    getrusage(RUSAGE_THREAD, &usage);
    return usage.ru_nivcsw;
  };
  const long before = count();
  sched_yield();
  return count() != before;
}

}  // namespace

// ---------------------------------------------------------------- life

Scheduler::Scheduler(SchedulerOptions options)
    : options_(std::move(options)),
      pace_(options_.idle),
      stacks_(options_.stacks),
      thread_([this] { run_loop(); }) {}

Scheduler::~Scheduler() {
  EDDY_CHECK(!is_own_thread()) << "a scheduler cannot be destroyed by its own tasks";
  stop_wanted_.store(true, std::memory_order_relaxed);
  inbox_.poke();
  thread_.join();
}

Scheduler* Scheduler::current_or_null() { return this_threads_scheduler; }

bool Scheduler::is_in_task() {
  const Scheduler* const scheduler = this_threads_scheduler;
  return scheduler != nullptr && scheduler->running_ != nullptr && !scheduler->is_in_thread_call_;
}

// ---------------------------------------------------------------- tasks

Status Scheduler::spawn(TaskFunction function, std::string name) {
  EDDY_CHECK(function) << "spawn needs a function";
  Task* task = nullptr;
  {
    std::lock_guard lock(tasks_mutex_);
    EDDY_ASSIGN_OR_RETURN(const Stack whole, stacks_.acquire());
    EDDY_DCHECK(whole.size_bytes > 2 * kTaskBytes) << "a stack of " << whole.size_bytes << " bytes";
    const Stack frames{whole.base, whole.size_bytes - kTaskBytes};
    task = new (frames.top())
        Task(this, whole, frames, &Scheduler::run_task, std::move(function), std::move(name));
    task->id = ++last_id_;
    task->older = youngest_;
    EDDY_DCHECK(youngest_ == nullptr || youngest_->younger == nullptr) << "the list goes on";
    if (youngest_ != nullptr) youngest_->younger = task;
    youngest_ = task;
  }
  wake(task);
  return Status::ok();
}

void Scheduler::run_task(void* argument) {
  Task* task = static_cast<Task*>(argument);
  EDDY_DCHECK(task->scheduler->running_ == task) << "a task begins outside its scheduler's loop";
  try {
    task->function();
    task->function.reset();
  } catch (const std::exception& error) {
    EDDY_CHECK(false) << "task '" << task->name << "' threw: " << error.what();
  } catch (...) {
    EDDY_CHECK(false) << "task '" << task->name << "' threw something";
  }
}

void Scheduler::end_task(Task* task) {
  EDDY_DCHECK(task->fiber.is_finished()) << "task '" << task->name << "' has not returned";
  std::lock_guard lock(tasks_mutex_);
  if (task->older != nullptr) task->older->younger = task->younger;
  if (task->younger != nullptr) task->younger->older = task->older;
  EDDY_DCHECK((task == youngest_) == (task->younger == nullptr)) << "the list of tasks is torn";
  if (task == youngest_) youngest_ = task->older;
  const Stack stack = task->stack;
  task->~Task();
  stacks_.release(stack);
}

std::vector<TaskSnapshot> Scheduler::inspect() const {
  std::vector<TaskSnapshot> tasks;
  std::lock_guard lock(tasks_mutex_);
  for (const Task* task = youngest_; task != nullptr; task = task->older) {
    tasks.push_back({task->id, task->name, task->state.load(std::memory_order_relaxed),
                     task->waits_for.load(std::memory_order_relaxed)});
  }
  std::reverse(tasks.begin(), tasks.end());
  return tasks;
}

// ---------------------------------------------------------------- waits and wakes

Task* Scheduler::running_task() {
  EDDY_CHECK(is_own_thread() && running_ != nullptr)
      << "only a task may wait or yield, not a timer, a poller or another thread";
  EDDY_CHECK(!is_in_thread_call_)
      << "what a task calls on the thread's stack may not wait, yield or leave the stack again";
  return running_;
}

void Scheduler::suspend_running(const char* what) {
  Task* task = running_task();
  task->waits_for.store(what, std::memory_order_relaxed);
  task->state.store(TaskState::kWaiting, std::memory_order_relaxed);
  task->fiber.suspend();
  EDDY_DCHECK(running_ == task) << "another task runs on the stack of '" << task->name << "'";
  task->waits_for.store("", std::memory_order_relaxed);
}

void Scheduler::call_on_thread_stack(void (*function)(void*), void* context) {
  Scheduler* scheduler = this_threads_scheduler;
  EDDY_CHECK(scheduler != nullptr) << "only a task may leave its stack";
  Task* task = scheduler->running_task();
  EDDY_DCHECK(function != nullptr && task->thread_call == nullptr) << "no call, or two at once";
  task->thread_call = function;
  task->thread_context = context;
  task->fiber.suspend();
}

void Scheduler::wake(Task* task) {
  Scheduler* scheduler = task->scheduler;
  if (scheduler->is_own_thread()) {
    scheduler->ready_.push(task);
  } else {
    scheduler->inbox_.push(task);  // the last touch: task and scheduler may be gone after it
  }
}

void Scheduler::yield() {
  Scheduler* scheduler = this_threads_scheduler;
  EDDY_CHECK(scheduler != nullptr) << "only a task may yield";
  Task* task = scheduler->running_task();
  scheduler->ready_.push(task);
  task->fiber.suspend();
}

TimerId Scheduler::run_at(Clock::time_point when, std::function<void()> callback) {
  const Timers::Added added = timers_.add(when, std::move(callback));
  if (added.is_earliest && !is_own_thread()) inbox_.poke();
  return added.id;
}

PollerId Scheduler::add_poller(std::function<bool()> poller,
                               std::function<PollSet::Slack()> slack) {
  const PollerId id = pollers_.add(std::move(poller), std::move(slack));
  if (!is_own_thread()) inbox_.poke();
  return id;
}

// ---------------------------------------------------------------- the loop

void Scheduler::run_loop() {
  this_threads_scheduler = this;
  pthread_setname_np(pthread_self(), options_.thread_name.substr(0, 15).c_str());
  prctl(PR_SET_TIMERSLACK, 1, 0, 0, 0);  // 50 µs otherwise: as long as our longest nap
  for (;;) {
    // All that keeps the thread awake is read behind this; what comes later keeps the inbox awake.
    accept_wakes();
    if (may_end()) break;
    bool worked = run_due_timers();
    worked |= pollers_.poll();
    worked |= run_ready_tasks();
    worked ? pace_.end() : idle();
  }
  EDDY_DCHECK(ready_.is_empty() && running_ == nullptr) << "a task is left behind";
  this_threads_scheduler = nullptr;
}

bool Scheduler::may_end() {
  // Relaxed: the destructor's poke and our drain order it, and the list is under a mutex.
  return stop_wanted_.load(std::memory_order_relaxed) && !has_tasks();
}

bool Scheduler::has_tasks() {
  std::lock_guard lock(tasks_mutex_);
  return youngest_ != nullptr;
}

void Scheduler::accept_wakes() {
  for (InboxNode* node = inbox_.drain(); node != nullptr;) {
    InboxNode* next = node->next;
    EDDY_DCHECK(static_cast<Task*>(node)->scheduler == this) << "the task of another scheduler";
    ready_.push(static_cast<Task*>(node));
    node = next;
  }
}

bool Scheduler::run_due_timers() {
  const std::int64_t next_ns = timers_.next_ns();
  if (next_ns == Timers::kNever) return false;
  const Clock::time_point now = Clock::now();
  if (Clock::time_point(std::chrono::nanoseconds(next_ns)) > now) return false;
  for (int i = 0; i < kTimersPerRound; ++i) {
    const Timers::Callback due = timers_.pop_due(now);
    if (due == nullptr) return i > 0;
    due();
  }
  return true;
}

// Whether it has called anything on this stack. Inlined for the reason given in fiber.h.
[[gnu::always_inline]] inline bool Scheduler::resume(Task* task) {
  EDDY_DCHECK(running_ == nullptr && !is_in_thread_call_)
      << "a task is resumed from inside another";
  bool has_called = false;
  task->state.store(TaskState::kRunning, std::memory_order_relaxed);
  running_ = task;
  task->fiber.resume();
  while (task->thread_call != nullptr) {
    is_in_thread_call_ = true;
    std::exchange(task->thread_call, nullptr)(task->thread_context);
    is_in_thread_call_ = false;
    has_called = true;
    task->fiber.resume();
  }
  running_ = nullptr;
  if (task->fiber.is_finished()) end_task(task);
  return has_called;
}

bool Scheduler::run_ready_tasks() {
  if (ready_.is_empty()) return false;
  const bool is_bounded = bounds_rounds_.load(std::memory_order_relaxed);
  const Clock::time_point latest =
      is_bounded ? Clock::now() + kLongestRound : Clock::time_point::max();
  for (int i = 0; i < kResumesPerRound && !ready_.is_empty(); ++i) {
    // What is called on the thread's stack may take long; the tasks themselves do not.
    if (resume(ready_.pop()) && is_bounded && Clock::now() > latest) break;
  }
  return true;
}

void Scheduler::expect_end(Clock::time_point when) {
  const Clock::rep end = when.time_since_epoch().count();
  Clock::rep known = expected_end_.load(std::memory_order_relaxed);
  while (known < end && !expected_end_.compare_exchange_weak(known, end, std::memory_order_relaxed))
    continue;
}

void Scheduler::idle() {
  EDDY_DCHECK(ready_.is_empty()) << "the thread rests while tasks are ready";
  const bool is_polling = !pollers_.is_empty();
  const Clock::time_point now = Clock::now();
  if (is_polling && pace_.is_beginning()) {
    // Where no poller is in a hurry, spinning takes somebody's processor for nothing.
    const PollSet::Slack slack = pollers_.slack();
    if (slack && *slack > PollSet::kNow) return sleep_until_woken(now + *slack);
  }
  const IdlePace::Step step =
      pace_.next({now, is_polling, is_polling && has_tasks(), expected_end()});
  switch (step.kind) {
    case IdlePace::Kind::kSpin:
      for (int i = 0; i < 8; ++i) cpu_relax();
      return;
    case IdlePace::Kind::kSleep:
      break;
    case IdlePace::Kind::kYield:
    case IdlePace::Kind::kNap: {
      const PollSet::Slack slack = pollers_.slack();
      if (!slack) break;
      if (*slack > PollSet::kNow) return sleep_until_woken(std::max(step.until, now + *slack));
      if (step.kind == IdlePace::Kind::kNap) return sleep_until_woken(step.until);
      if (yield_processor()) pace_.lose_turn();
      return;
    }
  }
  sleep_until_woken(Clock::time_point::max());
  pace_.end();  // whatever woke us may have brought a poller: spin afresh
}

void Scheduler::sleep_until_woken(Clock::time_point latest) {
  // Read before the inbox decides to sleep: see the argument in inbox.h.
  const std::int64_t next_ns = timers_.next_ns();
  if (next_ns != Timers::kNever) {
    latest = std::min(latest, Clock::time_point(std::chrono::nanoseconds(next_ns)));
  }
  inbox_.sleep(latest == Clock::time_point::max() ? nullptr : &latest);
}

// ---------------------------------------------------------------- ready queue

void Scheduler::ReadyQueue::push(Task* task) {
  EDDY_DCHECK(head_ == nullptr || tail_ != task) << "task '" << task->name << "' is woken twice";
  task->state.store(TaskState::kReady, std::memory_order_relaxed);
  task->next = nullptr;
  (head_ == nullptr ? head_ : tail_->next) = task;
  tail_ = task;
}

Task* Scheduler::ReadyQueue::pop() {
  EDDY_DCHECK(head_ != nullptr) << "no task is ready";
  Task* task = static_cast<Task*>(head_);
  head_ = head_->next;
  return task;
}

}  // namespace eddy
