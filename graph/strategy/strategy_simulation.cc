#include "graph/strategy/strategy_simulation.h"

#include <algorithm>
#include <utility>

namespace eddy {
namespace {

Status times_too_large() {
  return invalid_argument("the times of the operators add up to more than a number holds");
}

}  // namespace

Status StrategySimulation::reset(Strategy strategy) {
  EDDY_RETURN_IF_ERROR(blocks_.reset(std::move(strategy)));
  return timeline_.reset(blocks_) ? Status::ok() : times_too_large();
}

Result<SimulationEnd> StrategySimulation::simulate(double threshold) {
  EDDY_RETURN_IF_ERROR(blocks_.status());
  const SimulationEnd end = timeline_.simulate(blocks_, threshold);
  if (end == SimulationEnd::kOverflow) return times_too_large();
  return end;
}

void StrategySimulation::commit() {
  timeline_.commit();
  blocks_.commit();
  if (!blocks_.wants_rebuild()) return;
  const Status status = reset(Strategy(strategy()));
  EDDY_CHECK(status.is_ok()) << "what was simulated once can be again: " << status.message();
}

void StrategySimulation::rollback() {
  timeline_.rollback();
  blocks_.rollback();
}

StrategySnapshot StrategySimulation::snapshot() const {
  std::vector<uint32_t> slots = timeline_.order();
  std::ranges::sort(slots, {}, [this](uint32_t slot) { return blocks_.tasks()[slot].rank; });
  std::vector<uint32_t> place(blocks_.num_slots());
  for (uint32_t i = 0; i < slots.size(); ++i) place[slots[i]] = i;
  StrategySnapshot snapshot;
  std::vector<TaskSpec<double>> specs;
  std::vector<Edge> edges;
  for (uint32_t i = 0; i < slots.size(); ++i) {
    const BlockTask& task = blocks_.tasks()[slots[i]];
    specs.push_back({task.exe_time, task.device, task.rank});
    for (uint32_t k = 0; k < task.num_successors; ++k) {
      edges.push_back({i, place[blocks_.successors()[task.first_successor + k]]});
    }
    const double start = timeline_.start(slots[i]);
    snapshot.timeline.tasks.push_back(
        {timeline_.ready(slots[i]), start, start + task.exe_time, kNoSlot});
    if (has_labels_) snapshot.labels.push_back(blocks_.label(slots[i]));
  }
  for (uint32_t i = 0; i < slots.size(); ++i) {
    const uint32_t at = place[timeline_.order()[i]];
    snapshot.timeline.order.push_back(at);
    snapshot.timeline.tasks[at].position = i;
  }
  snapshot.timeline.makespan = makespan();
  snapshot.graph.assign(specs, edges);
  snapshot.graph.make_predecessors();
  return snapshot;
}

}  // namespace eddy
