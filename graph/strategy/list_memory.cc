#include "graph/strategy/list_memory.h"

#include <algorithm>

namespace eddy {
namespace {

using Bytes = std::vector<int64_t>;  // by device

void add(const Bytes& from, Bytes& to) {
  for (size_t i = 0; i < to.size(); ++i) add_bytes(to[i], from[i]);
}

void add_weights(const OperatorList& list, Bytes& total) {
  add_weight_bytes(list.graph, list.strategy, total);
  for (const ControlOperator& control : list.controls) {
    for (const OperatorList& inner : control.lists) add_weights(inner, total);
  }
}

Bytes outputs_of(const OperatorList& list, size_t num_nodes) {
  Bytes total(num_nodes, 0);
  add_output_bytes(list.graph, list.strategy, total);
  for (const ControlOperator& control : list.controls) {
    Bytes most(num_nodes, 0);
    for (const OperatorList& inner : control.lists) {
      const Bytes own = outputs_of(inner, num_nodes);
      if (control.kind == ScenarioEntry::Kind::kLoop) {
        add(own, most);
      } else {
        std::ranges::transform(own, most, most.begin(),
                               [](int64_t a, int64_t b) { return std::max(a, b); });
      }
    }
    add(most, total);
  }
  return total;
}

}  // namespace

Status check_list_memory(const OperatorList& root, const Topology& topology) {
  Bytes bytes = outputs_of(root, topology.num_nodes());
  add_weights(root, bytes);
  return check_capacity(bytes, topology);
}

}  // namespace eddy
