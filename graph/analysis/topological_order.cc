#include "graph/analysis/topological_order.h"

#include <algorithm>
#include <numeric>

#include "graph/analysis/rank.h"
#include "graph/base/check.h"

namespace eddy {
namespace {

bool ids_are_topological(const Dag& dag) {
  for (uint32_t node = 0; node < dag.num_nodes(); ++node) {
    if (!dag.parents(node).empty() && dag.parents(node).back() > node) return false;
  }
  return true;
}

std::vector<uint32_t> id_order(uint32_t num_nodes) {
  std::vector<uint32_t> order(num_nodes);
  std::iota(order.begin(), order.end(), 0u);
  return order;
}

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

std::vector<uint32_t> short_edge_order(const Dag& dag) {
  std::vector<uint32_t> computed = order_before_children(dag);
  if (!ids_are_topological(dag)) return computed;
  std::vector<uint32_t> ids = id_order(dag.num_nodes());
  EDDY_DCHECK(is_topological(dag, computed)) << "a child comes before a parent";
  const bool ids_are_shorter = total_span(dag, ids) <= total_span(dag, position_of(computed));
  return ids_are_shorter ? ids : computed;
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
