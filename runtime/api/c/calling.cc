#include "runtime/api/c/calling.h"

#include <memory>
#include <new>
#include <utility>

#include "graph/io/text.h"
#include "runtime/api/c/convert.h"
#include "runtime/api/c/pending.h"

namespace eddy::c {

void* reserve_for_call(void* impl, size_t size_bytes) {
  Scratch* const scratch = static_cast<Calling*>(impl)->scratch;
  return scratch == nullptr ? nullptr : scratch->reserve(size_bytes);
}

void fail_call(void* impl, const char* message) {
  auto& calling = *static_cast<Calling*>(impl);
  try {
    calling.said = message == nullptr ? "" : message;
    Refusal gone;
    if (calling.pending == nullptr) return;
    if (const Pin<PendingObject> owed(calling.pending, gone); owed) owed->say(calling.said);
  } catch (const std::bad_alloc&) {
    // The code says what can be said.
  }
}

eddy_pending defer_answer(void* impl) {
  auto& calling = *static_cast<Calling*>(impl);
  if (calling.pending != nullptr) return calling.pending;
  try {
    std::shared_ptr<PendingObject> made;
    if (calling.call != nullptr) {
      made = std::make_shared<PendingObject>(std::move(*calling.call));
    } else if (calling.decision != nullptr) {
      made = std::make_shared<PendingObject>(std::move(*calling.decision));
    } else {
      return nullptr;
    }
    made->say(calling.said);
    calling.pending = make_handle<eddy_pending>(std::move(made));
  } catch (const std::bad_alloc&) {
    return nullptr;  // what was moved has failed the run
  }
  return calling.pending;
}

Status as_status(eddy_code code, const std::string& said) {
  if (code == EDDY_OK) return Status::ok();
  const bool is_status = code > EDDY_OK && code <= EDDY_INTERNAL;
  // A caller's words: of any bytes.
  std::string message = as_clean_utf8(one_line(said));
  if (message.empty()) message = "it returned " + std::to_string(code) + " and said no reason";
  return {is_status ? static_cast<StatusCode>(code) : StatusCode::kRunFailed, std::move(message)};
}

CallOutcome settle(Calling& calling, eddy_code code, const Status& status, int64_t decision) {
  if (calling.pending == nullptr) return CallOutcome::kFailed;
  if (code == EDDY_LATER) return CallOutcome::kLater;
  Refusal why;
  if (const Pin<PendingObject> owed(calling.pending, why); owed) {
    [[maybe_unused]] const bool is_first = owed->complete(status, decision);
    [[maybe_unused]] const Refusal gone = HandleTable::get().release(calling.pending);
  }
  return CallOutcome::kLater;
}

}  // namespace eddy::c
