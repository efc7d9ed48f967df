// Fiber: one stackful coroutine, entered with resume() and left with suspend() or by returning.
//
//   new ──resume──▶ running ──suspend──▶ suspended ──resume──▶ running ──return──▶ finished
//
// Contract: the fiber borrows its stack. All resumes happen on one thread: a fiber never
// migrates, because compilers keep addresses of thread_local variables (errno too) across a
// switch. For the same reason nothing in a body may carry a thread_local *value* over a
// suspension: other fibers of the thread have run meanwhile. A started fiber must be resumed
// until it returns; there is no unwinding from outside, so cancel by returning. The entry
// must not throw.
//
// Exceptions: each fiber has its own chain of caught exceptions. Two fibers that suspend
// inside `catch` keep their own; without that, `throw;` rethrows the other's.
//
// Errors: misuse is a CHECK. Threads: one.
// Cost: a resume and the suspend that answers it about 10 ns with a warm stack.
// Source: Boost.Context's fcontext; sanitizers see the switches through switch_hooks.h.
#pragma once

#include <array>
#include <cstddef>

#include "runtime/coroutine/stack_pool.h"
#include "runtime/coroutine/switch_hooks.h"

namespace eddy {

class Fiber {
 public:
  using Entry = void (*)(void* argument);

  Fiber(const Stack& stack, Entry entry, void* argument);
  // New or finished, not in between.
  ~Fiber();
  Fiber(const Fiber&) = delete;
  Fiber& operator=(const Fiber&) = delete;

  // From outside: runs the fiber until it suspends or returns.
  void resume();
  // From inside, on the fiber's own stack: back to whoever resumed it.
  void suspend();

  bool is_running() const { return state_ == State::kRunning; }
  bool is_finished() const { return state_ == State::kFinished; }

 private:
  enum class State : unsigned char { kNew, kRunning, kSuspended, kFinished };
  // As large as __cxa_eh_globals: the chain of caught exceptions and the count of uncaught.
  using ExceptionState = std::array<std::byte, 16>;

  struct Trampoline;  // the first frame on the stack
  void finish();

  void* context_;                    // where to jump to go on; stale while running
  void* resumer_context_ = nullptr;  // where suspend() jumps; valid while running
  Entry entry_;
  void* argument_;
  State state_ = State::kNew;
  ExceptionState exceptions_{};
  switch_hooks::Side self_;
  switch_hooks::Side resumer_;
};

}  // namespace eddy
