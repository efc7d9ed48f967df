// What graph/ranks needs to know of operators, injected: graph/ names none.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "graph/base/status.h"
#include "graph/ir/graph.h"
#include "graph/proof/rank_skeleton.h"

namespace eddy {

// What a node with communication does, on this rank.
struct Communication {
  std::string kind = {};               // "AllReduce"; of Send and Recv alike: one text
  RankSkeleton::Channel channel = {};  // of this rank among others
  std::string reduction = {};
  uint32_t root = RankSkeleton::kNone;
  uint32_t from = RankSkeleton::kNone;  // of messages
  uint32_t to = RankSkeleton::kNone;
  ValueId moved = {};          // whose type is compared; none: nothing is moved
  bool has_own_shape = false;  // each rank moves another: of `moved`, only the element is compared
  std::string tag = {};        // of messages: tells several alike apart
  bool makes_equal = false;    // its results are equal on all ranks of its group
};

// How the ranks in a loop or case decide as one.
struct Agreement {
  RankSkeleton::Decision decision = RankSkeleton::Decision::kVarying;  // or kAgree…
  RankSkeleton::Channel channel = {};                                  // of all ranks that do
  uint32_t root = RankSkeleton::kNone;
};

struct RankRules {
  // Of an exec node; none: it communicates with no other rank.
  std::function<std::optional<Communication>(const Node&)> communication;
  // Of an exec node without communication: its results may differ where its inputs are equal
  // (the rank's number, host functions, random numbers without a seed).
  std::function<bool(const Node&)> is_varying;
  // By the graph's inputs: equal on all ranks.
  std::function<bool(size_t)> is_replicated;
  // Of a loop or case whose decision has no mark.
  std::function<Agreement(const Node&)> agreement;
  // Of an exec node that does no more than mark the decision that it gives on: how ranks agree on
  // it. None: it is no such node. Empty: there are no marks.
  std::function<std::optional<Agreement>(const Node&)> mark = {};
  // All ranks have this graph and the same kernels. Otherwise only results of communication are
  // equal, and nothing that is computed from them.
  bool is_one_graph = true;
};

// How the ranks in a loop or case decide as one: by the mark on its decision, or what the rules
// say.
Agreement find_agreement(const Graph& graph, const Node& control, const RankRules& rules);

// "all", "any", "root" of an attribute `agree`; empty: varying. Else an error.
Result<RankSkeleton::Decision> parse_agree(std::string_view text);

}  // namespace eddy
