// Constant, ConstantOfShape, Range, EyeLike, OneHot.
#include <algorithm>

#include "ops/reference/movement/movement_parts.h"
#include "ops/reference/parts/locate.h"
#include "ops/reference/parts/number.h"
#include "ops/reference/parts/typed_kernel.h"

namespace eddy {
namespace {

// ---- Constant ----

struct ConstantState : KernelState {
  AttributeValue value;
};

TensorView view_of(const AttributeValue& value) {
  const auto as = [](const auto* data, ElementType element) {
    return TensorView{const_cast<void*>(static_cast<const void*>(data)), nullptr, 0, element};
  };
  if (const auto* tensor = std::get_if<Constant>(&value)) return as(tensor->data, tensor->element);
  if (const auto* i = std::get_if<int64_t>(&value)) return as(i, ElementType::kInt64);
  if (const auto* f = std::get_if<float>(&value)) return as(f, ElementType::kFloat);
  if (const auto* s = std::get_if<std::string>(&value)) return as(s, ElementType::kString);
  if (const auto* v = std::get_if<std::vector<int64_t>>(&value)) {
    return as(v->data(), ElementType::kInt64);
  }
  if (const auto* v = std::get_if<std::vector<float>>(&value)) {
    return as(v->data(), ElementType::kFloat);
  }
  if (const auto* v = std::get_if<std::vector<std::string>>(&value)) {
    return as(v->data(), ElementType::kString);
  }
  return {};
}

template <typename T>
struct CopyConstant {
  static bool run(const KernelArgs& args) {
    const TensorView from = view_of(static_cast<const ConstantState&>(*args.state).value);
    std::copy_n(from.as<T>(), args.outputs[0].count(), args.outputs[0].mutable_as<T>());
    return true;
  }
};

Result<BoundKernel> bind_constant(const KernelInit& init) {
  auto state = std::make_unique<ConstantState>();
  state->value = init.attributes.entries()[0].value;
  return bind_storage<CopyConstant>(init, init.outputs[0].tensor.element, std::move(state));
}

// ---- ConstantOfShape and EyeLike: zeros and one other value ----

bool locate_first(const KernelArgs& args, int64_t* sources) {
  std::fill_n(sources, args.outputs[0].count(), 0);
  return true;
}

Result<BoundKernel> bind_constant_of_shape(const KernelInit& init) {
  auto state = std::make_unique<LocateState>();
  state->constants = {&state->constant_bytes, nullptr, 0, ElementType::kFloat};
  if (const Constant* value = init.attributes.get_tensor_or_null("value")) {
    state->constants.data = const_cast<void*>(value->data);
    state->constants.element = value->element;
  }
  return bind_locate<locate_first>(init, std::move(state));
}

bool locate_diagonal(const KernelArgs& args, int64_t* sources) {
  const int64_t rows = args.outputs[0].dims[0], columns = args.outputs[0].dims[1];
  const int64_t k = std::clamp(locate_state(args).other, -rows, columns);
  for (int64_t i = 0; i < rows * columns; ++i) {
    sources[i] = i % columns - i / columns == k ? 0 : kFill;
  }
  return true;
}

Result<BoundKernel> bind_eye_like(const KernelInit& init) {
  const ElementType element = init.outputs[0].tensor.element;
  if (!kNumberTypes.contains(element)) return unsupported("EyeLike makes numbers only");
  auto state = std::make_unique<LocateState>();
  state->other = init.attributes.get_int("k", 0);
  state->constants = {&state->constant_bytes, nullptr, 0, element};
  store_number(state->constants, 0, Number::of_int(1));
  return bind_locate<locate_diagonal>(init, std::move(state));
}

// ---- OneHot: element 0 of `values` is off, element 1 is on ----

bool locate_one_hot(const KernelArgs& args, int64_t* sources) {
  const TensorView& out = args.outputs[0];
  const TensorView& indices = args.inputs[0];
  if (args.inputs[2].count() != 2) return args.fail(invalid_argument("values must be [off, on]"));
  const int64_t given = locate_state(args).axis;
  const int axis = static_cast<int>(given < 0 ? given + out.rank : given);
  const int64_t depth = out.dims[axis];
  int64_t inner = 1;
  for (int d = axis + 1; d < out.rank; ++d) inner *= out.dims[d];
  const int64_t count = out.count();
  for (int64_t i = 0; i < count; ++i) {
    const int64_t place = i / inner % depth;
    const int64_t at = i / (inner * depth) * inner + i % inner;
    const int64_t index = load_number(indices, at).to_index();
    const bool in_range = index >= -depth && index < depth;
    sources[i] = in_range && place == (index < 0 ? index + depth : index) ? 1 : 0;
  }
  return true;
}

Result<BoundKernel> bind_one_hot(const KernelInit& init) {
  auto state = std::make_unique<LocateState>();
  state->axis = init.attributes.get_int("axis", -1);
  state->source_input = 2;
  return bind_locate<locate_one_hot>(init, std::move(state));
}

// ---- Range ----

template <typename T>
struct Range {
  static bool run(const KernelArgs& args) {
    const T start = args.inputs[0].as<T>()[0];
    const T delta = args.inputs[2].as<T>()[0];
    T* out = args.outputs[0].mutable_as<T>();
    const int64_t count = args.outputs[0].dims[0];
    for (int64_t i = 0; i < count; ++i) {
      if constexpr (std::is_integral_v<T>) {
        // Wraps where the standard leaves overflow open.
        out[i] = static_cast<T>(static_cast<uint64_t>(start) +
                                static_cast<uint64_t>(i) * static_cast<uint64_t>(delta));
      } else if constexpr (std::is_floating_point_v<T>) {
        out[i] = start + static_cast<T>(i) * delta;
      } else {
        out[i] = T(static_cast<float>(start) + static_cast<float>(i) * static_cast<float>(delta));
      }
    }
    return true;
  }
};

Result<BoundKernel> bind_range(const KernelInit& init) {
  return bind_typed<Range, float, double, Float16, Bfloat16, int16_t, int32_t, int64_t>(init, 0);
}

}  // namespace

void add_movement_make_reference(KernelRegistry& registry) {
  const auto add = [&](std::string_view op, BindFunction bind) {
    registry.add({.op = op, .bind = bind, .provider = "reference"});
  };
  add("Constant", bind_constant);
  add("ConstantOfShape", bind_constant_of_shape);
  add("EyeLike", bind_eye_like);
  add("OneHot", bind_one_hot);
  add("Range", bind_range);
}

}  // namespace eddy
