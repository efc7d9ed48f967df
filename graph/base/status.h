// Status and Result: how every fallible function of Eddy reports.
//
// A Status is one pointer wide and null when all is well, so passing success costs nothing.
// A failure carries a code, one line that names what, where and what to do, and a path: the
// region and iteration path of the node that failed (`decode[17]/attend/MatMul`). Callers on
// the way up may prepend to the path and to the message; the first error wins everywhere. Messages
// and paths may quote any file's names: control characters in them become '?' here.
//
// Errors: these types do not fail. Result<T>::value() on a failure is a programmer error (CHECK).
// Threads: as std::unique_ptr; distinct objects are independent.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "graph/base/check.h"

namespace eddy {

enum class StatusCode : int {
  kOk = 0,
  kInvalidArgument,    // the caller's data, file or arguments are wrong
  kNotFound,           // a named thing or file does not exist
  kUnsupported,        // legal, but Eddy does not do it
  kResourceExhausted,  // memory, stacks, descriptors, or a stated limit
  kRunFailed,          // a kernel or host function failed while running
  kCancelled,
  kDeadlineExceeded,
  kDeviceLost,
  kWouldDeadlock,  // waiting here could never end
  kInternal,       // a defect of Eddy
};

// The text with its control characters as '?'.
std::string one_line(std::string text);

// The stable, lower-case name of a code: "invalid argument".
std::string_view status_code_name(StatusCode code);

class [[nodiscard]] Status {
 public:
  Status() = default;  // success
  Status(StatusCode code, std::string message);
  Status(const Status& other) : rep_(other.rep_ ? new Rep(*other.rep_) : nullptr) {}
  Status& operator=(const Status& other) {
    if (this != &other) rep_.reset(other.rep_ ? new Rep(*other.rep_) : nullptr);
    return *this;
  }
  Status(Status&&) = default;
  Status& operator=(Status&&) = default;

  static Status ok() { return Status(); }

  bool is_ok() const { return rep_ == nullptr; }
  StatusCode code() const { return rep_ ? rep_->code : StatusCode::kOk; }
  // Empty when ok.
  const std::string& message() const;
  // Region and iteration path of the failing node; empty when it has none.
  const std::string& path() const;

  // Puts `outer` and a slash before the path. No effect on success.
  Status& prepend_path(std::string_view outer);
  // Puts `context` and ": " before the message. No effect on success.
  Status& prepend_message(std::string_view context);
  // Puts "; " and `advice` behind the message. No effect on success.
  Status& append_message(std::string_view advice);

  // "invalid argument: at a/b: message", or "ok".
  std::string to_string() const;

 private:
  struct Rep {
    StatusCode code;
    std::string message;
    std::string path;
  };
  std::unique_ptr<Rep> rep_;
};

inline Status invalid_argument(std::string message) {
  return {StatusCode::kInvalidArgument, std::move(message)};
}
inline Status not_found(std::string message) { return {StatusCode::kNotFound, std::move(message)}; }
inline Status unsupported(std::string message) {
  return {StatusCode::kUnsupported, std::move(message)};
}
inline Status resource_exhausted(std::string message) {
  return {StatusCode::kResourceExhausted, std::move(message)};
}
inline Status run_failed(std::string message) {
  return {StatusCode::kRunFailed, std::move(message)};
}
inline Status cancelled(std::string message) {
  return {StatusCode::kCancelled, std::move(message)};
}
inline Status deadline_exceeded(std::string message) {
  return {StatusCode::kDeadlineExceeded, std::move(message)};
}
inline Status device_lost(std::string message) {
  return {StatusCode::kDeviceLost, std::move(message)};
}
inline Status would_deadlock(std::string message) {
  return {StatusCode::kWouldDeadlock, std::move(message)};
}
inline Status internal_error(std::string message) {
  return {StatusCode::kInternal, std::move(message)};
}

static_assert(sizeof(Status) == sizeof(void*), "success is passed in a register");
static_assert(std::is_nothrow_move_constructible_v<Status>, "vectors move it when they grow");

// A T, or the Status with the reason why there is none.
template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : value_(std::move(value)) {}
  Result(Status status) : status_(std::move(status)) {
    EDDY_CHECK(!status_.is_ok()) << "a Result made from a Status needs a failure";
  }

  bool is_ok() const { return value_.has_value(); }
  const Status& status() const { return status_; }
  Status take_status() { return std::move(status_); }

  T& value() & {
    EDDY_CHECK(is_ok()) << status_.to_string();
    return *value_;
  }
  const T& value() const& {
    EDDY_CHECK(is_ok()) << status_.to_string();
    return *value_;
  }
  T&& value() && {
    EDDY_CHECK(is_ok()) << status_.to_string();
    return std::move(*value_);
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

 private:
  Status status_;
  std::optional<T> value_;
};

}  // namespace eddy

#define EDDY_CONCAT_INNER_(a, b) a##b
#define EDDY_CONCAT_(a, b) EDDY_CONCAT_INNER_(a, b)

// Returns the Status of `expression` from the enclosing function if it is a failure.
#define EDDY_RETURN_IF_ERROR(expression)        \
  do {                                          \
    ::eddy::Status eddy_status_ = (expression); \
    if (!eddy_status_.is_ok()) [[unlikely]]     \
      return eddy_status_;                      \
  } while (false)

// EDDY_ASSIGN_OR_RETURN(auto graph, load(path)); returns the failure, or assigns the value.
#define EDDY_ASSIGN_OR_RETURN(declaration, expression) \
  EDDY_ASSIGN_OR_RETURN_(EDDY_CONCAT_(eddy_result_, __LINE__), declaration, expression)
#define EDDY_ASSIGN_OR_RETURN_(result, declaration, expression) \
  auto result = (expression);                                   \
  if (!result.is_ok()) [[unlikely]]                             \
    return result.take_status();                                \
  declaration = std::move(result).value()
