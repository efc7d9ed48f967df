#include "runtime/coroutine/completion.h"

#include "graph/base/check.h"
#include "runtime/coroutine/futex.h"
#include "runtime/coroutine/scheduler.h"
#include "runtime/coroutine/task.h"

namespace eddy {

// A record on the waiter's stack; it is gone as soon as the waiter has been woken.
struct Completion::Waiter {
  Waiter* next = nullptr;
  Task* task_or_null = nullptr;         // null: a thread that sleeps on `woken`
  std::atomic<std::uint32_t> woken{0};  // partners with itself: notify releases, wait acquires

  void wake() {
    if (task_or_null != nullptr) {
      Scheduler::wake(task_or_null);
    } else {
      EDDY_DCHECK(woken.load(std::memory_order_relaxed) == 0) << "a thread is woken twice";
      woken.store(1, std::memory_order_release);
      futex_wake_one(&woken);  // the waiter may be gone by now
    }
  }
  void block() {
    while (woken.load(std::memory_order_acquire) == 0) futex_wait(&woken, 0, nullptr);
  }
};

static_assert(sizeof(std::atomic<std::uint32_t>) == 4, "a futex is a word of 32 bits");
Completion::~Completion() {
  EDDY_CHECK(state_.load(std::memory_order_relaxed) <= kSet)
      << "a completion was destroyed while somebody waits for it";
}

void Completion::notify() {
  const std::uint64_t before = state_.exchange(kSet, std::memory_order_acq_rel);
  if (before <= kSet) return;
  for (Waiter* waiter = reinterpret_cast<Waiter*>(before); waiter != nullptr;) {
    Waiter* next = waiter->next;  // before the wake, which ends the waiter's life
    waiter->wake();
    waiter = next;
  }
}

bool Completion::enlist(Waiter& waiter) {
  static_assert(alignof(Waiter) > kSet, "the address of a waiter is neither Empty nor Set");
  std::uint64_t state = state_.load(std::memory_order_acquire);
  do {
    if (state == kSet) return false;
    waiter.next = reinterpret_cast<Waiter*>(state);
  } while (!state_.compare_exchange_weak(state, reinterpret_cast<std::uint64_t>(&waiter),
                                         std::memory_order_release, std::memory_order_acquire));
  return true;
}

void Completion::wait(const char* what) {
  if (is_set()) return;
  Waiter waiter;
  Scheduler* scheduler = Scheduler::current_or_null();
  if (scheduler == nullptr) {
    if (enlist(waiter)) waiter.block();
    return;
  }
  waiter.task_or_null = scheduler->running_task();
  // A wake cannot overtake the suspension: the thread that would resume us is this one.
  if (enlist(waiter)) scheduler->suspend_running(what);
}

void Completion::reset() {
  const std::uint64_t before = state_.exchange(kEmpty, std::memory_order_relaxed);
  EDDY_CHECK(before <= kSet) << "a completion was reset while somebody waits for it";
}

}  // namespace eddy
