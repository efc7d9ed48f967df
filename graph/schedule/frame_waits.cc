#include "graph/schedule/frame_waits.h"

namespace eddy {

FrameWaits frame_waits(const RegionPlan& plan) {
  using Kind = PlanCommand::Kind;
  std::vector<const PlanCommand*> first(plan.num_streams), last(plan.num_streams);
  for (const PlanCommand& command : plan.commands) {
    if (first[command.stream] == nullptr) first[command.stream] = &command;
    last[command.stream] = &command;
  }
  FrameWaits waits;
  for (uint32_t s = 1; s < plan.num_streams; ++s) {
    if (first[s] == nullptr) continue;
    if (first[s]->kind == Kind::kLaunch) waits.entry.push_back({s, first[s]->node});
    if (last[s]->kind == Kind::kLaunch && !plan.open) waits.exit.push_back({s, last[s]->node});
  }
  return waits;
}

}  // namespace eddy
