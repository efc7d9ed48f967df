#include "runtime/net/rank_graph.h"

#include <algorithm>
#include <utility>

#include "graph/ranks/agree_decisions.h"
#include "graph/ranks/skeleton.h"
#include "graph/ranks/tie_channels.h"
#include "graph/ranks/uniform.h"
#include "runtime/net/net_kernel.h"
#include "runtime/net/world.h"

namespace eddy {

Result<RankWorld> rank_world_of(const RankOptions& options, const Graph& graph) {
  return rank_world_of(options, graph, options.world->rank(), options.world->num_ranks());
}

Result<RankWorld> rank_world_of(const RankOptions& options, const Graph& graph, uint32_t rank,
                                uint32_t num_ranks) {
  if (options.num_run_slots == 0) {
    return invalid_argument("num_run_slots is 0; a run needs one");
  }
  RankWorld world;
  world.rank = rank;
  world.num_ranks = num_ranks;
  world.agreement = options.agree;
  world.is_one_graph = options.is_one_graph;
  world.replicated.resize(graph.inputs().size(), false);
  for (const std::string& name : options.replicated) {
    const auto is_it = [&](ValueId input) { return graph.value(input).name == name; };
    const auto found = std::ranges::find_if(graph.inputs(), is_it);
    if (found == graph.inputs().end()) {
      return not_found("there is no input '" + name + "' to be equal on all ranks");
    }
    world.replicated[static_cast<size_t>(found - graph.inputs().begin())] = true;
  }
  return world;
}

bool has_communication(const Graph& graph) {
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    const Node& node = graph.node(NodeId(n));
    if (node.kind == NodeKind::kExec && is_collective(*node.op)) return true;
  }
  return false;
}

Result<Graph> prepare_for_ranks(Graph graph, const OpTable& ops, const RankWorld& world) {
  EDDY_RETURN_IF_ERROR(check_communication(graph, world));
  const RankRules rules = standard_rank_rules(world);
  EDDY_ASSIGN_OR_RETURN(graph,
                        agree_decisions(std::move(graph), ops, rules, standard_agree_rules()));
  return tie_channels(std::move(graph), ops, rules, standard_tie_rules(world));
}

Result<RankSkeleton> skeleton_of(const Graph& graph, const Program& program,
                                 const RankWorld& world) {
  const RankRules rules = standard_rank_rules(world);
  EDDY_ASSIGN_OR_RETURN(const Decisions decisions, find_decisions(graph, rules));
  return extract_skeleton(graph, program, rules, decisions);
}

}  // namespace eddy
