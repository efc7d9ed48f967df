// The rank campaign: random programs of several ranks (rank_program.h) in sessions of a virtual
// world (rank_runner.h), against what they mean with all ranks in step.
//
// Each program runs a few times with inputs of its own, on workers or driven by the host, in orders
// of completion drawn from the seed: each rank's outputs must have the oracle's bits. Then runs are
// cancelled on a rank at one of its moments, or on two ranks at one each: behind the start of a
// transfer, or between a completion and what it lets go on. All ranks must end with one status, or
// all with right outputs; the next run must be right. The virtual world must have seen no transfers
// that do not match, no buffer touched too early, nothing left under way.
//
// Errors: what differs is a mismatch. Threads: one; the sessions' own besides. Cost: some 20 ms a
// program, and 2 ms a stop.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "runtime/net/transport.h"

namespace eddy::check {

struct RankCampaignOptions {
  uint32_t min_ranks = 2;  // drawn by the seed
  uint32_t max_ranks = 6;
  size_t max_mismatches = 3;  // further seeds are not tried
  uint32_t runs = 3;          // of each program, before the stops
  uint32_t stops = 8;         // of each program at most, spread over all of its moments
  uint32_t pairs = 3;         // likewise, on two ranks
  std::function<bool()> is_time_up = [] { return false; };
  // Stands between a rank and the virtual world, for planting defects; empty: nothing does.
  std::function<std::unique_ptr<Transport>(std::unique_ptr<Transport>, uint32_t rank)> plant = {};
};

struct RankMismatch {
  uint64_t seed = 0;
  std::string what;
};

struct RankCampaignReport {
  uint64_t num_programs = 0;
  uint64_t num_runs = 0;  // compared
  uint64_t num_collectives = 0;
  uint64_t num_moments = 0;  // of the last of these runs: starts and completions
  uint64_t num_stops = 0;
  uint64_t num_pairs = 0;
  uint64_t num_stopped = 0;  // runs that did not end well by then
  std::vector<RankMismatch> mismatches;
};

class RankCampaign {
 public:
  explicit RankCampaign(RankCampaignOptions options) : options_(std::move(options)) {}

  // False: enough mismatches; further programs are not tried.
  bool meet(uint64_t seed);
  const RankCampaignReport& report() const { return report_; }

 private:
  const RankCampaignOptions options_;
  RankCampaignReport report_;
};

}  // namespace eddy::check
