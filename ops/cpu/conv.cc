// Conv, ConvTranspose, eddy.ConvRelu, eddy.WinogradConv and eddy.SwappedConv for float: register
// tiles for small
// convolutions with constant weights, a product of matrices for windows of one element on large
// images, blocks of channels image by image where weights may change, oneDNN's convolutions for
// other large ones, the plain loop for what none of them does.
#include <algorithm>
#include <cstring>
#include <optional>
#include <string>

#include "graph/base/check.h"
#include "ops/cpu/blocked/activation.h"
#include "ops/cpu/blocked/two_step_conv.h"
#include "ops/cpu/elementwise.h"
#include "ops/cpu/families.h"
#include "ops/cpu/loops/loops.h"
#include "ops/cpu/onednn/conv.h"
#include "ops/cpu/onednn/sgemm.h"
#include "ops/cpu/shape_cache.h"
#include "ops/cpu/tile_conv.h"
#include "ops/cpu/tiles.h"
#include "ops/reference/windows/conv.h"

namespace eddy {
namespace {

using cpu::TileConv;
using cpu::TwoStepConv;
using onednn::ConvPlan;

// A plan, or null: oneDNN has none for this shape.
struct CachedPlan {
  std::unique_ptr<ConvPlan> plan_or_null;
};

// Which of the operators it is.
struct Form {
  bool is_transposed = false, ends_in_relu = false;
  bool may_round = false;   // as Winograd's transforms do
  bool is_swapped = false;  // the first two axes of images, windows and results
};

struct ConvState : KernelState {
  Attributes attributes;
  Form form;
  const float* constant_weights_or_null = nullptr;
  std::shared_ptr<const TileConv> tiles_or_null;
  BoundKernel plain;
  // The shape known when the kernel was bound, with the X and W it holds for.
  std::optional<ConvShape> known_shape;
  Dims known_x, known_w;
  cpu::ShapeCache<std::pair<Dims, Dims>, CachedPlan> plans;
};

Dims dims_of(const TensorView& view) { return Dims(view.shape()); }

bool has_dims(const TensorView& view, const Dims& dims) {
  return view.rank == dims.rank() && std::equal(dims.begin(), dims.end(), view.dims);
}

auto shape_maker(const Form& form) {
  return form.is_transposed ? make_transposed_conv_shape
         : form.is_swapped  ? make_swapped_conv_shape
                            : make_conv_shape;
}

// The shape of this call: the known one, or `storage` filled for it; null after args.fail().
const ConvShape* find_shape(const ConvState& state, const KernelArgs& args, ConvShape& storage) {
  const TensorView &x = args.inputs[0], &w = args.inputs[1];
  EDDY_DCHECK(x.rank >= 3 && w.rank == x.rank) << "ranks " << x.rank << " and " << w.rank;
  if (state.known_shape && has_dims(x, state.known_x) && has_dims(w, state.known_w)) {
    return &*state.known_shape;
  }
  Status status = shape_maker(state.form)(state.attributes, x, w, args.outputs[0], storage);
  if (status.is_ok()) return &storage;
  args.fail(std::move(status));
  return nullptr;
}

// `key`: the shapes of X and W.
std::shared_ptr<const CachedPlan> find_plan(const ConvState& state,
                                            const std::pair<Dims, Dims>& key,
                                            const ConvShape& shape, bool has_bias) {
  if (auto known = state.plans.find_or_null(key)) return known;
  auto made = std::make_shared<CachedPlan>();
  Result<std::unique_ptr<ConvPlan>> plan =
      ConvPlan::create(shape, {.is_transposed = state.form.is_transposed,
                               .has_bias = has_bias,
                               .constant_weights_or_null = state.constant_weights_or_null});
  if (plan.is_ok()) made->plan_or_null = std::move(*plan);
  state.plans.add(key, made);
  return made;
}

bool run_plain(const ConvState& state, const KernelArgs& args) {
  EDDY_DCHECK(state.plain.run != nullptr) << "no plain loops to fall back to";
  KernelArgs plain = args;
  plain.state = state.plain.state.get();
  return state.plain.run(plain);
}

const float* bias_or_null(const KernelArgs& args) {
  return args.has_input(2) ? args.inputs[2].as<float>() : nullptr;
}

// Measured on Zen 5 (tests/bench/dense_bench.cc): tiles win by 2 to 10 where there is little work
// and are level on long signals, which often change their length; oneDNN wins on images, where
// few filters or many channels do not suit a tile.
bool suits_tiles(const ConvShape& shape) {
  constexpr int64_t kSmallWork = int64_t{1} << 20;
  constexpr int64_t kFewPositions = 64;
  constexpr int64_t kMaxDepth = 2304;  // a panel of weights must stay in the second-level cache
  if (!TileConv::fits(shape)) return false;
  const int64_t depth = shape.group_channels() * shape.grid.kernel_size;
  const int64_t positions = shape.batch * shape.grid.output_size;
  if (positions <= kFewPositions && positions * shape.filters * depth <= kSmallWork) return true;
  return shape.grid.rank == 1 && depth <= kMaxDepth && shape.group_filters() >= 32;
}

// Windows of one element: Y = W * X for each group of each image, in ONNX's own layout and without
// set-up. Measured on Zen 5: up to 1.5 times as fast as the library's convolution with its changes
// of layout, down to some 200 positions, where they are level; groups that are no whole blocks of
// channels are slower in the library.
bool is_product(const ConvState& state, const ConvShape& shape) {
  constexpr int64_t kMinPositions = 256, kMinPositionsOfGroups = 32;
  const bool has_groups = shape.group > 1 && shape.group_channels() > 1;
  const int64_t min_positions = has_groups ? kMinPositionsOfGroups : kMinPositions;
  if (state.form.is_transposed || state.form.is_swapped || (shape.group != 1 && !has_groups) ||
      shape.grid.output_size < min_positions) {
    return false;
  }
  for (size_t i = 0; i < static_cast<size_t>(shape.grid.rank); ++i) {
    const WindowAxis& axis = shape.grid.axes[i];
    const bool is_whole = shape.grid.input[i] == shape.grid.output[i] && axis.pad_begin == 0;
    if (axis.kernel != 1 || axis.stride != 1 || !is_whole) return false;
  }
  return true;
}

// Fills by copies of the part that is filled already: whole vectors of the processor at hand.
void fill(float* to, int64_t count, float value) {
  int64_t filled = std::min<int64_t>(count, 64);
  std::fill_n(to, filled, value);
  while (filled < count) {
    const int64_t more = std::min(filled, count - filled);
    std::memcpy(to + filled, to, static_cast<size_t>(more) * sizeof(float));
    filled += more;
  }
}

// Positions of one group of one image are cut into blocks, which are units that read nothing of
// each other.
struct ProductUnits {
  static constexpr int64_t kUnitTerms = 1'000'000, kMinPositions = 256;

  int64_t positions_each, per_group, count, terms;

  explicit ProductUnits(const ConvShape& shape) {
    const int64_t positions = shape.grid.output_size;
    const int64_t terms_each = std::max<int64_t>(shape.group_channels() * shape.group_filters(), 1);
    positions_each = std::max(kUnitTerms / terms_each / 64 * 64, kMinPositions);
    per_group = (positions + positions_each - 1) / positions_each;
    count = shape.batch * shape.group * per_group;
    terms = std::min(positions_each, positions) * terms_each;
  }
  cpu::Tiles tiles() const { return cpu::Tiles::of(count, terms, kUnitTerms); }
};

// What ConvRelu makes of sums, `count` of them from `at` on.
void end_in_relu(const KernelArgs& args, int64_t at, int64_t count) {
  static const cpu::BinaryLoops& add =
      cpu::loop_set().binary[static_cast<size_t>(cpu::BinaryOp::kAdd)]
                            [static_cast<size_t>(cpu::LoopType::kFloat)];
  static const cpu::Activation relu = {.loop = cpu::float_loop_or_null("Relu")};
  float* const y = args.outputs[0].mutable_as<float>() + at;
  if (args.has_input(3)) add.both(y, args.inputs[3].as<float>() + at, y, count);
  relu.apply(y, count);
}

void run_products(const KernelArgs& args, const ConvShape& shape, int64_t first, int64_t end) {
  EDDY_DCHECK(shape.grid.input_size == shape.grid.output_size)
      << "a window of one element changes the size";
  const ProductUnits units(shape);
  const int64_t positions = shape.grid.output_size;
  const int64_t filters = shape.group_filters(), channels = shape.group_channels();
  const float* const bias = bias_or_null(args);
  const bool ends_in_relu = static_cast<const ConvState&>(*args.state).form.ends_in_relu;
  onednn::SgemmArgs product;
  product.m = filters;
  product.b_row = product.c_row = positions;
  product.k = product.a_row = channels;
  product.beta = bias ? 1 : 0;
  for (int64_t unit = first; unit < end; ++unit) {
    const int64_t i = unit / units.per_group;
    const int64_t begin = unit % units.per_group * units.positions_each;
    const int64_t filter = i % shape.group * filters;
    product.n = std::min(units.positions_each, positions - begin);
    product.a = args.inputs[1].as<float>() + filter * channels;
    product.b = args.inputs[0].as<float>() + i * channels * positions + begin;
    product.c = args.outputs[0].mutable_as<float>() + i * filters * positions + begin;
    for (int64_t f = 0; bias && f < filters; ++f) {
      fill(product.c + f * positions, product.n, bias[filter + f]);
    }
    onednn::sgemm(product);
    for (int64_t f = 0; ends_in_relu && f < filters; ++f) {
      end_in_relu(args, (i * filters + f) * positions + begin, product.n);
    }
  }
}

bool run_product(const KernelArgs& args, const ConvShape& shape) {
  run_products(args, shape, 0, ProductUnits(shape).count);
  return true;
}

// Of a kernel whose shape is known to be a product.
const ConvShape& known_shape(const KernelArgs& args) {
  return *static_cast<const ConvState&>(*args.state).known_shape;
}
cpu::Tiles tiles_of_product(const KernelArgs& args) {
  return ProductUnits(known_shape(args)).tiles();
}
bool run_product_units(const KernelArgs& args, int64_t first, int64_t end) {
  run_products(args, known_shape(args), first, end);
  return true;
}

// By register tiles, or of weights that may change. Null: not such a call; run_conv() says what is
// wrong with it, if anything is.
std::unique_ptr<const TwoStepConv> two_step_conv_or_null(const ConvState& state,
                                                         const ConvShape& shape) {
  if (state.tiles_or_null) {
    return suits_tiles(shape) ? state.tiles_or_null->steps(shape) : nullptr;
  }
  if (state.form.is_swapped) return TwoStepConv::create_swapped_or_null(shape);
  if (state.form.is_transposed || state.constant_weights_or_null != nullptr) return nullptr;
  return TwoStepConv::create_or_null(shape, state.form.may_round);
}
std::unique_ptr<const TwoStepConv> two_step_conv_or_null(const KernelArgs& args) {
  const auto& state = static_cast<const ConvState&>(*args.state);
  if (args.outputs[0].count() == 0) return nullptr;
  ConvShape storage;
  KernelArgs asked = args;
  Status ignored;
  asked.error = &ignored;
  const ConvShape* const shape = find_shape(state, asked, storage);
  return shape == nullptr ? nullptr : two_step_conv_or_null(state, *shape);
}

TwoStepConv::Call two_step_call(const KernelArgs& args, void* shared) {
  return {args.inputs[0].as<float>(), args.inputs[1].as<float>(), bias_or_null(args),
          args.outputs[0].mutable_as<float>(), shared};
}

// Of a call by one thread: what units share, then what one needs.
size_t rounded_shared_bytes(const TwoStepConv& conv) {
  return (conv.shared_bytes() + 63) / 64 * 64;
}
size_t two_step_bytes(const TwoStepConv& conv) {
  return rounded_shared_bytes(conv) + conv.scratch_bytes();
}

bool run_two_steps(const KernelArgs& args, const TwoStepConv& conv) {
  auto* const memory = static_cast<std::byte*>(args.scratch->reserve(two_step_bytes(conv)));
  if (memory == nullptr) return args.fail(resource_exhausted("no memory for a convolution"));
  const TwoStepConv::Call call = two_step_call(args, memory);
  void* const scratch = memory + rounded_shared_bytes(conv);
  for (uint32_t i = 0; i < conv.num_units(); ++i) conv.prepare(call, scratch, i);
  for (uint32_t i = 0; i < conv.num_units(); ++i) conv.run(call, scratch, i);
  return true;
}

// Tiles: all units prepare, then all run. One tile is a call of another kind.
uint32_t count_units(const KernelArgs& args) {
  const auto conv = two_step_conv_or_null(args);
  return conv && conv->is_large() ? conv->num_units() : 1;
}
uint32_t count_two_step_tiles(const KernelArgs& args) {
  const uint32_t units = count_units(args);
  return units > 1 ? 2 * units : 1;
}
size_t two_step_shared_bytes(const KernelArgs& args) {
  const auto conv = two_step_conv_or_null(args);
  return conv ? conv->shared_bytes() : 0;
}
bool run_two_step_tile(const KernelArgs& args, uint32_t tile) {
  const auto conv = two_step_conv_or_null(args);
  EDDY_CHECK(conv != nullptr && tile < 2 * conv->num_units()) << "tile " << tile;
  const TwoStepConv::Call call = two_step_call(args, args.shared);
  void* const scratch = args.scratch->reserve(conv->scratch_bytes());
  if (scratch == nullptr) return args.fail(resource_exhausted("no memory for a convolution"));
  if (tile < conv->num_units()) {
    conv->prepare(call, scratch, tile);
  } else {
    conv->run(call, scratch, tile - conv->num_units());
  }
  return true;
}

bool run_by_library(const ConvState& state, const KernelArgs& args, const ConvShape& shape) {
  if (args.inputs[0].count() == 0 || args.inputs[1].count() == 0) return run_plain(state, args);
  if (const auto conv = two_step_conv_or_null(state, shape)) return run_two_steps(args, *conv);
  if (state.form.is_swapped) return run_plain(state, args);
  const std::pair key(dims_of(args.inputs[0]), dims_of(args.inputs[1]));
  const auto cached = find_plan(state, key, shape, args.has_input(2));
  if (!cached->plan_or_null) return run_plain(state, args);
  const ConvPlan& plan = *cached->plan_or_null;
  void* scratch = args.scratch->reserve(plan.scratch_bytes());
  if (scratch == nullptr) return args.fail(resource_exhausted("no memory for a convolution"));
  Status status = plan.run(args.inputs[0].as<float>(), args.inputs[1].as<float>(),
                           bias_or_null(args), args.outputs[0].mutable_as<float>(), scratch);
  return status.is_ok() || args.fail(std::move(status));
}

bool run_sums(const ConvState& state, const KernelArgs& args, const ConvShape& shape) {
  if (!state.tiles_or_null || !suits_tiles(shape)) return run_by_library(state, args, shape);
  Status status = state.tiles_or_null->run(shape, args.inputs[0].as<float>(), bias_or_null(args),
                                           args.outputs[0].mutable_as<float>(), *args.scratch);
  return status.is_ok() || args.fail(std::move(status));
}

bool run_conv(const KernelArgs& args) {
  const auto& state = static_cast<const ConvState&>(*args.state);
  if (args.outputs[0].count() == 0) return true;
  ConvShape storage;
  const ConvShape* shape = find_shape(state, args, storage);
  if (shape == nullptr) return false;
  const bool is_for_tiles = state.tiles_or_null && suits_tiles(*shape);
  const bool has_terms = args.inputs[0].count() > 0 && args.inputs[1].count() > 0;
  if (!is_for_tiles && has_terms && is_product(state, *shape)) return run_product(args, *shape);
  if (!run_sums(state, args, *shape)) return false;
  if (state.form.ends_in_relu) end_in_relu(args, 0, args.outputs[0].count());
  return true;
}

// False only when the shapes are known and do not suit tiles: packing would waste memory.
bool may_suit_tiles(const ConvState& state, const TensorView& w) {
  if (state.form.is_transposed || state.form.is_swapped) return false;
  // Narrower groups leave most of a vector of filters empty.
  const int64_t group = state.attributes.get_int("group", 1);
  EDDY_CHECK(group > 0) << group << " groups";
  if (group > 1 && w.dims[0] / group < cpu::tile_kernels().width / 2) return false;
  return !state.known_shape || suits_tiles(*state.known_shape);
}

void learn_shape(const KernelInit& init, ConvState& state) {
  const TensorType &x = init.inputs[0].tensor, &w = init.inputs[1].tensor;
  const TensorType& y = init.outputs[0].tensor;
  if (!x.is_static() || !w.is_static() || !y.is_static()) return;
  const auto view = [](const TensorType& type) {
    return TensorView{nullptr, type.dims.data(), type.dims.rank(), type.element};
  };
  ConvShape shape;
  const auto make = shape_maker(state.form);
  if (!make(init.attributes, view(x), view(w), view(y), shape).is_ok()) return;
  state.known_shape = shape;
  state.known_x = x.dims;
  state.known_w = w.dims;
}

// For a shape known now: packs the constant weights and finds what a run needs.
void prepare(const KernelInit& init, const ConvState& state, BoundKernel& kernel) {
  EDDY_CHECK(state.known_shape.has_value()) << "nothing is known to prepare for";
  const ConvShape& shape = *state.known_shape;
  if (state.tiles_or_null) {
    kernel.unread_constants = 1 << 1;
    kernel.scratch_bytes = state.tiles_or_null->scratch_bytes(shape);
    return;
  }
  const auto is_empty = [](const Dims& dims) { return dims.count() == int64_t{0}; };
  if (is_empty(state.known_x) || is_empty(state.known_w) || is_product(state, shape)) return;
  const bool has_bias =
      init.inputs.size() > 2 && init.inputs[2].tensor.element == ElementType::kFloat;
  const auto cached = find_plan(state, {state.known_x, state.known_w}, shape, has_bias);
  if (!cached->plan_or_null) return;  // plain loops read the weights
  kernel.unread_constants = 1 << 1;
  kernel.scratch_bytes = cached->plan_or_null->scratch_bytes();
}

// Tiles of convolutions in two steps, where shapes suit or are not known.
void set_two_steps(const ConvState& state, BoundKernel& kernel) {
  if (state.known_shape) {
    const auto conv = two_step_conv_or_null(state, *state.known_shape);
    if (conv == nullptr || !conv->is_large()) return;
    kernel.scratch_bytes = two_step_bytes(*conv);
  }
  kernel.count_tiles = count_two_step_tiles;
  kernel.count_at_once = count_units;
  kernel.shared_bytes = two_step_shared_bytes;
  kernel.run_tile = run_two_step_tile;
}

Result<BoundKernel> bind(const KernelInit& init, const Form& form) {
  if (init.inputs[0].tensor.element != ElementType::kFloat) {
    return unsupported("the fast " + init.op.name + " handles float only");
  }
  auto state = std::make_unique<ConvState>();
  state->attributes = init.attributes;
  state->form = form;
  const auto bind_plain = form.is_transposed ? bind_conv_transpose_reference
                          : form.is_swapped  ? bind_swapped_conv_reference
                                             : bind_conv_reference;
  EDDY_ASSIGN_OR_RETURN(state->plain, bind_plain(init));
  learn_shape(init, *state);
  const TensorView& w = init.constants[1];
  if (!w.is_omitted()) {
    state->constant_weights_or_null = w.as<float>();
    if (may_suit_tiles(*state, w)) {
      const int64_t group = init.attributes.get_int("group", 1);
      const std::string layout = to_string(Dims(w.shape())) + " group " + std::to_string(group);
      state->tiles_or_null = init.pack<TileConv>(w.data, layout, [&] {
        return std::make_shared<const TileConv>(w, group, cpu::tile_kernels(), &init);
      });
    }
  }
  BoundKernel kernel;
  if (state->known_shape && !w.is_omitted() && !form.is_swapped) prepare(init, *state, kernel);
  kernel.run = run_conv;
  const bool is_small_product = !state->known_shape || state->tiles_or_null ||
                                !is_product(*state, *state->known_shape) ||
                                state->known_shape->group_channels() == 0 ||
                                ProductUnits(*state->known_shape).tiles().count() < 2;
  if (!is_small_product) cpu::set_tiles<tiles_of_product, run_product_units>(kernel);
  if (is_small_product && !form.is_transposed && !form.ends_in_relu &&
      (w.is_omitted() || form.is_swapped || state->tiles_or_null)) {
    set_two_steps(*state, kernel);
  }
  kernel.state = std::move(state);
  return kernel;
}

Result<BoundKernel> bind_conv(const KernelInit& init) { return bind(init, {}); }
Result<BoundKernel> bind_conv_relu(const KernelInit& init) {
  return bind(init, {.ends_in_relu = true});
}
Result<BoundKernel> bind_winograd_conv(const KernelInit& init) {
  return bind(init, {.may_round = true});
}
Result<BoundKernel> bind_swapped_conv(const KernelInit& init) {
  return bind(init, {.is_swapped = true});
}
Result<BoundKernel> bind_conv_transpose(const KernelInit& init) {
  return bind(init, {.is_transposed = true});
}

}  // namespace

void add_conv_cpu(KernelRegistry& registry) {
  registry.add({.op = "Conv", .bind = bind_conv, .provider = "tile, onednn", .has_tiles = true});
  registry.add({.op = "ConvRelu",
                .bind = bind_conv_relu,
                .provider = "tile, onednn",
                .domain = "eddy",
                .has_tiles = true});
  registry.add({.op = "WinogradConv",
                .bind = bind_winograd_conv,
                .provider = "tile, onednn",
                .domain = "eddy",
                .has_tiles = true});
  registry.add({.op = "SwappedConv",
                .bind = bind_swapped_conv,
                .provider = "tile",
                .domain = "eddy",
                .has_tiles = true});
  registry.add({.op = "ConvTranspose", .bind = bind_conv_transpose, .provider = "onednn"});
}

}  // namespace eddy
