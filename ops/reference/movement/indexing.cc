#include "ops/reference/families.h"
#include "ops/reference/movement/indexing_parts.h"
#include "ops/reference/parts/locate.h"
#include "ops/schema/rules/index_rules.h"

namespace eddy {
namespace {

bool locate_gather_elements(const KernelArgs& args, int64_t* sources) {
  const TensorView& data = args.inputs[0];
  const TensorView& indices = args.inputs[1];
  const int64_t given = locate_state(args).axis;
  const int axis = static_cast<int>(given < 0 ? given + data.rank : given);
  const int64_t size = data.dims[axis];
  const auto strides = strides_of(data);
  const int64_t count = indices.count();
  Coordinates at(indices);
  for (int64_t i = 0; i < count; ++i, at.next()) {
    int64_t index = index_at(indices, i);
    if (index < -size || index >= size) return args.fail(index_out_of_range(index, axis, size));
    if (index < 0) index += size;
    sources[i] = index * strides[static_cast<size_t>(axis)];
    for (int d = 0; d < data.rank; ++d) {
      if (d != axis) sources[i] += at[d] * strides[static_cast<size_t>(d)];
    }
  }
  return true;
}

bool locate_gather_nd(const KernelArgs& args, int64_t* sources) {
  const TensorView& data = args.inputs[0];
  const TensorView& indices = args.inputs[1];
  const int batch = static_cast<int>(locate_state(args).other);
  const int64_t length = indices.dims[indices.rank - 1];
  const auto strides = strides_of(data);
  int64_t slice = 1;
  for (int d = batch + static_cast<int>(length); d < data.rank; ++d) slice *= data.dims[d];
  const int64_t tuples = slice == 0 ? 0 : args.outputs[0].count() / slice;
  Coordinates at(indices);  // of the first entry of each tuple
  for (int64_t t = 0; t < tuples; ++t) {
    int64_t start = 0;
    for (int d = 0; d < batch; ++d) start += at[d] * strides[static_cast<size_t>(d)];
    for (int64_t j = 0; j < length; ++j, at.next()) {
      const int axis = batch + static_cast<int>(j);
      const int64_t size = data.dims[axis];
      int64_t index = index_at(indices, t * length + j);
      if (index < -size || index >= size) return args.fail(index_out_of_range(index, axis, size));
      if (index < 0) index += size;
      start += index * strides[static_cast<size_t>(axis)];
    }
    for (int64_t i = 0; i < slice; ++i) *sources++ = start + i;
  }
  return true;
}

bool locate_reverse_sequence(const KernelArgs& args, int64_t* sources) {
  const TensorView& data = args.inputs[0];
  const int batch_axis = static_cast<int>(locate_state(args).axis);
  const int time_axis = 1 - batch_axis;
  const int64_t steps = data.dims[time_axis];
  const auto strides = strides_of(data);
  const int64_t count = data.count();
  Coordinates at(data);
  for (int64_t i = 0; i < count; ++i, at.next()) {
    const int64_t length = args.inputs[1].as<int64_t>()[at[batch_axis]];
    if (length < 0 || length > steps) {
      return args.fail(invalid_argument("sequence length " + std::to_string(length) +
                                        " is not between 0 and " + std::to_string(steps)));
    }
    const int64_t step = at[time_axis];
    const int64_t from = step < length ? length - 1 - step : step;
    sources[i] = i + (from - step) * strides[static_cast<size_t>(time_axis)];
  }
  return true;
}

Result<BoundKernel> bind_gather_elements(const KernelInit& init) {
  auto state = std::make_unique<LocateState>();
  state->axis = init.attributes.get_int("axis", 0);
  return bind_locate<locate_gather_elements>(init, std::move(state));
}

Result<BoundKernel> bind_gather_nd(const KernelInit& init) {
  auto state = std::make_unique<LocateState>();
  state->other = init.attributes.get_int("batch_dims", 0);
  return bind_locate<locate_gather_nd>(init, std::move(state));
}

Result<BoundKernel> bind_reverse_sequence(const KernelInit& init) {
  auto state = std::make_unique<LocateState>();
  state->axis = init.attributes.get_int("batch_axis", 1);
  return bind_locate<locate_reverse_sequence>(init, std::move(state));
}

}  // namespace

void add_indexing_reference(KernelRegistry& registry) {
  const auto add = [&](std::string_view op, BindFunction bind) {
    registry.add({.op = op, .bind = bind, .provider = "reference"});
  };
  add("GatherElements", bind_gather_elements);
  add("GatherND", bind_gather_nd);
  add("ReverseSequence", bind_reverse_sequence);
  add_indexing_scatter_reference(registry);
  add_indexing_order_reference(registry);
  add_indexing_select_reference(registry);
}

}  // namespace eddy
