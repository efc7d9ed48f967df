// MaxPool, AveragePool, LpPool, GlobalMaxPool, GlobalAveragePool, GlobalLpPool,
// eddy.ChannelsLastMaxPool, eddy.ChannelsLastAveragePool.
#include <string>

#include "ops/schema/families.h"
#include "ops/schema/rules/batch_rules.h"
#include "ops/schema/rules/image_order.h"
#include "ops/schema/rules/rules.h"
#include "ops/schema/rules/window.h"

namespace eddy {
namespace {

using enum AttributeKind;

constexpr TypeSet kByteTypes = {ElementType::kInt8, ElementType::kUint8};

Status read_x(const InferContext& context, const TensorType*& x) {
  EDDY_ASSIGN_OR_RETURN(x, tensor_input(context, 0));
  if (!x->is_ranked || x->dims.rank() >= 3) return Status::ok();
  return invalid_argument("X of a pool must have at least 3 dimensions, not " + to_string(x->dims));
}

Status infer_pool(InferContext& context) {
  const TensorType* x;
  EDDY_RETURN_IF_ERROR(read_x(context, x));
  TensorType y(x->element);
  if (x->is_ranked) {
    Windows windows;
    EDDY_RETURN_IF_ERROR(parse_windows(context.attributes(), x->dims.rank() - 2, nullptr, windows));
    EDDY_RETURN_IF_ERROR(check_pads(windows));
    Dims dims{x->dims[0], x->dims[1]};
    for (int i = 0; i < windows.rank; ++i) {
      WindowAxis axis;
      int64_t output;
      EDDY_RETURN_IF_ERROR(resolve_axis(windows, i, x->dims[i + 2], axis, output));
      dims.push_back(output);
    }
    y = TensorType(x->element, dims);
  }
  context.set_output(0, y);
  y.element = ElementType::kInt64;
  context.set_output(1, y);
  return Status::ok();
}

Status check_norm(const InferContext& context) {
  const int64_t p = context.attributes().get_int("p", 2);
  if (p >= 1) return Status::ok();
  return invalid_argument("p must be at least 1, not " + std::to_string(p));
}

Status infer_lp_pool(InferContext& context) {
  EDDY_RETURN_IF_ERROR(check_norm(context));
  return infer_pool(context);
}

Status infer_global_pool(InferContext& context) {
  const TensorType* x;
  EDDY_RETURN_IF_ERROR(read_x(context, x));
  TensorType y = *x;
  for (int i = 2; y.is_ranked && i < y.dims.rank(); ++i) y.dims[i] = 1;
  context.set_output(0, y);
  return Status::ok();
}

Status infer_global_lp_pool(InferContext& context) {
  EDDY_RETURN_IF_ERROR(check_norm(context));
  return infer_global_pool(context);
}

double pool_flops(const InferContext& context, std::span<const ValueType> outputs) {
  double taps = 1;
  for (int64_t size : context.attributes().get_ints("kernel_shape")) {
    taps *= static_cast<double>(size);
  }
  return taps * static_cast<double>(outputs[0].tensor.dims.count().value_or(0));
}

double global_pool_flops(const InferContext& context, std::span<const ValueType>) {
  return static_cast<double>(context.input(0).tensor.dims.count().value_or(0));
}

// Where a maximum is, is counted from the first sample on.
Status batch_pool(BatchContext& context) {
  EDDY_RETURN_IF_ERROR(batch_images(context));
  if (context.num_outputs() == 1 || !context.is_along(0)) return Status::ok();
  return unsupported("numbers the places of its maxima through all samples (output 1)");
}

OpDef pool(const char* name, int dilations_since, FormalAttribute extra) {
  return {.name = name,
          .inputs = {in("X", kFloatTypes)},
          .attributes = {attribute("auto_pad", kString), since(10, flag("ceil_mode")),
                         since(dilations_since, attribute("dilations", kInts)),
                         attribute("kernel_shape", kInts, true), attribute("pads", kInts),
                         attribute("strides", kInts), std::move(extra)},
          .infer = infer_pool,
          .flops = pool_flops,
          .batch = batch_pool};
}

// From opset 8 on, where the maxima are is a second output.
OpDef max_pool(int since_version, int max_outputs) {
  OpDef def = pool("MaxPool", 10, since(8, flag("storage_order")));
  def.since_version = since_version;
  def.max_outputs = max_outputs;
  def.inputs[0].later_types = kByteTypes;
  def.inputs[0].later_since = 12;
  return def;
}

OpDef channels_last_pool(const char* name) {
  return {
      .name = name,
      .domain = "eddy",
      .inputs = {in("X", kFloatTypes)},
      .attributes = {attribute("auto_pad", kString), flag("ceil_mode"), flag("count_include_pad"),
                     attribute("dilations", kInts), attribute("kernel_shape", kInts, true),
                     attribute("pads", kInts), attribute("strides", kInts)},
      .infer = in_order(ImageOrder::kChannelsLast, infer_pool),
      .flops = pool_flops};
}

OpDef lp_pool() {
  return {.name = "LpPool",
          .since_version = 2,
          .inputs = {in("X", kFloatTypes)},
          .attributes = {attribute("auto_pad", kString), since(18, flag("ceil_mode")),
                         since(18, attribute("dilations", kInts)),
                         attribute("kernel_shape", kInts, true), attribute("p", kInt),
                         attribute("pads", kInts), attribute("strides", kInts)},
          .infer = infer_lp_pool,
          .flops = pool_flops};
}

OpDef global_pool(const char* name) {
  return {.name = name,
          .inputs = {in("X", kFloatTypes)},
          .infer = infer_global_pool,
          .flops = global_pool_flops,
          .batch = batch_pool};
}

OpDef global_lp_pool() {
  OpDef def = global_pool("GlobalLpPool");
  def.since_version = 2;
  def.attributes = {attribute("p", kInt)};
  def.infer = infer_global_lp_pool;
  return def;
}

}  // namespace

Status add_pool_schemas(OpTable& table) {
  return add_schemas(
      table,
      {max_pool(1, 1), max_pool(8, 2), pool("AveragePool", 19, since(7, flag("count_include_pad"))),
       lp_pool(), global_pool("GlobalMaxPool"), global_pool("GlobalAveragePool"), global_lp_pool(),
       channels_last_pool("ChannelsLastMaxPool"), channels_last_pool("ChannelsLastAveragePool")});
}

}  // namespace eddy
