// DFT and STFT of floats: each line or frame by a fast transform in double. Plans are kept by
// length.
#include <algorithm>
#include <memory>

#include "graph/base/check.h"
#include "ops/cpu/elementwise.h"
#include "ops/cpu/families.h"
#include "ops/cpu/fourier/fourier.h"
#include "ops/cpu/shape_cache.h"
#include "ops/cpu/tiles.h"
#include "ops/reference/parts/axes.h"
#include "ops/schema/rules/index_rules.h"

namespace eddy {
namespace {

using cpu::Complex;
using cpu::Fourier;
using cpu::Tiles;

struct FourierState : KernelState {
  bool is_inverse = false, is_onesided = false;
  bool has_axis_input = false;
  int64_t axis = 1;
  cpu::ShapeCache<int64_t, Fourier> plans;
};

const FourierState& state_of(const KernelArgs& args) {
  return static_cast<const FourierState&>(*args.state);
}

std::shared_ptr<const Fourier> plan_of(const FourierState& state, int64_t n) {
  if (auto found = state.plans.find_or_null(n)) return found;
  auto made = std::make_shared<const Fourier>(n, state.is_inverse);
  state.plans.add(n, made);
  return made;
}

// A number costs some operations of each stage.
Tiles tiles_of_lines(int64_t lines, int64_t n) { return Tiles::of(lines, n * 16); }

// A line or frame and what its transform needs, in the call's scratch memory.
struct Buffers {
  std::shared_ptr<const Fourier> plan;
  Complex* line = nullptr;
  Complex* scratch = nullptr;

  Buffers(const KernelArgs& args, int64_t n) : plan(plan_of(state_of(args), n)) {
    const auto count = static_cast<size_t>(n + plan->scratch_count());
    line = static_cast<Complex*>(args.scratch->reserve(count * sizeof(Complex)));
    scratch = line + n;
  }
};

bool fail_memory(const KernelArgs& args) {
  return args.fail(resource_exhausted("no memory for a line to transform"));
}

// `count` numbers, `step` elements apart; real ones have one part.
void read_numbers(const float* from, int64_t count, int64_t step, int64_t parts, Complex* to) {
  for (int64_t j = 0; j < count; ++j) {
    const float* at = from + j * step;
    to[j] = {static_cast<double>(at[0]), parts == 2 ? static_cast<double>(at[1]) : 0.0};
  }
}

// The call's axis and lengths, as the schema's rule and the plain loops read them.
struct DftCall {
  Status status;
  AxisSplit from, to;
  int64_t n = 0, parts = 1;
  bool gives_real = false;

  explicit DftCall(const KernelArgs& args) {
    const FourierState& state = state_of(args);
    const TensorView &x = args.inputs[0], &y = args.outputs[0];
    int64_t axis = state.has_axis_input ? -2 : state.axis;
    if (state.has_axis_input && args.has_input(2)) {
      status = read_int(args.inputs[2], "axis", axis);
      if (!status.is_ok()) return;
    }
    if (axis < 0) axis += x.rank;
    const auto split = [&](const TensorView& view) {
      return split_at_axis(view.shape().first(static_cast<size_t>(view.rank - 1)), axis);
    };
    from = split(x), to = split(y);
    parts = x.dims[x.rank - 1];
    gives_real = state.is_inverse && state.is_onesided;
    n = gives_real ? to.count : from.count;
    if (args.has_input(1)) status = read_int(args.inputs[1], "dft_length", n);
  }
  int64_t lines() const { return n < 1 ? 0 : to.outer * to.inner; }
};

// A call that fails is one tile, which says why.
Tiles tiles_of_dft(const KernelArgs& args) {
  const DftCall call(args);
  return call.status.is_ok() ? tiles_of_lines(call.lines(), call.n) : Tiles{1, 1};
}

void run_line(const DftCall& call, const KernelArgs& args, int64_t unit, const Buffers& buffers) {
  const int64_t o = unit / call.to.inner, i = unit % call.to.inner, n = call.n;
  const int64_t given = std::min(call.from.count, call.gives_real ? n / 2 + 1 : n);
  Complex* line = buffers.line;
  const int64_t step = call.from.inner * call.parts;
  read_numbers(args.inputs[0].as<float>() + o * call.from.count * step + i * call.parts, given,
               step, call.parts, line);
  std::fill(line + given, line + n, Complex());
  // Of half a spectrum the other half mirrors it.
  for (int64_t j = 1; call.gives_real && 2 * j < n; ++j) {
    line[n - j] = {line[j].real, -line[j].imaginary};
  }
  buffers.plan->transform(line, buffers.scratch);
  const double factor = state_of(args).is_inverse ? 1 / static_cast<double>(n) : 1;
  const int64_t out_parts = call.gives_real ? 1 : 2, out_step = call.to.inner * out_parts;
  float* y = args.outputs[0].mutable_as<float>() + o * call.to.count * out_step + i * out_parts;
  EDDY_DCHECK(call.to.count <= n) << call.to.count << " bins of " << n;
  for (int64_t k = 0; k < call.to.count; ++k) {
    y[k * out_step] = static_cast<float>(line[k].real * factor);
    if (out_parts == 2) y[k * out_step + 1] = static_cast<float>(line[k].imaginary * factor);
  }
}

bool run_dft(const KernelArgs& args, int64_t first, int64_t end) {
  DftCall call(args);
  if (!call.status.is_ok()) return args.fail(std::move(call.status));
  if (first >= end) return true;
  const Buffers buffers(args, call.n);
  if (buffers.line == nullptr) return fail_memory(args);
  for (int64_t unit = first; unit < end; ++unit) run_line(call, args, unit, buffers);
  return true;
}

struct StftCall {
  Status status;
  int64_t step = 1, frame = 0, frames = 0, bins = 0;

  explicit StftCall(const KernelArgs& args) {
    frame = args.has_input(2) ? args.inputs[2].count() : 0;
    status = read_int(args.inputs[1], "frame_step", step);
    if (status.is_ok() && args.has_input(3)) {
      status = read_int(args.inputs[3], "frame_length", frame);
    }
    frames = args.outputs[0].dims[1], bins = args.outputs[0].dims[2];
  }
  int64_t units(const KernelArgs& args) const {
    return frame < 1 || bins == 0 ? 0 : args.inputs[0].dims[0] * frames;
  }
};

Tiles tiles_of_stft(const KernelArgs& args) {
  const StftCall call(args);
  return call.status.is_ok() ? tiles_of_lines(call.units(args), call.frame) : Tiles{1, 1};
}

bool run_stft(const KernelArgs& args, int64_t first, int64_t end) {
  StftCall call(args);
  if (!call.status.is_ok()) return args.fail(std::move(call.status));
  if (first >= end) return true;
  const Buffers buffers(args, call.frame);
  if (buffers.line == nullptr) return fail_memory(args);
  const TensorView& x = args.inputs[0];
  const int64_t parts = x.dims[2];
  const float* window = args.has_input(2) ? args.inputs[2].as<float>() : nullptr;
  EDDY_DCHECK(call.bins <= call.frame) << call.bins << " bins of " << call.frame;
  for (int64_t unit = first; unit < end; ++unit) {
    const int64_t b = unit / call.frames, begin = unit % call.frames * call.step;
    Complex* line = buffers.line;
    read_numbers(x.as<float>() + (b * x.dims[1] + begin) * parts, call.frame, parts, parts, line);
    for (int64_t j = 0; window != nullptr && j < call.frame; ++j) {
      const auto weight = static_cast<double>(window[j]);
      line[j] = {weight * line[j].real, weight * line[j].imaginary};
    }
    buffers.plan->transform(line, buffers.scratch);
    float* y = args.outputs[0].mutable_as<float>() + unit * call.bins * 2;
    for (int64_t k = 0; k < call.bins; ++k) {
      y[2 * k] = static_cast<float>(line[k].real);
      y[2 * k + 1] = static_cast<float>(line[k].imaginary);
    }
  }
  return true;
}

template <cpu::TilesFunction tiles_of, cpu::UnitsFunction run>
Result<BoundKernel> bind_fourier(const KernelInit& init) {
  if (init.inputs[0].tensor.element != ElementType::kFloat) return cpu::no_fast_kernel(init);
  auto state = std::make_unique<FourierState>();
  state->is_inverse = init.attributes.get_int("inverse", 0) != 0;
  state->is_onesided = init.attributes.get_int("onesided", 0) != 0;
  state->has_axis_input = init.opset_version >= 20;
  state->axis = init.attributes.get_int("axis", 1);
  BoundKernel kernel;
  kernel.run = cpu::run_all_units<tiles_of, run>;
  if (cpu::fills_tiles(init.outputs[0], cpu::kTileElements / 16)) {
    cpu::set_tiles<tiles_of, run>(kernel);
  }
  kernel.state = std::move(state);
  return kernel;
}

}  // namespace

void add_dft_cpu(KernelRegistry& registry) {
  registry.add({.op = "DFT",
                .since_version = 17,
                .bind = bind_fourier<tiles_of_dft, run_dft>,
                .has_tiles = true});
  registry.add({.op = "STFT",
                .since_version = 17,
                .bind = bind_fourier<tiles_of_stft, run_stft>,
                .has_tiles = true});
}

}  // namespace eddy
