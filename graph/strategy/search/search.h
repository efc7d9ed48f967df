// search_strategy: looks for a faster strategy by Markov chain Monte Carlo (FlexFlow, section 6).
//
// From each initial strategy (data parallel, expert, random ones) a chain takes steps: a random
// operator gets a random configuration (ConfigSpace), the new strategy is simulated, and it is
// accepted with probability min(1, exp((old - new) / temperature)): shorter always, longer now and
// then. Where operators share weights, every fourth step gives all operators of one group the
// same configuration, since one of them alone gains little. A chain ends at its share of the
// budget, or when half of it has passed without a better strategy. The best strategy of all chains
// is kept.
//
// The acceptance threshold is drawn before the simulation, so that a simulation may stop as soon
// as a lower bound of its makespan is above: the same steps are accepted either way, and
// SearchOptions::evaluation says which way is taken (the slower ones are for comparison).
//
// Strategies that hold more than a device's memory are never accepted. An initial strategy that
// does, or that cannot be simulated (a tile without a time, parts without a link between them), is
// left out, and the result says why; at least one must do.
//
// Errors: where no initial strategy will do, why the first one does not; kCancelled when
// should_stop says so before the first chain begins (later, the best so far is returned). A step
// that cannot be simulated (no route) is not accepted. Determinism: with a budget in steps, the
// same seed gives the same result. Threads: one. Cost: one step costs what it changes
// (strategy_simulation.h).
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <string>
#include <vector>

#include "graph/base/status.h"
#include "graph/strategy/operators/operator_graph.h"
#include "graph/strategy/operators/topology.h"

namespace eddy {

enum class StepEvaluation {
  kDeltaRejecting,  // by delta, stopping at the threshold
  kDelta,           // by delta, to the end
  kRebuild,         // a new task graph and a full simulation for each step
};

struct SearchProgress {
  std::string chain;   // "data parallel"
  uint64_t steps = 0;  // of all chains
  double current = 0;
  double best = 0;
  double initial = 0;
};

struct SearchOptions {
  uint64_t seed = 1;
  // The budget of all chains together; whichever ends first.
  uint64_t max_steps = std::numeric_limits<uint64_t>::max();
  double max_seconds = std::numeric_limits<double>::infinity();
  double temperature = 0.003;  // as a share of the chain's initial makespan
  uint32_t num_random = 1;     // random initial strategies
  StepEvaluation evaluation = StepEvaluation::kDeltaRejecting;
  // Further initial strategies with their names: the file's own, say.
  std::vector<std::pair<std::string, Strategy>> initial = {};
  bool has_baselines = true;  // data parallel and expert are initial strategies
  // Called from time to time; may be empty.
  std::function<void(const SearchProgress&)> on_progress = {};
  std::function<bool()> should_stop = {};
};

struct SearchChain {
  std::string name;
  double initial = 0;
  double best = 0;
  uint64_t steps = 0;
  uint64_t accepted = 0;
  uint64_t fingerprint = 0;  // of the sequence of accepted steps
};

// An initial strategy that no chain could start from.
struct LeftOut {
  std::string name;
  std::string reason;
};

struct SearchResult {
  Strategy best;
  double makespan = 0;
  std::string found_from;  // the chain
  std::vector<SearchChain> chains;
  std::vector<LeftOut> left_out;
  uint64_t steps = 0;
  double seconds = 0;  // spent in steps
};

Result<SearchResult> search_strategy(const OperatorGraph& graph, const Topology& topology,
                                     const SearchOptions& options);

}  // namespace eddy
