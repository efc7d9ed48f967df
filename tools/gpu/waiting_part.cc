#include <sys/resource.h>

#include <chrono>
#include <thread>

#include "tools/gpu/control_cases.h"

namespace eddy {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

constexpr double kMostIdle = 0.01;     // of a core: what a clock of that kind can tell
constexpr double kMostWaiting = 0.05;  // likewise

double cpu_seconds() {
  rusage used{};
  getrusage(RUSAGE_SELF, &used);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
  };
  return seconds(used.ru_utime) + seconds(used.ru_stime);
}

// The share of one core while `run` goes on; kUnsupported: the run was too short to measure.
Status measure(const std::function<Status()>& run, double most, double least_seconds, Json& row) {
  const double cpu = cpu_seconds();
  const Clock::time_point start = Clock::now();
  EDDY_RETURN_IF_ERROR(run());
  const std::chrono::duration<double> took = Clock::now() - start;
  const double share = (cpu_seconds() - cpu) / took.count();
  row["ms"] = 1e3 * took.count();
  row["share_of_a_core"] = share;
  row["most"] = most;
  if (took.count() < least_seconds) {
    return unsupported("it took no " + std::to_string(least_seconds) + " s");
  }
  if (share <= most) return Status::ok();
  return run_failed("it used " + std::to_string(share) + " of a core, at most " +
                    std::to_string(most) + " was expected");
}

}  // namespace

Json report_waiting(const SessionsUnderReport& what) {
  PartReport report("waiting", what.pace);
  const Library library;
  // Some 100 ms by the device, whose loops take 4 µs a round.
  const GpuCase one = counters("a run that waits", 1, what.is_small ? 10 : 25'000);
  CaseWay way{.name = "recording", .loops = Loops::kDevice};
  way.only_way = LoopChoice::Way::kRecording;
  Result<Graph> graph = one.build(library.ops());
  Result<std::unique_ptr<Session>> session =
      Session::create(library, std::move(*graph), options_of(way, what));
  report.end_with(session.is_ok() ? Status::ok() : session.status());
  const auto run = [&] {
    const auto outputs = (*session)->run(one.inputs);
    return outputs.is_ok() ? Status::ok() : outputs.status();
  };
  if (session.is_ok()) report.end_with(run());  // the first makes recordings
  const auto add = [&](const char* name, const std::function<Status()>& of, double most,
                       double least_seconds) {
    if (!report.may_begin(name)) return;
    Json row = {{"case", name}};
    const Status status = measure(of, most, what.is_small ? 0 : least_seconds, row);
    set_status(status, row);
    if (status.code() == StatusCode::kUnsupported) row["status"] = "short";
    report.add(std::move(row));
  };
  add("a run that waits", run, what.is_small ? 1e9 : kMostWaiting, 0.05);
  const auto idle = [&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(what.is_small ? 1 : 1000));
    return Status::ok();
  };
  add("an idle session", idle, what.is_small ? 1e9 : kMostIdle, 0.5);
  return report.take();
}

}  // namespace eddy
