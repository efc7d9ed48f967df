// BlockChannels, UnblockChannels, BlockedConv, ExpandedConv, BlockedPool for blocks of this
// processor's vectors.
#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <string>

#include "graph/base/check.h"
#include "ops/cpu/blocked/blocked_conv.h"
#include "ops/cpu/blocked/blocked_windows.h"
#include "ops/cpu/blocked/expanded_conv.h"
#include "ops/cpu/blocked/winograd_conv.h"
#include "ops/cpu/elementwise.h"
#include "ops/cpu/families.h"
#include "ops/cpu/transpose/transpose.h"
#include "ops/reference/eddy/blocked_shape.h"
#include "ops/reference/parts/activation.h"

namespace eddy {
namespace {

using cpu::BlockedConv;
using cpu::BlockedWindows;
using cpu::DepthwiseWeights;
using cpu::ExpandedConv;
using cpu::WinogradConv;

// All parts in order.
template <TileCountFunction count, TileFunction run>
bool run_all(const KernelArgs& args) {
  const uint32_t num_tiles = count(args);
  for (uint32_t tile = 0; tile < num_tiles; ++tile) {
    if (!run(args, tile)) return false;
  }
  return true;
}

template <TileCountFunction count, TileFunction run>
BoundKernel tiled(std::unique_ptr<KernelState> state) {
  BoundKernel kernel;
  kernel.run = run_all<count, run>;
  kernel.count_tiles = count;
  kernel.run_tile = run;
  kernel.state = std::move(state);
  return kernel;
}

// Between the layouts: a part for each block of an image.

uint32_t count_blocks(const KernelArgs& args) {
  const TensorView& blocked = args.inputs[0].rank == 5 ? args.inputs[0] : args.outputs[0];
  if (blocked.count() == 0) return 0;
  return static_cast<uint32_t>(blocked.dims[0] * blocked.dims[1]);
}

struct BlockPlace {
  int64_t channels, size;  // of the block; of a plane
  int64_t plain;           // where its first channel begins in the plain image

  BlockPlace(const TensorView& blocked, const TensorView& plain_image, uint32_t tile) {
    const int64_t image = tile / blocked.dims[1], block = tile % blocked.dims[1];
    const int64_t first = block * blocked.dims[4];
    channels = std::min(blocked.dims[4], plain_image.dims[1] - first);
    size = blocked.dims[2] * blocked.dims[3];
    plain = (image * plain_image.dims[1] + first) * size;
  }
};

bool block_some(const KernelArgs& args, uint32_t tile) {
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  const BlockPlace place(y, x, tile);
  const int64_t width = y.dims[4];
  const auto* from = static_cast<const uint32_t*>(x.data) + place.plain;
  auto* to = static_cast<uint32_t*>(y.data) + tile * place.size * width;
  if (place.channels < width) std::fill_n(to, place.size * width, 0u);
  cpu::transpose_words(from, place.size, to, width, place.size, place.channels);
  return true;
}

bool unblock_some(const KernelArgs& args, uint32_t tile) {
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  const BlockPlace place(x, y, tile);
  const int64_t width = x.dims[4];
  const auto* from = static_cast<const uint32_t*>(x.data) + tile * place.size * width;
  auto* to = static_cast<uint32_t*>(y.data) + place.plain;
  cpu::transpose_words(from, width, to, place.size, place.channels, place.size);
  return true;
}

Result<BoundKernel> bind_block(const KernelInit&) {
  return tiled<count_blocks, block_some>(nullptr);
}
Result<BoundKernel> bind_unblock(const KernelInit&) {
  return tiled<count_blocks, unblock_some>(nullptr);
}

// Convolutions: dense and grouped ones, or depthwise.

// What becomes of sums at last.
struct Epilogue {
  std::optional<std::pair<float, float>> clamp;
  cpu::Activation activation;

  static Result<Epilogue> of(const Attributes& attributes) {
    Epilogue made;
    const std::span<const float> clamp = attributes.get_floats("clamp");
    if (clamp.size() == 2) made.clamp = {clamp[0], clamp[1]};
    const std::string_view name = attributes.get_string("activation", "");
    if (name.empty()) return made;
    const ActivationParameters p = activation_parameters(name, attributes);
    made.activation = {cpu::float_loop_or_null(name), {p.a, p.b}};
    if (made.activation.loop != nullptr) return made;
    return unsupported("the tiled BlockedConv has no loop for " + std::string(name));
  }
  const float* clamp_or_null() const { return clamp ? &clamp->first : nullptr; }
  const cpu::Activation* activation_or_null() const {
    return activation.loop != nullptr ? &activation : nullptr;
  }
};

struct BlockedConvState : KernelState {
  Attributes attributes;
  std::shared_ptr<const BlockedConv> conv_or_null;
  // For shapes that suit them, by tiles of 4 x 4 and of 6 x 6.
  std::shared_ptr<const WinogradConv> winograd_4_or_null, winograd_6_or_null;
  std::shared_ptr<const DepthwiseWeights> depthwise_or_null;
  BlockedWindows windows{BlockedWindows::Fold::kProduct};
  Dims weights;
  Epilogue end;

  bool has_winograd() const { return winograd_4_or_null || winograd_6_or_null; }
  // By the shape alone: bits do not depend on what of it was known before.
  const WinogradConv* winograd_for(const ConvShape& shape) const {
    const int64_t inputs = has_winograd() ? WinogradConv::best_inputs(shape) : 0;
    if (inputs == 0) return nullptr;
    const WinogradConv* const conv = (inputs == 4 ? winograd_4_or_null : winograd_6_or_null).get();
    EDDY_DCHECK(conv != nullptr) << "weights were not transformed for tiles of " << inputs;
    return conv;
  }
};

// The weights' bytes may be gone: only their shape is asked for.
Status find_shape(const BlockedConvState& state, const KernelArgs& args, ConvShape& shape) {
  const TensorView weights{nullptr, state.weights.data(), 4, ElementType::kFloat};
  return make_blocked_conv_shape(state.attributes, args.inputs[0], weights, args.outputs[0], shape);
}

uint32_t count_conv_tiles(const KernelArgs& args) {
  const auto& state = static_cast<const BlockedConvState&>(*args.state);
  ConvShape shape;
  if (args.outputs[0].count() == 0) return 0;
  if (!find_shape(state, args, shape).is_ok()) return 1;  // which fails
  if (const WinogradConv* const conv = state.winograd_for(shape)) return conv->count_tiles(shape);
  if (state.conv_or_null) return state.conv_or_null->count_tiles(shape);
  return state.windows.count_tiles(shape.grid, args.outputs[0].dims[0], args.outputs[0].dims[1]);
}

bool run_conv_tile(const KernelArgs& args, uint32_t tile) {
  const auto& state = static_cast<const BlockedConvState&>(*args.state);
  ConvShape shape;
  Status status = find_shape(state, args, shape);
  if (!status.is_ok()) return args.fail(std::move(status));
  const float* const addend = args.has_input(3) ? args.inputs[3].as<float>() : nullptr;
  EDDY_DCHECK(addend == nullptr || args.inputs[3].count() == args.outputs[0].count())
      << "an addend of another shape";
  const float* const x = args.inputs[0].as<float>();
  float* const y = args.outputs[0].mutable_as<float>();
  const BlockedConv::Call call{
      &shape, x, y, addend, state.end.clamp_or_null(), state.end.activation_or_null()};
  const WinogradConv* const winograd_or_null = state.winograd_for(shape);
  if (winograd_or_null != nullptr || state.conv_or_null) {
    const size_t bytes = winograd_or_null != nullptr ? winograd_or_null->scratch_bytes()
                                                     : state.conv_or_null->scratch_bytes(shape);
    void* const scratch = bytes > 0 ? args.scratch->reserve(bytes) : nullptr;
    if (bytes > 0 && scratch == nullptr) {
      return args.fail(resource_exhausted("no memory for a convolution"));
    }
    if (winograd_or_null != nullptr) {
      winograd_or_null->run_tile(call, tile, scratch);
    } else {
      state.conv_or_null->run_tile(call, tile, scratch);
    }
    return true;
  }
  const int64_t num_blocks = args.outputs[0].dims[1];
  state.windows.run_tile({.grid = &shape.grid,
                          .num_images = args.outputs[0].dims[0],
                          .num_blocks = num_blocks,
                          .x = x,
                          .y = y,
                          .weights = state.depthwise_or_null.get(),
                          .add_or_null = addend,
                          .clamp_or_null = state.end.clamp_or_null(),
                          .activation_or_null = state.end.activation_or_null()},
                         tile);
  return true;
}

bool is_depthwise(const Dims& w, int64_t group) {
  return w[1] == 1 && w[0] == group && group > 1 && w[2] * w[3] > 0;
}

// Whether the tiles can take it: whole blocks for each group, few runs of taps.
bool suits_tiles(const Dims& w, int64_t group, int64_t width) {
  constexpr int64_t kMaxTaps = 64;
  if (w[2] * w[3] == 0 || w[2] * w[3] > kMaxTaps || w[1] == 0) return false;
  return group == 1 || (w[1] % width == 0 && w[0] / group % width == 0);
}

// A convolution of constant weights and bias, shared where it can be.
template <typename Conv, typename Make>
std::shared_ptr<const Conv> share(const KernelInit& init, const float* bias, std::string layout,
                                  const Make& make) {
  layout += " bias " + std::to_string(reinterpret_cast<uintptr_t>(bias));
  return init.pack<Conv>(init.constants[1].data, std::move(layout), make);
}

// The shape of all calls but for their number of images, which is 1 here where it is not known;
// nullopt: each has its own.
std::optional<ConvShape> known_shape(const KernelInit& init, const BlockedConvState& state) {
  Dims x = init.inputs[0].tensor.dims, y = init.outputs[0].tensor.dims;
  if (!init.inputs[0].tensor.is_ranked || !init.outputs[0].tensor.is_ranked) return std::nullopt;
  if (x.rank() < 1 || y.rank() < 1) return std::nullopt;
  if (x[0] < 0 || y[0] < 0) x[0] = y[0] = 1;
  if (!x.count() || !y.count()) return std::nullopt;
  const auto view = [](const Dims& dims) {
    return TensorView{nullptr, dims.data(), dims.rank(), ElementType::kFloat};
  };
  ConvShape shape;
  const Status status =
      make_blocked_conv_shape(init.attributes, view(x), view(state.weights), view(y), shape);
  return status.is_ok() ? std::optional(shape) : std::nullopt;
}

// The tiles of Winograd's transforms that calls may take; 0 among them: some take none.
std::set<int64_t> possible_inputs(const KernelInit& init, const BlockedConvState& state,
                                  bool is_x_of_vectors, std::optional<ConvShape> known) {
  const auto is_one = [&](const char* name) {
    return std::ranges::all_of(init.attributes.get_ints(name), [](int64_t n) { return n == 1; });
  };
  if (!is_x_of_vectors || state.weights[2] != 3 || state.weights[3] != 3) return {0};
  if (init.attributes.get_int("group", 1) != 1 || !is_one("strides") || !is_one("dilations")) {
    return {0};
  }
  if (!known.has_value()) return {0, 4, 6};
  std::set<int64_t> possible = {WinogradConv::best_inputs(*known)};
  if (init.inputs[0].tensor.dims[0] >= 0) return possible;
  for (known->batch = 2; known->batch <= WinogradConv::kMinTiles; ++known->batch) {
    possible.insert(WinogradConv::best_inputs(*known));
  }
  return possible;
}

Result<BoundKernel> bind_conv(const KernelInit& init) {
  const TensorView& w = init.constants[1];
  const bool has_bias =
      init.inputs.size() > 2 && init.inputs[2].tensor.element != ElementType::kUndefined;
  const int64_t width = cpu::tile_kernels().width;
  if (w.is_omitted() || (has_bias && init.constants[2].is_omitted()) ||
      init.attributes.get_int("block", 0) != width) {
    return unsupported("the tiled BlockedConv needs constant weights and blocks of " +
                       std::to_string(width));
  }
  auto state = std::make_unique<BlockedConvState>();
  state->attributes = init.attributes;
  state->weights = Dims(w.shape());
  const int64_t group = init.attributes.get_int("group", 1);
  const int64_t x_block = init.attributes.get_int("x_block", width);
  EDDY_ASSIGN_OR_RETURN(state->end, Epilogue::of(init.attributes));
  const float* const bias = has_bias ? init.constants[2].as<float>() : nullptr;
  const std::optional<ConvShape> known = known_shape(init, *state);
  size_t scratch_bytes = 0;
  if (is_depthwise(state->weights, group) && x_block == width) {
    state->depthwise_or_null = std::make_shared<const DepthwiseWeights>(w, bias);
  } else if (suits_tiles(state->weights, group, width) && (x_block == width || group == 1)) {
    const std::set<int64_t> possible = possible_inputs(init, *state, x_block == width, known);
    const auto transformed = [&](int64_t inputs) -> std::shared_ptr<const WinogradConv> {
      if (!possible.contains(inputs)) return nullptr;
      const std::string layout = to_string(state->weights) + " by " + std::to_string(inputs);
      auto made = share<WinogradConv>(init, bias, layout, [&] {
        return std::make_shared<const WinogradConv>(w, bias, inputs, cpu::tile_kernels(), &init);
      });
      scratch_bytes = std::max(scratch_bytes, made->scratch_bytes());
      return made;
    };
    state->winograd_4_or_null = transformed(4);
    state->winograd_6_or_null = transformed(6);
    if (possible.contains(0)) {
      const std::string layout = to_string(state->weights) + " group " + std::to_string(group) +
                                 " block " + std::to_string(x_block);
      state->conv_or_null = share<BlockedConv>(init, bias, layout, [&] {
        return std::make_shared<const BlockedConv>(w, bias, group, x_block, cpu::tile_kernels(),
                                                   &init);
      });
      if (known.has_value()) {
        scratch_bytes = std::max(scratch_bytes, state->conv_or_null->scratch_bytes(*known));
      }
    }
  } else {
    return unsupported("the tiled BlockedConv needs groups of whole blocks");
  }
  BoundKernel kernel = tiled<count_conv_tiles, run_conv_tile>(std::move(state));
  kernel.scratch_bytes = scratch_bytes;
  kernel.unread_constants = uint64_t{1} << 1 | uint64_t{has_bias} << 2;
  return kernel;
}

// An expansion and a depthwise convolution of what it makes.

struct ExpandedConvState : KernelState {
  ExpandedAttributes attributes;
  std::shared_ptr<const BlockedConv> expansion;
  DepthwiseWeights depthwise;
  ExpandedConv conv;
  Epilogue inner, outer;
  Dims weights, depthwise_weights;

  ExpandedConvState(const KernelInit& init, std::shared_ptr<const BlockedConv> first,
                    const float* bias_or_null)
      : attributes(init.attributes, init.constants[1].dims[0]),
        expansion(std::move(first)),
        depthwise(init.constants[3], bias_or_null),
        conv(*expansion, depthwise),
        weights(init.constants[1].shape()),
        depthwise_weights(init.constants[3].shape()) {}
};

struct ExpandedShape {
  ConvShape expansion, depthwise;
};

Status find_shape(const ExpandedConvState& state, const TensorView& x, const TensorView& y,
                  ExpandedShape& shape) {
  const auto view = [](const Dims& dims) {
    return TensorView{nullptr, dims.data(), dims.rank(), ElementType::kFloat};
  };
  const Dims between = expanded_dims(x, y);
  EDDY_RETURN_IF_ERROR(make_blocked_conv_shape(state.attributes.inner, x, view(state.weights),
                                               view(between), shape.expansion));
  return make_blocked_conv_shape(state.attributes.outer, view(between),
                                 view(state.depthwise_weights), y, shape.depthwise);
}

uint32_t count_expanded_tiles(const KernelArgs& args) {
  const auto& state = static_cast<const ExpandedConvState&>(*args.state);
  ExpandedShape shape;
  if (args.outputs[0].count() == 0) return 0;
  if (!find_shape(state, args.inputs[0], args.outputs[0], shape).is_ok()) return 1;  // which fails
  return state.conv.count_tiles(shape.expansion, shape.depthwise.grid);
}

bool run_expanded_tile(const KernelArgs& args, uint32_t tile) {
  const auto& state = static_cast<const ExpandedConvState&>(*args.state);
  ExpandedShape shape;
  Status status = find_shape(state, args.inputs[0], args.outputs[0], shape);
  if (!status.is_ok()) return args.fail(std::move(status));
  void* const scratch =
      args.scratch->reserve(state.conv.scratch_bytes(shape.expansion, shape.depthwise.grid));
  if (scratch == nullptr) return args.fail(resource_exhausted("no memory for a convolution"));
  const auto end_of = [](const Epilogue& end) {
    return ExpandedConv::End{end.clamp_or_null(), end.activation_or_null()};
  };
  state.conv.run_tile({.expansion = &shape.expansion,
                       .grid = &shape.depthwise.grid,
                       .x = args.inputs[0].as<float>(),
                       .y = args.outputs[0].mutable_as<float>(),
                       .inner = end_of(state.inner),
                       .outer = end_of(state.outer)},
                      tile, scratch);
  return true;
}

Result<BoundKernel> bind_expanded_conv(const KernelInit& init) {
  const int64_t width = cpu::tile_kernels().width;
  const auto is_ready = [&](size_t input) {
    const bool is_given =
        init.inputs.size() > input && init.inputs[input].tensor.element != ElementType::kUndefined;
    return !is_given || !init.constants[input].is_omitted();
  };
  if (!is_ready(1) || !is_ready(2) || !is_ready(3) || !is_ready(4) ||
      init.attributes.get_int("block", 0) != width || init.constants[3].count() == 0 ||
      init.constants[1].count() == 0) {
    return unsupported("the tiled ExpandedConv needs constant weights and blocks of " +
                       std::to_string(width));
  }
  const auto bias_or_null = [&](size_t input) {
    return init.constants.size() > input ? init.constants[input].as<float>() : nullptr;
  };
  const TensorView& w = init.constants[1];
  const std::string layout = to_string(Dims(w.shape())) + " group 1 block " + std::to_string(width);
  auto state = std::make_unique<ExpandedConvState>(
      init,
      share<BlockedConv>(init, bias_or_null(2), layout,
                         [&] {
                           return std::make_shared<const BlockedConv>(w, bias_or_null(2), 1, width,
                                                                      cpu::tile_kernels(), &init);
                         }),
      bias_or_null(4));
  EDDY_ASSIGN_OR_RETURN(state->inner, Epilogue::of(state->attributes.inner));
  EDDY_ASSIGN_OR_RETURN(state->outer, Epilogue::of(state->attributes.outer));
  size_t scratch_bytes = 0;
  if (ExpandedShape shape;
      init.inputs[0].is_static_tensor() && init.outputs[0].is_static_tensor()) {
    const TensorView x{nullptr, init.inputs[0].tensor.dims.data(), 5, ElementType::kFloat};
    const TensorView y{nullptr, init.outputs[0].tensor.dims.data(), 5, ElementType::kFloat};
    if (find_shape(*state, x, y, shape).is_ok()) {
      scratch_bytes = state->conv.scratch_bytes(shape.expansion, shape.depthwise.grid);
    }
  }
  BoundKernel kernel = tiled<count_expanded_tiles, run_expanded_tile>(std::move(state));
  kernel.scratch_bytes = scratch_bytes;
  for (size_t input = 1; input < init.inputs.size(); ++input) {
    kernel.unread_constants |= uint64_t{!init.constants[input].is_omitted()} << input;
  }
  return kernel;
}

// Pools.

struct BlockedPoolState : KernelState {
  Attributes attributes;
  BlockedWindows windows;
  bool counts_padding = false;

  explicit BlockedPoolState(BlockedWindows::Fold fold) : windows(fold) {}
};

uint32_t count_pool_tiles(const KernelArgs& args) {
  const auto& state = static_cast<const BlockedPoolState&>(*args.state);
  Grid grid;
  const TensorView& y = args.outputs[0];
  if (y.count() == 0) return 0;
  if (!make_blocked_pool_grid(state.attributes, args.inputs[0], y, grid).is_ok()) return 1;
  return state.windows.count_tiles(grid, y.dims[0], y.dims[1]);
}

bool run_pool_tile(const KernelArgs& args, uint32_t tile) {
  const auto& state = static_cast<const BlockedPoolState&>(*args.state);
  Grid grid;
  const TensorView &x = args.inputs[0], &y = args.outputs[0];
  Status status = make_blocked_pool_grid(state.attributes, x, y, grid);
  if (!status.is_ok()) return args.fail(std::move(status));
  state.windows.run_tile({.grid = &grid,
                          .num_images = y.dims[0],
                          .num_blocks = y.dims[1],
                          .x = x.as<float>(),
                          .y = y.mutable_as<float>(),
                          .counts_padding = state.counts_padding},
                         tile);
  return true;
}

Result<BoundKernel> bind_pool(const KernelInit& init) {
  const int64_t width = cpu::tile_kernels().width;
  if (init.attributes.get_int("block", 0) != width) {
    return unsupported("the fast BlockedPool needs blocks of " + std::to_string(width));
  }
  const bool is_max = init.attributes.get_string("kind", "") == "max";
  auto state = std::make_unique<BlockedPoolState>(is_max ? BlockedWindows::Fold::kMax
                                                         : BlockedWindows::Fold::kAverage);
  state->attributes = init.attributes;
  state->counts_padding = init.attributes.get_int("count_include_pad", 0) != 0;
  return tiled<count_pool_tiles, run_pool_tile>(std::move(state));
}

}  // namespace

void add_blocked_cpu(KernelRegistry& registry) {
  const auto add = [&registry](std::string_view name, auto bind, std::string_view provider) {
    registry.add(
        {.op = name, .bind = bind, .provider = provider, .domain = "eddy", .has_tiles = true});
  };
  add("BlockChannels", bind_block, "cpu");
  add("UnblockChannels", bind_unblock, "cpu");
  add("BlockedConv", bind_conv, "tile");
  add("ExpandedConv", bind_expanded_conv, "tile");
  add("BlockedPool", bind_pool, "tile");
}

}  // namespace eddy
