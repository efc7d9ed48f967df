// Graphs and obvious models for the tests of graph/analysis and graph/schedule.
//
// Models are as slow and as plain as their definitions: they share no code with what they check
// beyond Dag itself.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "graph/analysis/dag.h"
#include "graph/base/random.h"

namespace eddy::testing {

// CHECKs that the edges make a DAG.
Dag dag_of(uint32_t num_nodes, std::vector<Edge> edges);

// A uniformly shuffled 0 .. n-1.
std::vector<uint32_t> random_permutation(Random& random, uint32_t n);

struct RandomDag {
  uint32_t num_nodes = 20;
  uint32_t num_edges = 40;  // drawn, duplicates are merged
  uint32_t window = 0;      // longest edge in ids; 0: any
  bool shuffle = true;      // give ids that are no topological order
};
Dag random_dag(Random& random, const RandomDag& options);

// All DAGs with ids in topological order: every DAG of that many nodes, up to renaming.
void for_each_dag(uint32_t num_nodes, const std::function<void(const Dag&)>& visit);

// reach[u][v]: a path of at least one edge leads from u to v. By depth-first search.
using Relation = std::vector<std::vector<bool>>;
Relation model_reachability(const Dag& dag);

// The edges with no path of two edges or more between their ends.
std::vector<Edge> model_reduction(const Dag& dag);

}  // namespace eddy::testing
