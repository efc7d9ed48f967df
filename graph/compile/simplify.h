// simplify: the same graph with everything decided that can be decided before it runs.
//
//   - symbolic dimensions get the sizes given, and types are inferred anew
//   - nodes whose inputs are constants are evaluated; so are those that read only shapes (Shape,
//     Size) of values whose shape is known
//   - a case-of with a constant selector becomes its branch
//   - Identity, Cast to the same type, reshapes to the same shape and idle Dropout disappear, as
//     do checks of functions that hold for all sizes (graph/ir/checked_call.h)
//   - large constant weights that are dequantized and multiplied stay in bytes: one operator
//     (eddy.DequantizeMatMul, where the table has it) does both
//   - constants of equal bytes share one place; equal nodes are computed once
//   - nodes whose results are never read disappear (host functions excepted)
//
// The graph is rebuilt from its inputs on, so each decision sees the ones before it. In loops the
// types of carried values are first taken to stay as they start; if the body proves otherwise it
// is rebuilt with wider ones.
//
// Takes the graph over: the new one owns its constants. Errors: kInvalidArgument for a shape that
// does not fit its input or names none; those of shape rules under the given sizes; those of
// `check`. Cost: O(nodes × depth of widening) plus what is evaluated, which is limited in bytes and
// in work by the graph alone, never by a clock: the same graph gives the same result anywhere.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "graph/base/status.h"
#include "graph/ir/graph.h"
#include "graph/ir/owned_tensor.h"

namespace eddy {

// Runs a node on known inputs; any failure leaves the node in the graph.
using EvaluateFunction = std::function<Result<std::vector<OwnedTensor>>(
    const Node& node, std::span<const TensorView> inputs)>;

struct SimplifyOptions {
  std::vector<std::pair<std::string, int64_t>> dims = {};  // sizes of symbols
  // Whole shapes of tensor inputs; they fix their inputs' symbols everywhere.
  std::vector<std::pair<std::string, Dims>> input_dims = {};
  EvaluateFunction evaluate = {};  // empty: only sizes are set
  // Larger results stay computed, not stored.
  size_t max_folded_bytes = size_t{64} << 20;
  // The limit of all results together, beside twice the bytes of the graph's own constants.
  size_t max_folded_bytes_in_all = size_t{64} << 20;
  // The limit of all evaluations together: elements read and written, or operations as the
  // operator's schema counts them where that is more; beside 16 for each byte of the graph's own
  // constants. What would exceed it is left to the run.
  double max_folded_work = 0x1p28;
  // Called before each node; a failure ends the pass and is its result. Empty: no check.
  std::function<Status()> check = {};
};

Result<Graph> simplify(Graph graph, const OpTable& ops, SimplifyOptions options);

}  // namespace eddy
