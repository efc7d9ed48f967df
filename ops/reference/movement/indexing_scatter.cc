#include <algorithm>

#include "ops/reference/movement/indexing_parts.h"
#include "ops/reference/parts/combine.h"
#include "ops/reference/parts/locate.h"
#include "ops/schema/rules/index_rules.h"

namespace eddy {
namespace {

struct ScatterState : KernelState {
  int64_t axis = 0;
  Reduction reduction = Reduction::kNone;
};

// The output starts as the data, which it may already be.
template <typename T>
T* start_from_data(const KernelArgs& args) {
  const T* data = args.inputs[0].as<T>();
  T* out = args.outputs[0].mutable_as<T>();
  if (data != out) std::copy_n(data, args.inputs[0].count(), out);
  return out;
}

template <typename T>
struct ScatterElements {
  static bool run(const KernelArgs& args) {
    const auto& state = static_cast<const ScatterState&>(*args.state);
    const TensorView& data = args.inputs[0];
    const TensorView& indices = args.inputs[1];
    const int axis = static_cast<int>(state.axis < 0 ? state.axis + data.rank : state.axis);
    const int64_t size = data.dims[axis];
    const auto strides = strides_of(data);
    T* out = start_from_data<T>(args);
    const int64_t count = indices.count();
    Coordinates at(indices);
    for (int64_t i = 0; i < count; ++i, at.next()) {
      int64_t index = index_at(indices, i);
      if (index < -size || index >= size) return args.fail(index_out_of_range(index, axis, size));
      if (index < 0) index += size;
      int64_t place = index * strides[static_cast<size_t>(axis)];
      for (int d = 0; d < data.rank; ++d) {
        if (d != axis) place += at[d] * strides[static_cast<size_t>(d)];
      }
      out[place] = combine<T>(state.reduction, out[place], args.inputs[2].as<T>()[i]);
    }
    return true;
  }
};

template <typename T>
struct ScatterNd {
  static bool run(const KernelArgs& args) {
    const auto& state = static_cast<const ScatterState&>(*args.state);
    const TensorView& data = args.inputs[0];
    const TensorView& indices = args.inputs[1];
    const int length = static_cast<int>(indices.dims[indices.rank - 1]);
    const auto strides = strides_of(data);
    int64_t slice = 1;
    for (int d = length; d < data.rank; ++d) slice *= data.dims[d];
    T* out = start_from_data<T>(args);
    const T* updates = args.inputs[2].as<T>();
    const int64_t tuples = indices.count() / length;
    for (int64_t t = 0; t < tuples; ++t) {
      int64_t start = 0;
      for (int d = 0; d < length; ++d) {
        const int64_t size = data.dims[d];
        int64_t index = index_at(indices, t * length + d);
        if (index < -size || index >= size) return args.fail(index_out_of_range(index, d, size));
        if (index < 0) index += size;
        start += index * strides[static_cast<size_t>(d)];
      }
      for (int64_t i = 0; i < slice; ++i) {
        out[start + i] = combine<T>(state.reduction, out[start + i], updates[t * slice + i]);
      }
    }
    return true;
  }
};

template <template <typename> class Kernel>
Result<BoundKernel> bind_scatter(const KernelInit& init) {
  auto state = std::make_unique<ScatterState>();
  state->axis = init.attributes.get_int("axis", 0);
  state->reduction = reduction_of(init.attributes.get_string("reduction", "none"));
  if (state->reduction == Reduction::kNone) {
    return bind_storage<Kernel>(init, init.inputs[0].tensor.element, std::move(state));
  }
  return bind_typed<Kernel, float, double, Float16, Bfloat16, int8_t, int16_t, int32_t, int64_t,
                    uint8_t, uint16_t, uint32_t, uint64_t>(init, 0, std::move(state));
}

}  // namespace

void add_indexing_scatter_reference(KernelRegistry& registry) {
  const auto add = [&](std::string_view op, BindFunction bind) {
    registry.add({.op = op, .bind = bind, .provider = "reference"});
  };
  add("Scatter", bind_scatter<ScatterElements>);
  add("ScatterElements", bind_scatter<ScatterElements>);
  add("ScatterND", bind_scatter<ScatterNd>);
}

}  // namespace eddy
