// Refusal: why a call of the C interface fails: a code of eddy.h, one line, and the path of a node.
//
// Internal to runtime/api/c. Made of a Status (the numbers of its codes are those of eddy.h), or of
// a code that only the interface has. Default: success, without allocation.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "graph/base/status.h"
#include "runtime/api/c/eddy.h"

namespace eddy::c {

class [[nodiscard]] Refusal {
 public:
  Refusal() = default;
  Refusal(eddy_code code, std::string reason)
      : rep_(std::make_unique<Rep>(Rep{code, one_line(std::move(reason)), {}})) {}
  Refusal(const Status& status)
      : rep_(status.is_ok() ? nullptr
                            : std::make_unique<Rep>(Rep{static_cast<eddy_code>(status.code()),
                                                        status.message(), status.path()})) {}

  bool is_ok() const { return rep_ == nullptr; }
  eddy_code code() const { return rep_ ? rep_->code : EDDY_OK; }
  const std::string& reason() const { return rep_->reason; }  // of a failure
  const std::string& path() const { return rep_->path; }      // of a failure; may be empty

 private:
  struct Rep {
    eddy_code code;
    std::string reason;
    std::string path;
  };
  std::unique_ptr<Rep> rep_;
};

static_assert(static_cast<int>(StatusCode::kInvalidArgument) == EDDY_INVALID_ARGUMENT &&
                  static_cast<int>(StatusCode::kRunFailed) == EDDY_RUN_FAILED &&
                  static_cast<int>(StatusCode::kWouldDeadlock) == EDDY_WOULD_DEADLOCK &&
                  static_cast<int>(StatusCode::kInternal) == EDDY_INTERNAL,
              "codes keep their numbers");

}  // namespace eddy::c

// Returns the Refusal that `expression` (a Refusal or Status) is, if it is a failure.
#define EDDY_C_TRY(expression)              \
  do {                                      \
    ::eddy::c::Refusal refusal(expression); \
    if (!refusal.is_ok()) [[unlikely]]      \
      return refusal;                       \
  } while (false)

// EDDY_C_ASSIGN(auto value, result): the value of a Result, or its failure is returned.
#define EDDY_C_ASSIGN(declaration, expression) \
  EDDY_C_ASSIGN_(EDDY_CONCAT_(eddy_c_result_, __LINE__), declaration, expression)
#define EDDY_C_ASSIGN_(result, declaration, expression) \
  auto result = (expression);                           \
  if (!result.is_ok()) [[unlikely]]                     \
    return ::eddy::c::Refusal(result.status());         \
  declaration = std::move(result).value()
