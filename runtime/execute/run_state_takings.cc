// The slots by which tails of open loops read what moves on with the iteration (OpenEnd::Take).
#include "runtime/execute/executable.h"
#include "runtime/execute/run_state.h"

namespace eddy {

void RunState::make_taken_slots() {
  const Graph& graph = executable_.graph();
  for (uint32_t r = 0; r < graph.num_regions(); ++r) {
    const RegionPlan& plan = executable_.plan().regions[r];
    if (!plan.open) continue;
    LoopState& loop = *loops_[graph.region(RegionId(r)).owner.index()];
    std::map<std::pair<uint32_t, uint32_t>, Slot*> taken;  // by stream, ValueId
    for (const OpenEnd::Take& take : plan.open->takes) {
      LoopState::Taking& taking = loop.add_taking();
      for (const ValueId value : take.values) {
        Slot& own = storage_.emplace_back();
        const ValueType& type = graph.value(value).type;
        const bool is_fixed = type.is_tensor() && type.tensor.is_static();
        if (is_fixed) own.set_tensor(type.tensor.element, type.tensor.dims.span());
        taking.pairs.push_back({&own, &slot(value), value});
        taken[{take.stream, value.index()}] = &own;
      }
    }
    for (const PlanCommand& command : plan.commands) {
      if (command.kind != PlanCommand::Kind::kLaunch) continue;
      const Node& node = graph.node(command.node);
      if (node.kind != NodeKind::kExec) continue;
      for (const ValueId value : node.inputs) {
        const auto own = taken.find({command.stream, value.is_none() ? UINT32_MAX : value.index()});
        if (own != taken.end()) taken_slots_[{command.node.index(), value.index()}] = own->second;
      }
    }
  }
}

}  // namespace eddy
