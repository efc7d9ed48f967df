// BiasGelu, FastGelu, Gelu and QuickGelu as functions.
#include "graph/ir/expansion.h"
#include "ops/schema/microsoft/microsoft.h"
#include "ops/schema/rules/rules.h"

namespace eddy {
namespace {

// Input 1, where there is one, is a bias along the last axis of input 0.
Status infer_biased(InferContext& context) {
  EDDY_RETURN_IF_ERROR(expect_same_element(context, 0, context.num_inputs()));
  EDDY_ASSIGN_OR_RETURN(const TensorType* x, tensor_input(context, 0));
  context.set_output(0, TensorType(x->element));
  if (!context.has_input(1)) return Status::ok();
  EDDY_ASSIGN_OR_RETURN(const TensorType* bias, tensor_input(context, 1));
  if (!bias->is_ranked || !x->is_ranked) return Status::ok();
  const int rank = x->dims.rank();
  if (bias->dims.rank() == 1 && rank > 0 && merge_dim(bias->dims[0], x->dims[rank - 1])) {
    return Status::ok();
  }
  return invalid_argument("the bias must hold one value for each place of the last axis of " +
                          to_string(x->dims) + ", not " + to_string(bias->dims));
}

Value biased(Expansion& e) {
  return e.has_input(1) ? e.op("Add", {e.input(0), e.input(1)}) : e.input(0);
}

void expand_gelu(Expansion& e) { e.set_output(0, e.op("Gelu", {biased(e)})); }

void expand_fast_gelu(Expansion& e) {
  e.set_output(0, e.op("Gelu", {biased(e)}, {{"approximate", "tanh"}}));
}

void expand_quick_gelu(Expansion& e) {
  constexpr float kAlpha = 1.702f;
  e.set_output(0,
               e.op("Swish", {e.input(0)}, {{"alpha", e.attributes().get_float("alpha", kAlpha)}}));
}

OpDef activation(const char* name, std::vector<FormalInput> inputs, ExpandFunction expand) {
  return {.name = name,
          .domain = kMicrosoft,
          .inputs = std::move(inputs),
          .infer = infer_biased,
          .expand = expand};
}

}  // namespace

Status add_microsoft_activations(OpTable& table) {
  const FormalInput x = in("X", kFloatTypes), bias = in("bias", kFloatTypes);
  const FormalInput optional_bias = in("bias", kFloatTypes, InputFlag::kOptional);
  OpDef quick = activation("QuickGelu", {x}, expand_quick_gelu);
  quick.attributes = {attribute("alpha", AttributeKind::kFloat)};
  return add_schemas(table, {activation("BiasGelu", {x, bias}, expand_gelu),
                             activation("FastGelu", {x, optional_bias}, expand_fast_gelu),
                             activation("Gelu", {x}, expand_gelu), std::move(quick)});
}

}  // namespace eddy
