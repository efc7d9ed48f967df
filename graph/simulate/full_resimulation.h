// FullResimulation<Time>: the edits of a DeltaSimulation, simulated in full each time.
//
// The same calls mean the same, except that there is neither rollback nor threshold: what delta
// simulation is compared with. Cost: simulate() O((tasks + edges) log ready).
#pragma once

#include <utility>
#include <vector>

#include "graph/simulate/full_simulation.h"

namespace eddy {

template <TimeValue Time>
class FullResimulation {
 public:
  SimulationResult reset(TaskGraph<Time> graph) {
    graph_ = std::move(graph);
    graph_.make_predecessors();
    return simulate();
  }

  const TaskGraph<Time>& graph() const { return graph_; }
  const Timeline<Time>& timeline() const { return timeline_; }
  const TaskTimes<Time>& times(uint32_t slot) const { return timeline_.tasks[slot]; }
  Time makespan() const { return timeline_.makespan; }

  void set_exe_time(uint32_t slot, Time time) { graph_.set_exe_time(slot, time); }
  void set_device(uint32_t slot, uint32_t device) { graph_.set_device(slot, device); }
  void set_rank(uint32_t slot, uint32_t rank) { graph_.set_rank(slot, rank); }
  void add_dep(uint32_t from, uint32_t to) { graph_.add_dep(from, to); }
  bool remove_dep(uint32_t from, uint32_t to) { return graph_.remove_dep(from, to); }
  uint32_t add_task(const TaskSpec<Time>& spec) { return graph_.add_task(spec); }
  void remove_task(uint32_t slot) {
    while (!graph_.successors(slot).empty()) {
      graph_.remove_dep(slot, graph_.successors(slot).back());
    }
    while (!graph_.predecessors(slot).empty()) {
      graph_.remove_dep(graph_.predecessors(slot).back(), slot);
    }
    graph_.remove_task(slot);
    removed_.push_back(slot);
  }

  SimulationResult simulate() { return simulation_.run(graph_, timeline_); }
  void commit() {
    for (const uint32_t slot : removed_) graph_.recycle(slot);
    removed_.clear();
  }

 private:
  TaskGraph<Time> graph_;
  Timeline<Time> timeline_;
  FullSimulation<Time> simulation_;
  std::vector<uint32_t> removed_;
};

}  // namespace eddy
