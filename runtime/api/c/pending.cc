#include "runtime/api/c/pending.h"

#include <utility>

#include "runtime/api/c/api_functions.h"
#include "runtime/api/c/calling.h"
#include "runtime/api/c/convert.h"
#include "runtime/api/c/errors.h"

namespace eddy::c {

bool PendingObject::complete(Status status, int64_t decision) {
  std::variant<PendingCall, PendingDecision> owed;
  {
    const std::lock_guard lock(mutex_);
    if (std::exchange(is_answered_, true)) return false;
    owed = std::move(owed_);
  }
  if (auto* call = std::get_if<PendingCall>(&owed)) {
    call->complete(std::move(status));
  } else if (auto& decides = std::get<PendingDecision>(owed); status.is_ok()) {
    decides.complete(decision);
  } else {
    decides.complete(std::move(status));
  }
  return true;
}

void PendingObject::say(const std::string& why) {
  const std::lock_guard lock(mutex_);
  said_ = why;
}

void PendingObject::released() noexcept try {
  std::unique_lock lock(mutex_);
  if (is_answered_ || said_.empty()) return;
  const std::string said = std::move(said_);
  lock.unlock();
  complete(as_status(EDDY_RUN_FAILED, said), 0);
} catch (const std::bad_alloc&) {
  // What is let go of fails the run all the same.
}

// The function may answer at once, on this thread.
bool PendingObject::on_stop(std::function<void()> function) {
  const std::lock_guard lock(mutex_);
  if (is_answered_) return false;
  std::visit([&](auto& each) { each.on_stop(std::move(function)); }, owed_);
  return true;
}

eddy_code pending_complete(eddy_pending pending, eddy_code code, int64_t decision,
                           const char* message, eddy_error* error) {
  return enter_with<PendingObject>(pending, error, [&](const auto& p) -> Refusal {
    if (code == EDDY_LATER) {
      return {EDDY_INVALID_ARGUMENT, "an owed answer cannot be EDDY_LATER"};
    }
    if (!p->complete(as_status(code, message == nullptr ? "" : message), decision)) {
      return {EDDY_INVALID_STATE, "it was answered already"};
    }
    return HandleTable::get().release(pending);
  });
}

eddy_code pending_on_stop(eddy_pending pending, eddy_function function, void* user,
                          eddy_error* error) {
  return enter_with<PendingObject>(pending, error, [&](const auto& p) -> Refusal {
    EDDY_C_TRY(need(reinterpret_cast<const void*>(function), "function"));
    const bool is_owed = p->on_stop([function, user] { function(user); });
    if (!is_owed) return {EDDY_INVALID_STATE, "it was answered already"};
    return {};
  });
}

}  // namespace eddy::c
