// What a run knows of faults on devices: those that kernels report, and where a device was when it
// was lost.
//
// Kernels report in records (ops/contract/device_fault.h). A record without a fault holds in
// `value` the address of the word by which loops that the device drives are stopped: the kernel
// that reports writes 1 there, so they end with the iteration of the fault, which their counters
// then name.
#include <atomic>
#include <new>

#include "graph/ir/region_tree.h"
#include "graph/loops/device_loops.h"
#include "ops/contract/fault_status.h"
#include "runtime/execute/run_state.h"

namespace eddy {

// Where memory is short, the kernels that get no record say so.
void RunState::make_faults() {
  for (uint32_t n = 0; n < graph().num_nodes(); ++n) {
    const bool is_exec = exec_nodes_[n] != nullptr && executable().device_of(NodeId(n)) != 0;
    if (is_exec && executable().kernel(NodeId(n)).may_fault)
      faults_.emplace_back(NodeId(n), nullptr);
  }
  if (faults_.empty()) return;
  Result<BufferRef> memory = executable().memory(0).allocate(faults_.size() * sizeof(DeviceFault));
  if (!memory.is_ok()) return faults_.clear();
  fault_memory_ = std::move(*memory);
  auto* record = static_cast<DeviceFault*>(fault_memory_.data());
  for (auto& [node, fault] : faults_) {
    fault = new (record++) DeviceFault();
    exec_nodes_[node.index()]->args.fault = fault;
  }
  clear_faults();
}

void RunState::clear_fault(DeviceFault& fault) {
  fault = {.value = reinterpret_cast<int64_t>(stop_word())};
}

void RunState::clear_faults() {
  for (const auto& [node, fault] : faults_) clear_fault(*fault);
}

int32_t RunState::check_faults(void* run_state) {
  auto& self = *static_cast<RunState*>(run_state);
  int32_t result = 0;
  for (const auto& [node, fault] : self.faults_) {
    const int32_t kind = std::atomic_ref(fault->kind).load(std::memory_order_acquire);
    if (kind == DeviceFault::kNone || kind == DeviceFault::kWriting) continue;
    Status status = fault_status(*fault);
    status.prepend_path(self.ended_path(node));
    self.fail(std::move(status));
    self.clear_fault(*fault);
    result = -1;
  }
  return result;
}

// Where memory is short, a lost device is reported without its nodes.
void RunState::leave_breadcrumbs() {
  std::vector<ExecNode*> nodes;
  for (uint32_t n = 0; n < graph().num_nodes(); ++n) {
    ExecNode* const node = exec_nodes_[n];
    const bool is_led =
        node != nullptr && node->run != nullptr && executable().device_of(node->id) != 0;
    if (is_led) nodes.push_back(node);
  }
  auto made = Breadcrumbs::create(executable().memory(0), nodes.size());
  if (!made.is_ok()) return;
  breadcrumbs_ = std::move(*made);
  for (ExecNode* const node : nodes) {
    const uint32_t device = executable().device_of(node->id);
    breadcrumbs_->lead(*node, *executable().device(device).staging_or_null());
  }
}

// What a device drives by itself is one piece of work; where it was, its counters say.
NodeId RunState::running_loop() const {
  for (const DeviceLoop* const device : device_loops_) {
    const NodeId running = device ? device->innermost_running() : NodeId();
    if (!running.is_none()) return running;
  }
  return {};
}

std::string RunState::names_inside(NodeId loop) const {
  constexpr size_t kMostNames = 8;
  std::string text;
  size_t count = 0;
  for (uint32_t n = 0; n < graph().num_nodes(); ++n) {
    const Node& node = graph().node(NodeId(n));
    const bool is_there = node.kind == NodeKind::kExec && executable().device_of(NodeId(n)) != 0;
    const bool is_copy = is_there && (node.op->is_view || node.op->name == "ToHost");
    if (!is_there || is_copy || !RegionTree(graph()).is_inside(node.region, loop) ||
        count++ >= kMostNames)
      continue;
    text += (text.empty() ? "" : ", ") + node.name;
  }
  return count > kMostNames ? text + " and " + std::to_string(count - kMostNames) + " more" : text;
}

std::string RunState::path_of_unfinished() const {
  std::string text;
  for (const NodeId node : breadcrumbs_->unfinished()) {
    text += (text.empty() ? "" : " or ") + ended_path(node);
  }
  return text;
}

// A call that comes after a loss is the first to notice it, so `issued`, where the host stood,
// says only what the device had not come past.
void RunState::tell_where(Status& status, NodeId issued) const {
  const bool is_lost = status.code() == StatusCode::kDeviceLost;
  std::string path = is_lost && breadcrumbs_ ? path_of_unfinished() : "";
  const NodeId loop = is_lost && path.empty() ? running_loop() : NodeId();
  if (!loop.is_none()) {
    path = iteration_path(loop) + "[" + std::to_string(progress(loop).iteration()) + "]";
  } else if (path.empty() && !issued.is_none()) {
    path = iteration_path(issued);
  }
  status.prepend_path(path);
  if (!is_lost || breadcrumbs_ || executable().num_devices() == 1) return;
  const std::string names = loop.is_none() ? "" : names_inside(loop);
  status.append_message((names.empty() ? "" : "it runs " + names + " there; ") +
                        "a session with locate_faults names the nodes that it was at");
}

}  // namespace eddy
