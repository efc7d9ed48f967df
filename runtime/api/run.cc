#include "runtime/api/run.h"

#include <algorithm>
#include <cstring>
#include <thread>

#include "runtime/api/session_core.h"

namespace eddy {

Run::Run(SessionCore& core, TraceRecorder* trace_or_null)
    : core_(core),
      is_traced_(trace_or_null != nullptr),
      state_(is_traced_ ? core.program->make_traced(*trace_or_null) : core.program->acquire()) {
  is_bound_.resize(core.graph.inputs().size(), false);
  bound_outputs_.resize(core.graph.outputs().size());
  is_on_device_.resize(core.graph.outputs().size(), false);
  state_->control.on_complete = &Run::on_complete;
  state_->control.context = this;
}

Run::~Run() {
  // What the slots hold of the caller's goes before the state is used again.
  for (size_t i = 0; i < is_bound_.size(); ++i) state_->slot(core_.graph.inputs()[i]).set_none();
  for (size_t i = 0; i < bound_outputs_.size(); ++i) state_->unbind_output(i);
  state_->reset();
  // A cancel may have come after the run had ended; nobody reaches the state now.
  state_->control.stop.store(StopReason::kRunning, std::memory_order_relaxed);
  if (!is_traced_) core_.program->release(std::move(state_));
}

namespace {

std::string found(ElementType element, std::span<const int64_t> dims) {
  if (dims.size() > static_cast<size_t>(kMaxRank)) {
    return "a tensor of rank " + std::to_string(dims.size());
  }
  return std::string(element_type_name(element)) + to_string(Dims(dims));
}
std::string found(const TensorView& view) { return found(view.element, view.shape()); }

bool is_of(const ValueType& type, ElementType element, std::span<const int64_t> dims) {
  return dims.size() <= static_cast<size_t>(kMaxRank) &&
         std::ranges::all_of(dims, [](int64_t dim) { return dim >= 0; }) &&
         is_compatible(TensorType(element, Dims(dims)), type);
}

// That there is memory for as many bytes as the shape, which is a type's, has.
Status check_memory(const std::string& what, const TensorView& view) {
  EDDY_ASSIGN_OR_RETURN(const size_t bytes, tensor_size_bytes(view.element, view.shape()));
  if (view.data != nullptr || bytes == 0) return Status::ok();
  return invalid_argument(what + " was given a null pointer; give memory for " + found(view));
}

}  // namespace

Status Run::check_input(size_t index, ElementType element, std::span<const int64_t> dims) const {
  const ValueDescription& input = core_.inputs[index];
  if (is_of(ValueType(input.type.tensor), element, dims)) return Status::ok();
  return invalid_argument("input '" + input.name + "' must be " + input.text + ", but " +
                          found(element, dims) + " was given");
}

Status Run::bind_tensor(size_t index, const TensorView& view) {
  EDDY_CHECK(index < core_.inputs.size()) << "there is no input " << index;
  if (core_.inputs[index].type.is_sequence()) {
    return invalid_argument("input '" + core_.inputs[index].name + "' must be " +
                            core_.inputs[index].text + ", but a tensor was given");
  }
  EDDY_RETURN_IF_ERROR(check_input(index, view.element, view.shape()));
  EDDY_RETURN_IF_ERROR(check_memory("input '" + core_.inputs[index].name + "'", view));
  state_->slot(core_.graph.inputs()[index]).borrow(view);
  is_bound_[index] = true;
  return Status::ok();
}

Status Run::bind_input(size_t index, const Tensor& value) {
  EDDY_CHECK(index < core_.inputs.size()) << "there is no input " << index;
  const ValueDescription& input = core_.inputs[index];
  if (value.is_on_device()) EDDY_RETURN_IF_ERROR(check_device_input(index));
  if (value.is_tensor()) return bind_tensor(index, value.view());
  Slot& slot = state_->slot(core_.graph.inputs()[index]);
  if (value.kind() == ValueKind::kNone) {
    if (!input.type.is_optional()) {
      return invalid_argument("input '" + input.name + "' must be " + input.text +
                              ", but nothing was given");
    }
    slot.set_none();
  } else {
    const ValueType type = input.type.is_optional() ? input.type.unwrapped() : input.type;
    if (!type.is_sequence()) {
      return invalid_argument("input '" + input.name + "' must be " + input.text +
                              ", but a sequence was given");
    }
    slot.set_none();
    slot.kind = ValueKind::kSequence;
    slot.sequence_element = input.type.tensor.element;
    for (const Tensor& element : value.elements()) {
      EDDY_RETURN_IF_ERROR(check_input(index, element.element_type(), element.dims().span()));
      if (element.is_on_device()) {
        return invalid_argument("an element of input '" + input.name +
                                "' is in a GPU's memory; sequences are in the host's");
      }
      // Borrowed, whoever owns it: a buffer of another session's device must not stay here.
      slot.elements.push_back(
          {BufferRef(), element.view().data, element.element_type(), element.dims()});
    }
  }
  is_bound_[index] = true;
  return Status::ok();
}

// Memory of a GPU's can only be copied there.
Status Run::check_device_input(size_t index) const {
  const std::string& name = core_.inputs[index].name;
  if (core_.accelerator_or_null == nullptr) {
    return invalid_argument("input '" + name +
                            "' is in a GPU's memory, but the session has no accelerator; copy it "
                            "to the host, or make the session with one");
  }
  const std::string& reader = core_.host_readers[index];
  if (reader.empty()) return Status::ok();
  return invalid_argument("input '" + name + "' is in a GPU's memory, but " + reader +
                          " reads it on the host; hand it over in the host's memory");
}

Status Run::bind_inputs(const NamedTensors& inputs) {
  for (const auto& [name, tensor] : inputs) {
    const auto it = core_.input_places.find(name);
    if (it == core_.input_places.end()) {
      std::string known;
      for (const ValueDescription& input : core_.inputs) {
        known += (known.empty() ? "" : ", ") + input.name;
      }
      return invalid_argument("there is no input '" + name + "'; the graph's inputs are: " +
                              (known.empty() ? "none" : known));
    }
    if (is_bound_[it->second]) {
      return invalid_argument("input '" + name + "' is given twice; leave one out");
    }
    EDDY_RETURN_IF_ERROR(bind_input(it->second, tensor));
  }
  return check_symbols();
}

Status Run::check_symbols() const {
  std::vector<std::pair<int64_t, int64_t>> sizes;  // symbol, size
  for (size_t i = 0; i < is_bound_.size(); ++i) {
    const ValueDescription& input = core_.inputs[i];
    if (!is_bound_[i]) return invalid_argument("input '" + input.name + "' (" + input.text + ") is missing");
    const Slot& slot = state_->slot(core_.graph.inputs()[i]);
    if (slot.kind != ValueKind::kTensor || !input.type.tensor.is_ranked) continue;
    for (int axis = 0; axis < input.type.tensor.dims.rank(); ++axis) {
      const int64_t symbol = input.type.tensor.dims[axis];
      if (symbol >= kUnknownDim) continue;
      const int64_t size = slot.view.dims[axis];
      const auto known = std::find_if(sizes.begin(), sizes.end(),
                                      [&](const auto& pair) { return pair.first == symbol; });
      if (known == sizes.end()) {
        sizes.emplace_back(symbol, size);
      } else if (known->second != size) {
        return invalid_argument("dimension '" + core_.graph.symbol(symbol) + "' is " +
                                std::to_string(known->second) + " in one input, but axis " +
                                std::to_string(axis) + " of input '" + input.name + "' is " +
                                std::to_string(size));
      }
    }
  }
  return Status::ok();
}

Status Run::bind_device_output(size_t index, const TensorView& view) {
  if (core_.accelerator_or_null == nullptr || !core_.accelerator_or_null->write) {
    return invalid_argument("the session has no accelerator, in whose memory an output could go");
  }
  if (view.element == ElementType::kString) {
    return unsupported("strings can't live in a GPU's memory");
  }
  EDDY_RETURN_IF_ERROR(bind_output(index, view));
  is_on_device_[index] = true;
  return Status::ok();
}

namespace {

bool is_aligned(const void* data, ElementType element) {
  const size_t size = element_size_bytes(element);
  return size > 0 && reinterpret_cast<uintptr_t>(data) % size == 0;
}

bool do_overlap(const TensorView& a, const TensorView& b) {
  const auto begin_a = reinterpret_cast<uintptr_t>(a.data);
  const auto begin_b = reinterpret_cast<uintptr_t>(b.data);
  return begin_a < begin_b + b.size_bytes() && begin_b < begin_a + a.size_bytes();
}

Status check_spare(const std::string& name, const TensorView& view, const TensorView& spare) {
  if (view.element != spare.element || !std::ranges::equal(view.shape(), spare.shape())) {
    return invalid_argument(name + " was given memory for " + found(view) + " and spare memory for " +
                            found(spare) + "; give two alike, or one");
  }
  EDDY_RETURN_IF_ERROR(check_memory("the spare place of " + name, spare));
  if (!do_overlap(view, spare)) return Status::ok();
  return invalid_argument(name + " was given spare memory that overlaps the other; give memory " +
                          "apart from it, or none");
}

}  // namespace

Status Run::bind_output(size_t index, const TensorView& view, const TensorView* spare_or_null) {
  EDDY_CHECK(index < core_.outputs.size()) << "there is no output " << index;
  const ValueDescription& output = core_.outputs[index];
  const std::string name = "output '" + output.name + "'";
  if (!is_of(output.type, view.element, view.shape())) {
    return invalid_argument(name + " is " + output.text + ", but memory for " + found(view) +
                            " was given");
  }
  EDDY_RETURN_IF_ERROR(check_memory(name, view));
  if (spare_or_null != nullptr) EDDY_RETURN_IF_ERROR(check_spare(name, view, *spare_or_null));
  state_->unbind_output(index);
  is_on_device_[index] = false;
  bound_outputs_[index] = {view, spare_or_null == nullptr ? nullptr : spare_or_null->data};
  is_any_bound_ = true;
  return Status::ok();
}

// Outputs are made in the caller's memory where that is apart from everything else that the caller
// has bound; others are copied when the run is done.
void Run::place_outputs() {
  if (!is_any_bound_) return;
  find_overlaps();
  for (size_t i = 0; i < bound_outputs_.size(); ++i) {
    if (!bound_outputs_[i]) continue;
    const auto& [view, spare_or_null] = *bound_outputs_[i];
    if (!is_on_device_[i] && may_be_made_in(i)) {
      state_->bind_output(i, view.data, spare_or_null, view.size_bytes());
    } else {
      state_->unbind_output(i);
    }
  }
}

bool Run::may_be_made_in(size_t index) const {
  const auto& [view, spare_or_null] = *bound_outputs_[index];
  return view.element != ElementType::kString && is_aligned(view.data, view.element) &&
         is_aligned(spare_or_null, view.element) &&
         std::ranges::find(overlapping_, index) == overlapping_.end() &&
         !core_.program->output_routes()[index].empty();
}

// Outputs whose memory other bound memory meets. One sweep, by beginning: a range that begins
// before another has ended meets it; of outputs that go on there, all but the longest have met.
void Run::find_overlaps() {
  ranges_.clear();
  overlapping_.clear();
  const auto add = [this](const void* data, size_t size_bytes, size_t output) {
    const auto begin = reinterpret_cast<uintptr_t>(data);
    if (size_bytes > 0) ranges_.push_back({begin, begin + size_bytes, output});
  };
  for (const ValueId input : core_.graph.inputs()) {
    const Slot& slot = state_->slot(input);
    if (slot.kind == ValueKind::kTensor) add(slot.view.data, slot.view.size_bytes(), kNoOutput);
    for (const SequenceElement& element : slot.elements) {
      add(element.data, element.view().size_bytes(), kNoOutput);
    }
  }
  for (size_t i = 0; i < bound_outputs_.size(); ++i) {
    if (!bound_outputs_[i]) continue;
    const auto& [view, spare_or_null] = *bound_outputs_[i];
    add(view.data, view.size_bytes(), i);
    if (spare_or_null != nullptr) add(spare_or_null, view.size_bytes(), i);
  }
  std::ranges::sort(ranges_, {}, &Range::begin);
  uintptr_t end = 0;      // of all ranges so far
  const Range* longest = nullptr;  // of the outputs
  for (const Range& range : ranges_) {
    const bool is_output = range.output != kNoOutput;
    if (longest != nullptr && range.begin < longest->end) overlapping_.push_back(longest->output);
    if (is_output && range.begin < end) overlapping_.push_back(range.output);
    if (is_output && (longest == nullptr || range.end > longest->end)) longest = &range;
    end = std::max(end, range.end);
  }
}

void Run::on_complete(void* run) {
  Run& self = *static_cast<Run*>(run);
  self.state_->end_device_loops();
  if (self.deadline_ && std::chrono::steady_clock::now() > *self.deadline_) {
    self.stop(StopReason::kDeadline);
  }
  self.outcome_ = self.state_->control.stop.load(std::memory_order_acquire);
  std::function<void()> on_done = std::move(self.on_done_);
  if (on_done) {
    self.done_.store(kDone, std::memory_order_release);
    return on_done();  // may destroy the run
  }
  self.done_.store(kWaking, std::memory_order_release);
  self.done_.notify_all();
  self.done_.store(kDone, std::memory_order_release);  // from here on a waiter may destroy the run
}

void Run::arm_deadline(std::chrono::steady_clock::time_point when) {
  timer_.arm(core_.scheduler(), when,
             [control = &state_->control] { control->request_stop(StopReason::kDeadline); });
}

void Run::launch(bool on_this_thread, std::optional<std::chrono::steady_clock::time_point> deadline,
                 std::function<void()> on_done) {
  on_done_ = std::move(on_done);
  done_.store(kRunning, std::memory_order_relaxed);
  place_outputs();
  deadline_ = deadline;
  if (on_this_thread) {
    state_->commands->run_here(state_->control);
  } else {
    state_->commands->start(state_->control);
  }
}

void Run::wait() {
  while (core_.do_waiters_poll() && !is_done()) {
    if (!core_.device->poll()) std::this_thread::yield();
  }
  for (int spin = 0; spin < core_.num_wait_spins; ++spin) {
    if (is_done()) return;
    __builtin_ia32_pause();
  }
  done_.wait(kRunning, std::memory_order_acquire);
  // Who wakes the waiters is about to say so.
  while (!is_done()) {
    core_.num_wait_spins > 0 ? __builtin_ia32_pause() : static_cast<void>(sched_yield());
  }
}

Status Run::end_status() {
  switch (outcome_) {
    case StopReason::kRunning: return state_->take_faults();
    case StopReason::kFailed: return state_->take_error();
    case StopReason::kCancelled: return cancelled("the run was cancelled");
    case StopReason::kDeadline: return deadline_exceeded("the run passed its deadline");
  }
  return internal_error("unknown stop reason");
}

Status Run::finish() {
  timer_.disarm();
  Status status = end_status();
  state_->control.stop.store(StopReason::kRunning, std::memory_order_relaxed);
  if (!status.is_ok()) {
    state_->reset();
    return status;
  }
  return copy_outputs();
}

TensorView Run::made(size_t index) {
  return state_->slot(core_.graph.outputs()[index]).view;
}

bool Run::is_home(size_t index) { return bound_outputs_[index]->has(made(index).data); }

Status Run::check_made(size_t index) {
  const TensorView& wanted = bound_outputs_[index]->view;
  if (std::ranges::equal(made(index).shape(), wanted.shape())) return Status::ok();
  return invalid_argument("output '" + core_.outputs[index].name + "' has shape " +
                          to_string(Dims(made(index).shape())) + ", but memory for " +
                          to_string(Dims(wanted.shape())) + " was given");
}

// What one iteration made as one output may have become another, or one that nobody has bound, or
// part of a sequence; and the memory is about to take what is its own.
Status Run::clear_callers_memory() {
  for (size_t i = 0; i < bound_outputs_.size(); ++i) {
    if (bound_outputs_[i] && is_home(i)) continue;
    EDDY_ASSIGN_OR_RETURN(const size_t bytes, state_->move_home(core_.graph.outputs()[i]));
    copied_bytes_ += bytes;
  }
  return Status::ok();
}

Status Run::copy_outputs() {
  copied_bytes_ = 0;
  if (!is_any_bound_) return Status::ok();
  EDDY_RETURN_IF_ERROR(clear_callers_memory());
  for (size_t i = 0; i < bound_outputs_.size(); ++i) {
    if (bound_outputs_[i]) EDDY_RETURN_IF_ERROR(check_made(i));
  }
  // What is copied may overlap where another output is to go: then all are read before any is
  // written.
  std::vector<Tensor> read(overlapping_.empty() ? 0 : bound_outputs_.size());
  for (size_t i = 0; i < read.size(); ++i) {
    if (bound_outputs_[i] && !is_home(i)) read[i] = Tensor::copy_of(made(i));
  }
  for (size_t i = 0; i < bound_outputs_.size(); ++i) {
    if (!bound_outputs_[i] || is_home(i)) continue;
    EDDY_RETURN_IF_ERROR(copy_output(i, read.empty() ? made(i) : read[i].view()));
  }
  return Status::ok();
}

Status Run::copy_output(size_t index, const TensorView& from) {
  const TensorView& wanted = bound_outputs_[index]->view;
  copied_bytes_ += from.size_bytes();
  if (is_on_device_[index]) {
    return core_.accelerator_or_null->write(wanted.data, from.data, from.size_bytes());
  }
  if (from.element == ElementType::kString) {
    std::copy_n(from.as<std::string>(), from.count(), wanted.mutable_as<std::string>());
  } else if (from.size_bytes() > 0) {
    std::memcpy(wanted.data, from.data, from.size_bytes());
  }
  return Status::ok();
}

TensorView Run::output(size_t index) {
  TensorView view = made(index);
  if (bound_outputs_[index] && !is_home(index)) view.data = bound_outputs_[index]->view.data;
  return view;
}

namespace {

Tensor to_tensor(const TensorView& view, const BufferRef& buffer,
                 const std::shared_ptr<const void>& device) {
  // What no step has made is nothing, and no reason to read through a null pointer.
  if (view.data == nullptr && view.size_bytes() > 0) return Tensor();
  // Borrowed memory (the caller's input, a constant) may go before the tensor does.
  const bool is_own = buffer && !is_callers_memory(buffer);
  return is_own ? Tensor::in_buffer(view, buffer, device) : Tensor::copy_of(view);
}

}  // namespace

Tensor Run::collect_output(size_t index) {
  const Slot& slot = state_->slot(core_.graph.outputs()[index]);
  const std::shared_ptr<const void> device = core_.keep_alive();
  if (slot.kind == ValueKind::kTensor) return to_tensor(slot.view, slot.buffer, device);
  if (slot.kind != ValueKind::kSequence) return Tensor();
  std::vector<Tensor> elements;
  for (const SequenceElement& element : slot.elements) {
    elements.push_back(to_tensor(element.view(), element.buffer, device));
  }
  return Tensor::sequence(slot.sequence_element, std::move(elements));
}

NamedTensors Run::collect_outputs() {
  NamedTensors outputs;
  for (size_t i = 0; i < core_.outputs.size(); ++i) {
    outputs.emplace_back(core_.outputs[i].name, collect_output(i));
  }
  return outputs;
}

}  // namespace eddy
