#include "tools/check/differential_campaign.h"

#include <array>
#include <map>

#include "graph/ir/print.h"
#include "runtime/api/shared_threads.h"
#include "runtime/cpu/cpu_device.h"
#include "tools/check/shrink.h"
#include "tools/check/step_digests.h"

namespace eddy::check {
namespace {

constexpr std::array<uint64_t, 3> kVariants = {0, 1, 0};

// Trip counts of the last time each loop ran. Reports come in the order of the graph's loops.
std::string trips_difference(const Graph& graph, const OracleResult& expected,
                             const std::vector<LoopReport>& reports) {
  std::map<NodeId, int64_t> last;
  for (const TripCount& count : expected.trips) last[count.node] = count.trips;
  auto report = reports.begin();
  for (uint32_t n = 0; n < graph.num_nodes() && report != reports.end(); ++n) {
    if (graph.node(NodeId(n)).kind != NodeKind::kWhile) continue;
    const auto should = last.find(NodeId(n));
    if (should != last.end() && should->second != report->iterations) {
      return "loop " + report->path + " made " + std::to_string(report->iterations) +
             " trips and should have made " + std::to_string(should->second);
    }
    ++report;
  }
  return {};
}

// One run after another on one session.
std::string run_in_turn(Session& session, StepDigests* digests_or_null, Subject& subject) {
  for (uint64_t variant : kVariants) {
    const auto& [given, status, should] = subject.expected(variant);
    if (digests_or_null != nullptr) digests_or_null->clear();
    const auto outputs = session.run(given);
    const std::string inputs = "inputs " + std::to_string(variant) + ": ";
    if (!outputs.is_ok()) return inputs + outputs.status().to_string();
    if (std::string text = difference(should.outputs, *outputs); !text.empty()) {
      return inputs + text;
    }
    if (digests_or_null == nullptr) continue;
    std::string text = digests_or_null->difference(session.graph(), should);
    if (text.empty()) text = trips_difference(session.graph(), should, session.loop_reports());
    if (!text.empty()) return inputs + text;
  }
  return {};
}

// One call, its tensors bound to memory of ours; outputs that are no tensors stay where they are.
std::string run_bound(Session& session, Subject& subject) {
  auto call = session.prepare();
  if (!call.is_ok()) return call.status().to_string();
  for (uint64_t variant : kVariants) {
    const NamedTensors& inputs = subject.expected(variant).inputs;
    const NamedTensors& should = subject.expected(variant).result.outputs;
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (!inputs[i].second.is_tensor()) return {};
      const Status status = (*call)->bind_input(i, inputs[i].second.view());
      if (!status.is_ok()) return "bound inputs: " + status.to_string();
    }
    NamedTensors made = should;
    for (size_t i = 0; i < should.size(); ++i) {
      const Tensor& tensor = should[i].second;
      if (!tensor.is_tensor()) return {};
      made[i].second = Tensor::zeros(tensor.element_type(), tensor.dims());
      const Status status = (*call)->bind_output(i, made[i].second.view());
      if (!status.is_ok()) return "bound outputs: " + status.to_string();
    }
    const Status status = (*call)->run();
    if (!status.is_ok())
      return "bound, inputs " + std::to_string(variant) + ": " + status.to_string();
    if (std::string text = difference(should, made); !text.empty()) {
      return "bound, inputs " + std::to_string(variant) + ": " + text;
    }
  }
  return {};
}

// Six runs at once on one session.
std::string run_at_once(Session& session, Subject& subject) {
  constexpr size_t kRuns = 6;
  std::array<Result<NamedTensors>, kRuns> outputs = {Status(cancelled("")), Status(cancelled("")),
                                                     Status(cancelled("")), Status(cancelled("")),
                                                     Status(cancelled("")), Status(cancelled(""))};
  std::vector<RunHandle> handles;
  for (size_t r = 0; r < kRuns; ++r) {
    handles.push_back(session.run_async(
        subject.expected(r % 2).inputs,
        [&slot = outputs[r]](Result<NamedTensors> made) { slot = std::move(made); }));
  }
  for (RunHandle& handle : handles) (void)handle.wait();  // the outputs carry the status
  for (size_t r = 0; r < kRuns; ++r) {
    const std::string run = "run " + std::to_string(r) + " of " + std::to_string(kRuns) + ": ";
    if (!outputs[r].is_ok()) return run + outputs[r].status().to_string();
    const std::string text = difference(subject.expected(r % 2).result.outputs, *outputs[r]);
    if (!text.empty()) return run + text;
  }
  return {};
}

std::string compare(Subject& subject, SessionOptions options, bool is_at_once) {
  for (uint64_t variant : {0, 1}) {
    const Status& status = subject.expected(variant).status;
    if (!subject.status().is_ok()) return "the graph does not build: " + status.to_string();
    if (!status.is_ok()) return "the oracle failed: " + status.to_string();
  }
  auto graph = subject.take_graph();
  if (!graph.is_ok()) return "the graph does not build: " + graph.status().to_string();
  StepDigests digests;
  // Watchers read values, and an accelerator's memory is closed to them.
  const bool has_digests = !is_at_once && !options.simplify &&
                           options.observer_or_null == nullptr && !options.make_accelerator;
  if (has_digests) options.observer_or_null = &digests;
  auto session = Session::create(subject.library(), std::move(*graph), options);
  if (!session.is_ok()) return "no session: " + session.status().to_string();
  std::string text = is_at_once ? run_at_once(**session, subject)
                                : run_in_turn(**session, has_digests ? &digests : nullptr, subject);
  if (text.empty() && !is_at_once) text = run_bound(**session, subject);
  (*session)->close();
  return text;
}

Mismatch make_mismatch(const Library& library, Recipe recipe, const Contestant& contestant,
                       std::string what, const DifferentialOptions& options) {
  Mismatch mismatch{recipe.seed, contestant.name, std::move(what), 0, {}};
  const auto fails = [&](const Recipe& smaller) {
    Subject subject(library, smaller);
    return !contestant.difference(subject).empty();
  };
  if (options.shrinks) {
    // Twice, because what depends on threads may not fail each time.
    recipe = shrink(std::move(recipe), [&](const Recipe& smaller) {
               if (options.is_time_up && options.is_time_up()) return false;
               return fails(smaller) || fails(smaller);
             }).recipe;
  }
  if (const auto graph = build(recipe, library); graph.is_ok()) {
    mismatch.num_nodes = graph->num_nodes();
    mismatch.graph_text = print_text(*graph);
  }
  return mismatch;
}

}  // namespace

Contestant session_contestant(std::string name, MakeSessionOptions make_options) {
  return {std::move(name), [make_options](Subject& subject) {
            return compare(subject, make_options(subject.recipe()), /*is_at_once=*/false);
          }};
}

std::vector<Contestant> cpu_contestants(int num_threads) {
  struct Way {
    const char* name;
    Assignment assignment;
    Loops loops;
    bool simplify;
    bool is_at_once;
  };
  static constexpr Way kWays[] = {
      {"cpu/serial/device", Assignment::kSerial, Loops::kDevice, false, false},
      {"cpu/rank/device", Assignment::kRank, Loops::kDevice, false, false},
      {"cpu/serial/host", Assignment::kSerial, Loops::kHost, false, false},
      {"cpu/serial/simplified", Assignment::kSerial, Loops::kDevice, true, false},
      {"cpu/matching/device", Assignment::kMatching, Loops::kDevice, false, false},
      {"cpu/rank/host", Assignment::kRank, Loops::kHost, false, false},
      {"cpu/rank/simplified", Assignment::kRank, Loops::kDevice, true, false},
      {"cpu/auto/at_once", Assignment::kAuto, Loops::kAuto, true, true},
      {"cpu/rank/host/at_once", Assignment::kRank, Loops::kHost, false, true}};
  const auto threads = std::make_shared<SharedThreads>(num_threads);
  const std::shared_ptr<Device> device =
      std::make_shared<CpuDevice>(CpuDeviceOptions{num_threads, 0, threads->workers()});
  std::vector<Contestant> contestants;
  for (const Way& way : kWays) {
    SessionOptions options;
    options.threads = threads;
    options.assignment = way.assignment;
    options.loops = way.loops;
    options.simplify = way.simplify;
    options.make_device = [device]() -> Result<std::shared_ptr<Device>> { return device; };
    contestants.push_back({way.name, [options, way](Subject& subject) {
                             return compare(subject, options, way.is_at_once);
                           }});
  }
  return contestants;
}

bool DifferentialCampaign::meet(Subject& subject) {
  if (contestants_.empty() || report_.mismatches.size() >= options_.max_mismatches) return false;
  ++report_.num_graphs;
  const Graph* const graph = subject.graph_or_null();
  report_.num_nodes += graph == nullptr ? 0 : graph->num_nodes();
  const uint64_t per_seed = options_.contestants_per_seed;
  for (uint64_t c = 0; c < per_seed; ++c) {
    const uint64_t turn = subject.recipe().seed * per_seed + c;
    const Contestant& contestant = contestants_[turn % contestants_.size()];
    ++report_.num_comparisons;
    std::string what = contestant.difference(subject);
    if (what.empty()) continue;
    report_.mismatches.push_back(
        make_mismatch(subject.library(), subject.recipe(), contestant, std::move(what), options_));
    if (report_.mismatches.size() >= options_.max_mismatches) return false;
  }
  return true;
}

DifferentialReport run_differential(const Library& library,
                                    const std::vector<Contestant>& contestants,
                                    const DifferentialOptions& options) {
  DifferentialCampaign campaign(contestants, options);
  for (uint64_t i = 0; i < options.num_seeds; ++i) {
    if (options.is_time_up && options.is_time_up()) break;
    Subject subject(library, make_recipe(options.first_seed + i, options.generate));
    if (!campaign.meet(subject)) break;
  }
  return campaign.report();
}

}  // namespace eddy::check
