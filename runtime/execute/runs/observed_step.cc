#include "runtime/execute/runs/observed_step.h"

#include "runtime/device/no_waiting.h"

namespace eddy {
namespace {

bool may_start(const ObservedStep& self) {
  Status status = self.observer->before(*self.state, self.step);
  return status.is_ok() || self.state->fail(self.step.node, std::move(status));
}

}  // namespace

// It is seen once, so it may wait.
bool ObservedStep::run_step(void* observed_step) {
  const NoWaiting::Pause pause;
  const ObservedStep& self = *static_cast<ObservedStep*>(observed_step);
  const bool ok = may_start(self) && self.run(self.context);
  self.observer->after(*self.state, self.step, ok ? 1 : 0);
  return ok;
}

int32_t ObservedStep::decide_step(void* observed_step) {
  const ObservedStep& self = *static_cast<ObservedStep*>(observed_step);
  const int32_t decision = may_start(self) ? self.decide(self.context) : -1;
  self.observer->after(*self.state, self.step, decision);
  return decision;
}

CallOutcome ObservedCall::start_call(void* observed_call, const Resume& resume) {
  auto& self = *static_cast<ObservedCall*>(observed_call);
  self.outer = resume;
  const CallOutcome outcome = may_start(self.step)
                                  ? self.start(self.step.context, {&self, resume.strand})
                                  : CallOutcome::kFailed;
  if (outcome == CallOutcome::kLater) return outcome;
  self.step.observer->after(*self.step.state, self.step.step,
                            outcome == CallOutcome::kDone ? 1 : 0);
  return outcome;
}

void ObservedCall::resume(uint32_t, bool is_ok) {
  const Resume next = outer;
  step.observer->after(*step.state, step.step, is_ok ? 1 : 0);
  next(is_ok);
}

}  // namespace eddy
