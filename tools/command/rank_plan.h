// eddy plan --ranks: the plan of each rank, the communication that it will issue, and whether all
// ranks together can neither mix up operations nor deadlock. No MPI is needed.
//
// A refusal names the loop or branch that ranks may decide differently, the value that may differ,
// its way to the decision, and the communication; or the operation of each rank that waits for the
// next. Ranks with equal plans are shown once.
#pragma once

#include <string>

#include "graph/ir/graph.h"
#include "graph/proof/rank_skeleton.h"
#include "graph/schedule/plan/plan.h"
#include "ops/schema/eddy/rank_rules.h"
#include "runtime/api/library.h"
#include "runtime/api/session_options.h"
#include "tools/command/console.h"
#include "tools/command/rank_options.h"

namespace eddy {

struct RankPlanRequest {
  std::string model;  // {rank} is each one's number
  RankArguments ranks;
  std::string svg;  // a picture of all ranks' lanes; empty: none
};

// One rank's part of it.
struct PlannedRank {
  Graph graph;
  Plan plan;  // proved
  RankWorld world;
  RankSkeleton skeleton;
};
// `options.ranks` are those of the request. What is wrong with the file is said as a remark.
Result<PlannedRank> plan_rank(const Library& library, const RankPlanRequest& request,
                              const SessionOptions& options, uint32_t rank, Console& console);

Outcome plan_over_ranks(const RankPlanRequest& request, SessionOptions options, Console& console);

}  // namespace eddy
