#include "runtime/api/c/pending.h"

#include "runtime/api/c/api_functions.h"
#include "runtime/api/c/convert.h"
#include "runtime/api/c/errors.h"

namespace eddy::c {

Status as_status(eddy_code code, const std::string& said) {
  if (code == EDDY_OK) return Status::ok();
  const bool is_status = code > EDDY_OK && code <= EDDY_INTERNAL;
  std::string message = said;
  if (message.empty()) message = "it returned " + std::to_string(code) + " and said no reason";
  return {is_status ? static_cast<StatusCode>(code) : StatusCode::kRunFailed, std::move(message)};
}

void PendingObject::complete(Status status, int64_t decision) {
  if (auto* call = std::get_if<PendingCall>(&owed)) return call->complete(std::move(status));
  auto& decides = std::get<PendingDecision>(owed);
  if (status.is_ok()) return decides.complete(decision);
  decides.complete(std::move(status));
}

void PendingObject::on_stop(std::function<void()> function) {
  std::visit([&](auto& each) { each.on_stop(std::move(function)); }, owed);
}

eddy_code pending_complete(eddy_pending pending, eddy_code code, int64_t decision,
                           const char* message, eddy_error* error) {
  return enter_with<PendingObject>(pending, error, [&](const auto& p) -> Refusal {
    if (code == EDDY_LATER) {
      return {EDDY_INVALID_ARGUMENT, "an owed answer cannot be EDDY_LATER"};
    }
    if (p->is_answered.exchange(true)) return {EDDY_INVALID_STATE, "it was answered already"};
    p->complete(as_status(code, message == nullptr ? "" : message), decision);
    return HandleTable::get().release(pending);
  });
}

eddy_code pending_on_stop(eddy_pending pending, eddy_function function, void* user,
                          eddy_error* error) {
  return enter_with<PendingObject>(pending, error, [&](const auto& p) -> Refusal {
    EDDY_C_TRY(need(reinterpret_cast<const void*>(function), "function"));
    if (p->is_answered.load()) return {EDDY_INVALID_STATE, "it was answered already"};
    p->on_stop([function, user] { function(user); });
    return {};
  });
}

}  // namespace eddy::c
