#include "ops/cuda/images/scalar_program.h"

#include <algorithm>
#include <string_view>

#include "graph/base/check.h"
#include "ops/cuda/elementwise/node_function.h"
#include "ops/cuda/text/element_functions.h"

namespace eddy::cuda {
namespace {

struct NamedOp {
  std::string_view name;
  ScalarOp op;
  bool takes_numbers, takes_bools;
};
constexpr NamedOp kOps[] = {
#define EDDY_OF_NUMBERS(op) {#op, ScalarOp::k##op, true, false},
#define EDDY_OF_BOOLS(op) {#op, ScalarOp::k##op, false, true},
    EDDY_SCALAR_BINARY(EDDY_OF_NUMBERS) EDDY_SCALAR_COMPARE(EDDY_OF_NUMBERS)
        EDDY_SCALAR_UNARY(EDDY_OF_NUMBERS) EDDY_SCALAR_REAL(EDDY_OF_NUMBERS) EDDY_OF_NUMBERS(Div)
            EDDY_SCALAR_LOGIC(EDDY_OF_BOOLS) EDDY_OF_BOOLS(Not)
#undef EDDY_OF_NUMBERS
#undef EDDY_OF_BOOLS
                {"Equal", ScalarOp::kEqual, true, true},
    {"Where", ScalarOp::kWhere, true, true},
    {"Cast", ScalarOp::kCast, true, true}};

std::optional<ScalarType> scalar_type(ElementType element) {
  switch (element) {
    case ElementType::kFloat:
      return ScalarType::k_f32;
    case ElementType::kDouble:
      return ScalarType::k_f64;
    case ElementType::kInt32:
      return ScalarType::k_i32;
    case ElementType::kInt64:
      return ScalarType::k_i64;
    case ElementType::kBool:
      return ScalarType::k_b8;
    default:
      return std::nullopt;
  }
}

// The step but for its addresses.
std::optional<ScalarStepParams> step_of(const ElementFunction& function) {
  const auto signature = element_signature(function.name);
  if (!signature) return std::nullopt;
  const auto* const found = std::ranges::find(kOps, signature->op, &NamedOp::name);
  if (found == std::end(kOps)) return std::nullopt;
  const auto type = scalar_type(signature->inputs[found->op == ScalarOp::kWhere ? 1 : 0]);
  const auto to = scalar_type(signature->output);
  if (!type || !to) return std::nullopt;
  const bool is_taken = *type == ScalarType::k_b8 ? found->takes_bools : found->takes_numbers;
  if (!is_taken) return std::nullopt;
  return ScalarStepParams{found->op, *type, *to, {}, {}, nullptr};
}

uint8_t bytes_of(ScalarType type) {
  switch (type) {
#define EDDY_SCALAR_BYTES(type, size) \
  case ScalarType::k_##type:          \
    return size;
    EDDY_SCALAR_TYPES(EDDY_SCALAR_BYTES)
#undef EDDY_SCALAR_BYTES
  }
  return 0;
}

std::optional<Expression> expression_of(const KernelInit& init) {
  const auto num_inputs = static_cast<uint32_t>(init.inputs.size());
  if (init.op.domain == "eddy" && init.op.name == "Fused") {
    Result<Expression> parsed =
        parse_expression(init.attributes.get_string("program", ""), num_inputs);
    return parsed.is_ok() ? std::optional(std::move(*parsed)) : std::nullopt;
  }
  if (!init.op.domain.empty()) return std::nullopt;
  Result<ElementFunction> function = element_function(init);
  if (!function.is_ok()) return std::nullopt;
  Expression expression{num_inputs, {{std::move(*function), {}}}};
  for (uint32_t i = 0; i < num_inputs; ++i) expression.steps[0].arguments.push_back(i);
  return expression;
}

}  // namespace

std::optional<Expression> scalar_expression(const KernelInit& init) {
  std::optional<Expression> expression = expression_of(init);
  if (!expression || expression->steps.size() > size_t{kMaxScalarSteps}) return std::nullopt;
  for (const ExpressionStep& step : expression->steps) {
    if (step.arguments.size() > 3 || !step_of(step.function)) return std::nullopt;
  }
  return expression;
}

std::vector<ScalarStepParams> scalar_steps(const Expression& expression,
                                           std::span<const void* const> inputs,
                                           std::span<void* const> made) {
  EDDY_CHECK(inputs.size() == expression.num_inputs && made.size() == expression.steps.size())
      << "an expression of " << expression.num_inputs << " inputs and " << expression.steps.size()
      << " steps is given " << inputs.size() << " and " << made.size() << " addresses";
  std::vector<ScalarStepParams> steps;
  for (const ExpressionStep& step : expression.steps) {
    const auto params = step_of(step.function);
    EDDY_CHECK(params) << step.function.name << " is no function of single elements";
    ScalarStepParams& one = steps.emplace_back(*params);
    for (size_t i = 0; i < step.arguments.size(); ++i) {
      const uint32_t from = step.arguments[i];
      one.in[i] = from < expression.num_inputs ? inputs[from] : made[from - expression.num_inputs];
    }
    one.out = made[steps.size() - 1];
  }
  return steps;
}

std::vector<MapParams> map_steps(const Expression& expression, std::span<const void* const> inputs,
                                 const std::vector<bool>& are_single, uint64_t count,
                                 std::span<void* const> made) {
  EDDY_CHECK(are_single.size() == inputs.size()) << are_single.size() << " of " << inputs.size();
  std::vector<MapParams> maps;
  for (const ScalarStepParams& step : scalar_steps(expression, inputs, made)) {
    const ExpressionStep& from = expression.steps[maps.size()];
    const auto signature = element_signature(from.function.name);
    MapParams& map = maps.emplace_back(MapParams{step, count, {}, 0, {}});
    for (size_t i = 0; i < from.arguments.size(); ++i) {
      const uint32_t argument = from.arguments[i];
      const bool is_single = argument < expression.num_inputs && are_single[argument];
      map.in_bytes[i] = is_single ? uint8_t{0} : bytes_of(*scalar_type(signature->inputs[i]));
    }
    map.out_bytes = bytes_of(*scalar_type(signature->output));
  }
  return maps;
}

}  // namespace eddy::cuda
