#include "graph/strategy/tasks/task_label.h"

#include "graph/base/check.h"

namespace eddy {

std::string task_name(const TaskLabel& label, const OperatorGraph& graph,
                      const Topology& topology) {
  EDDY_CHECK(label.op < graph.operators.size() && label.to_op < graph.operators.size())
      << "a task of operator " << label.op;
  const std::string& op = graph.operators[label.op].name;
  const auto link_name = [&] {
    const Link& link = topology.link(label.link);
    return topology.node(link.from).name + ">" + topology.node(link.to).name;
  };
  if (label.kind == TaskKind::kSync) {
    return op + ".sync" + std::to_string(label.part) + "." + std::to_string(label.to_part) + ":" +
           link_name();
  }
  const std::string grad = label.is_backward ? ".grad" : "";
  const bool is_sum = label.kind == TaskKind::kSum || label.is_summed;
  const std::string from = op + (is_sum ? ".sum." : ".") + std::to_string(label.part) + grad;
  if (!is_communication(label)) return from;
  std::string to =
      label.kind == TaskKind::kPartial
          ? op + ".sum." + std::to_string(label.to_part) + grad
          : graph.operators[label.to_op].name + "." + std::to_string(label.to_part) + grad;
  std::string name = label.is_backward ? to + "->" + from : from + "->" + to;
  if (label.input > 0) name += "#" + std::to_string(label.input);
  if (label.has_hops) name += "@" + link_name();
  return name;
}

}  // namespace eddy
