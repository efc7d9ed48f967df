// DeformConv: a convolution whose taps lie where `offset` moves them, between elements.
//
//   y[n, f, i, j] = B[f] + sum over c, tap of W[f, c, tap] * mask[tap, i, j] * x[n, c, at(tap, i,
//   j)] at = (i, j) * stride - pad + tap * dilation + offset[tap, i, j]
//
// Read between the four elements around a place; what lies outside of the image is 0. Channels of
// one of `offset_group` parts share their offsets and masks.
#include <cmath>

#include "ops/reference/families.h"
#include "ops/reference/parts/typed_kernel.h"
#include "ops/schema/rules/window.h"

namespace eddy {
namespace {

struct DeformState : KernelState {
  Attributes attributes;
  int64_t group = 1, moved = 1;  // moved: how many parts of the channels have their own offsets
};

template <typename T>
struct DeformConv {
  // One image of one call.
  struct Image {
    const KernelArgs& args;
    const DeformState& state;
    WindowAxis axes[2];
    int64_t n;

    const TensorView& x() const { return args.inputs[0]; }
    const TensorView& w() const { return args.inputs[1]; }
    const TensorView& y() const { return args.outputs[0]; }
    int64_t num_taps() const { return w().dims[2] * w().dims[3]; }

    // An element of offset or mask, by its channel.
    double given(size_t input, int64_t channel, int64_t place) const {
      const TensorView& view = args.inputs[input];
      const int64_t size = view.dims[2] * view.dims[3];
      return static_cast<double>(view.as<T>()[(n * view.dims[1] + channel) * size + place]);
    }

    double element(const T* plane, double row, double column) const {
      const int64_t height = x().dims[2], width = x().dims[3];
      if (!(row > -1 && row < static_cast<double>(height) && column > -1 &&
            column < static_cast<double>(width))) {
        return 0;
      }
      const double top = std::floor(row), left = std::floor(column);
      double sum = 0;
      for (const int64_t down : {0, 1}) {
        for (const int64_t right : {0, 1}) {
          const int64_t i = static_cast<int64_t>(top) + down;
          const int64_t j = static_cast<int64_t>(left) + right;
          if (i < 0 || i >= height || j < 0 || j >= width) continue;
          const double weight = (down != 0 ? row - top : 1 - (row - top)) *
                                (right != 0 ? column - left : 1 - (column - left));
          if (weight == 0) continue;  // of an infinity, too
          sum += weight * static_cast<double>(plane[i * width + j]);
        }
      }
      return sum;
    }

    // One input channel's part of an output element.
    double channel_sum(const T* weights, int64_t channel, int64_t i, int64_t j) const {
      const int64_t part = channel / (x().dims[1] / state.moved);
      const T* plane =
          x().template as<T>() + (n * x().dims[1] + channel) * x().dims[2] * x().dims[3];
      const int64_t place = i * y().dims[3] + j;
      double sum = 0;
      for (int64_t tap = 0; tap < num_taps(); ++tap) {
        const int64_t by_tap = part * num_taps() + tap;
        const int64_t step_i = tap / w().dims[3], step_j = tap % w().dims[3];
        const double row =
            static_cast<double>(i * axes[0].stride - axes[0].pad_begin + step_i * axes[0].dilation);
        const double column =
            static_cast<double>(j * axes[1].stride - axes[1].pad_begin + step_j * axes[1].dilation);
        const double value = element(plane, row + given(2, 2 * by_tap, place),
                                     column + given(2, 2 * by_tap + 1, place));
        const double share = args.has_input(4) ? given(4, by_tap, place) : 1;
        sum += static_cast<double>(weights[tap]) * share * value;
      }
      return sum;
    }
  };

  static bool run(const KernelArgs& args) {
    const auto& state = static_cast<const DeformState&>(*args.state);
    const TensorView &x = args.inputs[0], &w = args.inputs[1], &y = args.outputs[0];
    const Dims kernel = {w.dims[2], w.dims[3]};
    Windows windows;
    Status status = parse_windows(state.attributes, 2, &kernel, windows);
    Image image{args, state, {}, 0};
    for (int i = 0; i < 2 && status.is_ok(); ++i) {
      int64_t size;
      status = resolve_axis(windows, i, x.dims[i + 2], image.axes[i], size);
    }
    if (!status.is_ok()) return args.fail(std::move(status));
    const int64_t filters = y.dims[1], in_group = w.dims[1], size = y.dims[2] * y.dims[3];
    for (image.n = 0; image.n < y.dims[0]; ++image.n) {
      for (int64_t f = 0; f < filters; ++f) {
        const int64_t first = f / (filters / state.group) * in_group;
        for (int64_t at = 0; at < size; ++at) {
          double sum = args.has_input(3) ? static_cast<double>(args.inputs[3].as<T>()[f]) : 0;
          for (int64_t c = 0; c < in_group; ++c) {
            const T* weights = w.as<T>() + (f * in_group + c) * image.num_taps();
            sum += image.channel_sum(weights, first + c, at / y.dims[3], at % y.dims[3]);
          }
          y.mutable_as<T>()[(image.n * filters + f) * size + at] = round_from<T>(sum);
        }
      }
    }
    return true;
  }
};

Result<BoundKernel> bind_deform(const KernelInit& init) {
  auto state = std::make_unique<DeformState>();
  state->attributes = init.attributes;
  state->group = init.attributes.get_int("group", 1);
  state->moved = init.attributes.get_int("offset_group", 1);
  return bind_typed<DeformConv, float, double, Float16, Bfloat16>(init, 0, std::move(state));
}

}  // namespace

void add_deform_conv_reference(KernelRegistry& registry) {
  registry.add(
      {.op = "DeformConv", .since_version = 19, .bind = bind_deform, .provider = "reference"});
}

}  // namespace eddy
