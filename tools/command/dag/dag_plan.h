// plan_dag: the whole planning of a bare graph, from its file to a proved plan.
//
// The story: build, rank, reduce, order, assign, synchronise, prove; each step is named
// and timed. to_json prints what `eddy plan --dag --json` promises; times are not in it, so the
// same file and options give the same bytes.
//
// Errors: those of build_dag; options that do not apply to the file. A plan with a failed proof is
// returned with its counter-examples, and the caller refuses it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/base/status.h"
#include "graph/proof/happens_before.h"
#include "graph/schedule/streams/stream_assignment.h"
#include "graph/schedule/streams/sync_plan.h"
#include "tools/command/dag/dag_file.h"

namespace eddy {

struct DagPlanOptions {
  AssignPolicy policy = AssignPolicy::kRank;
  uint32_t max_streams = 0;    // for each device; 0 means no cap
  bool rank_by_costs = false;  // the file must have costs
};

struct DagPlan {
  StreamAssignment streams;
  std::vector<uint32_t> issue_order;
  SyncPlan syncs;
  std::vector<uint32_t> unit_ranks;
  std::vector<double> cost_ranks;  // empty unless ranked by costs
  uint32_t reduced_edges = 0;      // |E'|
  uint32_t matching = 0;           // |M|: waits without a cap are at least |E'| - |M|
  Proof proof;

  // What a reader of the plan should know: which second pass `matching` took, and the like.
  std::vector<std::string> notices;

  struct Step {
    std::string name;
    int64_t duration_ns;
  };
  std::vector<Step> steps;
};

Result<DagPlan> plan_dag(const DagFile& file, const DagPlanOptions& options);

// One line of JSON:
//   {"streams":[...],"issue_order":[...],"records":[[event,node]...],"waits":[[node,event]...],
//    "ranks":[...],"reduced_edges":n,"matching":n,"proof":"safe","notices":[...]}
// "unsafe" lists [before, after] for pairs without order, and strings for malformed commands.
std::string to_json(const DagPlan& plan);

}  // namespace eddy
