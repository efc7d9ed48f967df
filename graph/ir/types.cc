#include "graph/ir/types.h"

#include <algorithm>

namespace eddy {
namespace {

// No memory bounds the other dimensions of an empty tensor, yet kernels step through them and
// reckon with their product.
constexpr int64_t kMaxEmptyProduct = int64_t{1} << 28;

}  // namespace

bool Dims::is_static() const {
  return std::all_of(begin(), end(), [](int64_t dim) { return dim >= 0; });
}

std::optional<int64_t> Dims::count() const {
  int64_t product = 1;  // of the dimensions that are not zero
  bool has_zero = false;
  for (int64_t dim : span()) {
    if (dim < 0) return std::nullopt;
    has_zero |= dim == 0;
    if (dim != 0 && __builtin_mul_overflow(product, dim, &product)) return std::nullopt;
  }
  if (!has_zero) return product;
  return product <= kMaxEmptyProduct ? std::optional<int64_t>(0) : std::nullopt;
}

bool Dims::operator==(const Dims& other) const {
  return rank_ == other.rank_ && std::equal(begin(), end(), other.begin());
}

bool TensorType::operator==(const TensorType& other) const {
  return element == other.element && is_ranked == other.is_ranked &&
         (!is_ranked || dims == other.dims);
}

ValueType ValueType::wrap(Wrapper wrapper, const ValueType& inner) {
  EDDY_CHECK(inner.num_wrappers < kMaxWrappers) << "types nest at most " << kMaxWrappers << " deep";
  ValueType result = inner;
  std::copy_backward(result.wrappers.begin(), result.wrappers.begin() + inner.num_wrappers,
                     result.wrappers.begin() + inner.num_wrappers + 1);
  result.wrappers[0] = wrapper;
  ++result.num_wrappers;
  return result;
}

ValueType ValueType::unwrapped() const {
  EDDY_CHECK(num_wrappers > 0) << "a tensor has no inner type";
  ValueType result = *this;
  std::copy(wrappers.begin() + 1, wrappers.begin() + num_wrappers, result.wrappers.begin());
  --result.num_wrappers;
  return result;
}

bool ValueType::operator==(const ValueType& other) const {
  return tensor == other.tensor && num_wrappers == other.num_wrappers &&
         std::equal(wrappers.begin(), wrappers.begin() + num_wrappers, other.wrappers.begin());
}

namespace {

bool same_wrappers(const ValueType& a, const ValueType& b) {
  return a.num_wrappers == b.num_wrappers &&
         std::equal(a.wrappers.begin(), a.wrappers.begin() + a.num_wrappers, b.wrappers.begin());
}

bool elements_agree(ElementType a, ElementType b) {
  return a == b || a == ElementType::kUndefined || b == ElementType::kUndefined;
}

}  // namespace

std::optional<ValueType> join(const ValueType& a, const ValueType& b) {
  if (!same_wrappers(a, b) || !elements_agree(a.tensor.element, b.tensor.element)) {
    return std::nullopt;
  }
  ValueType result = a;
  if (a.tensor.element == ElementType::kUndefined) result.tensor.element = b.tensor.element;
  if (!a.tensor.is_ranked || !b.tensor.is_ranked || a.tensor.dims.rank() != b.tensor.dims.rank()) {
    result.tensor.is_ranked = false;
    result.tensor.dims = Dims();
    return result;
  }
  for (int axis = 0; axis < a.tensor.dims.rank(); ++axis) {
    if (a.tensor.dims[axis] != b.tensor.dims[axis]) result.tensor.dims[axis] = kUnknownDim;
  }
  return result;
}

bool is_compatible(const ValueType& actual, const ValueType& expected) {
  if (!same_wrappers(actual, expected)) return false;
  if (!elements_agree(actual.tensor.element, expected.tensor.element)) return false;
  if (!actual.tensor.is_ranked || !expected.tensor.is_ranked) return true;
  if (actual.tensor.dims.rank() != expected.tensor.dims.rank()) return false;
  for (int axis = 0; axis < actual.tensor.dims.rank(); ++axis) {
    const int64_t a = actual.tensor.dims[axis];
    const int64_t e = expected.tensor.dims[axis];
    if (a >= 0 && e >= 0 && a != e) return false;
  }
  return true;
}

std::string to_string(const Dims& dims) {
  std::string text = "[";
  for (int axis = 0; axis < dims.rank(); ++axis) {
    if (axis > 0) text += ",";
    const int64_t dim = dims[axis];
    if (dim >= 0) {
      text += std::to_string(dim);
    } else if (dim == kUnknownDim) {
      text += "?";
    } else {
      text += "s" + std::to_string(-2 - dim);
    }
  }
  return text + "]";
}

std::string to_string(const ValueType& type) {
  std::string text(element_type_name(type.tensor.element));
  text += type.tensor.is_ranked ? to_string(type.tensor.dims) : "[...]";
  for (int i = type.num_wrappers - 1; i >= 0; --i) {
    const bool is_sequence = type.wrappers[static_cast<size_t>(i)] == Wrapper::kSequence;
    text.insert(0, is_sequence ? "sequence(" : "optional(");
    text += ")";
  }
  return text;
}

}  // namespace eddy
