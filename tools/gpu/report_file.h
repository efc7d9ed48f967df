// ReportFile: a part's JSON on disk, whole at any moment: each writing goes to another file that
// takes its place, so that a part that is killed leaves the last one. "complete" is true at the
// part's end.
//
// Errors: the status of write() has what could not be done; what was there stays. Threads: one.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "graph/base/status.h"

namespace eddy {

class ReportFile {
 public:
  // Empty: no file, and nothing is written.
  explicit ReportFile(std::string path) : path_(std::move(path)) {}

  // Why a file cannot be written there; empty: it can.
  static std::string why_not(const std::string& path);
  Status write(nlohmann::json report, bool is_complete) const;

 private:
  const std::string path_;
};

}  // namespace eddy
