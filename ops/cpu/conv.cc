// Conv and ConvTranspose for float: register tiles for small convolutions with constant weights,
// oneDNN for large ones, the plain loop for what neither does.
#include <string>

#include "ops/cpu/families.h"
#include "ops/cpu/onednn/conv.h"
#include "ops/cpu/shape_cache.h"
#include "ops/cpu/tile_conv.h"
#include "ops/reference/conv.h"

namespace eddy {
namespace {

using cpu::TileConv;
using onednn::ConvPlan;

// A plan, or null: oneDNN has none for this shape.
struct CachedPlan {
  std::unique_ptr<ConvPlan> plan_or_null;
};

struct ConvState : KernelState {
  Attributes attributes;
  bool is_transposed = false;
  const float* constant_weights_or_null = nullptr;
  std::unique_ptr<TileConv> tiles_or_null;
  BoundKernel plain;
  cpu::ShapeCache<std::pair<Dims, Dims>, CachedPlan> plans;
};

Dims dims_of(const TensorView& view) { return Dims(view.shape()); }

Status make_shape(const ConvState& state, const KernelArgs& args, ConvShape& shape) {
  const auto make = state.is_transposed ? make_transposed_conv_shape : make_conv_shape;
  return make(state.attributes, args.inputs[0], args.inputs[1], args.outputs[0], shape);
}

std::shared_ptr<const CachedPlan> find_plan(const ConvState& state, const KernelArgs& args,
                                            const ConvShape& shape) {
  const std::pair key(dims_of(args.inputs[0]), dims_of(args.inputs[1]));
  if (auto known = state.plans.find_or_null(key)) return known;
  auto made = std::make_shared<CachedPlan>();
  Result<std::unique_ptr<ConvPlan>> plan =
      ConvPlan::create(shape, {.is_transposed = state.is_transposed,
                               .has_bias = args.has_input(2),
                               .constant_weights_or_null = state.constant_weights_or_null});
  if (plan.is_ok()) made->plan_or_null = std::move(*plan);
  state.plans.add(key, made);
  return made;
}

bool run_plain(const ConvState& state, const KernelArgs& args) {
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

bool run_conv(const KernelArgs& args) {
  const auto& state = static_cast<const ConvState&>(*args.state);
  if (args.outputs[0].count() == 0) return true;
  ConvShape shape;
  Status status = make_shape(state, args, shape);
  if (!status.is_ok()) return args.fail(std::move(status));
  float* y = args.outputs[0].mutable_as<float>();
  if (state.tiles_or_null && suits_tiles(shape)) {
    status = state.tiles_or_null->run(shape, args.inputs[0].as<float>(), bias_or_null(args), y,
                                      *args.scratch);
    return status.is_ok() || args.fail(std::move(status));
  }
  if (args.inputs[0].count() == 0 || args.inputs[1].count() == 0) return run_plain(state, args);
  const auto cached = find_plan(state, args, shape);
  if (!cached->plan_or_null) return run_plain(state, args);
  const ConvPlan& plan = *cached->plan_or_null;
  void* scratch = args.scratch->reserve(plan.scratch_bytes());
  if (scratch == nullptr) return args.fail(resource_exhausted("no memory for a convolution"));
  status = plan.run(args.inputs[0].as<float>(), args.inputs[1].as<float>(), bias_or_null(args), y,
                    scratch);
  return status.is_ok() || args.fail(std::move(status));
}

// False only when the shapes are known and do not suit tiles: packing would waste memory.
bool may_suit_tiles(const KernelInit& init) {
  const TensorView& w = init.constants[1];
  const TensorType &x = init.inputs[0].tensor, &y = init.outputs[0].tensor;
  // Narrower groups leave most of a vector of filters empty.
  const int64_t group = init.attributes.get_int("group", 1);
  if (group > 1 && w.dims[0] / group < cpu::tile_kernels().width / 2) return false;
  if (!x.is_static() || !y.is_static()) return true;
  ConvShape shape;
  const TensorView x_view{nullptr, x.dims.data(), x.dims.rank(), x.element};
  const TensorView y_view{nullptr, y.dims.data(), y.dims.rank(), y.element};
  return make_conv_shape(init.attributes, x_view, w, y_view, shape).is_ok() && suits_tiles(shape);
}

Result<BoundKernel> bind(const KernelInit& init, bool is_transposed) {
  if (init.inputs[0].tensor.element != ElementType::kFloat) {
    return unsupported("the fast " + init.op.name + " handles float only");
  }
  auto state = std::make_unique<ConvState>();
  state->attributes = init.attributes;
  state->is_transposed = is_transposed;
  const auto bind_plain = is_transposed ? bind_conv_transpose_reference : bind_conv_reference;
  EDDY_ASSIGN_OR_RETURN(state->plain, bind_plain(init));
  const TensorView& w = init.constants[1];
  if (!w.is_omitted()) {
    state->constant_weights_or_null = w.as<float>();
    if (!is_transposed && may_suit_tiles(init)) {
      const int64_t group = init.attributes.get_int("group", 1);
      state->tiles_or_null = std::make_unique<TileConv>(w, group);
    }
  }
  BoundKernel kernel;
  kernel.run = run_conv;
  kernel.state = std::move(state);
  return kernel;
}

Result<BoundKernel> bind_conv(const KernelInit& init) { return bind(init, false); }
Result<BoundKernel> bind_conv_transpose(const KernelInit& init) { return bind(init, true); }

}  // namespace

void add_conv_cpu(KernelRegistry& registry) {
  registry.add({.op = "Conv", .bind = bind_conv, .library = "tile, onednn"});
  registry.add({.op = "ConvTranspose", .bind = bind_conv_transpose, .library = "onednn"});
}

}  // namespace eddy
