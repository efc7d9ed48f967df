#include "tools/command/outcome.h"

namespace eddy {
namespace {

ExitCode exit_code_of(StatusCode code, bool is_running) {
  switch (code) {
    case StatusCode::kOk:
      return ExitCode::kSuccess;
    case StatusCode::kInvalidArgument:
    case StatusCode::kNotFound:
    case StatusCode::kUnsupported:
    case StatusCode::kResourceExhausted:  // an input that requires more than it may
      return is_running ? ExitCode::kRunFailed : ExitCode::kBadInput;
    case StatusCode::kCancelled:
    case StatusCode::kDeadlineExceeded:
      return ExitCode::kCancelled;
    case StatusCode::kRunFailed:
    case StatusCode::kDeviceLost:
    case StatusCode::kWouldDeadlock:
    case StatusCode::kInternal:
      return ExitCode::kRunFailed;
  }
  return ExitCode::kRunFailed;
}

}  // namespace

Outcome::Outcome(Status status)
    : exit_code_(exit_code_of(status.code(), false)), status_(std::move(status)) {}

Outcome Outcome::usage(std::string message) {
  return {ExitCode::kUsage, invalid_argument(std::move(message))};
}

Outcome Outcome::differs(std::string message) {
  return {ExitCode::kDiffers, invalid_argument(std::move(message))};
}

Outcome Outcome::of_run(Status status) {
  const bool is_about_inputs =
      status.path().empty() &&
      (status.code() == StatusCode::kInvalidArgument || status.code() == StatusCode::kNotFound);
  const ExitCode exit_code = exit_code_of(status.code(), !is_about_inputs);
  return {exit_code, std::move(status)};
}

}  // namespace eddy
