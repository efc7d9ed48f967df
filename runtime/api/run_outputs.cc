// Outputs of a run: bound to the caller's memory and made there or copied, and collected.
#include <algorithm>
#include <cstring>
#include <new>

#include "graph/base/check.h"
#include "runtime/api/bound_memory.h"
#include "runtime/api/run_values.h"
#include "runtime/api/session_core.h"

namespace eddy {

Status RunValues::bind_device_output(size_t index, const TensorView& view) {
  if (first_staging_or_null(core_.devices) == nullptr) {
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

bool do_overlap(const TensorView& a, const TensorView& b) {
  const auto begin_a = reinterpret_cast<uintptr_t>(a.data);
  const auto begin_b = reinterpret_cast<uintptr_t>(b.data);
  return begin_a < begin_b + b.size_bytes() && begin_b < begin_a + a.size_bytes();
}

Status check_spare(const std::string& name, const TensorView& view, const TensorView& spare) {
  if (view.element != spare.element || !std::ranges::equal(view.shape(), spare.shape())) {
    return invalid_argument(name + " was given memory for " + found(view) +
                            " and spare memory for " + found(spare) + "; give two alike, or one");
  }
  EDDY_RETURN_IF_ERROR(check_memory([&] { return "the spare place of " + name; }, spare));
  if (!do_overlap(view, spare)) return Status::ok();
  return invalid_argument(name + " was given spare memory that overlaps the other; give memory " +
                          "apart from it, or none");
}

}  // namespace

// Runs that bind nothing, as those by name, pay nothing for it.
void RunValues::make_room_to_bind() {
  const size_t count = core_.outputs.size();
  bound_outputs_.resize(count);
  bound_dims_.resize(count);
  is_on_device_.resize(count, false);
  is_made_there_.resize(count, false);
}

Status RunValues::bind_output(size_t index, const TensorView& view,
                              const TensorView* spare_or_null) {
  EDDY_CHECK(index < core_.outputs.size()) << "there is no output " << index;
  if (bound_outputs_.empty()) make_room_to_bind();
  const ValueDescription& output = core_.outputs[index];
  const std::string name = "output '" + output.name + "'";
  if (!is_of(output.type, view.element, view.shape())) {
    return invalid_argument(name + " is " + output.text + ", but memory for " + found(view) +
                            " was given");
  }
  EDDY_RETURN_IF_ERROR(check_memory([&] { return name; }, view));
  if (spare_or_null != nullptr) EDDY_RETURN_IF_ERROR(check_spare(name, view, *spare_or_null));
  state_->unbind_output(index);
  is_on_device_[index] = false;
  bound_dims_[index] = Dims(view.shape());
  TensorView kept = view;
  kept.dims = bound_dims_[index].data();
  bound_outputs_[index] = {kept, spare_or_null == nullptr ? nullptr : spare_or_null->data};
  is_any_bound_ = true;
  are_places_known_ = false;
  return Status::ok();
}

// Outputs are made in the caller's memory where that is apart from everything else that the caller
// has bound; others are copied when the run is done.
void RunValues::place_outputs() {
  if (!are_places_known_) find_places();
  if (!is_any_made_there_) return;
  for (size_t i = 0; i < bound_outputs_.size(); ++i) {
    if (!bound_outputs_[i]) continue;
    const auto& [view, spare_or_null] = *bound_outputs_[i];
    if (is_made_there_[i]) state_->bind_output(i, view.data, spare_or_null, view.size_bytes());
  }
}

// Copies of misaligned inputs stand elsewhere each time.
void RunValues::find_places() {
  find_overlaps();
  is_any_made_there_ = false;
  for (size_t i = 0; i < bound_outputs_.size(); ++i) {
    is_made_there_[i] = bound_outputs_[i] &&
                        is_on_device_[i] == core_.executable->is_only_copied_out(i) &&
                        may_be_made_in(i);
    is_any_made_there_ |= is_made_there_[i];
    if (!is_made_there_[i]) state_->unbind_output(i);
  }
  are_places_known_ = misaligned_.empty();
}

bool RunValues::may_be_made_in(size_t index) const {
  const auto& [view, spare_or_null] = *bound_outputs_[index];
  return view.element != ElementType::kString && is_aligned(view.data, view.element) &&
         is_aligned(spare_or_null, view.element) &&
         std::ranges::find(overlapping_, index) == overlapping_.end() &&
         !core_.executable->output_routes()[index].empty();
}

// Outputs whose memory other bound memory meets. One sweep, by beginning: a range that begins
// before another has ended meets it; of outputs that go on there, all but the longest have met.
void RunValues::find_overlaps() {
  ranges_.clear();
  overlapping_.clear();
  const auto add = [this](const void* data, size_t size_bytes, size_t output) {
    const auto begin = reinterpret_cast<uintptr_t>(data);
    if (size_bytes > 0) ranges_.push_back({begin, begin + size_bytes, output});
  };
  for (const ValueId input : core_.graph().inputs()) {
    const Slot& slot = state_->slot(input);
    if (slot.kind == ValueKind::kTensor) add(slot.view.data, slot.view.size_bytes(), kNoOutput);
    for (const SequenceElement* element : slot.elements.in_order()) {
      add(element->data, element->view().size_bytes(), kNoOutput);
    }
  }
  for (size_t i = 0; i < bound_outputs_.size(); ++i) {
    if (!bound_outputs_[i]) continue;
    const auto& [view, spare_or_null] = *bound_outputs_[i];
    add(view.data, view.size_bytes(), i);
    if (spare_or_null != nullptr) add(spare_or_null, view.size_bytes(), i);
  }
  std::ranges::sort(ranges_, {}, &Range::begin);
  uintptr_t end = 0;               // of all ranges so far
  const Range* longest = nullptr;  // of the outputs
  for (const Range& range : ranges_) {
    const bool is_output = range.output != kNoOutput;
    if (longest != nullptr && range.begin < longest->end) overlapping_.push_back(longest->output);
    if (is_output && range.begin < end) overlapping_.push_back(range.output);
    if (is_output && (longest == nullptr || range.end > longest->end)) longest = &range;
    end = std::max(end, range.end);
  }
}

namespace {

Status no_memory() { return resource_exhausted("no memory for copies of the run's outputs"); }

}  // namespace

const TensorView& RunValues::made(size_t index) {
  return state_->slot(core_.graph().outputs()[index]).view;
}

bool RunValues::is_home(size_t index) { return bound_outputs_[index]->has(made(index).data); }

Status RunValues::check_made(size_t index) {
  const TensorView& wanted = bound_outputs_[index]->view;
  if (std::ranges::equal(made(index).shape(), wanted.shape())) return Status::ok();
  return invalid_argument("output '" + core_.outputs[index].name + "' has shape " +
                          to_string(Dims(made(index).shape())) + ", but memory for " +
                          to_string(Dims(wanted.shape())) + " was given");
}

// What one iteration made as one output may have become another, or one that is not bound, or
// part of a sequence; and the memory is about to take what is its own.
Status RunValues::clear_callers_memory() {
  for (size_t i = 0; i < bound_outputs_.size(); ++i) {
    if (bound_outputs_[i] && is_home(i)) continue;
    EDDY_ASSIGN_OR_RETURN(const size_t bytes, state_->move_home(core_.graph().outputs()[i]));
    copied_bytes_ += bytes;
  }
  return Status::ok();
}

Status RunValues::copy_outputs() try {
  copied_bytes_ = 0;
  if (is_any_made_there_) EDDY_RETURN_IF_ERROR(clear_callers_memory());
  for (size_t i = 0; i < bound_outputs_.size(); ++i) {
    if (bound_outputs_[i]) EDDY_RETURN_IF_ERROR(check_made(i));
  }
  if (!overlapping_.empty()) return copy_overlapping();
  for (size_t i = 0; i < bound_outputs_.size(); ++i) {
    if (bound_outputs_[i] && !is_home(i)) EDDY_RETURN_IF_ERROR(copy_output(i, made(i)));
  }
  return Status::ok();
} catch (const std::bad_alloc&) {
  return no_memory();
}

// What is copied may overlap where another output is to go: all are read before any is written.
Status RunValues::copy_overlapping() {
  std::vector<Tensor> read(bound_outputs_.size());
  for (size_t i = 0; i < read.size(); ++i) {
    if (bound_outputs_[i] && !is_home(i)) read[i] = Tensor::copy_of(made(i));
  }
  for (size_t i = 0; i < read.size(); ++i) {
    if (read[i].is_tensor()) EDDY_RETURN_IF_ERROR(copy_output(i, read[i].view()));
  }
  return Status::ok();
}

Status RunValues::copy_output(size_t index, const TensorView& from) {
  const TensorView& wanted = bound_outputs_[index]->view;
  const size_t size_bytes = from.size_bytes();
  copied_bytes_ += size_bytes;
  if (is_on_device_[index]) {
    return first_staging_or_null(core_.devices)->write(wanted.data, from.data, size_bytes);
  }
  if (from.element == ElementType::kString) {
    std::copy_n(from.as<std::string>(), from.count(), wanted.mutable_as<std::string>());
  } else if (size_bytes > 0) {
    std::memcpy(wanted.data, from.data, size_bytes);
  }
  return Status::ok();
}

TensorView RunValues::output(size_t index) {
  TensorView view = made(index);
  if (is_any_bound_ && bound_outputs_[index] && !is_home(index)) {
    view.data = bound_outputs_[index]->view.data;
  }
  return view;
}

namespace {

// Borrowed memory (the caller's input, a constant) may go before a tensor of it does.
bool is_own(const BufferRef& buffer) { return buffer && !is_callers_memory(buffer); }

Tensor to_tensor(const TensorView& view, const BufferRef& buffer, const SessionCore& core) {
  // What no step has made is nothing, and no reason to read through a null pointer.
  if (view.data == nullptr && view.size_bytes() > 0) return Tensor();
  return is_own(buffer) ? Tensor::in_buffer(view, buffer, core.keep_alive())
                        : Tensor::copy_of(view);
}

}  // namespace

bool RunValues::copies_collected() const {
  const auto is_copied = [](const auto* value) { return !is_own(value->buffer); };
  return std::ranges::any_of(core_.graph().outputs(), [&](ValueId output) {
    const Slot& slot = state_->slot(output);
    return slot.kind == ValueKind::kSequence
               ? std::ranges::any_of(slot.elements.in_order(), is_copied)
               : slot.kind == ValueKind::kTensor && is_copied(&slot);
  });
}

Tensor RunValues::collect_output(size_t index) {
  if (is_any_bound_ && is_on_device_[index]) return Tensor();
  const Slot& slot = state_->slot(core_.graph().outputs()[index]);
  if (slot.kind == ValueKind::kTensor) return to_tensor(slot.view, slot.buffer, core_);
  if (slot.kind != ValueKind::kSequence) return Tensor();
  std::vector<Tensor> elements;
  for (const SequenceElement* element : slot.elements.in_order()) {
    elements.push_back(to_tensor(element->view(), element->buffer, core_));
  }
  return Tensor::sequence(slot.sequence_element, std::move(elements));
}

Status RunValues::collect_outputs(std::span<const size_t> which, std::span<Tensor> into) try {
  EDDY_DCHECK(which.size() == into.size()) << which.size() << " outputs into " << into.size();
  for (size_t i = 0; i < which.size(); ++i) into[i] = collect_output(which[i]);
  return Status::ok();
} catch (const std::bad_alloc&) {
  return no_memory();
}

Result<NamedTensors> RunValues::collect_outputs() {
  try {
    NamedTensors outputs;
    for (size_t i = 0; i < core_.outputs.size(); ++i) {
      outputs.emplace_back(core_.outputs[i].name, collect_output(i));
    }
    return outputs;
  } catch (const std::bad_alloc&) {
    return no_memory();
  }
}

}  // namespace eddy
