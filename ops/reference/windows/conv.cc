// Conv, eddy.ConvRelu, eddy.ChannelsLastConv, eddy.WinogradConv, eddy.SwappedConv and
// ConvTranspose: one sum for each output element, taps and channels by counting.
#include <algorithm>

#include "ops/reference/families.h"
#include "ops/reference/parts/typed_kernel.h"
#include "ops/reference/windows/conv.h"
#include "ops/reference/windows/conv_shape.h"
#include "ops/reference/windows/image_order.h"

namespace eddy {
namespace {

struct ConvState : KernelState {
  Attributes attributes;
  bool ends_in_relu = false;
};

template <typename T>
double bias_of(const KernelArgs& args, int64_t channel) {
  return args.has_input(2) ? static_cast<double>(args.inputs[2].as<T>()[channel]) : 0.0;
}

template <typename T>
struct Conv {
  static bool run(const KernelArgs& args) {
    const TensorView &x = args.inputs[0], &w = args.inputs[1], &y = args.outputs[0];
    ConvShape shape;
    Status status =
        make_conv_shape(static_cast<const ConvState&>(*args.state).attributes, x, w, y, shape);
    if (!status.is_ok()) return args.fail(std::move(status));
    const bool ends_in_relu = static_cast<const ConvState&>(*args.state).ends_in_relu;
    const T* const addend = args.has_input(3) ? args.inputs[3].as<T>() : nullptr;
    const Grid& grid = shape.grid;
    const int64_t filters = shape.filters;
    T* out = y.mutable_as<T>();
    for (int64_t n = 0; n < y.dims[0]; ++n) {
      for (int64_t f = 0; f < filters; ++f) {
        const int64_t first = f / shape.group_filters() * w.dims[1];  // input channel of the group
        const T* plane = x.as<T>() + (n * x.dims[1] + first) * grid.input_size;
        const T* weights = w.as<T>() + f * w.dims[1] * grid.kernel_size;
        for (Position at(grid.output, grid.rank); !at.done(); at.next()) {
          const int64_t place = (n * filters + f) * grid.output_size + at.index();
          double sum = bias_of<T>(args, f) + sum_at(grid, at, w.dims[1], plane, weights);
          if (addend != nullptr) sum += static_cast<double>(addend[place]);
          out[place] = round_from<T>(ends_in_relu && sum < 0 ? 0.0 : sum);
        }
      }
    }
    return true;
  }

  static double sum_at(const Grid& grid, const Position& at, int64_t channels, const T* x,
                       const T* weights) {
    double sum = 0;
    for (Position tap(grid.kernel, grid.rank); !tap.done(); tap.next()) {
      int64_t index;
      if (!grid.input_index(at, tap, index)) continue;
      for (int64_t c = 0; c < channels; ++c) {
        sum += static_cast<double>(x[c * grid.input_size + index]) *
               static_cast<double>(weights[c * grid.kernel_size + tap.index()]);
      }
    }
    return sum;
  }
};

// Transposed: each input element adds its weighted kernel to the output. Seen from the output,
// the roles of input and output of the ordinary convolution are exchanged.
template <typename T>
struct ConvTranspose {
  static bool run(const KernelArgs& args) {
    const TensorView &x = args.inputs[0], &w = args.inputs[1], &y = args.outputs[0];
    ConvShape shape;
    Status status = make_transposed_conv_shape(
        static_cast<const ConvState&>(*args.state).attributes, x, w, y, shape);
    if (!status.is_ok()) return args.fail(std::move(status));
    const Grid& grid = shape.grid;
    auto* sums = static_cast<double*>(
        args.scratch->reserve(static_cast<size_t>(grid.input_size) * sizeof(double)));
    if (sums == nullptr) return args.fail(resource_exhausted("no memory for the sums of a plane"));
    for (int64_t n = 0; n < y.dims[0]; ++n) {
      for (int64_t f = 0; f < y.dims[1]; ++f) fill_plane(args, shape, n, f, sums);
    }
    return true;
  }

  static void fill_plane(const KernelArgs& args, const ConvShape& shape, int64_t n, int64_t f,
                         double* sums) {
    const Grid& grid = shape.grid;
    const TensorView &x = args.inputs[0], &w = args.inputs[1], &y = args.outputs[0];
    const int64_t each = shape.group_filters(), channels = shape.group_channels();
    std::fill(sums, sums + grid.input_size, bias_of<T>(args, f));
    for (Position at(grid.output, grid.rank); !at.done(); at.next()) {
      for (Position tap(grid.kernel, grid.rank); !tap.done(); tap.next()) {
        int64_t index;
        if (!grid.input_index(at, tap, index)) continue;
        for (int64_t i = 0; i < channels; ++i) {
          const int64_t c = f / each * channels + i;
          const int64_t weight = (c * each + f % each) * grid.kernel_size + tap.index();
          sums[index] +=
              static_cast<double>(x.as<T>()[(n * x.dims[1] + c) * grid.output_size + at.index()]) *
              static_cast<double>(w.as<T>()[weight]);
        }
      }
    }
    T* out = y.mutable_as<T>() + (n * y.dims[1] + f) * grid.input_size;
    for (int64_t i = 0; i < grid.input_size; ++i) out[i] = round_from<T>(sums[i]);
  }
};

template <template <typename> class Kernel>
Result<BoundKernel> bind_conv(const KernelInit& init, bool ends_in_relu = false) {
  auto state = std::make_unique<ConvState>();
  state->ends_in_relu = ends_in_relu;
  state->attributes = init.attributes;
  return bind_typed<Kernel, float, double, Float16, Bfloat16>(init, 0, std::move(state));
}

}  // namespace

Result<BoundKernel> bind_conv_reference(const KernelInit& init) { return bind_conv<Conv>(init); }

Result<BoundKernel> bind_swapped_conv_reference(const KernelInit& init) {
  static const BindFunction bind = in_order(ImageOrder::kSwapped, bind_conv_reference);
  return bind(init);
}

Result<BoundKernel> bind_conv_transpose_reference(const KernelInit& init) {
  return bind_conv<ConvTranspose>(init);
}

void add_conv_reference(KernelRegistry& registry) {
  registry.add({.op = "Conv", .bind = bind_conv_reference, .provider = "reference"});
  registry.add({.op = "ConvRelu",
                .bind = [](const KernelInit& init) { return bind_conv<Conv>(init, true); },
                .provider = "reference",
                .domain = "eddy"});
  registry.add({.op = "ChannelsLastConv",
                .bind = in_order(ImageOrder::kChannelsLast,
                                 [](const KernelInit& init) {
                                   return bind_conv<Conv>(init,
                                                          init.attributes.get_int("relu", 0) != 0);
                                 }),
                .provider = "reference",
                .domain = "eddy"});
  registry.add({.op = "WinogradConv",
                .bind = bind_conv_reference,
                .provider = "reference",
                .domain = "eddy"});
  registry.add({.op = "SwappedConv",
                .bind = bind_swapped_conv_reference,
                .provider = "reference",
                .domain = "eddy"});
  registry.add(
      {.op = "ConvTranspose", .bind = bind_conv_transpose_reference, .provider = "reference"});
}

}  // namespace eddy
