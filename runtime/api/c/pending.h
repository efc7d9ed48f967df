// PendingObject: an answer that a kernel or host function of the caller's owes.
//
// Internal to runtime/api/c. It is consumed by completing it: a second answer finds no handle. One
// that goes without an answer fails its run, with what its call has said by fail() or else by what
// PendingCall does. Threads: any.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <variant>

#include "ops/contract/pending_call.h"
#include "runtime/api/c/handles.h"
#include "runtime/api/library.h"

namespace eddy::c {

struct PendingObject : Object {
  static constexpr Kind kKind = Kind::kPending;

  explicit PendingObject(PendingCall call) : owed_(std::move(call)) {}
  explicit PendingObject(PendingDecision decision) : owed_(std::move(decision)) {}

  // False: it was answered already.
  bool complete(Status status, int64_t decision);
  bool on_stop(std::function<void()> function);
  // Why it will be let go of, if it is.
  void say(const std::string& why);
  void released() noexcept override;

 private:
  std::recursive_mutex mutex_;
  // Under the mutex.
  std::variant<PendingCall, PendingDecision> owed_;
  bool is_answered_ = false;
  std::string said_;
};

}  // namespace eddy::c
