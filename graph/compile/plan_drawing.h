// A plan as something to look at: what plan_text, plan_dot and plan_svg show, with everything
// already looked up. Regions nest as the graph's do.
//
// Threads: pure. Cost: O(nodes + uses + commands).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/schedule/plan/plan.h"

namespace eddy {

struct DrawnRegion;

struct DrawnNode {
  std::string name;                  // "MatMul_3"
  std::string kind;                  // "MatMul", "while", "case-of"
  std::string note;                  // of a loop: how it is driven, and why
  std::vector<uint32_t> streams;     // of the machine: one, or several for a joint launch
  std::vector<std::string> devices;  // of a plan for several devices: of each stream, "cuda"
  std::string rank;                  // longest chain that follows: "3" nodes, or "250 ns"
  std::vector<DrawnRegion> regions;
};

struct DrawnWait {
  uint32_t event;
  uint32_t from;  // indices into DrawnRegion::nodes
  uint32_t to;
};

// A pipelined loop's next iteration waits for the tail of the last one.
struct DrawnNextWait {
  static constexpr uint32_t kTurn = UINT32_MAX;
  uint32_t event;
  uint32_t from;     // index into nodes: the one that records, or before which its stream retains
  uint32_t to;       // what it serves: index into nodes, or the turn between the iterations
  std::string text;  // the whole in words
};

struct DrawnRegion {
  std::string name;  // "after"; the root has the graph's
  std::string note;  // of a pipelined region: that it is, and what its streams retain
  bool is_ranked_by_costs = false;
  uint32_t num_streams = 1;  // that the region uses
  uint32_t num_records = 0;
  std::vector<DrawnNode> nodes;  // issue order
  // Events that nodes record, each with the index of its node.
  std::vector<std::pair<uint32_t, uint32_t>> records;
  std::vector<DrawnWait> waits;  // by `to`
  // Nodes that wait for the region's entry, and those that its exit waits for: indices into nodes.
  std::vector<uint32_t> entry_waits;
  std::vector<uint32_t> exit_waits;
  std::vector<DrawnNextWait> next_waits;
  // Dependences as pairs of indices into nodes.
  std::vector<std::pair<uint32_t, uint32_t>> edges;

  // Within one run of the region.
  uint64_t num_waits() const { return waits.size() + entry_waits.size() + exit_waits.size(); }
};

// "cuda", or of a joint launch "a+b"; empty: the plan is for one device.
std::string device_text(const DrawnNode& node);

// What is to be said of a loop or branch; may return nothing.
using NoteFunction = std::function<std::string(NodeId)>;

DrawnRegion draw_plan(const Graph& graph, const Plan& plan, const NoteFunction& note);
// One region, without notes on what is in it.
DrawnRegion draw_region(const Graph& graph, const Plan& plan, RegionId region);

// Nodes, records and waits of a region and all below it.
struct DrawnTotals {
  uint64_t regions = 0;
  uint64_t nodes = 0;
  uint64_t records = 0;
  uint64_t waits = 0;
};
DrawnTotals count_drawn(const DrawnRegion& region);

}  // namespace eddy
