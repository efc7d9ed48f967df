// The options of everything that runs or plans a model over several ranks.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "graph/base/status.h"
#include "graph/ir/graph.h"
#include "ops/schema/rank_rules.h"

namespace eddy {

struct RankArguments {
  uint32_t num_ranks = 0;               // 0: not given
  std::vector<std::string> replicated;  // names of inputs
  std::vector<std::string> agree;       // NAME=all, any, root or root:R
};

// --ranks, --replicated, --agree.
void add_rank_options(CLI::App& app, RankArguments& arguments);

// MODEL with {rank} as the rank's number: ranks may have files of their own.
bool names_file_of_rank(const std::string& model);
std::string file_of_rank(const std::string& model, uint32_t rank);

// By the names of loops and branches.
Result<std::map<std::string, RankWorld::Agree>> parse_agreements(const RankArguments& arguments);

// What this rank knows of its world. Errors: --replicated or --agree names what the graph lacks.
Result<RankWorld> make_rank_world(const RankArguments& arguments, const std::string& model,
                                  const Graph& graph, uint32_t rank);

}  // namespace eddy
