#include "graph/base/status.h"

#include <algorithm>

namespace eddy {

std::string_view status_code_name(StatusCode code) {
  switch (code) {
    case StatusCode::kOk:
      return "ok";
    case StatusCode::kInvalidArgument:
      return "invalid argument";
    case StatusCode::kNotFound:
      return "not found";
    case StatusCode::kUnsupported:
      return "unsupported";
    case StatusCode::kResourceExhausted:
      return "resource exhausted";
    case StatusCode::kRunFailed:
      return "run failed";
    case StatusCode::kCancelled:
      return "cancelled";
    case StatusCode::kDeadlineExceeded:
      return "deadline exceeded";
    case StatusCode::kDeviceLost:
      return "device lost";
    case StatusCode::kWouldDeadlock:
      return "would deadlock";
    case StatusCode::kInternal:
      return "internal error";
  }
  return "unknown status";
}

namespace {
const std::string& empty_string() {
  static const std::string kEmpty;
  return kEmpty;
}
}  // namespace

std::string one_line(std::string text) {
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return text;
}

Status::Status(StatusCode code, std::string message)
    : rep_(code == StatusCode::kOk ? nullptr : new Rep{code, one_line(std::move(message)), {}}) {}

const std::string& Status::message() const { return rep_ ? rep_->message : empty_string(); }

const std::string& Status::path() const { return rep_ ? rep_->path : empty_string(); }

Status& Status::prepend_path(std::string_view outer) {
  if (!rep_ || outer.empty()) return *this;
  std::string path = one_line(std::string(outer));
  if (!rep_->path.empty()) path.append("/").append(rep_->path);
  rep_->path = std::move(path);
  return *this;
}

Status& Status::prepend_message(std::string_view context) {
  if (rep_) rep_->message.insert(0, one_line(std::string(context)) + ": ");
  return *this;
}

Status& Status::append_message(std::string_view advice) {
  if (rep_) rep_->message.append("; ").append(one_line(std::string(advice)));
  return *this;
}

std::string Status::to_string() const {
  if (!rep_) return "ok";
  std::string text(status_code_name(rep_->code));
  if (!rep_->path.empty()) text.append(": at ").append(rep_->path);
  return text.append(": ").append(rep_->message);
}

}  // namespace eddy
