// Calls of a caller's kernels and host functions: what eddy_call shows them, and what they answer.
//
// Internal to runtime/api/c. Ownership: views and what `impl` points to are valid during the call,
// but for an answer that defer() has made, which is the caller's. Threads: as the call.
#pragma once

#include <string>

#include "ops/contract/kernel.h"
#include "runtime/api/c/convert.h"
#include "runtime/api/c/eddy.h"
#include "runtime/api/library.h"

namespace eddy::c {

// One call of a user's function: what eddy_call::impl points to.
struct Calling {
  Scratch* scratch = nullptr;
  PendingCall* call = nullptr;          // of a kernel that may answer later
  PendingDecision* decision = nullptr;  // of a host function that may
  eddy_pending pending = nullptr;       // what defer() has made
  std::string said = {};
};

// What eddy_call's functions are.
void* reserve_for_call(void* impl, size_t size_bytes);
void fail_call(void* impl, const char* message);
eddy_pending defer_answer(void* impl);

inline eddy_call make_call(Calling& calling, const TensorView* inputs, size_t num_inputs,
                           const TensorView* outputs, size_t num_outputs, void* state) {
  return {sizeof(eddy_call),
          as_c(inputs),
          as_c(outputs),
          static_cast<uint32_t>(num_inputs),
          static_cast<uint32_t>(num_outputs),
          state,
          &calling,
          reserve_for_call,
          fail_call,
          defer_answer,
          nullptr};
}

// What a user's function has returned, and said by fail().
Status as_status(eddy_code code, const std::string& said);
// What stands behind EDDY_LATER, or behind an answer that was given though one is owed.
CallOutcome settle(Calling& calling, eddy_code code, const Status& status, int64_t decision);

}  // namespace eddy::c
