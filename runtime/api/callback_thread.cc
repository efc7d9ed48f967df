#include "runtime/api/callback_thread.h"

namespace eddy {

CallbackThread::~CallbackThread() {
  {
    std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_one();
  if (thread_.joinable()) thread_.join();
}

void CallbackThread::post(std::function<void()> callback) {
  // Notifies under the lock: once the callback runs, this object may be destroyed.
  std::lock_guard lock(mutex_);
  queue_.push_back(std::move(callback));
  if (!thread_.joinable()) thread_ = std::thread([this] { loop(); });
  changed_.notify_one();
}

void CallbackThread::loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return !queue_.empty() || is_ending_; });
    if (queue_.empty()) return;
    std::function<void()> callback = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    callback();
    callback = nullptr;  // its captures go before the lock is taken again
    lock.lock();
  }
}

}  // namespace eddy
