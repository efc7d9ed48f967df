#include "ops/cuda/libraries/dnn_shapes.h"

#include <limits>

#include "graph/base/check.h"

namespace eddy {
namespace {

using cuda::kMaxSpatialAxes;

// The library has one padding for both ends, and computes sizes from it.
bool has_even_padding(const cuda::WindowParams& w) {
  for (int i = 0; i < kMaxSpatialAxes; ++i) {
    const int64_t room = w.in[i] + 2 * w.pad[i] - (w.kernel[i] - 1) * w.dilation[i] - 1;
    if (room < 0 || room / w.stride[i] + 1 != w.out[i]) return false;
  }
  return true;
}

}  // namespace

bool has_dnn_type(ElementType element) {
  return element == ElementType::kFloat || element == ElementType::kDouble ||
         element == ElementType::kFloat16 || element == ElementType::kBfloat16;
}

DnnType dnn_type(ElementType element) {
  EDDY_CHECK(has_dnn_type(element)) << "cuDNN has no " << element_type_name(element);
  switch (element) {
    case ElementType::kDouble:
      return DnnType::kDouble;
    case ElementType::kFloat16:
      return DnnType::kHalf;
    case ElementType::kBfloat16:
      return DnnType::kBfloat16;
    default:
      return DnnType::kFloat;
  }
}

DnnFactors dnn_factors(ElementType element) {
  static constexpr float kFloats[] = {1, 0};
  static constexpr double kDoubles[] = {1, 0};
  if (element == ElementType::kDouble) return {kDoubles, kDoubles + 1};
  return {kFloats, kFloats + 1};
}

bool fits_dnn_int(int64_t value) { return value > 0 && value <= std::numeric_limits<int>::max(); }

bool fits_dnn_grid(int64_t batch, int64_t channels) {
  constexpr int64_t kMost = 65535;
  return batch <= kMost && channels <= kMost;
}

DnnShape dnn_shape(int64_t first, int64_t second, const int64_t (&spatial)[kMaxSpatialAxes],
                   int rank, DnnOrder order) {
  EDDY_DCHECK(rank > 0 && rank <= kMaxSpatialAxes) << rank << " spatial axes";
  DnnShape shape;
  const auto add = [&](int64_t dim) {
    shape.fits = shape.fits && fits_dnn_int(dim);
    shape.dims[static_cast<size_t>(shape.rank++)] = static_cast<int>(dim);
  };
  add(first);
  add(second);
  for (int i = kMaxSpatialAxes - rank; i < kMaxSpatialAxes; ++i) add(spatial[i]);
  int64_t stride = 1;
  const auto lay = [&](int axis) {
    const auto at = static_cast<size_t>(axis);
    shape.fits = shape.fits && fits_dnn_int(stride);
    if (!shape.fits) return;
    shape.strides[at] = static_cast<int>(stride);
    stride *= shape.dims[at];
  };
  if (order == DnnOrder::kChannelsLast) lay(1);
  for (int i = shape.rank - 1; i > 1; --i) lay(i);
  if (order == DnnOrder::kChannelsFirst) lay(1);
  lay(0);
  return shape;
}

int dnn_spatial_rank(const cuda::WindowParams& w) {
  const bool is_flat = w.in[0] == 1 && w.kernel[0] == 1 && w.out[0] == 1 && w.pad[0] == 0;
  return is_flat ? 2 : 3;
}

bool is_dnn_window(const cuda::WindowParams& w) {
  for (int i = 0; i < kMaxSpatialAxes; ++i) {
    for (const int64_t each : {w.in[i], w.kernel[i], w.stride[i], w.dilation[i], w.pad[i] + 1}) {
      if (!fits_dnn_int(each)) return false;
    }
  }
  return has_even_padding(w);
}

DnnInts dnn_ints(const int64_t (&of_axis)[kMaxSpatialAxes], int rank) {
  EDDY_DCHECK(rank > 0 && rank <= kMaxSpatialAxes) << rank << " spatial axes";
  DnnInts ints{};
  for (int i = 0; i < rank; ++i) {
    ints[static_cast<size_t>(i)] = static_cast<int>(of_axis[kMaxSpatialAxes - rank + i]);
  }
  return ints;
}

void add_to_key(std::vector<int64_t>& key, const cuda::WindowParams& w) {
  for (int i = 0; i < kMaxSpatialAxes; ++i) {
    key.insert(key.end(), {w.in[i], w.out[i], w.kernel[i], w.stride[i], w.dilation[i], w.pad[i]});
  }
}

Status describe_tensor(const DnnHandles& handles, ElementType element, const DnnShape& shape,
                       DnnDescriptor<DnnTensor>& made) {
  const CudnnApi& api = handles.api();
  EDDY_RETURN_IF_ERROR(
      made.make(handles, api.tensor_create, api.tensor_destroy, "cudnnCreateTensorDescriptor"));
  return handles.check(api.tensor_set(made.get(), dnn_type(element), shape.rank, shape.dims.data(),
                                      shape.strides.data()),
                       "cudnnSetTensorNdDescriptor");
}

}  // namespace eddy
