// CallbackThread: one thread that calls users' callbacks, in the order in which they come
// (CallbackQueue), but for those that a thread calls which waits for them.
// CallbackThreads: those that no session needs at the moment.
// SessionCallbacks: a session's own one, from its first callback to its end.
//
// A session has a thread for itself, so that a callback that blocks holds up none of another
// session's. When it goes, the next session takes the thread over: one of a short life pays for no
// thread.
//
// A thread that waits for its own callback has mostly called it before the queue's thread, woken,
// has come. Where waiters do that, the queue's thread naps instead of sleeping, so that callbacks
// of which a waiter is likely wake nobody.
//
// Ownership: a CallbackThreads outlives all that is lent from it.
// Errors: making a thread throws std::system_error where the system gives none.
// Threads: post from any thread, callbacks included; a callback may let its session go elsewhere
// before post() has returned.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "graph/base/short_lock.h"
#include "runtime/api/end_signal.h"

namespace eddy {

// The queue's thread, for a callback that is posted.
enum class CallbackWake {
  kNo,             // the caller helps afterwards
  kUnlessNapping,  // the caller may help; the thread looks by itself within a nap
  kYes,
};

// Callbacks in the order in which they come, called one after the other: by the queue's thread, or
// by one that waits for one of them.
class CallbackQueue {
 public:
  void post(std::function<void()> callback, CallbackWake wake);
  // Calls what is queued on this thread, where no other thread does, until `end` is set.
  void help(const EndSignal& end);
  // Waits until nothing is queued or running.
  void drain();
  // Whether the caller is inside a callback.
  bool is_here() const {
    return runner_.load(std::memory_order_relaxed) == std::this_thread::get_id();
  }
  // loop() calls what is queued, and returns.
  void end();
  void loop();

 private:
  static constexpr std::chrono::microseconds kNap{100};
  static constexpr int kSpins = 100;

  struct Posted {
    std::function<void()> callback;
    CallbackWake wake;
  };

  bool may_call() const { return !is_busy_ && !queue_.empty(); }
  // Unlocks.
  void call_thread(std::unique_lock<ShortLock>& lock);
  // Returns that one's wake.
  CallbackWake call_first(std::unique_lock<ShortLock>& lock);
  void rest(std::unique_lock<ShortLock>& lock);

  ShortLock lock_;
  std::condition_variable_any called_;  // the thread, which rests
  std::condition_variable_any drained_;
  // Under the lock.
  std::deque<Posted> queue_;
  bool is_busy_ = false;
  bool is_ending_ = false;
  enum class Rest { kNone, kNap, kSleep };
  Rest rest_ = Rest::kNone;    // of the thread; what calls it makes that none
  bool has_helpers_ = false;   // one called what might have woken the thread, since that rested
  bool is_relied_on_ = false;  // one has left its callback to others, since the thread rested
  size_t num_draining_ = 0;
  // The thread that is inside a callback. A thread finds itself there only if it is (relaxed).
  std::atomic<std::thread::id> runner_{};
};

class CallbackThread {
 public:
  CallbackThread()
      : queue_(std::make_shared<CallbackQueue>()), thread_([queue = queue_] { queue->loop(); }) {}
  // Runs what is queued, then joins; inside a callback, behind which nothing may be queued, the
  // thread ends by itself.
  ~CallbackThread();
  CallbackThread(const CallbackThread&) = delete;
  CallbackThread& operator=(const CallbackThread&) = delete;

  const std::shared_ptr<CallbackQueue>& queue() const { return queue_; }

 private:
  const std::shared_ptr<CallbackQueue> queue_;  // the thread's, too
  std::thread thread_;
};

class CallbackThreads {
 public:
  std::unique_ptr<CallbackThread> take();
  // Of a thread that is drained. Of many only some are kept.
  void give_back(std::unique_ptr<CallbackThread> thread);

 private:
  static constexpr size_t kMaxIdle = 4;

  std::mutex mutex_;
  std::vector<std::unique_ptr<CallbackThread>> idle_;  // under the mutex
};

class SessionCallbacks {
 public:
  explicit SessionCallbacks(CallbackThreads& threads) : threads_(threads) {}
  // Runs what is queued; inside a callback nothing may be, and the thread ends with that callback.
  ~SessionCallbacks();
  // That post() will find a thread. Throws std::system_error where the system has none.
  void prepare();
  void post(std::function<void()> callback, CallbackWake wake = CallbackWake::kYes);
  // Whether the caller is inside one of them.
  bool is_here() const;
  // What a thread helps with that waits for a callback; the session may go meanwhile. Prepared.
  const std::shared_ptr<CallbackQueue>& queue() const;

 private:
  CallbackThreads& threads_;
  std::mutex preparing_;
  // Released once it is there, and stays.
  std::atomic<CallbackThread*> thread_or_null_{nullptr};
};

}  // namespace eddy
