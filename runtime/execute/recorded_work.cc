#include "runtime/execute/recorded_work.h"

#include <fmt/format.h>

#include "runtime/execute/device_control.h"

namespace eddy {

using Kind = RecordedStep::Kind;

CodeItems pointers(const CodeBlock& block) {
  CodeItems items;
  for (const CodeItem& item : block) items.push_back(&item);
  return items;
}

RecordedWork::RecordedWork(RunState& state)
    : state_(state), view_(dynamic_cast<const CommandCode&>(*state.commands).view()) {
  const Graph& graph = state.graph();
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    const NodeId id(n);
    switch (graph.node(id).kind) {
      case NodeKind::kExec:
        steps_[&state.exec_node(id)] = {Kind::kExec, id};
        break;
      case NodeKind::kWhile:
        add_loop(id);
        break;
      case NodeKind::kCaseOf: {
        CaseState& branch = state.branch(id);
        steps_[&branch] = {Kind::kSelect, id};
        for (uint32_t r = 0; r < graph.node(id).regions.size(); ++r) {
          steps_[&branch.branch(r)] = {Kind::kFinishBranch, id, r};
        }
        break;
      }
    }
  }
}

void RecordedWork::add_loop(NodeId id) {
  LoopState& loop = state_.loop(id);
  steps_[&loop] = {Kind::kEnter, id};
  for (uint32_t t = 0; t < loop.takings().size(); ++t) {
    steps_[&loop.taking(t)] = {Kind::kTake, id, t};
  }
}

// The step of that kind of whom the context belongs to.
RecordedStep RecordedWork::find(const void* context, Kind kind) const {
  const auto found = steps_.find(context);
  if (found == steps_.end()) return {};
  return {kind, found->second.node, found->second.index};
}

uint32_t RecordedWork::row_of(const LoopState::RowPush& push, NodeId loop) const {
  const Graph& graph = state_.graph();
  const std::vector<ValueId>& results = graph.region(graph.node(loop).regions[1]).results;
  const auto count = static_cast<uint32_t>(results.size());
  for (uint32_t k = count - graph.node(loop).num_scan_outputs; k < count; ++k) {
    const bool is_it = push.stack == &push.owner->stack(k);
    if (is_it && push.stack->row == &state_.slot(results[k])) return k;
  }
  return count;
}

RecordedStep RecordedWork::launch(const CodeItem& item) const {
  const CommandCode::Command& command = view_.code[item.command];
  WorkFunction run = command.run;
  void* context = command.context;
  if (run == ObservedStep::run_step) {
    const auto& observed = *static_cast<const ObservedStep*>(context);
    run = observed.run;
    context = observed.context;
  }
  if (run == LoopState::enter) return find(context, Kind::kEnter);
  if (run == LoopState::advance) return find(context, Kind::kAdvance);
  if (run == LoopState::leave) return find(context, Kind::kLeave);
  if (run == LoopState::take) return find(context, Kind::kTake);
  if (run == LoopState::begin_tail) return {.kind = Kind::kTail};
  if (run == LoopState::push_row_apart) {
    const auto& push = *static_cast<const LoopState::RowPush*>(context);
    const RecordedStep loop = find(push.owner, Kind::kRow);
    if (loop.kind != Kind::kRow) return {};
    return {Kind::kRow, loop.node, row_of(push, loop.node)};
  }
  if (run == CaseState::finish_branch) return find(context, Kind::kFinishBranch);
  const bool is_bookkeeping = run == ReleaseList::run || run == TraceMark::begin ||
                              run == TraceMark::end || run == DeviceControl::left;
  if (is_bookkeeping) return {.kind = Kind::kBookkeeping};
  const auto found = steps_.find(context);
  const bool is_exec = found != steps_.end() && found->second.kind == Kind::kExec;
  return is_exec ? found->second : RecordedStep();
}

bool RecordedWork::is_launch(const CodeItem& item, Kind kind, NodeId node) const {
  if (item.kind != CodeItem::Kind::kLaunch) return false;
  const RecordedStep step = launch(item);
  return step.kind == kind && (node.is_none() || step.node == node);
}

RecordedStep RecordedWork::decision(uint32_t number) const {
  const CommandCode::Command& command = view_.code[number];
  DecideFunction decide = command.decide;
  void* context = command.context;
  if (decide == ObservedStep::decide_step) {
    const auto& observed = *static_cast<const ObservedStep*>(context);
    decide = observed.decide;
    context = observed.context;
  }
  if (decide == LoopState::test) return find(context, Kind::kTest);
  if (decide == CaseState::select) return find(context, Kind::kSelect);
  if (decide == DeviceControl::choose) return {.kind = Kind::kChoose};
  if (decide == DeviceControl::heard) return {.kind = Kind::kHeard};
  return {};
}

Status RecordedWork::fail(RegionId region, const std::string& what) const {
  const NodeId owner = graph().region(region).owner;
  const std::string name =
      owner.is_none() ? "the graph"
                      : fmt::format("{}/{}", graph().path(owner), graph().region(region).name);
  return internal_error(fmt::format("what was recorded for {} {}", name, what));
}

}  // namespace eddy
