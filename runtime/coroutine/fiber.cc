#include "runtime/coroutine/fiber.h"

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
  EDDY_DCHECK(stack.base != nullptr && entry != nullptr) << "a fiber lacks its stack or its entry";
  self_.stack_bottom = stack.base;
  self_.stack_bytes = stack.size_bytes;
}

Fiber::~Fiber() {
  EDDY_CHECK(state_ == State::kNew || state_ == State::kFinished)
      << "a started fiber must run to its end";
  switch_hooks::destroy(self_);
}

void Fiber::finish() {
  EDDY_DCHECK(state_ == State::kRunning) << "a fiber ends that does not run";
  state_ = State::kFinished;
  switch_hooks::before(self_, resumer_, /*last_way_out=*/true);
  fcontext::jump_fcontext(resumer_context_, this);
  EDDY_CHECK(false) << "a finished fiber was resumed";
}

}  // namespace eddy
