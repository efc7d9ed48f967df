#include "tools/gpu/driver_part.h"

#include "tools/gpu/run_apart.h"

namespace eddy {

using Json = nlohmann::json;

std::vector<DriverQuestion> driver_questions() {
  std::vector<DriverQuestion> questions;
  add_capture_questions(questions);
  add_time_questions(questions);
  return questions;
}

Json ask_driver(const DriverQuestion& question, const GpuUnderReport& gpu,
                const DriverExtras& extras, const void* image_or_null) {
  Json row = {{"question", question.name}, {"asks", question.asks}};
  auto lab = DriverLab::open(gpu, extras, image_or_null);
  const Status status = lab.is_ok() ? question.ask(**lab, row) : lab.status();
  set_status(status, row);
  if (status.code() == StatusCode::kUnsupported) row["status"] = "skipped";
  return row;
}

Json report_driver(const ReportPace& pace, const std::string& only_or_empty,
                   const std::function<Json(const DriverQuestion&)>& ask) {
  constexpr std::chrono::seconds kMost{8};
  PartReport report("driver", pace);
  for (const DriverQuestion& question : driver_questions()) {
    if (!only_or_empty.empty() && only_or_empty != question.name) continue;
    if (!report.may_begin(question.name)) break;
    Result<std::string> answer = run_apart([&] { return ask(question).dump(); }, kMost);
    Json row = {{"question", question.name}, {"asks", question.asks}};
    if (!answer.is_ok()) {
      set_status(question.may_die ? Status::ok() : answer.status(), row);
      if (question.may_die) row["answer"] = answer.status().message();
    } else if (Json came = Json::parse(*answer, nullptr, false); came.is_object()) {
      row = std::move(came);
      if (row.contains("no_gpu")) {
        report.end_with(device_lost(row["no_gpu"].get<std::string>()));
        break;
      }
    } else {
      set_status(run_failed("its process has left no row"), row);
    }
    report.add(std::move(row));
  }
  return report.take();
}

}  // namespace eddy
