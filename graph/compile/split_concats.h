// split_concats: a product of what is concatenated becomes a sum of products.
//
//   MatMul(Concat(x, h), W)  →  x by the upper rows of W, plus h by the lower ones
//
// For devices, where the Concat is a launch of its own between what makes x and the product: a
// recurrent cell's state h is there before x is, so its product runs meanwhile, and what remains
// behind x is one product that takes the other as its addend (eddy.PermutedMatMul). Split are
// products of floats by constant matrices whose other operand is a Concat of at most kMostParts
// values along the depth that nothing else reads, on the device, in one region, of known shapes,
// and with results of at most kMostElements, beyond which a second pass over them costs more than a
// launch. Products stand in the order in which their operands are made. Sums are in another order:
// not the same bits.
//
// Behind fold_into_products.h. Takes the graph over; a graph without such products comes back as it
// is. `value_devices` as in place.h. Errors: those of building the graph. Cost: O(nodes).
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/base/status.h"
#include "graph/ir/graph.h"

namespace eddy {

struct SplitConcats {
  static constexpr size_t kMostParts = 4;
  static constexpr int64_t kMostElements = int64_t{1} << 18;

  Graph graph;
  std::vector<uint32_t> value_devices;
  size_t num_split = 0;
};

Result<SplitConcats> split_concats(Graph graph, const OpTable& ops,
                                   std::vector<uint32_t> value_devices, const std::string& device);

}  // namespace eddy
