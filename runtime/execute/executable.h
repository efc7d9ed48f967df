// Executable: a plan bound to its devices: a kernel chosen for every node, constants in place, and
// what is known of each loop before it runs. A RunPool (run_pool.h) executes it.
//
// Devices are a list, the host's CPU first, as in Plan::devices: each node's kernel comes from its
// device's registry, and constants that another device than the host's reads are copied to it once,
// here. Where a device has staging memory the host's values live there, so all devices must read
// and write that of the first.
//
// The graph and the plan must outlive the executable.
// Errors: kUnsupported with the node's path when there is no kernel for it, and for devices that
// cannot exchange values.
// Threads: immutable after creation, but for the choices of loops, which any thread may use.
// Cost: creation binds every kernel (packing weights)
// that it is not given.
#pragma once

#include <deque>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "graph/base/check.h"
#include "graph/ir/graph.h"
#include "graph/loops/device_loops.h"
#include "graph/loops/output_routes.h"
#include "graph/loops/persistent_program.h"
#include "graph/loops/release_plan.h"
#include "graph/schedule/plan/plan.h"
#include "ops/contract/registry.h"
#include "runtime/device/execution_device.h"
#include "runtime/device/graph_capture.h"
#include "runtime/device/staging.h"
#include "runtime/device/strand_runner.h"
#include "runtime/execute/bound_kernels.h"
#include "runtime/execute/loop_choice.h"
#include "runtime/execute/values/slot.h"

namespace eddy {

class OperatorTimes;
class StepObserver;
class Uploader;

// Of files that calls wait for.
struct FileWaits {
  // Calls `ready` once, on a thread that waits for such files, when the file can be read.
  std::function<Result<uint64_t>(int file, std::function<void()> ready)> add = {};
  // True: it has not been called, and will not be.
  std::function<bool(uint64_t wait)> remove = {};
};

struct ExecutableOptions {
  // Operators of the host whose kernels the session binds, as the registry cannot know them: host
  // functions, and communication between ranks; may be empty.
  std::function<bool(const OpDef&)> is_bound_by_session = {};
  std::function<Result<BoundKernel>(const KernelInit&)> bind_by_session = {};
  // Host functions that may run on the scheduler thread; may be empty.
  std::function<bool(const Node&)> is_non_blocking = {};
  // Smaller buffers of values whose shape may change stay where they are after their last use: a
  // pool costs more than it gives.
  size_t min_released_bytes = 4096;
  // Values that the plan has laid out live where it puts them; else each has memory of its own.
  bool use_arenas = true;
  // Called now and then while kernels pack constants, so that weights and what is packed of them
  // need not be in memory side by side: frees the constants named, which nothing reads any more,
  // and lets go of files' pages, which come back when they are read again. May be empty.
  std::function<void(std::span<const ConstantId>)> release_constants = {};
  // Makes what executes a run's strands; captures, the run state's, by device, outlive it.
  std::function<std::unique_ptr<StrandRunner>(const StrandCode& code, const Bindings& bindings,
                                              const GraphCaptures& captures)>
      make_runner;
  // Loops that a device can drive are driven by it; measured: where it is faster.
  bool has_device_control = false;
  bool are_loops_measured = false;
  // Loops that a device drives are driven in this way alone where they can be, else as a captured
  // graph: for measuring one way.
  std::optional<LoopChoice::Way> only_loop_way = {};
  // Nodes of devices beside the host's leave breadcrumbs (breadcrumbs.h), and no loop is one
  // kernel.
  bool locates_faults = false;
  // Run states that the pool keeps at most; 0: as many as there were at once.
  size_t max_free_states = 0;
  // Calls fall apart into tiles that idle workers share, where their kernels say so; cheap ones,
  // too, unless the host drives the strands, which executes these itself.
  bool shares_tiles = false;
  bool is_host_driven = false;
  FileWaits file_waits = {};
  // What an earlier process has packed of constants, and where new packings go; may be empty.
  PackingStore packing_store = {};
  // Of another executable of the same graph on the host alone; null: kernels are bound here.
  std::shared_ptr<const BoundKernels> kernels = {};
  // Sees every step of every run; must outlive the program. Null: nothing is observed, for free.
  StepObserver* observer_or_null = nullptr;
  // Of the graph's nodes; must outlive the program. Null: no call is timed, for free.
  OperatorTimes* operator_times_or_null = nullptr;
};

// A loop that its device runs as one kernel.
struct PersistentLoop {
  PersistentProgram program;
  const void* kernel = nullptr;
};

class Executable {
 public:
  // `devices`: as many as the plan names, or the host's alone.
  static Result<std::unique_ptr<Executable>> create(const Graph& graph, const Plan& plan,
                                                    std::vector<ExecutionDevice> devices,
                                                    ExecutableOptions options);

  const Graph& graph() const { return graph_; }
  const Plan& plan() const { return plan_; }
  const ExecutableOptions& options() const { return options_; }
  const BoundKernel& kernel(NodeId node) const {
    EDDY_DCHECK(node.index() < kernels_.size()) << "there is no node " << node.index();
    return *kernels_[node.index()];
  }
  // For other executables of the graph; null where they can't have them: beside other devices, and
  // where constants may be gone that a kernel of their own would be bound by.
  const std::shared_ptr<const BoundKernels>& shared_kernels_or_null() const {
    return shared_kernels_;
  }
  StepObserver* observer_or_null() const { return options_.observer_or_null; }
  OperatorTimes* operator_times_or_null() const { return options_.operator_times_or_null; }
  // A run is all but over before a worker could be woken for it: by estimate it takes a µs or two,
  // and it waits for nothing and calls nothing of users'.
  bool is_brief() const { return is_brief_; }
  // Below the inline budget by estimate; host functions only where declared non-blocking.
  bool is_cheap(NodeId node) const { return is_cheap_[node.index()]; }
  // A slot that borrows the constant's bytes, in that device's memory; shared by all runs, never
  // written. Where no node of the device reads them, the host's.
  Slot& constant_slot(ValueId value, uint32_t device = 0) const {
    if (device != 0) {
      const auto& copy = device_constants_[device][graph_.value(value).constant.index()];
      if (copy != nullptr) return *copy;
    }
    EDDY_DCHECK(value.index() < constants_.size() && constants_[value.index()] != nullptr)
        << "value " << value.index() << " is no constant";
    return *constants_[value.index()];
  }

  bool has_device_control() const { return options_.has_device_control && num_devices() > 1; }
  // Of a while node, where has_device_control().
  const ControlVerdict& control_verdict(NodeId node) const {
    EDDY_DCHECK(node.index() < control_verdicts_.size()) << "no device decides here";
    return control_verdicts_[node.index()];
  }
  // Of a loop that its device can run as one kernel; else null.
  const PersistentLoop* persistent_loop_or_null(NodeId node) const {
    return persistent_loops_.empty() ? nullptr : persistent_loops_[node.index()].get();
  }
  // Of a loop that its device may drive and that is measured, shared by all runs; else null.
  LoopChoice* loop_choice_or_null(NodeId node) const {
    return loop_choices_.empty() ? nullptr : loop_choices_[node.index()].get();
  }
  std::optional<LoopChoice::Way> only_loop_way() const { return options_.only_loop_way; }
  bool locates_faults() const { return options_.locates_faults && num_devices() > 1; }
  uint32_t num_devices() const { return static_cast<uint32_t>(devices_.size()); }
  Device& device(uint32_t index) const {
    EDDY_DCHECK(index < devices_.size()) << "device " << index << " of " << devices_.size();
    return *devices_[index].device;
  }
  Device& host() const { return device(0); }
  // Of an exec node, and the one in whose memory a value is.
  uint32_t device_of(NodeId node) const { return node_devices_[node.index()]; }
  uint32_t value_device(ValueId value) const {
    return plan_.value_devices.empty() ? 0 : plan_.value_devices[value.index()];
  }
  // Where the host's values live, or a device's.
  Allocator& memory(uint32_t device) const {
    return device == 0 ? *host_memory_ : this->device(device).allocator();
  }
  Allocator& memory_of(std::string_view device) const { return memory(device_named(device)); }

  // Values to release once the node has run; by the node itself, or by a call of their own.
  const std::vector<ValueId>& releases(NodeId node) const { return releases_[node.index()]; }
  bool releases_by_itself(NodeId node) const;
  const OutputRoutes& output_routes() const { return output_routes_; }
  // Made by a device, copied to the host once in a run, and read by no node there: the copy may go
  // to the caller's memory on the device instead, and to no other of the caller's.
  bool is_only_copied_out(size_t output) const {
    EDDY_DCHECK(output < is_only_copied_out_.size()) << "there is no output " << output;
    return is_only_copied_out_[output];
  }
  size_t min_released_bytes() const { return options_.min_released_bytes; }
  const FileWaits& file_waits() const { return options_.file_waits; }
  bool uses_arenas() const { return options_.use_arenas; }

  // Constants whose bytes no run reads: kernels have packed them, or no node uses them. Their slots
  // have null data. Those that release_constants was called with are among them.
  const std::vector<ConstantId>& unread_constants() const { return bound_->unread_constants; }

  // Bytes of scratch memory that kernels are known to need, by the machine's stream.
  const std::vector<size_t>& workspaces() const { return workspaces_; }

 private:
  Executable(const Graph& graph, const Plan& plan, std::vector<ExecutionDevice> devices,
             ExecutableOptions options);
  Status check_devices() const;
  uint32_t device_named(std::string_view name) const;
  Status bind();
  void judge();
  Status make_persistent(NodeId loop, std::unique_ptr<PersistentLoop>& made);
  bool is_node_plain(NodeId node) const;
  std::vector<NodeId> binding_order() const;
  Status bind_nodes();
  Status bind_with_shared();
  Result<BoundKernel> bind_node(NodeId node, PackedConstants* packed_or_null);
  bool is_of_session(NodeId node) const;
  // Puts it where it is shared, or with this executable's own.
  void keep_kernel(NodeId node, BoundKernel kernel, BoundKernels& shared);
  Result<BoundKernel> bind_kernel(NodeId node, const KernelInit& init) const;
  template <typename Use>
  auto with_init(NodeId node, PackedConstants* packed_or_null, const Use& use);
  void forget_unread_constants();
  // What a node reads of constants, copied to its device; their bits are set in `unread`.
  Status upload_constants(NodeId node, std::deque<Uploader>& uploaders, uint64_t& unread);
  // Constants that control nodes pass on to values of devices.
  Status upload_passed_constants(std::deque<Uploader>& uploaders);
  Status upload(ValueId constant, uint32_t device, std::deque<Uploader>& uploaders);

  const Graph& graph_;
  const Plan& plan_;
  const std::vector<ExecutionDevice> devices_;
  const ExecutableOptions options_;
  std::vector<uint32_t> node_devices_;  // by NodeId
  std::shared_ptr<const BoundKernels> bound_;
  std::shared_ptr<const BoundKernels> shared_kernels_;  // the same, or null
  std::deque<BoundKernel> own_kernels_;
  std::vector<const BoundKernel*> kernels_;  // by NodeId; of control nodes an empty one
  std::vector<bool> is_cheap_;               // by NodeId
  bool is_brief_ = false;
  const ReleasePlan releases_;
  OutputRoutes output_routes_;
  std::vector<bool> is_only_copied_out_;                           // by output of the graph
  std::vector<ControlVerdict> control_verdicts_;                   // by NodeId
  std::vector<std::unique_ptr<PersistentLoop>> persistent_loops_;  // by NodeId; empty: none
  std::vector<std::unique_ptr<LoopChoice>> loop_choices_;  // by NodeId; empty: nothing is measured
  std::vector<size_t> workspaces_;                         // by the machine's stream
  std::vector<std::unique_ptr<Slot>> constants_;           // by ValueId; null for other values
  std::unique_ptr<Allocator> staged_memory_;               // null: the host's own serves
  Allocator* host_memory_;
  // By device and ConstantId; null where no node there reads it.
  std::vector<std::vector<std::unique_ptr<Slot>>> device_constants_;
};

}  // namespace eddy
