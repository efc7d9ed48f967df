// Options of contexts and sessions as texts: a table of keys, each with what its value means.
//
//   {"memory_limit", "300mb"}, {"dim.batch", "4"}, {"shape.x", "1x3x224x224"}, {"exact", "true"}
//
// Internal to runtime/api/c. Errors: kInvalidArgument with the key, the value and what may stand
// there; for an unknown key the nearest one.
#pragma once

#include "runtime/api/c/accelerators.h"
#include "runtime/api/c/refusal.h"
#include "runtime/api/session_options.h"

namespace eddy::c {

// Of a session, beside what runtime/api knows.
struct CallerOptions {
  AcceleratorOptions accelerator;
  bool checks_memory = false;      // memory_check.h, for each input of each run
  int64_t answer_limit_ms = 1000;  // how long a run that was stopped waits for owed answers
};

Refusal read_context_options(const eddy_option* given, size_t count, int& num_threads);
Refusal read_session_options(const eddy_option* given, size_t count, SessionOptions& options,
                             CallerOptions& own);

}  // namespace eddy::c
