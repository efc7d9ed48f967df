#include "graph/schedule/memory/node_order.h"

#include <algorithm>

#include "graph/base/check.h"
#include "graph/schedule/plan/plan.h"

namespace eddy {

NodeOrder::NodeOrder(const Graph& graph, const Schedule& plan) : places_(graph.num_nodes()) {
  for (const RegionSchedule& region : plan.regions) add(region);
}

void NodeOrder::add(const RegionSchedule& region) {
  add(
      region.steps, region.num_streams, region.num_events,
      [](const Program::Step& step) { return step.stream; },
      [](const Program::Step& step) { return NodeId(step.operand); });
}

void NodeOrder::add(const Program& program, const Program::Block& block) {
  add(
      block.steps, static_cast<uint32_t>(block.streams.size()), block.num_events,
      [&](const Program::Step& step) { return local_stream(block, step.stream); },
      [&](const Program::Step& step) { return node_of(program, step); });
}

template <typename StreamOf, typename NodeOf>
void NodeOrder::add(const std::vector<Program::Step>& steps, uint32_t width, uint32_t num_events,
                    StreamOf stream_of, NodeOf node_of) {
  const uint64_t size = uint64_t{width} * (steps.size() + 1);
  const bool has_clocks = width > 1 && clocks_.size() + size <= kMaxClockEntries;
  std::vector<uint32_t> length(width, 0);
  std::vector<uint32_t> now(has_clocks ? uint64_t{width} * width : 0, 0);  // by stream
  std::vector<uint32_t> events(has_clocks ? uint64_t{width} * num_events : 0, 0);
  uint32_t issued = 0;
  for (const Program::Step& step : steps) {
    const uint32_t stream = stream_of(step);
    EDDY_DCHECK(stream < width) << "a step stands on no stream of its block";
    uint32_t* const clock = has_clocks ? now.data() + uint64_t{width} * stream : nullptr;
    if (is_node(step.op)) {
      Place& place = places_[node_of(step).index()];
      place = {stream, length[stream]++, issued++, kNoClock};
      if (!has_clocks) continue;
      place.clock = clocks_.size();
      clocks_.insert(clocks_.end(), clock, clock + width);
      clock[stream] = place.position + 1;
    } else if (has_clocks && is_sync(step.op)) {
      uint32_t* const event = events.data() + uint64_t{width} * step.operand;
      EDDY_DCHECK(step.operand < num_events) << "event " << step.operand << " of " << num_events;
      if (step.op == Program::Op::kRecord) std::copy(clock, clock + width, event);
      for (uint32_t s = 0; step.op == Program::Op::kWait && s < width; ++s) {
        clock[s] = std::max(clock[s], event[s]);
      }
    }
  }
}

}  // namespace eddy
