#include "tests/graph/analysis/dags.h"

#include <algorithm>
#include <numeric>
#include <utility>

#include "graph/base/check.h"

namespace eddy::testing {

Dag dag_of(uint32_t num_nodes, std::vector<Edge> edges) {
  return build_dag(num_nodes, edges).value();
}

std::vector<uint32_t> random_permutation(Random& random, uint32_t n) {
  std::vector<uint32_t> items(n);
  std::iota(items.begin(), items.end(), 0u);
  for (uint32_t i = n; i > 1; --i) std::swap(items[i - 1], items[random.below(i)]);
  return items;
}

Dag random_dag(Random& random, const RandomDag& options) {
  const uint32_t n = options.num_nodes;
  std::vector<Edge> edges;
  for (uint32_t i = 0; n >= 2 && i < options.num_edges; ++i) {
    const uint32_t from = static_cast<uint32_t>(random.below(n - 1));
    const uint32_t room = n - 1 - from;
    const uint32_t longest = options.window == 0 ? room : std::min(options.window, room);
    edges.push_back({from, from + 1 + static_cast<uint32_t>(random.below(longest))});
  }
  const Dag dag = dag_of(n, edges);
  return options.shuffle ? relabel(dag, random_permutation(random, n)) : dag;
}

void for_each_dag(uint32_t num_nodes, const std::function<void(const Dag&)>& visit) {
  std::vector<Edge> all;
  for (uint32_t from = 0; from < num_nodes; ++from) {
    for (uint32_t to = from + 1; to < num_nodes; ++to) all.push_back({from, to});
  }
  for (uint32_t subset = 0; subset < 1u << all.size(); ++subset) {
    std::vector<Edge> edges;
    for (size_t i = 0; i < all.size(); ++i) {
      if (subset >> i & 1) edges.push_back(all[i]);
    }
    visit(dag_of(num_nodes, edges));
  }
}

Relation model_reachability(const Dag& dag) {
  Relation reach(dag.num_nodes(), std::vector<bool>(dag.num_nodes()));
  for (uint32_t start = 0; start < dag.num_nodes(); ++start) {
    std::vector<uint32_t> stack = {start};
    while (!stack.empty()) {
      const uint32_t node = stack.back();
      stack.pop_back();
      for (uint32_t child : dag.children(node)) {
        if (!reach[start][child]) stack.push_back(child);
        reach[start][child] = true;
      }
    }
  }
  return reach;
}

std::vector<Edge> model_reduction(const Dag& dag) {
  const Relation reach = model_reachability(dag);
  std::vector<Edge> kept;
  for (const Edge& edge : dag.edges()) {
    bool is_implied = false;
    for (uint32_t between : dag.children(edge.from)) is_implied |= reach[between][edge.to];
    if (!is_implied) kept.push_back(edge);
  }
  return kept;
}

}  // namespace eddy::testing
