// DeadlineTimer: calls a function on the scheduler's thread at a time, unless disarmed before.
//
// disarm() is what makes it safe to destroy what the function touches: when it returns, the
// function is not running and never will. Called by the function itself it returns at once.
//
// Internal to runtime/api. Threads: one owner arms and disarms.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>

#include "runtime/coroutine/timers.h"

namespace eddy {

class Scheduler;

class DeadlineTimer {
 public:
  DeadlineTimer() = default;
  ~DeadlineTimer() { disarm(); }
  DeadlineTimer(const DeadlineTimer&) = delete;
  DeadlineTimer& operator=(const DeadlineTimer&) = delete;

  // Once between two disarms. The scheduler must outlive the timer's being armed.
  void arm(Scheduler& scheduler, std::chrono::steady_clock::time_point when,
           std::function<void()> fire);
  void disarm() {
    if (scheduler_ != nullptr) disarm_now();
  }

 private:
  void disarm_now();

  Scheduler* scheduler_ = nullptr;  // null: not armed
  TimerId timer_;
  struct Firing {
    std::atomic<std::thread::id> thread{};  // the function's, once it is called
    std::atomic<bool> is_over{false};       // released by the function's end
  };
  std::shared_ptr<Firing> firing_;
};

}  // namespace eddy
