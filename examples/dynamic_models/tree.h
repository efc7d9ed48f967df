// A recursive auto-encoder over a binary tree: a parent is made of its two children, and judged
// by how well they can be made of it again (Socher et al. 2011).
//
// The tree comes as a program for a stack, children before parents: a leaf's number pushes that
// leaf, -1 folds the two on top. One loop runs the program; a case-of in it picks push or fold.
// A batch is of trees of one shape, with leaves of their own. Inputs `leaves` float[leaves, batch,
// hidden], `program` int64[nodes], `nodes`; outputs `rows` (every node's vectors), `loss`
// float[batch], `folds`.
#pragma once

#include "examples/dynamic_models/model.h"

namespace eddy::dynamic {

struct TreeSize {
  int64_t leaves = 33;  // of 65 nodes
  int64_t hidden = 256;
  int64_t batch = 1;
  uint64_t seed = 6;
};
Model make_tree(const TreeSize& size);

}  // namespace eddy::dynamic
