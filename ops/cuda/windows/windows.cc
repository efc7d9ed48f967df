// The host's half of pools and convolutions on up to three spatial axes, and of global pools.
//
// Convolutions and pools go to cuDNN where it is there and has a way, but for convolutions by
// channel of images whose channels come last, for which we have kernels and it has none; global
// pools are rows to us, a warp or a block each. Of our own kernels of convolutions one with enough
// filters and depth takes tiles (implicit GEMM); others take a thread for each result.
#include <iterator>
#include <optional>

#include "graph/base/check.h"
#include "ops/cuda/launch/launch.h"
#include "ops/cuda/libraries/dnn_library.h"
#include "ops/cuda/reduce/row_warp_inl.h"
#include "ops/cuda/windows/channel_conv_inl.h"
#include "ops/reference/parts/outputs.h"
#include "ops/reference/windows/conv_shape.h"
#include "ops/reference/windows/image_order.h"

namespace eddy {
namespace {

using cuda::ConvParams;
using cuda::PoolParams;
using cuda::RowParams;
using cuda::WindowParams;

struct WindowState : cuda::LaunchState {
  Attributes attributes;
  CudaFunction tile = nullptr;      // Conv's product of tiles
  CudaFunction warp = nullptr;      // of a global pool
  CudaFunction by_channel[3] = {};  // of a convolution, windows of 3, 5 and 7
  DnnLibrary* dnn_or_null = nullptr;
  ElementType element = ElementType::kFloat;
  bool is_max = false;        // of a pool
  bool ends_in_relu = false;  // of a convolution
  bool is_channels_last = false;
};

const WindowState& state_of(const KernelArgs& args) {
  return *static_cast<const WindowState*>(args.state);
}

// [n, c, spatial axes], whichever way the image or the filters lie; sizes without bytes.
class Sizes {
 public:
  Sizes(const WindowState& state, const TensorView& view)
      : view_(view),
        turned_(state.is_channels_last ? std::optional(TurnedImage(view, ImageOrder::kChannelsLast))
                                       : std::nullopt) {}
  TensorView view() const { return turned_ ? turned_->view() : view_; }

 private:
  const TensorView view_;
  const std::optional<TurnedImage> turned_;
};

// Axes of 1 come before the grid's own.
WindowParams window_of(const Grid& grid) {
  EDDY_DCHECK(grid.rank > 0 && grid.rank <= cuda::kMaxSpatialAxes) << grid.rank << " spatial axes";
  WindowParams w;
  for (int i = 0; i < cuda::kMaxSpatialAxes; ++i) {
    w.in[i] = w.out[i] = w.kernel[i] = w.stride[i] = w.dilation[i] = 1;
    w.pad[i] = w.pad_end[i] = 0;
  }
  for (int i = 0; i < grid.rank; ++i) {
    const int to = cuda::kMaxSpatialAxes - grid.rank + i;
    const auto at = static_cast<size_t>(i);
    w.in[to] = grid.input[at];
    w.out[to] = grid.output[at];
    w.kernel[to] = grid.axes[at].kernel;
    w.stride[to] = grid.axes[at].stride;
    w.dilation[to] = grid.axes[at].dilation;
    w.pad[to] = grid.axes[at].pad_begin;
    w.pad_end[to] = grid.axes[at].pad_end;
  }
  return w;
}

bool run_pool(const KernelArgs& args) {
  const WindowState& state = state_of(args);
  const Sizes in(state, args.inputs[0]), out(state, args.outputs[0]);
  const TensorView x = in.view();
  Windows windows;
  Grid grid;
  Status status = parse_windows(state.attributes, x.rank - 2, nullptr, windows);
  if (status.is_ok()) status = make_grid(windows, x, out.view(), grid);
  if (!status.is_ok()) return args.fail(std::move(status));
  PoolParams p{};
  p.out = args.outputs[0].data;
  p.in = args.inputs[0].data;
  p.last_channels = state.is_channels_last ? x.dims[1] : 0;
  p.indices = output_or_null<int64_t>(args, 1);
  p.count = cuda::count_of(args.outputs[0]);
  p.counts_padding = state.attributes.get_int("count_include_pad", 0) != 0 ? 1 : 0;
  p.is_column_major = state.attributes.get_int("storage_order", 0) == 1 ? 1 : 0;
  p.window = window_of(grid);
  if (state.dnn_or_null != nullptr) {
    const auto outcome = cuda::outcome_of(
        args,
        state.dnn_or_null->pools().run(args, state.element, state.is_max, x.dims[0], x.dims[1], p));
    if (outcome) return *outcome;
  }
  return cuda::launch_threads(args, *state.launcher, state.function, p.count, p);
}

// A row for each plane, by a warp where that fills one.
bool run_global_pool(const KernelArgs& args) {
  EDDY_DCHECK(args.inputs[0].rank >= 3) << "no spatial axes";
  const WindowState& state = state_of(args);
  const TensorView& x = args.inputs[0];
  RowParams p{};
  p.out = args.outputs[0].data;
  p.in = x.data;
  p.count = cuda::count_of(args.outputs[0]);
  p.length = 1;
  for (int d = 2; d < x.rank; ++d) p.length *= static_cast<uint64_t>(x.dims[d]);
  if (p.length == 0) return args.fail(invalid_argument("the planes to pool have no elements"));
  p.num_kept = p.num_reduced = 1;
  p.kept_dims[0] = p.count;
  p.kept_strides[0] = static_cast<int64_t>(p.length);
  p.reduced_dims[0] = p.length;
  p.reduced_strides[0] = 1;
  if (p.length < cuda::kBlockRow) {
    const uint64_t num_blocks = (p.count + cuda::kWarpRows - 1) / cuda::kWarpRows;
    return cuda::launch_blocks(args, *state.launcher, state.warp, num_blocks, p);
  }
  return cuda::launch_blocks(args, *state.launcher, state.function, p.count, p);
}

void fill_sizes(const ConvShape& shape, const TensorView& y, ConvParams& p) {
  EDDY_DCHECK(shape.group > 0 && shape.channels % shape.group == 0 &&
              shape.filters % shape.group == 0)
      << shape.channels << " channels and " << shape.filters << " filters in " << shape.group;
  p.batch = shape.batch;
  p.groups = shape.group;
  p.channels = shape.group_channels();
  p.filters = shape.group_filters();
  p.count = cuda::count_of(y);
  p.window = window_of(shape.grid);
}

void fill_conv(const KernelArgs& args, const ConvShape& shape, ConvParams& p) {
  p.out = args.outputs[0].data;
  p.in = args.inputs[0].data;
  p.weights = args.inputs[1].data;
  p.bias = args.has_input(2) ? args.inputs[2].data : nullptr;
  p.addend = args.has_input(3) ? args.inputs[3].data : nullptr;
  fill_sizes(shape, args.outputs[0], p);
}

Status shape_of(const WindowState& state, const TensorView& x, const TensorView& w,
                const TensorView& y, ConvShape& shape) {
  const Sizes in(state, x), filters(state, w), out(state, y);
  return make_conv_shape(state.attributes, in.view(), filters.view(), out.view(), shape);
}

void fill_form(const WindowState& state, ConvParams& p) {
  p.ends_in_relu = state.ends_in_relu ? 1 : 0;
  p.is_channels_last = state.is_channels_last ? 1 : 0;
}

// Whether tiles of 64 x 64 results and slabs of 16 of the depth are filled well enough.
bool pays_tiles(const ConvParams& p, const Grid& grid) {
  return p.filters >= 16 && p.channels * grid.kernel_size >= 16;
}

// The kernel that takes it by channel; null: none does.
CudaFunction by_channel_or_null(const WindowState& state, const ConvParams& p) {
  const WindowParams& w = p.window;
  const bool is_by_channel = state.is_channels_last && p.channels == 1 && p.filters == 1;
  const bool is_square = w.in[0] == 1 && w.kernel[0] == 1 && w.pad[0] == 0 && w.pad_end[0] == 0 &&
                         w.kernel[1] == w.kernel[2] && w.dilation[1] == 1 && w.dilation[2] == 1;
  if (!is_by_channel || !is_square || !fits_dnn_int(w.in[1] * w.in[2])) return nullptr;
  const int64_t size = w.kernel[1];
  return size == 3 || size == 5 || size == 7 ? state.by_channel[(size - 3) / 2] : nullptr;
}

bool run_conv(const KernelArgs& args) {
  const WindowState& state = state_of(args);
  ConvShape shape;
  Status status = shape_of(state, args.inputs[0], args.inputs[1], args.outputs[0], shape);
  if (!status.is_ok()) return args.fail(std::move(status));
  ConvParams p{};
  fill_conv(args, shape, p);
  fill_form(state, p);
  if (const CudaFunction by_channel = by_channel_or_null(state, p); by_channel != nullptr) {
    const uint64_t num_items = p.count == 0 ? 0 : cuda::ChannelTiles(p).num_items();
    return cuda::launch_blocks(args, *state.launcher, by_channel, num_items, p);
  }
  if (state.dnn_or_null != nullptr) {
    const auto outcome =
        cuda::outcome_of(args, state.dnn_or_null->convolutions().run(args, state.element, p));
    if (outcome) return *outcome;
  }
  if (!pays_tiles(p, shape.grid)) {
    return cuda::launch_threads(args, *state.launcher, state.function, p.count, p);
  }
  const auto tiles = [](int64_t size) { return static_cast<uint64_t>((size + 63) / 64); };
  const uint64_t num_tiles =
      static_cast<uint64_t>(p.batch * p.groups) * tiles(p.filters) * tiles(shape.grid.output_size);
  return cuda::launch_blocks(args, *state.launcher, state.tile, num_tiles, p);
}

bool run_conv_transpose(const KernelArgs& args) {
  const WindowState& state = state_of(args);
  ConvShape shape;
  Status status = make_transposed_conv_shape(state.attributes, args.inputs[0], args.inputs[1],
                                             args.outputs[0], shape);
  if (!status.is_ok()) return args.fail(std::move(status));
  ConvParams p{};
  fill_conv(args, shape, p);
  return cuda::launch_threads(args, *state.launcher, state.function, p.count, p);
}

// The spatial axes must be known to be few when the node is placed.
Result<std::unique_ptr<WindowState>> make_state(const KernelInit& init, CudaLauncher& launcher,
                                                const std::string& kernel, bool is_global = false) {
  const TensorType& x = init.inputs[0].tensor;
  if (!is_global && (!x.is_ranked || x.dims.rank() > 2 + cuda::kMaxSpatialAxes)) {
    return unsupported("only inputs known to have at most " +
                       std::to_string(cuda::kMaxSpatialAxes) +
                       " spatial axes are supported by the CUDA kernel of " + init.op.name);
  }
  auto state = std::make_unique<WindowState>();
  EDDY_RETURN_IF_ERROR(
      cuda::find_typed_kernel(init, launcher, kernel + "_" + cuda::input_suffix(init), *state));
  state->attributes = init.attributes;
  state->element = x.element;
  return state;
}

Result<BoundKernel> bind_pool(const KernelInit& init, CudaLauncher& launcher,
                              DnnLibrary* dnn_or_null) {
  const bool is_max = init.op.name.ends_with("MaxPool");
  EDDY_ASSIGN_OR_RETURN(auto state, make_state(init, launcher, is_max ? "MaxPool" : "AveragePool"));
  state->is_max = is_max;
  state->is_channels_last = init.op.name.starts_with("ChannelsLast");
  if (DnnPools::has_type(state->element)) state->dnn_or_null = dnn_or_null;
  if (state->dnn_or_null != nullptr) state->dnn_or_null->expect_use();
  return cuda::bound(run_pool, std::move(state));
}
Result<BoundKernel> bind_global_pool(const KernelInit& init, CudaLauncher& launcher) {
  const std::string reduce = init.op.name == "GlobalMaxPool" ? "ReduceMax" : "ReduceMean";
  EDDY_ASSIGN_OR_RETURN(auto state, make_state(init, launcher, "Block" + reduce, true));
  EDDY_ASSIGN_OR_RETURN(state->warp,
                        launcher.find("eddy_Warp" + reduce + "_" + cuda::input_suffix(init)));
  return cuda::bound(run_global_pool, std::move(state));
}
// Where all sizes are known, so that the first run finds the library's algorithm chosen, inside a
// recording, too. What fails here is reported by the run.
void plan_conv(const KernelInit& init, const WindowState& state) {
  const auto is_static = [](const ValueType& type) { return type.is_static_tensor(); };
  if (!is_static(init.inputs[0]) || !is_static(init.inputs[1]) || !is_static(init.outputs[0])) {
    return;
  }
  const auto view = [](const ValueType& type) {
    const TensorType& tensor = type.tensor;
    return TensorView{nullptr, tensor.dims.data(), tensor.dims.rank(), tensor.element};
  };
  const TensorView y = view(init.outputs[0]);
  ConvShape shape;
  if (!shape_of(state, view(init.inputs[0]), view(init.inputs[1]), y, shape).is_ok()) return;
  ConvParams p{};
  fill_sizes(shape, y, p);
  fill_form(state, p);
  if (by_channel_or_null(state, p) != nullptr) return;
  state.dnn_or_null->convolutions().prepare(state.element, p);
}

Result<BoundKernel> bind_conv(const KernelInit& init, CudaLauncher& launcher,
                              DnnLibrary* dnn_or_null) {
  EDDY_ASSIGN_OR_RETURN(auto state, make_state(init, launcher, "Conv"));
  state->ends_in_relu = init.op.name == "ConvRelu" || init.attributes.get_int("relu", 0) != 0;
  state->is_channels_last = init.op.name == "ChannelsLastConv";
  const std::string suffix = "_" + cuda::input_suffix(init);
  for (size_t i = 0; state->is_channels_last && i < std::size(state->by_channel); ++i) {
    const std::string size = std::to_string(2 * i + 3);
    EDDY_ASSIGN_OR_RETURN(state->by_channel[i], launcher.find("eddy_ChannelConv" + size + suffix));
  }
  if (DnnConvolutions::has_type(state->element)) state->dnn_or_null = dnn_or_null;
  if (state->dnn_or_null != nullptr) {
    state->dnn_or_null->expect_use();
    plan_conv(init, *state);
  }
  EDDY_ASSIGN_OR_RETURN(state->tile, launcher.find("eddy_ConvTile" + suffix));
  return cuda::bound(run_conv, std::move(state));
}
Result<BoundKernel> bind_conv_transpose(const KernelInit& init, CudaLauncher& launcher) {
  EDDY_ASSIGN_OR_RETURN(auto state, make_state(init, launcher, "ConvTranspose"));
  return cuda::bound(run_conv_transpose, std::move(state));
}

}  // namespace

void add_windows_cuda(KernelRegistry& registry, CudaLauncher& launcher, DnnLibrary* dnn_or_null) {
  cuda::add_kernel(registry, launcher, "Conv", bind_conv, dnn_or_null);
  cuda::add_kernel(registry, launcher, "ConvRelu", bind_conv, dnn_or_null, "eddy");
  cuda::add_kernel(registry, launcher, "ChannelsLastConv", bind_conv, dnn_or_null, "eddy");
  cuda::add_kernel(registry, launcher, "ChannelsLastMaxPool", bind_pool, dnn_or_null, "eddy");
  cuda::add_kernel(registry, launcher, "ChannelsLastAveragePool", bind_pool, dnn_or_null, "eddy");
  cuda::add_kernel(registry, launcher, "MaxPool", bind_pool, dnn_or_null);
  cuda::add_kernel(registry, launcher, "AveragePool", bind_pool, dnn_or_null);
  cuda::add_kernel(registry, launcher, "GlobalAveragePool", bind_global_pool);
  cuda::add_kernel(registry, launcher, "GlobalMaxPool", bind_global_pool);
  cuda::add_kernel(registry, launcher, "ConvTranspose", bind_conv_transpose);
}

}  // namespace eddy
