#include "graph/schedule/plan/plan.h"

#include "graph/base/check.h"

namespace eddy {

NodeId node_of(const Program& program, const Program::Step& step) {
  switch (step.op) {
    case Program::Op::kLaunch:
    case Program::Op::kRetain:
      EDDY_DCHECK(step.operand < program.launches.size()) << "launch " << step.operand;
      return NodeId(program.launches[step.operand].node);
    case Program::Op::kLoop:
    case Program::Op::kTest:
    case Program::Op::kAdvance:
      EDDY_DCHECK(step.operand < program.loops.size()) << "loop " << step.operand;
      return NodeId(program.loops[step.operand].node);
    case Program::Op::kCase:
      EDDY_DCHECK(step.operand < program.cases.size()) << "case " << step.operand;
      return NodeId(program.cases[step.operand].node);
    case Program::Op::kPushRow:
      EDDY_DCHECK(step.operand < program.rows.size()) << "row " << step.operand;
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
