// fold_into_products: what stands around a matrix product or convolution becomes part of it,
// eddy.PermutedMatMul, eddy.ConvRelu or eddy.SwappedConv.
//
//   Transpose ─┐                                   a, b: axes in the order of perm_a, perm_b, or
//              MatMul ── Transpose              →  where place_a, place_b say; the result's axes in
//   Transpose ─┘                                   the order of perm_y
//   MatMul ── Add(row) ── Add(same shape)       →  bias and addend
//   Conv ── Add(same shape) ── Relu             →  addend; Relu at last
//
// For devices that read strided matrices, scale sums and add to them for nothing, and pay for each
// launch: a head's queries, keys and values lie as one projection made them, and bias and residual
// need no pass. Folded are nodes of the device beside a product of floats of known sizes, in its
// region. An operand is read through whatever only moves it or scales it by a constant
// (strided_place.h), where that spares a launch and the library still finds one matrix after the
// other (at most one axis of matrices, neighbours within them). An Add is folded where nothing else
// reads what it adds to, the bias is constant and no elementwise node reads the sum (fuse() makes
// one kernel of both then). A convolution has a constant bias and a Relu, with or without the Add.
//
// On the CPU transpositions are folded, of any axes of matrices and of unknown sizes, beside
// products of two floats that are no constants (it packs constants); a Mul by one number between
// the two comes first then. So are those that swap the first two axes all around a convolution of
// one group (adjoints of weights), and a Relu behind products by groups of channels (windows of one
// element). Each spares a pass over memory; bits are kept, but by a swapped convolution.
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
