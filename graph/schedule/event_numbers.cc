#include "graph/schedule/event_numbers.h"

#include <algorithm>
#include <vector>

#include "graph/base/check.h"

namespace eddy {
namespace {

class EventNumbers {
 public:
  EventNumbers(const Graph& graph, Schedule& plan) : graph_(graph), plan_(plan) {}

  // Returns where those of the region and all in it end.
  uint32_t number(RegionId id, uint32_t first) {
    RegionSchedule& region = plan_.regions[id.index()];
    EDDY_CHECK(region.num_streams > 0) << "region " << id.index() << " has no stream";
    region.first_event = first;
    uint32_t end = first + region.num_machine_events();
    for (const Program::Step& step : region.steps) {
      if (step.op != Program::Op::kLaunch) continue;
      const std::vector<RegionId>& inner = graph_.node(NodeId(step.operand)).regions;
      const bool is_apart = !inner.empty() && plan_.regions[inner.back().index()].is_pipelined;
      uint32_t latest = end;
      for (const RegionId each : inner)
        latest = std::max(latest, number(each, is_apart ? latest : end));
      end = latest;
    }
    return end;
  }

 private:
  const Graph& graph_;
  Schedule& plan_;
};

}  // namespace

void number_events(const Graph& graph, Schedule& plan) {
  EDDY_CHECK(plan.regions.size() == graph.num_regions()) << "the plan of another graph";
  plan.num_events = EventNumbers(graph, plan).number(Graph::kRoot, 0);
}

}  // namespace eddy
