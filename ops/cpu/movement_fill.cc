// ConstantOfShape, EyeLike, OneHot, Trilu: mostly one value, written in runs.
#include <algorithm>
#include <cstring>

#include "graph/base/check.h"
#include "ops/cpu/movement_parts.h"
#include "ops/cpu/strided_copy.h"
#include "ops/reference/parts/number.h"
#include "ops/reference/parts/storage.h"
#include "ops/schema/rules/index_rules.h"

namespace eddy {
namespace {

struct FillState : KernelState {
  uint64_t bytes[2] = {};       // one element of a number type
  const void* value = nullptr;  // the element
  int64_t k = 0;                // EyeLike's diagonal
  int64_t axis = 0;             // OneHot's
  bool upper = true;            // Trilu's
};

const FillState& state_of(const KernelArgs& args) {
  return static_cast<const FillState&>(*args.state);
}

template <typename T>
struct ConstantOfShape {
  static bool run(const KernelArgs& args) {
    const T* value = static_cast<const T*>(state_of(args).value);
    EDDY_DCHECK(value != nullptr) << "there is nothing to fill with";
    std::fill_n(args.outputs[0].mutable_as<T>(), args.outputs[0].count(), *value);
    return true;
  }
};

Result<BoundKernel> bind_constant_of_shape(const KernelInit& init) {
  auto state = std::make_unique<FillState>();
  const Constant* value = init.attributes.get_tensor_or_null("value");
  state->value = value == nullptr ? state->bytes : value->data;
  return bind_storage<ConstantOfShape>(init, init.outputs[0].tensor.element, std::move(state));
}

template <typename T>
struct EyeLike {
  static bool run(const KernelArgs& args) {
    const FillState& state = state_of(args);
    EDDY_DCHECK(args.outputs[0].rank == 2) << "a rank of " << args.outputs[0].rank;
    const int64_t rows = args.outputs[0].dims[0], columns = args.outputs[0].dims[1];
    T* out = args.outputs[0].mutable_as<T>();
    std::fill_n(out, rows * columns, T{});
    const int64_t k = std::clamp(state.k, -rows, columns);
    const int64_t end = std::min(rows, columns - k);
    for (int64_t row = std::max<int64_t>(0, -k); row < end; ++row) {
      out[row * columns + row + k] = *static_cast<const T*>(state.value);
    }
    return true;
  }
};

Result<BoundKernel> bind_eye_like(const KernelInit& init) {
  const ElementType element = init.outputs[0].tensor.element;
  if (!kNumberTypes.contains(element)) return unsupported("EyeLike makes numbers only");
  auto state = std::make_unique<FillState>();
  state->k = init.attributes.get_int("k", 0);
  store_number({state->bytes, nullptr, 0, element}, 0, Number::of_int(1));
  state->value = state->bytes;
  return bind_storage<EyeLike>(init, element, std::move(state));
}

template <typename T>
struct OneHot {
  static bool run(const KernelArgs& args) {
    const TensorView& indices = args.inputs[0];
    const TensorView& out = args.outputs[0];
    if (args.inputs[2].count() != 2) {
      return args.fail(invalid_argument("values must be [off, on]"));
    }
    const T* values = args.inputs[2].as<T>();
    const int64_t axis = state_of(args).axis + (state_of(args).axis < 0 ? out.rank : 0);
    EDDY_DCHECK(out.rank == indices.rank + 1 && axis >= 0 && axis < out.rank)
        << "axis " << axis << " of " << out.rank;
    const int64_t depth = out.dims[axis];
    int64_t inner = 1;
    for (int64_t d = axis + 1; d < out.rank; ++d) inner *= out.dims[d];
    T* data = out.mutable_as<T>();
    std::fill_n(data, out.count(), values[0]);
    const int64_t count = inner == 0 ? 0 : indices.count();
    for (int64_t i = 0; i < count; ++i) {
      int64_t index = is_index_type(indices.element) ? index_at(indices, i)
                                                     : load_number(indices, i).to_index();
      if (index < -depth || index >= depth) continue;
      if (index < 0) index += depth;
      data[(i / inner * depth + index) * inner + i % inner] = values[1];
    }
    return true;
  }
};

Result<BoundKernel> bind_one_hot(const KernelInit& init) {
  auto state = std::make_unique<FillState>();
  state->axis = init.attributes.get_int("axis", -1);
  return bind_storage<OneHot>(init, init.inputs[2].tensor.element, std::move(state));
}

// The output may be the input: rows are cut in place.
template <typename T>
struct Trilu {
  static bool run(const KernelArgs& args) {
    const TensorView& out = args.outputs[0];
    int64_t k = 0;
    if (args.has_input(1)) {
      Status status = read_int(args.inputs[1], "k", k);
      if (!status.is_ok()) return args.fail(std::move(status));
    }
    const int64_t count = out.count();
    if (count == 0) return true;
    EDDY_DCHECK(out.rank >= 2 && args.inputs[0].count() == count) << "matrices of another size";
    const int64_t rows = out.dims[out.rank - 2], columns = out.dims[out.rank - 1];
    k = std::clamp(k, -rows, columns);
    const bool upper = state_of(args).upper;
    const T* in = args.inputs[0].as<T>();
    T* to = out.mutable_as<T>();
    for (int64_t r = 0; r < count / columns; ++r, in += columns, to += columns) {
      // Elements [first, last) of the row stay.
      const int64_t diagonal = r % rows + k;
      const int64_t first = upper ? std::clamp<int64_t>(diagonal, 0, columns) : 0;
      const int64_t last = upper ? columns : std::clamp<int64_t>(diagonal + 1, 0, columns);
      std::fill(to, to + first, T{});
      if (in != to) copy_run(in + first, to + first, last - first);
      std::fill(to + last, to + columns, T{});
    }
    return true;
  }
};

Result<BoundKernel> bind_trilu(const KernelInit& init) {
  auto state = std::make_unique<FillState>();
  state->upper = init.attributes.get_int("upper", 1) != 0;
  return bind_storage<Trilu>(init, init.inputs[0].tensor.element, std::move(state));
}

}  // namespace

void add_movement_fill_cpu(KernelRegistry& registry) {
  registry.add({.op = "ConstantOfShape", .bind = bind_constant_of_shape});
  registry.add({.op = "EyeLike", .bind = bind_eye_like});
  registry.add({.op = "OneHot", .bind = bind_one_hot});
  registry.add({.op = "Trilu", .bind = bind_trilu});
}

}  // namespace eddy
