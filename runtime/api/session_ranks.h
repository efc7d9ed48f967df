// What making a session does beyond its own rank: the graph is prepared for several, and all ranks
// compare and prove before any of them runs (runtime/net/rank_session.h).
//
// Internal to runtime/api. All but waits_for_ranks: of a core that has ranks. Threads: the one that
// makes the session.
#pragma once

#include "graph/base/fingerprint.h"
#include "graph/ir/graph.h"
#include "ops/schema/eddy/rank_rules.h"
#include "runtime/api/session_core.h"

namespace eddy {

// The world as this rank sees it, and the graph before it is a rank's.
struct ForRanks {
  RankWorld world;
  Fingerprint graph;
};

// What waits for other ranks waits on a stream; another one goes on meanwhile, and may be what
// those wait for.
bool waits_for_ranks(const SessionCore& core);
// The graph as several ranks run it.
Result<Graph> prepare_ranks(SessionCore& core, Graph graph, ForRanks& ranks);
// Waits for the other ranks' sessions; from then on the scheduler polls their world.
Status agree_with_ranks(SessionCore& core, const ForRanks& ranks);

}  // namespace eddy
