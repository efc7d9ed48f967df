// BlockChannels, UnblockChannels, BlockedConv, ExpandedConv, BlockedPool: one element at a time.
#include <algorithm>
#include <limits>

#include "ops/reference/eddy/blocked_shape.h"
#include "ops/reference/families.h"
#include "ops/reference/parts/activation.h"
#include "ops/reference/parts/typed_kernel.h"

namespace eddy {
namespace {

struct BlockedState : KernelState {
  Attributes attributes;
};

// One image of a batch, in blocks (rank 5) or not.
struct Image {
  const TensorView& view;
  int64_t n;

  int64_t index(int64_t c, int64_t position) const {
    const int64_t size = view.dims[2] * view.dims[3];
    if (view.rank == 4) return (n * view.dims[1] + c) * size + position;
    const int64_t block = view.dims[4];
    return ((n * view.dims[1] + c / block) * size + position) * block + c % block;
  }
  float at(int64_t c, int64_t position) const { return view.as<float>()[index(c, position)]; }
  void set(int64_t c, int64_t position, float value) const {
    view.mutable_as<float>()[index(c, position)] = value;
  }
  int64_t size() const { return view.dims[2] * view.dims[3]; }
  int64_t channels() const { return view.dims[1] * (view.rank == 5 ? view.dims[4] : 1); }
};

bool run_change(const KernelArgs& args) {
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  for (int64_t n = 0; n < y.dims[0]; ++n) {
    const Image from{x, n}, to{y, n};
    for (int64_t c = 0; c < to.channels(); ++c) {
      for (int64_t p = 0; p < to.size(); ++p) {
        to.set(c, p, c < from.channels() ? from.at(c, p) : 0.0f);
      }
    }
  }
  return true;
}

double window_sum(const ConvShape& shape, const Image& x, const float* w, int64_t filter,
                  const Position& at) {
  const int64_t first = filter / shape.group_filters() * shape.group_channels();
  w += filter * shape.group_channels() * shape.grid.kernel_size;
  double sum = 0;
  for (Position tap(shape.grid.kernel, 2); !tap.done(); tap.next()) {
    int64_t index;
    if (!shape.grid.input_index(at, tap, index)) continue;
    for (int64_t c = 0; c < shape.group_channels(); ++c) {
      sum += static_cast<double>(x.at(first + c, index)) *
             static_cast<double>(w[c * shape.grid.kernel_size + tap.index()]);
    }
  }
  return sum;
}

// What is made of a sum at last.
struct Epilogue {
  std::span<const float> bounds;
  ActivationFunction activation_or_null;
  ActivationParameters parameters;

  explicit Epilogue(const Attributes& attributes)
      : bounds(attributes.get_floats("clamp")),
        activation_or_null(eddy::activation_or_null(attributes.get_string("activation", ""))),
        parameters(activation_parameters(attributes.get_string("activation", ""), attributes)) {}

  float apply(float value) const {
    if (!bounds.empty() && value == value) value = std::min(std::max(value, bounds[0]), bounds[1]);
    if (activation_or_null == nullptr) return value;
    return static_cast<float>(activation_or_null(static_cast<double>(value), parameters));
  }
};

// Biases and addends may be omitted.
Status convolve(const Attributes& attributes, const TensorView& x, const TensorView& w,
                const TensorView& bias, const TensorView& addend, const TensorView& y) {
  ConvShape shape;
  EDDY_RETURN_IF_ERROR(make_blocked_conv_shape(attributes, x, w, y, shape));
  const Epilogue epilogue(attributes);
  for (int64_t n = 0; n < y.dims[0]; ++n) {
    const Image from{x, n}, to{y, n};
    for (int64_t f = 0; f < to.channels(); ++f) {
      for (Position at(shape.grid.output, 2); !at.done(); at.next()) {
        double sum = 0;
        if (f < shape.filters) {
          sum = window_sum(shape, from, w.as<float>(), f, at);
          if (!bias.is_omitted()) sum += static_cast<double>(bias.as<float>()[f]);
        }
        if (!addend.is_omitted()) sum += static_cast<double>(Image{addend, n}.at(f, at.index()));
        to.set(f, at.index(), epilogue.apply(static_cast<float>(sum)));
      }
    }
  }
  return Status::ok();
}

TensorView input_or_omitted(const KernelArgs& args, uint32_t i) {
  return args.has_input(i) ? args.inputs[i] : TensorView{};
}

bool run_conv(const KernelArgs& args) {
  Status status = convolve(static_cast<const BlockedState&>(*args.state).attributes, args.inputs[0],
                           args.inputs[1], input_or_omitted(args, 2), input_or_omitted(args, 3),
                           args.outputs[0]);
  return status.is_ok() || args.fail(std::move(status));
}

bool run_expanded_conv(const KernelArgs& args) {
  const TensorView &x = args.inputs[0], &w = args.inputs[1], &y = args.outputs[0];
  const ExpandedAttributes attributes(static_cast<const BlockedState&>(*args.state).attributes,
                                      w.dims[0]);
  const Dims dims = expanded_dims(x, y);
  TensorView between{nullptr, dims.data(), dims.rank(), ElementType::kFloat};
  between.data = args.scratch->reserve(between.size_bytes());
  if (between.data == nullptr) {
    return args.fail(resource_exhausted("no memory for what lies between two convolutions"));
  }
  Status status = convolve(attributes.inner, x, w, input_or_omitted(args, 2), {}, between);
  if (status.is_ok()) {
    status = convolve(attributes.outer, between, args.inputs[3], input_or_omitted(args, 4), {}, y);
  }
  return status.is_ok() || args.fail(std::move(status));
}

// Taps of a window in the input, and in the input with its padding.
struct Taps {
  int64_t inside = 0, padded = 1;
};

// Visits those in the input alone: the padding may be far larger.
template <typename Visit>
Taps walk_window(const Grid& grid, const Position& at, const Visit& visit) {
  Taps taps;
  SpatialDims first{}, count{};
  grid.taps_inside(at, first, count);
  for (Position tap(count, 2); !tap.done(); tap.next()) {
    int64_t index;
    if (!grid.input_index(at, tap, index, first)) continue;
    visit(index);
    ++taps.inside;
  }
  for (int i = 0; i < 2; ++i) {
    const WindowAxis& axis = grid.axes[static_cast<size_t>(i)];
    const int64_t room =
        grid.input[static_cast<size_t>(i)] + axis.pad_end + axis.pad_begin - at[i] * axis.stride;
    const int64_t fitting = (room + axis.dilation - 1) / axis.dilation;
    taps.padded *= std::clamp<int64_t>(fitting, 0, axis.kernel);
  }
  return taps;
}

bool run_pool(const KernelArgs& args) {
  const Attributes& attributes = static_cast<const BlockedState&>(*args.state).attributes;
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  Grid grid;
  Status status = make_blocked_pool_grid(attributes, x, y, grid);
  if (!status.is_ok()) return args.fail(std::move(status));
  const bool is_max = attributes.get_string("kind", "") == "max";
  const bool counts_padding = attributes.get_int("count_include_pad", 0) != 0;
  for (int64_t n = 0; n < y.dims[0]; ++n) {
    const Image from{x, n}, to{y, n};
    for (int64_t c = 0; c < to.channels(); ++c) {
      for (Position at(grid.output, 2); !at.done(); at.next()) {
        float best = -std::numeric_limits<float>::infinity();
        double sum = 0;
        const Taps taps = walk_window(grid, at, [&](int64_t index) {
          const float value = from.at(c, index);
          if (value != value || value > best) best = value;
          sum += static_cast<double>(value);
        });
        const int64_t count = counts_padding ? taps.padded : taps.inside;
        const double average = count == 0 ? 0 : sum / static_cast<double>(count);
        to.set(c, at.index(), is_max ? best : static_cast<float>(average));
      }
    }
  }
  return true;
}

template <KernelFunction run>
Result<BoundKernel> bind(const KernelInit& init) {
  auto state = std::make_unique<BlockedState>();
  state->attributes = init.attributes;
  return BoundKernel{.run = run, .state = std::move(state)};
}

}  // namespace

void add_blocked_reference(KernelRegistry& registry) {
  const auto add = [&](const char* op, BindFunction function) {
    registry.add(
        {.op = op, .bind = std::move(function), .provider = "reference", .domain = "eddy"});
  };
  add("BlockChannels", bind<run_change>);
  add("UnblockChannels", bind<run_change>);
  add("BlockedConv", bind<run_conv>);
  add("ExpandedConv", bind<run_expanded_conv>);
  add("BlockedPool", bind<run_pool>);
}

}  // namespace eddy
