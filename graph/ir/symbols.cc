#include "graph/ir/symbols.h"

namespace eddy {

std::set<std::string> symbolic_dims(const Graph& graph) {
  std::set<std::string> names;
  for (uint32_t i = 0; i < graph.num_values(); ++i) {
    const TensorType& type = graph.value(ValueId(i)).type.tensor;
    if (!type.is_ranked) continue;
    for (const int64_t dim : type.dims) {
      if (dim < kUnknownDim) names.insert(graph.symbol(dim));
    }
  }
  return names;
}

}  // namespace eddy
