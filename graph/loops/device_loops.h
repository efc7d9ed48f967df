// find_device_loops: which loops and branches beside an accelerator it can drive by itself, and why
// others not: the allow-list for recordings that decide (runtime/device/recorder.h).
//
// A loop can be driven by the device when
//   - it has nodes, and all of them run there, with fixed shapes and nothing that the host must
//     read first, and so on inside its inner loops and branches;
//   - its predicate, and inner selectors, are made there (the copy to the host is left out), or are
//     bools that it carries and that have no other reader;
//   - its limit is known when it begins, and inner ones before that;
//   - carried values and results keep their shapes, and no rows are stacked;
//   - its iteration number is only copied to the device.
// Inner loops and branches of such a loop go with it. A branch by itself must have the same of its
// nodes and results; its selector is one element that the device makes and copies to the host,
// where the device reads it, too: page-locked memory. A selector that the host makes or is given is
// there when the host asks, so the host decides.
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
};

// What the graph does not say.
struct ControlDriveFacts {
  std::function<bool(NodeId)> is_on_device;  // exec nodes
  std::function<bool(ValueId)> is_value_on_device;
};

// By NodeId; empty reasons for exec nodes.
std::vector<ControlVerdict> find_device_loops(const Graph& graph, const ControlDriveFacts& facts);

// Carried value k is a bool of the host's that only decides its loop: the device keeps it. `uses`:
// count_uses().
bool is_decision_only(const Graph& graph, const LoopView& loop, size_t k,
                      const std::vector<uint32_t>& uses);

// Carried value k is read nowhere, inside or behind the loop: it only goes round.
bool is_carried_idly(const LoopView& loop, size_t k, const std::vector<uint32_t>& uses);

// The node that copies a value to the host, null when something else makes it.
const Node* copy_to_host_or_null(const Graph& graph, ValueId value);

}  // namespace eddy
