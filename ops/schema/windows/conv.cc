// Conv, ConvTranspose, DeformConv, eddy.ConvRelu, eddy.ChannelsLastConv, eddy.WinogradConv,
// eddy.SwappedConv.
#include <string>

#include "ops/schema/families.h"
#include "ops/schema/rules/batch_rules.h"
#include "ops/schema/rules/image_order.h"
#include "ops/schema/rules/rules.h"
#include "ops/schema/rules/window.h"

namespace eddy {
namespace {

using enum AttributeKind;

// X and W where their ranks are known and agree; null pointers where not.
struct ConvInputs {
  const Dims* x = nullptr;
  const Dims* w = nullptr;
  Dims kernel;  // spatial dimensions of W
};

Status conv_rank(const Dims& dims, std::string_view name) {
  if (dims.rank() >= 3) return Status::ok();
  return invalid_argument(std::string(name) +
                          " of a convolution must have at least 3 dimensions, not " +
                          to_string(dims));
}

Status read_conv_inputs(const InferContext& context, ConvInputs& in) {
  EDDY_RETURN_IF_ERROR(expect_same_element(context, 0, context.num_inputs()));
  EDDY_ASSIGN_OR_RETURN(const TensorType* x, tensor_input(context, 0));
  EDDY_ASSIGN_OR_RETURN(const TensorType* w, tensor_input(context, 1));
  if (x->is_ranked) in.x = &x->dims;
  if (w->is_ranked) in.w = &w->dims;
  if (in.x) EDDY_RETURN_IF_ERROR(conv_rank(*in.x, "X"));
  if (in.w) EDDY_RETURN_IF_ERROR(conv_rank(*in.w, "W"));
  if (in.x && in.w && in.x->rank() != in.w->rank()) {
    return invalid_argument("X and W must have the same number of dimensions: " + to_string(*in.x) +
                            " and " + to_string(*in.w));
  }
  for (int i = 2; in.w && i < in.w->rank(); ++i) in.kernel.push_back((*in.w)[i]);
  return Status::ok();
}

Status read_group(const InferContext& context, int64_t& group) {
  group = context.attributes().get_int("group", 1);
  if (group >= 1) return Status::ok();
  return invalid_argument("group must be at least 1, not " + std::to_string(group));
}

Status check_bias(const InferContext& context, size_t input, int64_t channels) {
  return expect_shape(context, input, "B", {{channels, "output channels"}});
}

Status check_channels(const ConvInputs& in, int64_t group) {
  const int64_t filters = (*in.w)[0];
  if (filters >= 0 && filters % group != 0) {
    return invalid_argument("W's " + std::to_string(filters) +
                            " output channels do not divide into " + std::to_string(group) +
                            " groups");
  }
  if (!in.x) return Status::ok();
  const int64_t channels = (*in.x)[1], each = (*in.w)[1];
  if (channels >= 0 && (channels % group != 0 || (each >= 0 && channels / group != each))) {
    return invalid_argument("X has " + std::to_string(channels) + " channels but W takes " +
                            std::to_string(each) + " in each of " + std::to_string(group) +
                            " groups");
  }
  return Status::ok();
}

Result<TensorType> conv_result(const InferContext& context) {
  ConvInputs in;
  int64_t group;
  EDDY_RETURN_IF_ERROR(read_conv_inputs(context, in));
  EDDY_RETURN_IF_ERROR(read_group(context, group));
  const ElementType element = context.input(0).tensor.element;
  if (in.w) {
    EDDY_RETURN_IF_ERROR(check_channels(in, group));
    EDDY_RETURN_IF_ERROR(check_bias(context, 2, (*in.w)[0]));
  }
  if (!in.x) return TensorType(element);
  Windows windows;
  EDDY_RETURN_IF_ERROR(
      parse_windows(context.attributes(), in.x->rank() - 2, in.w ? &in.kernel : nullptr, windows));
  Dims dims{(*in.x)[0], in.w ? (*in.w)[0] : kUnknownDim};
  for (int i = 0; i < windows.rank; ++i) {
    WindowAxis axis;
    int64_t output;
    EDDY_RETURN_IF_ERROR(resolve_axis(windows, i, (*in.x)[i + 2], axis, output));
    dims.push_back(output);
  }
  return TensorType(element, dims);
}

Status infer_conv(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType y, conv_result(context));
  context.set_output(0, y);
  return Status::ok();
}

Status infer_conv_relu(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType y, conv_result(context));
  context.set_output(0, y);
  return y.is_ranked ? expect_addend(context, 3, y.dims) : Status::ok();
}

// Multiply-adds for each element of `dims`: input channels of a group times the kernel's taps.
double taps(const Dims& w, int first) {
  double product = 1;
  for (int i = first; i < w.rank(); ++i) product *= static_cast<double>(w[i]);
  return product;
}

double conv_flops(const InferContext& context, std::span<const ValueType> outputs) {
  return 2.0 * taps(context.input(1).tensor.dims, 1) *
         static_cast<double>(outputs[0].tensor.dims.count().value_or(0));
}

double swapped_conv_flops(const InferContext& context, std::span<const ValueType> outputs) {
  const Dims& w = context.input(1).tensor.dims;
  if (w.rank() != 4) return 0;
  return 2.0 * taps(w, 2) * static_cast<double>(w[0]) *
         static_cast<double>(outputs[0].tensor.dims.count().value_or(0));
}

Status check_transposed_channels(const ConvInputs& in) {
  if (!in.x || !in.w) return Status::ok();
  const int64_t channels = (*in.x)[1], filters = (*in.w)[0];
  if (merge_dim(channels, filters)) return Status::ok();
  return invalid_argument("X has " + std::to_string(channels) + " channels but W takes " +
                          std::to_string(filters));
}

Status infer_conv_transpose(InferContext& context) {
  ConvInputs in;
  int64_t group;
  EDDY_RETURN_IF_ERROR(read_conv_inputs(context, in));
  EDDY_RETURN_IF_ERROR(read_group(context, group));
  EDDY_RETURN_IF_ERROR(check_transposed_channels(in));
  const ElementType element = context.input(0).tensor.element;
  const int64_t each = in.w ? (*in.w)[1] : kUnknownDim;
  int64_t channels = kUnknownDim;
  if (each >= 0 && __builtin_mul_overflow(each, group, &channels)) {
    return invalid_argument("group is too large: " + std::to_string(group));
  }
  if (in.w && (*in.w)[0] >= 0 && (*in.w)[0] % group != 0) {
    return invalid_argument("W's " + std::to_string((*in.w)[0]) +
                            " input channels do not divide into " + std::to_string(group) +
                            " groups");
  }
  if (channels >= 0) EDDY_RETURN_IF_ERROR(check_bias(context, 2, channels));
  if (!in.x) {
    context.set_output(0, TensorType(element));
    return Status::ok();
  }
  TransposedWindows windows;
  EDDY_RETURN_IF_ERROR(parse_transposed_windows(context.attributes(), in.x->rank() - 2,
                                                in.w ? &in.kernel : nullptr, windows));
  Dims dims{(*in.x)[0], channels};
  for (int i = 0; i < windows.windows.rank; ++i) {
    WindowAxis axis;
    int64_t output;
    EDDY_RETURN_IF_ERROR(resolve_transposed_axis(windows, i, (*in.x)[i + 2], axis, output));
    dims.push_back(output);
  }
  context.set_output(0, TensorType(element, dims));
  return Status::ok();
}

double conv_transpose_flops(const InferContext& context, std::span<const ValueType>) {
  return 2.0 * taps(context.input(1).tensor.dims, 1) *
         static_cast<double>(context.input(0).tensor.dims.count().value_or(0));
}

// Of DeformConv: what is given for each tap of each group of channels that moves together.
Status check_by_tap(const InferContext& context, size_t input, std::string_view name,
                    int64_t channels, const Dims& y) {
  return expect_shape(context, input, name,
                      {{y[0], "N"}, channels, {y[2], "height"}, {y[3], "width"}});
}

Status infer_deform_conv(InferContext& context) {
  ConvInputs in;
  int64_t group;
  EDDY_RETURN_IF_ERROR(read_conv_inputs(context, in));
  EDDY_RETURN_IF_ERROR(read_group(context, group));
  const int64_t moved = context.attributes().get_int("offset_group", 1);
  if (moved < 1) {
    return invalid_argument("offset_group must be at least 1, not " + std::to_string(moved));
  }
  context.set_output(0, TensorType(context.input(0).tensor.element));
  if (!in.x || !in.w) return Status::ok();
  if (in.x->rank() != 4) {
    return unsupported("X of DeformConv must be [N, C, H, W], not " + to_string(*in.x));
  }
  if ((*in.x)[1] >= 0 && (*in.x)[1] % moved != 0) {
    return invalid_argument("X's " + std::to_string((*in.x)[1]) +
                            " channels do not divide into an offset_group of " +
                            std::to_string(moved));
  }
  EDDY_RETURN_IF_ERROR(check_channels(in, group));
  EDDY_RETURN_IF_ERROR(check_bias(context, 3, (*in.w)[0]));
  Windows windows;
  EDDY_RETURN_IF_ERROR(parse_windows(context.attributes(), 2, &in.kernel, windows));
  Dims y{(*in.x)[0], (*in.w)[0], kUnknownDim, kUnknownDim};
  for (int i = 0; i < 2; ++i) {
    WindowAxis axis;
    EDDY_RETURN_IF_ERROR(resolve_axis(windows, i, (*in.x)[i + 2], axis, y[i + 2]));
  }
  int64_t by_tap = kUnknownDim, twice = kUnknownDim;
  if (in.kernel.is_static() &&
      (__builtin_mul_overflow(in.kernel.count().value_or(INT64_MAX), moved, &by_tap) ||
       __builtin_mul_overflow(by_tap, 2, &twice))) {
    return invalid_argument("offset_group is too large: " + std::to_string(moved));
  }
  EDDY_RETURN_IF_ERROR(check_by_tap(context, 2, "offset", twice, y));
  EDDY_RETURN_IF_ERROR(check_by_tap(context, 4, "mask", by_tap, y));
  context.set_output(0, TensorType(context.input(0).tensor.element, y));
  return Status::ok();
}

std::vector<FormalInput> conv_inputs() {
  return {in("X", kFloatTypes), in("W", kFloatTypes), in("B", kFloatTypes, InputFlag::kOptional)};
}

std::vector<FormalAttribute> conv_attributes() {
  return {attribute("auto_pad", kString), attribute("dilations", kInts),
          attribute("group", kInt),       attribute("kernel_shape", kInts),
          attribute("pads", kInts),       attribute("strides", kInts)};
}

std::vector<FormalAttribute> channels_last_attributes() {
  std::vector<FormalAttribute> attributes = conv_attributes();
  attributes.push_back(flag("relu"));
  return attributes;
}

std::vector<FormalInput> conv_relu_inputs() {
  std::vector<FormalInput> inputs = conv_inputs();
  inputs.push_back(in("addend", kFloatTypes, InputFlag::kOptional));
  return inputs;
}

}  // namespace

Status add_conv_schemas(OpTable& table) {
  return add_schemas(
      table, {{.name = "Conv",
               .inputs = conv_inputs(),
               .attributes = conv_attributes(),
               .infer = infer_conv,
               .flops = conv_flops,
               .batch = batch_images},
              {.name = "ConvRelu",
               .domain = "eddy",
               .inputs = conv_relu_inputs(),
               .attributes = conv_attributes(),
               .infer = infer_conv_relu,
               .flops = conv_flops},
              {.name = "ChannelsLastConv",
               .domain = "eddy",
               .inputs = conv_relu_inputs(),
               .attributes = channels_last_attributes(),
               .infer = in_order(ImageOrder::kChannelsLast, infer_conv_relu),
               .flops = conv_flops},
              {.name = "WinogradConv",
               .domain = "eddy",
               .inputs = conv_inputs(),
               .attributes = conv_attributes(),
               .infer = infer_conv,
               .flops = conv_flops},
              {.name = "SwappedConv",
               .domain = "eddy",
               .inputs = {in("X", kFloatTypes), in("W", kFloatTypes)},
               .attributes = conv_attributes(),
               .infer = in_order(ImageOrder::kSwapped, infer_conv),
               .flops = swapped_conv_flops},
              {.name = "ConvTranspose",
               .inputs = conv_inputs(),
               .attributes = {attribute("auto_pad", kString), attribute("dilations", kInts),
                              attribute("group", kInt), attribute("kernel_shape", kInts),
                              attribute("output_padding", kInts), attribute("output_shape", kInts),
                              attribute("pads", kInts), attribute("strides", kInts)},
               .infer = infer_conv_transpose,
               .flops = conv_transpose_flops,
               .batch = batch_images},
              {.name = "DeformConv",
               .since_version = 19,
               .inputs = {in("X", kFloatTypes), in("W", kFloatTypes), in("offset", kFloatTypes),
                          in("B", kFloatTypes, InputFlag::kOptional),
                          in("mask", kFloatTypes, InputFlag::kOptional)},
               .attributes = {attribute("dilations", kInts), attribute("group", kInt),
                              attribute("kernel_shape", kInts), attribute("offset_group", kInt),
                              attribute("pads", kInts), attribute("strides", kInts)},
               .infer = infer_deform_conv,
               .flops = conv_flops}});
}

}  // namespace eddy
