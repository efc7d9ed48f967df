#include "runtime/api/callback_thread.h"

#include "graph/base/check.h"

namespace eddy {

void CallbackQueue::post(std::function<void()> callback, bool wakes) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(callback));
  }
  if (wakes) changed_.notify_one();
}

void CallbackQueue::help(const EndSignal& end) {
  std::unique_lock lock(mutex_);
  while (!end.is_set() && may_call()) call_first(lock);
  const bool goes_on = may_call();
  lock.unlock();
  if (goes_on) changed_.notify_one();
}

void CallbackQueue::drain() {
  std::unique_lock lock(mutex_);
  drained_.wait(lock, [this] { return queue_.empty() && !is_busy_; });
}

void CallbackQueue::end() {
  const std::lock_guard lock(mutex_);
  is_ending_ = true;
  changed_.notify_one();
}

void CallbackQueue::loop() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [this] { return may_call() || (is_ending_ && queue_.empty()); });
    if (queue_.empty()) return;
    call_first(lock);
  }
}

void CallbackQueue::call_first(std::unique_lock<std::mutex>& lock) {
  std::function<void()> callback = std::move(queue_.front());
  queue_.pop_front();
  is_busy_ = true;
  runner_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  lock.unlock();
  callback();
  callback = nullptr;  // its captures go before the lock is taken again
  lock.lock();
  runner_.store(std::thread::id(), std::memory_order_relaxed);
  is_busy_ = false;
  if (queue_.empty()) drained_.notify_all();
}

CallbackThread::~CallbackThread() {
  queue_->end();
  queue_->is_here() ? thread_.detach() : thread_.join();
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
  if (thread == nullptr || thread->queue()->is_here()) return;
  thread->queue()->drain();
  threads_.give_back(std::move(thread));
}

bool SessionCallbacks::is_here() {
  std::lock_guard lock(mutex_);
  return thread_or_null_ != nullptr && thread_or_null_->queue()->is_here();
}

void SessionCallbacks::prepare() {
  std::lock_guard lock(mutex_);
  if (thread_or_null_ == nullptr) thread_or_null_ = threads_.take();
}

std::shared_ptr<CallbackQueue> SessionCallbacks::queue() {
  std::lock_guard lock(mutex_);
  EDDY_CHECK(thread_or_null_ != nullptr) << "a session without callbacks is helped with them";
  return thread_or_null_->queue();
}

void SessionCallbacks::post(std::function<void()> callback, bool wakes) {
  // Posts under the lock: once the callback runs, this object may be destroyed.
  std::lock_guard lock(mutex_);
  if (thread_or_null_ == nullptr) thread_or_null_ = threads_.take();
  thread_or_null_->queue()->post(std::move(callback), wakes);
}

}  // namespace eddy
