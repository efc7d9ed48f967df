// RankOptions: over which ranks a session's graph communicates, and what the graph does not say.
//
//   SessionOptions options;
//   options.ranks.world = world;                  // world.h; null: one process, no communication
//   options.ranks.replicated = {"weights"};
//   options.ranks.agree["decode"] = {.decision = RankSkeleton::Decision::kAgreeAny};
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "ops/schema/eddy/rank_rules.h"

namespace eddy {

class World;

struct RankOptions {
  // Shared by sessions. All ranks make their sessions of a world in the same order, and each
  // submits the runs of a session in the same order; a priority of runs has no effect.
  std::shared_ptr<World> world = {};
  // Inputs that are equal on all ranks, by name: compared when a run begins.
  std::vector<std::string> replicated = {};
  // How the ranks that meet in a loop or case decide as one, by the node's name, where it is not
  // proved that they do anyway.
  std::map<std::string, RankWorld::Agree> agree = {};
  // All ranks have the same graph. Otherwise graphs may differ by rank, and of their values only
  // results of communication count as equal.
  bool is_one_graph = true;
  // Runs in flight that have communicators of their own; a further one waits for its turn.
  uint32_t num_run_slots = 2;
  // Signatures of all operations are compared as they start, not only those whose shapes are not
  // known before.
  bool check_ranks = false;
};

}  // namespace eddy
