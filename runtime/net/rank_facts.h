// RankFacts: what the ranks of a session compare before it runs, so that nothing is sent between
// ranks that differ.
//
// Compared are, in this order: Eddy's version, what carries the bytes, options, the graph, what
// else decides bits (libraries, vector instructions); then the skeletons are proved
// (graph/proof/rank_proof.h). Plans may differ, as bits do not depend on them. All ranks compare
// all, so each finds the same: one line that names a rank and what to do.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "graph/base/status.h"
#include "graph/proof/rank_skeleton.h"

namespace eddy {

struct RankFacts {
  std::string version = {};
  std::string carrier = {};
  std::string options = {};
  std::string graph = {};  // its fingerprint, before it is prepared; empty where graphs may differ
  std::string processor = {};  // and libraries: what decides bits besides
  RankSkeleton skeleton = {};
};

std::string write_facts(const RankFacts& facts);
Result<RankFacts> read_facts(std::string_view bytes);

// By rank.
Status compare_facts(std::span<const RankFacts> facts);
// The channels of all, ascending: numbered alike everywhere.
std::vector<RankSkeleton::Channel> all_channels(std::span<const RankFacts> facts);

}  // namespace eddy
