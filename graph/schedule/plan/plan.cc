#include "graph/schedule/plan/plan.h"

namespace eddy {

NodeId node_of(const Program& program, const Program::Step& step) {
  switch (step.op) {
    case Program::Op::kLaunch:
    case Program::Op::kRetain:
      return NodeId(program.launches[step.operand].node);
    case Program::Op::kLoop:
    case Program::Op::kTest:
    case Program::Op::kAdvance:
      return NodeId(program.loops[step.operand].node);
    case Program::Op::kCase:
      return NodeId(program.cases[step.operand].node);
    case Program::Op::kPushRow:
      return NodeId(program.loops[program.rows[step.operand].loop].node);
    default:
      return NodeId();
  }
}

ValueId value_of_name(const Graph& graph, const Program& program, uint32_t name) {
  if (name < graph.num_values()) return ValueId(name);
  for (const Program::Launch& launch : program.launches) {
    for (const Program::Alias& alias : launch.aliases) {
      if (alias.to == name) return ValueId(alias.from);
    }
  }
  return ValueId();
}

}  // namespace eddy
