// Fast linear quantization between floats and bytes: runs of elements under one scale, or with a
// scale each, through the loops.
#include "ops/reference/elementwise/quantize.h"
#include "graph/base/check.h"

#include <algorithm>
#include <cmath>

#include "ops/cpu/elementwise.h"
#include "ops/cpu/families.h"

namespace eddy {
namespace {

using namespace cpu;

struct QuantizeState : KernelState {
  QuantizeLoops loops;
  ReduceLoops min;
  ReduceLoops max;
  int64_t axis = 1;
  int64_t block_size = 0;
};

// Calls run(first element, count, first scale, each): a scale each, or one for the whole run.
template <typename Run>
void for_each_run(const ScaleMap& map, Run run) {
  EDDY_DCHECK(map.block_size > 0) << "blocks of " << map.block_size;
  const int64_t lane = map.count * map.inner;
  for (int64_t o = 0; o < map.outer; ++o) {
    const int64_t scale = o * map.outer_step;
    if (map.inner == 1 && map.block_size == 1) {
      run(o * lane, map.count, scale, map.block_step != 0);
      continue;
    }
    // Neighbours along the axis that share a scale are one run where nothing stands between.
    const int64_t step = map.inner == 1 ? map.block_size : 1;
    for (int64_t j = 0; j < map.count; j += step) {
      const int64_t count = std::min(step, map.count - j) * map.inner;
      run(o * lane + j * map.inner, count, scale + j / map.block_size * map.block_step,
          map.inner_step != 0 && map.inner != 1);
    }
  }
}

const void* zero_at(const KernelArgs& args, int64_t scale) {
  EDDY_DCHECK(!args.has_input(2) || scale <= args.inputs[2].count()) << "no zero point " << scale;
  return args.has_input(2) ? args.inputs[2].as<std::byte>() + scale : nullptr;
}

bool run_quantize(const KernelArgs& args) {
  const auto& s = *static_cast<const QuantizeState*>(args.state);
  const float* x = args.inputs[0].as<float>();
  const float* scales = args.inputs[1].as<float>();
  auto* out = args.outputs[0].mutable_as<std::byte>();
  for_each_run(ScaleMap::of(args.inputs[0], args.inputs[1], s.axis, s.block_size),
               [&](int64_t first, int64_t count, int64_t scale, bool each) {
                 s.loops.quantize(x + first, out + first, count, scales + scale,
                                  zero_at(args, scale), each);
               });
  return true;
}

bool run_dequantize(const KernelArgs& args) {
  const auto& s = *static_cast<const QuantizeState*>(args.state);
  const auto* q = args.inputs[0].as<std::byte>();
  const float* scales = args.inputs[1].as<float>();
  float* out = args.outputs[0].mutable_as<float>();
  for_each_run(ScaleMap::of(args.inputs[0], args.inputs[1], s.axis, s.block_size),
               [&](int64_t first, int64_t count, int64_t scale, bool each) {
                 s.loops.dequantize(q + first, out + first, count, scales + scale,
                                    zero_at(args, scale), each);
               });
  return true;
}

// Least and greatest of the values and 0; NaN is passed over, which the folds do not.
void find_range(const QuantizeState& s, const float* x, int64_t count, float& low, float& high) {
  const float least = s.min.fold(x, count);
  low = std::min(0.0f, least);
  high = std::max(0.0f, s.max.fold(x, count));
  if (!std::isnan(least)) return;
  low = high = 0;
  for (int64_t i = 0; i < count; ++i) {
    low = std::min(low, x[i]);
    high = std::max(high, x[i]);
  }
}

bool run_dynamic(const KernelArgs& args) {
  const auto& s = *static_cast<const QuantizeState*>(args.state);
  const float* x = args.inputs[0].as<float>();
  const int64_t count = args.inputs[0].count();
  float low = 0, high = 0;
  find_range(s, x, count, low, high);
  EDDY_DCHECK(low <= 0 && high >= 0) << "0 lies outside " << low << " to " << high;
  const float scale = low == high ? 1.0f : (high - low) / 255.0f;
  const float zero = std::clamp(std::nearbyint(-low / scale), 0.0f, 255.0f);
  const uint8_t zero_byte = static_cast<uint8_t>(zero);
  s.loops.quantize(x, args.outputs[0].data, count, &scale, &zero_byte, false);
  if (args.num_outputs > 1) *args.outputs[1].mutable_as<float>() = scale;
  if (args.num_outputs > 2) *args.outputs[2].mutable_as<uint8_t>() = zero_byte;
  return true;
}

Result<BoundKernel> bind_quantize(const KernelInit& init) {
  const bool is_dynamic = init.op.name == "DynamicQuantizeLinear";
  const bool is_back = init.op.name == "DequantizeLinear";
  const ElementType number = (is_back ? init.outputs : init.inputs)[0].tensor.element;
  const ElementType byte = (is_back ? init.inputs : init.outputs)[0].tensor.element;
  const bool fits = number == ElementType::kFloat &&
                    (byte == ElementType::kInt8 || byte == ElementType::kUint8) &&
                    (is_dynamic || init.inputs[1].tensor.element == ElementType::kFloat);
  if (!fits) return no_fast_kernel(init);
  const LoopSet& set = loop_set();
  auto state = std::make_unique<QuantizeState>();
  state->loops = byte == ElementType::kInt8 ? set.int8 : set.uint8;
  state->min = set.reduce[static_cast<int>(ReduceOp::kMin)];
  state->max = set.reduce[static_cast<int>(ReduceOp::kMax)];
  state->axis = init.attributes.get_int("axis", 1);
  state->block_size = init.attributes.get_int("block_size", 0);
  BoundKernel kernel;
  kernel.run = is_dynamic ? run_dynamic : is_back ? run_dequantize : run_quantize;
  kernel.state = std::move(state);
  return kernel;
}

}  // namespace

void add_quantize_cpu(KernelRegistry& registry) {
  for (std::string_view name : {"QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear"}) {
    registry.add({.op = name, .bind = bind_quantize});
  }
}

}  // namespace eddy
