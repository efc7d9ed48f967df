// Inputs of a run: checked, given or bound, and copied where kernels could not read them.
#include <algorithm>

#include "graph/base/check.h"
#include "graph/base/fingerprint.h"
#include "runtime/api/bound_memory.h"
#include "runtime/api/run_values.h"
#include "runtime/api/session_core.h"
#include "runtime/net/rank_session.h"

namespace eddy {

Status RunValues::check_input(size_t index, ElementType element,
                              std::span<const int64_t> dims) const {
  const ValueDescription& input = core_.inputs[index];
  if (is_of(ValueType(input.type.tensor), element, dims)) return Status::ok();
  return invalid_argument("input '" + input.name + "' must be " + input.text + ", but " +
                          found(element, dims) + " was given");
}

Status RunValues::check_tensor(size_t index, const TensorView& view) const {
  const ValueDescription& input = core_.inputs[index];
  if (input.type.is_sequence()) {
    return invalid_argument("input '" + input.name + "' must be " + input.text +
                            ", but a tensor was given");
  }
  EDDY_RETURN_IF_ERROR(check_input(index, view.element, view.shape()));
  return check_memory([&] { return "input '" + input.name + "'"; }, view);
}

Status RunValues::check_elements(size_t index, const Tensor& sequence) const {
  const std::string& name = core_.inputs[index].name;
  for (const Tensor& element : sequence.elements()) {
    if (!element.is_tensor()) {
      return invalid_argument("an element of input '" + name + "' is " +
                              (element.kind() == ValueKind::kNone ? "nothing" : "a sequence") +
                              "; sequences hold tensors");
    }
    EDDY_RETURN_IF_ERROR(check_input(index, element.element_type(), element.dims().span()));
    EDDY_RETURN_IF_ERROR(
        check_memory([&] { return "an element of input '" + name + "'"; }, element.view()));
    if (element.is_on_device()) {
      return invalid_argument("an element of input '" + name +
                              "' is in a GPU's memory; sequences are in the host's");
    }
    if (!is_aligned(element.view().data, element.element_type())) {
      return invalid_argument(
          "an element of input '" + name + "' is at an address that is no " + "multiple of " +
          std::to_string(alignment_of(element.element_type())) + " bytes; copy it");
    }
  }
  return Status::ok();
}

Status RunValues::check_value(size_t index, const Tensor& value) const {
  EDDY_CHECK(index < core_.inputs.size()) << "there is no input " << index;
  const ValueDescription& input = core_.inputs[index];
  if (value.is_on_device()) EDDY_RETURN_IF_ERROR(check_device_input(index));
  if (value.is_tensor() && input.type.is_tensor()) return check_tensor(index, value.view());
  const bool is_none = value.kind() == ValueKind::kNone;
  const ValueType type = input.type.is_optional() ? input.type.unwrapped() : input.type;
  if (value.is_tensor() && !type.is_sequence()) return check_tensor(index, value.view());
  const bool fits = is_none ? input.type.is_optional() : !value.is_tensor() && type.is_sequence();
  if (fits) return check_elements(index, value);
  return invalid_argument("input '" + input.name + "' must be " + input.text + ", but " +
                          (is_none             ? "nothing"
                           : value.is_tensor() ? "a tensor"
                                               : "a sequence") +
                          " was given");
}

void RunValues::borrow(size_t index, const TensorView& view) {
  are_places_known_ = false;
  state_->slot(core_.graph().inputs()[index]).borrow(view);
  std::erase_if(misaligned_, [index](const auto& each) { return each.first == index; });
  if (!is_aligned(view.data, view.element)) misaligned_.emplace_back(index, view.data);
}

// Anew for each launch: the caller may have written there.
Status RunValues::align_inputs() {
  for (const auto& [index, data] : misaligned_) {
    Slot& slot = state_->slot(core_.graph().inputs()[index]);
    TensorView from = slot.view;
    from.data = const_cast<void*>(data);
    EDDY_RETURN_IF_ERROR(slot.copy(from, state_->allocator()));
  }
  return Status::ok();
}

// What has been checked. Where it fails, what was bound before stays bound.
Status RunValues::put(size_t index, const Tensor& value) {
  are_places_known_ = false;
  Slot& slot = state_->slot(core_.graph().inputs()[index]);
  if (value.is_tensor()) {
    value.is_on_device() ? slot.borrow(value.view()) : borrow(index, value.view());
    return Status::ok();
  }
  ElementStack elements;
  for (const Tensor& element : value.elements()) {
    // Borrowed, whatever owns it: a buffer of another session's device must not stay here.
    EDDY_RETURN_IF_ERROR(elements.push_back(
        {BufferRef(), element.view().data, element.element_type(), element.dims()},
        state_->allocator()));
  }
  std::erase_if(misaligned_, [index](const auto& each) { return each.first == index; });
  slot.set_none();
  if (value.kind() == ValueKind::kNone) return Status::ok();
  slot.kind = ValueKind::kSequence;
  slot.sequence_element = core_.inputs[index].type.tensor.element;
  slot.elements.swap(elements);
  return Status::ok();
}

void RunValues::note_bound(size_t index) {
  is_bound_.resize(core_.inputs.size(), false);
  EDDY_DCHECK(index < is_bound_.size()) << "input " << index << " of " << is_bound_.size();
  is_bound_[index] = true;
}

Status RunValues::bind_tensor(size_t index, const TensorView& view) {
  EDDY_CHECK(index < core_.inputs.size()) << "there is no input " << index;
  EDDY_RETURN_IF_ERROR(check_tensor(index, view));
  borrow(index, view);
  note_bound(index);
  return Status::ok();
}

Status RunValues::bind_input(size_t index, const Tensor& value) {
  EDDY_RETURN_IF_ERROR(check_value(index, value));
  EDDY_RETURN_IF_ERROR(put(index, value));
  note_bound(index);
  return Status::ok();
}

// Memory of a GPU's can only be copied there.
Status RunValues::check_device_input(size_t index) const {
  const std::string& name = core_.inputs[index].name;
  if (core_.has_one_device()) {
    return invalid_argument("input '" + name +
                            "' is in a GPU's memory, but the session has no accelerator; copy it "
                            "to the host, or make the session with one");
  }
  const std::string& reader = core_.host_readers[index];
  if (reader.empty()) return Status::ok();
  return invalid_argument("input '" + name + "' is in a GPU's memory, but " + reader +
                          " reads it on the host; hand it over in the host's memory");
}

void RunValues::make_room_to_give() {
  const size_t count = core_.inputs.size();
  if (count > few_given_.size()) many_given_.resize(count);
  given_ = count > few_given_.size() ? std::span(many_given_) : std::span(few_given_).first(count);
}

Status RunValues::give_input(size_t index, const Tensor& value) {
  EDDY_CHECK(index < core_.inputs.size()) << "there is no input " << index;
  if (given_.empty()) make_room_to_give();
  EDDY_DCHECK(given_.size() == core_.inputs.size()) << given_.size() << " places for inputs";
  if (given_[index] != nullptr) {
    return invalid_argument("input '" + core_.inputs[index].name +
                            "' is given twice; leave one out");
  }
  EDDY_RETURN_IF_ERROR(check_value(index, value));
  given_[index] = &value;
  return Status::ok();
}

Status RunValues::give_inputs(const NamedTensors& inputs) {
  for (const auto& [name, tensor] : inputs) {
    EDDY_ASSIGN_OR_RETURN(const size_t index, core_.find_input(name));
    EDDY_RETURN_IF_ERROR(give_input(index, tensor));
  }
  return check_symbols();
}

// Of an input that is a tensor: given, or bound to the state.
std::optional<std::span<const int64_t>> RunValues::bound_shape(size_t index) const {
  if (!given_.empty()) {
    if (!given_[index]->is_tensor()) return std::nullopt;
    return given_[index]->dims().span();
  }
  const Slot& slot = state_->slot(core_.graph().inputs()[index]);
  if (slot.kind != ValueKind::kTensor) return std::nullopt;
  return slot.view.shape();
}

Status RunValues::check_symbols() const {
  std::vector<std::pair<int64_t, int64_t>> sizes;  // symbol, size
  for (size_t i = 0; i < core_.inputs.size(); ++i) {
    const ValueDescription& input = core_.inputs[i];
    if (!is_there(i))
      return invalid_argument("input '" + input.name + "' (" + input.text + ") is missing");
    const std::optional<std::span<const int64_t>> shape = bound_shape(i);
    if (!shape || !input.type.tensor.is_ranked) continue;
    for (int axis = 0; axis < input.type.tensor.dims.rank(); ++axis) {
      const int64_t symbol = input.type.tensor.dims[axis];
      if (symbol >= kUnknownDim) continue;
      const int64_t size = (*shape)[static_cast<size_t>(axis)];
      const auto known = std::find_if(sizes.begin(), sizes.end(),
                                      [&](const auto& pair) { return pair.first == symbol; });
      if (known == sizes.end()) {
        sizes.emplace_back(symbol, size);
      } else if (known->second != size) {
        return invalid_argument("dimension '" + core_.graph().symbol(symbol) + "' is " +
                                std::to_string(known->second) + " in one input, but axis " +
                                std::to_string(axis) + " of input '" + input.name + "' is " +
                                std::to_string(size));
      }
    }
  }
  return Status::ok();
}

std::string RunValues::shared_facts() const {
  std::string text;
  if (core_.ranks == nullptr) return text;
  for (const std::string& name : core_.ranks->options().replicated) {
    const size_t index = core_.input_places.at(name);
    const TensorView& view = state_->slot(core_.graph().inputs()[index]).view;
    Fingerprint digest;
    for (const int64_t dim : view.shape()) digest.add(static_cast<uint64_t>(dim));
    digest.add_bytes(view.data, view.size_bytes());
    text += "input " + name + "=" + digest.text() + "\n";
  }
  for (const SessionCore::SharedShape& shape : core_.shared_shapes) {
    text += "shape " + shape.node + "=[";
    for (const SessionCore::SharedShape::Dim& dim : shape.dims) {
      const bool is_known = dim.size >= 0;
      const int64_t size =
          is_known ? dim.size : (*bound_shape(dim.input))[static_cast<size_t>(dim.axis)];
      text += (&dim == shape.dims.data() ? "" : ",") + std::to_string(size);
    }
    text += "]\n";
  }
  return text;
}

}  // namespace eddy
