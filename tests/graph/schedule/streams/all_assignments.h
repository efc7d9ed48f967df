// The fewest waits of all assignments with maximum logical concurrency, the fewest streams among
// those, and the fewest waits with those at a region's entry and exit, by trying them all: the slow
// model of assignment by matching.
//
// Each edge of the transitive reduction whose ends share no stream needs a wait of its own (Nimble,
// lemma 4). Cost: exponential; for a handful of nodes.
#pragma once

#include <set>
#include <utility>
#include <vector>

#include "graph/analysis/dag.h"
#include "tests/graph/analysis/dags.h"

namespace eddy::testing {

using Devices = std::vector<std::set<uint32_t>>;  // by node

// Tries every way to put nodes on a stream of each of their devices without two unrelated nodes on
// one.
class AllAssignments {
 public:
  AllAssignments(const Dag& dag, const Devices& devices);
  // All nodes on one device.
  explicit AllAssignments(const Dag& dag) : AllAssignments(dag, Devices(dag.num_nodes(), {0})) {}

  uint32_t fewest_waits() const { return waits_; }
  uint32_t fewest_streams_then() const { return streams_; }
  // The fewest waits of a region on one device: sources of all streams but one wait for its entry,
  // and its exit for sinks.
  uint32_t fewest_waits_with_frame() const { return waits_with_boundary_; }

 private:
  struct Place {
    uint32_t node;
    uint32_t device;
    uint32_t stream;
  };
  void place(size_t next, uint32_t num_streams);
  bool fits(size_t next, uint32_t stream) const;
  bool share_a_stream(const Edge& edge) const;
  uint32_t boundary_waits(uint32_t num_streams) const;
  void score(uint32_t num_streams);

  std::vector<Edge> reduced_;
  Relation reach_;
  std::vector<Place> places_;  // by node
  std::vector<size_t> first_;  // of each node in places_, and the end
  uint32_t waits_ = UINT32_MAX;
  uint32_t streams_ = UINT32_MAX;
  uint32_t waits_with_boundary_ = UINT32_MAX;
};

}  // namespace eddy::testing
