#include "runtime/api/plan_options.h"

namespace eddy {

PlanOptions plan_options(const SessionOptions& options, bool communicates) {
  PlanOptions plan;
  plan.is_auto = options.assignment == Assignment::kAuto && !communicates;
  plan.max_streams = options.max_streams;
  plan.costs_or_null = options.costs.get();
  plan.rank_by_costs = options.rank_by_costs;
  if (options.assignment == Assignment::kMatching) plan.policy = AssignPolicy::kMatching;
  if (options.assignment == Assignment::kSerial) plan.policy = AssignPolicy::kSerial;
  return plan;
}

}  // namespace eddy
