// ObservedStep: a step of an observed run, between the observer's before() and after().
//
// Contract: observer, state and context outlive it. Errors: those of StepObserver::before().
// Threads: those of RunState.
#pragma once

#include "runtime/device/strand_runner.h"
#include "runtime/execute/run_state.h"
#include "runtime/execute/step_observer.h"

namespace eddy {

// What an observed command points to.
struct ObservedStep {
  StepObserver* observer = nullptr;
  RunState* state = nullptr;
  Step step;
  void* context = nullptr;
  WorkFunction run = nullptr;       // of a launch
  DecideFunction decide = nullptr;  // of a decision

  static bool run_step(void* observed_step);
  static int32_t decide_step(void* observed_step);
};

// The same, of a call that may answer later: the step is over when it has.
struct ObservedCall final : Resumable {
  ObservedStep step;
  StartCallFunction start = nullptr;
  Resume outer = {};

  static CallOutcome start_call(void* observed_call, const Resume& resume);
  void resume(uint32_t strand, bool is_ok) override;
};

}  // namespace eddy
