#include "ops/reference/families.h"
#include "ops/reference/movement/movement_parts.h"
#include "ops/reference/parts/storage.h"

namespace eddy {
namespace {

struct AxisState : KernelState {
  int64_t axis = 0;
};

std::unique_ptr<KernelState> axis_state(const KernelInit& init, int64_t fallback) {
  auto state = std::make_unique<AxisState>();
  state->axis = init.attributes.get_int("axis", fallback);
  return state;
}

int axis_of(const KernelArgs& args) {
  const int64_t axis = static_cast<const AxisState&>(*args.state).axis;
  return static_cast<int>(axis < 0 ? axis + args.inputs[0].rank : axis);
}

// The elements before an axis, and those of one step along it.
int64_t outer_count(const TensorView& view, int axis) {
  int64_t count = 1;
  for (int d = 0; d < axis; ++d) count *= view.dims[d];
  return count;
}
int64_t inner_count(const TensorView& view, int axis) {
  int64_t count = 1;
  for (int d = axis + 1; d < view.rank; ++d) count *= view.dims[d];
  return count;
}

// Input 0 may be output 0 grown at its end: its elements are then written over themselves.
template <typename T>
struct Concat {
  static bool run(const KernelArgs& args) {
    const int axis = axis_of(args);
    const TensorView& out = args.outputs[0];
    const int64_t outer = outer_count(out, axis), inner = inner_count(out, axis);
    const int64_t row = out.dims[axis] * inner;
    int64_t start = 0;
    for (uint32_t i = 0; i < args.num_inputs; ++i) {
      const int64_t part = args.inputs[i].dims[axis] * inner;
      for (int64_t o = 0; o < outer; ++o) {
        for (int64_t j = 0; j < part; ++j) {
          out.mutable_as<T>()[o * row + start + j] = args.inputs[i].as<T>()[o * part + j];
        }
      }
      start += part;
    }
    return true;
  }
};

template <typename T>
struct Split {
  static bool run(const KernelArgs& args) {
    const int axis = axis_of(args);
    const TensorView& in = args.inputs[0];
    const int64_t outer = outer_count(in, axis), inner = inner_count(in, axis);
    const int64_t row = in.dims[axis] * inner;
    int64_t start = 0;
    for (uint32_t i = 0; i < args.num_outputs; ++i) {
      const int64_t part = args.outputs[i].dims[axis] * inner;
      for (int64_t o = 0; o < outer; ++o) {
        for (int64_t j = 0; j < part; ++j) {
          args.outputs[i].mutable_as<T>()[o * part + j] = in.as<T>()[o * row + start + j];
        }
      }
      start += part;
    }
    return true;
  }
};

Result<BoundKernel> bind_concat(const KernelInit& init) {
  return bind_storage<Concat>(init, init.outputs[0].tensor.element, axis_state(init, 1));
}

Result<BoundKernel> bind_split(const KernelInit& init) {
  return bind_storage<Split>(init, init.inputs[0].tensor.element, axis_state(init, 0));
}

}  // namespace

void add_movement_reference(KernelRegistry& registry) {
  registry.add({.op = "Concat", .bind = bind_concat, .provider = "reference"});
  registry.add({.op = "Split", .bind = bind_split, .provider = "reference"});
  add_movement_locate_reference(registry);
  add_movement_make_reference(registry);
  add_movement_view_reference(registry);
}

}  // namespace eddy
