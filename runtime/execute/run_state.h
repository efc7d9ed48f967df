// RunState: everything that one run of an executable writes: slots (run_slots.h), node instances,
// loops, branches, and what devices report of it.
//
// Built once for an executable and reused run after run (run_pool.h), so a warm run allocates
// nothing for fixed shapes. Addresses are stable: bindings point into it.
//
// Errors: those of RunBase.
// Threads: strands of the run touch disjoint parts, ordered by the plan.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "graph/base/check.h"
#include "graph/ir/graph.h"
#include "runtime/device/graph_capture.h"
#include "runtime/execute/breadcrumbs.h"
#include "runtime/execute/case_state.h"
#include "runtime/execute/device_loop.h"
#include "runtime/execute/exec_node.h"
#include "runtime/execute/loop_state.h"
#include "runtime/execute/pinned_array.h"
#include "runtime/execute/run_slots.h"
#include "runtime/execute/values/stream_scratch.h"

namespace eddy {

class RunState : public RunSlots {
 public:
  // What the commands of one node point to.
  ExecNode& exec_node(NodeId node) {
    EDDY_CHECK(node.index() < exec_nodes_.size() && exec_nodes_[node.index()] != nullptr)
        << "node " << node.index() << " is no exec node";
    return *exec_nodes_[node.index()];
  }
  LoopState& loop(NodeId node) { return part(loops_, node, "loop"); }
  CaseState& branch(NodeId node) { return part(cases_, node, "branch"); }
  // With graph captures; before the commands are made. True: devices may drive loops by
  // themselves; these are added then.
  bool start_recording();
  void add_device_loop(NodeId node, DeviceLoop& loop) { device_loops_[node.index()] = &loop; }
  // The run has ended: loops of other runs may be driven by devices in place of this one's.
  void end_device_loops();
  // A loop on the stream, which is idle, begins: others there have ended. Whether one had a place.
  bool give_places_back(const void* native_stream);
  // Why the host drove a loop, this or the one that it goes with, that the device can drive.
  std::string why_by_host(NodeId loop) const;
  // And how the device did, if there is something to tell.
  std::string how_by_device(NodeId loop) const;

  // By device; null: it captures nothing. Empty: none does.
  GraphCaptures captures() const;
  // Not 0 once the run has been stopped; read by devices. Null: no device loop.
  const uint32_t* stop_word() const { return control.stop_word_or_null; }

  // Strands of one stream are never at work together.
  StreamScratch& scratch(uint32_t stream);

  // Clears what the last run left behind (error, references to outputs and caller's memory).
  void reset();
  bool has_keeps() const { return !keeps_.empty(); }
  // What kernels have kept for the run that ends goes.
  void end_keeps() {
    for (RunKeep& each : keeps_) each.state = nullptr;
  }
  bool has_faults() const { return !faults_.empty(); }
  // < 0: a kernel on a device has found something wrong, and the run has failed with its
  // node and iteration. For streams that have passed what a decision waits for, or all.
  static int32_t check_faults(void* run_state);

 protected:
  RunState(const Executable& executable, Allocator& allocator);
  ~RunState() = default;

 private:
  template <typename Part>
  static Part& part(const std::vector<std::unique_ptr<Part>>& parts, NodeId node,
                    const char* what) {
    EDDY_CHECK(node.index() < parts.size() && parts[node.index()] != nullptr)
        << "node " << node.index() << " is no " << what;
    return *parts[node.index()];
  }
  void make_exec_lists();
  bool may_move(NodeId reader, ValueId input) const;
  void make_node(NodeId node, const std::vector<uint32_t>& reads);
  void bind_input(ExecNode& exec, size_t i, uint32_t device);
  void bind_result(ExecNode& exec, size_t o, bool is_fixed_shape);
  void leave_still(ExecNode& exec);
  void make_faults();
  void clear_faults();
  void clear_fault(DeviceFault& fault);
  void leave_breadcrumbs();
  // Of those that a device drives right now, the innermost; none: there is none.
  NodeId running_loop() const;
  // "MatMul_3, Tanh_4": of the devices' nodes inside a loop, some.
  std::string names_inside(NodeId loop) const;
  // Of the nodes that a lost device was at, by their breadcrumbs; empty: between them.
  std::string path_of_unfinished() const;
  void tell_where(Status& status, NodeId issued) const final;
  void reset_loops() final;

  std::vector<std::unique_ptr<GraphCapture>> captures_;  // before all that they have captured
  BufferRef stop_word_;
  // What exec nodes refer to, one node's behind the other's; as much as the graph's nodes need.
  struct ExecLists {
    std::vector<TensorView> views;
    std::vector<Slot*> input_slots;
    std::vector<ExecNode::Output> out;
    std::vector<ExecNode::Refresh> refresh;
  };
  ExecLists exec_lists_;
  PinnedArray<ExecNode> exec_storage_;
  std::vector<ExecNode*> exec_nodes_;  // by NodeId
  std::vector<std::unique_ptr<LoopState>> loops_;
  std::vector<std::unique_ptr<CaseState>> cases_;
  std::deque<StreamScratch> scratch_;  // by stream
  // Where kernels on devices say what they found, in memory that both sides see.
  BufferRef fault_memory_;
  std::deque<RunKeep> keeps_;  // kernels point to theirs
  std::vector<std::pair<NodeId, DeviceFault*>> faults_;
  std::unique_ptr<Breadcrumbs> breadcrumbs_;  // null: a lost device is reported without its nodes
  std::vector<DeviceLoop*> device_loops_;     // by NodeId; empty: none
};

}  // namespace eddy
