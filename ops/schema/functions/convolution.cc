// CausalConvWithState as a function: a convolution of each channel by itself over what came before
// and the input, which leaves its last elements for the next call.
#include <string>

#include "graph/ir/expansion.h"
#include "ops/schema/functions/functions.h"
#include "ops/schema/rules/rules.h"

namespace eddy {
namespace {

using enum AttributeKind;

Status infer_causal_conv(InferContext& context) {
  EDDY_RETURN_IF_ERROR(expect_same_element(context, 0, context.num_inputs()));
  EDDY_RETURN_IF_ERROR(expect_shape(context, 0, "input", {"batch", "channels", "length"}));
  EDDY_RETURN_IF_ERROR(expect_shape(context, 1, "weight", {"channels", "1", "taps"}));
  EDDY_RETURN_IF_ERROR(expect_shape(context, 2, "bias", {"channels"}));
  EDDY_RETURN_IF_ERROR(expect_shape(context, 3, "past_state", {"batch", "channels", "length"}));
  const TensorType &x = context.input(0).tensor, &w = context.input(1).tensor;
  if (x.is_ranked && w.is_ranked && !merge_dim(x.dims[1], w.dims[0])) {
    return invalid_argument("input has " + std::to_string(x.dims[1]) + " channels but weight " +
                            std::to_string(w.dims[0]));
  }
  const std::string_view activation = context.attributes().get_string("activation", "none");
  if (activation != "none" && activation != "silu" && activation != "swish") {
    return invalid_argument("activation must be none, silu or swish, not '" +
                            std::string(activation) + "'");
  }
  context.set_output(0, TensorType(x.element));
  context.set_output(1, TensorType(x.element));
  return Status::ok();
}

void expand_causal_conv(Expansion& e) {
  const Value x = e.input(0), weight = e.input(1);
  const TensorType type = e.type(weight);
  const int64_t channels = type.is_ranked ? type.dims[0] : kUnknownDim;
  if (channels < 0) {  // an attribute of the convolution
    return e.fail(unsupported("the channels of the weight must be known: declare its shape"));
  }
  const Value before = e.op("Sub", {e.sizes(weight, 2, 3), e.int64s({1})});
  Value past = e.input(3);
  if (past.is_none()) {
    const Value parts[] = {e.sizes(x, 0, 2), before};
    const Value shape = e.op("Concat", parts, {{"axis", int64_t{0}}});
    past = e.op("Expand", {e.number(e.element(x), 0), shape});
  }
  const Value both[] = {past, x};
  const Value line = e.op("Concat", both, {{"axis", int64_t{2}}});
  Value y = e.op("Conv", {line, weight, e.input(2)}, {{"group", channels}});
  if (e.attributes().get_string("activation", "none") != "none") {
    y = e.op("Mul", {y, e.op("Sigmoid", {y})});
  }
  e.set_output(0, y);
  const Value length = e.sizes(line, 2, 3);
  const Value start = e.op("Sub", {length, before});
  e.set_output(1, e.op("Slice", {line, start, length, e.int64s({2})}));
}

}  // namespace

Status add_convolution_functions(OpTable& table) {
  const InputFlag optional = InputFlag::kOptional;
  return add_schemas(table, {{.name = "CausalConvWithState",
                              .since_version = 27,
                              .inputs = {in("input", kFloatTypes), in("weight", kFloatTypes),
                                         in("bias", kFloatTypes, optional),
                                         in("past_state", kFloatTypes, optional)},
                              .max_outputs = 2,
                              .attributes = {attribute("activation", kString)},
                              .infer = infer_causal_conv,
                              .expand = expand_causal_conv}});
}

}  // namespace eddy
