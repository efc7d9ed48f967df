// TaskLabel: what a task of a task graph made from operators stands for, and its name.
//
//   A.0                part 0 of operator A
//   A.sum.0            the sum of the partial tiles that are tile 0 of A
//   A.0->B.1           what part 1 of B reads of part 0 of A, sent to B's device
//   A.0->B.1@x>y       one hop of it, where the route has several
//   A.0->B.1#1         read by B's input 1, where an input before it is A, too
//   A.0.grad           part 0's share of the backward pass
//   B.1.grad->A.0.grad the gradient of A.0->B.1, sent back
//   A.sync0.2:x>y      hop 2 of the ring that sums slice 0 of the gradients of A's weights
//
// A label is 28 bytes of numbers; names are made on demand.
#pragma once

#include <cstdint>
#include <string>

#include "graph/strategy/operators/operator_graph.h"
#include "graph/strategy/operators/topology.h"

namespace eddy {

enum class TaskKind : uint8_t { kPart, kSum, kTransfer, kPartial, kSync };

struct TaskLabel {
  TaskKind kind = TaskKind::kPart;
  bool is_backward = false;
  bool is_summed = false;  // kTransfer: of a sum, not of a part
  bool has_hops = false;   // the route has several links
  uint32_t op = 0;         // the producer of what is transferred
  uint32_t part = 0;       // its part, its tile (kSum), or the slice (kSync)
  uint32_t to_op = 0;      // kTransfer: the consumer
  uint32_t to_part = 0;    // its part; kPartial: the tile; kSync: the holder that receives
  uint16_t input = 0;      // kTransfer: the consumer's input, where its name needs it
  uint32_t link = 0;       // kTransfer, kPartial, kSync
};
static_assert(sizeof(TaskLabel) == 28, "there is one for each task");

std::string task_name(const TaskLabel& label, const OperatorGraph& graph, const Topology& topology);

// Whether the task runs on a link.
inline bool is_communication(const TaskLabel& label) {
  return label.kind == TaskKind::kTransfer || label.kind == TaskKind::kPartial ||
         label.kind == TaskKind::kSync;
}

}  // namespace eddy
