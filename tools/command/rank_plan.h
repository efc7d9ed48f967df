// eddy plan --ranks: the plan of each rank, the communication that it will issue, and whether all
// ranks together can neither mix up operations nor deadlock. No MPI is needed.
//
// A refusal names the loop or branch that ranks may decide differently, the value that may differ,
// its way to the decision, and the communication; or the operation of each rank that waits for the
// next. Ranks with equal plans are shown once.
#pragma once

#include <string>

#include "runtime/api/session_options.h"
#include "tools/command/console.h"
#include "tools/command/rank_options.h"

namespace eddy {

struct RankPlanRequest {
  std::string model;  // {rank} is each one's number
  RankArguments ranks;
  std::string svg;  // a picture of all ranks' lanes; empty: none
};

Outcome plan_over_ranks(const RankPlanRequest& request, SessionOptions options, Console& console);

}  // namespace eddy
