#include "tools/gpu/control_cases.h"

namespace eddy {

nlohmann::json report_control(const SessionsUnderReport& what) {
  PartReport report("control", what.pace);
  Library library;
  report.end_with(add_predicate(library));
  const int64_t n = what.is_small ? 10 : 1000;
  const int64_t width = what.is_small ? 8 : 256;
  const int64_t side = what.is_small ? 4 : 100;
  const std::vector<std::function<GpuCase()>> cases = {
      [=] { return counters("scalar while", 1, n); },
      [=] { return matmuls("matmul and tanh while", 1, n, 0, width); },
      [=] { return matmuls("eight such loops", 8, n, n / 10, width); },
      [=] { return nested(side, side); },
      [=] { return with_case(n); },
      [=] { return counters("32 loops side by side", 32, n); },
      [=] { return host_decides(1, n); },
      [=] { return host_decides(10, n); }};
  const CaseWay ways[] = {
      {"host", Loops::kHost},
      {"device", Loops::kDevice},
      {.name = "apart", .loops = Loops::kDevice, .merges_loops = false},
      {.name = "recording", .loops = Loops::kDevice, .only_way = LoopChoice::Way::kRecording},
      {.name = "unrolled", .loops = Loops::kDevice, .only_way = LoopChoice::Way::kUnrolled},
      {"auto", Loops::kAuto},
      {.name = "auto, tf32", .allows_tf32 = true}};
  report_cases(report, library, cases, ways, what);
  return report.take();
}

}  // namespace eddy
