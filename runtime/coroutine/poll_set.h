// PollSet: functions that look at something which cannot wake us, such as a word that a GPU
// writes, called in turn by one thread.
//
// Contract: a poller returns whether it found something new. It must be quick and must not
// wait or throw. After remove() has returned, its function is not running and never runs again; a
// poller may remove itself or others, or add some, from inside its own call, and so may the
// function that returns how late it may be. What removed functions own is destroyed without
// locks, after the pass if it is a pass that removes them.
//
// Errors: removing an unknown poller is a CHECK. Threads: add and remove from any; poll from
// the scheduler's. Memory order: a mutex guards the list and is held during a pass;
// count_ and waiting_ are hints, ordered by that mutex. A thread that waits for the mutex
// counts itself in waiting_, and the polling thread, which would otherwise retake it at once, skips
// passes until it has been let in.
// Cost: a pass over nothing is one relaxed load, else 20 ns and the pollers themselves.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

namespace eddy {

// Names one poller of one scheduler; 0 names none.
enum class PollerId : std::uint64_t {};

class PollSet {
 public:
  using Poller = std::function<bool()>;

  // How late its next call may come: 0 where tasks wait for what it finds, nothing where there is
  // nothing to look for.
  using Slack = std::optional<std::chrono::nanoseconds>;
  static constexpr Slack kNow = std::chrono::nanoseconds(0);

  // Without `slack` it may never be late. A poller that returns some, or nothing, must wake the
  // polling thread when that changes to less, from the call on.
  PollerId add(Poller poller, std::function<Slack()> slack = {});
  void remove(PollerId id);

  bool is_empty() const { return count_.load(std::memory_order_relaxed) == 0; }
  // Calls each poller once; true if one of them found something.
  bool poll();
  // The least of all pollers. Each is asked, because the question arms its wake-ups.
  Slack slack();

 private:
  struct Entry {
    PollerId id;
    Poller poller;
    std::function<Slack()> slack;
    bool removed = false;
  };

  // Locks against a pass of another thread; from inside a pass there is nothing to lock.
  std::unique_lock<std::mutex> lock_list();
  bool is_polling_here() const;
  template <typename Visit>
  void visit_each(Visit visit);

  std::mutex mutex_;
  // Guarded by mutex_. By pointer: a poller may add others while its function runs.
  std::vector<std::unique_ptr<Entry>> entries_;
  std::uint64_t last_id_ = 0;  // guarded by mutex_
  bool sweep_needed_ = false;  // guarded by mutex_
  std::atomic<std::size_t> count_{0};
  std::atomic<std::size_t> waiting_{0};
  std::atomic<const void*> polling_thread_{nullptr};  // of a pass; compared to oneself
};

}  // namespace eddy
