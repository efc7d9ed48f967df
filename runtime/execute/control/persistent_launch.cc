#include "runtime/execute/control/persistent_launch.h"

#include <algorithm>
#include <atomic>

#include "graph/base/check.h"
#include "runtime/device/compile.h"
#include "runtime/execute/executable.h"

namespace eddy {

PersistentLaunch::PersistentLaunch(RunState& state, NodeId loop, const PersistentLoop& persistent)
    : state_(state),
      id_(loop),
      device_(state.executable().control_verdict(loop).device),
      persistent_(persistent) {
  const Graph& graph = state.graph();
  const auto slot = [&](ValueId value, uint32_t device) -> const Slot* {
    const bool is_constant = graph.value(value).origin == ValueOrigin::kConstant;
    return is_constant ? &state.executable().constant_slot(value, device) : &state.slot(value);
  };
  for (const ValueId value : persistent.program.inputs) inputs_.push_back(slot(value, device_));
  for (const ValueId value : persistent.program.given) given_.push_back(slot(value, 0));
  input_data_.resize(inputs_.size());
}

Result<std::unique_ptr<ControlLaunch>> PersistentLaunch::make(RunState& state, NodeId loop,
                                                              const PersistentLoop& persistent) {
  std::unique_ptr<PersistentLaunch> made(new PersistentLaunch(state, loop, persistent));
  EDDY_RETURN_IF_ERROR(made->allocate());
  return std::unique_ptr<ControlLaunch>(std::move(made));
}

Status PersistentLaunch::allocate() {
  EDDY_ASSIGN_OR_RETURN(words_, state_.allocator().allocate(2 * sizeof(int64_t)));
  static_cast<int64_t*>(words_.data())[1] = 1;
  const LoopProgram& program = persistent_.program.program;
  for (const uint32_t result : program.results) {
    const LoopProgram::Value& value = program.values[result];
    const size_t size_bytes =
        static_cast<size_t>(value.dims.count().value_or(0)) * element_size_bytes(value.element);
    EDDY_ASSIGN_OR_RETURN(BufferRef buffer,
                          state_.executable().memory(device_).allocate(size_bytes));
    result_data_.push_back(buffer.data());
    results_.push_back(std::move(buffer));
  }
  return Status::ok();
}

bool PersistentLaunch::is_free() const {
  return std::ranges::all_of(results_, [](const BufferRef& buffer) {
    return buffer.get()->references.load(std::memory_order_acquire) == 1;
  });
}

Status PersistentLaunch::write_words() {
  EDDY_ASSIGN_OR_RETURN(limit_, state_.trip_limit(id_));
  given_bits_ = 0;
  for (size_t g = 0; g < given_.size(); ++g) {
    if (*given_[g]->view.as<uint8_t>() != 0) given_bits_ |= uint64_t{1} << g;
  }
  auto* const words = static_cast<int64_t*>(words_.data());
  words[0] = words[1] = 0;
  return Status::ok();
}

Status PersistentLaunch::launch(void* native_stream) {
  for (size_t i = 0; i < inputs_.size(); ++i) input_data_[i] = inputs_[i]->view.data;
  EDDY_DCHECK(result_data_.size() == persistent_.program.program.results.size())
      << result_data_.size() << " places for its results";
  LoopCall call;
  call.inputs = input_data_;
  call.results = result_data_;
  call.given = given_bits_;
  call.limit = limit_;
  call.stop = state_.stop_word();
  call.progress = static_cast<int64_t*>(words_.data());
  Compile& compile = *state_.executable().device(device_).compile_or_null();
  return compile.launch_loop(persistent_.kernel, call, native_stream);
}

Status PersistentLaunch::leave() {
  state_.loop(id_).drive_from(static_cast<const int64_t*>(words_.data()));
  for (const PersistentProgram::Output& output : persistent_.program.outputs) {
    Slot& slot = state_.slot(output.value);
    if (!output.from.is_none()) {
      const Slot& from = state_.slot_for(output.from, output.value);
      EDDY_RETURN_IF_ERROR(slot.share(from, state_.allocator()));
      continue;
    }
    EDDY_DCHECK(output.result < results_.size()) << output.result << " of " << results_.size();
    slot.buffer = results_[output.result];
    slot.view.data = result_data_[output.result];
  }
  return Status::ok();
}

NodeId PersistentLaunch::innermost_running() const {
  auto& is_over = static_cast<int64_t*>(words_.data())[1];
  return std::atomic_ref<int64_t>(is_over).load(std::memory_order_acquire) == 0 ? id_ : NodeId();
}

// A device that is lost may still write there.
void PersistentLaunch::forget() {
  std::atomic_ref<int64_t>(static_cast<int64_t*>(words_.data())[1]).store(1);
}

}  // namespace eddy
