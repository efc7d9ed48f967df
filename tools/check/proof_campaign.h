// The proof campaign: plans of random graphs are proved, and each of their records and waits is
// taken away in turn, which the proof must notice: a planner that orders too little is found out,
// and so is a checker that lets it pass.
//
// Streams by rank and by matching, in turn. Waits are the fewest there can be, so none may go; a
// single deletion that still proves safe is a violation, as is a plan that does not prove.
//
// Threads: one. Cost: a proof for each command taken away.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "tools/check/generator.h"
#include "tools/check/subject.h"

namespace eddy::check {

struct ProofOptions {
  uint64_t first_seed = 0;
  uint64_t num_seeds = 1000;
  GenerateOptions generate = {};
  size_t max_violations = 3;
  std::function<bool()> is_time_up = {};  // asked before each graph; may be empty
};

struct ProofViolation {
  uint64_t seed = 0;
  std::string what;
};

struct ProofReport {
  uint64_t num_plans = 0;
  uint64_t num_deletions = 0;  // each flagged, unless there is a violation
  std::vector<ProofViolation> violations;
};

// One graph after another, for whoever tries each in several campaigns; run_proofs is all of them
// in a row.
class ProofCampaign {
 public:
  explicit ProofCampaign(size_t max_violations) : max_violations_(max_violations) {}

  // False: enough violations; further graphs are not tried.
  bool meet(Subject& subject);
  const ProofReport& report() const { return report_; }

 private:
  const size_t max_violations_;
  ProofReport report_;
};

ProofReport run_proofs(const Library& library, const ProofOptions& options);

}  // namespace eddy::check
