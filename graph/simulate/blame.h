// Names the tasks of a failed simulation: the culprits of a SimulationResult.
#pragma once

#include <algorithm>
#include <vector>

#include "graph/base/check.h"
#include "graph/simulate/task_graph.h"
#include "graph/simulate/timeline.h"

namespace eddy {

// A cycle among things of which each waits for another: `waits_for(x)` is one that x waits for.
// Each is followed by one that waits for it, the last by the first.
template <typename WaitsFor>
std::vector<uint32_t> find_waiting_cycle(uint32_t start, uint32_t num_slots, WaitsFor waits_for) {
  EDDY_CHECK(start < num_slots) << "nobody waits";
  std::vector<uint32_t> path;
  std::vector<uint32_t> place(num_slots, kNoSlot);
  for (uint32_t slot = start; place[slot] == kNoSlot; slot = waits_for(slot)) {
    place[slot] = static_cast<uint32_t>(path.size());
    path.push_back(slot);
  }
  path.erase(path.begin(), path.begin() + place[waits_for(path.back())]);
  std::reverse(path.begin(), path.end());
  return path;
}

// Some tasks are not among order[0 .. num_done): they wait in a circle, or for one.
template <TimeValue Time>
SimulationResult blame_cycle(const TaskGraph<Time>& graph, const Timeline<Time>& timeline,
                             uint32_t num_done) {
  std::vector<bool> is_done(graph.num_slots());
  for (uint32_t i = 0; i < num_done; ++i) is_done[timeline.order[i]] = true;
  std::vector<uint32_t> waits_for(graph.num_slots(), kNoSlot);
  uint32_t start = kNoSlot;
  for (uint32_t slot = 0; slot < graph.num_slots(); ++slot) {
    if (!graph.is_live(slot) || is_done[slot]) continue;
    start = slot;
    for (const uint32_t next : graph.successors(slot)) waits_for[next] = slot;
  }
  return {SimulationEnd::kCycle,
          find_waiting_cycle(start, graph.num_slots(), [&](uint32_t s) { return waits_for[s]; })};
}

// The makespan may not fit: blames the first task in order whose end does not; without one all is
// well.
template <TimeValue Time>
SimulationResult blame_overflow(const TaskGraph<Time>& graph, const Timeline<Time>& timeline) {
  for (const uint32_t slot : timeline.order) {
    if (sum_overflows(timeline.tasks[slot].start, graph.task(slot).exe_time)) {
      return {SimulationEnd::kOverflow, {slot}};
    }
  }
  return {};
}

}  // namespace eddy
