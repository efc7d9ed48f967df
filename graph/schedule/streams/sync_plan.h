// Sync plan: which nodes record an event, and which nodes wait for it.
//
// Waits are the exact minimum for this assignment and issue order, among wait sets that order
// nothing beyond the streams and the edges. Let H be the graph's edges plus, for each stream,
// its consecutive nodes. A wait set is enough if together with the streams it reaches all that H
// reaches, and its transitive reduction is unique; so the waits are the edges of H's reduction
// that no stream gives for free. One record serves all waits for the same node.
//
// Two ways, same result. Clocks: vector clocks in issue order; a node's parents are taken latest
// first, each is either covered already or worth a wait. Reduction: the reduction of H. Clocks
// suit few streams, and caps that make unrelated nodes share one; they may take 1 GiB.
//
// Contract: `dag` may be the graph or its transitive reduction (fewer edges, same plan).
// `issue_order` is topological. Events are numbered in issue order of the nodes that record
// them; records and waits are in issue order of their nodes, a node's waits by event.
// Cost: clocks O(edges + waits * streams) and streams * nodes * 4 bytes; else the cost of
// transitive_reduction.
// Source: Nimble, appendix A (theorem 3) for assignments with maximum logical concurrency.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/analysis/dag.h"
#include "graph/base/check.h"
#include "graph/schedule/streams/stream_assignment.h"

namespace eddy {

struct SyncPlan {
  struct Record {
    uint32_t event;
    uint32_t node;
    bool operator==(const Record&) const = default;
  };
  struct Wait {
    uint32_t node;
    uint32_t event;
    bool operator==(const Wait&) const = default;
  };
  std::vector<Record> records;  // records[i].event == i
  std::vector<Wait> waits;

  // The edge of the graph that a wait serves.
  Edge served_edge(const Wait& wait) const {
    EDDY_DCHECK(wait.event < records.size()) << "event " << wait.event << " is not recorded";
    return {records[wait.event].node, wait.node};
  }
  bool operator==(const SyncPlan&) const = default;
};

enum class SyncMethod { kAutomatic, kClocks, kReduction };

SyncPlan plan_syncs(const Dag& dag, const StreamAssignment& assignment,
                    std::span<const uint32_t> issue_order,
                    SyncMethod method = SyncMethod::kAutomatic);

}  // namespace eddy
