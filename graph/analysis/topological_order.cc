#include "graph/analysis/topological_order.h"

#include <numeric>

#include "graph/base/check.h"

namespace eddy {
namespace {

std::vector<uint32_t> id_order(uint32_t num_nodes) {
  std::vector<uint32_t> order(num_nodes);
  std::iota(order.begin(), order.end(), 0u);
  return order;
}

}  // namespace

bool ids_are_topological(const Dag& dag) {
  for (uint32_t node = 0; node < dag.num_nodes(); ++node) {
    if (!dag.parents(node).empty() && dag.parents(node).back() > node) return false;
  }
  return true;
}

std::vector<uint32_t> topological_order(const Dag& dag) {
  if (ids_are_topological(dag)) return id_order(dag.num_nodes());
  std::vector<uint32_t> pending(dag.num_nodes());
  std::vector<uint32_t> order;
  order.reserve(dag.num_nodes());
  for (uint32_t node = 0; node < dag.num_nodes(); ++node) {
    pending[node] = static_cast<uint32_t>(dag.parents(node).size());
    if (pending[node] == 0) order.push_back(node);
  }
  for (size_t visited = 0; visited < order.size(); ++visited) {
    for (uint32_t child : dag.children(order[visited])) {
      if (--pending[child] == 0) order.push_back(child);
    }
  }
  EDDY_CHECK(order.size() == dag.num_nodes()) << "the graph has a cycle";
  return order;
}

std::vector<uint32_t> position_of(std::span<const uint32_t> order) {
  std::vector<uint32_t> position(order.size());
  for (uint32_t i = 0; i < order.size(); ++i) position[order[i]] = i;
  return position;
}

bool is_topological(const Dag& dag, std::span<const uint32_t> order) {
  if (order.size() != dag.num_nodes()) return false;
  std::vector<uint32_t> position(order.size(), UINT32_MAX);
  for (uint32_t i = 0; i < order.size(); ++i) {
    if (order[i] >= order.size() || position[order[i]] != UINT32_MAX) return false;
    position[order[i]] = i;
  }
  for (uint32_t node = 0; node < dag.num_nodes(); ++node) {
    for (uint32_t child : dag.children(node)) {
      if (position[child] < position[node]) return false;
    }
  }
  return true;
}

}  // namespace eddy
