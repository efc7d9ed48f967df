// MaxPool, AveragePool, LpPool, GlobalMaxPool, GlobalAveragePool, GlobalLpPool, and
// eddy.ChannelsLastMaxPool and ChannelsLastAveragePool: one window at a time.
#include <cmath>
#include <limits>

#include "ops/reference/families.h"
#include "ops/reference/parts/outputs.h"
#include "ops/reference/parts/typed_kernel.h"
#include "ops/reference/parts/window_walk.h"
#include "ops/reference/windows/image_order.h"

namespace eddy {
namespace {

struct PoolState : KernelState {
  Attributes attributes;
};

Status make_pool_grid(const KernelArgs& args, Grid& grid) {
  const Attributes& attributes = static_cast<const PoolState&>(*args.state).attributes;
  const TensorView& x = args.inputs[0];
  Windows windows;
  EDDY_RETURN_IF_ERROR(parse_windows(attributes, x.rank - 2, nullptr, windows));
  return make_grid(windows, x, args.outputs[0], grid);
}

// The larger of two values, where NaN is larger than everything.
template <typename T>
bool is_larger(T value, T best) {
  if constexpr (is_floating<T>) {
    const float v = static_cast<float>(value);
    if (v != v) return true;
  }
  return value > best;
}

template <typename T>
T lowest() {
  if constexpr (is_floating<T>)
    return T(-std::numeric_limits<float>::infinity());
  else
    return std::numeric_limits<T>::lowest();
}
template <>
double lowest<double>() {
  return -std::numeric_limits<double>::infinity();
}

// A flat index of a plane counted with its first axis fastest.
int64_t column_major(const Grid& grid, int64_t index) {
  int64_t result = 0, size = grid.input_size;
  for (int i = grid.rank - 1; i >= 0; --i) {
    const int64_t extent = grid.input[static_cast<size_t>(i)];
    size /= extent;
    result += index % extent * size;
    index /= extent;
  }
  return result;
}

template <typename T>
struct MaxPool {
  static bool run(const KernelArgs& args) {
    Grid grid;
    Status status = make_pool_grid(args, grid);
    if (!status.is_ok()) return args.fail(std::move(status));
    const auto& attributes = static_cast<const PoolState&>(*args.state).attributes;
    const bool is_column_major = attributes.get_int("storage_order", 0) == 1;
    const TensorView& x = args.inputs[0];
    int64_t* indices = output_or_null<int64_t>(args, 1);
    for (int64_t plane = 0; plane < x.dims[0] * x.dims[1]; ++plane) {
      const T* from = x.as<T>() + plane * grid.input_size;
      for (Position at(grid.output, grid.rank); !at.done(); at.next()) {
        int64_t best_index = -1;
        T best = lowest<T>();
        SpatialDims first_tap{}, num_taps{};
        grid.taps_inside(at, first_tap, num_taps);
        for (Position tap(num_taps, grid.rank); !tap.done(); tap.next()) {
          int64_t index;
          if (!grid.input_index(at, tap, index, first_tap)) continue;
          if (best_index >= 0 && !is_larger(from[index], best)) continue;
          best = from[index];
          best_index = index;
        }
        const int64_t place = plane * grid.output_size + at.index();
        args.outputs[0].mutable_as<T>()[place] = best;
        if (!indices) continue;
        const int64_t within =
            is_column_major && best_index >= 0 ? column_major(grid, best_index) : best_index;
        indices[place] = best_index < 0 ? -1 : plane * grid.input_size + within;
      }
    }
    return true;
  }
};

// Elements of a window: those in the input, or (counting padding) those in the padded input.
int64_t window_count(const Grid& grid, const Position& at, bool counts_padding, int64_t inside) {
  if (!counts_padding) return inside;
  int64_t count = 1;
  for (int i = 0; i < grid.rank; ++i) {
    const auto axis_index = static_cast<size_t>(i);
    const WindowAxis& axis = grid.axes[axis_index];
    const int64_t start = at[i] * axis.stride;
    const int64_t end = grid.input[axis_index] + axis.pad_begin + axis.pad_end;
    int64_t taps = 0;
    for (int64_t tap = 0; tap < axis.kernel; ++tap) taps += start + tap * axis.dilation < end;
    count *= taps;
  }
  return count;
}

template <typename T>
struct AveragePool {
  static bool run(const KernelArgs& args) {
    Grid grid;
    Status status = make_pool_grid(args, grid);
    if (!status.is_ok()) return args.fail(std::move(status));
    const auto& attributes = static_cast<const PoolState&>(*args.state).attributes;
    const bool counts_padding = attributes.get_int("count_include_pad", 0) != 0;
    const TensorView& x = args.inputs[0];
    for (int64_t plane = 0; plane < x.dims[0] * x.dims[1]; ++plane) {
      const T* from = x.as<T>() + plane * grid.input_size;
      for (Position at(grid.output, grid.rank); !at.done(); at.next()) {
        double sum = 0;
        int64_t inside = 0;
        for (Position tap(grid.kernel, grid.rank); !tap.done(); tap.next()) {
          int64_t index;
          if (!grid.input_index(at, tap, index)) continue;
          sum += static_cast<double>(from[index]);
          ++inside;
        }
        const int64_t count = window_count(grid, at, counts_padding, inside);
        args.outputs[0].mutable_as<T>()[plane * grid.output_size + at.index()] =
            round_from<T>(count == 0 ? 0 : sum / static_cast<double>(count));
      }
    }
    return true;
  }
};

double norm_exponent(const KernelArgs& args) {
  const auto& attributes = static_cast<const PoolState&>(*args.state).attributes;
  return static_cast<double>(attributes.get_int("p", 2));
}

template <typename T>
struct LpPool {
  static bool run(const KernelArgs& args) {
    Grid grid;
    Status status = make_pool_grid(args, grid);
    if (!status.is_ok()) return args.fail(std::move(status));
    const double p = norm_exponent(args);
    const TensorView& x = args.inputs[0];
    for (int64_t plane = 0; plane < x.dims[0] * x.dims[1]; ++plane) {
      const T* from = x.as<T>() + plane * grid.input_size;
      for (Position at(grid.output, grid.rank); !at.done(); at.next()) {
        double sum = 0;
        SpatialDims first_tap{}, num_taps{};
        grid.taps_inside(at, first_tap, num_taps);
        for (Position tap(num_taps, grid.rank); !tap.done(); tap.next()) {
          int64_t index;
          if (!grid.input_index(at, tap, index, first_tap)) continue;
          sum += std::pow(std::fabs(static_cast<double>(from[index])), p);
        }
        args.outputs[0].mutable_as<T>()[plane * grid.output_size + at.index()] =
            round_from<T>(std::pow(sum, 1 / p));
      }
    }
    return true;
  }
};

int64_t plane_size(const TensorView& x) {
  int64_t size = 1;
  for (int i = 2; i < x.rank; ++i) size *= x.dims[i];
  return size;
}

template <typename T>
struct GlobalMaxPool {
  static bool run(const KernelArgs& args) {
    const TensorView& x = args.inputs[0];
    const int64_t size = plane_size(x);
    for (int64_t plane = 0; plane < x.dims[0] * x.dims[1]; ++plane) {
      T best = lowest<T>();
      for (int64_t i = 0; i < size; ++i) {
        const T value = x.as<T>()[plane * size + i];
        if (is_larger(value, best)) best = value;
      }
      args.outputs[0].mutable_as<T>()[plane] = best;
    }
    return true;
  }
};

template <typename T>
struct GlobalAveragePool {
  static bool run(const KernelArgs& args) {
    const TensorView& x = args.inputs[0];
    const int64_t size = plane_size(x);
    for (int64_t plane = 0; plane < x.dims[0] * x.dims[1]; ++plane) {
      double sum = 0;
      for (int64_t i = 0; i < size; ++i) sum += static_cast<double>(x.as<T>()[plane * size + i]);
      args.outputs[0].mutable_as<T>()[plane] = round_from<T>(sum / static_cast<double>(size));
    }
    return true;
  }
};

template <typename T>
struct GlobalLpPool {
  static bool run(const KernelArgs& args) {
    const TensorView& x = args.inputs[0];
    const int64_t size = plane_size(x);
    const double p = norm_exponent(args);
    for (int64_t plane = 0; plane < x.dims[0] * x.dims[1]; ++plane) {
      double sum = 0;
      for (int64_t i = 0; i < size; ++i) {
        sum += std::pow(std::fabs(static_cast<double>(x.as<T>()[plane * size + i])), p);
      }
      args.outputs[0].mutable_as<T>()[plane] = round_from<T>(std::pow(sum, 1 / p));
    }
    return true;
  }
};

template <template <typename> class Kernel>
Result<BoundKernel> bind_pool(const KernelInit& init) {
  auto state = std::make_unique<PoolState>();
  state->attributes = init.attributes;
  return bind_typed<Kernel, float, double, Float16, Bfloat16>(init, 0, std::move(state));
}

Result<BoundKernel> bind_max_pool(const KernelInit& init) {
  auto state = std::make_unique<PoolState>();
  state->attributes = init.attributes;
  return bind_typed<MaxPool, float, double, Float16, Bfloat16, int8_t, uint8_t>(init, 0,
                                                                                std::move(state));
}

}  // namespace

void add_pool_reference(KernelRegistry& registry) {
  registry.add({.op = "MaxPool", .bind = bind_max_pool, .provider = "reference"});
  registry.add({.op = "AveragePool", .bind = bind_pool<AveragePool>, .provider = "reference"});
  registry.add({.op = "LpPool", .bind = bind_pool<LpPool>, .provider = "reference"});
  registry.add({.op = "GlobalLpPool", .bind = bind_pool<GlobalLpPool>, .provider = "reference"});
  registry.add({.op = "GlobalMaxPool", .bind = bind_pool<GlobalMaxPool>, .provider = "reference"});
  registry.add(
      {.op = "GlobalAveragePool", .bind = bind_pool<GlobalAveragePool>, .provider = "reference"});
  registry.add({.op = "ChannelsLastMaxPool",
                .bind = in_order(ImageOrder::kChannelsLast, bind_pool<MaxPool>),
                .provider = "reference",
                .domain = "eddy"});
  registry.add({.op = "ChannelsLastAveragePool",
                .bind = in_order(ImageOrder::kChannelsLast, bind_pool<AveragePool>),
                .provider = "reference",
                .domain = "eddy"});
}

}  // namespace eddy
