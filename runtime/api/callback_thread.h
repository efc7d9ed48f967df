// CallbackThread: one thread that calls users' callbacks, in the order in which they come.
// CallbackThreads: those that no session needs at the moment.
// SessionCallbacks: a session's own one, from its first callback to its end.
//
// A session has a thread for itself, so that a callback that blocks holds up none of another
// session's. When it goes, the next session takes the thread over: one of a short life pays for no
// thread.
//
// Ownership: a CallbackThreads outlives all that is lent from it.
// Errors: making a thread throws std::system_error where the system gives none.
// Threads: post from any thread, callbacks included; a callback may let its session go elsewhere
// before post() has returned.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace eddy {

class CallbackThread {
 public:
  CallbackThread() : thread_([this] { loop(); }) {}
  // Runs what is queued, then joins.
  ~CallbackThread();
  // The caller keeps the thread until post() has returned.
  void post(std::function<void()> callback);
  // Waits until nothing is queued or running.
  void drain();
  // Whether the caller is inside a callback of this thread.
  bool is_here() const { return std::this_thread::get_id() == thread_.get_id(); }
  // Inside the last callback, by the owner, which lets go of it: the thread ends by itself.
  void leave_to_itself();

 private:
  void loop();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::condition_variable drained_;
  std::deque<std::function<void()>> queue_;  // under the mutex
  bool is_busy_ = false;                     // under the mutex
  bool is_ending_ = false;                   // under the mutex
  bool is_its_own_ = false;                  // the thread's own
  std::thread thread_;                       // last: it uses all of the above
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
  void post(std::function<void()> callback);
  // Whether the caller is inside one of them.
  bool is_here();

 private:
  CallbackThreads& threads_;
  std::mutex mutex_;
  std::unique_ptr<CallbackThread> thread_or_null_;  // under the mutex
};

}  // namespace eddy
