// RegionOrder: the commands of one region as prove_order takes them, and every pair of them that
// must be ordered, with the reason.
//
// Part of the nested proof: of a closed region once through, of an open loop's `after` two
// iterations in a row (two_iterations.h). Nodes are the commands that do something, in the order of
// issue.
//
//   RegionOrder order(commands);
//   order.add_node(command, node, touched); order.add_wait(stream, event); …
//   order.require_bytes(); order.require_streams(); order.require(a, b, reason);
//   order.prove(region, violations)
//
// Cost: requiring is O(log spans) for each access; proving is prove_order's.
#pragma once

#include <functional>
#include <unordered_map>
#include <vector>

#include "graph/proof/happens_before.h"
#include "graph/proof/touched.h"

namespace eddy {

class RegionOrder {
 public:
  static constexpr uint32_t kNone = NestedViolation::kNone;

  // What a required pair is about.
  struct Reason {
    NestedViolation::Kind kind = NestedViolation::Kind::kUnordered;
    uint32_t name = kNone;
  };
  struct Node {
    NestedCommand command;
    uint32_t id = kNone;  // the graph's node
    Touched touched = {};
    uint32_t iteration = 0;
  };

  explicit RegionOrder(const NestedCommands& commands) : commands_(commands) {}

  uint32_t add_node(const NestedCommand& command, uint32_t id, Touched touched,
                    uint32_t iteration = 0);
  void add_record(uint32_t stream, uint32_t event);
  void add_wait(uint32_t stream, uint32_t event);
  const std::vector<Node>& nodes() const { return nodes_; }
  uint32_t num_nodes() const { return static_cast<uint32_t>(nodes_.size()); }
  // Calls visit(first node, last node) for each stream that has nodes.
  template <typename Visit>
  void for_each_stream(Visit visit) const {
    for (const Lane& lane : lanes_) {
      if (lane.first != kNone) visit(lane.first, lane.last);
    }
  }

  // One node before the other, unless they are one, or there is none.
  void require(uint32_t before, uint32_t after, Reason reason);
  // In the order of issue, each byte's accesses follow each other.
  void require_bytes();
  // A stream that a loop or branch uses inside is its own while it runs.
  void require_streams();

  // Calls found(violation) for every pair that is not ordered, and what prove_order finds wrong.
  void prove(uint32_t region, const std::function<void(NestedViolation)>& found) const;

 private:
  struct Lane {
    uint32_t first = kNone;  // nodes
    uint32_t last = kNone;
  };
  uint32_t dense(uint32_t stream);

  const NestedCommands& commands_;
  std::vector<Command> listed_;
  std::vector<Node> nodes_;
  std::vector<RequiredOrder> required_;
  std::vector<Reason> reasons_;  // of required_
  std::vector<Lane> lanes_;      // by dense stream
  std::unordered_map<uint32_t, uint32_t> dense_;
};

}  // namespace eddy
