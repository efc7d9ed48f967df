// Tensor: a value that callers hand in and get back: a tensor, a sequence of tensors, or nothing
// (an empty optional).
//
//   Tensor x = Tensor::of<float>({2, 2}, {1, 2, 3, 4});   // owns a copy
//   Tensor y = Tensor::borrow(view);                      // the caller keeps the memory alive
//   float first = y.values<float>()[0];
//
// Cheap to copy: memory is shared and immutable. Tensors returned by a run may outlive their
// session.
// Errors: asking a value for what it is not is a programmer error (CHECK).
// Threads: distinct objects may be used from distinct threads.
#pragma once

#include <initializer_list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "graph/ir/tensor_view.h"
#include "ops/contract/kernel.h"
#include "runtime/device/buffer.h"

namespace eddy {

class Tensor {
 public:
  Tensor() = default;  // nothing

  static Tensor borrow(const TensorView& view);
  static Tensor copy_of(const TensorView& view);
  // Borrowed too; `owner` lives as long as copies of the tensor do. With the number of a GPU the
  // memory is that one's, which the host can't read (dlpack.h).
  static Tensor adopt(const TensorView& view, std::shared_ptr<const void> owner,
                      std::optional<int32_t> gpu = {});
  static Tensor sequence(ElementType element, std::vector<Tensor> elements);
  // Shares a device buffer in which view.data lies, and keeps its device alive.
  static Tensor in_buffer(const TensorView& view, BufferRef buffer,
                          std::shared_ptr<const void> device);
  template <typename T>
  static Tensor of(const Dims& dims, std::initializer_list<T> values) {
    return of(dims, std::span<const T>(values.begin(), values.size()));
  }
  template <typename T>
  static Tensor of(const Dims& dims, std::span<const T> values) {
    EDDY_CHECK(dims.count() == static_cast<int64_t>(values.size()))
        << values.size() << " values for a tensor of shape " << to_string(dims);
    return copy_of({const_cast<T*>(values.data()), dims.data(), dims.rank(), element_type_of<T>()});
  }
  static Tensor zeros(ElementType element, const Dims& dims);
  template <typename T>
  static Tensor scalar(T value) {
    return copy_of({&value, nullptr, 0, element_type_of<T>()});
  }

  ValueKind kind() const { return kind_; }
  bool is_on_device() const { return gpu_.has_value(); }
  std::optional<int32_t> gpu() const { return gpu_; }
  bool is_tensor() const { return kind_ == ValueKind::kTensor; }
  ElementType element_type() const { return element_; }
  const Dims& dims() const { return dims_; }  // tensors
  TensorView view() const;                    // tensors; valid while this object lives
  const std::vector<Tensor>& elements() const { return elements_; }  // sequences
  template <typename T>
  std::span<const T> values() const {
    EDDY_CHECK(is_tensor() && element_ == element_type_of<T>())
        << "values<" << element_type_name(element_type_of<T>()) << "> of a "
        << element_type_name(element_) << " value";
    return {static_cast<const T*>(data_), static_cast<size_t>(*dims_.count())};
  }
  // The device buffer behind this tensor; null when it owns or borrows plain host memory.
  const BufferRef& buffer() const { return buffer_; }

 private:
  ValueKind kind_ = ValueKind::kNone;
  ElementType element_ = ElementType::kUndefined;
  Dims dims_;
  void* data_ = nullptr;
  std::optional<int32_t> gpu_;         // in whose memory it lies; none: the host's
  std::shared_ptr<const void> owner_;  // copy_of's memory, or the device of buffer_
  BufferRef buffer_;                   // after owner_, so that it goes first
  std::vector<Tensor> elements_;
};

// Values by name, in the order of the graph's inputs or outputs where Eddy returns them.
using NamedTensors = std::vector<std::pair<std::string, Tensor>>;
// Of those that are tensors.
std::map<std::string, Dims> shapes_of(const NamedTensors& values);

}  // namespace eddy
