// StridedPlace: where the elements of a value lie in another one, of which the value is made by
// nodes that compute nothing. For readers that take strides, which need none of these nodes.
//
//   find_place(graph, value, may_pass)
//
// Passed are, as far up as `may_pass` and the strides allow: views, Transpose, Split, Gather of one
// constant index, Slice by constants with steps forwards, and Mul and Div by one constant float,
// which become the place's factor. All are of known sizes, with at least one element.
// What is not passed is the root, which lies dense.
//
// Pure. Cost: O(nodes passed).
// Source: the strides of a reshaped array that is not copied are found as NumPy does it.
#pragma once

#include <functional>
#include <vector>

#include "graph/ir/graph.h"

namespace eddy {

struct StridedPlace {
  ValueId root;
  int64_t first = 0;  // elements
  std::vector<int64_t> dims, strides;
  double factor = 1;
  std::vector<NodeId> passed = {};  // from the value to the root

  bool is_dense() const;  // row by row, from the first element on
};

StridedPlace find_place(const Graph& graph, ValueId value,
                        const std::function<bool(NodeId)>& may_pass);

}  // namespace eddy
