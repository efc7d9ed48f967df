// CheckCampaigns: what one job of `eddy check` does with each seed, and what it has counted.
//
// A seed means the same graph, and meets the same contestants, in whatever job and order it comes;
// so all jobs together count the graphs, plans, comparisons and orders of one job with all seeds.
//
// Errors: of the campaigns' names when made; violations are kept, not errors. Threads: one a job.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "graph/base/status.h"
#include "tools/check/fault_point.h"
#include "tools/check/proof_campaign.h"
#include "tools/check/rank_campaign.h"
#include "tools/command/console.h"
#include "tools/command/interrupts.h"

namespace eddy {

// Defects for the campaigns to find, for tests of the messages about them.
struct CheckPlants {
  decltype(check::ProofOptions::spoil) plan = {};
  check::FaultPlants faults = {};
  decltype(check::RankCampaignOptions::plant) ranks = {};
};

struct CheckArguments {
  uint64_t seeds = 0;  // 0: as the campaign's default, or as many as fit into --minutes
  uint64_t first_seed = 0;
  std::string policy;
  bool faults = false;
  bool gradients = false;
  uint32_t min_ranks = 0;  // 0: no rank campaign
  uint32_t max_ranks = 0;
  double minutes = 0;
  uint32_t jobs = 1;
  CheckPlants plants = {};
};

struct CheckViolation {
  std::string campaign;  // "order", …
  std::string what;
  uint64_t seed = 0;
  std::string command;   // that shows it again
  size_t num_nodes = 0;  // of the shrunk graph; 0: there is none
  std::string graph;
};

class CheckCampaigns {
 public:
  static constexpr size_t kMaxViolations = 3;  // of a campaign of one job

  // Calls `is_time_up` in the middle of long work. Both outlive the campaigns.
  static Result<std::unique_ptr<CheckCampaigns>> make(const CheckArguments& arguments,
                                                      const std::function<bool()>& is_time_up);
  virtual ~CheckCampaigns() = default;

  // False: every campaign has seen enough violations.
  virtual bool meet(uint64_t seed) = 0;
  // By name of the campaign, in their order: numbers, "took_ns" among them.
  virtual Json counts() const = 0;
  virtual std::vector<CheckViolation> violations() const = 0;
};

// Adds up two documents of numbers and objects of them.
void add_counts(Json& sums, const Json& more);

// The command, once its arguments are parsed.
Outcome run_check(const CheckArguments& arguments, Console& console, Interrupts& interrupts);

}  // namespace eddy
