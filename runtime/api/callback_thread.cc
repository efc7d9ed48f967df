#include "runtime/api/callback_thread.h"

#include <utility>

#include "graph/base/check.h"
#include "graph/base/processor.h"

namespace eddy {

void CallbackQueue::post(std::function<void()> callback, CallbackWake wake) {
  std::unique_lock lock(lock_);
  queue_.push_back({std::move(callback), wake});
  if (wake == CallbackWake::kNo) return;
  if (wake == CallbackWake::kUnlessNapping && rest_ == Rest::kNap) return;
  call_thread(lock);
}

void CallbackQueue::call_thread(std::unique_lock<ShortLock>& lock) {
  const bool rests = std::exchange(rest_, Rest::kNone) != Rest::kNone;
  lock.unlock();
  if (rests) called_.notify_one();
}

void CallbackQueue::help(const EndSignal& end) {
  std::unique_lock lock(lock_);
  for (bool has_spun = false; !end.is_set();) {
    if (may_call()) {
      if (call_first(lock) == CallbackWake::kUnlessNapping) has_helpers_ = true;
    } else if (!std::exchange(has_spun, true)) {
      // Most callbacks are over before a thread that sleeps were woken.
      lock.unlock();
      for (int i = 0; i < kSpins && !end.is_set(); ++i) cpu_relax();
      lock.lock();
    } else {
      is_relied_on_ = true;
      break;
    }
  }
  // Others may be about to help themselves: the thread of a nap comes soon.
  const bool goes_on = may_call() && (rest_ == Rest::kSleep || is_relied_on_ ||
                                      queue_.front().wake == CallbackWake::kYes);
  if (goes_on) call_thread(lock);
}

void CallbackQueue::drain() {
  EDDY_DCHECK(!is_here()) << "a callback waits for its own end";
  std::unique_lock lock(lock_);
  ++num_draining_;
  drained_.wait(lock, [this] { return queue_.empty() && !is_busy_; });
  --num_draining_;
}

void CallbackQueue::end() {
  std::unique_lock lock(lock_);
  is_ending_ = true;
  call_thread(lock);
}

void CallbackQueue::loop() {
  std::unique_lock lock(lock_);
  while (!is_ending_ || !queue_.empty()) may_call() ? void(call_first(lock)) : rest(lock);
}

// Until it is called; after a nap there may be nothing to call.
void CallbackQueue::rest(std::unique_lock<ShortLock>& lock) {
  const auto is_called = [this] { return rest_ == Rest::kNone; };
  EDDY_DCHECK(rest_ == Rest::kNone) << "two threads rest at one queue";
  is_relied_on_ = false;
  if (std::exchange(has_helpers_, false)) {
    rest_ = Rest::kNap;
    called_.wait_for(lock, kNap, is_called);
  } else {
    rest_ = Rest::kSleep;
    called_.wait(lock, is_called);
  }
  rest_ = Rest::kNone;
}

CallbackWake CallbackQueue::call_first(std::unique_lock<ShortLock>& lock) {
  EDDY_DCHECK(may_call()) << "nothing is queued, or a callback runs";
  auto [callback, wake] = std::move(queue_.front());
  queue_.pop_front();
  is_busy_ = true;
  runner_.store(std::this_thread::get_id(), std::memory_order_relaxed);
  lock.unlock();
  callback();
  callback = nullptr;  // its captures go before the lock is taken again
  lock.lock();
  runner_.store(std::thread::id(), std::memory_order_relaxed);
  is_busy_ = false;
  if (num_draining_ > 0 && queue_.empty()) drained_.notify_all();
  return wake;
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
  EDDY_DCHECK(thread != nullptr) << "no thread is given back";
  if (idle_.size() < kMaxIdle) idle_.push_back(std::move(thread));
}

SessionCallbacks::~SessionCallbacks() {
  std::unique_ptr<CallbackThread> thread(thread_or_null_.load(std::memory_order_acquire));
  if (thread == nullptr || thread->queue()->is_here()) return;
  thread->queue()->drain();
  threads_.give_back(std::move(thread));
}

bool SessionCallbacks::is_here() const {
  const CallbackThread* const thread = thread_or_null_.load(std::memory_order_acquire);
  return thread != nullptr && thread->queue()->is_here();
}

void SessionCallbacks::prepare() {
  if (thread_or_null_.load(std::memory_order_acquire) != nullptr) return;
  const std::lock_guard lock(preparing_);
  if (thread_or_null_.load(std::memory_order_relaxed) != nullptr) return;
  thread_or_null_.store(threads_.take().release(), std::memory_order_release);
}

const std::shared_ptr<CallbackQueue>& SessionCallbacks::queue() const {
  const CallbackThread* const thread = thread_or_null_.load(std::memory_order_acquire);
  EDDY_CHECK(thread != nullptr) << "a session without callbacks is helped with them";
  return thread->queue();
}

void SessionCallbacks::post(std::function<void()> callback, CallbackWake wake) {
  prepare();
  // Once the callback runs, this object may be destroyed.
  const std::shared_ptr<CallbackQueue> queue = this->queue();
  queue->post(std::move(callback), wake);
}

}  // namespace eddy
