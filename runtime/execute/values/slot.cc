#include "runtime/execute/values/slot.h"

#include <algorithm>
#include <cstring>

#include "graph/base/check.h"

namespace eddy {

Result<size_t> tensor_size_bytes(ElementType element, std::span<const int64_t> dims) {
  const std::optional<int64_t> count = Dims(dims).count();
  size_t bytes = 0;
  if (!count ||
      __builtin_mul_overflow(static_cast<size_t>(*count), element_size_bytes(element), &bytes) ||
      bytes > SIZE_MAX / 4) {
    return resource_exhausted("a tensor of shape " + to_string(Dims(dims)) + " is too large");
  }
  return bytes;
}

void Slot::set_tensor(ElementType element, std::span<const int64_t> dims) {
  EDDY_DCHECK(dims.size() <= dims_.size()) << "a tensor of " << dims.size() << " axes";
  kind = ValueKind::kTensor;
  view.element = element;
  view.rank = static_cast<int32_t>(dims.size());
  view.dims = dims_.data();
  std::copy(dims.begin(), dims.end(), dims_.begin());
}

void Slot::borrow(const TensorView& tensor) {
  set_tensor(tensor.element, tensor.shape());
  view.data = tensor.data;
  buffer.reset();
}

Status Slot::copy(const TensorView& tensor, Allocator& allocator) {
  const Dims dims(tensor.shape());  // which may be this slot's own
  const void* const data = tensor.data;
  set_tensor(tensor.element, dims.span());
  EDDY_RETURN_IF_ERROR(make_writable(allocator));
  if (view.size_bytes() > 0) std::memcpy(view.data, data, view.size_bytes());
  return Status::ok();
}

Status Slot::share(const Slot& source, Allocator& allocator) {
  kind = source.kind;
  if (source.kind == ValueKind::kTensor) {
    if (source.is_volatile) return copy(source.view, allocator);
    set_tensor(source.view.element, source.view.shape());
    view.data = source.view.data;
    buffer = source.buffer;
  } else if (source.kind == ValueKind::kSequence) {
    sequence_element = source.sequence_element;
    elements = source.elements;
  }
  return Status::ok();
}

void Slot::set_none() {
  kind = ValueKind::kNone;
  buffer.reset();
  elements.clear();
}

void Slot::swap(Slot& other) {
  std::swap(view, other.view);
  std::swap(dims_, other.dims_);
  view.dims = dims_.data();
  other.view.dims = other.dims_.data();
  buffer.swap(other.buffer);
  std::swap(kind, other.kind);
  std::swap(sequence_element, other.sequence_element);
  elements.swap(other.elements);
}

Status Slot::make_writable(Allocator& allocator) {
  EDDY_ASSIGN_OR_RETURN(const size_t bytes, tensor_size_bytes(view.element, view.shape()));
  const bool is_string = view.element == ElementType::kString;
  const size_t strings = is_string ? bytes / sizeof(std::string) : 0;
  if (buffer.is_writable(bytes) && buffer.get()->num_strings == strings) {
    view.data = buffer.data();
    return Status::ok();
  }
  buffer.reset();  // first: its memory may serve the next line
  if (is_string) {
    EDDY_ASSIGN_OR_RETURN(buffer, allocator.allocate_strings(strings));
  } else {
    EDDY_ASSIGN_OR_RETURN(buffer, allocator.allocate(bytes));
  }
  view.data = buffer.data();
  return Status::ok();
}

void Slot::share_element(const SequenceElement& element) {
  set_tensor(element.element, element.dims.span());
  view.data = const_cast<void*>(element.data);
  buffer = element.buffer;
}

SequenceElement Slot::as_element() const {
  return {buffer, view.data, view.element, Dims(view.shape())};
}

}  // namespace eddy
