// The proof campaign: plans of random graphs are proved, and each of their records and waits is
// taken away in turn, which the proof must notice: a planner that orders too little is found out,
// and so is a checker that lets it pass.
//
// Streams by rank and by matching, in turn. Waits are the fewest there can be, so none may go; a
// single deletion that still proves safe is a violation, as is a plan that does not prove.
//
// The graph of a violation is shrunk while it stays one.
//
// Threads: one. Cost: a proof for each command taken away.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "graph/schedule/plan/plan.h"
#include "tools/check/generator.h"
#include "tools/check/shrink.h"
#include "tools/check/subject.h"

namespace eddy::check {

struct ProofOptions {
  uint64_t first_seed = 0;
  uint64_t num_seeds = 1000;
  GenerateOptions generate = {};
  size_t max_violations = 3;
  std::function<bool()> is_time_up = {};  // asked before each graph and attempt; may be empty
  // A defect planted into each plan, for tests of the campaign; may be empty.
  std::function<void(const Graph& graph, Plan& plan)> spoil = {};
};

struct ProofViolation {
  uint64_t seed = 0;
  std::string what;
  FailingGraph smallest;
};

struct ProofReport {
  uint64_t num_plans = 0;
  uint64_t num_deletions = 0;  // each flagged, unless there is a violation
  std::vector<ProofViolation> violations;
};

// One graph after another, for callers that try each graph in several campaigns; run_proofs is all
// of them in a row. Seeds are those of the recipes; options' first_seed, num_seeds and generate are
// the caller's business.
class ProofCampaign {
 public:
  explicit ProofCampaign(ProofOptions options) : options_(std::move(options)) {}

  // False: enough violations; further graphs are not tried.
  bool meet(Subject& subject);
  const ProofReport& report() const { return report_; }

 private:
  const ProofOptions options_;
  ProofReport report_;
};

ProofReport run_proofs(const Library& library, const ProofOptions& options);

}  // namespace eddy::check
