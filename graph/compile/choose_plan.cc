#include "graph/compile/choose_plan.h"

#include <algorithm>

#include <fmt/format.h>

#include "graph/base/check.h"
#include "graph/compile/predict_plan.h"
#include "graph/simulate/fluid_scenarios.h"

namespace eddy {
namespace {

constexpr uint32_t kDefaultStreams = 16;  // of a machine that names none
constexpr uint64_t kScenarios = 16;       // where decisions have distributions; the same for all

struct Candidate {
  AssignPolicy policy = AssignPolicy::kSerial;
  uint32_t cap = 1;
  double predicted_ns = 0;
  uint32_t num_streams = 1;

  std::string text() const {
    const char* name = policy == AssignPolicy::kRank       ? "rank"
                       : policy == AssignPolicy::kMatching ? "matching"
                                                           : "serial";
    if (policy == AssignPolicy::kSerial) return fmt::format("serial {}", time_text());
    return fmt::format("{} on {} streams {}", name, num_streams, time_text());
  }
  std::string time_text() const {
    return predicted_ns < 1e6 ? fmt::format("{:.4g} µs", predicted_ns / 1e3)
                              : fmt::format("{:.4g} ms", predicted_ns / 1e6);
  }
};

class Chooser {
 public:
  Chooser(const Graph& graph, const FluidMachine& machine, const ChooseOptions& options)
      : graph_(graph), machine_(machine), options_(options) {}

  Plan run() {
    if (graph_.num_nodes() > options_.max_nodes) {
      return fall_back(fmt::format("{} nodes are more than the {} that it simulates",
                                   graph_.num_nodes(), options_.max_nodes));
    }
    work_ = work_on(graph_, machine_, options_.planning.costs_or_null);
    for (const Candidate& candidate : candidates()) {
      if (is_known(candidate)) continue;
      if (Status status = add(candidate); !status.is_ok()) return fall_back(status.message());
    }
    const Candidate& best = *choose();
    PlanOptions planning = planning_of(best);
    planning.lays_out_memory = options_.planning.lays_out_memory;
    Plan plan = plan_graph(graph_, planning);
    plan.notices.push_back(reason(best));
    return plan;
  }

 private:
  Plan fall_back(const std::string& why) const {
    PlanOptions planning = options_.planning;
    planning.policy = AssignPolicy::kRank;
    planning.is_auto = true;
    Plan plan = plan_graph(graph_, planning);
    plan.notices.push_back(fmt::format(
        "assign auto: not simulated, because {}; rank, one stream where little would overlap",
        why));
    return plan;
  }

  std::vector<Candidate> candidates() const {
    uint32_t most = machine_.max_streams > 0   ? machine_.max_streams
                    : machine_.num_workers > 0 ? machine_.num_workers
                                               : kDefaultStreams;
    if (options_.planning.max_streams > 0) most = std::min(most, options_.planning.max_streams);
    std::vector<Candidate> all = {{}};
    for (uint32_t cap = 2; cap <= most; cap = cap < most && cap * 2 > most ? most : cap * 2) {
      all.push_back({AssignPolicy::kRank, cap});
      all.push_back({AssignPolicy::kMatching, cap});
    }
    return all;
  }

  // A smaller cap was already more than the policy makes use of.
  bool is_known(const Candidate& candidate) const {
    return std::ranges::any_of(tried_, [&](const Candidate& other) {
      return other.policy == candidate.policy && other.num_streams < other.cap;
    });
  }

  PlanOptions planning_of(const Candidate& candidate) const {
    PlanOptions planning = options_.planning;
    planning.policy = candidate.policy;
    planning.is_auto = false;
    planning.max_streams = candidate.cap;
    planning.lays_out_memory = false;
    return planning;
  }

  Status add(Candidate candidate) {
    const Plan plan = plan_graph(graph_, planning_of(candidate));
    candidate.num_streams = plan.num_streams;
    const bool is_repeated = std::ranges::any_of(tried_, [&](const Candidate& other) {
      return other.policy == candidate.policy && other.num_streams == candidate.num_streams;
    });
    if (is_repeated) return Status::ok();  // a larger cap needed no more
    Status status;
    const FluidCosts costs = plan_costs(graph_, plan, work_);
    const uint64_t num_scenarios = has_draws() ? kScenarios : 1;
    for (const uint64_t max_rounds : {uint64_t{16}, uint64_t{2}}) {
      FluidOptions options;
      options.max_rounds = max_rounds;
      options.max_steps = options_.max_steps / num_scenarios;
      auto report = evaluate_fluid_scenarios(
          plan.program, costs, machine_, {.max_exact = num_scenarios, .num_samples = num_scenarios},
          options);
      if (report.is_ok()) {
        candidate.predicted_ns = report->expectation;
        num_scenarios_ = std::max(num_scenarios_, report->num_scenarios);
        rounds_ = std::min(rounds_, max_rounds);
        tried_.push_back(candidate);
        return Status::ok();
      }
      status = report.take_status();
      if (status.code() != StatusCode::kResourceExhausted) return status;
    }
    return status;
  }

  bool has_draws() const {
    return std::ranges::any_of(work_.controls, [](const ControlWork& control) {
      return !control.decision.distribution.empty();
    });
  }

  const Candidate* choose() const {
    EDDY_CHECK(!tried_.empty() && tried_[0].policy == AssignPolicy::kSerial)
        << "the serial plan is the measure of all others";
    const Candidate* best = &tried_[0];
    for (const Candidate& candidate : tried_) {
      if (candidate.num_streams == 1) continue;
      if (candidate.predicted_ns > tried_[0].predicted_ns * (1 - kMinGain)) continue;
      const bool is_better = candidate.predicted_ns < best->predicted_ns ||
                             (candidate.predicted_ns == best->predicted_ns &&
                              candidate.num_streams < best->num_streams);
      if (is_better) best = &candidate;
    }
    return best;
  }

  // What makes these figures differ from a longer simulation of one plan.
  std::string how_text() const {
    std::string text;
    if (num_scenarios_ > 1) text += fmt::format(", expected over {} scenarios", num_scenarios_);
    bool has_loops = false;
    for (uint32_t n = 0; n < graph_.num_nodes(); ++n) {
      has_loops |= graph_.node(NodeId(n)).kind == NodeKind::kWhile;
    }
    if (has_loops) text += fmt::format(", loops by at most {} rounds each", rounds_);
    return text;
  }

  std::string reason(const Candidate& best) const {
    std::string others;
    for (const Candidate& candidate : tried_) {
      if (&candidate == &best || (candidate.num_streams == 1 && &candidate != &tried_[0])) continue;
      others += (others.empty() ? "" : ", ") + candidate.text();
    }
    if (others.empty()) others = "nothing that would use a second stream";
    return fmt::format("assign auto: {} on {}, simulated{}; against {}", best.text(), machine_.name,
                       how_text(), others);
  }

  const Graph& graph_;
  const FluidMachine& machine_;
  const ChooseOptions& options_;
  NodeWork work_;
  std::vector<Candidate> tried_;
  uint64_t num_scenarios_ = 1;
  uint64_t rounds_ = UINT64_MAX;  // the fewest that any was cut to
};

}  // namespace

Plan choose_plan(const Graph& graph, const FluidMachine& machine, const ChooseOptions& options) {
  return Chooser(graph, machine, options).run();
}

}  // namespace eddy
