// GraphReads: what the nodes of a graph read of other regions, and in which region it is sent
// (graph_costs.h).
//
// A carried value has two origins: what its loop begins with, and what makes the next one. Where
// the next one is another value that the loop carries, it is a turn behind that: what ends such a
// chain makes them all. Values that only follow one another are there from the start.
//
// A read goes outwards from its reader's region, until it comes to the region that made the tensor,
// or to one that runs after that each time: a branch, or an `after` that reads of its `before`.
// There it is sent. At the border of a loop carried values become their origins: those that the
// loop itself makes are sent at the end of each turn, and all others go on outwards. Reads of the
// same operator that are alike in one region are one.
//
// Borrows graph and costs; strategies are not read. Errors: none. Threads: const access from any.
// Cost: O(depth * uses) to make one, then a look-up each.
#pragma once

#include <map>
#include <set>
#include <unordered_map>
#include <utility>
#include <vector>

#include "graph/ir/control_view.h"
#include "graph/strategy/scenarios/graph_costs.h"

namespace eddy {

// A tensor that is sent in a region. It was made before the region began if not in it.
struct RegionSend {
  ValueId source;
  NodeId reader;                              // of the region, or inside one of its nodes
  const OuterInput* input_or_null = nullptr;  // of an operator; null: a loop or case reads it
  bool is_carried = false;                    // read in the next turn
};

class GraphReads {
 public:
  GraphReads(const Graph& graph, const GraphCosts& costs);

  // Whether a node of its region, or of one in it, reads the node.
  bool is_read(NodeId node) const { return is_read_[node.index()]; }
  // Sources outside a loop or case that it or anything in it reads.
  const std::set<ValueId>& outside(NodeId control) const { return reads_.at(control).all; }
  // In the order in which they are sent.
  const std::vector<RegionSend>& sends(RegionId region) const { return sends_[region.index()]; }

 private:
  struct Reads {
    std::set<ValueId> all;
    std::set<ValueId> by_operators;  // by whichever carried values
  };
  struct Origins {
    ValueId initial;
    ValueId next;  // at the end of a chain
  };
  using Known = std::map<std::pair<ValueId, NodeId>, std::vector<const OuterInput*>>;

  void add_origins(const LoopView& loop);
  std::vector<ValueId> origins(NodeId loop, ValueId source) const;
  bool is_made_in(ValueId source, NodeId loop) const;
  Reads reads_of(NodeId node);
  void add_sends(RegionId region);
  void send_outwards(RegionSend send, RegionId region);
  void send_carried(NodeId loop);
  bool is_served_inside(RegionId region, RegionId maker) const;
  bool reads_within(NodeId loop, const RegionSend& send) const;
  bool add_known(RegionId region, const RegionSend& send);

  const Graph& graph_;
  const GraphCosts& costs_;
  std::vector<bool> is_read_;
  std::unordered_map<NodeId, Reads> reads_;                      // of loops and cases
  std::unordered_map<ValueId, Origins> origins_;                 // of carried values
  std::unordered_map<NodeId, std::vector<RegionSend>> carried_;  // by loop
  std::vector<Known> known_;                                     // by region
  std::vector<std::vector<RegionSend>> sends_;                   // by region
};

}  // namespace eddy
