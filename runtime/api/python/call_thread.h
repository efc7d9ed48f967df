// CallThread: one thread that calls what is posted to it, in order.
//
// Dropping the last reference ends it, behind what is queued; the thread itself may do that.
// Threads: post() by any.
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

namespace eddy::python {

class CallThread {
 public:
  CallThread();
  ~CallThread();
  CallThread(const CallThread&) = delete;
  CallThread& operator=(const CallThread&) = delete;
  void post(std::function<void()> call);
  // Whether the calling thread is one of these.
  static bool is_this_thread();

 private:
  struct Queue {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::function<void()>> calls;
    bool is_over = false;
  };
  static void run(const std::shared_ptr<Queue>& queue);

  const std::shared_ptr<Queue> queue_;  // outlives this where the thread does
};

}  // namespace eddy::python
