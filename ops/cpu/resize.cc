// Resize for float, and to nearest neighbours for integers: one axis after the other, rows of the
// axes behind it at once.
#include <algorithm>

#include "graph/base/check.h"
#include "ops/cpu/families.h"
#include "ops/cpu/tiles.h"
#include "ops/reference/windows/resize_call.h"

namespace eddy {
namespace {

using cpu::Tiles;

// One axis: x is [outer][input][inner], y [outer][output][inner].
template <typename T>
struct Pass {
  const ResizeCall& call;
  const ResizeAxis& axis;
  int64_t outer, inner, taps;
  int64_t* indices;  // of one position
  double* weights;

  void run(const T* x, T* y) const {
    for (int64_t o = 0; o < axis.output; ++o) {
      axis.fill(call.rules, o, indices, weights);
      for (int64_t i = 0; i < outer; ++i) {
        add_rows(x + i * axis.input * inner, y + (i * axis.output + o) * inner);
      }
    }
  }

  void add_rows(const T* x, T* y) const {
    EDDY_DCHECK(taps > 0) << "a position without taps";
    if (taps == 1) {
      std::copy(x + indices[0] * inner, x + (indices[0] + 1) * inner, y);
      return;
    }
    for (int64_t j = 0; j < inner; ++j) {
      double sum = 0;
      for (int64_t t = 0; t < taps; ++t) {
        if (weights[t] != 0) sum += weights[t] * static_cast<double>(x[indices[t] * inner + j]);
      }
      y[j] = static_cast<T>(sum);
    }
  }
};

// Scratch: two buffers for what passes hand on, and the taps of one position.
struct Plan {
  int num_passes = 0;
  int64_t buffer_size = 0, taps = 1;  // elements

  explicit Plan(const ResizeCall& call) {
    int64_t count = 1;
    for (int i = 0; i < call.rank; ++i) count *= call.axes[static_cast<size_t>(i)].input;
    for (int i = call.rank - 1; i >= 0; --i) {
      const auto at = static_cast<size_t>(i);
      if (!call.is_resized[at]) continue;
      count = count / std::max<int64_t>(call.axes[at].input, 1) * call.axes[at].output;
      buffer_size = std::max(buffer_size, count);
      taps = std::max(taps, call.axes[at].num_taps(call.rules));
      ++num_passes;
    }
  }
};

template <typename T>
void run_passes(const ResizeCall& call, const Plan& plan, const T* from, T* result, char* memory) {
  auto* weights = reinterpret_cast<double*>(memory);
  auto* indices = reinterpret_cast<int64_t*>(memory + plan.taps * 8);
  T* buffers[2];
  buffers[0] = reinterpret_cast<T*>(memory + plan.taps * 16);
  buffers[1] = buffers[0] + plan.buffer_size;
  int64_t outer = 1, inner = 1;
  for (int i = 0; i < call.rank; ++i) outer *= call.axes[static_cast<size_t>(i)].input;
  int pass = 0;
  for (int i = call.rank - 1; i >= 0; --i) {
    const ResizeAxis& axis = call.axes[static_cast<size_t>(i)];
    EDDY_DCHECK(axis.input > 0 && outer % axis.input == 0) << "axis " << i << " of " << axis.input;
    outer /= axis.input;
    if (call.is_resized[static_cast<size_t>(i)]) {
      const bool is_last = ++pass == plan.num_passes;
      T* to = is_last ? result : buffers[pass % 2];
      const int64_t taps = axis.num_taps(call.rules);
      Pass<T>{call, axis, outer, inner, taps, indices, weights}.run(from, to);
      from = to;
    }
    inner *= axis.output;
  }
  EDDY_DCHECK(pass == plan.num_passes) << pass << " passes of " << plan.num_passes;
}

// The axes before the first one that is resized: each of their places is a plane by itself.
int64_t num_planes(const ResizeCall& call) {
  int64_t planes = 1;
  for (size_t i = 0; i < static_cast<size_t>(call.rank) && !call.is_resized[i]; ++i) {
    planes *= call.axes[i].input;
  }
  return planes;
}

// An element is a sum of several in double.
constexpr int64_t kTileWork = cpu::kTileElements / 4;

// A call that fails is one tile, which says why.
Tiles tiles_of(const KernelArgs& args) {
  const int64_t count = args.outputs[0].count();
  if (count == 0) return {};
  ResizeCall call;
  if (!make_resize_call(args, call).is_ok()) return {1, 1};
  const int64_t planes = num_planes(call);
  return Tiles::of(planes, count / planes, kTileWork);
}

template <typename T>
bool run_planes(const KernelArgs& args, int64_t first, int64_t end) {
  TensorView x = args.inputs[0], y = args.outputs[0];
  ResizeCall call;
  Status status = make_resize_call(args, call);
  if (!status.is_ok()) return args.fail(std::move(status));
  const int64_t planes = num_planes(call);
  EDDY_DCHECK(first >= 0 && end <= planes) << "planes " << first << " to " << end;
  const T* const from = x.as<T>() + x.count() / planes * first;
  T* const to = y.mutable_as<T>() + y.count() / planes * first;
  // As if the first axis had these planes, and the others before the first resized one none.
  for (size_t i = 0; i < static_cast<size_t>(call.rank) && !call.is_resized[i]; ++i) {
    call.axes[i].input = call.axes[i].output = i == 0 ? end - first : 1;
  }
  const Plan plan(call);
  if (plan.num_passes == 0) {
    std::copy_n(from, x.count() / planes * (end - first), to);
    return true;
  }
  auto* memory = static_cast<char*>(args.scratch->reserve(
      static_cast<size_t>(plan.taps) * 16 + static_cast<size_t>(plan.buffer_size) * 2 * sizeof(T)));
  if (memory == nullptr) return args.fail(resource_exhausted("no memory to resize in"));
  run_passes<T>(call, plan, from, to, memory);
  return true;
}

template <typename T>
void set_run(BoundKernel& kernel, const KernelInit& init) {
  kernel.run = cpu::run_all_units<tiles_of, run_planes<T>>;
  if (cpu::fills_tiles(init.outputs[0], kTileWork)) cpu::set_tiles<tiles_of, run_planes<T>>(kernel);
}

Result<BoundKernel> bind_resize(const KernelInit& init) {
  const ElementType element = init.inputs[0].tensor.element;
  const bool is_nearest = init.attributes.get_string("mode", "nearest") == "nearest";
  BoundKernel kernel;
  if (element == ElementType::kFloat) set_run<float>(kernel, init);
  if (is_nearest && element == ElementType::kInt32) set_run<int32_t>(kernel, init);
  if (is_nearest && element == ElementType::kInt64) set_run<int64_t>(kernel, init);
  if (kernel.run == nullptr) {
    return unsupported("the fast Resize handles float, and nearest neighbours of int32 and int64");
  }
  // An extrapolated value would take part in the sums of the next axis.
  if (init.attributes.get_string("coordinate_transformation_mode", "") == "tf_crop_and_resize") {
    return unsupported("the fast Resize does not crop");
  }
  auto state = std::make_unique<ResizeState>();
  state->attributes = init.attributes;
  state->since_version = init.op.since_version;
  kernel.state = std::move(state);
  return kernel;
}

}  // namespace

void add_resize_cpu(KernelRegistry& registry) {
  registry.add({.op = "Resize",
                .since_version = 10,
                .bind = bind_resize,
                .provider = "cpu",
                .has_tiles = true});
}

}  // namespace eddy
