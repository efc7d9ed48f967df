#include "graph/strategy/search/search.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "graph/base/check.h"
#include "graph/base/random.h"
#include "graph/simulate/full_simulation.h"
#include "graph/strategy/operators/memory_meter.h"
#include "graph/strategy/operators/memory_use.h"
#include "graph/strategy/search/baselines.h"
#include "graph/strategy/tasks/build_task_graph.h"
#include "graph/strategy/tasks/strategy_simulation.h"

namespace eddy {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// Steps between two looks at the clock.
constexpr uint64_t kStepsPerLook = 16;
constexpr double kSecondsPerProgress = 0.1;

// The current strategy and what a changed one would take, in one of three ways.
class Evaluator {
 public:
  Evaluator(const OperatorGraph& graph, const Topology& topology, StepEvaluation way)
      : way_(way), simulation_(graph, topology), builder_(graph, topology) {}

  Status reset(const Strategy& strategy) {
    if (way_ != StepEvaluation::kRebuild) {
      EDDY_RETURN_IF_ERROR(simulation_.reset(strategy));
      makespan_ = simulation_.makespan();
      return Status::ok();
    }
    strategy_ = strategy;
    return rebuild();
  }

  const Strategy& strategy() const {
    return way_ == StepEvaluation::kRebuild ? strategy_ : simulation_.strategy();
  }
  double makespan() const { return makespan_; }

  // Whether the strategy with these operators under this configuration stays within the
  // threshold and `fits` is true; it is then the current one, else nothing has changed.
  // fits() is asked last, because few changes come so far.
  template <typename Fits>
  bool try_change(const std::vector<uint32_t>& ops, const OperatorConfig& config, double threshold,
                  const Fits& fits) {
    return way_ == StepEvaluation::kRebuild ? try_rebuilding(ops, config, threshold, fits)
                                            : try_delta(ops, config, threshold, fits);
  }

 private:
  Status rebuild() {
    EDDY_RETURN_IF_ERROR(builder_.build(strategy_, tasks_));
    if (!full_.run(tasks_, timeline_).is_done()) {
      return invalid_argument("the times of the operators add up to more than a number holds");
    }
    makespan_ = timeline_.makespan;
    return Status::ok();
  }

  template <typename Fits>
  bool try_rebuilding(const std::vector<uint32_t>& ops, const OperatorConfig& config,
                      double threshold, const Fits& fits) {
    std::vector<OperatorConfig> old;
    for (const uint32_t op : ops) old.push_back(std::exchange(strategy_[op], config));
    const double old_makespan = makespan_;
    if (rebuild().is_ok() && makespan_ <= threshold && fits()) return true;
    for (size_t i = 0; i < ops.size(); ++i) strategy_[ops[i]] = std::move(old[i]);
    makespan_ = old_makespan;
    return false;
  }

  template <typename Fits>
  bool try_delta(const std::vector<uint32_t>& ops, const OperatorConfig& config, double threshold,
                 const Fits& fits) {
    const double limit =
        way_ == StepEvaluation::kDeltaRejecting ? threshold : std::numeric_limits<double>::max();
    if (simulation_.change(ops, config, limit) && is_within(threshold, limit) && fits()) {
      simulation_.commit();
      makespan_ = simulation_.makespan();
      return true;
    }
    simulation_.rollback();
    return false;
  }

  // Simulates no further than to the limit.
  bool is_within(double threshold, double limit) {
    const auto end = simulation_.simulate(limit);
    return end.is_ok() && *end == SimulationEnd::kDone && simulation_.makespan() <= threshold;
  }

  const StepEvaluation way_;
  double makespan_ = 0;
  StrategySimulation simulation_;
  Strategy strategy_;  // kRebuild only, and below
  TaskGraphBuilder builder_;
  TaskGraph<double> tasks_;
  FullSimulation<double> full_;
  Timeline<double> timeline_;
};

class Search {
 public:
  Search(const OperatorGraph& graph, const Topology& topology, const SearchOptions& options)
      : graph_(graph),
        topology_(topology),
        options_(options),
        random_(options.seed),
        space_(graph, topology),
        groups_(weight_groups(graph)),
        memory_(graph, topology),
        evaluator_(graph, topology, options.evaluation) {}

  Result<SearchResult> run();

 private:
  struct Start {
    std::string name;
    Strategy strategy;
  };
  // What is left to one chain.
  struct Budget {
    uint64_t steps = 0;
    double seconds = 0;
  };

  std::vector<Start> make_starts();
  Result<std::vector<Start>> usable_starts();
  Status run_chain(const Start& start, const Budget& budget);
  bool step(SearchChain& chain, double temperature);
  std::vector<uint32_t> draw_operators();
  void say(const SearchChain& chain);

  const OperatorGraph& graph_;
  const Topology& topology_;
  const SearchOptions& options_;
  Random random_;
  ConfigSpace space_;
  std::vector<std::vector<uint32_t>> groups_;
  MemoryMeter memory_;
  Evaluator evaluator_;
  SearchResult result_;
  bool has_result_ = false;
  Clock::time_point last_progress_ = Clock::now();
};

std::vector<Search::Start> Search::make_starts() {
  std::vector<Start> starts;
  for (const auto& [name, strategy] : options_.initial) starts.push_back({name, strategy});
  if (options_.has_baselines) {
    starts.push_back({"data parallel", data_parallel_strategy(graph_, topology_)});
    starts.push_back({"expert", expert_strategy(graph_, topology_)});
  }
  for (uint32_t i = 0; i < options_.num_random; ++i) {
    starts.push_back(
        {"random " + std::to_string(i + 1), random_strategy(graph_, topology_, random_)});
  }
  return starts;
}

// One operator, or now and then all that share its weights and have its shape.
std::vector<uint32_t> Search::draw_operators() {
  const auto op = static_cast<uint32_t>(random_.below(graph_.operators.size()));
  const Operator& drawn = graph_.operators[op];
  if (random_.below(4) != 0 || drawn.weight_elements == 0) return {op};
  std::vector<uint32_t> ops = {op};
  for (const uint32_t other : groups_[drawn.weight_group]) {
    if (other != op && graph_.operators[other].shape == drawn.shape &&
        graph_.operators[other].reduction == drawn.reduction) {
      ops.push_back(other);
    }
  }
  return ops;
}

// Whether the strategy changed. The numbers drawn do not depend on how steps are evaluated.
bool Search::step(SearchChain& chain, double temperature) {
  const std::vector<uint32_t> ops = draw_operators();
  EDDY_DCHECK(evaluator_.strategy().size() == graph_.operators.size()) << "a step of no chain";
  const OperatorConfig config = space_.draw(ops[0], random_);
  const double threshold = evaluator_.makespan() - temperature * std::log(1 - random_.uniform());
  ++chain.steps;
  if (ops.size() == 1 && config == evaluator_.strategy()[ops[0]]) return false;
  const auto fits = [&] { return memory_.try_change(ops, config); };
  if (!evaluator_.try_change(ops, config, threshold, fits)) return false;
  memory_.keep();
  ++chain.accepted;
  chain.fingerprint = (chain.fingerprint ^ (chain.steps << 20 ^ ops[0])) * 0x9e3779b97f4a7c15u;
  return true;
}

void Search::say(const SearchChain& chain) {
  if (!options_.on_progress) return;
  last_progress_ = Clock::now();
  options_.on_progress({.chain = chain.name,
                        .steps = result_.steps + chain.steps,
                        .current = evaluator_.makespan(),
                        .best = std::min(chain.best, has_result_ ? result_.makespan : chain.best),
                        .initial = chain.initial});
}

Status Search::run_chain(const Start& start, const Budget& budget) {
  // The last of the usable ones is there already.
  if (evaluator_.strategy() != start.strategy) {
    EDDY_RETURN_IF_ERROR(evaluator_.reset(start.strategy));
  }
  memory_.reset(start.strategy);
  SearchChain chain;
  chain.name = start.name;
  chain.initial = chain.best = evaluator_.makespan();
  Strategy best = start.strategy;
  const double temperature = options_.temperature * chain.initial;
  const Clock::time_point begin = Clock::now();
  double seconds = 0;
  uint64_t best_step = 0;
  double best_seconds = 0;
  while (chain.steps < budget.steps && seconds < budget.seconds) {
    if (step(chain, temperature) && evaluator_.makespan() < chain.best) {
      chain.best = evaluator_.makespan();
      best = evaluator_.strategy();
      best_step = chain.steps;
      best_seconds = seconds;
    }
    if (chain.steps - best_step > budget.steps / 2) break;
    if (chain.steps % kStepsPerLook != 0) continue;
    seconds = seconds_since(begin);
    if (seconds_since(last_progress_) > kSecondsPerProgress) say(chain);
    if (options_.should_stop && options_.should_stop()) break;
    if (seconds - best_seconds > budget.seconds / 2) break;
  }
  say(chain);
  EDDY_CHECK(chain.best <= chain.initial && chain.accepted <= chain.steps)
      << chain.name << " accepted " << chain.accepted << " of " << chain.steps << " steps";
  result_.seconds += seconds_since(begin);
  result_.steps += chain.steps;
  if (!has_result_ || chain.best < result_.makespan) {
    result_.makespan = chain.best;
    result_.best = std::move(best);
    result_.found_from = chain.name;
    has_result_ = true;
  }
  result_.chains.push_back(std::move(chain));
  return Status::ok();
}

// The initial strategies that can be simulated within memory. What the others lack is kept; when
// all lack something, what the first one does is the error.
Result<std::vector<Search::Start>> Search::usable_starts() {
  std::vector<Start> usable;
  Status first;
  for (Start& start : make_starts()) {
    Status status = check_memory(graph_, topology_, start.strategy);
    if (status.is_ok()) status = evaluator_.reset(start.strategy);
    if (status.is_ok()) {
      usable.push_back(std::move(start));
      continue;
    }
    result_.left_out.push_back({start.name, status.message()});
    if (first.is_ok()) first = std::move(status.prepend_message("strategy '" + start.name + "'"));
  }
  if (!usable.empty()) return usable;
  if (first.is_ok()) return invalid_argument("there is no strategy to start the search from");
  return first.prepend_message("no initial strategy can be simulated");
}

Result<SearchResult> Search::run() {
  EDDY_ASSIGN_OR_RETURN(const std::vector<Start> starts, usable_starts());
  uint64_t steps_left = options_.max_steps;
  double seconds_left = options_.max_seconds;
  for (size_t i = 0; i < starts.size(); ++i) {
    if (options_.should_stop && options_.should_stop()) break;
    const size_t chains_left = starts.size() - i;
    const Budget budget{steps_left / chains_left, seconds_left / static_cast<double>(chains_left)};
    const uint64_t steps_before = result_.steps;
    const double seconds_before = result_.seconds;
    Status status = run_chain(starts[i], budget);
    if (!status.is_ok()) return status.prepend_message("strategy '" + starts[i].name + "'");
    EDDY_CHECK(result_.steps - steps_before <= budget.steps)
        << starts[i].name << " took " << result_.steps - steps_before << " steps";
    steps_left -= result_.steps - steps_before;
    seconds_left -= result_.seconds - seconds_before;
  }
  if (!has_result_) return cancelled("the search was stopped before it began");
  return std::move(result_);
}

}  // namespace

Result<SearchResult> search_strategy(const OperatorGraph& graph, const Topology& topology,
                                     const SearchOptions& options) {
  return Search(graph, topology, options).run();
}

}  // namespace eddy
