// MaxPool and AveragePool for float on one to three axes, GlobalAveragePool: windows are cut to
// the input once for each axis, so the loops over taps test nothing.
#include <algorithm>
#include <limits>

#include "ops/cpu/families.h"
#include "ops/cpu/tile/tile.h"
#include "ops/reference/outputs.h"
#include "ops/reference/window_walk.h"

namespace eddy {
namespace {

struct PoolState : KernelState {
  Attributes attributes;
  bool counts_padding = false;
};

// Input positions first, first + step, ... below end; `padded` is the number of taps that lie in
// the padded input.
struct Range {
  int64_t first = 0, end = 1, step = 1, padded = 1;
};

constexpr int kRank = 3;  // fewer axes are filled up with axes of size 1

struct Pool {
  int64_t input[kRank], output[kRank];
  WindowAxis axes[kRank];

  explicit Pool(const Grid& grid) {
    for (int i = 0; i < kRank; ++i) {
      const int own = i - (kRank - grid.rank);
      const auto at = static_cast<size_t>(own < 0 ? 0 : own);
      input[i] = own < 0 ? 1 : grid.input[at];
      output[i] = own < 0 ? 1 : grid.output[at];
      axes[i] = own < 0 ? WindowAxis() : grid.axes[at];
    }
  }

  Range range(int i, int64_t out) const {
    const WindowAxis& axis = axes[i];
    const int64_t start = out * axis.stride - axis.pad_begin;
    Range r;
    r.step = axis.dilation;
    r.first = start >= 0 ? start : start + (-start + r.step - 1) / r.step * r.step;
    r.end = std::min(start + axis.extent(), input[i]);
    const int64_t room = input[i] + axis.pad_end - start;
    r.padded = std::min(axis.kernel, (room + r.step - 1) / r.step);
    return r;
  }
};

struct Max {
  static float start() { return -std::numeric_limits<float>::infinity(); }
  // NaN wins, as in the reference.
  static float add(float best, float value) { return value <= best || best != best ? best : value; }
  static float finish(float best, int64_t) { return best; }
};

struct Average {
  static float start() { return 0; }
  static float add(float sum, float value) { return sum + value; }
  static float finish(float sum, int64_t count) {
    return count == 0 ? 0 : sum / static_cast<float>(count);
  }
};

int64_t taps_in(const Range& r) {
  return r.first < r.end ? (r.end - r.first + r.step - 1) / r.step : 0;
}

template <typename Kind>
float pool_window(const Pool& pool, const float* x, const Range* r, bool counts_padding) {
  float result = Kind::start();
  for (int64_t d = r[0].first; d < r[0].end; d += r[0].step) {
    for (int64_t h = r[1].first; h < r[1].end; h += r[1].step) {
      const float* row = x + (d * pool.input[1] + h) * pool.input[2];
      for (int64_t w = r[2].first; w < r[2].end; w += r[2].step) {
        result = Kind::add(result, row[w]);
      }
    }
  }
  const int64_t count = counts_padding ? r[0].padded * r[1].padded * r[2].padded
                                       : taps_in(r[0]) * taps_in(r[1]) * taps_in(r[2]);
  return Kind::finish(result, count);
}

template <typename Kind>
void pool_plane(const Pool& pool, const float* x, float* y, bool counts_padding) {
  Range r[kRank];
  for (int64_t d = 0; d < pool.output[0]; ++d) {
    r[0] = pool.range(0, d);
    for (int64_t h = 0; h < pool.output[1]; ++h) {
      r[1] = pool.range(1, h);
      for (int64_t w = 0; w < pool.output[2]; ++w) {
        r[2] = pool.range(2, w);
        *y++ = pool_window<Kind>(pool, x, r, counts_padding);
      }
    }
  }
}

template <typename Kind>
bool run_pool(const KernelArgs& args) {
  const auto& state = static_cast<const PoolState&>(*args.state);
  const TensorView& x = args.inputs[0];
  Windows windows;
  Grid grid;
  Status status = parse_windows(state.attributes, x.rank - 2, nullptr, windows);
  if (status.is_ok()) status = make_grid(windows, x, args.outputs[0], grid);
  if (!status.is_ok()) return args.fail(std::move(status));
  const Pool pool(grid);
  float* y = args.outputs[0].mutable_as<float>();
  for (int64_t plane = 0; plane < x.dims[0] * x.dims[1]; ++plane) {
    pool_plane<Kind>(pool, x.as<float>() + plane * grid.input_size, y + plane * grid.output_size,
                     state.counts_padding);
  }
  return true;
}

bool run_global_average_pool(const KernelArgs& args) {
  const TensorView& x = args.inputs[0];
  int64_t size = 1;
  for (int i = 2; i < x.rank; ++i) size *= x.dims[i];
  for (int64_t plane = 0; plane < x.dims[0] * x.dims[1]; ++plane) {
    const float sum = cpu::tile_kernels().sum(x.as<float>() + plane * size, size);
    args.outputs[0].mutable_as<float>()[plane] = sum / static_cast<float>(size);
  }
  return true;
}

Status check_float(const KernelInit& init) {
  const TensorType& x = init.inputs[0].tensor;
  if (x.element == ElementType::kFloat) return Status::ok();
  return unsupported("the fast " + init.op.name + " handles float only");
}

template <typename Kind>
Result<BoundKernel> bind_pool(const KernelInit& init) {
  EDDY_RETURN_IF_ERROR(check_float(init));
  const size_t rank = init.attributes.get_ints("kernel_shape").size();
  if (rank > kRank) return unsupported("the fast pools have at most 3 spatial axes");
  if (init.outputs.size() > 1) return unsupported("the fast MaxPool finds no indices");
  auto state = std::make_unique<PoolState>();
  state->attributes = init.attributes;
  state->counts_padding = init.attributes.get_int("count_include_pad", 0) != 0;
  BoundKernel kernel;
  kernel.run = run_pool<Kind>;
  kernel.state = std::move(state);
  return kernel;
}

Result<BoundKernel> bind_global_average_pool(const KernelInit& init) {
  EDDY_RETURN_IF_ERROR(check_float(init));
  BoundKernel kernel;
  kernel.run = run_global_average_pool;
  return kernel;
}

}  // namespace

void add_pool_cpu(KernelRegistry& registry) {
  registry.add({.op = "MaxPool", .bind = bind_pool<Max>, .library = "cpu"});
  registry.add({.op = "AveragePool", .bind = bind_pool<Average>, .library = "cpu"});
  registry.add({.op = "GlobalAveragePool", .bind = bind_global_average_pool, .library = "tile"});
}

}  // namespace eddy
