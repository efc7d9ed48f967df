#include "tools/check/differential_campaign.h"

#include <array>
#include <map>

#include "graph/ir/print.h"
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

// What the oracle says of each variant of a recipe's inputs.
struct Expected {
  std::array<NamedTensors, 2> inputs;
  std::array<OracleResult, 2> results;
};

Result<Expected> ask_oracle(const Graph& graph, const Library& library, const Recipe& recipe) {
  Expected expected;
  for (uint64_t variant = 0; variant < 2; ++variant) {
    expected.inputs[variant] = make_inputs(recipe, variant);
    EDDY_ASSIGN_OR_RETURN(expected.results[variant],
                          interpret(graph, library, expected.inputs[variant]));
  }
  return expected;
}

// One run after another on one session.
std::string run_in_turn(Session& session, StepDigests* digests_or_null, const Expected& expected) {
  for (uint64_t variant : kVariants) {
    const OracleResult& should = expected.results[variant];
    if (digests_or_null != nullptr) digests_or_null->clear();
    const auto outputs = session.run(expected.inputs[variant]);
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
std::string run_bound(Session& session, const Expected& expected) {
  auto call = session.prepare();
  if (!call.is_ok()) return call.status().to_string();
  for (uint64_t variant : kVariants) {
    const NamedTensors& inputs = expected.inputs[variant];
    const NamedTensors& should = expected.results[variant].outputs;
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
std::string run_at_once(Session& session, const Expected& expected) {
  constexpr size_t kRuns = 6;
  std::array<Result<NamedTensors>, kRuns> outputs = {Status(cancelled("")), Status(cancelled("")),
                                                     Status(cancelled("")), Status(cancelled("")),
                                                     Status(cancelled("")), Status(cancelled(""))};
  std::vector<RunHandle> handles;
  for (size_t r = 0; r < kRuns; ++r) {
    handles.push_back(session.run_async(
        expected.inputs[r % 2],
        [&slot = outputs[r]](Result<NamedTensors> made) { slot = std::move(made); }));
  }
  for (RunHandle& handle : handles) (void)handle.wait();  // the outputs carry the status
  for (size_t r = 0; r < kRuns; ++r) {
    const std::string run = "run " + std::to_string(r) + " of " + std::to_string(kRuns) + ": ";
    if (!outputs[r].is_ok()) return run + outputs[r].status().to_string();
    const std::string text = difference(expected.results[r % 2].outputs, *outputs[r]);
    if (!text.empty()) return run + text;
  }
  return {};
}

std::string compare(const Library& library, const Recipe& recipe, SessionOptions options,
                    bool is_at_once) {
  auto graph = build(recipe, library);
  if (!graph.is_ok()) return "the graph does not build: " + graph.status().to_string();
  const auto expected = ask_oracle(*graph, library, recipe);
  if (!expected.is_ok()) return "the oracle failed: " + expected.status().to_string();
  StepDigests digests;
  const bool has_digests = !is_at_once && !options.simplify && options.observer_or_null == nullptr;
  if (has_digests) options.observer_or_null = &digests;
  auto session = Session::create(library, std::move(*graph), options);
  if (!session.is_ok()) return "no session: " + session.status().to_string();
  std::string text = is_at_once
                         ? run_at_once(**session, *expected)
                         : run_in_turn(**session, has_digests ? &digests : nullptr, *expected);
  if (text.empty() && !is_at_once) text = run_bound(**session, *expected);
  (*session)->close();
  return text;
}

size_t count_nodes(const Recipe& recipe, const Library& library, std::string* text_or_null) {
  const auto graph = build(recipe, library);
  if (!graph.is_ok()) return 0;
  if (text_or_null != nullptr) *text_or_null = print_text(*graph);
  return graph->num_nodes();
}

Mismatch make_mismatch(const Library& library, Recipe recipe, const Contestant& contestant,
                       std::string what, bool shrinks) {
  Mismatch mismatch{recipe.seed, contestant.name, std::move(what), 0, {}};
  if (shrinks) {
    // Twice, because what depends on threads may not fail each time.
    recipe =
        shrink(std::move(recipe), [&](const Recipe& smaller) {
          return !contestant.difference(smaller).empty() || !contestant.difference(smaller).empty();
        }).recipe;
  }
  mismatch.num_nodes = count_nodes(recipe, library, &mismatch.graph_text);
  return mismatch;
}

}  // namespace

Contestant session_contestant(std::string name, const Library& library,
                              MakeSessionOptions make_options) {
  return {std::move(name), [&library, make_options](const Recipe& recipe) {
            return compare(library, recipe, make_options(recipe), /*is_at_once=*/false);
          }};
}

std::vector<Contestant> cpu_contestants(const Library& library, int num_threads) {
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
  const std::shared_ptr<Device> device =
      std::make_shared<CpuDevice>(CpuDeviceOptions{num_threads, 0});
  std::vector<Contestant> contestants;
  for (const Way& way : kWays) {
    SessionOptions options;
    options.num_threads = num_threads;
    options.assignment = way.assignment;
    options.loops = way.loops;
    options.simplify = way.simplify;
    options.make_device = [device]() -> Result<std::shared_ptr<Device>> { return device; };
    contestants.push_back({way.name, [&library, options, way](const Recipe& recipe) {
                             return compare(library, recipe, options, way.is_at_once);
                           }});
  }
  return contestants;
}

DifferentialReport run_differential(const Library& library,
                                    const std::vector<Contestant>& contestants,
                                    const DifferentialOptions& options) {
  DifferentialReport report;
  if (contestants.empty()) return report;
  uint64_t turn = options.first_seed * options.contestants_per_seed;
  for (uint64_t i = 0; i < options.num_seeds; ++i) {
    if (options.is_time_up && options.is_time_up()) break;
    const Recipe recipe = make_recipe(options.first_seed + i, options.generate);
    ++report.num_graphs;
    report.num_nodes += count_nodes(recipe, library, nullptr);
    for (size_t c = 0; c < options.contestants_per_seed; ++c) {
      const Contestant& contestant = contestants[turn++ % contestants.size()];
      ++report.num_comparisons;
      std::string what = contestant.difference(recipe);
      if (what.empty()) continue;
      report.mismatches.push_back(
          make_mismatch(library, recipe, contestant, std::move(what), options.shrinks));
      if (report.mismatches.size() >= options.max_mismatches) return report;
    }
  }
  return report;
}

}  // namespace eddy::check
