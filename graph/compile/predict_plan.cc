#include "graph/compile/predict_plan.h"

namespace eddy {
namespace {

class Writer {
 public:
  Writer(const Graph& graph, const Plan& plan, const NodeWork& work)
      : graph_(graph), plan_(plan), work_(work), number_(graph.num_nodes()) {}

  PlanProgram run() {
    for (uint32_t n = 0; n < graph_.num_nodes(); ++n) add_node(NodeId(n));
    for (const RegionPlan& region : plan_.regions) add_region(region);
    return std::move(result_);
  }

 private:
  void add_node(NodeId id) {
    const Node& node = graph_.node(id);
    FluidProgram& program = result_.program;
    const ControlWork& control = work_.controls[id.index()];
    switch (node.kind) {
      case NodeKind::kExec:
        number_[id.index()] = static_cast<uint32_t>(result_.kernels.size());
        result_.kernels.push_back(id);
        program.kernels.push_back(work_.nodes[id.index()]);
        return;
      case NodeKind::kWhile:
        number_[id.index()] = static_cast<uint32_t>(result_.loops.size());
        result_.loops.push_back(id);
        program.loops.push_back({.name = graph_.path(id),
                                 .before = node.regions[0].index(),
                                 .after = node.regions[1].index(),
                                 .decision = control.decision,
                                 .enter = control.enter,
                                 .test = control.test,
                                 .advance = control.advance,
                                 .leave = control.leave});
        return;
      case NodeKind::kCaseOf: {
        number_[id.index()] = static_cast<uint32_t>(result_.cases.size());
        result_.cases.push_back(id);
        FluidCase branch{.name = graph_.path(id),
                         .decision = control.decision,
                         .select = control.select,
                         .finish = control.finish};
        for (const RegionId region : node.regions) branch.regions.push_back(region.index());
        program.cases.push_back(std::move(branch));
        return;
      }
    }
  }

  void add_region(const RegionPlan& from) {
    FluidRegion region;
    region.num_streams = from.num_streams;
    region.num_events = from.num_events;
    region.lanes = from.streams;
    region.is_open = from.open.has_value();
    for (const PlanCommand& command : from.commands) {
      FluidCommand to{FluidCommand::Kind::kLaunch, command.stream, command.event};
      if (command.kind == PlanCommand::Kind::kRecord) {
        to.kind = FluidCommand::Kind::kRecord;
      } else if (command.kind == PlanCommand::Kind::kWait) {
        to.kind = FluidCommand::Kind::kWait;
      } else {
        const NodeKind kind = graph_.node(command.node).kind;
        if (kind == NodeKind::kWhile) to.kind = FluidCommand::Kind::kLoop;
        if (kind == NodeKind::kCaseOf) to.kind = FluidCommand::Kind::kCase;
        to.id = number_[command.node.index()];
        if (command.stream == 0) wait_for_previous(from, command.node, region);
        record_takes(from, command.node, region);
      }
      region.commands.push_back(to);
    }
    if (from.open) {
      for (const uint32_t event : from.open->end_waits) {
        region.commands.push_back({FluidCommand::Kind::kWait, 0, event});
      }
      for (const OpenEnd::PreviousWait& wait : from.open->previous_waits) {
        if (wait.before == NodeId()) region.entry_waits.push_back(wait.event);
      }
    }
    result_.program.regions.push_back(std::move(region));
  }

  // Taking a reference costs next to nothing.
  static void record_takes(const RegionPlan& from, NodeId before, FluidRegion& region) {
    if (!from.open) return;
    for (const OpenEnd::Take& take : from.open->takes) {
      if (take.before != before || take.event == OpenEnd::kNoEvent) continue;
      region.commands.push_back({FluidCommand::Kind::kRecord, take.stream, take.event});
    }
  }

  // What the node must not overtake.
  static void wait_for_previous(const RegionPlan& from, NodeId node, FluidRegion& region) {
    if (!from.open) return;
    for (const OpenEnd::PreviousWait& wait : from.open->previous_waits) {
      if (wait.before != node) continue;
      region.commands.push_back({FluidCommand::Kind::kWaitPrevious, 0, wait.event});
    }
  }

  const Graph& graph_;
  const Plan& plan_;
  const NodeWork& work_;
  std::vector<uint32_t> number_;  // of a node among those of its kind
  PlanProgram result_;
};

}  // namespace

PlanProgram fluid_program(const Graph& graph, const Plan& plan, const NodeWork& work) {
  return Writer(graph, plan, work).run();
}

Result<FluidTimeline> predict_plan(const Graph& graph, const Plan& plan, const NodeWork& work,
                                   const FluidMachine& machine, const FluidOptions& options) {
  return simulate_fluid(fluid_program(graph, plan, work).program, machine, options);
}

}  // namespace eddy
