// Issue order: the one total order in which the host issues a DAG's nodes.
//
// Highest rank first; equal ranks by id. With costs: highest cost rank, then highest unit rank
// (so that chains of free nodes stay in order), then lowest id. This is a topological order, and
// the order of list scheduling: nothing that others wait for stands behind a shorter chain.
//
// Contract: ranks as in graph/analysis/rank.h; `cost_ranks` may be empty.
// Cost: O(nodes + longest chain), with costs O(nodes log nodes).
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace eddy {

std::vector<uint32_t> issue_order(std::span<const uint32_t> unit_ranks,
                                  std::span<const double> cost_ranks = {});

}  // namespace eddy
