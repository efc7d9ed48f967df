#include "graph/schedule/node_order.h"

#include <algorithm>

namespace eddy {

NodeOrder::NodeOrder(const Graph& graph, const Schedule& plan) : places_(graph.num_nodes()) {
  for (const RegionSchedule& region : plan.regions) add(region);
}

void NodeOrder::add(const RegionSchedule& plan) {
  const uint32_t width = plan.num_streams;
  const uint64_t size = uint64_t{width} * (plan.steps.size() + 1);
  const bool has_clocks = width > 1 && clocks_.size() + size <= kMaxClockEntries;
  std::vector<uint32_t> length(width, 0);
  std::vector<uint32_t> now(has_clocks ? uint64_t{width} * width : 0, 0);  // by stream
  std::vector<uint32_t> events(has_clocks ? uint64_t{width} * plan.num_events : 0, 0);
  uint32_t issued = 0;
  for (const Program::Step& step : plan.steps) {
    uint32_t* const clock = has_clocks ? now.data() + uint64_t{width} * step.stream : nullptr;
    uint32_t* const event =
        has_clocks && is_sync(step.op) ? events.data() + uint64_t{width} * step.operand : nullptr;
    switch (step.op) {
      case Program::Op::kLaunch: {
        Place& place = places_[step.operand];
        place = {step.stream, length[step.stream]++, issued++, kNoClock};
        if (!has_clocks) break;
        place.clock = clocks_.size();
        clocks_.insert(clocks_.end(), clock, clock + width);
        clock[step.stream] = place.position + 1;
        break;
      }
      case Program::Op::kRecord:
        if (has_clocks) std::copy(clock, clock + width, event);
        break;
      default:
        for (uint32_t s = 0; has_clocks && s < width; ++s) clock[s] = std::max(clock[s], event[s]);
        break;
    }
  }
}

}  // namespace eddy
