// Reductions and ArgMax/ArgMin. Axes are an attribute, or since opset 18 (ReduceSum: 13) an input.
//
// Empty axes mean all, or with noop_with_empty_axes none: then each element is reduced by itself,
// so ReduceL1 gives absolute values, ReduceLogSum logarithms, ReduceSumSquare squares, and keepdims
// has nothing to drop. (ONNX's text had "the input tensor" until 1.19, against its own function
// bodies; it now has this for all opsets, and ONNX Runtime 1.30 does so.)
#include <bit>

#include "graph/base/check.h"
#include "ops/schema/families.h"
#include "ops/schema/rules/batch_rules.h"
#include "ops/schema/rules/index_rules.h"
#include "ops/schema/rules/rules.h"

namespace eddy {
namespace {

// The input's dimensions with those in `mask` set to 1 or left out.
Dims reduced_dims(const Dims& dims, uint32_t mask, bool keeps) {
  EDDY_DCHECK(mask >> dims.rank() == 0) << "axes " << mask << " of rank " << dims.rank();
  Dims result;
  for (int axis = 0; axis < dims.rank(); ++axis) {
    if ((mask & (1u << axis)) == 0)
      result.push_back(dims[axis]);
    else if (keeps)
      result.push_back(1);
  }
  return result;
}

Dims unknown_dims(int rank) {
  Dims dims;
  while (dims.rank() < rank) dims.push_back(kUnknownDim);
  return dims;
}

constexpr uint32_t all_axes(int rank) { return (1u << rank) - 1; }

Status infer_by_attribute(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* input, tensor_input(context, 0));
  TensorType type(input->element);
  const bool keeps = context.attributes().get_int("keepdims", 1) != 0;
  if (input->is_ranked) {
    const int rank = input->dims.rank();
    EDDY_ASSIGN_OR_RETURN(uint32_t mask, axes_mask(context.attributes().get_ints("axes"), rank));
    if (mask == 0) mask = all_axes(rank);
    type = TensorType(input->element, reduced_dims(input->dims, mask, keeps));
  } else if (!keeps && context.attributes().get_ints("axes").empty()) {
    type = TensorType(input->element, Dims());
  }
  context.set_output(0, type);
  return Status::ok();
}

Status infer_by_input(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* input, tensor_input(context, 0));
  const bool keeps = context.attributes().get_int("keepdims", 1) != 0;
  const bool no_op = context.attributes().get_int("noop_with_empty_axes", 0) != 0;
  EDDY_ASSIGN_OR_RETURN(const std::optional<HostInts> axes, host_ints(context, 1, "axes"));
  TensorType type(input->element);
  if (input->is_ranked) {
    const int rank = input->dims.rank();
    uint32_t mask = 0;
    if (axes) {
      EDDY_ASSIGN_OR_RETURN(mask, axes_mask(*axes, rank));
    }
    if (axes || !context.has_input(1)) {
      if (mask == 0 && !no_op) mask = all_axes(rank);
      type = TensorType(input->element, reduced_dims(input->dims, mask, keeps));
    } else if (keeps) {
      type = TensorType(input->element, unknown_dims(rank));
    }
  } else if (!keeps && !no_op && (axes ? axes->size() == 0 : !context.has_input(1))) {
    type = TensorType(input->element, Dims());
  }
  context.set_output(0, type);
  return Status::ok();
}

Status infer_arg(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const TensorType* input, tensor_input(context, 0));
  TensorType type(ElementType::kInt64);
  if (input->is_ranked) {
    const bool keeps = context.attributes().get_int("keepdims", 1) != 0;
    EDDY_ASSIGN_OR_RETURN(const int axis, normalize_axis(context.attributes().get_int("axis", 0),
                                                         input->dims.rank()));
    if (input->dims[axis] == 0) {
      return invalid_argument("axis " + std::to_string(axis) + " of shape " +
                              to_string(input->dims) + " is empty: there is nothing to find");
    }
    type = TensorType(ElementType::kInt64, reduced_dims(input->dims, 1u << axis, keeps));
  }
  context.set_output(0, type);
  return Status::ok();
}

Status batch_over(BatchContext& context, uint32_t mask) {
  const int axis = context.axis(0);
  if ((mask >> axis) & 1u) return crosses_samples("reduces", axis);
  const bool keeps = context.attributes().get_int("keepdims", 1) != 0;
  const int num_dropped = keeps ? 0 : std::popcount(mask & all_axes(axis));
  context.set_output(0, Batched::along(axis - num_dropped, context.input(0).each));
  return Status::ok();
}

Status batch_reduction(BatchContext& context) {
  EDDY_RETURN_IF_ERROR(expect_first_alone(context));
  if (!context.is_along(0)) return Status::ok();
  ListArgument axes;
  EDDY_RETURN_IF_ERROR(list_argument(context.types(), 1, "axes", axes));
  if (axes.state == ListState::kUnknown) return unsupported("reduces axes that are not known");
  EDDY_ASSIGN_OR_RETURN(uint32_t mask, axes_mask(axes.values.span(), context.rank(0)));
  const bool no_op = context.attributes().get_int("noop_with_empty_axes", 0) != 0;
  if (mask == 0 && !no_op) mask = all_axes(context.rank(0));
  if (mask == 0) return batch_entries(context);
  return batch_over(context, mask);
}

Status batch_arg(BatchContext& context) {
  EDDY_RETURN_IF_ERROR(expect_tensors(context));
  if (!context.is_along(0)) return Status::ok();
  EDDY_ASSIGN_OR_RETURN(const int axis,
                        normalize_axis(context.attributes().get_int("axis", 0), context.rank(0)));
  return batch_over(context, 1u << axis);
}

double count_inputs(const InferContext& context, std::span<const ValueType>) {
  return static_cast<double>(context.input(0).tensor.dims.count().value_or(0));
}

OpDef by_attribute(std::string name) {
  OpDef def;
  def.name = std::move(name);
  def.since_version = 1;
  def.inputs = {in("data", kNumericTypes)};
  def.attributes = {attribute("axes", AttributeKind::kInts), flag("keepdims")};
  def.infer = infer_by_attribute;
  def.batch = batch_reduction;
  def.flops = count_inputs;
  return def;
}

OpDef by_input(std::string name, int since_version) {
  OpDef def;
  def.name = std::move(name);
  def.since_version = since_version;
  def.inputs = {in("data", kNumericTypes),
                in("axes", {ElementType::kInt64}, InputFlag::kOptional | InputFlag::kHostValue)};
  def.attributes = {flag("keepdims"), flag("noop_with_empty_axes")};
  def.infer = infer_by_input;
  def.batch = batch_reduction;
  def.flops = count_inputs;
  return def;
}

OpDef arg_search(std::string name) {
  OpDef def;
  def.name = std::move(name);
  def.since_version = 1;
  def.inputs = {in("data", kNumericTypes)};
  def.attributes = {attribute("axis", AttributeKind::kInt), flag("keepdims"),
                    since(12, flag("select_last_index"))};
  def.infer = infer_arg;
  def.batch = batch_arg;
  def.flops = count_inputs;
  return def;
}

}  // namespace

Status add_reduction_schemas(OpTable& table) {
  std::vector<OpDef> defs;
  for (const char* name :
       {"ReduceL1", "ReduceL2", "ReduceLogSum", "ReduceLogSumExp", "ReduceMax", "ReduceMean",
        "ReduceMin", "ReduceProd", "ReduceSum", "ReduceSumSquare"}) {
    const std::string text = name;
    defs.push_back(by_attribute(name));
    defs.push_back(by_input(name, text == "ReduceSum" ? 13 : 18));
    if (text == "ReduceLogSum" || text == "ReduceLogSumExp") {
      defs.push_back(by_input(name, 28));
      defs.back().inputs[0].types = kFloatTypes;
    }
    if (text != "ReduceMax" && text != "ReduceMin") continue;
    for (OpDef* def : {&defs.back(), &defs[defs.size() - 2]}) {
      def->inputs[0].later_types = kBoolType;
      def->inputs[0].later_since = 20;
    }
  }
  defs.push_back(arg_search("ArgMax"));
  defs.push_back(arg_search("ArgMin"));
  return add_schemas(table, std::move(defs));
}

}  // namespace eddy
