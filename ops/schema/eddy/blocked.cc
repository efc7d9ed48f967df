// BlockChannels, UnblockChannels, BlockedConv, ExpandedConv, BlockedPool: images whose channels lie
// in blocks.
#include <algorithm>
#include <cstdint>
#include <string>

#include "ops/schema/families.h"
#include "ops/schema/rules/rules.h"
#include "ops/schema/rules/window.h"
#include "ops/schema/unary_operators.h"

namespace eddy {
namespace {

using enum AttributeKind;

constexpr int64_t kMaxBlock = 64;

Status check_block(const std::string& name, int64_t block) {
  if (block >= 1 && block <= kMaxBlock) return Status::ok();
  return invalid_argument(name + " must be from 1 to " + std::to_string(kMaxBlock) + ", not " +
                          std::to_string(block));
}

Status read_block(const InferContext& context, int64_t& block) {
  block = context.attributes().get_int("block", 0);
  return check_block("block", block);
}

int64_t num_blocks(int64_t channels, int64_t block) {
  return channels < 0 ? kUnknownDim : (channels + block - 1) / block;
}

// Input 0 as [batch, blocks, height, width, block].
Status read_blocked(const InferContext& context, int64_t block, const TensorType*& x) {
  EDDY_ASSIGN_OR_RETURN(x, tensor_input(context, 0));
  if (!x->is_ranked) return Status::ok();
  if (x->dims.rank() == 5 && merge_dim(x->dims[4], block)) return Status::ok();
  return invalid_argument("X must have 5 dimensions, the last of size " + std::to_string(block) +
                          ", not " + to_string(x->dims));
}

Status infer_block_channels(InferContext& context) {
  int64_t block;
  EDDY_RETURN_IF_ERROR(read_block(context, block));
  EDDY_ASSIGN_OR_RETURN(const TensorType* x, tensor_input(context, 0));
  TensorType y(x->element);
  if (x->is_ranked) {
    if (x->dims.rank() != 4) {
      return invalid_argument("X must have 4 dimensions, not " + to_string(x->dims));
    }
    const Dims& d = x->dims;
    y = TensorType(x->element, {d[0], num_blocks(d[1], block), d[2], d[3], block});
  }
  context.set_output(0, y);
  return Status::ok();
}

Status infer_unblock_channels(InferContext& context) {
  const int64_t channels = context.attributes().get_int("channels", 0);
  EDDY_ASSIGN_OR_RETURN(const TensorType* x, tensor_input(context, 0));
  TensorType y(x->element);
  if (x->is_ranked) {
    const Dims& d = x->dims;
    const bool has_blocks = d.rank() == 5 && (d[4] < 0 || check_block("block", d[4]).is_ok());
    const bool fits = has_blocks && channels >= 1 && channels <= INT64_MAX - kMaxBlock &&
                      (d[1] < 0 || d[4] < 0 || d[1] == num_blocks(channels, d[4]));
    if (!fits) {
      return invalid_argument(std::to_string(channels) + " channels are not in the blocks of " +
                              to_string(d));
    }
    y = TensorType(x->element, {d[0], channels, d[2], d[3]});
  }
  context.set_output(0, y);
  return Status::ok();
}

// Sets the sizes of the spatial axes of `dims`, from 2 on.
Status resolve_windows(Windows& windows, const Dims& x, Dims& dims) {
  for (int i = 0; i < windows.rank; ++i) {
    WindowAxis axis;
    EDDY_RETURN_IF_ERROR(resolve_axis(windows, i, x[i + 2], axis, dims[i + 2]));
  }
  return Status::ok();
}

Status check_weights(const InferContext& context, const TensorType& x, const Dims& w,
                     int64_t x_block) {
  const int64_t group = context.attributes().get_int("group", 1);
  if (w.rank() != 4 || group < 1) {
    return invalid_argument("W must have 4 dimensions and group be at least 1, not " +
                            to_string(w) + " and " + std::to_string(group));
  }
  if (w[0] >= 0 && w[0] % group != 0) {
    return invalid_argument("W's " + std::to_string(w[0]) + " filters do not divide into " +
                            std::to_string(group) + " groups");
  }
  if (!x.is_ranked || w[1] < 0) return Status::ok();
  int64_t channels;
  if (__builtin_mul_overflow(w[1], group, &channels) || channels > INT64_MAX - kMaxBlock) {
    return invalid_argument("group is too large: " + std::to_string(group));
  }
  if (x.dims[1] < 0 || x.dims[1] == num_blocks(channels, x_block)) return Status::ok();
  return invalid_argument("W takes " + std::to_string(channels) +
                          " channels, which X does not have: " + to_string(x.dims));
}

Status check_activation(const InferContext& context, const char* attribute = "activation") {
  const std::string_view name = context.attributes().get_string(attribute, "");
  const auto has_name = [&](const UnaryOperator& row) {
    return row.name == name && row.types.contains(ElementType::kFloat);
  };
  if (name.empty() || std::ranges::any_of(kUnaryOperators, has_name)) return Status::ok();
  return invalid_argument(std::string(attribute) + " must be an operator of one float, not '" +
                          std::string(name) + "'");
}

// Kernels read one value of B for each filter, and two bounds.
Status check_clamp(const InferContext& context, const char* attribute = "clamp") {
  const size_t num_bounds = context.attributes().get_floats(attribute).size();
  if (num_bounds == 0 || num_bounds == 2) return Status::ok();
  return invalid_argument(std::string(attribute) +
                          " must be the least value and the greatest, not " +
                          std::to_string(num_bounds) + " values");
}

Status infer_blocked_conv(InferContext& context) {
  int64_t block;
  EDDY_RETURN_IF_ERROR(read_block(context, block));
  EDDY_ASSIGN_OR_RETURN(const TensorType* x, tensor_input(context, 0));
  EDDY_ASSIGN_OR_RETURN(const TensorType* w, tensor_input(context, 1));
  // Few channels come in narrower blocks than those of the result, or one by one.
  const int64_t x_block = context.attributes().get_int("x_block", block);
  EDDY_RETURN_IF_ERROR(check_block("x_block", x_block));
  EDDY_RETURN_IF_ERROR(check_activation(context));
  EDDY_RETURN_IF_ERROR(read_blocked(context, x_block, x));
  TensorType y(x->element);
  if (w->is_ranked) {
    EDDY_RETURN_IF_ERROR(check_weights(context, *x, w->dims, x_block));
    EDDY_RETURN_IF_ERROR(check_clamp(context));
    EDDY_RETURN_IF_ERROR(expect_shape(context, 2, "B", {{w->dims[0], "filters"}}));
  }
  if (x->is_ranked && w->is_ranked) {
    const Dims kernel{w->dims[2], w->dims[3]};
    Windows windows;
    EDDY_RETURN_IF_ERROR(parse_windows(context.attributes(), 2, &kernel, windows));
    Dims dims{x->dims[0], num_blocks(w->dims[0], block), 0, 0, block};
    EDDY_RETURN_IF_ERROR(resolve_windows(windows, x->dims, dims));
    EDDY_RETURN_IF_ERROR(expect_addend(context, 3, dims));
    y = TensorType(x->element, dims);
  }
  context.set_output(0, y);
  return Status::ok();
}

// A convolution by windows of one element, then a depthwise one.
Status infer_expanded_conv(InferContext& context) {
  int64_t block;
  EDDY_RETURN_IF_ERROR(read_block(context, block));
  EDDY_ASSIGN_OR_RETURN(const TensorType* x, tensor_input(context, 0));
  EDDY_ASSIGN_OR_RETURN(const TensorType* w, tensor_input(context, 1));
  EDDY_ASSIGN_OR_RETURN(const TensorType* depthwise, tensor_input(context, 3));
  for (const char* name : {"activation", "inner_activation"}) {
    EDDY_RETURN_IF_ERROR(check_activation(context, name));
  }
  for (const char* name : {"clamp", "inner_clamp"}) {
    EDDY_RETURN_IF_ERROR(check_clamp(context, name));
  }
  EDDY_RETURN_IF_ERROR(read_blocked(context, block, x));
  TensorType y(x->element);
  if (w->is_ranked) {
    EDDY_RETURN_IF_ERROR(check_weights(context, *x, w->dims, block));
    if (!merge_dim(w->dims[2], 1) || !merge_dim(w->dims[3], 1)) {
      return invalid_argument("W must be windows of one element, not " + to_string(w->dims));
    }
    EDDY_RETURN_IF_ERROR(expect_shape(context, 2, "B", {{w->dims[0], "filters"}}));
  }
  if (x->is_ranked && w->is_ranked && depthwise->is_ranked) {
    const Dims& of_each = depthwise->dims;
    if (of_each.rank() != 4 || !merge_dim(of_each[0], w->dims[0]) || !merge_dim(of_each[1], 1)) {
      return invalid_argument("depthwise_W must be windows of one channel for each of " +
                              std::to_string(w->dims[0]) + " filters, not " + to_string(of_each));
    }
    EDDY_RETURN_IF_ERROR(expect_shape(context, 4, "depthwise_B", {{w->dims[0], "filters"}}));
    const Dims kernel{of_each[2], of_each[3]};
    Windows windows;
    EDDY_RETURN_IF_ERROR(parse_windows(context.attributes(), 2, &kernel, windows));
    Dims dims{x->dims[0], num_blocks(w->dims[0], block), 0, 0, block};
    EDDY_RETURN_IF_ERROR(resolve_windows(windows, x->dims, dims));
    y = TensorType(x->element, dims);
  }
  context.set_output(0, y);
  return Status::ok();
}

double expanded_conv_flops(const InferContext& context, std::span<const ValueType> outputs) {
  const Dims &x = context.input(0).tensor.dims, &w = context.input(1).tensor.dims;
  const Dims& depthwise = context.input(3).tensor.dims;
  const double results = static_cast<double>(outputs[0].tensor.dims.count().value_or(0));
  if (x.rank() != 5 || w.rank() != 4 || depthwise.rank() != 4) return 0;
  double expansion = 2 * static_cast<double>(w[0]) * static_cast<double>(w[1]);
  for (const int axis : {0, 2, 3}) expansion *= static_cast<double>(x[axis]);
  return expansion + 2 * results * static_cast<double>(depthwise[2] * depthwise[3]);
}

double blocked_conv_flops(const InferContext& context, std::span<const ValueType> outputs) {
  const Dims& w = context.input(1).tensor.dims;
  double taps = 2;
  for (int i = 1; i < w.rank(); ++i) taps *= static_cast<double>(w[i]);
  return taps * static_cast<double>(outputs[0].tensor.dims.count().value_or(0));
}

Status infer_blocked_pool(InferContext& context) {
  int64_t block;
  EDDY_RETURN_IF_ERROR(read_block(context, block));
  const std::string_view kind = context.attributes().get_string("kind", "");
  if (kind != "max" && kind != "average") {
    return invalid_argument("kind must be 'max' or 'average', not '" + std::string(kind) + "'");
  }
  const TensorType* x;
  EDDY_RETURN_IF_ERROR(read_blocked(context, block, x));
  TensorType y = *x;
  if (x->is_ranked && context.attributes().get_int("global", 0) != 0) {
    y.dims[2] = y.dims[3] = 1;
  } else if (x->is_ranked) {
    Windows windows;
    if (context.attributes().get_ints("kernel_shape").empty()) {
      return invalid_argument("kernel_shape is missing; a pool of all positions has global = 1");
    }
    EDDY_RETURN_IF_ERROR(parse_windows(context.attributes(), 2, nullptr, windows));
    EDDY_RETURN_IF_ERROR(check_pads(windows));
    EDDY_RETURN_IF_ERROR(resolve_windows(windows, x->dims, y.dims));
  }
  context.set_output(0, y);
  return Status::ok();
}

double blocked_pool_flops(const InferContext& context, std::span<const ValueType>) {
  return static_cast<double>(context.input(0).tensor.dims.count().value_or(0));
}

std::vector<FormalAttribute> window_attributes(std::vector<FormalAttribute> more) {
  std::vector<FormalAttribute> all = {
      attribute("auto_pad", kString), attribute("block", kInt, true),
      attribute("dilations", kInts),  attribute("kernel_shape", kInts),
      attribute("pads", kInts),       attribute("strides", kInts)};
  for (FormalAttribute& one : more) all.push_back(std::move(one));
  return all;
}

}  // namespace

Status add_blocked_schemas(OpTable& table) {
  constexpr TypeSet kFloat = {ElementType::kFloat};
  return add_schemas(
      table,
      {{.name = "BlockChannels",
        .domain = "eddy",
        .inputs = {in("X", kFloat)},
        .attributes = {attribute("block", kInt, true)},
        .infer = infer_block_channels},
       {.name = "UnblockChannels",
        .domain = "eddy",
        .inputs = {in("X", kFloat)},
        .attributes = {attribute("channels", kInt, true)},
        .infer = infer_unblock_channels},
       {.name = "BlockedConv",
        .domain = "eddy",
        .inputs = {in("X", kFloat), in("W", kFloat), in("B", kFloat, InputFlag::kOptional),
                   in("addend", kFloat, InputFlag::kOptional)},
        .attributes = window_attributes(
            {attribute("activation", kString), attribute("alpha", AttributeKind::kFloat),
             attribute("beta", AttributeKind::kFloat), attribute("clamp", kFloats),
             attribute("group", kInt), attribute("x_block", kInt)}),
        .infer = infer_blocked_conv,
        .in_place_inputs = uint64_t{1} << 3,
        .flops = blocked_conv_flops},
       {.name = "ExpandedConv",
        .domain = "eddy",
        .inputs = {in("X", kFloat), in("W", kFloat), in("B", kFloat, InputFlag::kOptional),
                   in("depthwise_W", kFloat), in("depthwise_B", kFloat, InputFlag::kOptional)},
        .attributes = window_attributes(
            {attribute("activation", kString), attribute("alpha", AttributeKind::kFloat),
             attribute("beta", AttributeKind::kFloat), attribute("clamp", kFloats),
             attribute("inner_activation", kString),
             attribute("inner_alpha", AttributeKind::kFloat),
             attribute("inner_beta", AttributeKind::kFloat), attribute("inner_clamp", kFloats)}),
        .infer = infer_expanded_conv,
        .flops = expanded_conv_flops},
       {.name = "BlockedPool",
        .domain = "eddy",
        .inputs = {in("X", kFloat)},
        .attributes = window_attributes({flag("ceil_mode"), flag("count_include_pad"),
                                         flag("global"), attribute("kind", kString, true)}),
        .infer = infer_blocked_pool,
        .flops = blocked_pool_flops}});
}

}  // namespace eddy
