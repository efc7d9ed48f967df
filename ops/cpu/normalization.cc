// BatchNormalization, LayerNormalization, RMSNormalization, InstanceNormalization for float, in
// vector loops over rows or planes.
#include <cmath>

#include "graph/base/check.h"
#include "ops/cpu/families.h"
#include "ops/cpu/tile/tile.h"
#include "ops/cpu/tiles.h"
#include "ops/reference/parts/outputs.h"
#include "ops/reference/reduce/normalization.h"

namespace eddy {
namespace {

using cpu::tile_kernels;
using cpu::TileKernels;
using cpu::Tiles;

struct NormalizationState : KernelState {
  float epsilon = 1e-5f;
  int64_t axis = -1;
  BoundKernel
      plain;  // LayerNormalization, RMSNormalization: for scales that broadcast in unusual ways
};

const NormalizationState& state_of(const KernelArgs& args) {
  return static_cast<const NormalizationState&>(*args.state);
}

struct Planes {
  int64_t batch, channels, plane = 1;
  explicit Planes(const TensorView& x) : batch(x.dims[0]), channels(x.dims[1]) {
    EDDY_DCHECK(x.rank >= 2) << "no channels in a rank of " << x.rank;
    for (int i = 2; i < x.rank; ++i) plane *= x.dims[i];
  }
};

Tiles tiles_of_planes(const KernelArgs& args) {
  const Planes p(args.inputs[0]);
  return Tiles::of(p.batch * p.channels, p.plane);
}

bool run_batch_normalization(const KernelArgs& args, int64_t first, int64_t end) {
  const float epsilon = state_of(args).epsilon;
  const auto input = [&](size_t i) { return args.inputs[i].as<float>(); };
  const Planes p(args.inputs[0]);
  for (size_t i = 1; i <= 4; ++i) {
    EDDY_DCHECK(args.inputs[i].count() == p.channels) << "input " << i << " is not by channel";
  }
  const TileKernels& tiles = tile_kernels();
  for (int64_t i = first; i < end; ++i) {
    const int64_t c = i % p.channels;
    tiles.normalize({.count = p.plane,
                     .x = input(0) + i * p.plane,
                     .mean = input(3)[c],
                     .factor = input(1)[c] / std::sqrt(input(4)[c] + epsilon),
                     .shift = input(2)[c],
                     .y = args.outputs[0].mutable_as<float>() + i * p.plane});
  }
  return true;
}

struct Moments {
  float mean, factor;  // factor: 1 over the standard deviation

  Moments(const TileKernels& tiles, const float* x, int64_t count, float epsilon) {
    const float n = static_cast<float>(count);
    mean = tiles.sum(x, count) / n;
    factor = 1 / std::sqrt(tiles.sum_squares(x, mean, count) / n + epsilon);
  }
};

bool run_instance_normalization(const KernelArgs& args, int64_t first, int64_t end) {
  const Planes p(args.inputs[0]);
  EDDY_DCHECK(args.inputs[1].count() == p.channels && args.inputs[2].count() == p.channels)
      << "scale or shift are not by channel";
  const TileKernels& tiles = tile_kernels();
  for (int64_t i = first; i < end; ++i) {
    const int64_t c = i % p.channels;
    const float* x = args.inputs[0].as<float>() + i * p.plane;
    const Moments m(tiles, x, p.plane, state_of(args).epsilon);
    tiles.normalize({.count = p.plane,
                     .x = x,
                     .mean = m.mean,
                     .factor = m.factor * args.inputs[1].as<float>()[c],
                     .shift = args.inputs[2].as<float>()[c],
                     .y = args.outputs[0].mutable_as<float>() + i * p.plane});
  }
  return true;
}

// Whether a scale or shift is one row of X: leading ones aside, X's last dimensions.
bool is_row(const TensorView& view, const TensorView& x, int64_t columns) {
  EDDY_DCHECK(view.rank <= x.rank) << "a scale of rank " << view.rank << " for one of " << x.rank;
  int first = 0;
  while (first < view.rank && view.dims[first] == 1) ++first;
  int64_t size = 1;
  for (int i = first; i < view.rank; ++i) {
    if (view.dims[i] != x.dims[x.rank - view.rank + i]) return false;
    size *= view.dims[i];
  }
  return size == columns;
}

// Scale and shift are one row each.
bool is_by_rows(const KernelArgs& args) {
  const TensorView& x = args.inputs[0];
  int64_t rows, columns;
  split_at_axis(x, state_of(args).axis, rows, columns);
  return is_row(args.inputs[1], x, columns) &&
         (!args.has_input(2) || is_row(args.inputs[2], x, columns));
}

// Nothing where the plain loop serves.
Tiles tiles_of_rows(const KernelArgs& args) {
  if (!is_by_rows(args)) return {};
  int64_t rows, columns;
  split_at_axis(args.inputs[0], state_of(args).axis, rows, columns);
  return Tiles::of(rows, columns);
}

bool run_rows(const KernelArgs& args, int64_t first, int64_t end) {
  const NormalizationState& state = state_of(args);
  const TensorView& x = args.inputs[0];
  int64_t rows, columns;
  split_at_axis(x, state.axis, rows, columns);
  const bool has_shift = args.has_input(2);
  float* mean = output_or_null<float>(args, 1);
  float* factor = output_or_null<float>(args, 2);
  const TileKernels& tiles = tile_kernels();
  EDDY_DCHECK((!mean || args.outputs[1].count() == rows) &&
              (!factor || args.outputs[2].count() == rows))
      << "statistics are not one for each of " << rows << " rows";
  for (int64_t row = first; row < end; ++row) {
    const float* from = x.as<float>() + row * columns;
    const Moments m(tiles, from, columns, state.epsilon);
    tiles.normalize({.count = columns,
                     .x = from,
                     .mean = m.mean,
                     .factor = m.factor,
                     .scale_or_null = args.inputs[1].as<float>(),
                     .shift_or_null = has_shift ? args.inputs[2].as<float>() : nullptr,
                     .y = args.outputs[0].mutable_as<float>() + row * columns});
    if (mean) mean[row] = m.mean;
    if (factor) factor[row] = m.factor;
  }
  return true;
}

bool run_rms_rows(const KernelArgs& args, int64_t first, int64_t end) {
  const TensorView& x = args.inputs[0];
  int64_t rows, columns;
  split_at_axis(x, state_of(args).axis, rows, columns);
  const TileKernels& tiles = tile_kernels();
  for (int64_t row = first; row < end; ++row) {
    const float* from = x.as<float>() + row * columns;
    const float mean_square = tiles.sum_squares(from, 0, columns) / static_cast<float>(columns);
    tiles.normalize({.count = columns,
                     .x = from,
                     .factor = 1 / std::sqrt(mean_square + state_of(args).epsilon),
                     .scale_or_null = args.inputs[1].as<float>(),
                     .y = args.outputs[0].mutable_as<float>() + row * columns});
  }
  return true;
}

template <cpu::UnitsFunction run_units>
bool run_by_rows(const KernelArgs& args) {
  if (is_by_rows(args)) return cpu::run_all_units<tiles_of_rows, run_units>(args);
  KernelArgs plain = args;
  plain.state = state_of(args).plain.state.get();
  return state_of(args).plain.run(plain);
}

template <cpu::TilesFunction tiles_of, cpu::UnitsFunction run_units>
Result<BoundKernel> bind_with(const KernelInit& init) {
  for (const ValueType& input : init.inputs) {
    const ElementType element = input.tensor.element;
    if (element != ElementType::kFloat && element != ElementType::kUndefined) {
      return unsupported("the fast " + init.op.name + " handles float only");
    }
  }
  auto state = std::make_unique<NormalizationState>();
  state->epsilon = init.attributes.get_float("epsilon", 1e-5f);
  state->axis = init.attributes.get_int("axis", -1);
  BoundKernel kernel;
  kernel.run = cpu::run_all_units<tiles_of, run_units>;
  if (cpu::fills_tiles(init.inputs[0])) cpu::set_tiles<tiles_of, run_units>(kernel);
  kernel.state = std::move(state);
  return kernel;
}

Result<BoundKernel> bind_batch_normalization(const KernelInit& init) {
  if (init.attributes.get_int("training_mode", 0) != 0 ||
      init.attributes.get_int("spatial", 1) == 0) {
    return unsupported("the fast BatchNormalization is for inference");
  }
  return bind_with<tiles_of_planes, run_batch_normalization>(init);
}
Result<BoundKernel> bind_instance_normalization(const KernelInit& init) {
  return bind_with<tiles_of_planes, run_instance_normalization>(init);
}
template <cpu::UnitsFunction run_units>
Result<BoundKernel> bind_rows(const KernelInit& init, Result<BoundKernel> plain) {
  if (init.attributes.get_int("stash_type", 1) != 1) {
    return unsupported("the fast " + init.op.name + " keeps float statistics only");
  }
  EDDY_ASSIGN_OR_RETURN(BoundKernel kernel, (bind_with<tiles_of_rows, run_units>(init)));
  kernel.run = run_by_rows<run_units>;
  EDDY_ASSIGN_OR_RETURN(static_cast<NormalizationState&>(*kernel.state).plain, std::move(plain));
  return kernel;
}
Result<BoundKernel> bind_layer_normalization(const KernelInit& init) {
  return bind_rows<run_rows>(init, bind_layer_normalization_reference(init));
}
Result<BoundKernel> bind_rms_normalization(const KernelInit& init) {
  return bind_rows<run_rms_rows>(init, bind_rms_normalization_reference(init));
}

}  // namespace

void add_normalization_cpu(KernelRegistry& registry) {
  add_lrn_cpu(registry);
  registry.add({.op = "BatchNormalization",
                .bind = bind_batch_normalization,
                .provider = "tile",
                .has_tiles = true});
  registry.add({.op = "InstanceNormalization",
                .bind = bind_instance_normalization,
                .provider = "tile",
                .has_tiles = true});
  registry.add({.op = "LayerNormalization",
                .since_version = 17,
                .bind = bind_layer_normalization,
                .provider = "tile",
                .has_tiles = true});
  registry.add({.op = "RMSNormalization",
                .since_version = 23,
                .bind = bind_rms_normalization,
                .provider = "tile",
                .has_tiles = true});
}

}  // namespace eddy
