#include "tools/gpu/case_rows.h"

#include <algorithm>
#include <chrono>

#include "graph/base/check.h"
#include "tools/gpu/resident_values.h"

namespace eddy {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;

// "a+b" is a and b, merged.
bool is_loop(const std::string& path, const std::string& counted) {
  return path == counted || path.starts_with(counted + "+");
}

// Iterations of the counted loop; -1: none is counted.
int64_t trips(const GpuCase& one, const Session& session) {
  for (const LoopReport& loop : session.loop_reports()) {
    if (!one.counted_loop.empty() && is_loop(loop.path, one.counted_loop)) return loop.iterations;
  }
  return -1;
}

const MakeDevice& maker_of(const CaseWay& way, const SessionsUnderReport& what) {
  if (way.channels_first) return what.make_channels_first_device;
  if (way.measures_convolutions) return what.make_measured_device;
  return way.allows_tf32 ? what.make_tf32_device : what.make_device;
}

class CaseRows {
 public:
  CaseRows(const Library& library, GpuCase one, const SessionsUnderReport& what)
      : library_(library), one_(std::move(one)), what_(what) {}

  // Computes the expected outputs of every way.
  Status run_on_cpu() {
    EDDY_ASSIGN_OR_RETURN(const auto session, make({}));
    EDDY_ASSIGN_OR_RETURN(NamedTensors outputs, session->run(one_.inputs));
    on_cpu_ = {std::move(outputs), trips(one_, *session), one_.tolerance, one_.made_by};
    if (one_.is_timed_on_cpu) {
      EDDY_ASSIGN_OR_RETURN(const auto times_ms, timed_runs(*session, on_cpu_));
      cpu_ms_ = times_ms[times_ms.size() / 2];
    }
    if (one_.expected) on_cpu_.outputs = *one_.expected;
    return Status::ok();
  }

  // Returns the result; the row reports it, too.
  Status run(const CaseWay& way, const Status& on_cpu, Json& row) {
    row = {{"case", one_.name}, {"way", way.name}};
    if (!one_.size.empty()) row["size"] = one_.size;
    Status status = on_cpu.is_ok() ? run(way, row) : on_cpu;
    set_status(status, row);
    if (status.code() == StatusCode::kUnsupported) row["status"] = "refused";
    if (status.is_ok() && one_.add_to_row) one_.add_to_row(row);
    return status;
  }

  // There is such a way to run it.
  bool has(const CaseWay& way) const {
    return maker_of(way, what_) && (!way.allows_tf32 || one_.has_products);
  }

 private:
  // What a way's runs are held against.
  struct Reference {
    NamedTensors outputs;
    int64_t trips = -1;
    HostTolerance tolerance;
    std::string made_by;
  };

  Result<std::unique_ptr<Session>> make(const SessionOptions& options) const {
    EDDY_ASSIGN_OR_RETURN(Graph graph, one_.build(library_.ops()));
    return Session::create(library_, std::move(graph), options);
  }

  // Of rows with TF32: the CPU, or, where the host-driven way leaves it, that one.
  Result<const Reference*> reference_with_tf32() {
    if (with_tf32_) return &*with_tf32_;
    Reference made = {on_cpu_.outputs, on_cpu_.trips, kTf32Tolerance, on_cpu_.made_by};
    if (!one_.expected) {
      const CaseWay host = {.name = "host, tf32", .loops = Loops::kHost, .allows_tf32 = true};
      EDDY_ASSIGN_OR_RETURN(const auto session, make(options_of(host, what_)));
      EDDY_ASSIGN_OR_RETURN(NamedTensors outputs, session->run(one_.inputs));
      const int64_t found = trips(one_, *session);
      const bool agrees =
          found == made.trips && host_difference(made.outputs, outputs, kTf32Tolerance).empty();
      if (!agrees) {
        made = {std::move(outputs), found, one_.tolerance, "the host-driven way with TF32"};
      }
    }
    return &with_tf32_.emplace(std::move(made));
  }

  Status run(const CaseWay& way, Json& row) {
    const Reference* reference = &on_cpu_;
    if (way.allows_tf32) {
      EDDY_ASSIGN_OR_RETURN(reference, reference_with_tf32());
      if (reference->made_by != on_cpu_.made_by) row["held_against"] = reference->made_by;
    }
    EDDY_ASSIGN_OR_RETURN(const auto session, make(options_of(way, what_)));
    EDDY_ASSIGN_OR_RETURN(const std::vector<double> times_ms, timed_runs(*session, *reference));
    const int64_t found = trips(one_, *session);
    if (found != reference->trips) {
      return run_failed("the loop went round " + std::to_string(found) + " times, expected " +
                        std::to_string(reference->trips) + " by " + reference->made_by);
    }
    describe(*session, found, row);
    if (!one_.is_resident) {
      add_times(times_ms, row);
      return Status::ok();
    }
    row["ms_from_host"] = times_ms[times_ms.size() / 2];
    EDDY_ASSIGN_OR_RETURN(const std::vector<double> resident_ms,
                          timed_resident_runs(*session, way, *reference));
    add_times(resident_ms, row);
    return Status::ok();
  }

  // Times of runs, ascending, each of which gave what is expected.
  Result<std::vector<double>> timed_runs(Session& session, const Reference& reference) const {
    std::vector<double> times_ms;
    for (int i = -what_.num_warm_runs; i < what_.num_runs; ++i) {
      const Clock::time_point start = Clock::now();
      EDDY_ASSIGN_OR_RETURN(const NamedTensors outputs, session.run(one_.inputs));
      const std::chrono::duration<double, std::milli> took = Clock::now() - start;
      if (i >= 0) times_ms.push_back(took.count());
      const std::string difference =
          host_difference(reference.outputs, outputs, reference.tolerance);
      if (!difference.empty()) return run_failed(difference + " by " + reference.made_by);
    }
    EDDY_CHECK(!times_ms.empty()) << "no run of " << one_.name << " is timed";
    std::ranges::sort(times_ms);
    return times_ms;
  }

  // The same with inputs and outputs on the GPU; the last run's are compared.
  Result<std::vector<double>> timed_resident_runs(Session& session, const CaseWay& way,
                                                  const Reference& reference) const {
    EDDY_ASSIGN_OR_RETURN(const auto values, ResidentValues::make(maker_of(way, what_), one_.inputs,
                                                                  reference.outputs));
    EDDY_ASSIGN_OR_RETURN(const auto call, session.prepare());
    EDDY_RETURN_IF_ERROR(values->bind(*call));
    std::vector<double> times_ms;
    for (int i = -what_.num_warm_runs; i < what_.num_runs; ++i) {
      const Clock::time_point start = Clock::now();
      EDDY_RETURN_IF_ERROR(call->run());
      const std::chrono::duration<double, std::milli> took = Clock::now() - start;
      if (i >= 0) times_ms.push_back(took.count());
    }
    EDDY_ASSIGN_OR_RETURN(const NamedTensors outputs, values->read(library_));
    const std::string difference = host_difference(reference.outputs, outputs, reference.tolerance);
    if (!difference.empty()) return run_failed(difference + " by " + reference.made_by);
    std::ranges::sort(times_ms);
    return times_ms;
  }

  void describe(const Session& session, int64_t found_trips, Json& row) const {
    if (found_trips >= 0) row["trips"] = found_trips;
    const std::vector<LoopReport> loops = session.loop_reports();
    row["device_driven_loops"] = std::ranges::count(loops, "device", &LoopReport::driven);
    if (!loops.empty()) row["first_loop"] = loops[0].driven + ": " + loops[0].reason;
    const std::string placement = session.placement_text();
    row["placement"] = placement.substr(0, placement.find('\n'));
  }

  void add_times(const std::vector<double>& times_ms, Json& row) const {
    EDDY_DCHECK(std::ranges::is_sorted(times_ms)) << "a median of what is not sorted";
    const double median_ms = times_ms[times_ms.size() / 2];
    row["ms"] = median_ms;
    row["ms_fastest"] = times_ms.front();
    row["ms_slowest"] = times_ms.back();
    if (one_.is_timed_on_cpu) row["cpu_ms"] = cpu_ms_;
    if (one_.num_rounds > 0) {
      row["us_per_round"] = 1e3 * median_ms / static_cast<double>(one_.num_rounds);
    }
  }

  const Library& library_;
  const GpuCase one_;
  const SessionsUnderReport& what_;
  Reference on_cpu_;
  std::optional<Reference> with_tf32_ = {};
  double cpu_ms_ = 0;
};

}  // namespace

SessionOptions options_of(const CaseWay& way, const SessionsUnderReport& what) {
  SessionOptions options;
  options.loops = way.loops;
  options.assignment = way.assignment;
  options.folds_norms = way.folds_norms;
  options.only_loop_way = way.only_way;
  options.merges_loops = way.merges_loops;
  options.make_devices = {[&] { return maker_of(way, what)(); }};
  return options;
}

void report_cases(PartReport& report, const Library& library,
                  std::span<const std::function<GpuCase()>> cases, std::span<const CaseWay> ways,
                  const SessionsUnderReport& what) {
  EDDY_CHECK(!ways.empty()) << "no way to run them";
  for (const std::function<GpuCase()>& make : cases) {
    GpuCase one = make();
    const std::string name = one.name;
    if (!report.may_begin(name + ", " + ways.front().name)) return;
    CaseRows rows(library, std::move(one), what);
    const Status on_cpu = rows.run_on_cpu();
    for (const CaseWay& way : ways) {
      if (!rows.has(way)) continue;
      if (!report.may_begin(name + ", " + way.name)) return;
      Json row;
      const Status status = rows.run(way, on_cpu, row);
      report.add(std::move(row));
      if (status.code() == StatusCode::kDeviceLost) report.end_with(status);
    }
  }
}

}  // namespace eddy
