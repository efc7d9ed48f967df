// PendingObject: an answer that a kernel or host function of the caller's owes.
//
// Internal to runtime/api/c. It is consumed by completing it: a second answer finds no handle. One
// that goes without an answer fails its run, by what PendingCall does. Threads: any.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <variant>

#include "ops/contract/pending_call.h"
#include "runtime/api/c/handles.h"
#include "runtime/api/library.h"

namespace eddy::c {

struct PendingObject : Object {
  static constexpr Kind kKind = Kind::kPending;

  explicit PendingObject(PendingCall call) : owed(std::move(call)) {}
  explicit PendingObject(PendingDecision decision) : owed(std::move(decision)) {}

  // Once.
  void complete(Status status, int64_t decision);
  void on_stop(std::function<void()> function);

  std::variant<PendingCall, PendingDecision> owed;
  std::atomic<bool> is_answered{false};
};

// What a user's function has returned, and said by fail().
Status as_status(eddy_code code, const std::string& said);

}  // namespace eddy::c
