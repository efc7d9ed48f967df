// Planning in one call, and queues that run a command list, for the tests of graph/schedule.
#pragma once

#include <cstdint>
#include <vector>

#include "graph/analysis/dag.h"
#include "graph/base/random.h"
#include "graph/program/program.h"
#include "graph/proof/happens_before.h"
#include "graph/schedule/streams/stream_assignment.h"
#include "graph/schedule/streams/sync_plan.h"

namespace eddy::testing {

struct PlannedDag {
  std::vector<uint32_t> order;
  StreamAssignment streams;
  SyncPlan syncs;
  std::vector<Program::Step> commands;
};

// Issue order by rank (by costs if the options have them), then the options' policy.
PlannedDag plan(const Dag& dag, const StreamOptions& options = {});

// Against all edges of the graph.
Proof prove(const Dag& dag, const std::vector<Program::Step>& commands);

// Streams, by the node with the lowest id on them: {{0, 1, 3}, {2}}.
std::vector<std::vector<uint32_t>> nodes_of_streams(const StreamAssignment& streams);

// Random devices for each node: one of `num_devices`, some nodes on several.
struct Placement {
  std::vector<uint32_t> devices;
  std::vector<NodeDevice> further;
};
Placement random_placement(Random& random, uint32_t num_nodes, uint32_t num_devices);

// Runs the commands as in-order queues that advance in a random order, a joint launch when all of
// its streams have reached it. Returns for each node when it started and ended, in steps; empty
// if the queues got stuck. Waits for unrecorded events pass, as devices let them.
struct NodeTimes {
  uint64_t start;
  uint64_t end;
};
std::vector<NodeTimes> run_queues(uint32_t num_nodes, const std::vector<Program::Step>& commands,
                                  Random& random);

}  // namespace eddy::testing
