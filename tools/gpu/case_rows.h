// case_rows: what all parts that run sessions have in common: a graph with its inputs, run on the
// CPU for what is expected, then in several ways on the GPU, each row with its time.
//
// A row passes when every run gave the CPU's outputs (host_difference.h) and the counted loop went
// round as often. Where products are rounded to TF32, close decisions fall otherwise: which token
// is the likeliest, whether to go on. So where the host-driven way with TF32 leaves the CPU's
// outputs, rows with TF32 are held against that way, as closely as those without are against the
// CPU
// ("held_against"): steps and branches are proved so, operators by the part conformance. Times are
// medians of `num_runs` runs behind `num_warm_runs`, with the fastest and the slowest; microseconds
// a round where the case defines a round.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "runtime/api/session.h"
#include "runtime/execute/loop_choice.h"
#include "tools/gpu/host_difference.h"
#include "tools/gpu/report_part.h"

namespace eddy {

struct GpuCase {
  std::string name;
  std::string size;
  std::function<Result<Graph>(const OpTable& ops)> build;
  NamedTensors inputs;
  // Path of the loop with compared and printed trips; empty: none. Among several loops at the
  // graph's top level it is the one with the most trips: merged loops count that many.
  std::string counted_loop;
  int64_t num_rounds = 0;  // of a run, for times a round; 0: times a run only
  // Expected outputs in place of the CPU's.
  std::optional<NamedTensors> expected;
  bool has_products = false;        // of float32: rounded otherwise with TF32
  std::string made_by = "the CPU";  // `expected`, or the CPU
  HostTolerance tolerance;          // but for TF32
  bool is_timed_on_cpu = false;     // as a rival: rows have "cpu_ms", a median likewise
  // Rivals keep inputs and outputs on the GPU: so does "ms" (resident_values.h), and from host
  // memory to host memory it takes "ms_from_host".
  bool is_resident = false;
  std::function<void(nlohmann::json& row)> add_to_row =
      {};  // to one that has passed; null: nothing
};

struct CaseWay {
  std::string name;
  Loops loops = Loops::kAuto;
  Assignment assignment = Assignment::kAuto;
  // In which the GPU drives loops; none: as it would.
  std::optional<LoopChoice::Way> only_way = {};
  bool merges_loops = true;            // those beside each other
  bool allows_tf32 = false;            // for cases with products; within kTf32Tolerance then
  bool folds_norms = false;            // into the weights of convolutions
  bool measures_convolutions = false;  // with TF32
  bool channels_first = false;         // of images, with TF32
};

// Those of a session that is run in this way on the GPU; both outlive the session's making.
SessionOptions options_of(const CaseWay& way, const SessionsUnderReport& what);

// One row for each case and way; none for TF32 where a case has no products, and none for a device
// that is not there. A way that refuses the case (loops that the device cannot drive) has status
// "refused" with the reason; it is no failure.
void report_cases(PartReport& report, const Library& library,
                  std::span<const std::function<GpuCase()>> cases, std::span<const CaseWay> ways,
                  const SessionsUnderReport& what);

}  // namespace eddy
