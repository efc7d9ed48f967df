// BatchNormalization, LayerNormalization, RMSNormalization, InstanceNormalization: means and
// variances in double, in two passes. LRN: each window's sum of squares by itself, in double.
#include <algorithm>
#include <cmath>

#include "graph/base/check.h"
#include "ops/reference/families.h"
#include "ops/reference/parts/number.h"
#include "ops/reference/parts/outputs.h"
#include "ops/reference/parts/typed_kernel.h"
#include "ops/reference/reduce/normalization.h"

namespace eddy {
namespace {

struct NormalizationState : KernelState {
  double epsilon = 1e-5, momentum = 0.9;
  bool trains = false;
  int64_t axis = -1;
};

std::unique_ptr<NormalizationState> make_state(const KernelInit& init) {
  auto state = std::make_unique<NormalizationState>();
  state->epsilon = init.attributes.get_float("epsilon", 1e-5f);
  state->momentum = init.attributes.get_float("momentum", 0.9f);
  state->trains = init.attributes.get_int("training_mode", 0) != 0;
  state->axis = init.attributes.get_int("axis", -1);
  return state;
}

double number_at(const TensorView& view, int64_t i) { return load_number(view, i).to_double(); }
void set_number(const TensorView& view, int64_t i, double value) {
  store_number(view, i, Number::of_double(value));
}

struct Moments {
  double mean = 0, variance = 0;
};

// The moments of the values at(0) .. at(count - 1).
template <typename At>
Moments moments_of(int64_t count, At at) {
  Moments m;
  for (int64_t i = 0; i < count; ++i) m.mean += at(i);
  m.mean /= static_cast<double>(count);
  for (int64_t i = 0; i < count; ++i) m.variance += (at(i) - m.mean) * (at(i) - m.mean);
  m.variance /= static_cast<double>(count);
  return m;
}

// [batch, channels, plane]
struct Planes {
  int64_t batch, channels, plane = 1;
  explicit Planes(const TensorView& x) : batch(x.dims[0]), channels(x.dims[1]) {
    EDDY_DCHECK(x.rank >= 2) << "no channels in a rank of " << x.rank;
    for (int i = 2; i < x.rank; ++i) plane *= x.dims[i];
  }
  int64_t index(int64_t n, int64_t c, int64_t i) const { return (n * channels + c) * plane + i; }
};

bool run_batch_normalization(const KernelArgs& args) {
  const auto& state = static_cast<const NormalizationState&>(*args.state);
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  const Planes p(x);
  for (int64_t c = 0; c < p.channels; ++c) {
    Moments m{number_at(args.inputs[3], c), number_at(args.inputs[4], c)};
    if (state.trains) {
      const Moments old = m;
      m = moments_of(p.batch * p.plane,
                     [&](int64_t i) { return number_at(x, p.index(i / p.plane, c, i % p.plane)); });
      const double keep = state.momentum;
      if (has_output(args, 1)) {
        set_number(args.outputs[1], c, old.mean * keep + m.mean * (1 - keep));
      }
      if (has_output(args, 2)) {
        set_number(args.outputs[2], c, old.variance * keep + m.variance * (1 - keep));
      }
    }
    const double factor = number_at(args.inputs[1], c) / std::sqrt(m.variance + state.epsilon);
    for (int64_t n = 0; n < p.batch; ++n) {
      for (int64_t i = 0; i < p.plane; ++i) {
        const double value = (number_at(x, p.index(n, c, i)) - m.mean) * factor;
        set_number(y, p.index(n, c, i), value + number_at(args.inputs[2], c));
      }
    }
  }
  return true;
}

bool run_instance_normalization(const KernelArgs& args) {
  const auto& state = static_cast<const NormalizationState&>(*args.state);
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  const Planes p(x);
  for (int64_t n = 0; n < p.batch; ++n) {
    for (int64_t c = 0; c < p.channels; ++c) {
      const auto at = [&](int64_t i) { return number_at(x, p.index(n, c, i)); };
      const Moments m = moments_of(p.plane, at);
      const double factor = number_at(args.inputs[1], c) / std::sqrt(m.variance + state.epsilon);
      for (int64_t i = 0; i < p.plane; ++i) {
        set_number(y, p.index(n, c, i), (at(i) - m.mean) * factor + number_at(args.inputs[2], c));
      }
    }
  }
  return true;
}

// The element of a tensor broadcast to X that stands at flat index i of X.
int64_t broadcast_index(const TensorView& x, const TensorView& view, int64_t i) {
  EDDY_DCHECK(view.rank <= x.rank) << "a rank of " << view.rank << " for one of " << x.rank;
  int64_t index = 0, stride = 1;
  for (int axis = x.rank - 1; axis >= 0; --axis) {
    const int own = axis - (x.rank - view.rank);
    if (own >= 0 && view.dims[own] != 1) index += i % x.dims[axis] * stride;
    if (own >= 0) stride *= view.dims[own];
    i /= x.dims[axis];
  }
  return index;
}

bool run_layer_normalization(const KernelArgs& args) {
  const auto& state = static_cast<const NormalizationState&>(*args.state);
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  int64_t rows, columns;
  split_at_axis(x, state.axis, rows, columns);
  for (int64_t row = 0; row < rows; ++row) {
    const auto at = [&](int64_t i) { return number_at(x, row * columns + i); };
    const Moments m = moments_of(columns, at);
    const double factor = 1 / std::sqrt(m.variance + state.epsilon);
    for (int64_t i = 0; i < columns; ++i) {
      const int64_t place = row * columns + i;
      const double scale = number_at(args.inputs[1], broadcast_index(x, args.inputs[1], place));
      double value = (at(i) - m.mean) * factor * scale;
      if (args.has_input(2)) {
        value += number_at(args.inputs[2], broadcast_index(x, args.inputs[2], place));
      }
      set_number(y, place, value);
    }
    if (has_output(args, 1)) set_number(args.outputs[1], row, m.mean);
    if (has_output(args, 2)) set_number(args.outputs[2], row, factor);
  }
  return true;
}

bool run_rms_normalization(const KernelArgs& args) {
  const auto& state = static_cast<const NormalizationState&>(*args.state);
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  int64_t rows, columns;
  split_at_axis(x, state.axis, rows, columns);
  for (int64_t row = 0; row < rows; ++row) {
    const auto at = [&](int64_t i) { return number_at(x, row * columns + i); };
    double sum = 0;
    for (int64_t i = 0; i < columns; ++i) sum += at(i) * at(i);
    const double factor = 1 / std::sqrt(sum / static_cast<double>(columns) + state.epsilon);
    for (int64_t i = 0; i < columns; ++i) {
      const int64_t place = row * columns + i;
      const double scale = number_at(args.inputs[1], broadcast_index(x, args.inputs[1], place));
      set_number(y, place, at(i) * factor * scale);
    }
  }
  return true;
}

struct LrnState : KernelState {
  int64_t size = 1;
  double alpha = 1e-4, beta = 0.75, bias = 1;
};

bool run_lrn(const KernelArgs& args) {
  const auto& state = static_cast<const LrnState&>(*args.state);
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  const Planes p(x);
  const int64_t before = (state.size - 1) / 2, after = state.size / 2;
  for (int64_t n = 0; n < p.batch; ++n) {
    for (int64_t c = 0; c < p.channels; ++c) {
      for (int64_t i = 0; i < p.plane; ++i) {
        double sum = 0;
        for (int64_t other = 0; other < p.channels; ++other) {
          if (other < c - before || other - c > after) continue;
          const double value = number_at(x, p.index(n, other, i));
          sum += value * value;
        }
        const double base = state.bias + state.alpha / static_cast<double>(state.size) * sum;
        const int64_t at = p.index(n, c, i);
        set_number(y, at, number_at(x, at) / std::pow(base, state.beta));
      }
    }
  }
  return true;
}

Result<BoundKernel> bind_lrn(const KernelInit& init) {
  auto state = std::make_unique<LrnState>();
  state->size = init.attributes.get_int("size", 1);
  state->alpha = init.attributes.get_float("alpha", 1e-4f);
  state->beta = init.attributes.get_float("beta", 0.75f);
  state->bias = init.attributes.get_float("bias", 1.0f);
  return BoundKernel{.run = run_lrn, .state = std::move(state)};
}

Result<BoundKernel> bind_with(const KernelInit& init, KernelFunction run) {
  BoundKernel kernel;
  kernel.run = run;
  kernel.state = make_state(init);
  return kernel;
}

Result<BoundKernel> bind_batch_normalization(const KernelInit& init) {
  if (init.attributes.get_int("spatial", 1) == 0) {
    return unsupported("BatchNormalization with spatial = 0 is not supported");
  }
  return bind_with(init, run_batch_normalization);
}
Result<BoundKernel> bind_instance_normalization(const KernelInit& init) {
  return bind_with(init, run_instance_normalization);
}

}  // namespace

Result<BoundKernel> bind_layer_normalization_reference(const KernelInit& init) {
  return bind_with(init, run_layer_normalization);
}

Result<BoundKernel> bind_rms_normalization_reference(const KernelInit& init) {
  return bind_with(init, run_rms_normalization);
}

void add_normalization_reference(KernelRegistry& registry) {
  registry.add(
      {.op = "BatchNormalization", .bind = bind_batch_normalization, .provider = "reference"});
  registry.add({.op = "InstanceNormalization",
                .bind = bind_instance_normalization,
                .provider = "reference"});
  registry.add({.op = "LayerNormalization",
                .since_version = 17,
                .bind = bind_layer_normalization_reference,
                .provider = "reference"});
  registry.add({.op = "RMSNormalization",
                .since_version = 23,
                .bind = bind_rms_normalization_reference,
                .provider = "reference"});
  registry.add({.op = "LRN", .bind = bind_lrn, .provider = "reference"});
}

}  // namespace eddy
