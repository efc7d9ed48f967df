// pack_before_loops: a matrix from outside of a loop that products in it read is laid out for them
// once, before the loop.
//
//   while: g ── Gemm{transB} ── …      →      R ── Transpose ──┐
//          R ──┘                              while: g ── Gemm ── …
//
//   while: h ── MatMul ── …            →      W ── PackMatrix ─┐
//          W ──┘                              while: h ── PackedMatMul ── …
//
// For the CPU. The weights of a graph that trains them are no constants, which kernels pack when
// they are bound: a product of many terms would pack them in each round, and one of few rows takes
// twice as long where B is turned over as where it lies as it is read.
//
// Looked at is B of a MatMul or Gemm of floats, behind transpositions. Where these and the
// product's own turn it to and fro, it is read as it lies, in loops and elsewhere. What is laid out
// stands before the outermost loop that the matrix comes from outside of, one for all that read it
// there or deeper, and for like products behind that loop, so that an iteration that is made again
// there has the same bits. Products known to have one row are left as they are.
//
// Results are the same within rounding: sums are added up in another order.
// Takes the graph over; a graph without such products comes back as it is. Errors: those of
// building the graph. Cost: O(nodes), times the depth of regions. Source: loop-invariant code
// motion.
#pragma once

#include <cstddef>
#include <cstdint>

#include "graph/base/status.h"
#include "graph/ir/graph.h"

namespace eddy {

struct PackOptions {
  int64_t panel_width = 0;  // of packed matrices; 0: none is packed
};

struct PackedGraph {
  Graph graph;
  size_t num_turned = 0;  // products that read their matrix turned over
  size_t num_packed = 0;  // products by a packed matrix
};

Result<PackedGraph> pack_before_loops(Graph graph, const OpTable& ops, const PackOptions& options);

}  // namespace eddy
