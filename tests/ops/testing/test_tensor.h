// TestTensor and TestValue: owned tensors, sequences and optionals for operator tests.
//
//   TestTensor a = TestTensor::of<float>({2, 2}, {1, 2, 3, 4});
//   TestTensor b = TestTensor::random(ElementType::kFloat, {3}, random, -1, 1);
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "graph/base/random.h"
#include "graph/ir/half.h"
#include "graph/ir/tensor_view.h"
#include "graph/ir/types.h"

namespace eddy::testing {

class TestTensor {
 public:
  TestTensor() = default;
  // Numbers are filled with the byte 0xCD, so that a kernel that leaves bytes unwritten is seen;
  // strings are empty.
  TestTensor(ElementType element, const Dims& dims);

  template <typename T>
  static TestTensor of(const Dims& dims, const std::vector<T>& values) {
    TestTensor tensor(element_type_of<T>(), dims);
    EDDY_CHECK(static_cast<size_t>(tensor.count()) == values.size())
        << values.size() << " values for " << to_string(dims);
    T* data = tensor.view().template mutable_as<T>();
    for (size_t i = 0; i < values.size(); ++i) data[i] = values[i];
    return tensor;
  }
  static TestTensor of_strings(const Dims& dims, const std::vector<std::string>& values);
  template <typename T>
  static TestTensor scalar(T value) {
    return of<T>({}, {value});
  }
  // Uniform in [low, high) for floats (rounded to the type), in [low, high] for integers;
  // bools are fair coins.
  static TestTensor random(ElementType element, const Dims& dims, Random& random, double low = -2,
                           double high = 2);

  TensorView view() const;
  ElementType element() const { return element_; }
  const Dims& dims() const { return dims_; }
  int64_t count() const { return *dims_.count(); }
  TensorType type() const { return {element_, dims_}; }
  static TestTensor copy_of(const TensorView& view);
  TestTensor copy() const { return copy_of(view()); }
  // The elements; T must be the element's C++ type.
  template <typename T>
  std::vector<T> values() const {
    EDDY_CHECK(element_type_of<T>() == element_) << "asked for another element type";
    const T* data = view().as<T>();
    return std::vector<T>(data, data + count());
  }
  std::vector<std::string> strings() const;

 private:
  ElementType element_ = ElementType::kUndefined;
  Dims dims_;
  std::shared_ptr<std::byte> bytes_;  // aligned to 64; shared by copies of this object
  std::shared_ptr<std::vector<std::string>> strings_;
};

// Element i as a double (0 or 1 for bool); not for strings.
double number_at(const TensorView& view, int64_t i);

// What a value kernel takes and makes: an omitted input, an empty optional, a tensor or a
// sequence.
struct TestValue {
  enum class Kind { kOmitted, kNone, kTensor, kSequence };
  Kind kind = Kind::kOmitted;
  ElementType element = ElementType::kUndefined;  // of the tensor, the elements or the optional
  std::vector<TestTensor> tensors;                // one for kTensor
  bool is_optional = false;                       // the declared type is an optional of this

  TestValue() = default;
  TestValue(const TestTensor& tensor)
      : kind(Kind::kTensor), element(tensor.element()), tensors{tensor} {}
  static TestValue omitted() { return {}; }
  static TestValue none(ElementType element);
  static TestValue sequence(ElementType element, std::vector<TestTensor> tensors);

  const TestTensor& tensor() const {
    EDDY_CHECK(kind == Kind::kTensor) << "not a tensor";
    return tensors[0];
  }
  ValueType type() const;
};

}  // namespace eddy::testing
