// PlacedCopier: a GraphCopier of a graph whose values are on devices. What stands for a value of
// the source is where that was; of other values a pass says it.
//
//   PassThatDoesSomething pass(graph, builder, value_devices);
//   return pass.finish(std::move(graph));
//
// `value_devices` as in place.h: borrowed, one for each value of the source (CHECK). Errors: those
// of building the graph. Cost: O(nodes).
#pragma once

#include <cstdint>
#include <vector>

#include "graph/base/status.h"
#include "graph/compile/copy_graph.h"

namespace eddy {

struct PlacedCopy {
  Graph graph;
  std::vector<uint32_t> value_devices;  // by ValueId
};

class PlacedCopier : public GraphCopier {
 public:
  PlacedCopier(const Graph& source, GraphBuilder& builder,
               const std::vector<uint32_t>& value_devices);
  // Copies, then takes the source over, which must be the one given (CHECK).
  Result<PlacedCopy> finish(Graph&& source);

 protected:
  void defined(ValueId id, Value value) override { set_as(id, value); }
  // The value is where that of the source is.
  void set_as(ValueId id, Value value);

 private:
  const std::vector<uint32_t>& given_;
  std::vector<uint32_t> made_;  // by the new graph's ValueId
};

}  // namespace eddy
