#include "graph/analysis/reachability.h"

#include "graph/analysis/topological_order.h"

namespace eddy {

BitMatrix reachability(const Dag& dag) {
  BitMatrix reach(dag.num_nodes(), dag.num_nodes());
  const std::vector<uint32_t> order = topological_order(dag);
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    for (uint32_t child : dag.children(*it)) {
      reach.or_row(*it, child);
      reach.set(*it, child);
    }
  }
  return reach;
}

}  // namespace eddy
