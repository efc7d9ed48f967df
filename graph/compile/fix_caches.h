// fix_caches: a cache that a loop makes longer by a row a round, as a buffer of its full length and
// a word that counts the rounds.
//
//   while, at most n rounds:             while, at most n rounds:
//     cache' = Concat(cache, row)          cache' = Where(place == count, row, cache)
//     s = Softmax(cache' . q)        =>    s = Softmax(Where(place <= count, cache' . q, -inf))
//   out = cache                          out = Slice(cache, 0, first + count)
//
// For devices that record what they launch: each round has the same shapes then.
//
// A cache is a carried tensor, of known shape at first, whose next value is Concat(cache, row) in
// `after`; the row is one long along that axis, and nothing else reads the old cache. What is made
// of the longer one must end within the round, by nodes that are understood: functions of single
// floats, Transpose, MatMul that keeps the axis or sums along it in both inputs, and Softmax. What
// stands behind the length is anything; where it would be summed up, zeros (-inf before a Softmax)
// stand there instead.
//
// Left alone is a loop with another reader of its caches, with another carried value of unknown
// shape, with rounds that no constant bounds (a trip limit or find_trip_rule's bound, or the Min of
// a constant and others), or with a cache larger than most_bytes: a round writes all of each.
//
// Values are the same within rounding: sums get zeros at their end, so where they are added up in
// order, the same bits. Takes the graph over; a graph without such loops comes back as it is.
// Errors: those of building the graph. Cost: O(nodes), a loop's depth times.
// Source: static caches of decoders, for which models are rewritten by hand (XLA, CUDA graphs).
#pragma once

#include <string>
#include <vector>

#include "graph/base/status.h"
#include "graph/ir/graph.h"

namespace eddy {

struct FixCachesOptions {
  std::string device = "cuda";  // placement hint of the nodes that count and compare
  int64_t most_bytes = 4 << 20;
};

struct FixedCaches {
  Graph graph;
  std::vector<std::string> loops;  // paths of those that were changed
};

Result<FixedCaches> fix_caches(Graph graph, const OpTable& ops, const FixCachesOptions& options);

}  // namespace eddy
