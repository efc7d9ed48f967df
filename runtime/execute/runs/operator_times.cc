#include "runtime/execute/runs/operator_times.h"

#include <cmath>
#include <map>

#include "graph/schedule/costs/cost_table.h"

namespace eddy {

OperatorTimes::OperatorTimes(const Graph& graph) : cells_of_nodes_(graph.num_nodes(), nullptr) {
  std::map<std::string, std::vector<uint32_t>> nodes;
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    const Node& node = graph.node(NodeId(n));
    if (node.kind == NodeKind::kExec) nodes[cost_op_name(*node.op)].push_back(n);
  }
  for (const auto& [name, of] : nodes) {
    Cell& cell = cells_.emplace_back(name);
    for (const uint32_t n : of) cells_of_nodes_[n] = &cell;
  }
}

// One that changed would make times fall that must only grow.
double OperatorTimes::tick_ns() const {
  double known = tick_ns_.load(std::memory_order_relaxed);
  if (known > 0) return known;
  const uint64_t ticks = processor_ticks() - start_ticks_;
  const std::chrono::duration<double, std::nano> time = std::chrono::steady_clock::now() - start_;
  const double found = ticks == 0 ? 1 : time.count() / static_cast<double>(ticks);
  return tick_ns_.compare_exchange_strong(known, found, std::memory_order_relaxed) ? found : known;
}

uint64_t OperatorTimes::time_ns(const Cell& cell) const {
  const auto ticks = static_cast<double>(cell.ticks.load(std::memory_order_relaxed));
  return static_cast<uint64_t>(std::llround(ticks * tick_ns()));
}

bool TimedCall::run(void* timed_call) {
  const TimedCall& self = *static_cast<const TimedCall*>(timed_call);
  const uint64_t began = processor_ticks();
  const bool is_ok = self.call.run(self.call.context);
  self.cell->add(began);
  return is_ok;
}

// Where it answers later, the answer may have come, and the node may have been called again, before
// this returns.
CallOutcome TimedStart::start(void* timed_start, const Resume& resume) {
  TimedStart& self = *static_cast<TimedStart*>(timed_start);
  self.outer = resume;
  const uint64_t began = processor_ticks();
  self.began = began;
  const CallOutcome outcome = self.call.start(self.call.context, {&self, resume.strand});
  if (outcome != CallOutcome::kLater) self.cell.add(began);
  return outcome;
}

void TimedStart::resume(uint32_t, bool is_ok) {
  const Resume next = outer;
  cell.add(began);
  next(is_ok);
}

}  // namespace eddy
