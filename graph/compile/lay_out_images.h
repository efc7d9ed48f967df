// lay_out_images: convolutions, and what stands between them, on images that lie as a device's
// kernels for them want (image_layout.h): in blocks of channels on the CPU, channels last on CUDA.
//
//   Conv ── Relu ── MaxPool ── Conv ┐                   Conv{bound} ── Pool ─┐
//                        └──── Conv ┴ Add ── Relu ── Gemm   Conv ── Conv{addend, bound}
//                                                           └── plain ── Gemm
//
// A convolution of floats with constant weights becomes the layout's; pools, elementwise nodes,
// normalizations and joins of channels whose images are laid out so stay so, and where an image
// is read otherwise it is turned over once in its region. A Relu, a Clip or an addition that alone
// reads a convolution becomes part of it, as far as the layout's convolutions can end so.
//
// Stands behind simplify(), for it asks what is constant, and before another, which evaluates the
// nodes of constants that weights are, in the order that they are read in. The result is the same
// within rounding (some 1e-5 of a sum's largest terms, by Winograd's transforms), not the same
// bits.
// Takes the graph over; without such convolutions it comes back as it is. Errors: those of
// building. Cost: O(nodes).
// Sources: Liu et al., "Optimizing CNN Model Inference on CPUs" (ATC 2019), section 3.2: layouts
// that flow through a graph, changed as seldom as can be.
#pragma once

#include <string>

#include "graph/base/status.h"
#include "graph/compile/image_layout.h"
#include "graph/ir/graph.h"

namespace eddy {

struct LayOutImagesOptions {
  const ImageLayout& layout;
  // Normalizations scale and shift, or are convolutions of one element, which rounds otherwise.
  bool scales_norms = true;
  std::string device = {};  // nodes that name another one stay; empty: none does
};

struct LaidOutGraph {
  Graph graph;
  size_t num_convolutions = 0;
};

Result<LaidOutGraph> lay_out_images(Graph graph, const OpTable& ops,
                                    const LayOutImagesOptions& options);

}  // namespace eddy
