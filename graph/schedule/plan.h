// Plan: the immutable result of planning a graph: for each region its streams, the order in which
// nodes are issued, and the records and waits that order streams against each other.
//
// Streams are numbered within a region: stream 0 is the stream of the region's control node (the
// caller's, for the root); the others belong to the region while it runs. A node that has regions
// stands in its parent's plan as one launch. Events are numbered within a region; each is
// recorded once and may be waited for several times, later in issue order.
//
// The commands alone say what is ordered; everything else is for people.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/ir/graph.h"
#include "graph/schedule/memory_plan.h"

namespace eddy {

struct PlanCommand {
  enum class Kind : uint8_t { kLaunch, kRecord, kWait };
  Kind kind = Kind::kLaunch;
  uint32_t stream = 0;
  NodeId node;         // kLaunch; kRecord and kWait: the node they follow or precede
  uint32_t event = 0;  // kRecord, kWait
};

struct RegionPlan {
  uint32_t num_streams = 1;
  uint32_t num_events = 0;
  std::vector<PlanCommand> commands;  // issue order
  std::vector<uint32_t> ranks;        // per node of Region::nodes: longest chain that follows
};

struct Plan {
  std::vector<RegionPlan> regions;  // by RegionId
  MemoryPlan memory;
  std::string assignment;           // "rank", "matching", "serial": for reports
  bool is_proved = false;             // set by prove_plan; the runtime runs nothing else
};

}  // namespace eddy
