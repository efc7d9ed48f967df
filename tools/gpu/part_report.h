// PartReport: a part's document while it grows: its rows, how many have failed, and why it ended.
//
//   PartReport report("loops", pace);
//   for (...) {
//     if (!report.may_begin("2 loops")) break;       its time is over: "out_of_time"
//     report.add({{"loops", 2}, {"status", "passed"}, …});
//   }
//   return report.take();
//
// A callback sees every row as it comes, so that a part that is killed leaves what it has measured.
// Rows by "status": those that have "failed" are counted in "failed", those "skipped" in "skipped",
// those "short" in "short".
// Threads: one.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include <nlohmann/json.hpp>

#include "graph/base/status.h"

namespace eddy {

struct ReportPace {
  std::chrono::seconds time_limit{420};  // no row begins later: "out_of_time"
  // Called with the document so far, its last row being the new one; may be null.
  std::function<void(const nlohmann::json& report)> on_row = {};
};

// "passed", or "failed" with the reason.
void set_status(const Status& status, nlohmann::json& row);

class PartReport {
 public:
  // The pace outlives it. Its time runs from now on.
  PartReport(const std::string& part, const ReportPace& pace);

  bool may_begin(const std::string& row);
  void add(nlohmann::json row);
  // What ended the part; ok: nothing did.
  void end_with(const Status& error);
  // Nothing has ended it before its last row.
  bool is_whole() const { return !report_.contains("error") && !report_.contains("out_of_time"); }
  std::chrono::nanoseconds time_left() const;
  nlohmann::json& document() { return report_; }
  nlohmann::json take() { return std::move(report_); }

 private:
  const ReportPace& pace_;
  const std::chrono::steady_clock::time_point end_;
  nlohmann::json report_;
};

}  // namespace eddy
