// StepLog: times the steps of making a session and reports each to the log hook. Internal to
// runtime/api.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>

#include "runtime/api/session_options.h"

namespace eddy {

class StepLog {
 public:
  explicit StepLog(const SessionOptions& options) : options_(options) {}

  // What the step took, in nanoseconds.
  int64_t done(const std::string& what) {
    const auto now = std::chrono::steady_clock::now();
    const std::chrono::nanoseconds step = now - last_;
    last_ = now;
    if (options_.log) options_.log(what + " in " + std::to_string(step.count() / 1000) + " µs");
    return step.count();
  }
  int64_t total_ns() const { return std::chrono::nanoseconds(last_ - start_).count(); }

 private:
  const SessionOptions& options_;
  const std::chrono::steady_clock::time_point start_ = std::chrono::steady_clock::now();
  std::chrono::steady_clock::time_point last_ = start_;
};

// "1 node", "2 nodes".
inline std::string count_text(size_t count, const char* what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

}  // namespace eddy
