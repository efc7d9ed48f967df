#include "runtime/api/tensor.h"

#include <cstddef>
#include <cstring>

namespace eddy {
namespace {

constexpr size_t kAlignment = 64;

// One allocation, the count of references included.
std::shared_ptr<void> make_bytes(size_t size_bytes) {
  size_t space = size_bytes + kAlignment - 1;
  auto block = std::make_shared_for_overwrite<std::byte[]>(space);
  void* data = block.get();
  data = std::align(kAlignment, size_bytes, data, space);
  return {std::move(block), data};
}

std::shared_ptr<void> copy_bytes(const TensorView& view) {
  const size_t bytes = view.size_bytes();
  std::shared_ptr<void> made = make_bytes(bytes);
  if (bytes > 0) std::memcpy(made.get(), view.data, bytes);
  return made;
}

std::shared_ptr<void> copy_strings(const TensorView& view) {
  const auto* strings = view.as<std::string>();
  auto copy = std::make_shared<std::vector<std::string>>(strings, strings + view.count());
  std::string* const data = copy->data();
  return {std::move(copy), data};
}

}  // namespace

Tensor Tensor::borrow(const TensorView& view) {
  Tensor tensor;
  tensor.kind_ = ValueKind::kTensor;
  tensor.element_ = view.element;
  tensor.dims_ = Dims(view.shape());
  tensor.data_ = view.data;
  return tensor;
}

Tensor Tensor::adopt(const TensorView& view, std::shared_ptr<const void> owner,
                     std::optional<int32_t> gpu) {
  Tensor tensor = borrow(view);
  tensor.owner_ = std::move(owner);
  tensor.gpu_ = gpu;
  return tensor;
}

Tensor Tensor::copy_of(const TensorView& view) {
  Tensor tensor = borrow(view);
  auto copy = view.element == ElementType::kString ? copy_strings(view) : copy_bytes(view);
  tensor.data_ = copy.get();
  tensor.owner_ = std::move(copy);
  return tensor;
}

Tensor Tensor::zeros(ElementType element, const Dims& dims) {
  EDDY_CHECK(dims.count().has_value())
      << "zeros() of " << to_string(dims) << ", which is open or too large";
  if (element == ElementType::kString) {
    const std::vector<std::string> empty(static_cast<size_t>(*dims.count()));
    return copy_of({const_cast<std::string*>(empty.data()), dims.data(), dims.rank(), element});
  }
  const size_t bytes = static_cast<size_t>(*dims.count()) * element_size_bytes(element);
  const std::shared_ptr<void> zero = make_bytes(bytes);
  std::memset(zero.get(), 0, bytes);
  Tensor tensor = borrow({zero.get(), dims.data(), dims.rank(), element});
  tensor.owner_ = zero;
  return tensor;
}

Tensor Tensor::sequence(ElementType element, std::vector<Tensor> elements) {
  Tensor tensor;
  tensor.kind_ = ValueKind::kSequence;
  tensor.element_ = element;
  tensor.elements_ = std::move(elements);
  return tensor;
}

Tensor Tensor::in_buffer(const TensorView& view, BufferRef buffer,
                         std::shared_ptr<const void> device) {
  Tensor tensor = borrow(view);
  tensor.owner_ = std::move(device);
  tensor.buffer_ = std::move(buffer);
  return tensor;
}

TensorView Tensor::view() const {
  EDDY_CHECK(is_tensor()) << "view() of a value that is not a tensor";
  return {data_, dims_.data(), dims_.rank(), element_};
}

std::map<std::string, Dims> shapes_of(const NamedTensors& values) {
  std::map<std::string, Dims> shapes;
  for (const auto& [name, value] : values) {
    if (value.is_tensor()) shapes.emplace(name, value.dims());
  }
  return shapes;
}

}  // namespace eddy
