// QuantizeLinear, DequantizeLinear and DynamicQuantizeLinear.
//
//   y = clamp(round(x / scale) + zero_point), rounding half to even
//   y = x / scale + zero_point, rounded once, where y is a float of 8 or 4 bits
//   x = (y - zero_point) * scale
//
// x / scale is a division of floats, as the standard's tests have it: in double some halves would
// round to the other side.
#include "ops/reference/elementwise/quantize.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "graph/base/check.h"
#include "ops/reference/families.h"
#include "ops/reference/parts/axes.h"
#include "ops/reference/parts/number.h"
#include "ops/reference/parts/small_float.h"

namespace eddy {

ScaleMap ScaleMap::of(const TensorView& x, const TensorView& scale, int64_t axis,
                      int64_t block_size) {
  ScaleMap map;
  if (block_size == 0 && scale.count() == 1) {
    map.inner = x.count();
    return map;
  }
  const AxisSplit split = split_at_axis(x.shape(), axis);
  map.outer = split.outer;
  map.count = split.count;
  map.inner = split.inner;
  map.block_step = 1;
  if (block_size > 0) {
    const int64_t blocks = split.count / block_size + (split.count % block_size != 0);
    map.block_size = block_size;
    map.inner_step = 1;
    map.block_step = split.inner;
    map.outer_step = blocks * split.inner;
  }
  return map;
}

QuantizedRange quantized_range(ElementType element) {
  switch (element) {
    case ElementType::kInt8:
      return {-128, 127};
    case ElementType::kUint8:
      return {0, 255};
    case ElementType::kInt16:
      return {-32768, 32767};
    case ElementType::kUint16:
      return {0, 65535};
    case ElementType::kInt4:
      return {-8, 7};
    case ElementType::kUint4:
      return {0, 15};
    case ElementType::kInt2:
      return {-2, 1};
    case ElementType::kUint2:
      return {0, 3};
    default:
      break;
  }
  EDDY_CHECK(false) << "nothing is quantized to " << element_type_name(element);
  return {};
}

namespace {

struct QuantizeState : KernelState {
  int64_t axis = 1;
  int64_t block_size = 0;
  bool saturates = true;  // of small floats
};

// Calls visit(element, index of its scale) for each element.
template <typename Visit>
void for_each_scaled(const ScaleMap& map, Visit visit) {
  EDDY_DCHECK(map.block_size > 0) << "blocks of " << map.block_size;
  int64_t element = 0;
  for (int64_t o = 0; o < map.outer; ++o) {
    for (int64_t j = 0; j < map.count; ++j) {
      for (int64_t i = 0; i < map.inner; ++i) {
        visit(element++,
              o * map.outer_step + j / map.block_size * map.block_step + i * map.inner_step);
      }
    }
  }
}

// NaN is quantized as 0 is.
double quantize_one(float x, float scale, double zero, const QuantizedRange& range) {
  const double rounded = std::nearbyint(x / scale);
  return std::isnan(rounded) ? zero : std::clamp(rounded + zero, range.low, range.high);
}

double zero_point(const KernelArgs& args, int64_t scale) {
  return args.has_input(2) ? load_number(args.inputs[2], scale).to_double() : 0;
}

bool run_quantize(const KernelArgs& args) {
  const auto& state = *static_cast<const QuantizeState*>(args.state);
  const TensorView& x = args.inputs[0];
  const TensorView& scale = args.inputs[1];
  const TensorView& out = args.outputs[0];
  const QuantizedRange range = quantized_range(out.element);
  const auto quantize = [&](int64_t element, int64_t s) {
    const double quantized =
        quantize_one(load_number(x, element).to_float(), load_number(scale, s).to_float(),
                     zero_point(args, s), range);
    store_number(out, element, Number::of_double(quantized));
  };
  for_each_scaled(ScaleMap::of(x, scale, state.axis, state.block_size), quantize);
  return true;
}

bool run_quantize_to_floats(const KernelArgs& args) {
  const auto& state = *static_cast<const QuantizeState*>(args.state);
  const TensorView& x = args.inputs[0];
  const TensorView& scale = args.inputs[1];
  const TensorView& out = args.outputs[0];
  const auto quantize = [&](int64_t element, int64_t s) {
    const float scaled = load_number(x, element).to_float() / load_number(scale, s).to_float();
    const float moved = scaled + static_cast<float>(zero_point(args, s));
    out.mutable_as<uint8_t>()[element] = to_small_float(out.element, moved, {state.saturates});
  };
  for_each_scaled(ScaleMap::of(x, scale, state.axis, state.block_size), quantize);
  return true;
}

bool run_dequantize(const KernelArgs& args) {
  const auto& state = *static_cast<const QuantizeState*>(args.state);
  const TensorView& x = args.inputs[0];
  const TensorView& scale = args.inputs[1];
  const auto dequantize = [&](int64_t element, int64_t s) {
    const double step = load_number(x, element).to_double() - zero_point(args, s);
    const double value = step * load_number(scale, s).to_double();
    store_number(args.outputs[0], element, Number::of_double(value));
  };
  for_each_scaled(ScaleMap::of(x, scale, state.axis, state.block_size), dequantize);
  return true;
}

// The scale spreads the values' range, widened to hold 0, over 0..255; where all are 0 it is 1.
bool run_dynamic(const KernelArgs& args) {
  const TensorView& in = args.inputs[0];
  const float* x = in.as<float>();
  const int64_t count = in.count();
  float low = 0, high = 0;
  for (int64_t i = 0; i < count; ++i) {
    low = std::min(low, x[i]);
    high = std::max(high, x[i]);
  }
  const QuantizedRange range = quantized_range(ElementType::kUint8);
  const float scale = low == high ? 1.0f : (high - low) / 255.0f;
  const double zero = std::clamp<double>(std::nearbyint(-low / scale), range.low, range.high);
  auto* out = args.outputs[0].mutable_as<uint8_t>();
  for (int64_t i = 0; i < count; ++i) {
    out[i] = static_cast<uint8_t>(quantize_one(x[i], scale, zero, range));
  }
  if (args.num_outputs > 1) *args.outputs[1].mutable_as<float>() = scale;
  if (args.num_outputs > 2) *args.outputs[2].mutable_as<uint8_t>() = static_cast<uint8_t>(zero);
  return true;
}

template <KernelFunction function>
Result<BoundKernel> bind_quantize(const KernelInit& init) {
  auto state = std::make_unique<QuantizeState>();
  state->axis = init.attributes.get_int("axis", 1);
  state->block_size = init.attributes.get_int("block_size", 0);
  state->saturates = init.attributes.get_int("saturate", 1) != 0;
  BoundKernel kernel;
  const bool is_float = kSmallFloatTypes.contains(init.outputs[0].tensor.element);
  kernel.run = is_float ? run_quantize_to_floats : function;
  kernel.state = std::move(state);
  return kernel;
}

}  // namespace

void add_quantize_reference(KernelRegistry& registry) {
  registry.add(
      {.op = "QuantizeLinear", .bind = bind_quantize<run_quantize>, .provider = "reference"});
  registry.add(
      {.op = "DequantizeLinear", .bind = bind_quantize<run_dequantize>, .provider = "reference"});
  registry.add(
      {.op = "DynamicQuantizeLinear", .bind = bind_quantize<run_dynamic>, .provider = "reference"});
}

}  // namespace eddy
