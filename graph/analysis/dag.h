// Dag: a directed acyclic graph over the nodes 0 .. num_nodes-1, immutable, in compressed rows.
//
// Both directions are stored; each list is ascending and free of duplicates, so two Dags made
// from the same edges in any order are equal. All passes of this folder read this form.
//
// Errors of build_dag (invalid argument, each names the edge): an id out of range, a self edge,
// a cycle (with the nodes on it). Duplicate edges are merged silently.
// Threads: immutable, share freely.
// Cost: build O(nodes + edges) by counting sort; memory 8 bytes a node and 8 an edge.
#pragma once

#include <compare>
#include <cstdint>
#include <span>
#include <vector>

#include "graph/base/check.h"
#include "graph/base/status.h"

namespace eddy {

struct Edge {
  uint32_t from;
  uint32_t to;
  auto operator<=>(const Edge&) const = default;
};

class Dag {
 public:
  Dag() = default;

  // For edges known to be in range and acyclic (a subset of another Dag's closure); duplicates
  // are merged. Anything from outside goes through build_dag.
  static Dag from_acyclic_edges(uint32_t num_nodes, std::span<const Edge> edges);

  uint32_t num_nodes() const { return static_cast<uint32_t>(child_begin_.size()) - 1; }
  uint32_t num_edges() const { return static_cast<uint32_t>(children_.size()); }

  // Ascending.
  std::span<const uint32_t> children(uint32_t node) const {
    return slice(child_begin_, children_, node);
  }
  std::span<const uint32_t> parents(uint32_t node) const {
    return slice(parent_begin_, parents_, node);
  }

  // The number of edges before the first of parents(node), when edges are counted by target.
  uint32_t parent_offset(uint32_t node) const { return parent_begin_[node]; }

  // Sorted by (from, to).
  std::vector<Edge> edges() const;

  bool operator==(const Dag&) const = default;

 private:
  static std::span<const uint32_t> slice(const std::vector<uint32_t>& begin,
                                         const std::vector<uint32_t>& items, uint32_t node) {
    EDDY_DCHECK(size_t{node} + 1 < begin.size()) << "node " << node << " of " << begin.size() - 1;
    return {items.data() + begin[node], items.data() + begin[node + 1]};
  }

  std::vector<uint32_t> child_begin_ = {0};  // num_nodes + 1 offsets into children_
  std::vector<uint32_t> children_;
  std::vector<uint32_t> parent_begin_ = {0};
  std::vector<uint32_t> parents_;
};

// At most 2^32 - 2 nodes and as many edges.
Result<Dag> build_dag(uint32_t num_nodes, std::span<const Edge> edges);

// The same graph with node v renamed to new_id[v], a permutation.
Dag relabel(const Dag& dag, std::span<const uint32_t> new_id);

}  // namespace eddy
