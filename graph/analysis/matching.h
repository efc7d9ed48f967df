// Maximum matching in a bipartite graph, by Hopcroft and Karp with a greedy start.
//
// Contract: rows of `graph` list the right nodes that a left node may be matched with. `start`,
// if given, is a valid matching; every node it matches stays matched (partners may change).
// Cost: O(edges * sqrt(nodes)); near linear in practice. No recursion.
// Source: Hopcroft, Karp, "An n^5/2 algorithm for maximum matchings in bipartite graphs", 1973.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "graph/base/check.h"

namespace eddy {

struct Bipartite {
  uint32_t num_right = 0;
  std::vector<uint32_t> begin = {0};  // num_left + 1 offsets into targets
  std::vector<uint32_t> targets;

  uint32_t num_left() const { return static_cast<uint32_t>(begin.size()) - 1; }
  std::span<const uint32_t> row(uint32_t left) const {
    EDDY_DCHECK(left < num_left()) << "row " << left << " of " << num_left();
    return {targets.data() + begin[left], targets.data() + begin[left + 1]};
  }
  void end_row() { begin.push_back(static_cast<uint32_t>(targets.size())); }
};

struct Matching {
  static constexpr uint32_t kUnmatched = UINT32_MAX;
  std::vector<uint32_t> right_of_left;
  std::vector<uint32_t> left_of_right;
  uint32_t size = 0;
};

Matching maximum_matching(const Bipartite& graph);
Matching maximum_matching(const Bipartite& graph, Matching start);

// A minimum vertex cover by König's theorem: as many nodes as `maximum` has pairs, each edge
// with at least one end in it, no unmatched node in it. `maximum` is a maximum matching.
struct VertexCover {
  std::vector<bool> left;
  std::vector<bool> right;
};
VertexCover minimum_vertex_cover(const Bipartite& graph, const Matching& maximum);

}  // namespace eddy
