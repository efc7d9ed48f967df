#include "runtime/api/callback_thread.h"

#include "graph/base/check.h"

namespace eddy {

CallbackThread::~CallbackThread() {
  if (is_its_own_) return;
  {
    std::lock_guard lock(mutex_);
    is_ending_ = true;
  }
  changed_.notify_one();
  thread_.join();
}

void CallbackThread::post(std::function<void()> callback) {
  {
    std::lock_guard lock(mutex_);
    queue_.push_back(std::move(callback));
  }
  changed_.notify_one();
}

void CallbackThread::drain() {
  std::unique_lock lock(mutex_);
  drained_.wait(lock, [this] { return queue_.empty() && !is_busy_; });
}

void CallbackThread::leave_to_itself() {
  std::lock_guard lock(mutex_);
  EDDY_CHECK(is_here() && queue_.empty()) << "a callback thread is left with callbacks to call";
  is_its_own_ = true;
  thread_.detach();
}

void CallbackThread::loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return !queue_.empty() || is_ending_; });
    if (queue_.empty()) return;
    std::function<void()> callback = std::move(queue_.front());
    queue_.pop_front();
    is_busy_ = true;
    lock.unlock();
    callback();
    callback = nullptr;  // its captures go before the lock is taken again
    if (is_its_own_) return delete this;
    lock.lock();
    is_busy_ = false;
    if (queue_.empty()) drained_.notify_all();
  }
}

std::unique_ptr<CallbackThread> CallbackThreads::take() {
  {
    std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<CallbackThread> thread = std::move(idle_.back());
      idle_.pop_back();
      return thread;
    }
  }
  return std::make_unique<CallbackThread>();
}

void CallbackThreads::give_back(std::unique_ptr<CallbackThread> thread) {
  std::lock_guard lock(mutex_);
  // One too many ends here, when the lock is released: it is drained, so that takes no time.
  if (idle_.size() < kMaxIdle) idle_.push_back(std::move(thread));
}

SessionCallbacks::~SessionCallbacks() {
  std::unique_ptr<CallbackThread> thread;
  {
    std::lock_guard lock(mutex_);  // the last post() may still hold it
    thread = std::move(thread_or_null_);
  }
  if (thread == nullptr) return;
  if (thread->is_here()) {
    thread.release()->leave_to_itself();
  } else {
    thread->drain();
    threads_.give_back(std::move(thread));
  }
}

bool SessionCallbacks::is_here() {
  std::lock_guard lock(mutex_);
  return thread_or_null_ != nullptr && thread_or_null_->is_here();
}

void SessionCallbacks::prepare() {
  std::lock_guard lock(mutex_);
  if (thread_or_null_ == nullptr) thread_or_null_ = threads_.take();
}

void SessionCallbacks::post(std::function<void()> callback) {
  // Posts under the lock: once the callback runs, this object may be destroyed.
  std::lock_guard lock(mutex_);
  if (thread_or_null_ == nullptr) thread_or_null_ = threads_.take();
  thread_or_null_->post(std::move(callback));
}

}  // namespace eddy
