#include "graph/analysis/rank.h"

#include <algorithm>
#include <cmath>

#include "graph/analysis/topological_order.h"
#include "graph/base/check.h"

namespace eddy {
namespace {

// longest[v] = max over v's neighbours w on one side of longest[w] + cost(w), visited from there.
template <typename T, typename Nodes, typename Neighbours, typename Cost>
std::vector<T> longest_chains(const Dag& dag, const Nodes& nodes, Neighbours neighbours,
                              Cost cost) {
  EDDY_CHECK(std::size(nodes) == dag.num_nodes()) << "the order names each node once";
  std::vector<T> longest(dag.num_nodes());
  for (uint32_t node : nodes) {
    EDDY_DCHECK(node < dag.num_nodes()) << "the order names node " << node;
    for (uint32_t other : neighbours(node)) {
      longest[node] = std::max(longest[node], longest[other] + cost(other));
    }
  }
  return longest;
}

struct Reversed {
  std::span<const uint32_t> nodes;
  auto begin() const { return nodes.rbegin(); }
  auto end() const { return nodes.rend(); }
  size_t size() const { return nodes.size(); }
};

auto children_of(const Dag& dag) {
  return [&dag](uint32_t node) { return dag.children(node); };
}

auto parents_of(const Dag& dag) {
  return [&dag](uint32_t node) { return dag.parents(node); };
}

uint32_t one(uint32_t) { return 1; }

auto cost_of(const Dag& dag, std::span<const double> costs) {
  EDDY_CHECK(costs.size() == dag.num_nodes()) << "one cost for each node";
  const auto is_cost = [](double cost) { return cost >= 0 && std::isfinite(cost); };
  EDDY_DCHECK(std::ranges::all_of(costs, is_cost)) << "costs are finite and not negative";
  return [costs](uint32_t node) { return costs[node]; };
}

}  // namespace

std::vector<uint32_t> unit_ranks(const Dag& dag, std::span<const uint32_t> order) {
  EDDY_DCHECK(is_topological(dag, order)) << "children come before parents";
  return longest_chains<uint32_t>(dag, Reversed{order}, children_of(dag), one);
}

std::vector<double> cost_ranks(const Dag& dag, std::span<const uint32_t> order,
                               std::span<const double> costs) {
  return longest_chains<double>(dag, Reversed{order}, children_of(dag), cost_of(dag, costs));
}

std::vector<uint32_t> unit_depths(const Dag& dag, std::span<const uint32_t> order) {
  EDDY_DCHECK(is_topological(dag, order)) << "children come before parents";
  return longest_chains<uint32_t>(dag, order, parents_of(dag), one);
}

std::vector<double> cost_depths(const Dag& dag, std::span<const uint32_t> order,
                                std::span<const double> costs) {
  return longest_chains<double>(dag, order, parents_of(dag), cost_of(dag, costs));
}

}  // namespace eddy
