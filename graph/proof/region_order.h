// RegionOrder: the steps of one block as prove_order takes them, and every pair of them that must
// be ordered, with the reason.
//
// Part of the program's proof: of a plain block once through, of a pipelined loop's `after` two
// iterations in a row (back_edge_order.h). Nodes are the steps that do something, in the order of
// issue. What they require depends on no record or wait, so that lists which differ in those only
// are proved one after the other against the same requirements.
//
//   RegionOrder order(program, num_nodes);
//   order.add_node(step, node, touched); …
//   order.require_bytes(loop); order.require_streams(); order.require(a, b, reason);
//   order.begin_list();
//   order.list_node(); order.list_wait(stream, event); order.list_node(); …
//   order.prove(region, found)
//
// Cost: requiring is O(log spans) for each access; proving costs what prove_order costs.
#pragma once

#include <functional>
#include <vector>

#include "graph/base/numbering.h"
#include "graph/proof/happens_before.h"
#include "graph/proof/touched.h"

namespace eddy {

class RegionOrder {
 public:
  static constexpr uint32_t kNone = ProgramViolation::kNone;

  // What a required pair is about.
  struct Reason {
    ProgramViolation::Kind kind = ProgramViolation::Kind::kUnordered;
    uint32_t name = kNone;
  };
  struct Node {
    Program::Step step;
    uint32_t id = kNone;  // the graph's node
    Touched touched = {};
    // In which iterations of the loop its names are read and written.
    uint32_t reads_in = 0;
    uint32_t writes_in = 0;
  };
  static constexpr uint32_t kAnyIteration = UINT32_MAX;

  // `num_nodes`: about so many will be added.
  RegionOrder(const Program& program, size_t num_nodes) : program_(program) {
    nodes_.reserve(num_nodes);
    required_.reserve(4 * num_nodes);
    reasons_.reserve(4 * num_nodes);
  }

  uint32_t add_node(const Program::Step& step, uint32_t id, Touched touched);
  uint32_t add_node(Node node);
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
  // In the order of issue, each byte's accesses follow each other. `loop`: whose block it is; names
  // that alternate with it stand where iterations say, from an even and from an odd one on.
  void require_bytes(uint32_t loop = kNone);
  // A stream that a loop or branch uses inside is its own while it runs.
  void require_streams();

  // The list that is proved: every node once, in their order, and records and waits between them.
  void begin_list();
  void list_node();
  void list_record(uint32_t stream, uint32_t event);
  void list_wait(uint32_t stream, uint32_t event);
  // Calls found(violation) for every pair that is not ordered, and what prove_order finds wrong,
  // while that returns true.
  void prove(uint32_t region, const std::function<bool(ProgramViolation)>& found) const;

 private:
  struct Lane {
    uint32_t first = kNone;  // nodes
    uint32_t last = kNone;
  };
  void require_bytes(uint32_t loop, uint32_t parity);
  uint32_t dense(uint32_t stream);
  Reason reason_of(uint32_t before, uint32_t after) const;

  const Program& program_;
  std::vector<Program::Step> listed_;
  uint32_t num_listed_nodes_ = 0;
  std::vector<Node> nodes_;
  std::vector<RequiredOrder> required_;
  std::vector<Reason> reasons_;  // of required_
  std::vector<Lane> lanes_;      // by dense stream
  Numbering<uint32_t> dense_;
};

}  // namespace eddy
