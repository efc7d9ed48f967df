// run_collective: what a rank gets from an operator that communicates, as a pure function of what
// all ranks of its group put in. The meaning of those operators, and the arithmetic of every world
// that carries them out in rank order.
//
//   AllReduce over three ranks: run_collective(c, {x0, x1, x2}, place, y) gives the same y for
//   each place: (x0 + x1) + x2, in float for 16-bit floats and rounded once; whole numbers wrap.
//   min and max of anything with a NaN are NaN; average divides the sum.
//
// Inputs stand in the order of the group, `place` is the rank's own in it. Root and group of
// Broadcast, Send and Recv are ranks: `root_place` is where the value comes from among the inputs.
// Views are dense, of one type and shape, the output of the shape that the schema says.
//
// Errors: invalid_argument where shapes or types differ between ranks, or parts are uneven.
// Cost: a pass over what the output needs. Threads: any.
#pragma once

#include <span>

#include "graph/ir/tensor_view.h"
#include "ops/schema/eddy/collective.h"

namespace eddy {

struct CollectiveCall {
  std::span<const TensorView> inputs;  // one for each rank of the group
  size_t place = 0;
  size_t root_place = 0;
};

Status run_collective(const Collective& collective, const CollectiveCall& call,
                      const TensorView& output);

}  // namespace eddy
