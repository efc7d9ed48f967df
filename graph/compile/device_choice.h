// choose_devices: for each node of a graph whether the device runs it or the host's CPU, and for
// each value in which memory it is at home and in which others it is wanted.
//
// The rules:
//   exec node   on the device where the capability table has a kernel for it, unless it is scalar
//               and shape arithmetic: results of at most max_host_elements integers or bools, made
//               of such values only (counters, shapes, small inputs), stay on the host unless the
//               node names the device itself (Node::device)
//   view        where its input is
//   loop, branch   on the device when any node inside is
//   values that control nodes pass on (loop parameters, forwarded values, outputs) are at home on
//               the device when a device node reads them, when the device makes some that go in
//               and the host reads none, or, of a branch, when the device makes all that go in;
//               else on the host
//
// Wants are what copies must be made for: a value at home on one side that a node of the other
// reads, and values whose bytes the host reads while it issues device work (host-value inputs of
// device nodes, trip limits, scan rows): those need an await. A predicate or selector needs none:
// its decision awaits its stream.
//
// Contract: pure; everything of sequences, optionals and strings is the host's. Constants are at
// home everywhere. Cost: O(nodes + values) a round, rounds as deep as loops pass values on.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "graph/base/status.h"
#include "graph/ir/graph.h"

namespace eddy {

struct DeviceChoiceOptions {
  // The capability table: ok when the device has a kernel for this exec node, else why not.
  std::function<Status(const Graph& graph, NodeId node)> can_run;
  int64_t max_host_elements = 16;
  std::string device = {};  // its name; place() gives it
};

struct ValueWants {
  bool is_on_device = false;  // where it is made; false for constants
  bool wants_device = false;  // a device node reads it
  bool wants_host = false;    // a host node, a decision or the caller reads it
  bool wants_await = false;   // the host reads its bytes while it issues
};

struct DeviceChoice {
  std::vector<bool> is_on_device;  // by NodeId
  std::vector<ValueWants> values;  // by ValueId
  // By NodeId, of exec nodes on the CPU: why; "" for shape arithmetic and for nodes on the device.
  std::vector<std::string> reasons;
};

DeviceChoice choose_devices(const Graph& graph, const DeviceChoiceOptions& options);

}  // namespace eddy
