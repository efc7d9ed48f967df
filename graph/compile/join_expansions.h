// join_expansions: a convolution by windows of one element and the depthwise convolution that alone
// reads what it makes become one operator, where that is large:
//
//   BlockedConv(1 x 1) ── BlockedConv(depthwise)   →   ExpandedConv
//
// The kernel makes both band by band, so that what lies between them, several times the image given
// (networks expand channels so), is never written to memory. Joined are nodes of lay_out_images.h
// for blocks, with constant weights, by strides of 1 and no padding in the first one, windows that
// reach into the image in the second, and nothing added, where what lies between is known to be of
// 1 MiB or more, which does not stay in a second-level cache.
//
// Takes the graph over; without such pairs it comes back as it is. Errors: those of building the
// graph. Cost: O(nodes).
#pragma once

#include <cstddef>

#include "graph/base/status.h"
#include "graph/ir/graph.h"

namespace eddy {

struct JoinedExpansions {
  Graph graph;
  size_t num_joined = 0;
};

Result<JoinedExpansions> join_expansions(Graph graph, const OpTable& ops);

}  // namespace eddy
