#include "tests/ops/testing/test_tensor.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "ops/reference/parts/number.h"

namespace eddy::testing {

TestTensor::TestTensor(ElementType element, const Dims& dims) : element_(element), dims_(dims) {
  EDDY_CHECK(dims.is_static()) << "a tensor needs sizes, not " << to_string(dims);
  if (element == ElementType::kString) {
    strings_ = std::make_shared<std::vector<std::string>>(static_cast<size_t>(count()));
    return;
  }
  const size_t size_bytes = static_cast<size_t>(count()) * element_size_bytes(element);
  const size_t rounded = (size_bytes + 64) / 64 * 64;
  bytes_ = std::shared_ptr<std::byte>(static_cast<std::byte*>(std::aligned_alloc(64, rounded)),
                                      [](std::byte* bytes) { std::free(bytes); });
  std::memset(bytes_.get(), 0xCD, rounded);
}

TestTensor TestTensor::of_strings(const Dims& dims, const std::vector<std::string>& values) {
  TestTensor tensor(ElementType::kString, dims);
  *tensor.strings_ = values;
  return tensor;
}

TestTensor TestTensor::random(ElementType element, const Dims& dims, Random& random, double low,
                              double high) {
  TestTensor tensor(element, dims);
  const TensorView view = tensor.view();
  const bool is_float = kFloatTypes.contains(element);
  for (int64_t i = 0; i < tensor.count(); ++i) {
    double value = low + (high - low) * random.uniform();
    if (!is_float) {
      value = std::floor(low + static_cast<double>(random.below(
                                   static_cast<uint64_t>(std::max(high - low, 0.0)) + 1)));
    }
    if (element == ElementType::kBool) value = static_cast<double>(random.below(2));
    store_number(view, i, Number::of_double(value));
  }
  return tensor;
}

TensorView TestTensor::view() const {
  void* data = element_ == ElementType::kString ? static_cast<void*>(strings_->data())
                                                : static_cast<void*>(bytes_.get());
  return {data, dims_.data(), dims_.rank(), element_};
}

TestTensor TestTensor::copy_of(const TensorView& view) {
  TestTensor made(view.element, Dims(view.shape()));
  if (view.element == ElementType::kString) {
    std::copy_n(view.as<std::string>(), view.count(), made.strings_->begin());
  } else if (view.size_bytes() > 0) {
    std::memcpy(made.bytes_.get(), view.data, view.size_bytes());
  }
  return made;
}

std::vector<std::string> TestTensor::strings() const {
  EDDY_CHECK(element_ == ElementType::kString) << "not strings";
  return *strings_;
}

double number_at(const TensorView& view, int64_t i) { return load_number(view, i).to_double(); }

TestValue TestValue::none(ElementType element) {
  TestValue value;
  value.kind = Kind::kNone;
  value.element = element;
  value.is_optional = true;
  return value;
}

TestValue TestValue::sequence(ElementType element, std::vector<TestTensor> tensors) {
  TestValue value;
  value.kind = Kind::kSequence;
  value.element = element;
  value.tensors = std::move(tensors);
  return value;
}

ValueType TestValue::type() const {
  ValueType type =
      kind == Kind::kTensor ? ValueType(tensors[0].type()) : ValueType(TensorType(element));
  if (kind == Kind::kSequence) type = ValueType::sequence_of(type);
  if (is_optional) type = ValueType::optional_of(type);
  return type;
}

}  // namespace eddy::testing
