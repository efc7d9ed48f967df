// place: the same graph with every node on a device and every transfer written down.
//
// Nodes get their device's name (Node::device): that of the accelerator, or "cpu". Where a value is
// wanted in another memory than its own, a copy stands behind its definition, so what is captured
// by a loop is copied once and not in each iteration:
//
//   eddy.ToDevice   on the accelerator's stream, from host memory
//   eddy.ToHost     on the accelerator's stream, into host memory
//   eddy.Await      on a CPU stream: its result's bytes are there when what waits for it is issued
//
// Planned like all other nodes, copies have streams, records and waits of their own, and the plan
// shows them. Constants need no copy: a program has them on both sides. Which node goes where, and
// why: device_choice.h.
//
// Takes the graph over. Errors: those of building the new graph. Cost: O(nodes).
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "graph/base/status.h"
#include "graph/compile/device_choice.h"
#include "graph/ir/graph.h"

namespace eddy {

struct PlaceOptions {
  std::string device = "cuda";
  DeviceChoiceOptions choice = {};
};

struct PlacementReport {
  std::string device;
  size_t num_device_nodes = 0;  // exec nodes, without copies
  size_t num_cpu_nodes = 0;
  // Nodes on the CPU for want of a kernel: path in the given graph, and why.
  std::vector<std::pair<std::string, std::string>> cpu_reasons;
  size_t num_copies = 0;  // ToDevice and ToHost

  // "12 nodes on cuda, 3 on the CPU, 4 copies": then a line for each reason, nodes named.
  std::string text() const;
};

struct PlacedGraph {
  Graph graph;
  // By ValueId: 1 where the value's memory is the accelerator's, else 0.
  std::vector<uint32_t> value_devices;
  PlacementReport report;
};

Result<PlacedGraph> place(Graph graph, const OpTable& ops, const PlaceOptions& options);

}  // namespace eddy
