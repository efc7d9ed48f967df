// Breadcrumbs: at which nodes of a run a device was when it was lost.
//
// A driver reports a lost device at whatever call comes next, perhaps long after the kernel that
// did it, and a loop that the device drives is one launch to the host. So each node has a word in
// host memory, which outlives the loss, and two copies around its kernels, in their stream or
// recording: 1 goes there before, 0 behind. So all are 0 when a run has ended, but where 1 stands
// when the device was lost it was at work: at one node of each stream, at most.
//
// Contract: lead() before the node's work is issued or recorded; what has been led refers to the
// breadcrumbs, and so do recordings of it.
//
// Errors: where a copy can't be enqueued the node fails with that.
//
// Threads: lead() before the first run; unfinished() any.
//
// Cost: two launches for each execution of a node.
//
// Source of the idea: Direct3D 12, Device Removed Extended Data, automatic breadcrumbs.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "graph/ir/graph.h"
#include "runtime/device/buffer.h"
#include "runtime/device/staging.h"
#include "runtime/execute/exec_node.h"

namespace eddy {

class Breadcrumbs {
 public:
  // `memory`: staging memory of the nodes' devices. kResourceExhausted.
  static Result<std::unique_ptr<Breadcrumbs>> create(Allocator& memory, size_t num_nodes);

  // Each node once, `num_nodes` of them at most. `staging`, its device's, which can copy words,
  // outlives this.
  void lead(ExecNode& node, Staging& staging);
  // The nodes whose kernels have begun and not ended, by what the devices have written.
  std::vector<NodeId> unfinished() const;

 private:
  // What a node's kernel is called with in place of its own state.
  struct Led : KernelState {
    const Breadcrumbs* owner = nullptr;
    Staging* staging = nullptr;
    NodeId node;
    int64_t* word = nullptr;
    KernelFunction run = nullptr;
    const KernelState* state = nullptr;
  };

  Breadcrumbs(BufferRef memory, size_t num_nodes);
  static bool run_led(const KernelArgs& args);
  bool write(const Led& led, int64_t value, const KernelArgs& args) const;

  const BufferRef memory_;  // 0 and 1, to be copied from; then a word for each node
  std::vector<std::unique_ptr<Led>> led_;
  const size_t max_nodes_;
};

}  // namespace eddy
