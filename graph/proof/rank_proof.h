// prove_ranks: that ranks which issue what their skeletons say neither mix up operations nor
// deadlock, under any timing. The README of this folder says why the three claims together suffice.
//
//   Match      In each region, the operations of each channel (of Send and Recv: of each source and
//              target) are a chain on every rank, and the chains are equal on all of its ranks. A
//              loop or case stands in the chains of all channels that it holds, so it matches on
//              all ranks that meet in it; ranks that never meet loop apart. From one iteration of a
//              pipelined loop to the next, chains go on.
//   No cycle   Each region's joint graph is acyclic: every rank's own order, and from the posts of
//              an operation on all ranks to each of its completions (of a loop or case: from all
//              entries to each exit). Iterations of a pipelined loop overlap, yet all edges lead
//              within one or into a later one, so one acyclic iteration is enough where chains go
//              on.
//   Decisions  A loop or case that several ranks meet in is decided alike: uniform, or agreed over
//              exactly these ranks.
//
// Exact, but for loops and cases: an exit counts as waiting for all ranks that meet inside, also
// for those that it would reach only through others.
//
// Errors: none; spoilt skeletons are unsafe. At most kMaxViolations are kept, each one line in
// words: "rank 0 waits in AllReduce_3 for rank 1, which waits in Recv_7 for rank 0".
// Cost: near linear in vertices and edges, times the number of channels at worst. No recursion.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "graph/proof/rank_skeleton.h"

namespace eddy {

struct RankProof {
  static constexpr size_t kMaxViolations = 8;
  static constexpr uint32_t kMaxDepth = 64;  // of nested regions

  std::vector<std::string> violations;
  bool is_safe() const { return violations.empty(); }
};

// By rank, all of one world.
RankProof prove_ranks(std::span<const RankSkeleton> skeletons);

// What is spoilt in this rank's skeleton alone; empty: nothing. prove_ranks asks it first.
std::string find_spoilt(const RankSkeleton& skeleton, uint32_t rank, size_t num_ranks);

}  // namespace eddy
