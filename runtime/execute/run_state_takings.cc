// The slots by which tails of open loops read what moves on with the iteration
// (Program::Op::kRetain).
#include "runtime/execute/executable.h"
#include "runtime/execute/run_state.h"

namespace eddy {

void RunState::make_taken_slots() {
  const Graph& graph = executable_.graph();
  const Program& program = executable_.plan().program;
  for (uint32_t r = 0; r < graph.num_regions(); ++r) {
    const Program::Block& block = program.blocks[r];
    std::map<uint32_t, std::pair<ValueId, Slot*>> retained;  // by name
    for (const Program::Step& step : block.steps) {
      if (step.op == Program::Op::kRetain) {
        LoopState::Taking& taking = loops_[graph.region(RegionId(r)).owner.index()]->add_taking();
        for (const Program::Alias& alias : program.launches[step.operand].aliases) {
          const ValueId value(alias.from);
          Slot& own = storage_.emplace_back();
          const ValueType& type = graph.value(value).type;
          if (type.is_static_tensor()) own.set_tensor(type.tensor.element, type.tensor.dims.span());
          taking.pairs.push_back({&own, &slot(value), value});
          retained[alias.to] = {value, &own};
        }
      }
      if (step.op != Program::Op::kLaunch || retained.empty()) continue;
      const Program::Launch& launch = program.launches[step.operand];
      for (const uint32_t name : launch.reads) {
        const auto own = retained.find(name);
        if (own == retained.end()) continue;
        const auto& [value, own_slot] = own->second;
        taken_slots_[{launch.node, value.index()}] = own_slot;
      }
    }
  }
}

}  // namespace eddy
