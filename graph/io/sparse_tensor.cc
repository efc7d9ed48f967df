#include "graph/io/sparse_tensor.h"

#include <cstring>

#include "graph/base/check.h"

namespace eddy {
namespace {

// The indices, wherever their bytes stand.
class IndexList {
 public:
  explicit IndexList(const DecodedTensor& indices)
      : data_(static_cast<const std::byte*>(indices.data)),
        num_columns_(indices.dims.rank() == 2 ? indices.dims[1] : 1),
        is_coordinates_(indices.dims.rank() == 2) {}

  // The position of value `row` in row-major order; an error where it lies outside.
  Result<int64_t> position(int64_t row, const TensorLayout& layout) const {
    if (!is_coordinates_) {
      const int64_t index = at(row, 0);
      if (index >= 0 && index < layout.count) return index;
      return outside(row, std::to_string(index), layout);
    }
    int64_t position = 0;
    for (int64_t axis = 0; axis < num_columns_; ++axis) {
      const int64_t index = at(row, axis);
      const int64_t size = layout.dims[static_cast<int>(axis)];
      if (index < 0 || index >= size) {
        return outside(row, std::to_string(index) + " along axis " + std::to_string(axis), layout);
      }
      position = position * size + index;  // below layout.count, so it does not overflow
    }
    return position;
  }

 private:
  int64_t at(int64_t row, int64_t column) const {
    int64_t index = 0;
    const auto offset = static_cast<size_t>(row * num_columns_ + column) * sizeof(index);
    std::memcpy(&index, data_ + offset, sizeof(index));
    return index;
  }

  static Status outside(int64_t row, const std::string& index, const TensorLayout& layout) {
    return invalid_argument("index " + std::to_string(row) + " is " + index +
                            ", outside of the shape " + to_string(layout.dims));
  }

  const std::byte* data_;
  int64_t num_columns_;
  bool is_coordinates_;
};

Status check_values(const TensorLayout& layout, const DecodedTensor& values) {
  EDDY_CHECK(values.element == layout.element) << "the layout is that of other values";
  if (values.dims.rank() == 1) return Status::ok();
  return invalid_argument("the values have shape " + to_string(values.dims) +
                          ", but a sparse tensor lists them in one dimension");
}

Status check_indices(const TensorLayout& layout, int64_t num_values, const DecodedTensor& indices) {
  if (indices.element != ElementType::kInt64) {
    return invalid_argument("the indices are " + std::string(element_type_name(indices.element)) +
                            ", but they must be int64");
  }
  const Dims& dims = indices.dims;
  const bool is_linear = dims.rank() == 1 && dims[0] == num_values;
  const bool is_coordinates =
      dims.rank() == 2 && dims[0] == num_values && dims[1] == layout.dims.rank();
  if (is_linear || is_coordinates) return Status::ok();
  return invalid_argument("the indices have shape " + to_string(dims) + ", but " +
                          std::to_string(num_values) + " values of a tensor of rank " +
                          std::to_string(layout.dims.rank()) + " need [" +
                          std::to_string(num_values) + "] or [" + std::to_string(num_values) +
                          ", " + std::to_string(layout.dims.rank()) + "]");
}

void put(const DecodedTensor& values, int64_t row, int64_t position, DecodedTensor& dense) {
  if (values.element == ElementType::kString) {
    const auto* strings = static_cast<const std::string*>(values.data);
    dense.strings[static_cast<size_t>(position)] = strings[row];
    return;
  }
  const size_t size = element_size_bytes(values.element);
  std::memcpy(dense.bytes.data() + static_cast<size_t>(position) * size,
              static_cast<const std::byte*>(values.data) + static_cast<size_t>(row) * size, size);
}

Status fill(const TensorLayout& layout, const DecodedTensor& values, const DecodedTensor& indices,
            DecodedTensor& dense) {
  const IndexList list(indices);
  int64_t last = -1;
  for (int64_t row = 0; row < values.dims[0]; ++row) {
    EDDY_ASSIGN_OR_RETURN(const int64_t position, list.position(row, layout));
    if (position <= last) {
      return invalid_argument("index " + std::to_string(row) +
                              (position == last ? " repeats" : " comes before") +
                              " the one in front of it; indices must ascend");
    }
    put(values, row, position, dense);
    last = position;
  }
  return Status::ok();
}

}  // namespace

Result<TensorLayout> layout_of(const OnnxSparseTensor& sparse, const ImportLimits& limits) {
  if (sparse.dims.empty()) {
    return invalid_argument("a sparse tensor needs a shape of at least one dimension");
  }
  OnnxTensor dense;
  dense.data_type = sparse.values.data_type;
  dense.dims = sparse.dims;
  return layout_of(dense, limits);
}

Result<DecodedTensor> decode_sparse(const TensorLayout& layout, const DecodedTensor& values,
                                    const DecodedTensor* indices_or_null) {
  EDDY_RETURN_IF_ERROR(check_values(layout, values));
  const int64_t num_values = values.dims[0];
  if (indices_or_null == nullptr && num_values > 0) {
    return invalid_argument(std::to_string(num_values) + " values have no indices");
  }
  if (indices_or_null != nullptr) {
    EDDY_RETURN_IF_ERROR(check_indices(layout, num_values, *indices_or_null));
  }
  DecodedTensor dense{layout.element, layout.dims, nullptr, false, {}, {}};
  if (layout.element == ElementType::kString) {
    dense.strings.resize(static_cast<size_t>(layout.count));
    dense.data = dense.strings.data();
  } else {
    dense.bytes.resize(static_cast<size_t>(dense_bytes(layout, 1)));
    dense.data = dense.bytes.data();
  }
  if (num_values > 0) EDDY_RETURN_IF_ERROR(fill(layout, values, *indices_or_null, dense));
  return dense;
}

}  // namespace eddy
