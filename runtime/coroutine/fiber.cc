#include "runtime/coroutine/fiber.h"

#include <cxxabi.h>

#include <boost/context/detail/fcontext.hpp>
#include <cstring>

#include "graph/base/check.h"

namespace eddy {

namespace fcontext = boost::context::detail;

struct Fiber::Trampoline {
  static void run(fcontext::transfer_t from) {
    Fiber* fiber = static_cast<Fiber*>(from.data);
    fiber->resumer_context_ = from.fctx;
    switch_hooks::after(fiber->self_, fiber->resumer_);
    fiber->entry_(fiber->argument_);
    fiber->finish();
  }
};

Fiber::Fiber(const Stack& stack, Entry entry, void* argument)
    : context_(fcontext::make_fcontext(stack.top(), stack.size_bytes, &Trampoline::run)),
      entry_(entry),
      argument_(argument) {
  self_.stack_bottom = stack.base;
  self_.stack_bytes = stack.size_bytes;
}

Fiber::~Fiber() {
  EDDY_CHECK(state_ == State::kNew || state_ == State::kFinished)
      << "a started fiber must run to its end";
  switch_hooks::destroy(self_);
}

void Fiber::resume() {
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
  const fcontext::transfer_t back = fcontext::jump_fcontext(context_, this);
  switch_hooks::Side unused;  // the fiber's own bounds are known
  switch_hooks::after(resumer_, unused);
  context_ = back.fctx;

  std::memcpy(exceptions_.data(), globals, exceptions_.size());
  std::memcpy(globals, outer.data(), outer.size());
}

void Fiber::suspend() {
  EDDY_CHECK(state_ == State::kRunning) << "suspend() belongs inside the running fiber";
  state_ = State::kSuspended;
  switch_hooks::before(self_, resumer_, /*last_way_out=*/false);
  const fcontext::transfer_t from = fcontext::jump_fcontext(resumer_context_, this);
  resumer_context_ = from.fctx;
  switch_hooks::after(self_, resumer_);
}

void Fiber::finish() {
  state_ = State::kFinished;
  switch_hooks::before(self_, resumer_, /*last_way_out=*/true);
  fcontext::jump_fcontext(resumer_context_, this);
  EDDY_CHECK(false) << "a finished fiber was resumed";
}

}  // namespace eddy
