// NoWaiting: while one lives, what its thread calls may not wait: for a driver that looks for
// memory or makes a recording ready, for memory that others hold, for a large copy.
//
//   NoWaiting scope;                    if (NoWaiting::refuses()) return <any error>;
//   if (!work.run(…) && scope.has_refused()) <again, by a thread that may wait>
//
// So a thread that serves many finds out that a piece of work would hold the others up before it
// does, and needs to guess nothing.
//
// Contract: what is refused can be done again from its beginning (its caller's beginning, up to
// the maker of the scope) as if it had not been tried, and reports no error to its run. So
// a kernel reserves scratch memory before it enqueues anything.
// Threads: a scope belongs to the thread that made it and is over before a coroutine of that
// thread goes on. Cost: a thread-local load where something would wait.
#pragma once

#include "graph/base/check.h"

namespace eddy {

class NoWaiting {
 public:
  NoWaiting() : outer_(current_) { current_ = this; }
  ~NoWaiting() {
    EDDY_DCHECK(current_ == this) << "scopes end in the order of their making, on their thread";
    current_ = outer_;
  }
  NoWaiting(const NoWaiting&) = delete;
  NoWaiting& operator=(const NoWaiting&) = delete;

  // Asked before a wait; true: the caller must not wait, and fails instead.
  static bool refuses() {
    if (current_ == nullptr) return false;
    current_->has_refused_ = true;
    return true;
  }
  // Whether the calling thread's scope has refused anything; false where there is none.
  static bool has_refused_here() { return current_ != nullptr && current_->has_refused_; }
  bool has_refused() const { return has_refused_; }

  // Work that cannot be done again may wait while one of these lives.
  class Pause {
   public:
    Pause() : paused_(current_) { current_ = nullptr; }
    ~Pause() {
      EDDY_DCHECK(current_ == nullptr) << "a scope outlives the pause in which it was made";
      current_ = paused_;
    }
    Pause(const Pause&) = delete;
    Pause& operator=(const Pause&) = delete;

   private:
    NoWaiting* const paused_;
  };

 private:
  static constinit thread_local NoWaiting* current_;
  NoWaiting* const outer_;
  bool has_refused_ = false;
};

}  // namespace eddy
