// CallbackThread: one thread that calls users' callbacks, in the order in which they come.
//
// Started by the first post(). The destructor runs what is queued, then joins.
// Threads: post from any thread, callbacks included.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace eddy {

class CallbackThread {
 public:
  CallbackThread() = default;
  ~CallbackThread();
  void post(std::function<void()> callback);

 private:
  void loop();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> queue_;  // under the mutex
  bool is_ending_ = false;                   // under the mutex
  std::thread thread_;
};

}  // namespace eddy
