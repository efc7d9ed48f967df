#include "graph/analysis/short_edge_order.h"

#include <algorithm>
#include <span>

#include "graph/analysis/rank.h"
#include "graph/analysis/topological_order.h"
#include "graph/base/check.h"

namespace eddy {
namespace {

// Stable counting sort of the nodes, in id order, by key.
std::vector<uint32_t> sort_by_key(std::span<const uint32_t> key) {
  uint32_t num_keys = 0;
  for (uint32_t k : key) num_keys = std::max(num_keys, k + 1);
  std::vector<uint32_t> next(num_keys + size_t{1});
  for (uint32_t k : key) ++next[k + size_t{1}];
  for (size_t k = 0; k < num_keys; ++k) next[k + 1] += next[k];
  std::vector<uint32_t> order(key.size());
  for (uint32_t node = 0; node < key.size(); ++node) order[next[key[node]]++] = node;
  return order;
}

// Each node just before its first child; a sink at its depth. Never less than the depth.
std::vector<uint32_t> order_before_children(const Dag& dag) {
  const std::vector<uint32_t> order = topological_order(dag);
  std::vector<uint32_t> level = unit_depths(dag, order);
  for (auto it = order.rbegin(); it != order.rend(); ++it) {
    uint32_t first_child = UINT32_MAX;
    for (uint32_t child : dag.children(*it)) first_child = std::min(first_child, level[child]);
    EDDY_DCHECK(first_child > level[*it]) << "node " << *it << " stands no deeper than its parents";
    if (first_child != UINT32_MAX) level[*it] = first_child - 1;
  }
  return sort_by_key(level);
}

uint64_t total_span(const Dag& dag, std::span<const uint32_t> position) {
  uint64_t span = 0;
  for (uint32_t node = 0; node < dag.num_nodes(); ++node) {
    for (uint32_t child : dag.children(node)) span += position[child] - position[node];
  }
  return span;
}

}  // namespace

std::vector<uint32_t> short_edge_order(const Dag& dag) {
  std::vector<uint32_t> computed = order_before_children(dag);
  if (!ids_are_topological(dag)) return computed;
  std::vector<uint32_t> ids = topological_order(dag);
  EDDY_DCHECK(is_topological(dag, computed)) << "a child comes before a parent";
  const bool ids_are_shorter = total_span(dag, ids) <= total_span(dag, position_of(computed));
  return ids_are_shorter ? ids : computed;
}

}  // namespace eddy
