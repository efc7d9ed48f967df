// The definition of a timeline, as slow and plain as it reads: Algorithm 1 over ids, finding the
// next task of the queue by looking at every task.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "graph/simulate/time_value.h"

namespace eddy {

template <TimeValue Time>
struct ReferenceTask {
  Time exe_time = 0;
  uint32_t device = 0;
  std::set<uint32_t> deps;
};

template <TimeValue Time>
using ReferenceGraph = std::map<uint32_t, ReferenceTask<Time>>;  // by id, which is also the rank

template <TimeValue Time>
struct ReferenceTimeline {
  struct Times {
    Time ready = 0;
    Time start = 0;
    Time end = 0;
  };
  std::map<uint32_t, Times> tasks;
  Time makespan = 0;
};

// Nothing where tasks wait in a circle.
template <TimeValue Time>
std::optional<ReferenceTimeline<Time>> simulate_reference(const ReferenceGraph<Time>& graph) {
  ReferenceTimeline<Time> timeline;
  std::map<uint32_t, Time> device_end;
  while (timeline.tasks.size() < graph.size()) {
    std::optional<std::pair<Time, uint32_t>> first;
    for (const auto& [id, task] : graph) {
      if (timeline.tasks.contains(id)) continue;
      Time ready = 0;
      bool is_ready = true;
      for (const uint32_t dep : task.deps) {
        const auto done = timeline.tasks.find(dep);
        if (done == timeline.tasks.end()) {
          is_ready = false;
          break;
        }
        ready = std::max(ready, done->second.end);
      }
      if (is_ready && (!first || std::pair(ready, id) < *first)) first = {ready, id};
    }
    if (!first) return std::nullopt;
    const auto [ready, id] = *first;
    const ReferenceTask<Time>& task = graph.at(id);
    const Time start = std::max(ready, device_end[task.device]);
    timeline.tasks[id] = {ready, start, start + task.exe_time};
    device_end[task.device] = start + task.exe_time;
    timeline.makespan = std::max(timeline.makespan, start + task.exe_time);
  }
  return timeline;
}

}  // namespace eddy
