#include "tools/command/step_profile.h"

#include <algorithm>

#include "graph/base/check.h"
#include "graph/base/processor.h"
#include "tools/command/model.h"

namespace eddy {
namespace {

// Trips are kept one by one up to here; what follows repeats them from the start.
constexpr size_t kMaxDecisions = 1 << 20;

}  // namespace

double tick_ns() {
  static const double ns = [] {
    const int64_t start_ns = now_ns();
    const uint64_t start = processor_ticks();
    while (now_ns() - start_ns < 10'000'000) {
    }
    return static_cast<double>(now_ns() - start_ns) /
           static_cast<double>(processor_ticks() - start);
  }();
  return ns;
}

void StepProfile::begin(size_t num_nodes) {
  cells_.assign(num_nodes, {});
  decisions_.assign(num_nodes, {});
  trips_.assign(num_nodes, 0);
  started_.assign(num_nodes, 0);
}

uint64_t StepProfile::total_ticks() const {
  uint64_t ticks = 0;
  for (const auto& kinds : cells_) {
    for (const Cell& cell : kinds) ticks += cell.ticks;
  }
  return ticks;
}

uint64_t StepProfile::num_steps(bool is_exec) const {
  uint64_t count = 0;
  for (const auto& kinds : cells_) {
    for (size_t kind = 0; kind < kNumKinds; ++kind) {
      if ((kind == static_cast<size_t>(StepKind::kExec)) == is_exec) count += kinds[kind].count;
    }
  }
  return count;
}

Status StepProfile::before(RunState&, const Step& step) {
  EDDY_DCHECK(step.node.index() < started_.size()) << "begin() was of another graph";
  started_[step.node.index()] = processor_ticks();
  return Status::ok();
}

void StepProfile::after(RunState&, const Step& step, int32_t decision) {
  const size_t node = step.node.index();
  const uint64_t ticks = processor_ticks() - started_[node];
  EDDY_DCHECK(static_cast<size_t>(step.kind) < kNumKinds) << "a step of no kind";
  Cell& cell = cells_[node][static_cast<size_t>(step.kind)];
  cell.ticks += ticks;
  ++cell.count;
  if (step.kind == StepKind::kSelect && decisions_[node].size() < kMaxDecisions) {
    decisions_[node].push_back(decision);
  } else if (step.kind == StepKind::kTest && decision > 0) {
    ++trips_[node];
  } else if (step.kind == StepKind::kTest && decisions_[node].size() < kMaxDecisions) {
    decisions_[node].push_back(trips_[node]);
    trips_[node] = 0;
  }
}

double StepProfile::mean_ns(NodeId node, StepKind kind, double looking_ns) const {
  const Cell& cell = cells_[node.index()][static_cast<size_t>(kind)];
  if (cell.count == 0) return 0;
  const double seen = static_cast<double>(cell.ticks) / static_cast<double>(cell.count);
  return std::max(0.0, seen * tick_ns() - looking_ns);
}

NodeWork StepProfile::work(const Graph& graph, const LookingCosts& looking) const {
  NodeWork work;
  EDDY_CHECK(cells_.size() == graph.num_nodes() && decisions_.size() == graph.num_nodes())
      << cells_.size() << " nodes were seen of " << graph.num_nodes();
  work.nodes.resize(graph.num_nodes());
  work.controls.resize(graph.num_nodes());
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    const NodeId id(n);
    const Node& node = graph.node(id);
    work.nodes[n].solo_ns = mean_ns(id, StepKind::kExec, looking.exec_ns);
    if (node.kind == NodeKind::kExec) continue;
    ControlWork& control = work.controls[n];
    for (const auto& [demand, kind] : {std::pair{&control.enter, StepKind::kEnter},
                                       {&control.test, StepKind::kTest},
                                       {&control.advance, StepKind::kAdvance},
                                       {&control.leave, StepKind::kLeave},
                                       {&control.select, StepKind::kSelect},
                                       {&control.finish, StepKind::kFinishBranch}}) {
      demand->solo_ns = mean_ns(id, kind, looking.control_ns);
    }
    control.decision.trace = decisions_[n];
    // A decision that was never reached is never read.
    if (control.decision.trace.empty()) control.decision.trace = {0};
  }
  return work;
}

}  // namespace eddy
