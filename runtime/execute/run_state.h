// RunState: everything that one run of an executable writes: slots, node instances, loops,
// branches.
//
// Values that the plan has laid out live in arenas that this owns; what leaves a run never does.
//
// Built once for an executable and reused run after run (run_pool.h), so a
// warm run allocates nothing for fixed shapes. Addresses are stable: bindings point into it.
//
// Errors: the first failure wins and carries the node's name and iteration path; it also stops
// the run (the runner sees the failed call).
// Threads: strands of the run touch disjoint parts, ordered by the plan; fail() may be called
// from any of them; describe_strands() from any thread while the run goes on.
#pragma once

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "graph/base/check.h"
#include "graph/ir/graph.h"
#include "graph/loops/output_routes.h"
#include "graph/schedule/plan/plan.h"
#include "runtime/device/graph_capture.h"
#include "runtime/device/strand_runner.h"
#include "runtime/execute/breadcrumbs.h"
#include "runtime/execute/case_state.h"
#include "runtime/execute/device_loop.h"
#include "runtime/execute/exec_node.h"
#include "runtime/execute/loop_state.h"
#include "runtime/execute/values/output_memory.h"
#include "runtime/execute/values/slot.h"

namespace eddy {

class Executable;

// Growing scratch memory of one of the machine's streams. Strands of one stream are never at work
// together, recorded or not, so all of them use the same.
class StreamScratch : public Scratch {
 public:
  explicit StreamScratch(Allocator& allocator) : allocator_(allocator) {}
  void* reserve(size_t size_bytes) override;
  // What was reserved last stays where it is.
  void keep();

 private:
  Allocator& allocator_;
  BufferRef buffer_;
  std::vector<BufferRef> kept_;
};

class RunState {
 public:
  RunState(const Executable& executable, Allocator& allocator);
  ~RunState();

  const Executable& executable() const { return executable_; }
  const Graph& graph() const;
  Allocator& allocator() { return allocator_; }

  // The slot of a value: one of this run's, or the executable's for constants.
  Slot& slot(ValueId value) {
    EDDY_CHECK(value.index() < slots_.size()) << "there is no value " << value.index();
    return *slots_[value.index()];
  }
  // The slot from which `to` is given the value `from`: a constant's where `to` is at home.
  Slot& slot_for(ValueId from, ValueId to);
  // Adds how the value is handed on to `to`, where that has a place of the plan; false: it has
  // none. `loop`: the one that is entered or advances.
  bool hand_on(Transfers& transfers, ValueId to, ValueId from, Program::Moment moment, NodeId loop);
  // The value stands at its first place when the loop is entered, if it alternates with that.
  void start_turns(Transfers& transfers, ValueId value, NodeId loop);

  // The slot by which a node right inside an open loop reads a value: the value's, or a reference
  // that the node's stream takes (Program::Op::kRetain).
  Slot& slot_read_by(NodeId node, ValueId value) {
    const auto taken = taken_slots_.find({node.index(), value.index()});
    return taken == taken_slots_.end() ? slot(value) : *taken->second;
  }

  bool is_taken(NodeId reader, ValueId value) const {
    return taken_slots_.contains({reader.index(), value.index()});
  }

  // What the commands of one node point to.
  ExecNode& exec_node(NodeId node) { return part(exec_nodes_, node, "exec node"); }
  LoopState& loop(NodeId node) { return part(loops_, node, "loop"); }
  CaseState& branch(NodeId node) { return part(cases_, node, "branch"); }
  // With graph captures; before the commands are made. True: devices may drive loops by
  // themselves, which are added then and outlive the runs.
  bool start_recording();
  void add_device_loop(NodeId node, DeviceLoop& loop) { device_loops_[node.index()] = &loop; }
  // The run has ended: loops of other runs may be driven by devices in place of this one's.
  void end_device_loops();
  // A loop on the stream, which is idle, begins: others there have ended. Whether one had a place.
  bool give_places_back(const void* native_stream);
  // How often a loop may run at most; known when it begins.
  Result<int64_t> trip_limit(NodeId loop);
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
  // The node that a strand executes (for describe_strands()).
  std::atomic<uint32_t>& current_node(uint32_t strand);
  bool has_arenas() const { return !arenas_.empty(); }
  // A value that has a place of the plan stands there (again).
  void put_back(ValueId value);

  // The node runs on a strand that counts its loop's iterations by itself.
  void set_tail(NodeId node, const LoopState::Tail& tail);

  // The caller's memory for an output that is not copied, and a second one of that size, or null;
  // before a run. What the last run left in it is forgotten. Stays bound until it is unbound, which
  // ends every reference to it.
  void bind_output(size_t index, void* data, void* second_or_null, size_t size_bytes);
  void unbind_output(size_t index);
  // Copies a tensor, or elements of a sequence, that stand in memory of the caller into memory of
  // their own; how many bytes those are.
  Result<size_t> move_home(ValueId value);
  // Where a value that may be an output can be made; null: it stays.
  OutputTargets* targets_or_null(ValueId value);

  // Clears what the last run left behind (error, references to outputs and caller's memory).
  void reset();
  // Returns false, so that commands can `return state.fail(node, status)`. Nothing is noted on a
  // thread that has just refused to wait (no_waiting.h): all commands can be done again.
  bool fail(NodeId node, Status status);
  // Of a status that says where.
  bool fail(Status status);
  // The first failure: a node's, else the device's, with the node at which the strand stood.
  Status take_error();
  bool has_faults() const { return !faults_.empty(); }
  // < 0: a kernel on a device has found something wrong, and the run has failed with its
  // node and iteration. For streams that have passed what a decision waits for, or all.
  static int32_t check_faults(void* run_state);

  // The iteration of a loop that a node right inside it is at; tails may be one behind.
  int64_t iteration(NodeId loop, NodeId inner) const;
  // "decode[17]/attend/MatMul": names and current iteration numbers of the loops around a node.
  std::string iteration_path(NodeId node) const;
  // The same, of a kernel that was issued and perhaps has ended: `after` may have been counted
  // since, unless a device counts.
  std::string ended_path(NodeId node) const;
  // Where each strand is now and what it waits for, one line each.
  std::string describe_strands(const StrandRunner& runner) const;

  RunControl control;

 private:
  template <typename Part>
  static Part& part(const std::vector<std::unique_ptr<Part>>& parts, NodeId node,
                    const char* what) {
    EDDY_CHECK(node.index() < parts.size() && parts[node.index()] != nullptr)
        << "node " << node.index() << " is no " << what;
    return *parts[node.index()];
  }
  Slot* make_slot(ValueId value);
  const ValueMemory* place_or_null(ValueId value) const;
  void* address(const ValueMemory& place, size_t i) const;
  bool is_fixed(ValueId value) const;
  void make_taken_slots();
  void make_arenas();
  // One output's memory of the caller: one place, or two.
  using OutputPlaces = std::array<OutputMemory, 2>;

  void find_targets();
  OutputTarget make_target(const OutputRoute& route, OutputMemory& memory);
  void work_in_place(OutputTargets& targets, Slot& input, uint32_t num_reads);
  void forget_output(size_t index, OutputMemory& memory);
  void tell_makers(size_t index);
  void take_everywhere(OutputMemory& memory);
  void make_node(NodeId node, const std::vector<uint32_t>& reads);
  void bind_input(ExecNode& exec, size_t i, uint32_t device);
  void leave_still(ExecNode& exec);
  void make_faults();
  void clear_faults();
  void clear_fault(DeviceFault& fault);
  // The iteration of what a node right inside the loop was issued for last.
  int64_t issued_iteration(NodeId loop, NodeId inner) const;
  using IterationOf = int64_t (RunState::*)(NodeId loop, NodeId inner) const;
  std::string path_of(NodeId node, IterationOf iteration_of) const;
  void leave_breadcrumbs();
  // Of those that a device drives right now, the innermost; none: there is none.
  NodeId running_loop() const;
  // "MatMul_3, Tanh_4": of the devices' nodes inside a loop, some.
  std::string names_inside(NodeId loop) const;
  // Of the nodes that a lost device was at, by their breadcrumbs; empty: between them.
  std::string path_of_unfinished() const;
  void tell_where(Status& status, NodeId issued) const;

  const Executable& executable_;
  Allocator& allocator_;
  std::vector<std::unique_ptr<GraphCapture>> captures_;  // before all that they have captured
  BufferRef stop_word_;
  std::deque<OutputPlaces> outputs_;                     // by output; before all that may hold them
  std::unordered_map<uint32_t, OutputTargets> targets_;  // by ValueId
  std::deque<Slot> storage_;
  std::vector<Slot*> slots_;  // by ValueId
  std::map<std::pair<uint32_t, uint32_t>, Slot*>
      taken_slots_;                                    // by the NodeId of who reads, ValueId
  std::vector<std::unique_ptr<ExecNode>> exec_nodes_;  // by NodeId
  std::vector<std::unique_ptr<LoopState>> loops_;
  std::vector<std::unique_ptr<CaseState>> cases_;
  std::vector<BufferRef> arenas_;  // by the memory plan's; empty: every value has its own memory
  std::deque<StreamScratch> scratch_;  // by stream
  std::deque<std::atomic<uint32_t>> current_nodes_;
  std::unordered_map<uint32_t, const LoopState::Tail*> tails_;  // by NodeId
  // Where kernels on devices say what they found, in memory that both sides see.
  BufferRef fault_memory_;
  std::vector<std::pair<NodeId, DeviceFault*>> faults_;
  std::unique_ptr<Breadcrumbs> breadcrumbs_;  // null: a lost device is told without its nodes
  std::vector<DeviceLoop*> device_loops_;     // by NodeId; empty: none
  mutable std::mutex mutex_;
  Status error_;  // under the mutex
};

}  // namespace eddy
