#include "graph/base/check.h"
#include "ops/cpu/families.h"
#include "ops/cpu/movement_parts.h"
#include "ops/cpu/strided_copy.h"
#include "ops/reference/axes.h"
#include "ops/reference/storage.h"
#include "ops/schema/index_rules.h"

namespace eddy {
namespace {

struct AxisState : KernelState {
  int64_t axis = 0;
};

int axis_of(const KernelArgs& args) {
  const int64_t axis = static_cast<const AxisState&>(*args.state).axis;
  const int rank = args.inputs[0].rank;
  EDDY_DCHECK(axis >= -rank && axis < rank) << "axis " << axis << " of " << rank;
  return static_cast<int>(axis < 0 ? axis + rank : axis);
}

// Rows of `size` elements, `in_step` and `out_step` apart.
template <typename T>
void copy_rows(const T* in, int64_t in_step, T* out, int64_t out_step, int64_t size, int64_t rows) {
  if (size == 1) {
    for (int64_t r = 0; r < rows; ++r) out[r * out_step] = in[r * in_step];
    return;
  }
  for (int64_t r = 0; r < rows; ++r) copy_run(in + r * in_step, out + r * out_step, size);
}

template <typename T>
struct Concat {
  static bool run(const KernelArgs& args) {
    const int axis = axis_of(args);
    const AxisSplit out = split_at_axis(args.outputs[0].shape(), axis);
    if (out.outer == 0) return true;  // where nothing is, no address is reckoned either
    const int64_t row = out.count * out.inner;
    T* data = args.outputs[0].mutable_as<T>();
    [[maybe_unused]] const T* const end = data + row;
    for (uint32_t i = 0; i < args.num_inputs; ++i) {
      const TensorView& in = args.inputs[i];
      const int64_t part = in.dims[axis] * out.inner;
      // An input grown in place is there already; that needs all its elements in one row.
      if (i > 0 || in.data != args.outputs[0].data || out.outer > 1) {
        copy_rows(in.as<T>(), part, data, row, part, out.outer);
      }
      data += part;
    }
    EDDY_DCHECK(data == end) << "the parts do not make up a row of " << row;
    return true;
  }
};

template <typename T>
struct Split {
  static bool run(const KernelArgs& args) {
    const int axis = axis_of(args);
    const AxisSplit in = split_at_axis(args.inputs[0].shape(), axis);
    if (in.outer == 0) return true;
    const int64_t row = in.count * in.inner;
    const T* data = args.inputs[0].as<T>();
    [[maybe_unused]] const T* const end = data + row;
    for (uint32_t i = 0; i < args.num_outputs; ++i) {
      const int64_t part = args.outputs[i].dims[axis] * in.inner;
      copy_rows(data, row, args.outputs[i].mutable_as<T>(), part, part, in.outer);
      data += part;
    }
    EDDY_DCHECK(data == end) << "the parts do not make up a row of " << row;
    return true;
  }
};

// `Index` is int32_t or int64_t.
template <typename T, typename Index>
bool gather(const KernelArgs& args, int axis) {
  const AxisSplit data = split_at_axis(args.inputs[0].shape(), axis);
  const Index* indices = args.inputs[1].as<Index>();
  const int64_t count = args.inputs[1].count();
  const T* in = args.inputs[0].as<T>();
  T* out = args.outputs[0].mutable_as<T>();
  for (int64_t o = 0; o < data.outer; ++o, in += data.count * data.inner) {
    for (int64_t j = 0; j < count; ++j, out += data.inner) {
      int64_t index = indices[j];
      if (index < 0) index += data.count;
      if (index < 0 || index >= data.count) [[unlikely]] {
        return args.fail(index_out_of_range(indices[j], axis, data.count));
      }
      copy_run(in + index * data.inner, out, data.inner);
    }
  }
  return true;
}

template <typename T>
struct Gather {
  static bool run(const KernelArgs& args) {
    const int axis = axis_of(args);
    return args.inputs[1].element == ElementType::kInt32 ? gather<T, int32_t>(args, axis)
                                                         : gather<T, int64_t>(args, axis);
  }
};

template <template <typename> class Kernel, int fallback>
Result<BoundKernel> bind_axis(const KernelInit& init) {
  auto state = std::make_unique<AxisState>();
  state->axis = init.attributes.get_int("axis", fallback);
  return bind_storage<Kernel>(init, init.inputs[0].tensor.element, std::move(state));
}

}  // namespace

void add_movement_cpu(KernelRegistry& registry) {
  registry.add({.op = "Concat", .bind = bind_axis<Concat, 1>});
  registry.add({.op = "Split", .bind = bind_axis<Split, 0>});
  registry.add({.op = "Gather", .bind = bind_axis<Gather, 0>});
  add_movement_strided_cpu(registry);
  add_movement_pad_cpu(registry);
  add_movement_fill_cpu(registry);
}

}  // namespace eddy
