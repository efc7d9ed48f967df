// Graphs on a device named "cuda", for tests of passes that keep `value_devices`: the nodes'
// devices determine where values are.
#pragma once

#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "graph/ir/builder.h"

namespace eddy {

struct GraphOnDevice {
  Graph graph;
  std::vector<uint32_t> value_devices;
};

inline GraphOnDevice finish_on_device(GraphBuilder& b) {
  Result<Graph> graph = b.finish();
  EXPECT_TRUE(graph.is_ok()) << graph.status().to_string();
  std::vector<uint32_t> devices(graph->num_values(), 0);
  for (uint32_t v = 0; v < graph->num_values(); ++v) {
    const ValueInfo& info = graph->value(ValueId(v));
    if (info.origin != ValueOrigin::kNodeOutput) continue;
    devices[v] = graph->node(info.producer).device == "cuda" ? 1 : 0;
  }
  return {std::move(*graph), std::move(devices)};
}

// Whether it is so still.
inline void expect_on_device(const Graph& graph, const std::vector<uint32_t>& value_devices) {
  ASSERT_EQ(value_devices.size(), graph.num_values());
  for (uint32_t n = 0; n < graph.num_nodes(); ++n) {
    const Node& node = graph.node(NodeId(n));
    if (node.kind != NodeKind::kExec) continue;
    for (const ValueId output : node.outputs) {
      EXPECT_EQ(value_devices[output.index()], node.device == "cuda" ? 1u : 0u) << node.name;
    }
  }
}

}  // namespace eddy
