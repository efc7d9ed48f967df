// SwiGLU: A * sigmoid(alpha * A) * B.
#include "graph/ir/expansion.h"
#include "ops/schema/functions/functions.h"
#include "ops/schema/rules/rules.h"

namespace eddy {
namespace {

Status infer_glu(InferContext& context) {
  EDDY_RETURN_IF_ERROR(expect_same_element(context, 0, 2));
  EDDY_ASSIGN_OR_RETURN(const TensorType* a, tensor_input(context, 0));
  EDDY_ASSIGN_OR_RETURN(const TensorType* b, tensor_input(context, 1));
  if (a->is_static() && b->is_static() && !(a->dims == b->dims)) {
    return invalid_argument("A and B must have one shape, not " + to_string(a->dims) + " and " +
                            to_string(b->dims));
  }
  context.set_output(0, TensorType(a->element));
  return Status::ok();
}

void expand_swiglu(Expansion& e) {
  const Value gate =
      e.op("Swish", {e.input(0)}, {{"alpha", e.attributes().get_float("alpha", 1.0f)}});
  e.set_output(0, e.op("Mul", {gate, e.input(1)}));
}

}  // namespace

Status add_activation_functions(OpTable& table) {
  return add_schemas(table, {{.name = "SwiGLU",
                              .since_version = 28,
                              .inputs = {in("A", kFloatTypes), in("B", kFloatTypes)},
                              .attributes = {attribute("alpha", AttributeKind::kFloat)},
                              .infer = infer_glu,
                              .expand = expand_swiglu}});
}

}  // namespace eddy
