// find_device_loops: which loops and branches a device beside the host can drive by itself, and why
// others not: the allow-list for captured graphs that decide (runtime/device/graph_capture.h).
//
// A loop can be driven by a device, the one that its first node inside runs on, when
//   - it has nodes, and all of them run there, with fixed shapes and nothing that the host must
//     read first, and so on inside its inner loops and branches;
//   - its predicate, and inner selectors, are made there (the copy to the host is left out), or are
//     bools that it carries and that are read nowhere else;
//   - its limit is known when it begins, and inner ones before that;
//   - carried values and results keep their shapes;
//   - of rows that are stacked: it is the outermost such loop, has a limit, and each row is made
//     there, of fixed shape, and copied to the host for nothing else;
//   - its iteration number is only copied to the device.
// Inner loops and branches of such a loop go with it. A branch by itself must have the same of its
// nodes and results; its selector is one element that the device makes and copies to the host,
// where the device reads it, too: page-locked memory. A selector that the host makes or is given is
// there when the host reads it, so the host decides.
//
// Pure. Cost: O(nodes of loops), a loop's depth times.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "graph/ir/control_view.h"
#include "graph/ir/graph.h"

namespace eddy {

struct ControlVerdict {
  bool is_driven_by_device = false;
  bool is_outermost = false;  // of those driven by the device
  std::string reason;         // either way
  uint32_t device = 0;        // that it stands on; 0: the host alone
};

// Facts that the graph does not have.
struct ControlDriveFacts {
  std::function<uint32_t(NodeId)> device_of;  // exec nodes; 0: the host
  std::function<uint32_t(ValueId)> value_device;
};

// By NodeId; empty reasons for exec nodes.
std::vector<ControlVerdict> find_device_loops(const Graph& graph, const ControlDriveFacts& facts);

// Carried value k is a bool of the host's that only decides its loop: the device keeps it. `uses`:
// count_uses().
bool is_decision_only(const Graph& graph, const LoopView& loop, size_t k,
                      const std::vector<uint32_t>& uses);

// Carried value k is read nowhere, inside or behind the loop: it only goes round.
bool is_carried_idly(const LoopView& loop, size_t k, const std::vector<uint32_t>& uses);

// Of a row that the device makes in the loop: the node that copies it to the host, which awaits it
// there; null when something else makes it.
const Node* row_copy_or_null(const Graph& graph, ValueId row);

// The node that copies a value to the host, null when something else makes it.
const Node* copy_to_host_or_null(const Graph& graph, ValueId value);

}  // namespace eddy
