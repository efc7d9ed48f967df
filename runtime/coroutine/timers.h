// Timers: callbacks due at a time, added and cancelled from any thread, run by one.
//
// Contract: a callback leaves the set exactly once, either by pop_due, and then it runs, or by
// cancel, and then it never does. Due timers leave in order of time, then of adding.
//
// Errors: none. Threads: add, cancel and next_ns from any; pop_due from the one that runs them.
// Memory order: a mutex guards the set. next_ns_ is written under it and read without it by
// the scheduler's loop: its partner is the scheduler's poke, which orders the write.
// Cost: O(log n), one allocation; pop_due takes the mutex, next_ns is one relaxed load: ask it
// first.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <mutex>

namespace eddy {

// Names one timer of one scheduler, for ever; a default one names none.
struct TimerId {
  std::chrono::steady_clock::time_point when{};
  std::uint64_t sequence = 0;

  auto operator<=>(const TimerId&) const = default;
};

class Timers {
 public:
  using Clock = std::chrono::steady_clock;
  using Callback = std::function<void()>;
  static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

  struct Added {
    TimerId id;
    bool is_earliest;  // a thread that sleeps until the next timer must look again
  };
  Added add(Clock::time_point when, Callback callback);
  // True: it was there and will never run.
  bool cancel(const TimerId& id);

  // Nanoseconds of the steady clock at which the earliest is due; kNever if there is none.
  std::int64_t next_ns() const { return next_ns_.load(std::memory_order_relaxed); }
  // The earliest timer if it is due at `now`, else an empty function.
  Callback pop_due(Clock::time_point now);

 private:
  void publish_next();

  std::mutex mutex_;
  std::map<TimerId, Callback> pending_;  // guarded by mutex_
  std::uint64_t last_sequence_ = 0;      // guarded by mutex_
  std::atomic<std::int64_t> next_ns_{kNever};
};

}  // namespace eddy
