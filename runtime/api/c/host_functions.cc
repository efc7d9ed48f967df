// Host functions of the caller's: named predicates and selectors.
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "runtime/api/c/api_functions.h"
#include "runtime/api/c/calling.h"
#include "runtime/api/c/context.h"
#include "runtime/api/c/convert.h"
#include "runtime/api/c/errors.h"
#include "runtime/api/c/pending.h"
#include "runtime/api/c/user_code.h"

namespace eddy::c {
namespace {

// A host function of the caller's, destroyed with the library.
struct UserFunction {
  UserFunction(eddy_decide f, void* u, void (*d)(void*)) : function(f), user(u), destroy(d) {}
  ~UserFunction() {
    if (destroy != nullptr) call_and_forget([this] { destroy(user); });
  }
  UserFunction(const UserFunction&) = delete;
  UserFunction& operator=(const UserFunction&) = delete;
  const eddy_decide function;
  void* const user;
  void (*destroy)(void*);
};

Result<int64_t> decide(const UserFunction& named, std::span<const TensorView> inputs) {
  Calling calling;
  const eddy_call call = make_call(calling, inputs.data(), inputs.size(), nullptr, 0, nullptr);
  int64_t decision = 0;
  const UserCodeScope scope;
  const eddy_code code =
      code_of(calling.said, [&] { return named.function(named.user, &call, &decision); });
  if (code == EDDY_OK) return decision;
  if (code != EDDY_LATER) return as_status(code, calling.said);
  return run_failed("it returned EDDY_LATER without the flag EDDY_ANSWERS_LATER");
}

void decide_later(const UserFunction& named, std::span<const TensorView> inputs,
                  PendingDecision owed) {
  Calling calling;
  calling.decision = &owed;
  const eddy_call call = make_call(calling, inputs.data(), inputs.size(), nullptr, 0, nullptr);
  int64_t decision = 0;
  const UserCodeScope scope;
  const eddy_code code =
      code_of(calling.said, [&] { return named.function(named.user, &call, &decision); });
  const Status status =
      code == EDDY_LATER ? run_failed("it has not called defer()") : as_status(code, calling.said);
  if (calling.pending != nullptr) {
    settle(calling, code, status, decision);
  } else if (status.is_ok()) {
    owed.complete(decision);
  } else {
    owed.complete(status);
  }
}

}  // namespace

eddy_code library_add_host_function(eddy_library library, const char* name, uint32_t flags,
                                    eddy_decide function, void* user, void (*destroy)(void* user),
                                    eddy_error* error) {
  return enter_with<LibraryObject>(library, error, [&](const auto& l) -> Refusal {
    EDDY_C_TRY(check_given_name(name, "name of the host function"));
    EDDY_C_TRY(need(reinterpret_cast<const void*>(function), "function"));
    EDDY_C_TRY(l->check_open());
    if (flags > EDDY_NON_BLOCKING) {
      return {EDDY_INVALID_ARGUMENT,
              "a host function has one flag of EDDY_ANSWERS_LATER and EDDY_NON_BLOCKING, or 0"};
    }
    if (l->library.host_function_or_null(name) != nullptr) {
      return {EDDY_INVALID_ARGUMENT, "host function '" + std::string(name) + "' is added twice"};
    }
    const auto kept = std::make_shared<UserFunction>(function, user, destroy);
    Status status;
    if (flags == EDDY_ANSWERS_LATER) {
      status = l->library.add_async_host_function(
          name, [kept](std::span<const TensorView> inputs, PendingDecision owed) {
            decide_later(*kept, inputs, std::move(owed));
          });
    } else {
      status = l->library.add_host_function(
          name, [kept](std::span<const TensorView> inputs) { return decide(*kept, inputs); },
          {.is_non_blocking = flags == EDDY_NON_BLOCKING});
    }
    // As of operators: a refusal leaves `user` with the caller.
    if (!status.is_ok()) kept->destroy = nullptr;
    return status;
  });
}

}  // namespace eddy::c
