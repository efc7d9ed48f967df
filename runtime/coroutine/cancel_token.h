// CancelSource, CancelToken, CancelCallback: one run's wish to stop, seen everywhere.
//
//   0 running ──cancel()──▶ 1 cancelled        first terminal state wins, for ever
//       └──────expire()───▶ 2 deadline passed
//
// The state is one word. A hot loop, also one on another thread or in a kernel, polls word()
// with a relaxed load; what waits registers a CancelCallback, usually
//
//   CancelCallback wake(token, [&] { done.notify(); });
//   done.wait();                                  // then look at token.state()
//
// Contract: tokens and sources share the state and keep it alive; both copy freely. A
// callback runs at most once, on the thread that cancels, or in CancelCallback's constructor
// if the state is terminal already. When ~CancelCallback returns it is not running and never
// will (unless the callback itself destroys it). Callbacks must be short and must neither
// wait, suspend nor throw: the destructor of another thread may wait for them.
//
// Errors: none. Threads: everything from any thread.
// Memory order: the winning compare-exchange releases; state() acquires. A relaxed load of
// word() orders nothing. The callback list is under a mutex.
// Cost: poll one load; register and unregister 30 ns.
// Source: std::stop_token, with a reason and a word to poll.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "graph/base/status.h"

namespace eddy {

enum class CancelState : std::uint32_t { kRunning = 0, kCancelled = 1, kDeadlinePassed = 2 };

class CancelCallback;

class CancelToken {
 public:
  // A token that nobody can cancel.
  CancelToken() = default;

  bool is_cancelled() const { return state() != CancelState::kRunning; }
  CancelState state() const {
    return static_cast<CancelState>(word()->load(std::memory_order_acquire));
  }
  // Ok while running, else cancelled or deadline_exceeded.
  Status status() const;
  // Holds a CancelState; lives as long as any token or source of it.
  const std::atomic<std::uint32_t>* word() const;

 private:
  friend class CancelSource;    // makes tokens
  friend class CancelCallback;  // enlists itself
  struct Shared;
  explicit CancelToken(std::shared_ptr<Shared> shared) : shared_(std::move(shared)) {}

  std::shared_ptr<Shared> shared_;  // null: nobody can cancel
};

class CancelSource {
 public:
  CancelSource();

  CancelToken token() const { return token_; }
  // True if this call won. It then has run all callbacks when it returns.
  bool cancel() { return end(CancelState::kCancelled); }
  bool expire() { return end(CancelState::kDeadlinePassed); }

 private:
  bool end(CancelState state);

  CancelToken token_;
};

class CancelCallback {
 public:
  CancelCallback(const CancelToken& token, std::function<void()> callback);
  ~CancelCallback();
  CancelCallback(const CancelCallback&) = delete;
  CancelCallback& operator=(const CancelCallback&) = delete;

 private:
  friend struct CancelToken::Shared;  // keeps the list

  std::shared_ptr<CancelToken::Shared> shared_;
  std::function<void()> callback_;
  // The list, guarded by the shared state's mutex.
  CancelCallback* previous_ = nullptr;
  CancelCallback* next_ = nullptr;
  bool is_listed_ = false;
};

}  // namespace eddy
