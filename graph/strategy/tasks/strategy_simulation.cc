#include "graph/strategy/tasks/strategy_simulation.h"

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
  timeline_.commit(blocks_);
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
  return take_snapshot(blocks_, timeline_, has_labels_);
}

}  // namespace eddy
