// What the standard operators mean to graph/ranks: its RankRules and TieRules.
//
//   EDDY_RETURN_IF_ERROR(check_communication(graph, world));
//   const RankRules rules = standard_rank_rules(world);
//   EDDY_ASSIGN_OR_RETURN(graph, agree_decisions(std::move(graph), ops, rules,
//                                                standard_agree_rules()));
//   EDDY_ASSIGN_OR_RETURN(graph, tie_channels(std::move(graph), ops, rules,
//                                             standard_tie_rules(world)));
//
// A group's order says which part is whose, so one that is not ascending is part of the kind. A
// message's channel has two ranks, so ranks that neither send nor receive never meet in it. An
// operation over one rank sends nothing. Results are equal where the operator makes them so;
// sums, products and averages of `order` any are not, as MPI does not promise it.
//
// How the ranks of a loop or case agree says an Agree on its decision, which files have as metadata
// of the node (graph/io/EDDY_DOMAIN.md), or else RankWorld, by the node's name.
//
// Ownership: the rules hold a copy of the world. Threads: pure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "graph/base/status.h"
#include "graph/ranks/agree_decisions.h"
#include "graph/ranks/communication.h"
#include "graph/ranks/tie_channels.h"

namespace eddy {

// One rank among all, and what their graphs do not say.
struct RankWorld {
  // Where ranks agree on decisions; graphs use smaller numbers.
  static constexpr uint32_t kAgreeChannel = UINT32_MAX;

  struct Agree {
    RankSkeleton::Decision decision = RankSkeleton::Decision::kVarying;
    std::vector<uint32_t> group = {};  // ascending; empty: all ranks
    uint32_t root = 0;
  };

  uint32_t rank = 0;
  uint32_t num_ranks = 1;
  std::vector<bool> replicated = {};            // by the graph's inputs; those missing are not
  std::map<std::string, Agree> agreement = {};  // by the node's name
  bool is_one_graph = true;
};

// Errors: invalid_argument with the node's path: a group or root with ranks that there are not, a
// group without this rank, `size` unlike the world, a message to itself.
Status check_communication(const Graph& graph, const RankWorld& world);

// For graphs that check_communication accepts.
RankRules standard_rank_rules(const RankWorld& world);
TieRules standard_tie_rules(const RankWorld& world);
// By AllReduce (and or min: all; or or max: any) and Broadcast.
AgreeRules standard_agree_rules();

}  // namespace eddy
