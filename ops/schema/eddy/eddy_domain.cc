// add_eddy_schemas: the operators of domain "eddy", which express in an ONNX file what ONNX cannot.
//
//   HostPredicate   calls a host function of the session by name. Inputs: any tensors.
//                   Attributes: `name` (required, the function's name) and `type` (the type of
//                   the one output; a bool scalar when absent, so that it can drive a loop).
//   DequantizeMatMul   A times (B - zero_point) * scale, in float, as ONNX's DequantizeLinear and
//                   MatMul do it, with B kept in bytes: float A[..., k], int8 or uint8 B[k, n],
//                   float scale and, optional, zero_point of B's type: one value, or n. Made by
//                   graph/compile/simplify from constant weights.
//   PermutedMatMul  matrix products of A and B, each with its axes in an order of its own, times
//                   `alpha` (1), plus a row `bias`, in an order again, plus `addend` of the
//                   result's shape: Transpose by `perm_a` and `perm_b`, MatMul, Mul, Add, Transpose
//                   by `perm_y`, Add. In place of an order, `place_a` and `place_b` say where in
//                   the tensor given the operand lies: a first element, then size and stride of
//                   each axis. Floats; A and B have at least two axes. Made by
//                   graph/compile/fold_into_products; for the CPU of orders alone.
//   PackMatrix      a matrix B[k, n], or `turned` B[n, k], in panels of `width` columns, k rows
//   each,
//                   with zeros beyond n, and 16 zeros behind them. Floats. Made by
//                   graph/compile/pack_before_loops for the CPU, as is
//   PackedMatMul    A[..., k] times such a B of `columns` columns, plus a `row`.
//   SplitMatMul     A[..., k] times B[k, n], plus a `row`, in parts of the last axis that have the
//                   sizes `split`. Floats. Made by graph/compile/fold_into_products for the CPU.
//   ConvRelu        Conv with `addend`, of the result's shape, added, and Relu at last. Made by
//                   graph/compile/fold_into_products, too.
//   ChannelsLastConv   Conv of images [n, h, w, c] by filters [f, h, w, c], with `addend`, laid out
//                   as the result, added, and with `relu` bounded from below. Made by
//                   graph/compile/lay_out_images, as are the next two.
//   ChannelsLastMaxPool, ChannelsLastAveragePool   MaxPool and AveragePool of such images.
//   WinogradConv    Conv whose sums may be rounded as Winograd's transforms round them. Made by
//                   graph/compile/allow_winograd.
//   SwappedConv     Conv of images [c, n, h, w] and windows [c, f, h, w] into [f, n, h, w]: the
//                   first two axes are swapped everywhere. Sums may be rounded as Winograd's
//                   transforms round them. Made by graph/compile/fold_into_products for the CPU.
//   Fused           what several elementwise operators make of each element, inputs broadcast as
//                   theirs would be. Attributes: `program` (graph/ir/expression.h, functions by the
//                   device's names) and `to` (the results' types). Made by graph/compile/fuse for a
//                   device; the CPU has no kernel of it.
//   FusedParts      Fused of parts of its inputs, read where they lie: for each input, `parts` has
//                   an axis (-1: all of the input), the first index there and how many follow. Made
//                   by graph/compile/fuse, too, where a Split's parts are read by such nodes alone.
//   BlockChannels, UnblockChannels   float images [n, c, h, w] with channels in blocks of `block`,
//                   [n, c / block, h, w, block] with zeros beyond the last one; and back to
//                   `channels` of them. Made by graph/compile/lay_out_images, as are the next two.
//   BlockedConv     Conv whose X is in such blocks, or in others of `x_block`, with
//                   `addend`, laid out as the result, added, bounded to `clamp` (two floats), and
//                   `activation`, an operator of one float (with its `alpha` and `beta`), at last.
//   ExpandedConv    two BlockedConv, by windows of one element and a depthwise one: what is said of
//                   the first alone is `inner_clamp`, `inner_activation`, `inner_alpha`,
//                   `inner_beta`. Made by graph/compile/join_expansions.
//   BlockedPool     MaxPool or AveragePool (`kind`: max, average) of such; `global`: of all.
//   FoldKey, KeyedUniform   random numbers by key: a key of 64 bits that a key and whole numbers
//                   give (a training's step, a loop's iteration, a node), and numbers uniform in
//                   [0, 1) by a key alone, float or double (`dtype`), of the shape of `like` or of
//                   attribute `shape`. Made by ops/gradient/keyed_random for training.
//   UpdateParameter  one step of an optimizer for one tensor: update_form.h
//   ToDevice, ToHost   the same tensor in the other memory: a device's, the host's. Made by
//                   graph/compile/place; on the CPU they are plain copies.
//   Await           the same tensor, once the host may read its bytes: stands on a CPU stream
//                   behind a ToHost whose result decides a shape.
//   CheckedCall     a tensor as it is, where the rule of a function of other operators allows what
//                   it is called with: graph/ir/checked_call.h
//   AllReduce and what else talks to other ranks stand in collective.h.
//
// The kernel of HostPredicate comes from the session, which owns the functions. While and CaseOf of
// the same domain are control nodes of the graph, not operators.
#include <algorithm>

#include "graph/ir/checked_call.h"
#include "ops/schema/eddy/update_parameter.h"
#include "ops/schema/rules/batch_rules.h"
#include "ops/schema/rules/index_rules.h"
#include "ops/schema/rules/rules.h"

namespace eddy {
namespace {

bool is_decision(const ValueType& type) {
  constexpr TypeSet kDecisions = {ElementType::kBool, ElementType::kInt32, ElementType::kInt64};
  return type.is_tensor() && type.tensor.is_ranked && kDecisions.contains(type.tensor.element) &&
         std::ranges::all_of(type.tensor.dims, [](int64_t dim) { return dim == 1; });
}

Status infer_host_predicate(InferContext& context) {
  if (context.attributes().get_string("name", "").empty()) {
    return invalid_argument("attribute 'name' of HostPredicate is empty: name the host function");
  }
  if (const AttributeValue* type = context.attributes().find_or_null("type")) {
    const auto& decision = std::get<ValueType>(*type);
    if (!is_decision(decision)) {
      return invalid_argument("the type of HostPredicate is " + to_string(decision) +
                              "; a host function decides one bool, int32 or int64");
    }
    context.set_output(0, decision);
  } else {
    context.set_output(0, TensorType(ElementType::kBool, Dims()));
  }
  return Status::ok();
}

// One value, or one for each of B's columns.
Status check_column_values(const InferContext& context, size_t input, const char* name,
                           const Dims& b) {
  const TensorType& type = context.input(input).tensor;
  const auto may_be_one = [](int64_t dim) { return dim == 1 || dim < 0; };
  if (!type.is_ranked || std::ranges::all_of(type.dims, may_be_one)) return Status::ok();
  if (type.dims.rank() == 1 && (type.dims[0] < 0 || b[1] < 0 || type.dims[0] == b[1])) {
    return Status::ok();
  }
  return invalid_argument(
      "the " + std::string(name) + " of DequantizeMatMul must be one value or " +
      "one for each column of B, not of shape " + to_string(type.dims) + " for " + to_string(b));
}

Status infer_dequantize_matmul(InferContext& context) {
  for (size_t i = 0; i < context.num_inputs(); ++i) {
    if (context.has_input(i)) EDDY_RETURN_IF_ERROR(tensor_input(context, i).status());
  }
  const TensorType &a = context.input(0).tensor, &b = context.input(1).tensor;
  if (context.has_input(3) && context.input(3).tensor.element != b.element) {
    return invalid_argument("the zero point of DequantizeMatMul must be " +
                            std::string(element_type_name(b.element)) + " like B, not " +
                            std::string(element_type_name(context.input(3).tensor.element)));
  }
  if (!b.is_ranked || !a.is_ranked) {
    context.set_output(0, TensorType(ElementType::kFloat));
    return Status::ok();
  }
  if (b.dims.rank() != 2 || a.dims.rank() == 0) {
    return invalid_argument("DequantizeMatMul multiplies A[..., k] and B[k, n], not " +
                            to_string(a.dims) + " and " + to_string(b.dims));
  }
  const int64_t depth = a.dims[a.dims.rank() - 1];
  if (depth >= 0 && b.dims[0] >= 0 && depth != b.dims[0]) {
    return invalid_argument("A has " + std::to_string(depth) + " columns but B has " +
                            std::to_string(b.dims[0]) + " rows: " + to_string(a.dims) + " times " +
                            to_string(b.dims));
  }
  EDDY_RETURN_IF_ERROR(check_column_values(context, 2, "scale", b.dims));
  if (context.has_input(3)) {
    EDDY_RETURN_IF_ERROR(check_column_values(context, 3, "zero point", b.dims));
    const auto scales = context.input(2).tensor.dims.count();
    const auto zeros = context.input(3).tensor.dims.count();
    if (scales && zeros && *scales != *zeros) {
      return invalid_argument(
          "scale and zero point of DequantizeMatMul must be equally many, not " +
          std::to_string(*scales) + " and " + std::to_string(*zeros));
    }
  }
  Dims dims;
  for (int i = 0; i + 1 < a.dims.rank(); ++i) dims.push_back(a.dims[i]);
  dims.push_back(b.dims[1]);
  context.set_output(0, TensorType(ElementType::kFloat, dims));
  return Status::ok();
}

double dequantize_matmul_flops(const InferContext& context, std::span<const ValueType> outputs) {
  const Dims& b = context.input(1).tensor.dims;
  const auto count = static_cast<double>(outputs[0].tensor.dims.count().value_or(0));
  return b.rank() == 2 ? 2.0 * static_cast<double>(b[0]) * count : count;
}

Status infer_same(InferContext& context) {
  context.set_output(0, context.input(0));
  return Status::ok();
}

// Of one shape, each of the type that the node declares for it.
Status set_fused_outputs(InferContext& context, TensorType type) {
  const std::span<const int64_t> to = context.attributes().get_ints("to");
  if (to.size() != context.num_outputs()) {
    return invalid_argument("attribute 'to' of Fused has " + std::to_string(to.size()) +
                            " element types for " + std::to_string(context.num_outputs()) +
                            " results");
  }
  for (size_t k = 0; k < to.size(); ++k) {
    if (to[k] <= 0 || to[k] >= kNumElementTypes) {
      return invalid_argument("attribute 'to' of Fused has " + std::to_string(to[k]) +
                              ", which is no element type");
    }
    type.element = static_cast<ElementType>(to[k]);
    context.set_output(k, type);
  }
  return Status::ok();
}

// All inputs broadcast.
Status infer_fused(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType type,
                        broadcast_inputs(context, 0, context.num_inputs(), ElementType::kFloat));
  return set_fused_outputs(context, type);
}

// The dimensions of a part. `part`: axis, first, size.
Result<TensorType> part_of(const TensorType& whole, std::span<const int64_t> part) {
  if (part[0] == -1 || !whole.is_ranked) return whole;
  TensorType type = whole;
  const bool has_axis = part[0] >= 0 && part[0] < whole.dims.rank();
  const int64_t size = has_axis ? whole.dims[static_cast<int>(part[0])] : 0;
  if (!has_axis || part[1] < 0 || part[2] < 0 || part[1] > size - part[2]) {
    return invalid_argument("of an input of FusedParts of shape " + to_string(whole.dims) +
                            " there is no part of " + std::to_string(part[2]) + " from " +
                            std::to_string(part[1]) + " on along axis " + std::to_string(part[0]));
  }
  type.dims[static_cast<int>(part[0])] = part[2];
  return type;
}

Status infer_fused_parts(InferContext& context) {
  const std::span<const int64_t> parts = context.attributes().get_ints("parts");
  if (parts.size() != 3 * context.num_inputs()) {
    return invalid_argument("attribute 'parts' of FusedParts has " + std::to_string(parts.size()) +
                            " numbers, not an axis, a first index and a size for each input");
  }
  Dims dims;
  bool is_ranked = true;
  for (size_t i = 0; i < context.num_inputs(); ++i) {
    EDDY_ASSIGN_OR_RETURN(const TensorType* const whole, tensor_input(context, i));
    EDDY_ASSIGN_OR_RETURN(const TensorType part, part_of(*whole, parts.subspan(3 * i, 3)));
    is_ranked &= part.is_ranked;
    const std::optional<Dims> both = broadcast_dims(dims, part.is_ranked ? part.dims : Dims());
    if (!both) return invalid_argument("the parts that FusedParts reads do not broadcast");
    dims = *both;
  }
  const ElementType any = ElementType::kFloat;
  return set_fused_outputs(context, is_ranked ? TensorType(any, dims) : TensorType(any));
}

double fused_flops(const InferContext& context, std::span<const ValueType> outputs) {
  const std::string_view program = context.attributes().get_string("program", "");
  const auto num_steps = 1.0 + static_cast<double>(std::ranges::count(program, ';'));
  return num_steps * static_cast<double>(outputs[0].tensor.dims.count().value_or(0));
}

// A key and numbers, each of one element.
Status infer_fold_key(InferContext& context) {
  for (size_t i = 0; i < context.num_inputs(); ++i) {
    EDDY_RETURN_IF_ERROR(expect_one_element(context, i, i == 0 ? "key" : "number"));
  }
  context.set_output(0, TensorType(ElementType::kInt64, Dims()));
  return Status::ok();
}

// Of the shape of `like`, or of the attribute.
Status infer_keyed_uniform(InferContext& context) {
  EDDY_RETURN_IF_ERROR(expect_one_element(context, 0, "key"));
  const auto type = static_cast<ElementType>(
      context.attributes().get_int("dtype", static_cast<int64_t>(ElementType::kFloat)));
  if (type != ElementType::kFloat && type != ElementType::kDouble) {
    return invalid_argument("attribute 'dtype' of KeyedUniform must be float (1) or double (11)");
  }
  const bool has_shape = context.attributes().has("shape");
  if (has_shape == context.has_input(1)) {
    return invalid_argument("KeyedUniform takes its shape from input 'like' or attribute 'shape'");
  }
  if (!has_shape) {
    EDDY_ASSIGN_OR_RETURN(const TensorType* like, tensor_input(context, 1));
    TensorType y = *like;
    y.element = type;
    context.set_output(0, y);
    return Status::ok();
  }
  Dims dims;
  for (const int64_t size : context.attributes().get_ints("shape")) {
    if (size < 0)
      return invalid_argument("the shape has the negative size " + std::to_string(size));
    EDDY_RETURN_IF_ERROR(push_dim(dims, size));
  }
  return set_checked_output(context, 0, type, dims);
}

OpDef same_tensor(const char* name, bool is_view) {
  return {.name = name,
          .domain = "eddy",
          .inputs = {in("value", kAllTypes)},
          .infer = infer_same,
          .is_view = is_view};
}

// The samples of the tensor that is handed on; whatever else depends on samples, its nodes ask.
Status batch_checked_call(BatchContext& context) {
  context.set_output(0, context.input(0));
  return Status::ok();
}

OpDef checked_call_op(const OpTable& table) {
  const InputFlag optional = InputFlag::kOptional;
  const auto host = [&](const char* name) {
    return in(name, kAllTypes, optional | InputFlag::kHostValue);
  };
  static_assert(kCheckedHostValues == 2);
  return {
      .name = kCheckedCall,
      .domain = "eddy",
      .inputs = {in("value"), host("first_sizes"), host("second_sizes"),
                 in("inputs", kAllTypes, optional | InputFlag::kVariadic | InputFlag::kShapeOnly)},
      .attributes = {attribute("checked", AttributeKind::kString, true),
                     attribute("checked_domain", AttributeKind::kString, true),
                     attribute("checked_opset", AttributeKind::kInt, true),
                     attribute("checked_outputs", AttributeKind::kInt, true)},
      .takes_any_attribute = true,
      .infer = [&table](InferContext& context) { return infer_checked_call(table, context); },
      .is_view = true,
      .batch = batch_checked_call};
}

}  // namespace

Status add_eddy_schemas(OpTable& table) {
  return add_schemas(
      table, {{.name = "HostPredicate",
               .domain = "eddy",
               .inputs = {in("inputs", kAllTypes, InputFlag::kVariadic | InputFlag::kOptional)},
               .attributes = {attribute("name", AttributeKind::kString, true),
                              attribute("type", AttributeKind::kType)},
               .infer = infer_host_predicate,
               .may_wait = true},
              {.name = "DequantizeMatMul",
               .domain = "eddy",
               .inputs = {in("A", {ElementType::kFloat}),
                          in("B", {ElementType::kInt8, ElementType::kUint8}),
                          in("scale", {ElementType::kFloat}),
                          in("zero_point", {ElementType::kInt8, ElementType::kUint8},
                             InputFlag::kOptional)},
               .infer = infer_dequantize_matmul,
               .flops = dequantize_matmul_flops,
               .batch = batch_rows},
              {.name = "Fused",
               .domain = "eddy",
               .inputs = {in("inputs", kAllTypes, InputFlag::kVariadic)},
               .max_outputs = INT_MAX,
               .attributes = {attribute("program", AttributeKind::kString, true),
                              attribute("to", AttributeKind::kInts, true)},
               .infer = infer_fused,
               .in_place_inputs = ~uint64_t{0},
               .flops = fused_flops},
              {.name = "FusedParts",
               .domain = "eddy",
               .inputs = {in("inputs", kAllTypes, InputFlag::kVariadic)},
               .max_outputs = INT_MAX,
               .attributes = {attribute("program", AttributeKind::kString, true),
                              attribute("to", AttributeKind::kInts, true),
                              attribute("parts", AttributeKind::kInts, true)},
               .infer = infer_fused_parts,
               .flops = fused_flops},
              {.name = "FoldKey",
               .domain = "eddy",
               .inputs = {in("key", {ElementType::kInt64}),
                          in("numbers", {ElementType::kInt64}, InputFlag::kVariadic)},
               .infer = infer_fold_key},
              {.name = "KeyedUniform",
               .domain = "eddy",
               .inputs = {in("key", {ElementType::kInt64}),
                          in("like", kAllTypes, InputFlag::kShapeOnly | InputFlag::kOptional)},
               .attributes = {attribute("dtype", AttributeKind::kInt),
                              attribute("shape", AttributeKind::kInts)},
               .infer = infer_keyed_uniform},
              checked_call_op(table),
              update_parameter_op(),
              same_tensor("ToDevice", false),
              same_tensor("ToHost", false),
              same_tensor("Await", true)});
}

}  // namespace eddy
