#include "graph/io/host_value.h"

#include <cstring>

#include "graph/base/check.h"

namespace eddy {

HostValue HostValue::tensor(ElementType element, const Dims& dims) {
  EDDY_CHECK(dims.count().has_value()) << "a tensor's shape must be known: " << to_string(dims);
  HostValue value;
  value.kind = Kind::kTensor;
  value.element = element;
  value.dims = dims;
  const size_t count = static_cast<size_t>(*dims.count());
  if (element == ElementType::kString) {
    value.strings.resize(count);
  } else {
    value.bytes.resize(count * element_size_bytes(element));
  }
  return value;
}

HostValue HostValue::copy_of(const TensorView& view) {
  HostValue value = tensor(view.element, Dims(view.shape()));
  if (view.element == ElementType::kString) {
    value.strings.assign(view.as<std::string>(), view.as<std::string>() + view.count());
  } else if (!value.bytes.empty()) {
    EDDY_CHECK(view.data != nullptr) << value.bytes.size() << " bytes of nothing";
    std::memcpy(value.bytes.data(), view.data, value.bytes.size());
  }
  return value;
}

HostValue HostValue::sequence(ElementType element, std::vector<HostValue> elements) {
  HostValue value;
  value.kind = Kind::kSequence;
  value.element = element;
  value.elements = std::move(elements);
  return value;
}

TensorView HostValue::view() const {
  EDDY_CHECK(kind == Kind::kTensor) << "only a tensor has a view";
  const void* data = element == ElementType::kString ? static_cast<const void*>(strings.data())
                                                     : static_cast<const void*>(bytes.data());
  return {const_cast<void*>(data), dims.data(), dims.rank(), element};
}

}  // namespace eddy
