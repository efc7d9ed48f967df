// choose_devices: for each node of a graph which of several devices runs it, or the host's CPU, and
// for each value in which memory it is at home and in which others it is wanted.
//
// The rules:
//   exec node   on the device that it names (Node::device), else on the first one; where the
//               capability table has no kernel for it there, on the host, and so is scalar and
//               shape arithmetic of nodes that name none: results of at most max_host_elements
//               integers or bools, made of such values only (counters, shapes, small inputs),
//               outside of loops that are to run on a device alone
//   view        where its input is, unless it names another device
//   loop, branch   on a device when any node inside is
//   values that control nodes pass on (loop parameters, forwarded values, outputs) are at home on
//               a device when a node there reads them, when a device makes some that go in and the
//               host reads none, or, of a branch, when devices make all that go in; else on the
//               host
//
// Wants are what copies must be made for: a value at home in one memory that a node of another
// device reads, and values whose bytes the host reads while it issues device work (host-value
// inputs of device nodes, trip limits, scan rows): those need an await. A predicate or selector
// needs none: its decision awaits its stream.
//
// Contract: pure; everything of sequences, optionals and strings is the host's. Constants are at
// home everywhere. Cost: O(nodes + values) a round, rounds as deep as loops pass values on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "graph/base/check.h"
#include "graph/base/status.h"
#include "graph/ir/graph.h"

namespace eddy {

inline constexpr size_t kMaxDevices = 64;  // the host's among them; wanted_by has a bit for each

struct DeviceChoiceOptions {
  // The capability table: ok when that device has a kernel for this exec node, else why not.
  std::function<Status(const Graph& graph, NodeId node, uint32_t device)> can_run;
  int64_t max_host_elements = 16;
  // In these loops scalar and shape arithmetic is the device's like all else.
  std::vector<NodeId> loops_off_host = {};
};

struct ValueWants {
  uint32_t device = 0;       // where it is made; 0, the host, for constants
  uint64_t wanted_by = 0;    // bit d: a node of device d reads it; bit 0: also a decision or caller
  bool wants_await = false;  // the host reads its bytes while it issues

  bool is_wanted_by(uint32_t d) const {
    EDDY_DCHECK(d < kMaxDevices) << "device " << d << " has no bit";
    return (wanted_by >> d & 1) != 0;
  }
};
static_assert(kMaxDevices <= 8 * sizeof(ValueWants::wanted_by), "each device has a bit");

struct DeviceChoice {
  std::vector<uint32_t> devices;   // by NodeId
  std::vector<ValueWants> values;  // by ValueId
  // By NodeId, of exec nodes on the CPU: why; "" for shape arithmetic and for nodes of devices.
  std::vector<std::string> reasons;
};

// `devices`: their names, the host's first; 64 at most.
DeviceChoice choose_devices(const Graph& graph, const std::vector<std::string>& devices,
                            const DeviceChoiceOptions& options);

}  // namespace eddy
