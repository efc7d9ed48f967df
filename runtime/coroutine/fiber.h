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
// inside `catch` keep their own; without that, `throw;` rethrows the exception of the other.
//
// Errors: misuse is a CHECK. Threads: one.
// Cost: a resume and its suspend take about 10 ns with a warm stack.
// Source: Boost.Context's fcontext; sanitizers see the switches through switch_hooks.h.
#pragma once

#include <cxxabi.h>

#include <array>
#include <boost/context/detail/fcontext.hpp>
#include <cstddef>
#include <cstring>

#include "graph/base/check.h"
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

  // Called from outside: runs the fiber until it suspends or returns.
  void resume();
  // Called from inside, on the fiber's own stack: switches back to its resumer.
  void suspend();

  bool is_running() const { return state_ == State::kRunning; }
  bool is_finished() const { return state_ == State::kFinished; }

 private:
  enum class State : unsigned char { kNew, kRunning, kSuspended, kFinished };
  // As large as __cxa_eh_globals: the chain of caught exceptions and the count of uncaught.
  using ExceptionState = std::array<std::byte, 16>;

  static_assert(sizeof(ExceptionState) == 2 * sizeof(void*), "a pointer and a padded count");
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

// Inline, because each return after a switch is mispredicted: the processor's stack of return
// addresses is the other side's. What is inlined into its caller does not return.

[[gnu::always_inline]] inline void Fiber::resume() {
  EDDY_CHECK(state_ == State::kNew || state_ == State::kSuspended)
      << "only a new or suspended fiber can be resumed";
  if (state_ == State::kNew) switch_hooks::create(self_);
  state_ = State::kRunning;

  // One thread, so one address on both sides of the jump.
  void* globals = abi::__cxa_get_globals();
  ExceptionState outer;
  std::memcpy(outer.data(), globals, outer.size());
  std::memcpy(globals, exceptions_.data(), exceptions_.size());

  switch_hooks::adopt_current(resumer_);
  switch_hooks::before(resumer_, self_, /*last_way_out=*/false);
  const boost::context::detail::transfer_t back =
      boost::context::detail::jump_fcontext(context_, this);
  switch_hooks::Side unused;  // the fiber's own bounds are known
  switch_hooks::after(resumer_, unused);
  context_ = back.fctx;
  EDDY_DCHECK(state_ == State::kSuspended || state_ == State::kFinished) << "a fiber left midway";

  std::memcpy(exceptions_.data(), globals, exceptions_.size());
  std::memcpy(globals, outer.data(), outer.size());
}

[[gnu::always_inline]] inline void Fiber::suspend() {
  EDDY_CHECK(state_ == State::kRunning) << "suspend() belongs inside the running fiber";
  state_ = State::kSuspended;
  switch_hooks::before(self_, resumer_, /*last_way_out=*/false);
  const boost::context::detail::transfer_t from =
      boost::context::detail::jump_fcontext(resumer_context_, this);
  resumer_context_ = from.fctx;
  EDDY_DCHECK(state_ == State::kRunning) << "a fiber goes on that nobody has resumed";
  switch_hooks::after(self_, resumer_);
}

}  // namespace eddy
