// AccessSet: the names, blocks and streams that the commands of a plan touch, in their regions
// too: what pipeline_loops compares of two commands to decide whether one must wait for the other.
//
// A name stands for the one place of a value under any name that a loop's forwarding gives it.
// Values with one block in common count as one. Only the planner uses it: the proof computes the
// same by other means (graph/proof), and the two share nothing.
//
// Contract: the plan's memory has been laid out; graph and plan outlive the AccessCollector.
// Cost: linear in what is touched, blocks_meet in pairs of blocks.
#pragma once

#include <set>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/schedule/plan/schedule.h"

namespace eddy {

struct AccessSet {
  std::set<uint32_t> reads, defines;             // names
  std::set<uint32_t> block_reads, block_writes;  // values with blocks, the first with the same
  std::set<uint32_t> streams;                    // of the machine, inside
};

bool meet(const std::set<uint32_t>& a, const std::set<uint32_t>& b);

class AccessCollector {
 public:
  AccessCollector(const Graph& graph, const Schedule& plan);

  // `is_taken`: by a reference of the reader's own.
  void read(ValueId value, AccessSet& touched, bool is_taken = false) const;
  void read_bytes(ValueId value, AccessSet& touched) const;
  void define(ValueId value, AccessSet& touched) const;
  void node(NodeId id, AccessSet& touched, const std::set<ValueId>& taken = {}) const;
  void region(RegionId id, AccessSet& touched) const;
  // What the loop copies between two iterations.
  void advance(NodeId loop, AccessSet& touched) const;

  // Of `loop`, whose iterations some alternate with: `a` in one iteration, `b` in the next, or any
  // place of either (none).
  bool blocks_meet(const std::set<uint32_t>& a, const std::set<uint32_t>& b, NodeId loop) const;

 private:
  // Adds a further name for the value: a reader under that name touches its bytes.
  void hand_on(ValueId value, AccessSet& touched) const;
  void write_bytes(ValueId value, AccessSet& touched) const;
  void copy(ValueId to, ValueId from, Program::Moment moment, NodeId loop,
            AccessSet& touched) const;
  void copies(NodeId id, AccessSet& touched) const;
  bool is_result_read(RegionId region, size_t index) const;
  static bool blocks_meet(const ValueMemory& a, const ValueMemory& b, NodeId loop);

  static constexpr uint32_t kNoBlock = UINT32_MAX;

  const Graph& graph_;
  const Schedule& plan_;
  std::vector<uint32_t> block_;  // by value: the first value with the same block
};

}  // namespace eddy
