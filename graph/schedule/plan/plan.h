// Plan: the immutable result of planning a graph: its program (graph/program/program.h), which is
// what is proved, predicted and run, and beside it the facts for people and reports.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/program/program.h"
#include "graph/schedule/plan/memory_plan.h"

namespace eddy {

// Why a region's program is as it is; for people.
struct RegionPlan {
  std::vector<uint32_t> ranks;     // per node of Region::nodes: longest chain that follows
  std::vector<double> cost_ranks;  // the same in nanoseconds; empty unless ranked by costs
  // For a pipelined loop: waits for the iteration before that stand at the begin of `after`, by
  // event, each with the node that must not begin earlier.
  std::vector<std::pair<uint32_t, NodeId>> held_up;
};

struct Plan {
  Program program;                  // block r is region r; a name is a ValueId, or one retained
  std::vector<RegionPlan> regions;  // by RegionId
  uint32_t num_streams = 1;         // of the machine, over all regions
  uint32_t num_events = 0;
  // For a plan for several devices, else empty: their names (0 is the host's CPU), the device of
  // each of the machine's streams, and the device in whose memory each value is, by ValueId.
  std::vector<std::string> devices;
  std::vector<uint32_t> stream_devices;
  std::vector<uint32_t> value_devices;
  MemoryPlan memory;                 // why values have the blocks that the program gives them
  std::string assignment;            // "rank", "matching", "serial": for reports
  std::vector<std::string> notices;  // one line each: why it was planned this way
  bool is_proved = false;            // by prove_plan, or its equal; a session runs nothing else
};

// The graph's node that a step launches, runs as loop or case, tests, advances or retains for.
NodeId node_of(const Program& program, const Program::Step& step);

// The value behind a name: itself, or what a stream retains under that name.
ValueId value_of_name(const Graph& graph, const Program& program, uint32_t name);

}  // namespace eddy
