// What a graph goes through before and behind planning, so that it can run on several ranks.
//
//   check, then agree (decisions that ranks are to share become communication), then tie channels
//   … place, plan, prove as ever …
//   extract the skeleton, which RankSession::agree() compares
#pragma once

#include "graph/base/status.h"
#include "graph/ir/graph.h"
#include "graph/ir/op.h"
#include "graph/program/program.h"
#include "graph/proof/rank_skeleton.h"
#include "ops/schema/eddy/rank_rules.h"
#include "runtime/net/rank_options.h"

namespace eddy {

// Of a world that there is. Errors: names of inputs and nodes that there are not.
Result<RankWorld> rank_world_of(const RankOptions& options, const Graph& graph);
// Of one to be: for looking at plans.
Result<RankWorld> rank_world_of(const RankOptions& options, const Graph& graph, uint32_t rank,
                                uint32_t num_ranks);
// Whether any node communicates.
bool has_communication(const Graph& graph);
Result<Graph> prepare_for_ranks(Graph graph, const OpTable& ops, const RankWorld& world);
Result<RankSkeleton> skeleton_of(const Graph& graph, const Program& program,
                                 const RankWorld& world);

}  // namespace eddy
