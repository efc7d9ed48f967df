// What a run keeps of faults that kernels on an accelerator report (ops/contract/device_fault.h).
//
// A record without a fault holds in `value` the address of the word by which loops that the device
// drives are stopped: whoever reports writes 1 there, so they end with the iteration of the fault,
// which their counters then name.
#include <atomic>
#include <new>

#include "runtime/execute/program.h"
#include "runtime/execute/run_state.h"

namespace eddy {

// Where memory is short, the kernels that get no record say so.
void RunState::make_faults() {
  for (uint32_t n = 0; n < graph().num_nodes(); ++n) {
    const bool is_exec = exec_nodes_[n] != nullptr && program_.device_of(NodeId(n)) != 0;
    if (is_exec && program_.kernel(NodeId(n)).may_fault) faults_.emplace_back(NodeId(n), nullptr);
  }
  if (faults_.empty()) return;
  Result<BufferRef> memory = program_.memory(0).allocate(faults_.size() * sizeof(DeviceFault));
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

std::string RunState::ended_path(NodeId id) const {
  const Graph& graph = program_.graph();
  std::string path = graph.node(id).name;
  for (RegionId at = graph.node(id).region; !graph.region(at).owner.is_none();) {
    const NodeId owner_id = graph.region(at).owner;
    const Node& owner = graph.node(owner_id);
    std::string prefix = owner.name;
    if (owner.kind == NodeKind::kWhile) {
      const LoopState& loop = *loops_[owner_id.index()];
      // A device does not count the iteration that a fault ends.
      const bool is_begun = at == owner.regions[1] && !loop.is_driven_by_device();
      prefix += "[" + std::to_string(is_begun ? loop.begun() : loop.iteration()) + "]";
    } else {
      prefix += "/" + graph.region(at).name;
    }
    path.insert(0, prefix + "/");
    at = owner.region;
  }
  return path;
}

}  // namespace eddy
