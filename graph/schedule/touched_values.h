// TouchedValues: the names, blocks and streams that the commands of a plan touch, in their regions
// too: what open_loops asks of two commands to know whether one must wait for the other.
//
// A name stands for the one place of a value under any name that a loop's forwarding gives it.
// Values with one block in common count as one. The planner's own; the proof has its own way of
// saying the same (graph/proof), and they share nothing.
//
// Contract: the plan's memory has been laid out; graph and plan outlive the Toucher.
// Cost: that of find_storages, once; then linear in what is touched, blocks_meet in pairs of
// blocks.
#pragma once

#include <set>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/schedule/schedule.h"
#include "graph/schedule/storages.h"

namespace eddy {

struct TouchedValues {
  std::set<uint32_t> reads, defines;             // names
  std::set<uint32_t> block_reads, block_writes;  // values with blocks, the first with the same
  std::set<uint32_t> streams;                    // of the machine, inside
};

bool meet(const std::set<uint32_t>& a, const std::set<uint32_t>& b);

class Toucher {
 public:
  Toucher(const Graph& graph, const Schedule& plan);

  // `is_taken`: by a reference of the reader's own.
  void read(ValueId value, TouchedValues& touched, bool is_taken = false) const;
  void read_bytes(ValueId value, TouchedValues& touched) const;
  void define(ValueId value, TouchedValues& touched) const;
  void node(NodeId id, TouchedValues& touched, const std::set<ValueId>& taken = {}) const;
  void region(RegionId id, TouchedValues& touched) const;

  bool blocks_meet(const std::set<uint32_t>& a, const std::set<uint32_t>& b) const;

 private:
  // A further name for the value: its bytes are touched by who reads it under that.
  void hand_on(ValueId value, TouchedValues& touched) const;
  bool is_result_read(RegionId region, size_t index) const;
  static bool blocks_meet(const ValueMemory& a, const ValueMemory& b);

  static constexpr uint32_t kNoBlock = UINT32_MAX;

  const Graph& graph_;
  const Schedule& plan_;
  const Storages storages_;
  std::vector<uint32_t> block_;  // by value: the first value with the same block
};

}  // namespace eddy
