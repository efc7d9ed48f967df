#include <algorithm>
#include <cstring>

#include "graph/base/check.h"
#include "tools/gpu/control_cases.h"

namespace eddy {
namespace {

using Json = nlohmann::json;
using Way = LoopChoice::Way;

constexpr int kNumRuns = 3;

// Empty when every bit is the same.
std::string bit_difference(const NamedTensors& expected, const NamedTensors& found) {
  EDDY_CHECK(found.size() == expected.size()) << found.size() << " outputs of one graph";
  for (size_t i = 0; i < expected.size(); ++i) {
    const TensorView a = expected[i].second.view(), b = found.at(i).second.view();
    const bool is_like = a.element == b.element && a.shape().size() == b.shape().size() &&
                         std::ranges::equal(a.shape(), b.shape());
    if (is_like && std::memcmp(a.data, b.data, a.size_bytes()) == 0) continue;
    const std::string where = host_difference(expected, found, {0, 0});
    return where.empty() ? "output " + expected[i].first + ": other bits of equal numbers" : where;
  }
  return "";
}

// Sets how its first loop was driven; the outputs of the last run, each of which equalled the
// first.
Result<NamedTensors> run_in(const CaseWay& way, const GpuCase& one, const Library& library,
                            const SessionsUnderReport& what, Json& row) {
  EDDY_ASSIGN_OR_RETURN(Graph graph, one.build(library.ops()));
  EDDY_ASSIGN_OR_RETURN(const auto session,
                        Session::create(library, std::move(graph), options_of(way, what)));
  NamedTensors first;
  for (int i = 0; i < kNumRuns; ++i) {
    EDDY_ASSIGN_OR_RETURN(NamedTensors outputs, session->run(one.inputs));
    const std::string difference = i == 0 ? "" : bit_difference(first, outputs);
    if (!difference.empty()) return run_failed(difference + " by the first run");
    if (i == 0) first = std::move(outputs);
  }
  const LoopReport loop = session->loop_reports().at(0);
  row["first_loop"] = loop.driven + ": " + loop.reason;
  return first;
}

void compare_ways(const GpuCase& one, std::span<const CaseWay> ways, const Library& library,
                  const SessionsUnderReport& what, PartReport& report) {
  std::optional<NamedTensors> by_host;
  for (const CaseWay& way : ways) {
    if (!report.may_begin(one.name + ", " + way.name)) return;
    Json row = {{"case", one.name}, {"way", way.name}};
    Result<NamedTensors> outputs = run_in(way, one, library, what, row);
    Status status = outputs.is_ok() ? Status::ok() : outputs.status();
    if (outputs.is_ok() && by_host) {
      const std::string difference = bit_difference(*by_host, *outputs);
      if (!difference.empty()) status = run_failed(difference + " where the host drives the loops");
    }
    set_status(status, row);
    if (status.code() == StatusCode::kUnsupported) row["status"] = "refused";
    report.add(std::move(row));
    if (status.code() == StatusCode::kDeviceLost) report.end_with(status);
    if (!by_host && !outputs.is_ok()) return;  // nothing to be held against
    if (!by_host) by_host = std::move(*outputs);
  }
}

}  // namespace

Json report_bits(const SessionsUnderReport& what) {
  PartReport report("bits", what.pace);
  const Library library;
  const int64_t n = what.is_small ? 10 : 500;
  const int64_t width = what.is_small ? 8 : 256;
  const int64_t side = what.is_small ? 4 : 30;
  const GpuCase cases[] = {counters("scalar while", 1, n),
                           roundings(n),
                           matmuls("matmul and tanh while", 1, n, 0, width),
                           matmuls("eight such loops", 8, n, n / 10, width),
                           nested(side, side),
                           with_case(n)};
  const auto device = [](const char* name, std::optional<Way> only = {}) {
    return CaseWay{.name = name, .loops = Loops::kDevice, .only_way = only};
  };
  const CaseWay ways[] = {{"host", Loops::kHost},
                          device("device"),
                          {.name = "apart", .loops = Loops::kDevice, .merges_loops = false},
                          device("recording", Way::kRecording),
                          device("unrolled", Way::kUnrolled),
                          device("persistent", Way::kKernel),
                          {"auto", Loops::kAuto}};
  for (const GpuCase& one : cases) compare_ways(one, ways, library, what, report);
  return report.take();
}

}  // namespace eddy
