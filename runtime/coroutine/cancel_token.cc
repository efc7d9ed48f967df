#include "runtime/coroutine/cancel_token.h"

#include <condition_variable>
#include <mutex>
#include <thread>
#include <utility>

#include "graph/base/check.h"

namespace eddy {

struct CancelToken::Shared {
  std::atomic<std::uint32_t> word{0};

  std::mutex mutex;
  std::condition_variable callback_returned;
  CancelCallback* first = nullptr;    // guarded by mutex
  CancelCallback* running = nullptr;  // guarded by mutex; null too if it destroyed itself
  std::thread::id running_thread;     // guarded by mutex

  // False: the state is terminal and the callback must be run by the caller.
  bool enlist(CancelCallback* callback) {
    std::lock_guard lock(mutex);
    // Under the mutex, so a canceller either sees the callback or has been seen here.
    if (word.load(std::memory_order_acquire) != 0) return false;
    callback->next_ = first;
    if (first != nullptr) first->previous_ = callback;
    first = callback;
    callback->is_listed_ = true;
    return true;
  }

  void delist_locked(CancelCallback* callback) {
    if (callback->previous_ != nullptr) callback->previous_->next_ = callback->next_;
    if (callback->next_ != nullptr) callback->next_->previous_ = callback->previous_;
    if (first == callback) first = callback->next_;
    callback->is_listed_ = false;
  }

  void delist_or_await(CancelCallback* callback) {
    std::unique_lock lock(mutex);
    if (callback->is_listed_) {
      delist_locked(callback);
    } else if (running == callback && running_thread == std::this_thread::get_id()) {
      running = nullptr;  // it destroys itself: nobody may look at it again
    } else {
      callback_returned.wait(lock, [&] { return running != callback; });
    }
  }

  void run_callbacks() {
    std::unique_lock lock(mutex);
    running_thread = std::this_thread::get_id();
    while (first != nullptr) {
      running = first;
      delist_locked(running);
      // Moved out, so that it survives a callback that destroys its CancelCallback.
      const std::function<void()> callback = std::move(running->callback_);
      lock.unlock();
      callback();
      lock.lock();
      running = nullptr;
      callback_returned.notify_all();
    }
  }
};

const std::atomic<std::uint32_t>* CancelToken::word() const {
  static const std::atomic<std::uint32_t> kNeverCancelled{0};
  return shared_ != nullptr ? &shared_->word : &kNeverCancelled;
}

Status CancelToken::status() const {
  switch (state()) {
    case CancelState::kRunning:
      return Status::ok();
    case CancelState::kCancelled:
      return cancelled("the run was cancelled");
    case CancelState::kDeadlinePassed:
      return deadline_exceeded("the run's deadline passed");
  }
  return internal_error("the cancel word holds no known state");
}

CancelSource::CancelSource() : token_(std::make_shared<CancelToken::Shared>()) {}

bool CancelSource::end(CancelState state) {
  // A reference of our own: a callback may destroy the source.
  const std::shared_ptr<CancelToken::Shared> shared = token_.shared_;
  std::uint32_t expected = 0;
  if (!shared->word.compare_exchange_strong(expected, static_cast<std::uint32_t>(state),
                                            std::memory_order_acq_rel)) {
    return false;
  }
  shared->run_callbacks();
  return true;
}

CancelCallback::CancelCallback(const CancelToken& token, std::function<void()> callback)
    : shared_(token.shared_), callback_(std::move(callback)) {
  EDDY_CHECK(callback_ != nullptr) << "a cancel callback needs a function";
  if (shared_ != nullptr && !shared_->enlist(this)) {
    shared_ = nullptr;  // nothing to take off
    callback_();
  }
}

CancelCallback::~CancelCallback() {
  if (shared_ != nullptr) shared_->delist_or_await(this);
}

}  // namespace eddy
