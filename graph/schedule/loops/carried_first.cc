#include "graph/schedule/loops/carried_first.h"

#include <algorithm>
#include <vector>

#include "graph/base/check.h"
#include "graph/ir/control_view.h"

namespace eddy {
namespace {

class CarriedFirst {
 public:
  CarriedFirst(const Graph& graph, RegionId id, RegionSchedule& plan)
      : graph_(graph), id_(id), plan_(plan), is_needed_(graph.num_values(), false) {}

  // True when another stream ends with what the next iteration does not need.
  bool run() {
    EDDY_DCHECK(plan_.devices.empty() || plan_.devices.size() == plan_.num_streams)
        << plan_.devices.size() << " devices of " << plan_.num_streams << " streams";
    const LoopView loop(graph_, graph_.region(id_).owner);
    for (const ValueId next : loop.next()) is_needed_[next.index()] = true;
    std::vector<uint32_t> num_needed(plan_.num_streams, 0);
    std::vector<bool> has_last(plan_.num_streams, false), ends_needed(plan_.num_streams, false);
    for (auto step = plan_.steps.rbegin(); step != plan_.steps.rend(); ++step) {
      if (step->op != Program::Op::kLaunch) continue;
      const bool is_needed = mark(NodeId(step->operand));
      num_needed[step->stream] += is_needed ? 1 : 0;
      if (!has_last[step->stream]) ends_needed[step->stream] = is_needed;
      has_last[step->stream] = true;
    }
    uint32_t first = 0;
    for (uint32_t s = 1; s < plan_.num_streams && !ends_needed[0]; ++s) {
      const bool is_near = plan_.devices.empty() || plan_.devices[s] == plan_.devices[0];
      const bool is_better = first == 0 || num_needed[s] > num_needed[first];
      if (ends_needed[s] && is_near && is_better) first = s;
    }
    for (Program::Step& step : plan_.steps) {
      if (step.stream == 0 || step.stream == first) {
        step.stream = step.stream == 0 ? first : 0;
      }
    }
    if (first > 0) ends_needed[first] = false;  // that was stream 0's
    return std::find(ends_needed.begin() + 1, ends_needed.end(), false) != ends_needed.end();
  }

 private:
  // True when a value that is needed is made by it; then what it reads is needed, too.
  bool mark(NodeId id) {
    const std::vector<ValueId>& outputs = graph_.node(id).outputs;
    const auto is_needed = [&](ValueId value) { return is_needed_[value.index()]; };
    if (std::none_of(outputs.begin(), outputs.end(), is_needed)) return false;
    need_inputs(id);
    return true;
  }
  void need_inputs(NodeId id) {
    const Node& node = graph_.node(id);
    for (const ValueId value : node.inputs) {
      if (!value.is_none()) is_needed_[value.index()] = true;
    }
    for (const RegionId region : node.regions) {
      for (const NodeId inner : graph_.region(region).nodes) need_inputs(inner);
      for (const ValueId value : graph_.region(region).results) is_needed_[value.index()] = true;
    }
  }

  const Graph& graph_;
  const RegionId id_;
  RegionSchedule& plan_;
  std::vector<bool> is_needed_;  // by ValueId
};

}  // namespace

bool put_carried_first(const Graph& graph, RegionId region, RegionSchedule& plan) {
  EDDY_CHECK(plan.num_streams > 1 && role(graph, region) == RegionRole::kAfter)
      << "region " << region.index() << " is no loop's `after` on several streams";
  return CarriedFirst(graph, region, plan).run();
}

}  // namespace eddy
