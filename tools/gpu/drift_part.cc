#include "tools/gpu/drift_part.h"

#include <algorithm>
#include <chrono>

#include "graph/base/check.h"
#include "tools/gpu/control_cases.h"

namespace eddy {
namespace {

using Json = nlohmann::json;
using Clock = std::chrono::steady_clock;
using Way = LoopChoice::Way;

constexpr int64_t kPageBytes = int64_t{2} << 20;
constexpr int kWarmRuns = 20;

struct Kind {
  GpuCase loop;
  CaseWay way;
  int64_t num_trips;  // of a run, and its result
  std::string driven;
  std::string says;  // how it was driven, within the report of its first loop
};

std::vector<Kind> kinds(bool is_small) {
  const int64_t n = is_small ? 16 : 10'000;
  const int64_t side = is_small ? 4 : 100;
  const auto device = [](const char* name, std::optional<Way> only = {}) {
    return CaseWay{.name = name, .loops = Loops::kDevice, .only_way = only};
  };
  std::vector<Kind> made;
  made.push_back({counters("persistent", 1, n), device("kernel", Way::kKernel), n, "device",
                  "persistent: all of it"});
  made.push_back(
      {counters("recording", 1, n), device("recording", Way::kRecording), n, "device", ""});
  made.push_back({counters("unrolled", 1, n), device("unrolled", Way::kUnrolled), n, "device",
                  "unrolled: up to"});
  made.push_back({counters("merged", 8, n), device("merged", Way::kRecording), n, "device", "+"});
  made.push_back(
      {nested(side, side), device("nested", Way::kRecording), side * side, "device", ""});
  // The slowest last: it has what the others have left of the time.
  made.push_back({counters("host-driven", 1, n), {"host", Loops::kHost}, n, "host", ""});
  return made;
}

struct Meters {
  int64_t device_bytes = 0;  // by the driver
  int64_t own_bytes = 0;     // by Eddy: on the device and page-locked
};

int64_t held_bytes(const MemoryStatistics& memory) {
  return static_cast<int64_t>(memory.used_bytes + memory.cached_bytes);
}

class Drift {
 public:
  Drift(const SessionsUnderReport& what, const Library& library,
        const std::function<Result<int64_t>(Device&)>& used_bytes)
      : what_(what), library_(library), used_bytes_(used_bytes) {}

  Status run(const Kind& kind, std::chrono::nanoseconds most_time, Json& row) {
    EDDY_RETURN_IF_ERROR(open(kind));
    int64_t num_runs = 0;
    for (; num_runs < kWarmRuns; ++num_runs) EDDY_RETURN_IF_ERROR(run_once(kind));
    if (const std::string why = why_not(kind); !why.empty()) return unsupported(why);
    EDDY_ASSIGN_OR_RETURN(const Meters before, read());
    const Clock::time_point start = Clock::now();
    const int64_t asked = what_.is_small ? 40 * kind.num_trips : 10'000'000;
    while (num_runs * kind.num_trips < asked && Clock::now() - start < most_time) {
      EDDY_RETURN_IF_ERROR(run_once(kind));
      ++num_runs;
    }
    const std::chrono::duration<double> took = Clock::now() - start;
    EDDY_ASSIGN_OR_RETURN(const Meters after, read());
    row["asked"] = asked;
    row["iterations"] = num_runs * kind.num_trips;
    row["runs"] = num_runs;
    row["seconds"] = took.count();
    row["device_growth_bytes"] = after.device_bytes - before.device_bytes;
    row["own_growth_bytes"] = after.own_bytes - before.own_bytes;
    row["device_bytes"] = after.device_bytes;
    row["is_short"] = row["iterations"] < row["asked"];
    return judge(before, after);
  }

 private:
  Status open(const Kind& kind) {
    SessionOptions options = options_of(kind.way, what_);
    EDDY_CHECK(options.make_devices.size() == 1) << "memory is read of one device";
    options.make_devices = {[&, make = options.make_devices[0]]() -> Result<ExecutionDevice> {
      EDDY_ASSIGN_OR_RETURN(ExecutionDevice made, make());
      device_ = made.device;
      return made;
    }};
    EDDY_ASSIGN_OR_RETURN(Graph graph, kind.loop.build(library_.ops()));
    EDDY_ASSIGN_OR_RETURN(session_, Session::create(library_, std::move(graph), options));
    return Status::ok();
  }
  Status run_once(const Kind& kind) {
    EDDY_ASSIGN_OR_RETURN(const NamedTensors outputs, session_->run(kind.loop.inputs));
    const float found = outputs[0].second.values<float>()[0];
    if (found == static_cast<float>(kind.num_trips)) return Status::ok();
    return run_failed("it counted to " + std::to_string(found) + ", expected " +
                      std::to_string(kind.num_trips));
  }
  // Empty: it is driven as this kind is.
  std::string why_not(const Kind& kind) const {
    const LoopReport loop = session_->loop_reports().at(0);
    const std::string how = loop.path + ", driven by the " + loop.driven + ": " + loop.reason;
    const bool is_so = loop.driven == kind.driven && how.find(kind.says) != std::string::npos;
    return is_so ? "" : "not driven this way: " + how;
  }
  Result<Meters> read() const {
    Meters meters;
    EDDY_CHECK(device_ != nullptr) << "no session has made a device";
    EDDY_ASSIGN_OR_RETURN(meters.device_bytes, used_bytes_(*device_));
    meters.own_bytes = held_bytes(device_->allocator().statistics()) +
                       held_bytes(device_->staging_or_null()->staging().statistics());
    return meters;
  }
  static Status judge(const Meters& before, const Meters& after) {
    if (after.device_bytes - before.device_bytes > kPageBytes) {
      return run_failed("device memory in use has grown by " +
                        std::to_string(after.device_bytes - before.device_bytes) + " bytes");
    }
    if (after.own_bytes <= before.own_bytes) return Status::ok();
    return run_failed("what Eddy holds has grown by " +
                      std::to_string(after.own_bytes - before.own_bytes) + " bytes");
  }

  const SessionsUnderReport& what_;
  const Library& library_;
  const std::function<Result<int64_t>(Device&)>& used_bytes_;
  std::shared_ptr<Device> device_;
  std::unique_ptr<Session> session_;  // goes first
};

}  // namespace

Result<int64_t> driver_used_bytes(Device& device) {
  CudaContext& context = static_cast<CudaDevice&>(device).context();
  const CudaApi& api = context.api();
  if (!api.memory_info) return unsupported("the driver lacks cuMemGetInfo");
  const CudaContext::Use use(context);
  EDDY_RETURN_IF_ERROR(context.check(api.context_synchronize(), "cuCtxSynchronize"));
  size_t free_bytes = 0, bytes = 0;
  EDDY_RETURN_IF_ERROR(context.check(api.memory_info(&free_bytes, &bytes), "cuMemGetInfo"));
  return static_cast<int64_t>(bytes - free_bytes);
}

bool is_drift_kind(const std::string& name) {
  return std::ranges::any_of(kinds(true),
                             [&](const Kind& kind) { return kind.loop.name.starts_with(name); });
}

Json report_drift(const SessionsUnderReport& what, const std::string& only,
                  const std::function<Result<int64_t>(Device&)>& used_bytes) {
  PartReport report("drift", what.pace);
  const Library library;
  std::vector<Kind> asked = kinds(what.is_small);
  std::erase_if(asked, [&](const Kind& kind) { return !kind.loop.name.starts_with(only); });
  auto num_left = static_cast<int64_t>(asked.size());
  for (const Kind& kind : asked) {
    if (report.document().contains("error")) break;
    Json row = {{"case", kind.loop.name}};
    const auto share = report.time_left() / num_left--;
    const Status status = Drift(what, library, used_bytes).run(kind, share, row);
    set_status(status, row);
    if (status.code() == StatusCode::kUnsupported) row["status"] = "left out";
    if (status.is_ok() && row["is_short"]) row["status"] = "short";
    row.erase("is_short");
    report.add(std::move(row));
    if (status.code() == StatusCode::kDeviceLost) report.end_with(status);
  }
  return report.take();
}

}  // namespace eddy
