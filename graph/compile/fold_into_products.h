// fold_into_products: what stands around a matrix product or convolution becomes part of it,
// eddy.PermutedMatMul, eddy.SplitMatMul, eddy.ConvRelu or eddy.SwappedConv.
//
//   Transpose ─┐                                   a, b: axes in the order of perm_a, perm_b, or
//              MatMul ── Transpose              →  where place_a, place_b say; the result's axes in
//   Transpose ─┘                                   the order of perm_y
//   MatMul ── Add(row) ── Add(same shape)       →  bias and addend
//   Conv ── Add(same shape) ── Relu             →  addend; Relu at last
//   MatMul ── Add(row) ── Split                 →  eddy.SplitMatMul
//
// For devices that read strided matrices, scale sums and add to them for nothing, and pay for each
// launch. Folded are nodes of the device beside a product of floats of known sizes, in its region.
// An operand is read through whatever moves it or scales it by a constant (strided_place.h), where
// that spares a launch and at most one axis of matrices is left. An Add is folded where nothing
// else reads what it adds to, the bias is constant and nothing elementwise reads the sum (fuse()
// makes one kernel of both). A convolution has a constant bias and a Relu.
// On the CPU, where each spares a pass over memory and keeps all bits but a swapped convolution's:
// Transposes of products of two floats that are no constants, of any sizes, and a Mul by one number
// between the two, which comes first then; swaps of the first two axes all around a convolution; a
// Relu behind groups of windows of one element; a Split of columns into whole panels.
//
// Takes the graph over; a graph without such products comes back as it is. `value_devices` as in
// place.h. Errors: those of building the graph. Cost: O(nodes).
// Source: Tillet et al., and CUTLASS, call what is added behind a product its epilogue.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "graph/base/status.h"
#include "graph/ir/graph.h"

namespace eddy {

struct FoldIntoProductsOptions {
  std::string device = "cuda";  // empty: the CPU
  // Whether fuse() could make the node part of a kernel; not asked for the CPU.
  std::function<bool(const Graph& graph, NodeId node)> is_elementwise = {};
  int64_t panel_columns = 0;  // of matrices as the CPU packs them; 0: no product is split
};

struct FoldedProducts {
  Graph graph;
  std::vector<uint32_t> value_devices;
  size_t num_folded = 0;  // nodes that became part of another
};

Result<FoldedProducts> fold_into_products(Graph graph, const OpTable& ops,
                                          std::vector<uint32_t> value_devices,
                                          const FoldIntoProductsOptions& options);

}  // namespace eddy
