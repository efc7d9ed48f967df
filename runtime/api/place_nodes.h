// place_nodes: a session's graph on several devices: every node on a device with the copies
// between (graph/compile/place.h), scalar arithmetic too in loops that a device then drives by
// itself, caches as buffers of one length where it then drives theirs (fix_caches.h), elementwise
// nodes in fewer kernels (fuse.h), and loops beside each other as one where there are more than
// devices may drive at once (merge_loops.h).
//
// Which loops are merged: those that one device could drive by itself, each alone, as a captured
// graph and not as one kernel, which is not counted (device_control.h); whose round is small
// (kMostFlops, kMostBytes), because the nodes of a loop that has ended run on; and whose kernels
// find no fault. Merged they must be a loop that the device can drive, else all stay apart, and the
// text says why.
//
// Errors: those of building a graph. Threads: pure but for binding kernels. Cost: O(nodes); again
// as often as loops fail to be driven by a device without the host's scalars, and are merged.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "graph/base/status.h"
#include "graph/ir/graph.h"
#include "runtime/device/execution_device.h"

namespace eddy {

struct PlaceNodesOptions {
  bool has_host_arithmetic = true;  // scalars and shapes stay on the host
  bool drives_loops = false;        // devices may drive loops by themselves
  bool merges_loops = false;
};

struct PlacedNodes {
  // Of what a merged loop does in a round: some microseconds of a part of a GPU.
  static constexpr double kMostFlops = 4e8;
  static constexpr double kMostBytes = 16e6;

  Graph graph;
  std::vector<uint32_t> value_devices;  // by ValueId: the device in whose memory it is
  std::string text;                     // what went where, and why; lines
};

// `names`: of the devices, the host's "cpu" first, as nodes are given them.
Result<PlacedNodes> place_nodes(Graph graph, const OpTable& ops,
                                std::span<const ExecutionDevice> devices,
                                const std::vector<std::string>& names,
                                const PlaceNodesOptions& options);

}  // namespace eddy
