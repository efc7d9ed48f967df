#include "ops/schema/eddy/update_parameter.h"

#include <array>
#include <string>

#include "ops/schema/rules/rules.h"

namespace eddy {
namespace {

constexpr std::array<const char*, kNumUpdateRules> kNames = {"descent", "momentum", "nesterov",
                                                             "adagrad", "adam"};

Status infer_update_parameter(InferContext& context) {
  EDDY_ASSIGN_OR_RETURN(const UpdateForm form, parse_update(context.attributes()));
  const auto states = static_cast<size_t>(num_states(form.rule));
  const size_t wanted = UpdateInputs::kStates + states;
  if (context.num_inputs() != wanted || context.num_outputs() != 1 + states) {
    return invalid_argument("UpdateParameter by " + std::string(to_string(form.rule)) + " has " +
                            std::to_string(wanted) + " inputs and " + std::to_string(1 + states) +
                            " outputs, not " + std::to_string(context.num_inputs()) + " and " +
                            std::to_string(context.num_outputs()));
  }
  EDDY_RETURN_IF_ERROR(expect_one_element(context, UpdateInputs::kRate, "rate"));
  if (context.has_input(UpdateInputs::kShare)) {
    EDDY_RETURN_IF_ERROR(expect_one_element(context, UpdateInputs::kShare, "share"));
  }
  EDDY_RETURN_IF_ERROR(expect_same_element(context, 0, wanted));
  EDDY_ASSIGN_OR_RETURN(const TensorType* x, tensor_input(context, UpdateInputs::kX));
  for (size_t i = UpdateInputs::kGradient; i < wanted; ++i) {
    if (!context.has_input(i)) {
      return invalid_argument("UpdateParameter needs input " + std::to_string(i));
    }
    EDDY_ASSIGN_OR_RETURN(const TensorType* other, tensor_input(context, i));
    if (!x->is_ranked || !other->is_ranked || may_equal(x->dims, other->dims)) continue;
    return invalid_argument("x of shape " + to_string(x->dims) + " and input " + std::to_string(i) +
                            " of shape " + to_string(other->dims) + " must have one shape");
  }
  const TensorType type = *x;
  for (size_t i = 0; i < 1 + states; ++i) context.set_output(i, type);
  return Status::ok();
}

// By the operations of one element.
double update_flops(const InferContext&, std::span<const ValueType> outputs) {
  constexpr double kEach = 6;
  return kEach * static_cast<double>(outputs.size()) *
         static_cast<double>(outputs[0].tensor.dims.count().value_or(0));
}

}  // namespace

const char* to_string(UpdateRule rule) { return kNames[static_cast<size_t>(rule)]; }

Result<UpdateForm> parse_update(const Attributes& attributes) {
  const std::string_view name = attributes.get_string("rule", "");
  UpdateForm form;
  size_t rule = 0;
  while (rule < kNames.size() && name != kNames[rule]) ++rule;
  if (rule == kNames.size()) {
    return invalid_argument(
        "the rule of UpdateParameter is descent, momentum, nesterov, adagrad or adam, not '" +
        std::string(name) + "'");
  }
  const auto number = [&](const char* of, float fallback) {
    return double{attributes.get_float(of, fallback)};
  };
  form.rule = static_cast<UpdateRule>(rule);
  form.norm = number("norm_coefficient", 0);
  form.alpha = number("alpha", 0);
  form.rest_of_alpha = 1 - form.alpha;
  form.beta = number("beta", 0);
  form.rest_of_beta = 1 - form.beta;
  form.epsilon = number("epsilon", 0);
  form.kept = 1 - number("norm_coefficient_post", 0);
  return form;
}

OpDef update_parameter_op() {
  using enum AttributeKind;
  constexpr uint64_t kTensors = 0b111100;  // x, the gradient and states
  return {
      .name = "UpdateParameter",
      .domain = "eddy",
      .inputs = {in("rate", kFloatTypes), in("share", kFloatTypes, InputFlag::kOptional),
                 in("x", kFloatTypes), in("gradient", kFloatTypes),
                 in("states", kFloatTypes, InputFlag::kVariadic | InputFlag::kOptional)},
      .max_outputs = 3,
      .attributes = {attribute("alpha", kFloat), attribute("beta", kFloat),
                     attribute("epsilon", kFloat), attribute("norm_coefficient", kFloat),
                     attribute("norm_coefficient_post", kFloat), attribute("rule", kString, true)},
      .infer = infer_update_parameter,
      .in_place_inputs = kTensors,
      .flops = update_flops};
}

}  // namespace eddy
