// open_samples: a graph that was made for one number of samples becomes one for any.
//
// Models are often stored for a fixed batch: x: float[64,3,224,224]. Where the first dimension of
// all inputs that have dimensions is one and the same number, they get `name` there instead, and
// all other types are inferred anew. Whether samples then have an influence on another is for
// find_batch_axes to decide, of the graph that comes out.
//
// Errors: kUnsupported where the inputs' first dimensions are not one number, with those they have;
// those of inference, at a node that takes the one number of samples only, as a Reshape to
// constant sizes may. Threads: pure. Cost: O(nodes).
#pragma once

#include <string>

#include "graph/base/status.h"
#include "graph/ir/graph.h"
#include "graph/ir/op.h"

namespace eddy {

Result<Graph> open_samples(Graph graph, const OpTable& ops, const std::string& name);

}  // namespace eddy
