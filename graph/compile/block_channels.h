// block_channels: convolutions, and what stands between them, on images whose channels lie in
// blocks of one vector.
//
//   Conv ── Relu ── MaxPool ── Conv ┐                       BlockedConv{clamp} ── BlockedPool ─┐
//                        └──── Conv ┴ Add ── Relu ── Gemm   BlockedConv ── BlockedConv{addend,
//                        clamp}
//                                                           └── UnblockChannels ── Gemm
//
// A convolution of float images with constant weights becomes eddy.BlockedConv; pools, elementwise
// nodes, normalizations and joins of channels whose images are blocked stay so, and where an image
// is read otherwise it is turned over once in its region. A Relu, a Clip or an addition that alone
// reads a convolution becomes part of it.
//
// Blocks are filled up with channels whose weights are 0. Nodes that would make something infinite
// of a 0 there are left on plain images.
//
// Stands behind simplify(), for it asks what is constant, and before another, which evaluates the
// nodes of constants that scaled weights are. The result is the same within rounding (some 1e-5 of
// a sum's largest terms, by Winograd's transforms), not the same bits.
// Takes the graph over; without such convolutions it comes back as it is. Errors: those of
// building. Cost: O(nodes).
// Sources: Liu et al., "Optimizing CNN Model Inference on CPUs" (ATC 2019), section 3.2: layouts
// that flow through a graph, changed as seldom as can be.
#pragma once

#include "graph/base/status.h"
#include "graph/ir/graph.h"

namespace eddy {

struct BlockChannelsOptions {
  int64_t block = 16;  // channels in one
  // Normalizations become convolutions of one element, which rounds otherwise.
  bool blocks_norms = true;
};

struct BlockedGraph {
  Graph graph;
  size_t num_convolutions = 0;
};

Result<BlockedGraph> block_channels(Graph graph, const OpTable& ops,
                                    const BlockChannelsOptions& options);

}  // namespace eddy
