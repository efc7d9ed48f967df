// Outcome: how a subcommand ended, and the process's exit code for it.
//
//   0  success
//   1  a result differs from what was expected
//   2  usage
//   3  the input is bad: missing, unreadable, malformed, unsupported, or of wrong name or shape
//   4  the run failed: kernel error, out of memory, device absent or lost, a defect of Eddy
//   5  cancelled, or past its deadline
//
// This is the one place that turns a StatusCode into an exit code. The same code may mean a bad
// input or a failed run, so code that fails while running returns Outcome::of_run().
#pragma once

#include <string>
#include <utility>

#include "graph/base/check.h"
#include "graph/base/status.h"

namespace eddy {

enum class ExitCode : int {
  kSuccess = 0,
  kDiffers = 1,
  kUsage = 2,
  kBadInput = 3,
  kRunFailed = 4,
  kCancelled = 5,
};

class Outcome {
 public:
  // Before anything ran: success, or why the input was refused.
  Outcome(Status status);
  static Outcome success() { return Outcome(Status::ok()); }
  static Outcome usage(std::string message);
  // The message of the status goes to standard error.
  static Outcome differs(std::string message);
  // While running. A failure with a path is a node's own; one without is about the inputs.
  static Outcome of_run(Status status);
  // Of a process that was started, with the code it ended with, above 0.
  static Outcome of_process(int exit_code, Status status) {
    return {static_cast<ExitCode>(exit_code), std::move(status)};
  }

  ExitCode exit_code() const { return exit_code_; }
  // Ok exactly when there is no message.
  const Status& status() const { return status_; }

 private:
  Outcome(ExitCode exit_code, Status status) : exit_code_(exit_code), status_(std::move(status)) {
    EDDY_CHECK((exit_code_ == ExitCode::kSuccess) == status_.is_ok())
        << "exit code " << static_cast<int>(exit_code_) << ": " << status_.to_string();
  }

  ExitCode exit_code_;
  Status status_;
};

}  // namespace eddy
