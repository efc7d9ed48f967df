// What a run keeps of faults that kernels on an accelerator report (ops/contract/device_fault.h).
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
}

Status RunState::take_faults() {
  Status first;
  for (const auto& [node, fault] : faults_) {
    if (std::atomic_ref(fault->kind).load(std::memory_order_acquire) == DeviceFault::kNone)
      continue;
    if (first.is_ok()) {
      first = fault_status(*fault);
      first.prepend_path(graph().path(node));  // of which iteration is not known any more
    }
    *fault = {};
  }
  return first;
}

}  // namespace eddy
