#include "graph/base/status.h"

namespace eddy {

std::string_view status_code_name(StatusCode code) {
  switch (code) {
    case StatusCode::kOk: return "ok";
    case StatusCode::kInvalidArgument: return "invalid argument";
    case StatusCode::kNotFound: return "not found";
    case StatusCode::kUnsupported: return "unsupported";
    case StatusCode::kResourceExhausted: return "resource exhausted";
    case StatusCode::kRunFailed: return "run failed";
    case StatusCode::kCancelled: return "cancelled";
    case StatusCode::kDeadlineExceeded: return "deadline exceeded";
    case StatusCode::kDeviceLost: return "device lost";
    case StatusCode::kWouldDeadlock: return "would deadlock";
    case StatusCode::kInternal: return "internal error";
  }
  return "unknown status";
}

namespace {
const std::string& empty_string() {
  static const std::string kEmpty;
  return kEmpty;
}
}  // namespace

const std::string& Status::message() const { return rep_ ? rep_->message : empty_string(); }

const std::string& Status::path() const { return rep_ ? rep_->path : empty_string(); }

Status& Status::prepend_path(std::string_view outer) {
  if (!rep_ || outer.empty()) return *this;
  std::string path(outer);
  if (!rep_->path.empty()) path.append("/").append(rep_->path);
  rep_->path = std::move(path);
  return *this;
}

Status& Status::prepend_message(std::string_view context) {
  if (rep_) rep_->message.insert(0, std::string(context) + ": ");
  return *this;
}

std::string Status::to_string() const {
  if (!rep_) return "ok";
  std::string text(status_code_name(rep_->code));
  if (!rep_->path.empty()) text.append(": at ").append(rep_->path);
  return text.append(": ").append(rep_->message);
}

}  // namespace eddy
