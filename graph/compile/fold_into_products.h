// fold_into_products: what stands around a matrix product or convolution becomes part of it,
// eddy.PermutedMatMul or eddy.ConvRelu.
//
//   Transpose ─┐                                   a, b: axes in the order of perm_a, perm_b
//              MatMul ── Transpose              →  the result's axes in that of perm_y
//   Transpose ─┘
//   MatMul ── Add(row) ── Add(same shape)       →  bias and addend
//   Conv ── Add(same shape) ── Relu             →  addend; Relu at last
//
// For devices that read strided matrices and add what is given for nothing, and pay for each
// launch: a head's queries, keys and values lie as the projections made them, and a projection's
// bias and residual need no pass over memory. Folded are nodes of the device beside a product of
// floats of known sizes, in the same region, whose result nothing else reads; a transposition only
// where the device's library still finds one matrix after the other (at most one axis of matrices,
// neighbours within them), an Add only where the bias is constant and where no elementwise node
// reads the sum, for fuse() makes one kernel of both then. A convolution has a constant bias, and
// with or without the Add a Relu.
//
// On the CPU transpositions are folded, of any axes of matrices and of unknown sizes, beside
// products of two floats that are no constants, for of those it keeps packings; and a Relu behind
// products by groups of channels (windows of one element). Each spares a pass over memory. The
// CPU's kernels make the same bits.
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
