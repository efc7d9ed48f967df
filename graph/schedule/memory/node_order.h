// NodeOrder: which nodes of one region have surely ended when another starts, by the region's
// streams, records and waits.
//
// One clock for each node: how far each stream of its region has surely come. A region on one
// stream needs none: there the place in the stream decides. Where clocks would take more than
// kMaxClockEntries numbers, the nodes of that region are ordered within their streams only, which
// is safe and plans more memory.
//
// Cost: O(commands * streams) to build, O(1) a query.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/schedule/plan/schedule.h"

namespace eddy {

class NodeOrder {
 public:
  static constexpr uint64_t kMaxClockEntries = uint64_t{1} << 26;

  // Holds the order of no region yet.
  explicit NodeOrder(const Graph& graph) : places_(graph.num_nodes()) {}
  // Holds the order of all regions of the plan.
  NodeOrder(const Graph& graph, const Schedule& plan);
  void add(const RegionSchedule& region);
  void add(const Program& program, const Program::Block& block);

  // `a` and `b` stand in one region. False for a == b.
  bool precedes(NodeId a, NodeId b) const {
    const Place& from = places_[a.index()];
    const Place& to = places_[b.index()];
    if (from.stream == to.stream) return from.position < to.position;
    return to.clock != kNoClock && clocks_[to.clock + from.stream] > from.position;
  }
  uint32_t stream(NodeId node) const { return places_[node.index()].stream; }
  // Within its stream.
  uint32_t position(NodeId node) const { return places_[node.index()].position; }
  // The node's place in the order of issue of its region.
  uint32_t issue_position(NodeId node) const { return places_[node.index()].issued; }

 private:
  static constexpr uint64_t kNoClock = UINT64_MAX;
  struct Place {
    uint32_t stream = 0;
    uint32_t position = 0;
    uint32_t issued = 0;
    uint64_t clock = kNoClock;  // first of the node's entries: positions + 1, by stream
  };

  template <typename StreamOf, typename NodeOf>
  void add(const std::vector<Program::Step>& steps, uint32_t width, uint32_t num_events,
           StreamOf stream_of, NodeOf node_of);

  std::vector<Place> places_;  // by NodeId
  std::vector<uint32_t> clocks_;
};

}  // namespace eddy
