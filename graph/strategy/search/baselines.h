// Baselines: the strategies people write by hand, to start a search from and to compare it with.
//
// data parallel   every operator cut along its first dimension over all devices
// expert          convolutions and what goes with them by data, dense layers by model (columns
//                 over all devices: Krizhevsky 2014). Networks whose operators share weights (an
//                 unrolled recurrent network) are cut by data over nodes, and within a node each
//                 layer is on one device of its own (Wu et al. 2016).
// random          a configuration for every operator from the same set that the search draws from
//
// Where an extent has no divisor as large as the number of devices, the largest below it is used.
// A node is a set of devices joined by links faster than the topology's slowest; one node where
// all links are equally fast.
//
// Threads: pure. Cost: O(operators * devices).
#pragma once

#include <vector>

#include "graph/base/random.h"
#include "graph/strategy/operators/operator_graph.h"
#include "graph/strategy/operators/topology.h"

namespace eddy {

Strategy data_parallel_strategy(const OperatorGraph& graph, const Topology& topology);
Strategy expert_strategy(const OperatorGraph& graph, const Topology& topology);

// The devices of each node, in order.
std::vector<std::vector<uint32_t>> find_nodes(const Topology& topology);

// A configuration drawn uniformly: first how the operator is cut, among all ways with at most one
// part for each device (of operators with exe_by_tile: those whose tile has a time), then where
// the parts go: to devices next to each other from a random one on, evenly spread over all from
// a random one on, or, now and then, each to a random one.
class ConfigSpace {
 public:
  // Borrows both.
  ConfigSpace(const OperatorGraph& graph, const Topology& topology);
  OperatorConfig draw(uint32_t op, Random& random) const;

 private:
  struct Cut {
    Dims degree;
    int64_t reduce = 1;
  };
  void add_cuts(const Operator& op, int d, Cut cut, int64_t parts, std::vector<Cut>& cuts) const;

  const Topology& topology_;
  std::vector<std::vector<Cut>> cuts_;  // by operator
};

Strategy random_strategy(const OperatorGraph& graph, const Topology& topology, Random& random);

}  // namespace eddy
