#include "graph/compile/predict_plan.h"

#include <algorithm>

namespace eddy {
namespace {

class Writer {
 public:
  Writer(const Graph& graph, const Plan& plan, const NodeWork& work)
      : graph_(graph), plan_(plan), work_(work), number_(graph.num_nodes()) {}

  PlanProgram run() {
    for (uint32_t n = 0; n < graph_.num_nodes(); ++n) add_node(NodeId(n));
    for (const Program::Block& block : plan_.program.blocks) add_region(block);
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

  // The model forks and joins all streams of a region: records and waits of its entry and end are
  // left out here, and what streams retain costs next to nothing.
  void add_region(const Program::Block& from) {
    FluidRegion region;
    region.num_streams = static_cast<uint32_t>(from.streams.size());
    region.num_events = first_frame_event(from);
    region.lanes = from.streams;
    region.is_open = is_pipelined(plan_.program, from);
    bool has_begun = false;  // its further streams
    for (const Program::Step& step : from.steps) {
      const bool is_frame = is_sync(step.op) && step.operand >= region.num_events;
      if (step.op == Program::Op::kWaitPrevious && !has_begun) {
        region.entry_waits.push_back(step.operand);
      } else if (!is_frame) {
        add_step(from, step, region);
      }
      has_begun |= step.op != Program::Op::kBegin && step.op != Program::Op::kWaitPrevious;
    }
    result_.program.regions.push_back(std::move(region));
  }

  void add_step(const Program::Block& from, const Program::Step& step, FluidRegion& region) const {
    if (!is_node(step.op) && !is_sync(step.op)) return;
    const uint32_t operand =
        is_node(step.op) ? number_[node_of(plan_.program, step).index()] : step.operand;
    region.commands.push_back({step.op, local_stream(from, step.stream), operand});
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
