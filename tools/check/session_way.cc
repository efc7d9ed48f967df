#include "tools/check/session_way.h"

#include <algorithm>
#include <span>

#include "graph/base/check.h"
#include "graph/base/random.h"
#include "graph/io/export.h"
#include "graph/io/import.h"
#include "runtime/api/shared_threads.h"
#include "runtime/cpu/cpu_device.h"
#include "runtime/cpu/worker_pool.h"
#include "tools/check/step_digests.h"

namespace eddy::check {
namespace {

// Empty, or why the graph or the oracle is no good.
std::string prepare(Subject& subject) {
  for (uint64_t variant : {0, 1}) {
    const Status& status = subject.expected(variant).status;
    if (!subject.status().is_ok()) return "the graph does not build: " + status.to_string();
    if (!status.is_ok()) return "the oracle failed: " + status.to_string();
  }
  return {};
}

Result<Graph> round_trip(const Graph& graph, const Library& library) {
  EDDY_ASSIGN_OR_RETURN(const std::string bytes, format_onnx(graph));
  return import_onnx_bytes(std::as_bytes(std::span(bytes)), library.ops());
}

// Only tensors can be fed back.
SessionUse possible_use(Subject& subject, SessionUse use) {
  const bool is_possible =
      use != SessionUse::kFedBack || are_all_tensors(subject.expected(0).inputs);
  return is_possible ? use : SessionUse::kInTurn;
}

const char* assignment_name(Assignment assignment) {
  switch (assignment) {
    case Assignment::kAuto:
      return "auto";
    case Assignment::kRank:
      return "rank";
    case Assignment::kMatching:
      return "matching";
    case Assignment::kSerial:
      return "serial";
  }
  return "?";
}

// Sessions that the observer cannot be given to: what it sees is copied, or in other ids.
bool has_digests(const SessionOptions& options) {
  return !options.simplify && options.observer_or_null == nullptr && options.make_devices.empty();
}

// Takes complete options.
std::string difference(Subject& subject, SessionWay way) {
  if (std::string text = prepare(subject); !text.empty()) return text;
  const Subject::Expected& first = subject.expected(0);
  OracleResult second;  // of the run that is fed with the first one's outputs
  if (way.use == SessionUse::kFedBack) {
    auto result = interpret(*subject.graph_or_null(), subject.library(),
                            fed_back(first.inputs, first.result.outputs));
    if (!result.is_ok()) return "the oracle failed: " + result.status().to_string();
    second = std::move(*result);
  }
  if (way.use == SessionUse::kFixedShapes)
    way.options.input_dims = shapes_of(subject.recipe(), first.inputs);
  auto graph = subject.copy_graph();
  if (graph.is_ok() && way.use == SessionUse::kRoundTrip) {
    graph = round_trip(*graph, subject.library());
    if (!graph.is_ok()) return "written and read back: " + graph.status().to_string();
  }
  if (!graph.is_ok()) return "the graph does not build: " + graph.status().to_string();
  StepDigests digests;
  const bool is_digested = way.use == SessionUse::kInTurn && has_digests(way.options);
  if (is_digested) way.options.observer_or_null = &digests;
  auto session = Session::create(subject.library(), std::move(*graph), way.options);
  if (!session.is_ok()) return "no session: " + session.status().to_string();
  std::string text = use_session(**session, subject,
                                 {way.use, way.seed + 1, is_digested ? &digests : nullptr, second});
  (*session)->close();
  return text;
}

}  // namespace

CheckThreads::CheckThreads() {
  // On one processor a second worker would only take turns with the first, at a price.
  const bool has_one = usable_processors() == 1;
  for (size_t p = 0; p < std::size(pools_); ++p) {
    const int num_workers = has_one ? 1 : kNumWorkers[p];
    pools_[p].threads = std::make_shared<SharedThreads>(num_workers);
    pools_[p].device =
        std::make_shared<CpuDevice>(CpuDeviceOptions{num_workers, 0, pools_[p].threads->workers()});
  }
}

const CheckThreads::Pool& CheckThreads::with(int num_workers) const {
  const auto* const found = std::ranges::find(kNumWorkers, num_workers);
  EDDY_CHECK(found != std::end(kNumWorkers)) << "no pool of " << num_workers << " workers";
  return pools_[found - std::begin(kNumWorkers)];
}

SessionWay SessionWay::draw(uint64_t seed, SessionUse use) {
  EDDY_CHECK(static_cast<size_t>(use) < kNumSessionUses) << "use " << static_cast<int>(use);
  Random random(seed * kNumSessionUses + static_cast<uint64_t>(use) + 0x5e551011);
  const auto one_in = [&](uint64_t n) { return random.below(n) == 0; };
  SessionWay way;
  way.use = use;
  way.seed = random.next();
  SessionOptions& options = way.options;
  constexpr Assignment kAssignments[] = {Assignment::kRank,     Assignment::kMatching,
                                         Assignment::kSerial,   Assignment::kRank,
                                         Assignment::kMatching, Assignment::kAuto};
  options.assignment = kAssignments[random.below(std::size(kAssignments))];
  if (one_in(3)) options.max_streams = static_cast<uint32_t>(1 + random.below(3));
  options.loops = one_in(4) ? Loops::kHost : one_in(4) ? Loops::kAuto : Loops::kDevice;
  options.simplify = one_in(3);
  options.use_arenas = !one_in(3);
  if (one_in(3)) options.min_released_bytes = 0;
  if (one_in(4)) options.max_runs_in_flight = static_cast<uint32_t>(1 + random.below(2));
  way.num_workers = one_in(2) ? 1 : one_in(3) ? (one_in(4) ? 64 : 8) : one_in(3) ? 3 : 2;
  return way;
}

std::string SessionWay::text() const {
  std::string text = session_use_name(use);
  text += std::string(", ") + assignment_name(options.assignment);
  if (options.max_streams > 0) {
    text += ", at most " + std::to_string(options.max_streams) + " streams";
  }
  if (options.loops == Loops::kHost) text += ", loops on the host";
  if (options.simplify) text += ", simplified";
  if (!options.use_arenas) text += ", no arenas";
  if (options.min_released_bytes == 0) text += ", memory released at once";
  if (options.max_runs_in_flight < SessionOptions().max_runs_in_flight) {
    text += ", at most " + std::to_string(options.max_runs_in_flight) + " runs";
  }
  return text + ", " + std::to_string(num_workers) + " workers";
}

std::string difference(Subject& subject, const SessionWay& way, const CheckThreads& threads) {
  SessionWay possible = way;
  possible.use = possible_use(subject, way.use);
  SessionWay complete = possible;
  const CheckThreads::Pool& pool = threads.with(way.num_workers);
  complete.options.threads = pool.threads;
  complete.options.make_device = [&pool]() -> Result<std::shared_ptr<Device>> {
    return pool.device;
  };
  std::string text = difference(subject, std::move(complete));
  return text.empty() ? text : possible.text() + ": " + text;
}

std::string run_in_turn(Subject& subject, SessionOptions options) {
  SessionWay way;
  way.options = std::move(options);
  std::string text = difference(subject, way);
  if (!text.empty()) return text;
  way.use = SessionUse::kBound;
  return difference(subject, way);
}

}  // namespace eddy::check
