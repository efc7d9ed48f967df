#include "tools/gpu/part_report.h"

namespace eddy {

using Json = nlohmann::json;

void set_status(const Status& status, Json& row) {
  row["status"] = status.is_ok() ? "passed" : "failed";
  if (!status.is_ok()) row["reason"] = status.to_string();
}

PartReport::PartReport(const std::string& part, const ReportPace& pace)
    : pace_(pace),
      end_(std::chrono::steady_clock::now() + pace.time_limit),
      report_({{"part", part}, {"rows", Json::array()}, {"failed", 0}}) {}

bool PartReport::may_begin(const std::string& row) {
  if (!is_whole()) return false;
  if (std::chrono::steady_clock::now() < end_) return true;
  report_["out_of_time"] = "before " + row;
  return false;
}

void PartReport::add(Json row) {
  const std::string status = row.value("status", "passed");
  for (const char* const counted : {"failed", "skipped", "short"}) {
    if (status == counted) report_[counted] = report_.value(counted, 0) + 1;
  }
  report_["rows"].push_back(std::move(row));
  if (pace_.on_row) pace_.on_row(report_);
}

void PartReport::end_with(const Status& error) {
  if (!error.is_ok()) report_["error"] = error.to_string();
}

std::chrono::nanoseconds PartReport::time_left() const {
  return end_ - std::chrono::steady_clock::now();
}

}  // namespace eddy
