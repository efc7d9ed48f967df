// turn_before_loops: a matrix from outside of a loop that products in it read turned over is turned
// over once, before the loop.
//
//   while: g ── Gemm{transB} ── …      →      R ── Transpose ──┐
//          R ──┘                              while: g ── Gemm ── …
//
// For the CPU, whose products of few rows take twice as long where B is turned over as where it
// lies as it is read. The weights of a graph that trains them are no constants, which kernels pack
// when they are bound; its loops read them forward as they are, and back turned over.
//
// Looked at is B of a MatMul or Gemm of floats, behind transpositions. Where these and the
// product's own turn it to and fro, it is read as it lies, in loops and elsewhere. The
// transposition stands before the outermost loop that the matrix comes from outside of, one for all
// that read it there or deeper. Products known to have one row are left as they are: they read a
// turned matrix best.
//
// Results are the same within rounding: sums are added up in another order.
// Takes the graph over; a graph without such products comes back as it is. Errors: those of
// building the graph. Cost: O(nodes), times the depth of regions. Source: loop-invariant code
// motion.
#pragma once

#include <cstddef>

#include "graph/base/status.h"
#include "graph/ir/graph.h"

namespace eddy {

struct TurnedGraph {
  Graph graph;
  size_t num_products = 0;
};

Result<TurnedGraph> turn_before_loops(Graph graph, const OpTable& ops);

}  // namespace eddy
