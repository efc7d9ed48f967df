// The order campaign: random graphs on the virtual device, under every scheduling policy, with
// every watcher looking.
//
// Contestants for run_differential, which compares them with the oracle, counts and shrinks. Each
// runs its graph three times on one session (inputs 0, 1, 0), every time in another order; the
// orders follow from the recipe's seed. The exhaustive one takes every order of the first inputs,
// up to a limit; give it small graphs (exhaustive_graphs).
//
// A seed takes the same steps each time, also where a scheduler's thread drives loops beside the
// caller's: nothing moves there before all runs of a round have been submitted.
//
// Threads: one, and the scheduler's for loops that the host drives.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "runtime/virtual/chooser.h"
#include "tools/check/differential_campaign.h"

namespace eddy::check {

struct OrderCounts {
  uint64_t num_orders = 0;    // runs
  uint64_t num_steps = 0;     // choices' worth: commands of strands and streams
  uint64_t num_accesses = 0;  // of values and memory, each checked for races
  uint64_t num_explored = 0;  // graphs all of whose orders were taken
  uint64_t digest = 0;        // of every step's lane, in order: equal when all went alike
};

// For policy "uniform", "pct", "starve", "late", "early", "exhaustive"; empty: all but the last.
// kInvalidArgument names the policies there are. `counts` outlives the contestants.
Result<std::vector<Contestant>> order_contestants(const std::string& policy_or_empty,
                                                  OrderCounts& counts);

// Small enough for the exhaustive contestant to take all orders of most.
GenerateOptions exhaustive_graphs();

}  // namespace eddy::check
